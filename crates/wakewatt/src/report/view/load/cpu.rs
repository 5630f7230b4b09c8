//! What the CPUs did: time for each request, load average against utilisation, and every CPU at the lightest load.

use super::super::super::charts::axis::{AxisSpec, Scale};
use super::super::super::charts::columns::{Column, Columns};
use super::super::super::charts::legend::Style;
use super::super::super::charts::plot::{Plot, Point};
use super::super::super::data::Show;
use super::super::section::Section;
use super::rate::plot;
use super::{Runs, ask, why};
use wakewatt_core::samples::load::{Ask, CpuBy, Level};
use wakewatt_words::{say, word};

pub(super) fn draw(runs: &Runs<'_>, out: &mut Section) {
    let y = || AxisSpec::new(word!("time for one operation"), Show::Ns, Scale::Zero);
    let cpu = plot(runs, word!("CPU time of one operation"), y(), |l| {
        let interval = l.cpu_per_op.map(|r| (r.low_ns, r.high_ns));
        Some((l.cpu_ns_per_op()?, interval))
    });
    let by = runs.all.iter().flat_map(|r| &r.run.levels).find_map(|l| l.cpu_by);
    let by = by.map_or(word!("busy time of all measured CPUs"), CpuBy::words);
    let caption = &say!(
        "CPU time over operations done, with 95 % intervals from ten parts of the window where it is long enough, which cover that window. CPU time is {by}. The same work at a lower clock or with more wake-ups costs more."
    );
    out.draw(format!("{}-cpu", runs.id), word!("CPU time per operation"), caption, &cpu);
    let system = plot(runs, word!("Kernel time of one operation"), y(), |l| Some((l.system_ns_per_op()?, None)));
    let caption = word!("The part of it in the kernel: system calls, interrupts, the scheduler.");
    out.draw(format!("{}-system", runs.id), word!("Kernel time per operation"), caption, &system);
    load_average(runs, out);
    lightest(runs, out);
}

fn load_average(runs: &Runs<'_>, out: &mut Section) {
    let mut chart = Plot::new(
        word!("Load average against utilisation"),
        AxisSpec::new(word!("mean utilisation of the CPUs"), Show::Ratio, Scale::Zero),
        AxisSpec::new(word!("one-minute load average"), Show::Number, Scale::Zero),
    );
    chart.is_cloud = true;
    for r in &runs.all {
        let point =
            |l: &Level| Some(Point { x: l.busy_ratio()?, y: l.load_average?, interval: None, invalid_because: why(l) });
        chart.add(r.name.clone(), Style::Arm(r.index), r.run.levels.iter().filter_map(point));
    }
    let n_cpus = runs.all.iter().flat_map(|r| &r.run.levels).map(|l| l.cpus.len()).max().unwrap_or(0);
    let most = chart.series.iter().flat_map(|s| &s.points).map(|p| p.x).fold(0.0, f64::max);
    if n_cpus > 0 && most > 0.0 {
        let ends = [0.0, most].map(|x| Point { x, y: x * n_cpus as f64, ..Point::default() });
        chart.add(word!("nobody waits"), Style::Ideal, ends);
    }
    let caption = word!(
        "One mark for each level. Dashed: as many runnable tasks as busy CPUs. A load average far above it, with idle CPUs, says that tasks wait for CPUs that sleep or for a disk."
    );
    out.draw(format!("{}-average", runs.id), word!("Load average and utilisation"), caption, &chart);
}

/// At the lightest load: whether the work is spread over all CPUs or gathered on a few.
fn lightest(runs: &Runs<'_>, out: &mut Section) {
    let key = |a: &Ask| match a {
        Ask::Share(share) => *share,
        Ask::Clients(n) => f64::from(*n),
        Ask::Rate(rate) => *rate,
        Ask::Idle | Ask::Run => f64::INFINITY,
    };
    let with_cpus = || runs.all.iter().flat_map(|r| &r.run.levels).filter(|l| !l.cpus.is_empty());
    let Some(level) = with_cpus().min_by(|a, b| key(&a.ask).total_cmp(&key(&b.ask))) else { return };
    let mut chart = Columns { title: say!("Every CPU at {}", ask(level, 0)), panels: Vec::new() };
    for r in &runs.all {
        let found = r.run.levels.iter().find(|l| l.ask == level.ask);
        let column = |c: &wakewatt_core::samples::load::CpuUse| Column {
            cpu: c.cpu,
            busy_ratio: c.busy_ratio(),
            system_ratio: c.system_ratio,
        };
        chart.add(r.name.clone(), r.index, found.into_iter().flat_map(|l| &l.cpus).map(column));
    }
    let title = chart.title.clone();
    let caption = word!(
        "How busy each CPU was. Solid foot: time in the kernel. Work gathered on a few CPUs lets the others sleep deeply."
    );
    out.draw(format!("{}-cpus", runs.id), &title, caption, &chart);
}
