//! Memory, cache lines handed between CPUs, and disk reads.

use super::{LATENCY, Table, WINDOW, latency, or, window};
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::cores::CoresSample;
use wakewatt_core::samples::disk::DiskSample;
use wakewatt_core::samples::memory::MemorySample;

pub(super) fn disk(samples: &[DiskSample]) -> Table {
    let head =
        ["engine", "access", "block_bytes", "depth", "planned_per_s", "count_from", "reads_per_s", "cpu_ns_per_read"];
    let mut table = Table::new("disk", &[&head, LATENCY, WINDOW].concat());
    for s in samples {
        let mut row = |from: &str, d: &Distribution| {
            let what = vec![s.engine.word().to_string(), s.access.word().to_string(), s.block_bytes.to_string()];
            let how = vec![s.depth.to_string(), or(s.planned_per_s), from.to_string()];
            let rate = vec![s.reads_per_s.to_string(), s.cpu_ns_per_read.to_string()];
            table.rows.push([what, how, rate, latency(d), window(&s.window)].concat());
        };
        row(if s.planned_per_s.is_some() { "plan" } else { "submission" }, &s.latency);
        s.service.iter().for_each(|d| row("submission", d));
    }
    table
}

pub(super) fn memory(sample: Option<&MemorySample>) -> [Table; 3] {
    let columns = ["pages", "cpu", "node", "stride_bytes", "size_bytes", "best_ns", "median_ns", "cv_ratio", "n_loads"];
    let mut curves = Table::new("memory_latency", &columns);
    let columns = [
        "traffic",
        "pages",
        "simd",
        "cpus",
        "node",
        "array_bytes",
        "best_bytes_per_s",
        "median_bytes_per_s",
        "cv_ratio",
    ];
    let mut bandwidth = Table::new("memory_bandwidth", &columns);
    let columns = ["cpu_node", "memory_node", "latency_ns", "one_cpu_bytes_per_s", "all_cpus_bytes_per_s"];
    let mut matrix = Table::new("memory_matrix", &columns);
    if let Some(sample) = sample {
        for c in &sample.latency {
            curves.rows.extend(c.points.iter().map(|p| {
                let head = vec![c.pages.word().into(), c.cpu.to_string(), or(c.node), c.stride_bytes.to_string()];
                let size = [p.size_bytes.to_string(), p.best_ns.to_string(), p.median_ns.to_string()];
                [head, size.to_vec(), vec![p.cv_ratio.to_string(), p.n_loads.to_string()]].concat()
            }));
        }
        bandwidth.rows.extend(sample.bandwidth.iter().map(|b| {
            let head = vec![b.traffic.word().into(), b.pages.word().into(), b.simd.clone(), b.cpus.to_string()];
            let size = vec![or(b.node), b.array_bytes.to_string()];
            let rate = [b.best_bytes_per_s, b.median_bytes_per_s, b.cv_ratio].map(|v| v.to_string());
            [head, size, rate.to_vec()].concat()
        }));
        matrix.rows.extend(sample.matrix.iter().map(|c| {
            let nodes = vec![c.cpu_node.to_string(), c.memory_node.to_string()];
            [nodes, vec![or(c.latency_ns), or(c.one_cpu_bytes_per_s), or(c.all_cpus_bytes_per_s)]].concat()
        }));
    }
    [curves, bandwidth, matrix]
}

pub(super) fn cores(samples: &[CoresSample]) -> Table {
    let columns = ["from_cpu", "to_cpu", "nearness", "best_ns", "median_ns", "low_ns", "high_ns", "n_batches"];
    let mut table = Table::new("cores", &columns);
    for p in samples.iter().flat_map(|c| &c.pairs) {
        let head = vec![p.from_cpu.to_string(), p.to_cpu.to_string(), p.nearness.words().into()];
        let times = [p.best_ns, p.median_ns, p.low_ns, p.high_ns].map(|v| v.to_string());
        table.rows.push([head, times.to_vec(), vec![p.n_batches.to_string()]].concat());
    }
    table
}
