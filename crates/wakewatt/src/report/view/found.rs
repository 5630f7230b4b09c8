//! Wake-ups and round trips with the machine as it was found: a section of its own where nothing else was done, of the page and of
//! what `measure` shows; else a table among the raw numbers.

use super::super::charts::distribution;
use super::super::figure::Figure;
use super::super::table::{Table, heads};
use super::super::words;
use super::samples::{DISTRIBUTION_HEADS, distribution_cells, distribution_figure};
use super::section::Section;
use super::waker;
use wakewatt_core::covers::Covers;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::{IdleDelta, Scheduling, Window};
use wakewatt_core::stats::distribution::Distribution;
use wakewatt_words::{say, told, word};

/// More curves than these cannot be told apart.
const MOST_CURVES: usize = 6;
/// Of a machine of many CPUs the first are drawn.
const MOST_FIGURES: usize = 6;

/// Wake-ups and round trips as a section of their own, where nothing else was done; none without any. Its table is a terminal's.
pub(super) fn section(evidence: &Evidence, zero_at_ns: u64) -> Option<Section> {
    let title = match (evidence.samples.wakeups.is_empty(), evidence.samples.network.is_empty()) {
        (false, true) => word!("Wake-up latency"),
        (true, _) => word!("Round trips"),
        _ => word!("Wake-ups and round trips"),
    };
    let all = found(evidence);
    let mut out = Section { figures: figures(&all), ..Section::new(title) };
    for sample in &evidence.samples.network {
        out.remarks.extend(sample.split.as_ref().err().map(|why| say!("{}: no split: {why}", sample.transport.word())));
        let late = behind_plan(sample.n_late_starts, sample.n_sent, sample.gap_ns);
        out.remarks.extend(late.map(|why| format!("{}: {why}", sample.transport.word())));
    }
    out.tables.push(table(
        say!("Measured; percentiles with their {}", words::interval_of(Covers::Window)),
        &all,
        zero_at_ns,
    ));
    (!all.is_empty()).then_some(out)
}

/// A round trip longer than the gap makes each request later than the one before: then the wait in that queue is most of
/// the number, and nothing in the table tells.
fn behind_plan(n_late: u64, n_sent: u64, gap_ns: u64) -> Option<String> {
    (n_late.saturating_mul(10) > n_sent).then(|| {
        say!(
            "{} of {} requests could not be sent as planned, every {}: their waiting is in the round trip, not in its \
             parts; to measure single round trips give a longer --gap",
            words::count(n_late),
            words::count(n_sent),
            words::ns(gap_ns as f64)
        )
    })
}

/// The idle states that the CPU asked for meanwhile, and how often.
fn asleep(delta: Option<&IdleDelta>) -> String {
    let states = delta.into_iter().flat_map(|d| &d.states).filter(|s| s.n_usage > 0);
    let states: Vec<String> = states.map(|s| format!("{} {}×", s.name, words::count(s.n_usage))).collect();
    if states.is_empty() { String::new() } else { say!("; asleep in {}", words::listed(&states)) }
}

/// What was measured as found: how it is called, how it was measured, when, and what came of it.
struct Found<'a> {
    /// Whose figure it is drawn in: that of a CPU, or of a round trip.
    figure: String,
    what: String,
    how: String,
    window: &'a Window,
    latency: &'a Distribution,
}

/// Wake-ups, and round trips with their parts.
fn found(evidence: &Evidence) -> Vec<Found<'_>> {
    let mut all = Vec::new();
    for s in &evidence.samples.wakeups {
        let from = s.from_cpu.map_or(word!("own timer").to_string(), |c| say!("from CPU {c}"));
        let how = say!(
            "{from}, {}, {} late starts{}{}",
            waker::pause(s.gap_ns, s.pauses),
            s.n_late_starts,
            s.waker.as_ref().map_or(String::new(), |w| format!("; {}", waker::kept(w))),
            asleep(s.idle.as_ref())
        );
        let who = if s.scheduling == Scheduling::Ordinary { word!(", ordinary thread") } else { "" };
        let what = say!("{} wake-up, CPU {}{who}", told(s.kind.word()), s.cpu);
        let figure = say!("Wake-ups of CPU {}", s.cpu);
        all.push(Found { figure, what, how, window: &s.window, latency: &s.latency });
    }
    for s in &evidence.samples.network {
        let cpu = |c: Option<u32>| c.map_or(word!("any CPU").to_string(), |c| say!("CPU {c}"));
        let how = say!(
            "{} to {} ({}), pause {}, {} of {} lost",
            cpu(s.requester_cpu),
            s.peer,
            cpu(s.responder_cpu),
            words::ns(s.gap_ns as f64),
            s.n_lost,
            s.n_sent
        );
        let word = s.transport.word();
        let figure = say!("{word} round trip");
        let mut push =
            |what, how, latency| all.push(Found { figure: figure.clone(), what, how, window: &s.window, latency });
        push(say!("{word} round trip"), how, &s.round_trip);
        if let Ok(split) = &s.split {
            let part = word!("part of the round trip above");
            push(say!("{word}: requester’s wake-up"), part.into(), &split.requester);
            push(say!("{word}: responder"), part.into(), &split.responder);
            push(say!("{word}: wire and stacks"), part.into(), &split.wire);
        }
    }
    all
}

/// Wake-ups and round trips with the machine as it was found.
pub(super) fn as_found(evidence: &Evidence, zero_at_ns: u64) -> Table {
    let caption = say!(
        "As found, before anything was changed: measured; percentiles with their {}",
        words::interval_of(Covers::Window)
    );
    table(caption, &found(evidence), zero_at_ns)
}

fn table(caption: String, found: &[Found<'_>], zero_at_ns: u64) -> Table {
    let row = |f: &Found<'_>| {
        let mut row = vec![f.what.clone(), f.how.clone(), words::window(f.window, zero_at_ns)];
        row.extend(distribution_cells(f.latency));
        row
    };
    let mut names = heads(&[word!("what"), word!("how"), word!("window")]);
    names.extend(heads(DISTRIBUTION_HEADS));
    Table { caption, heads: names, rows: found.iter().map(row).collect(), n_text_columns: 3 }
}

/// How often each latency occurred: a figure for each CPU that was woken, and for each round trip with its parts.
fn figures(found: &[Found<'_>]) -> Vec<Figure> {
    let drawn = |(at, of): (usize, &[Found<'_>])| {
        let curves: Vec<distribution::Curve<'_>> = of
            .iter()
            .enumerate()
            .filter(|(_, f)| f.latency.n > 0)
            .map(|(index, f)| distribution::Curve { name: &f.what, index, latency: f.latency })
            .collect();
        let caption = word!(
            "How often each latency occurred (top, each scaled to its own peak) and the percentiles (below); all that was \
             measured stands among the raw numbers."
        );
        distribution_figure(format!("found-{at}"), &of.first()?.figure, caption, &curves, None)
    };
    let each = found.chunk_by(|a, b| a.figure == b.figure).flat_map(|of| of.chunks(MOST_CURVES));
    each.take(MOST_FIGURES).enumerate().filter_map(drawn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::StateDelta;

    #[test]
    fn a_plan_that_was_not_kept_is_told() {
        assert_eq!(behind_plan(10, 100, 1_000_000), None);
        let said = behind_plan(1990, 2044, 1_000_000).unwrap();
        assert!(said.contains("requests could not be sent as planned, every 1 ms"), "{said}");
        assert_eq!(behind_plan(0, 0, 1), None, "nothing was sent");
    }

    #[test]
    fn states_that_were_entered_are_named() {
        let state = |name: &str, n_usage| StateDelta { index: 0, name: name.into(), n_usage, time_ns: 1 };
        let delta = IdleDelta { cpu: 0, states: vec![state("POLL", 0), state("C6", 12)] };
        assert_eq!(asleep(Some(&delta)), "; asleep in C6 12×");
        assert_eq!((asleep(None), section(&Evidence::default(), 0).is_none()), (String::new(), true));
    }

    #[test]
    fn each_round_trip_is_drawn_with_its_parts_and_each_cpu_by_itself() {
        let latency = Distribution::from_ns([10_000, 12_000, 14_000]);
        let window = Window { start_at_ns: 0, end_at_ns: 1 };
        let one = |figure: &str, what: &str| Found {
            figure: figure.into(),
            what: what.into(),
            how: String::new(),
            window: &window,
            latency: &latency,
        };
        let cpus = ["timer", "eventfd", "ordinary timer", "ordinary eventfd", "futex"].map(|what| one("CPU 1", what));
        let udp = ["udp round trip", "udp: responder"].map(|what| one("udp round trip", what));
        let tcp = one("tcp round trip", "tcp round trip");
        let all: Vec<Found<'_>> = cpus.into_iter().chain(udp).chain([tcp]).collect();
        let drawn = figures(&all);
        let titles: Vec<&str> = drawn.iter().map(|figure| figure.title.as_str()).collect();
        assert_eq!(titles, ["CPU 1", "udp round trip", "tcp round trip"]);
        assert!(drawn[1].svg.contains("udp: responder") && !drawn[1].svg.contains("tcp"), "{}", drawn[1].svg);
        let many: Vec<Found<'_>> = (0..512).map(|cpu| one(&format!("CPU {cpu}"), "timer")).collect();
        assert_eq!(figures(&many).len(), MOST_FIGURES);
    }
}
