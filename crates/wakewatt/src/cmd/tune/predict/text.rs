//! A prediction as text, behind the plan.

use super::Predicted;
use crate::report::fitted::whole_percent;
use crate::report::trace::clean;
use crate::view::table::Table;
use crate::view::wrap::wrap;
use std::fmt::Write as _;
use wakewatt_core::units::rough_ns;

/// What the model expects, or why it cannot tell.
pub(in super::super) fn text(p: &Predicted, width: usize) -> String {
    let mut out = String::from("\n");
    let mut say = |first: &str, words: &str| {
        let _ = writeln!(out, "{}", wrap(first, "  ", words, width));
    };
    if let Some(why) = &p.cannot_tell {
        say("Predicted: cannot tell: ", &clean(why));
        return out;
    }
    let fields = if p.fields.is_empty() { "no limit at all".into() } else { clean(&p.fields.join(", ")) };
    let exits = match p.claimed_exits.is_empty() {
        true => String::new(),
        false => format!("; exit latencies claimed: {}", clean(&p.claimed_exits.join(", "))),
    };
    let words = format!("by a model fitted to `{}`; in it the plan is {fields}", clean(&p.on));
    say(&format!("Predicted (modelled, not measured{exits}) "), &words);
    for load in &p.loads {
        let checked = match load.last_error_ratio {
            Some(ratio) => {
                let range = load.last_error_range.map(|ends| ends.map(whole_percent));
                let range = range.map_or(String::new(), |[low, high]| format!(" [{low},{high}]"));
                format!("the last time that it could be checked it was {:+.1} %{range} off at most", ratio * 100.0)
            }
            None => "no prediction of it could be checked".into(),
        };
        let _ = writeln!(
            out,
            "\n{}",
            wrap(
                "",
                "  ",
                &format!(
                    "{}: {checked}; of what it was fitted to it misses {:.1} % (root mean square).",
                    load.kind.word(),
                    load.rms_ratio * 100.0
                ),
                width
            )
        );
        let heads = [
            "level",
            "median measured",
            "model now",
            "planned",
            "change",
            "CPU per request measured",
            "model now",
            "planned",
            "change",
        ]
        .map(String::from);
        let rows: Vec<Vec<String>> = load.levels.iter().map(row).collect();
        out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 1 }.text(width));
    }
    p.remarks.iter().for_each(|words| {
        let _ = writeln!(out, "{}", wrap("", "  ", &clean(words), width));
    });
    out
}

fn row(l: &super::ExpectedLevel) -> Vec<String> {
    let time = |ns: Option<f64>| ns.map_or("-".into(), rough_ns);
    let change = |now: Option<f64>, then: Option<f64>| match (now, then) {
        (Some(now), Some(then)) if now > 0.0 => format!("{:+.1} %", (then / now - 1.0) * 100.0),
        _ => "-".into(),
    };
    let (m, now, then) = (l.measured, l.modelled, l.expected);
    vec![
        clean(&l.level),
        time(m.p50_ns),
        time(now.p50_ns),
        time(then.p50_ns),
        change(now.p50_ns, then.p50_ns),
        time(m.cpu_ns),
        time(now.cpu_ns),
        time(then.cpu_ns),
        change(now.cpu_ns, then.cpu_ns),
    ]
}
