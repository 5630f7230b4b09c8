//! Memory in words: curves, latency under load, bandwidth, nodes.

use std::fmt::Write as _;
use wakewatt_core::samples::memory::{LatencyCurve, MemorySample};
use wakewatt_core::units::{show_bytes, show_ns, three_digits};

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
