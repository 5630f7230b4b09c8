//! The sections of a replay: recorded beside predicted by state, what wake-ups pay, every latency limit, an objective, an upgrade.
//!
//! The recorded side was measured, the other is a model's; what a wake-up pays and energy are modelled on both. So every figure is labelled
//! modelled, and its caption says which part is not.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::bars::{Bar, Bars};
use super::super::charts::legend::Style;
use super::super::charts::plot::{Plot, Point};
use super::super::data::Show;
use super::super::table::{Table, heads};
use super::super::trace::clean;
use super::super::words;
use super::section::{Section, figure};
use wakewatt_core::samples::replayed::{PolicyTold, Replayed, Side, StateTold};
use wakewatt_core::units::{LatencyLimit, exact_ns, show_ns};
use wakewatt_models::replay::Upgrade;
use wakewatt_models::replay::slo::Slo;
use wakewatt_models::replay::sweep::{Point as Limit, Sweep};
use wakewatt_words::{say, word};

/// CPUs whose tables are shown; the others are in the table of `--csv`.
const MOST_CPUS: usize = 64;

/// Recorded beside predicted.
pub(in crate::report) fn section(r: &Replayed, prefix: &str) -> Section {
    let mut out = Section { is_result: true, ..Section::new(word!("Recorded beside predicted")) };
    out.intro.push(clean(&r.trust));
    out.intro.push(say!("Asked: {}.", setting(r)));
    out.intro.extend(
        r.policies.iter().map(|[was, asked]| clean(&say!("Recorded: {}. Predicted: {}.", policy(was), policy(asked)))),
    );
    sides(&mut out, prefix, [word!("recorded"), word!("predicted")], [&r.recorded, &r.predicted]);
    for cpu in r.cpus.iter().take(MOST_CPUS) {
        let alike = cpu
            .identical_ratio
            .map_or(word!("no decision compared").into(), |share| say!("{} of decisions alike", words::percent(share)));
        let caption = say!("CPU {} ({alike})", cpu.cpu);
        out.folded.push(states(&caption, [word!("recorded"), word!("predicted")], [&cpu.recorded, &cpu.predicted]));
    }
    out.remarks = r.remarks.iter().map(|line| clean(line)).collect();
    out.lines = out.intro.clone();
    out
}

/// What was asked, with room to break lines.
pub(in crate::report) fn setting(r: &Replayed) -> String {
    clean(&r.setting_words().replace(',', ", "))
}

/// Who decides.
fn policy(p: &PolicyTold) -> String {
    let limit = p.latency_limit_ns.map_or(word!("no latency limit").into(), |ns| say!("limit {}", exact_ns(ns)));
    say!("{}, kernel {} ({}, {}), {limit}, may choose {}", p.governor, p.kernel, p.model, p.basis, p.states.join(" "))
}

/// Figures and table of two sides.
fn sides(out: &mut Section, prefix: &str, names: [&str; 2], both: [&Side; 2]) {
    let bars = |title: &str, axis: &str, show: Show, value: fn(&StateTold) -> f64| {
        let mut bars = Bars::new(title, word!("idle state"), axis, show);
        bars.series = names.map(String::from).to_vec();
        for name in both[0].names(both[1]) {
            let of = |(series, side): (usize, &&Side)| {
                Some(Bar { series, value: value(side.state(name)?), invalid_because: None })
            };
            bars.add(clean(name), both.iter().enumerate().filter_map(of));
        }
        bars
    };
    let title = word!("Share of idle time");
    let caption = word!("Share of idle time by the state asked for; the hardware may have stayed shallower.");
    let time = bars(title, word!("share of idle time"), Show::Ratio, |s| s.time_ratio);
    out.figures.extend(figure(format!("{prefix}residency"), title, caption, "modelled", &time));
    let title = word!("Wake-ups by state");
    let caption =
        word!("Ended by something other than the tick or the limit of polling: each found the CPU in this state.");
    let wakes = bars(title, word!("wake-ups"), Show::Count, |s| s.n_wakes as f64);
    out.figures.extend(figure(format!("{prefix}wakes"), title, caption, "modelled", &wakes));
    let title = word!("What wake-ups pay");
    let caption = word!(
        "Share of wake-ups whose state costs at most this to leave. One step for each state; the cost is as measured, \
                   else half of what the driver claims."
    );
    let mut plot = Plot::new(
        title,
        AxisSpec::new(word!("added latency"), Show::Ns, Scale::Zero),
        AxisSpec::new(word!("share of wake-ups"), Show::Ratio, Scale::Zero),
    );
    for (index, (name, side)) in names.iter().zip(both).enumerate() {
        plot.add(*name, Style::Arm(index), steps(side));
    }
    out.figures.extend(figure(format!("{prefix}cost"), title, caption, "modelled", &plot));
    out.tables.push(states(word!("State by state: stays, time, wake-ups, too deep, too shallow"), names, both));
}

/// The distribution of what wake-ups pay, as a staircase.
fn steps(side: &Side) -> Vec<Point> {
    let whole: u64 = side.states.iter().map(|s| s.n_wakes).sum();
    let mut costs: Vec<(u64, u64)> =
        side.states.iter().filter(|s| s.n_wakes > 0).map(|s| (s.exit_ns, s.n_wakes)).collect();
    costs.sort_unstable();
    let mut below = 0;
    let mut points = Vec::new();
    for (ns, n) in costs {
        let share = |n: u64| n as f64 / whole.max(1) as f64;
        let at = |y: f64| Point { x: ns as f64, y, ..Point::default() };
        points.extend([at(share(below)), at(share(below + n))]);
        below += n;
    }
    points
}

fn states(caption: &str, names: [&str; 2], both: [&Side; 2]) -> Table {
    let columns = [word!("stays"), word!("time"), word!("wake-ups"), word!("too deep"), word!("too shallow")];
    let mut head = heads(&[word!("state"), word!("exit is"), word!("exit")]);
    head.extend(names.iter().flat_map(|name| columns.iter().map(move |column| format!("{name}: {column}"))));
    let cells = |state: Option<&StateTold>| match state {
        Some(s) => vec![
            words::count(s.n),
            words::percent(s.time_ratio),
            words::count(s.n_wakes),
            words::count(s.n_above),
            words::count(s.n_below),
        ],
        None => vec!["–".into(); columns.len()],
    };
    let row = |name: &str| {
        let (a, b) = (both[0].state(name), both[1].state(name));
        // Another table may have the name: then what is asked counts.
        let any = b.or(a);
        let basis = any.map_or(String::new(), |s| s.exit_basis.to_string());
        let exit = any.map_or(String::new(), |s| show_ns(s.exit_ns));
        [vec![clean(name), basis, exit], cells(a), cells(b)].concat()
    };
    let rows = both[0].names(both[1]).into_iter().map(row).collect();
    Table { caption: caption.into(), heads: head, rows, n_text_columns: 2 }
}

fn limit_words(limit_ns: u64) -> String {
    if limit_ns == 0 { word!("poll").into() } else { exact_ns(limit_ns) }
}

/// Every latency limit; likewise.
pub(in crate::report) fn sweep(s: &Sweep) -> Section {
    let mut out = Section { is_result: true, ..Section::new(word!("Every latency limit")) };
    let title = word!("Latency against energy");
    let mut plot = Plot::new(
        title,
        AxisSpec::new(word!("mean cost of a wake-up"), Show::Ns, Scale::Zero),
        AxisSpec::new(word!("energy while idle"), Show::Joules, Scale::Zero),
    );
    let point = |p: &Limit| Point { x: p.mean_wake_cost_ns, y: p.modelled_energy_uj / 1e6, ..Point::default() };
    plot.add(word!("every limit"), Style::Arm(0), s.points.iter().map(point));
    if let Some(knee) = s.points.iter().find(|p| Some(p.limit_ns) == s.knee_ns) {
        plot.add(say!("knee: {}", limit_words(knee.limit_ns)), Style::Arm(1), [point(knee)]);
    }
    let caption = word!(
        "Each mark is a latency limit of the table below, strictest at the left. The knee is furthest below the straight line \
                   between the ends: a property of the curve, not advice. Energy is a model's, half to twice."
    );
    out.figures.extend(figure("frontier", title, caption, "modelled", &plot));
    let row = |p: &Limit| {
        vec![
            limit_words(p.limit_ns),
            if Some(p.limit_ns) == s.knee_ns { word!("knee").into() } else { String::new() },
            words::ns(p.mean_wake_cost_ns),
            p.p99_wake_cost_ns.map_or("–".into(), |ns| words::ns(ns as f64)),
            Show::Joules.text(p.modelled_energy_uj / 1e6),
        ]
    };
    out.tables.push(Table {
        caption: word!("Latency limits, strictest first: modelled").into(),
        heads: heads(&[word!("limit"), "", word!("mean cost of a wake-up"), "p99", word!("energy while idle")]),
        rows: s.points.iter().map(row).collect(),
        n_text_columns: 2,
    });
    out.remarks = s.remarks.last().filter(|_| s.knee_ns.is_some()).map(|line| clean(line)).into_iter().collect();
    out
}

/// The objective; how far it may be trusted and the answer stand above all sections.
pub(in crate::report) fn slo(s: &Slo) -> Section {
    let mut out = Section { is_result: true, ..Section::new(&say!("The objective: {}", s.objective)) };
    out.intro.extend(s.command.iter().map(|line| say!("To plan it: {line}")));
    let row = |l: &wakewatt_models::replay::slo::SloLimit| {
        let limit = if l.limit == LatencyLimit::None { word!("no limit").into() } else { l.limit.to_string() };
        let kept = match (l.is_kept, l.is_kept_at_worst) {
            _ if !s.followed.is_enough() => "–",
            (true, true) => word!("yes"),
            (true, false) => word!("yes, not at worst"),
            (false, _) => word!("no"),
        };
        let is_answer = if Some(l.limit) == s.limit { word!("the answer") } else { "" };
        vec![
            limit,
            kept.into(),
            is_answer.into(),
            show_ns(l.percentile_ns),
            show_ns(l.worst_percentile_ns),
            Show::Joules.text(l.modelled_energy_uj / 1e6),
        ]
    };
    out.tables.push(Table {
        caption: word!("Latency limits, strictest first: modelled").into(),
        heads: heads(&[
            word!("limit"),
            word!("keeps it"),
            "",
            word!("percentile"),
            word!("at worst"),
            word!("energy while idle"),
        ]),
        rows: s.limits.iter().map(row).collect(),
        n_text_columns: 3,
    });
    out.remarks = s.remarks.iter().map(|line| clean(line)).collect();
    out
}

/// The upgrade; likewise.
pub(in crate::report) fn upgrade(u: &Upgrade) -> Section {
    let kernel = |at: usize| u.policies.first().map_or("?", |p| p[at].kernel.as_str());
    let names = [say!("kernel {}", kernel(0)), say!("kernel {}", kernel(1))];
    let names = [clean(&names[0]), clean(&names[1])];
    let mut out = Section { is_result: true, ..Section::new(&say!("Upgrade: {} to {}", names[0], names[1])) };
    out.intro.extend(u.policies.iter().map(|[old, new]| clean(&say!("Old: {}. New: {}.", policy(old), policy(new)))));
    let row = |m: &wakewatt_models::replay::Move| {
        vec![clean(&m.from), clean(&m.to), words::count(m.n), words::percent(m.ratio)]
    };
    out.tables.push(Table {
        caption: say!(
            "Decisions that change, of {} made by both from the same recorded inputs",
            words::count(u.n_decisions)
        ),
        heads: heads(&[word!("from"), word!("to"), word!("decisions"), word!("share of all")]),
        rows: u.moves.iter().map(row).collect(),
        n_text_columns: 2,
    });
    sides(&mut out, "upgrade-", [&names[0], &names[1]], [&u.old, &u.new]);
    for cpu in u.cpus.iter().take(MOST_CPUS) {
        out.folded.push(states(&say!("CPU {}", cpu.cpu), [&names[0], &names[1]], [&cpu.old, &cpu.new]));
    }
    out.remarks = u.remarks.iter().map(|line| clean(line)).collect();
    out
}
