//! Samples as tables: one per kind, a row per sample, units in the column names, an empty field where there is no number.
//!
//! Every latency gets the same columns (count, mean, quantiles with the interval of the median). The buckets of all
//! distributions are one long table of their own, so that they can be drawn elsewhere.

use wakewatt_core::distribution::Distribution;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Window;
use wakewatt_core::samples::experiment::{ExperimentRun, Unit};
use wakewatt_core::visible;

/// A table as text; a missing value is an empty field.
pub(super) struct Table {
    /// The file's name without its ending.
    pub(super) name: &'static str,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(name: &'static str, columns: &[&str]) -> Table {
        Table { name, columns: columns.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// Fields are quoted where they must be (RFC 4180), and never a formula to a spreadsheet; numbers stay numbers.
    pub(super) fn to_csv(&self) -> String {
        let field = |text: &String| {
            let is_formula = text.trim_start().starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err();
            let text = visible::line(text);
            if is_formula || text.contains(['"', ',']) {
                format!("\"{}{}\"", if is_formula { "'" } else { "" }, text.replace('"', "\"\""))
            } else {
                text.into_owned()
            }
        };
        let line = |fields: &[String]| fields.iter().map(field).collect::<Vec<_>>().join(",") + "\n";
        line(&self.columns) + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }
}

/// A value or nothing.
fn or<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}

const LATENCY: &[&str] =
    &["n", "mean_ns", "min_ns", "p50_ns", "p50_low_ns", "p50_high_ns", "p90_ns", "p99_ns", "p99.9_ns", "max_ns"];
const WINDOW: &[&str] = &["start_at_ns", "end_at_ns"];

fn latency(d: &Distribution) -> Vec<String> {
    let at = |q| or(d.quantile(q).map(|v| v.value_ns));
    let has = |value: u64| if d.n > 0 { value.to_string() } else { String::new() };
    let mean = if d.n > 0 { format!("{:.1}", d.mean_ns) } else { String::new() };
    let (low, high) = (or(d.quantile(0.5).map(|v| v.low_ns)), or(d.quantile(0.5).map(|v| v.high_ns)));
    vec![d.n.to_string(), mean, has(d.min_ns), at(0.5), low, high, at(0.9), at(0.99), at(0.999), has(d.max_ns)]
}

fn window(w: &Window) -> Vec<String> {
    vec![w.start_at_ns.to_string(), w.end_at_ns.to_string()]
}

/// Every table that has a row.
pub(super) fn of(evidence: &Evidence) -> Vec<Table> {
    let mut all = vec![wakeups(evidence), network(evidence), disk(evidence)];
    all.extend(memory(evidence));
    all.extend([cores(evidence), speed(evidence), idle_states(evidence), load(evidence), power(evidence)]);
    for (name, run) in
        [("experiment", &evidence.samples.experiment), ("disk_experiment", &evidence.samples.disk_experiment)]
    {
        all.extend(run.iter().map(|run| blocks(name, run)));
    }
    all.push(buckets(evidence));
    all.retain(|table| !table.rows.is_empty());
    all
}

fn wakeups(evidence: &Evidence) -> Table {
    let mut table = Table::new("wakeups", &[&["kind", "cpu", "from_cpu", "gap_ns"], LATENCY, WINDOW].concat());
    for s in &evidence.samples.wakeups {
        let head = vec![s.kind.word().into(), s.cpu.to_string(), or(s.from_cpu), s.gap_ns.to_string()];
        table.rows.push([head, latency(&s.latency), window(&s.window)].concat());
    }
    table
}

fn network(evidence: &Evidence) -> Table {
    let head = ["transport", "peer", "part", "gap_ns", "n_sent", "n_lost"];
    let mut table = Table::new("network", &[&head, LATENCY, WINDOW].concat());
    for s in &evidence.samples.network {
        let mut row = |part: &str, d: &Distribution| {
            let sizes = [s.gap_ns.to_string(), s.n_sent.to_string(), s.n_lost.to_string()];
            let head = vec![s.transport.word().to_string(), s.peer.clone(), part.to_string()];
            table.rows.push([head, sizes.to_vec(), latency(d), window(&s.window)].concat());
        };
        row("round trip", &s.round_trip);
        if let Ok(split) = &s.split {
            row("requester", &split.requester);
            row("responder", &split.responder);
            row("wire", &split.wire);
        }
    }
    for s in &evidence.samples.icmp {
        let head = vec!["icmp".into(), s.peer.clone(), "round trip".into()];
        let sizes = vec![s.gap_ns.to_string(), s.n_sent.to_string(), s.n_lost.to_string()];
        table.rows.push([head, sizes, latency(&s.round_trip), window(&s.window)].concat());
    }
    table
}

fn disk(evidence: &Evidence) -> Table {
    let head =
        ["engine", "access", "block_bytes", "depth", "planned_per_s", "count_from", "reads_per_s", "cpu_ns_per_read"];
    let mut table = Table::new("disk", &[&head, LATENCY, WINDOW].concat());
    for s in &evidence.samples.disk {
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

fn memory(evidence: &Evidence) -> [Table; 3] {
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
    if let Some(sample) = &evidence.samples.memory {
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

fn cores(evidence: &Evidence) -> Table {
    let columns = ["from_cpu", "to_cpu", "nearness", "best_ns", "median_ns", "low_ns", "high_ns", "n_batches"];
    let mut table = Table::new("cores", &columns);
    for p in evidence.samples.cores.iter().flat_map(|c| &c.pairs) {
        let head = vec![p.from_cpu.to_string(), p.to_cpu.to_string(), p.nearness.words().into()];
        let times = [p.best_ns, p.median_ns, p.low_ns, p.high_ns].map(|v| v.to_string());
        table.rows.push([head, times.to_vec(), vec![p.n_batches.to_string()]].concat());
    }
    table
}

fn speed(evidence: &Evidence) -> Table {
    let columns =
        ["cpu", "idle_ns", "n_repeats", "n_ramped", "exit_median_ns", "ramp_median_ns", "slowest_ratio", "quantum_ns"];
    let mut table = Table::new("speed", &columns);
    for s in &evidence.samples.speed {
        table.rows.extend(s.after.iter().map(|a| {
            let head = vec![s.cpu.to_string(), a.idle_ns.to_string(), a.n_repeats.to_string(), a.n_ramped.to_string()];
            let ramp = or(a.ramp.map(|r| r.median_ns));
            [head, vec![a.exit.median_ns.to_string(), ramp, or(a.slowest_ratio), s.quantum_ns.to_string()]].concat()
        }));
    }
    table
}

fn idle_states(evidence: &Evidence) -> Table {
    let head =
        ["cpu", "state", "kind", "claimed_exit_ns", "claimed_residency_ns", "extra_median_ns", "not_entered_because"];
    let mut table = Table::new("idle_states", &[&head, LATENCY].concat());
    for costs in &evidence.samples.idle_states {
        for s in &costs.states {
            for wake in &s.wakes {
                let head = vec![costs.cpu.to_string(), s.name.clone(), wake.kind.word().into()];
                let claims = vec![or(s.claimed_exit_ns), or(s.claimed_residency_ns)];
                let extra = vec![or(wake.extra.map(|e| e.median_ns)), or(s.not_entered.clone())];
                table.rows.push([head, claims, extra, latency(&wake.latency)].concat());
            }
        }
    }
    table
}

fn load(evidence: &Evidence) -> Table {
    let head = [
        "run",
        "title",
        "ask",
        "target_per_s",
        "per_s",
        "figure",
        "n_planned",
        "n_done",
        "n_failed",
        "cpu_ns",
        "system_ns",
        "mean_uw",
        "half_width_uw",
    ];
    let tail = ["invalid_because"];
    let mut table = Table::new("load", &[&head, LATENCY, WINDOW, &tail].concat());
    for (at, run) in evidence.samples.load.iter().enumerate() {
        for level in &run.levels {
            let ask = format!("{:?}", level.ask);
            let rates = [or(level.target_per_s), level.per_s.to_string(), or(level.figure.map(|f| f.value))];
            let head = [vec![at.to_string(), run.title.clone(), ask], rates.to_vec()].concat();
            let n =
                [level.n_planned, level.n_done, level.n_failed, level.cpu_ns, level.system_ns].map(|v| v.to_string());
            let latency = level.latency.as_ref().map_or(vec![String::new(); LATENCY.len()], latency);
            let tail = vec![level.broken_rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")];
            let watts = vec![or(level.mean_uw()), or(level.half_width_uw().and_then(Result::ok))];
            table.rows.push([head, n.to_vec(), watts, latency, window(&level.window), tail].concat());
        }
    }
    table
}

fn power(evidence: &Evidence) -> Table {
    let head = ["meter", "is_chosen", "covers", "mean_uw", "energy_uj", "why_not"];
    let mut table = Table::new("power", &[&head, WINDOW].concat());
    for sample in &evidence.samples.energy {
        table.rows.extend(sample.meters.iter().map(|m| {
            let is_chosen = sample.chosen.as_ref() == Some(&m.meter);
            let total = m.total.as_ref();
            let covers = total.map_or(String::new(), |t| t.covers.clone());
            let numbers = vec![or(total.map(|t| t.mean_uw)), or(total.and_then(|t| t.energy_uj)), or(m.why.as_ref())];
            [vec![m.meter.clone(), is_chosen.to_string(), covers], numbers, window(&sample.window)].concat()
        }));
    }
    table
}

fn blocks(name: &'static str, run: &ExperimentRun) -> Table {
    let unit = |unit| match unit {
        Unit::Nanoseconds => "_ns",
        Unit::PerSecond => "_per_s",
        Unit::Microwatts => "_uw",
        Unit::PerJoule => "_per_j",
        Unit::Number => "",
    };
    let head = ["round", "arm", "rejected_because"];
    let mut table = Table::new(name, &[&head, WINDOW].concat());
    table.columns.extend(run.metrics.iter().map(|m| format!("{}{}", m.id, unit(m.unit))));
    for block in &run.blocks {
        let head = vec![block.round.to_string(), block.arm.clone(), or(block.rejected.as_ref())];
        let values = (0..run.metrics.len()).map(|at| or(block.values.get(at).copied().flatten()));
        table.rows.push([head, window(&block.window), values.collect()].concat());
    }
    table
}

fn buckets(evidence: &Evidence) -> Table {
    let mut table = Table::new("distributions", &["table", "row", "upto_ns", "n"]);
    let mut add = |name: &str, row: usize, d: &Distribution| {
        let line = |b: &wakewatt_core::distribution::Bucket| {
            vec![name.to_string(), row.to_string(), b.upto_ns.to_string(), b.n.to_string()]
        };
        table.rows.extend(d.buckets.iter().map(line));
    };
    evidence.samples.wakeups.iter().enumerate().for_each(|(at, s)| add("wakeups", at, &s.latency));
    evidence.samples.network.iter().enumerate().for_each(|(at, s)| add("network round trip", at, &s.round_trip));
    evidence.samples.icmp.iter().enumerate().for_each(|(at, s)| add("icmp round trip", at, &s.round_trip));
    evidence.samples.disk.iter().enumerate().for_each(|(at, s)| add("disk", at, &s.latency));
    let levels = evidence.samples.load.iter().flat_map(|run| &run.levels);
    levels.enumerate().for_each(|(at, level)| level.latency.iter().for_each(|d| add("load", at, d)));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn every_row_has_every_column() {
        for (name, report) in sample::all() {
            for table in of(&report.evidence) {
                assert!(table.rows.iter().all(|r| r.len() == table.columns.len()), "{name}: {}", table.name);
                assert_eq!(table.to_csv().lines().count(), table.rows.len() + 1, "{name}: {}", table.name);
            }
        }
        let tables = of(&sample::two_arms().evidence);
        let names: Vec<&str> = tables.iter().map(|t| t.name).collect();
        assert!(names.starts_with(&["wakeups"]) && names.contains(&"experiment"), "{names:?}");
    }

    #[test]
    fn what_would_break_a_row_is_quoted() {
        let mut table = Table::new("x", &["a", "b_ns"]);
        table.rows.push(vec!["say \"no\", twice".into(), String::new()]);
        assert_eq!(table.to_csv(), "a,b_ns\n\"say \"\"no\"\", twice\",\n");
    }

    #[test]
    fn foreign_text_is_no_formula_and_numbers_stay_numbers() {
        let mut table = Table::new("x", &["a"]);
        for text in
            ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1", "\r=1", "-5.25", "+1e3", "-inf", "\u{202e}=1"]
        {
            table.rows.push(vec![text.into()]);
        }
        let expected = "a\n\"'=1+1\"\n\"'+cmd|' /C calc'!A0\"\n\"'-x\"\n\"'@SUM(A1)\"\n\"'\\t=1\"\n\"'\\r=1\"\n\
            -5.25\n+1e3\n-inf\n\\u{202e}=1\n";
        assert_eq!(table.to_csv(), expected);
    }
}
