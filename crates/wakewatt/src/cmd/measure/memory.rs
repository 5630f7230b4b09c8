//! `wakewatt measure memory`: arguments to a plan, and the plan's result in words.

use super::Measured;
use crate::cli::MemoryArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::BufReader;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::{Cpus, Domain, numa::Numa};
use wakewatt_core::samples::memory::{LatencyCurve, MemorySample, PageWish, Traffic};
use wakewatt_core::source::Source;
use wakewatt_core::units::{show_bytes, show_ns, three_digits};
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::vector_loops::Width;
use wakewatt_lab::bench::BenchError;
use wakewatt_lab::bench::memory::apart::serve;
use wakewatt_lab::bench::memory::{MemorySpec, Nodes, memory_apart, sizes};
use wakewatt_lab::pick;

/// Runs it.
pub(super) fn measure(args: &MemoryArgs, src: &dyn Source, interrupt: &Interrupt) -> Result<Measured> {
    let allowed = allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let spec = spec(args, &allowed, src)?;
    let progress = Progress::start("measure memory");
    let sample = memory_apart(&program()?, &spec, interrupt.flag(), &|share, what| progress.set(share, what));
    // Wrong sizes and absent vectors are the user's to change; the message says how.
    let sample = sample.map_err(|e| Failure::error(Code::CouldNotMeasure, e.to_string()))?;
    Ok(Measured { memory: Some(sample), ..Measured::default() })
}

/// A short look, for `doctor`.
pub fn as_found(allowed: &CpuSet, src: &dyn Source, interrupt: &Interrupt) -> Result<MemorySample, BenchError> {
    let cpu = pick::sleeper(allowed).unwrap_or(0);
    let program = program().map_err(|why| BenchError::Unavailable(format!("{why:#}")))?;
    let spec = MemorySpec::short(cpu, allowed.clone(), nodes_of(src, allowed));
    memory_apart(&program, &spec, interrupt.flag(), &|_, _| ())
}

/// What to start to measure in a process of its own.
fn program() -> Result<Vec<OsString>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    Ok(vec![program.into(), "memory-worker".into()])
}

/// The hidden `wakewatt memory-worker`.
pub fn worker() -> Result<Code> {
    let input = BufReader::new(std::io::stdin());
    serve(input, std::io::stdout()).map_err(|why| Failure::error(Code::CouldNotMeasure, why))?;
    Ok(Code::Fine)
}

/// Nodes with the CPUs of them that may be used; one node holding everything where the kernel has no NUMA.
pub fn nodes_of(src: &dyn Source, allowed: &CpuSet) -> Nodes {
    let numa = Numa::read(src, &Cpus::read(src));
    let with_cpus: Vec<(u32, CpuSet)> = numa
        .nodes
        .iter()
        .filter_map(|n| Some((n.id, n.cpus.get()?.and(allowed))))
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect();
    if with_cpus.is_empty() {
        return Nodes { with_cpus: vec![(0, allowed.clone())], with_memory: vec![0] };
    }
    let has_memory = |id: u32| numa.has_memory.get().is_none_or(|set| set.contains(id));
    let with_memory = numa.nodes.iter().map(|n| n.id).filter(|id| has_memory(*id)).collect();
    Nodes { with_cpus, with_memory }
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

/// "12.3 GB/s": powers of 1000, as memory is sold and as STREAM and likwid print it.
fn rate(bytes_per_s: f64) -> String {
    format!("{} GB/s", three_digits(bytes_per_s / 1e9))
}

fn ns(ns: f64) -> String {
    format!("{} ns", three_digits(ns))
}

/// The result in words.
pub(super) fn text(out: &mut String, sample: &MemorySample) {
    sample.latency.iter().for_each(|curve| latency(out, curve));
    if let Some(loaded) = &sample.loaded {
        let _ = writeln!(
            out,
            "Latency under load: CPU {} chases {}, CPUs {} read\n\n{:>10} {:>12} {:>10} {:>10}",
            loaded.cpu,
            show_bytes(loaded.size_bytes),
            loaded.load_cpus,
            "pause",
            "they read",
            "best",
            "median"
        );
        for p in &loaded.points {
            let pause = p.delay_ns.map_or("no load".to_string(), show_ns);
            let _ =
                writeln!(out, "{pause:>10} {:>12} {:>10} {:>10}", rate(p.bytes_per_s), ns(p.best_ns), ns(p.median_ns));
        }
        let _ = writeln!(out);
    }
    if !sample.bandwidth.is_empty() {
        let _ = writeln!(
            out,
            "Bandwidth, best of passes (bytes counted as STREAM does)\n\n{:<8} {:<7} {:<5} {:>5} {:>12} {:>12} {:>7}  stores",
            "kernel", "simd", "pages", "CPUs", "best", "median", "spread"
        );
    }
    for b in &sample.bandwidth {
        let _ = writeln!(
            out,
            "{:<8} {:<7} {:<5} {:>5} {:>12} {:>12} {:>6.1}%  {}",
            b.traffic.word(),
            b.simd,
            b.pages.word(),
            b.cpus.len(),
            rate(b.best_bytes_per_s),
            rate(b.median_bytes_per_s),
            b.cv_ratio * 100.0,
            b.traffic.stores()
        );
    }
    matrix(out, sample);
    for line in &sample.not_done {
        let _ = writeln!(out, "not measured: {line}");
    }
    let _ = writeln!(out, "\nThreads pinned, SCHED_OTHER; nothing on this machine was changed.");
}

fn latency(out: &mut String, curve: &LatencyCurve) {
    let huge = match curve.huge_ratio {
        Some(ratio) => format!("{:.0} % in huge pages", ratio * 100.0),
        None => "page size unverified".into(),
    };
    let order = curve.locality_bytes.map_or("random over all".to_string(), |l| format!("random in {}", show_bytes(l)));
    let node = curve.node.map_or(String::new(), |n| format!(", memory of node {n}"));
    let _ = writeln!(
        out,
        "Latency per load in {} pages: CPU {}{node}, stride {}, {order}, {huge}\n\n{:>10} {:>10} {:>10} {:>7}",
        curve.pages.word(),
        curve.cpu,
        show_bytes(curve.stride_bytes),
        "size",
        "best",
        "median",
        "spread"
    );
    for p in &curve.points {
        let size = show_bytes(p.size_bytes);
        let _ = writeln!(out, "{size:>10} {:>10} {:>10} {:>6.1}%", ns(p.best_ns), ns(p.median_ns), p.cv_ratio * 100.0);
    }
    let levels: Vec<String> =
        curve.plateaus.iter().map(|p| format!("{} up to {}", ns(p.latency_ns), show_bytes(p.to_bytes))).collect();
    if !levels.is_empty() {
        let end = if curve.is_settled { "the last is memory" } else { "the curve still rises at its end" };
        let _ = writeln!(out, "\nLevels found: {}; {end}.", levels.join(", "));
    }
    let _ = writeln!(out);
}

fn matrix(out: &mut String, sample: &MemorySample) {
    if sample.matrix.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nNodes, measured{}\n\n{:>9} {:>9} {:>10} {:>12} {:>12}  pages there",
        sample.matrix_bytes.map_or(String::new(), |bytes| format!(" with a working set of {}", show_bytes(bytes))),
        "CPUs of",
        "memory of",
        "latency",
        "one CPU",
        "all CPUs"
    );
    let or = |value: Option<f64>, show: &dyn Fn(f64) -> String| value.map_or("-".to_string(), show);
    for c in &sample.matrix {
        let there = c.on_node_ratio.map_or("not known".to_string(), |r| format!("{:.0} %", r * 100.0));
        let _ = writeln!(
            out,
            "{:>9} {:>9} {:>10} {:>12} {:>12}  {there}",
            c.cpu_node,
            c.memory_node,
            or(c.latency_ns, &ns),
            or(c.one_cpu_bytes_per_s, &rate),
            or(c.all_cpus_bytes_per_s, &rate)
        );
    }
    let _ = match &sample.placement {
        Some(placement) => writeln!(out, "\nRandom placement, measured: {}.", placement.in_words()),
        None if sample.matrix.iter().all(|cell| cell.memory_node == sample.matrix[0].memory_node) => {
            writeln!(out, "\nOne memory node: every access is local, placement costs nothing.")
        }
        None => {
            writeln!(out, "\nRandom placement: no price, because the matrix has gaps or may be of a cache; see below.")
        }
    };
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
