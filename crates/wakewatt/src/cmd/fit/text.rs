//! A fit as text: the numbers, what is left of the levels it was fitted to, and the prediction beside what was measured.

use super::Fits;
use crate::report::fitted::{LEVEL_HEADS, hits, how_known, level_cells, whole_percent};
use crate::report::trace::clean;
use crate::view::table::Table;
use std::fmt::Write as _;
use wakewatt_core::units::{rough_ns, show_ns};
use wakewatt_sim::fit::{AIM, Beside, Fitted, Off};
use wakewatt_sim::sensitivity::listed;

fn time(ns: Option<f64>) -> String {
    ns.map_or("-".into(), rough_ns)
}

/// With the range that the doubt of what was measured leaves, where a tenth says nothing but beside the aim; a table of both fits into 80 columns.
fn signed(off: Off) -> String {
    match (off.ratio, off.range) {
        (None, _) => "-".into(),
        (Some(r), Some([low, high])) if (r.abs() - AIM).abs() > 0.005 => {
            format!("{} % [{},{}]", whole_percent(r), whole_percent(low), whole_percent(high))
        }
        (Some(r), range) => {
            let range = range.map(|[low, high]| format!(" [{},{}]", whole_percent(low), whole_percent(high)));
            format!("{:+.1} %{}", r * 100.0, range.unwrap_or_default())
        }
    }
}

fn levels(rows: &[Beside], width: usize) -> String {
    let heads = LEVEL_HEADS.map(String::from);
    let rows: Vec<_> = rows.iter().map(|b| level_cells(b, time, signed)).collect();
    Table { heads: &heads, rows: &rows, n_text_columns: 1 }.text(width)
}

fn load(out: &mut String, f: &Fitted, (on, other): (&str, &str), width: usize) {
    let name = f.kind.word();
    let n = &f.numbers;
    let _ = writeln!(
        out,
        "\n{name}: work {}, {} of CPU time that {},\n{} elsewhere, {} of each CPU for itself every 10 ms;\nresiduals {:.1} % (root mean square)",
        rough_ns(n.work_ns),
        rough_ns(n.per_sleep_ns),
        if f.cold.is_some() { "a pause adds at most" } else { "a sleep adds" },
        rough_ns(n.elsewhere_ns),
        rough_ns(n.own_ns),
        f.rms_ratio * 100.0
    );
    if let Some(sooner) = n.sooner {
        let _ = writeln!(out, "fitted as growing cold {sooner:.1} times as soon as the piece that was measured");
    }
    let _ = write!(out, "fitted to {on}:\n{}", levels(&f.fitted, width));
    let _ = write!(out, "predicted for {other}:\n{}", levels(&f.predicted, width));
    if let Some(worst) = f.worst_ratio {
        let off = Off { ratio: Some(worst), range: f.worst_range, is_endless: false };
        let _ = writeln!(out, "largest error of a prediction: {}", signed(off));
    }
    if let Some(list) = listed(&f.sensitivity) {
        let _ = writeln!(out, "most sensitive assumption (±20 %): {list}");
    }
    hits(&f.hits).into_iter().for_each(|words| {
        let _ = writeln!(out, "{words}");
    });
}

/// The whole result.
pub(super) fn text(fits: &Fits, width: usize) -> String {
    let mut out = String::new();
    for fit in &fits.fits {
        let (on, other) = (clean(&fit.on), clean(&fit.predicts));
        let _ = writeln!(out, "Modelled: fitted to `{on}`, predicting `{other}`, which it was not shown.");
        fit.exits.iter().for_each(|e| {
            let _ = writeln!(out, "leaving {}: {} ({})", clean(&e.state), show_ns(e.ns), how_known(e));
        });
        fit.loads.iter().for_each(|f| load(&mut out, f, (&on, &other), width));
        let all = || fit.loads.iter().flat_map(|f| f.fitted.iter().chain(&f.predicted));
        if let Some(n) = all().map(|b| b.doubt.n_rounds).filter(|n| *n > 0).min()
            && all().flat_map(Beside::offs).any(|off| off.range.is_some())
        {
            let _ = writeln!(out, "\n[...]: what the doubt of {n} rounds or more leaves open, in percent (95 % each)");
        }
        fit.remarks.iter().cloned().chain(fit.stands_alone()).for_each(|words| {
            let _ = writeln!(out, "{}", clean(&words));
        });
        out.push('\n');
    }
    out
}
