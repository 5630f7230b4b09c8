//! The sections of a fit: prediction and measurement side by side, how far off each is, and what the model rests on.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::bars::{Bar, Bars};
use super::super::charts::ranges::{Mark, Ranges};
use super::super::data::Show;
use super::super::table::{Table, heads};
use super::super::trace::clean;
use super::super::words;
use super::section::{Section, figure};
use wakewatt_core::units::show_ns;
use wakewatt_sim::fit::{AIM, Beside, Exit, ExitAfter, Fit, Fitted, Hits, Off, Took};
use wakewatt_words::{say, word};

/// The worst that a prediction was off, in one sentence.
pub(in crate::report) fn sentence(fits: &[Fit]) -> String {
    let worst = fits
        .iter()
        .flat_map(|fit| fit.loads.iter().filter_map(move |load| Some((fit, load, load.worst_ratio?))))
        .max_by(|a, b| a.2.abs().total_cmp(&b.2.abs()));
    match worst {
        Some((fit, load, ratio)) => say!(
            "Predictions were at most {} off: {} under `{}`, from a model fitted to `{}`.",
            signed(ratio),
            load.kind.word(),
            fit.predicts,
            fit.on
        ),
        None => word!("What a fitted model predicts; nothing was measured that could check it.").into(),
    }
}

/// How many predictions were good enough, and of the others whether that can be told; nothing where nothing was measured.
pub(crate) fn hits(hits: &Hits) -> Vec<String> {
    let Hits { n, n_within, n_sure, n_unsure, n_missed, n_further } = hits;
    let aim = format!("{:.0} %", AIM * 100.0);
    let has_ranges = n_sure + n_unsure + n_missed > 0;
    let all = [
        (*n > 0, say!("{n_within} of {n} predictions within {aim}.")),
        (has_ranges, say!("{n_sure} of {n} whatever the doubt of what was measured.")),
        (*n_unsure > 0, say!("{n_unsure} further off, which that doubt may explain.")),
        (*n_missed > 0, say!("{n_missed} further off than that doubt explains.")),
        (*n_further > 0, say!("{n_further} further off; how far the doubt of what was measured reaches is not known.")),
    ];
    all.into_iter().filter_map(|(is_said, sentence)| is_said.then_some(sentence)).collect()
}

/// Whether an exit was measured, and what it is after other sleeps.
pub(crate) fn how_known(exit: &Exit) -> String {
    let rows = |rows: &[ExitAfter]| {
        let after = rows.iter().map(|a| say!("{} after {}", show_ns(a.ns), show_ns(a.asleep_ns)));
        after.collect::<Vec<_>>().join(", ")
    };
    let (after, ipi) = (rows(&exit.after), rows(&exit.after_ipi));
    let by_length = match (exit.is_measured, after.is_empty()) {
        (false, _) => word!("half of what is claimed").into(),
        (true, true) => word!("measured").into(),
        (true, false) => say!("measured; by length of sleep {after}"),
    };
    let by_length = if ipi.is_empty() { by_length } else { say!("{by_length}; woken by another CPU {ipi}") };
    let (busy, ipi) = (rows(&exit.busy), rows(&exit.busy_ipi));
    let by_length = if busy.is_empty() { by_length } else { say!("{by_length}; CPU time of a sleep {busy}") };
    let by_length =
        if ipi.is_empty() { by_length } else { say!("{by_length}; CPU time of a sleep that another CPU ends {ipi}") };
    let (trip, table) = (rows(&exit.cold_trip), rows(&exit.cold_table));
    let by_length = if trip.is_empty() {
        by_length
    } else {
        say!("{by_length}; a TCP round trip, first after a pause, takes longer by {trip}")
    };
    let by_length = if table.is_empty() {
        by_length
    } else {
        say!("{by_length}; a transaction of steps, first after a pause, takes longer by {table}")
    };
    let by_length = match exit.own_ratio.map(|own| format!("{:.2} %", own * 100.0)) {
        Some(own) => say!("{by_length}; meanwhile a CPU is busy for itself {own} of the time"),
        None => by_length,
    };
    match exit.send_ns.map(show_ns) {
        None => by_length,
        Some(sent) => say!("{by_length}; CPU time of whoever wakes it {sent}"),
    }
}

/// Load by load, then what it rests on. `index` keeps the figures of several fits apart.
pub(in crate::report) fn sections(fit: &Fit, index: usize) -> Vec<Section> {
    let mut all: Vec<Section> =
        fit.loads.iter().enumerate().map(|(i, f)| load(fit, f, &format!("fit{index}-{i}"))).collect();
    let mut rests = Section::new(&say!("What the model fitted to `{}` rests on", clean(&fit.on)));
    let row = |e: &Exit| vec![clean(&e.state), how_known(e), show_ns(e.ns)];
    rests.tables.push(Table {
        caption: word!("What leaving an idle state is taken to cost").into(),
        heads: heads(&[word!("state"), word!("how it is known"), word!("exit")]),
        rows: fit.exits.iter().map(row).collect(),
        n_text_columns: 2,
    });
    rests.remarks = fit.remarks.iter().cloned().chain(fit.stands_alone()).map(|line| clean(&line)).collect();
    all.push(rests);
    all
}

fn load(fit: &Fit, f: &Fitted, id: &str) -> Section {
    let (on, other) = (clean(&fit.on), clean(&fit.predicts));
    let mut out =
        Section { is_result: true, ..Section::new(&say!("{}: fitted to `{on}`, predicting `{other}`", f.kind.word())) };
    let n = &f.numbers;
    let (work, pause, elsewhere, own) =
        (words::ns(n.work_ns), words::ns(n.per_sleep_ns), words::ns(n.elsewhere_ns), words::ns(n.own_ns));
    let left = words::percent(f.rms_ratio);
    out.intro.push(match f.cold {
        Some(_) => say!(
            "Fitted: {work} of work, {pause} of CPU time that a pause adds at most, {elsewhere} elsewhere, and {own} of each CPU for itself every 10 ms. What is left of the levels it was fitted to is {left} (root of the mean square)."
        ),
        None => say!(
            "Fitted: {work} of work, {pause} of CPU time that a sleep adds, {elsewhere} elsewhere, and {own} of each CPU for itself every 10 ms. What is left of the levels it was fitted to is {left} (root of the mean square)."
        ),
    });
    if let Some(times) = n.sooner.map(|sooner| format!("{sooner:.1}")) {
        out.intro.push(say!("Fitted as growing cold {times} times as soon as the piece of work that was measured, and expected to as soon."));
    }
    for (title, what, value) in [
        (word!("Median latency"), word!("median"), (|t: &Took| t.p50_ns) as fn(&Took) -> Option<f64>),
        (word!("CPU time per request"), "cpu", |t: &Took| t.cpu_ns),
    ] {
        let title = say!("{title} under `{other}`: predicted beside measured");
        let mut bars = Bars::new(&title, word!("level"), "time", Show::Ns);
        bars.series = vec!["measured".into(), word!("predicted").into()];
        for b in &f.predicted {
            let both = [value(&b.measured), value(&b.modelled)];
            let bar =
                |(series, value): (usize, Option<f64>)| Some(Bar { series, value: value?, invalid_because: None });
            bars.add(clean(&b.level), both.into_iter().enumerate().filter_map(bar));
        }
        let caption = word!("Measured levels took no part in the fit.");
        out.figures.extend(figure(format!("{id}-{what}"), &title, caption, "modelled", &bars));
    }
    out.intro.extend(hits(&f.hits));
    out.figures.extend(residuals(f, id));
    for (rows, name) in [(&f.fitted, say!("fitted to `{on}`")), (&f.predicted, say!("predicted for `{other}`"))] {
        out.tables.push(table(rows, &name));
    }
    out
}

fn residuals(f: &Fitted, id: &str) -> Option<super::super::figure::Figure> {
    let title = word!("How far off");
    let mut chart = Ranges {
        title: title.into(),
        of: word!("level").into(),
        range: word!("range, by the doubt of what was measured"),
        x: AxisSpec::new(word!("model over measured, less one"), Show::Ratio, Scale::Zero),
        series: [word!("median, fitted"), word!("median, predicted"), word!("CPU, fitted"), word!("CPU, predicted")]
            .map(String::from)
            .to_vec(),
        is_first_claimed: false,
        rows: Vec::new(),
    };
    for (now, then) in f.fitted.iter().zip(&f.predicted) {
        let ([now_p50, now_cpu], [then_p50, then_cpu]) = (now.offs(), then.offs());
        let all = [now_p50, then_p50, now_cpu, then_cpu];
        let mark =
            |(series, off): (usize, Off)| Some(Mark { series, value: off.ratio?, range: off.range.map(Into::into) });
        chart.add(clean(&now.level), all.into_iter().enumerate().filter_map(mark));
    }
    let caption = word!(
        "Fitted: what the fit leaves of levels that it saw. Predicted: of levels that it did not see. Lines: what the doubt of the rounds leaves open (95 % each)."
    );
    figure(format!("{id}-off"), title, caption, "modelled", &chart)
}

fn signed(ratio: f64) -> String {
    format!("{}{}", if ratio > 0.0 { "+" } else { "" }, words::percent(ratio).replace('-', "−"))
}

/// Whole percent with a sign, and no minus before nothing.
pub(crate) fn whole_percent(ratio: f64) -> String {
    format!("{:+.0}", (ratio * 100.0).round() + 0.0)
}

/// What is said of a level, on the page and in the terminal.
pub(crate) const LEVEL_HEADS: [&str; 7] =
    ["level", "median measured", "model", "deviation", "CPU per request measured", "model", "deviation"];

/// The row below those heads, times and shares written as its place writes them.
pub(crate) fn level_cells(b: &Beside, time: fn(Option<f64>) -> String, off: fn(Off) -> String) -> Vec<String> {
    let both = |measured, modelled, off_by| [time(measured), time(modelled), off(off_by)];
    let [p50, cpu] = b.offs();
    let median = both(b.measured.p50_ns, b.modelled.p50_ns, p50);
    let cpu = both(b.measured.cpu_ns, b.modelled.cpu_ns, cpu);
    [clean(&b.level)].into_iter().chain(median).chain(cpu).collect()
}

fn table(rows: &[Beside], caption: &str) -> Table {
    let time = |ns: Option<f64>| ns.map_or("–".into(), words::ns);
    let off = |off: Off| match (off.ratio, off.range) {
        (None, _) => "–".into(),
        (Some(ratio), None) => signed(ratio),
        (Some(ratio), Some([low, high])) => format!("{} [{}, {}]", signed(ratio), signed(low), signed(high)),
    };
    Table {
        caption: say!("Level by level, {caption}"),
        heads: heads(&LEVEL_HEADS),
        rows: rows.iter().map(|b| level_cells(b, time, off)).collect(),
        n_text_columns: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_there_is_is_said_of_predictions() {
        let of = |[n_within, n_sure, n_unsure, n_missed, n_further]: [usize; 5]| {
            let n = n_within + n_unsure + n_missed + n_further;
            hits(&Hits { n, n_within, n_sure, n_unsure, n_missed, n_further }).join(" ")
        };
        assert_eq!(of([0; 5]), "");
        assert_eq!(of([6, 0, 0, 0, 0]), "6 of 6 predictions within 15 %.");
        assert_eq!(
            of([3, 0, 0, 0, 1]),
            "3 of 4 predictions within 15 %. 1 further off; how far the doubt of what was measured reaches is not known."
        );
        let all = of([3, 1, 2, 1, 0]);
        for words in ["1 of 6 whatever the doubt", "2 further off, which that doubt", "1 further off than that doubt"] {
            assert!(all.contains(words), "{words}: {all}");
        }
    }
}
