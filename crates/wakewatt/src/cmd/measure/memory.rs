//! `wakewatt measure memory`: arguments to a plan.

use super::Measured;
use crate::cli::MemoryArgs;
use crate::exit::{Code, Failure};
use anyhow::Result;
use std::io::BufReader;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::memory::{PageWish, Traffic};
use wakewatt_core::source::Source;
use wakewatt_core::units::show_bytes;
use wakewatt_host::vector_loops::Width;
use wakewatt_lab::bench::memory::apart::serve;
use wakewatt_lab::bench::memory::{MemorySpec, sizes};
use wakewatt_lab::context::Lab;
use wakewatt_lab::pick;
use wakewatt_lab::survey::{self, allowed_cpus, nodes_of};

/// Runs it.
pub(super) fn run(args: &MemoryArgs, lab: Lab<'_>) -> Result<Measured> {
    let spec = spec(args, &allowed_cpus()?, lab.src)?;
    // Wrong sizes and absent vectors are the user's to change; the message says how.
    let sample = survey::memory(lab, &spec).map_err(|e| Failure::error(Code::CouldNotMeasure, e.to_string()))?;
    Ok(Measured { memory: Some(sample), ..Measured::default() })
}

/// The hidden `wakewatt memory-worker`.
pub fn worker() -> Result<Code> {
    let input = BufReader::new(std::io::stdin());
    serve(input, std::io::stdout()).map_err(|why| Failure::error(Code::CouldNotMeasure, why))?;
    Ok(Code::Fine)
}

fn spec(args: &MemoryArgs, allowed: &CpuSet, src: &dyn Source) -> Result<MemorySpec> {
    let usage = |text: String| Failure::error(Code::Usage, text);
    if args.stride < 64 || !args.stride.is_multiple_of(64) {
        return Err(usage(format!("--stride {}: give a multiple of 64, the size of a line", args.stride)));
    }
    if let Some(size) = args.size.iter().chain(&args.max_size).find(|s| **s < 4096 || **s < args.stride * 2) {
        return Err(usage(format!("a working set of {}: give at least 4k and two strides", show_bytes(*size))));
    }
    if args.array_size.is_some_and(|size| size < 4096) {
        return Err(usage("--array-size: give at least 4k".into()));
    }
    let cpus = args.cpus.clone().unwrap_or_else(|| allowed.clone());
    let cpu = args.cpu.or(pick::sleeper(&cpus)).unwrap_or(0);
    let nodes = nodes_of(src, allowed);
    if let Some(node) = args.node.filter(|node| !nodes.with_memory.contains(node)) {
        return Err(usage(format!("--node {node}: there are memory nodes {:?} here", nodes.with_memory)));
    }
    let is_wanted = |part: &str| args.part.is_empty() || args.part.iter().any(|p| p == part);
    let mut spec = if args.quick { MemorySpec::short } else { MemorySpec::full }(cpu, cpus, nodes);
    spec.node = args.node;
    spec.stride_bytes = args.stride;
    spec.locality_bytes = args.locality;
    if !args.size.is_empty() {
        spec.sizes_bytes.clone_from(&args.size);
        spec.sizes_bytes.sort_unstable();
        spec.may_grow = false;
    } else if let Some(max) = args.max_size {
        spec.sizes_bytes = sizes(4096, max);
        spec.may_grow = false;
    }
    if !args.size.is_empty() || args.max_size.is_some() {
        spec.memory_bytes = spec.sizes_bytes.last().copied();
    }
    if !args.pages.is_empty() {
        let all = [PageWish::Huge, PageWish::Base];
        spec.pages = all.into_iter().filter(|p| args.pages.iter().any(|w| w == p.word())).collect();
        spec.bandwidth_pages.clone_from(&spec.pages);
    }
    if !args.kernel.is_empty() {
        spec.traffic = Traffic::ALL.into_iter().filter(|t| args.kernel.iter().any(|w| w == t.word())).collect();
    }
    let all_widths = [Width::Scalar, Width::Sse2, Width::Neon, Width::Avx2, Width::Avx512];
    spec.width = args.simd.as_ref().and_then(|word| all_widths.into_iter().find(|w| w.word() == word));
    spec.n_samples = args.samples.map_or(spec.n_samples, usize::from);
    spec.sample_ns = args.sample_time.unwrap_or(spec.sample_ns);
    spec.array_bytes = args.array_size;
    if !is_wanted("latency") {
        spec.pages.clear();
    }
    spec.is_loaded &= is_wanted("loaded");
    if !is_wanted("bandwidth") {
        spec.traffic.clear();
    }
    if !is_wanted("matrix") {
        spec.nodes = None;
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use wakewatt_core::source::Tree;

    fn spec_of(words: &str) -> Result<MemorySpec> {
        let line = format!("wakewatt measure memory {words}");
        let cli = crate::cli::Cli::parse_from(line.split_whitespace());
        let crate::cli::Command::Measure(crate::cli::MeasureArgs { what: crate::cli::Measure::Memory(args), .. }) =
            cli.command
        else {
            panic!("not measure memory");
        };
        spec(&args, &CpuSet::parse("0-3").unwrap(), &Tree::from_text(""))
    }

    #[test]
    fn arguments_become_a_plan() {
        let spec = spec_of("--part latency --size 1M,4k --pages base --stride 256 --samples 3 --locality 4k").unwrap();
        assert_eq!((spec.sizes_bytes, spec.memory_bytes), (vec![4096, 1 << 20], Some(1 << 20)));
        assert_eq!((spec.pages, spec.stride_bytes, spec.n_samples), (vec![PageWish::Base], 256, 3));
        assert_eq!((spec.may_grow, spec.is_loaded, spec.traffic, spec.nodes), (false, false, vec![], None));
        assert_eq!((spec.cpu, spec.cpus.len()), (3, 4));
        let whole = spec_of("").unwrap();
        assert_eq!(whole.nodes.unwrap().with_cpus[0].1.len(), 4);
    }

    #[test]
    fn nonsense_is_refused_with_what_to_give() {
        let said = |words: &str| spec_of(words).unwrap_err().to_string();
        assert_eq!(said("--stride 100"), "--stride 100: give a multiple of 64, the size of a line");
        assert_eq!(said("--size 1k"), "a working set of 1KiB: give at least 4k and two strides");
        assert_eq!(said("--node 7"), "--node 7: there are memory nodes [0] here");
        assert!(said("--array-size 1").contains("4k"));
    }
}
