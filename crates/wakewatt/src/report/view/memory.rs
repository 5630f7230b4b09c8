//! Memory: latency against working set, under load, bandwidth, and both between nodes.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::bars::{Bar, Bars};
use super::super::charts::grid::Grid;
use super::super::charts::legend::Style;
use super::super::charts::plot::{Level, Plot, Point};
use super::super::data::{Cell, Data, Show};
use super::section::{Section, table_if_any};
use wakewatt_core::samples::memory::{LatencyCurve, MatrixCell, MemorySample, PageWish, Traffic};
use wakewatt_words::{say, word};

/// The section; none if nothing was measured.
pub(super) fn section(sample: &MemorySample) -> Option<Section> {
    let mut out = Section::new(word!("Memory"));
    staircase(sample, &mut out);
    loaded(sample, &mut out);
    bandwidth(sample, &mut out);
    matrix(sample, &mut out);
    if let Some(placement) = &sample.placement {
        out.lines.push(say!("random placement: {}", placement.in_words()));
        out.intro.push(say!("Random placement on this machine: {}.", placement.in_words()));
    }
    if !sample.matrix.is_empty() && sample.placement.is_none() {
        out.remarks.push(no_price(sample).into());
    }
    out.remarks.extend(sample.not_done.iter().map(|why| say!("not measured: {why}")));
    (!out.is_empty() || !sample.not_done.is_empty()).then_some(out)
}

/// Why there is no price of random placement.
fn no_price(sample: &MemorySample) -> &'static str {
    let mut nodes = sample.matrix.iter().map(|cell| cell.memory_node);
    let first = nodes.next();
    match nodes.all(|node| Some(node) == first) {
        true => word!("One memory node: every access is local, placement costs nothing."),
        false => word!("Random placement: no price, because the matrix has gaps or may be of a cache."),
    }
}

/// How a curve was had: where, how far apart, in what order, in which pages.
fn conditions(curve: &LatencyCurve) -> String {
    let order = curve
        .locality_bytes
        .map_or(word!("random over all").to_string(), |bytes| say!("random in {}", Show::Bytes.text(bytes as f64)));
    let huge = curve
        .huge_ratio
        .map_or(word!("page size unverified").to_string(), |ratio| say!("{} in huge pages", Show::Ratio.text(ratio)));
    let stride = Show::Bytes.text(curve.stride_bytes as f64);
    say!("{}: CPU {}, stride {stride}, {order}, {huge}.", curve_name(curve), curve.cpu)
}

fn curve_name(curve: &LatencyCurve) -> String {
    let node = curve.node.map_or(String::new(), |n| say!(", node {n}"));
    match curve.huge_ratio {
        Some(ratio) if curve.pages == PageWish::Huge && ratio < 0.99 => {
            say!("huge pages ({} of it){node}", Show::Ratio.text(ratio))
        }
        _ => say!("{} pages{node}", curve.pages.word()),
    }
}

fn staircase(sample: &MemorySample, out: &mut Section) {
    let mut plot = Plot::new(
        word!("Latency of one load against the size of what is read"),
        AxisSpec::new(word!("working set"), Show::Bytes, Scale::Binary),
        AxisSpec::new(word!("latency of a load"), Show::Ns, Scale::Log),
    );
    let mut levels = Data::with(&[
        (word!("pages"), Show::Text),
        (word!("from"), Show::Bytes),
        (word!("to (the knee)"), Show::Bytes),
        (word!("latency"), Show::Ns),
    ]);
    for (i, curve) in sample.latency.iter().enumerate() {
        out.intro.push(conditions(curve));
        let before = plot.series.len();
        let point = |p: &wakewatt_core::samples::memory::LatencyPoint| Point {
            x: p.size_bytes as f64,
            y: p.best_ns,
            ..Point::default()
        };
        plot.add(curve_name(curve), Style::Arm(i), curve.points.iter().map(point));
        for level in curve.plateaus.iter().filter(|_| plot.series.len() > before) {
            let x = (level.from_bytes as f64, level.to_bytes as f64);
            plot.levels.push(Level { series: before, x, y: level.latency_ns });
            levels.rows.push(vec![curve_name(curve).into(), x.0.into(), x.1.into(), level.latency_ns.into()]);
        }
        if let Some(ns) = curve.memory_ns() {
            let at_least = if curve.is_settled { "" } else { word!("at least ") };
            out.lines.push(say!("latency, {} pages: {at_least}{}", curve.pages.word(), Show::Ns.text(ns)));
        }
    }
    let unsettled = sample.latency.iter().any(|c| !c.is_settled && !c.points.is_empty());
    let end =
        if unsettled { word!(" A curve that still rises at its end gives a lower bound for memory.") } else { "" };
    out.draw_only(
        "memory-latency",
        word!("Memory latency against working set"),
        say!(
            "Best sample of dependent loads, one line of each element; the numbers are the levels found in the curve. Base pages pay for address translation, huge pages show the hardware.{end}"
        ),
        &plot,
    );
    out.tables.extend(table_if_any(&levels, word!("Levels of the hierarchy, found in the curve: measured")));
}

fn loaded(sample: &MemorySample, out: &mut Section) {
    let Some(curve) = &sample.loaded else { return };
    let mut plot = Plot::new(
        word!("Latency of a load while other CPUs read"),
        AxisSpec::new(word!("what the readers got together"), Show::BytesPerS, Scale::Zero),
        AxisSpec::new(word!("latency of a load"), Show::Ns, Scale::Zero),
    );
    let points = |value: fn(&wakewatt_core::samples::memory::LoadedPoint) -> f64| {
        curve.points.iter().map(move |p| Point { x: p.bytes_per_s, y: value(p), ..Point::default() })
    };
    plot.add(word!("best sample"), Style::Arm(0), points(|p| p.best_ns));
    plot.add(word!("median sample"), Style::Arm(1), points(|p| p.median_ns));
    out.draw(
        "memory-loaded",
        word!("Memory latency under load"),
        say!(
            "CPU {} chases through {} while CPUs {} read with ever shorter pauses.",
            curve.cpu,
            Show::Bytes.text(curve.size_bytes as f64),
            curve.load_cpus
        ),
        &plot,
    );
    let mut table = Data::with(&[
        (word!("pause of the readers"), Show::Text),
        (word!("they read"), Show::BytesPerS),
        (word!("best"), Show::Ns),
        (word!("median"), Show::Ns),
    ]);
    for p in &curve.points {
        let pause = p.delay_ns.map_or(word!("no load").to_string(), |ns| Show::Ns.text(ns as f64));
        let mut row: Vec<Cell> = vec![pause.into()];
        row.extend([p.bytes_per_s, p.best_ns, p.median_ns].map(Into::into));
        table.rows.push(row);
    }
    out.folded.extend(table_if_any(&table, word!("Latency under load: measured")));
}

fn bandwidth(sample: &MemorySample, out: &mut Section) {
    let mut bars = Bars::new(
        word!("Bandwidth by kind of traffic"),
        word!("traffic and stores"),
        word!("best pass"),
        Show::BytesPerS,
    );
    bars.series = [PageWish::Huge, PageWish::Base].map(|p| say!("{} pages", p.word())).to_vec();
    let mut sizes: Vec<u64> = sample.bandwidth.iter().map(|b| b.cpus.iter().count() as u64).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for traffic in Traffic::ALL {
        for n_cpus in &sizes {
            let same = |b: &&wakewatt_core::samples::memory::Bandwidth| {
                b.traffic == traffic && b.cpus.iter().count() as u64 == *n_cpus
            };
            let best = |pages: PageWish| {
                sample
                    .bandwidth
                    .iter()
                    .filter(same)
                    .filter(|b| b.pages == pages)
                    .map(|b| b.best_bytes_per_s)
                    .reduce(f64::max)
            };
            let found = [PageWish::Huge, PageWish::Base].into_iter().enumerate();
            let found = found.filter_map(|(series, p)| Some(Bar { series, value: best(p)?, invalid_because: None }));
            let cpus = if *n_cpus == 1 { word!("1 CPU").to_string() } else { say!("{n_cpus} CPUs") };
            bars.add(format!("{}, {cpus}", traffic.word()), found);
        }
    }
    let most = sample.bandwidth.iter().map(|b| b.best_bytes_per_s).reduce(f64::max);
    out.lines.extend(most.map(|b| say!("bandwidth: {} at best", Show::BytesPerS.text(b))));
    out.draw(
        "memory-bandwidth",
        word!("Memory bandwidth"),
        word!("Best pass. copy and triad store normally, so every stored line is read first (that read is not counted); copy-nt stores past the caches and is not read first."),
        &bars,
    );
    let mut table = Data::with(&[
        (word!("traffic"), Show::Text),
        (word!("stores"), Show::Text),
        (word!("pages"), Show::Text),
        (word!("registers"), Show::Text),
        (word!("CPUs"), Show::Text),
        (word!("node"), Show::Text),
        (word!("best"), Show::BytesPerS),
        (word!("median"), Show::BytesPerS),
        (word!("spread (CV)"), Show::Ratio),
        (word!("passes"), Show::Count),
    ]);
    for b in &sample.bandwidth {
        let node = b.node.map_or(word!("first touch").to_string(), |n| n.to_string());
        let mut row: Vec<_> = [b.traffic.word(), b.traffic.stores(), b.pages.word(), b.simd.as_str()]
            .into_iter()
            .map(Into::into)
            .collect();
        row.extend([b.cpus.to_string().into(), node.into()]);
        row.extend([b.best_bytes_per_s, b.median_bytes_per_s, b.cv_ratio, b.n_passes as f64].map(Into::into));
        table.rows.push(row);
    }
    out.folded.extend(table_if_any(&table, word!("Every bandwidth: measured")));
}

fn matrix(sample: &MemorySample, out: &mut Section) {
    let mut nodes: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
    nodes[0].extend(sample.matrix.iter().map(|c| c.cpu_node));
    nodes[1].extend(sample.matrix.iter().map(|c| c.memory_node));
    for list in &mut nodes {
        list.sort_unstable();
        list.dedup();
    }
    if nodes[1].len() < 2 {
        return;
    }
    let [from, to] = &nodes;
    let grid = |title: &str, show: Show, value: fn(&MatrixCell) -> Option<f64>| Grid {
        title: title.into(),
        of: (word!("CPUs of node").into(), word!("memory of node").into()),
        show,
        columns: to.iter().map(|n| say!("node {n}")).collect(),
        rows: from
            .iter()
            .map(|f| {
                let find = |t: &u32| sample.matrix.iter().find(|c| c.cpu_node == *f && c.memory_node == *t);
                (say!("node {f}"), to.iter().map(|t| find(t).and_then(value)).collect())
            })
            .collect(),
    };
    out.draw_only(
        "memory-node-latency",
        word!("Latency between nodes"),
        word!("Best latency of a chase in huge pages bound to the node."),
        &grid(word!("Latency from each node's CPUs to each node's memory"), Show::Ns, |c| c.latency_ns),
    );
    out.draw_only(
        "memory-node-bandwidth",
        word!("Bandwidth between nodes"),
        word!("Load bandwidth of all the node's CPUs."),
        &grid(word!("Bandwidth from each node's CPUs to each node's memory"), Show::BytesPerS, |c| {
            c.all_cpus_bytes_per_s
        }),
    );
    out.draw_only(
        "memory-node-one-cpu",
        word!("Bandwidth between nodes, one CPU"),
        word!("Load bandwidth of one CPU of the node."),
        &grid(word!("Bandwidth of one CPU to each node's memory"), Show::BytesPerS, |c| c.one_cpu_bytes_per_s),
    );
}
