//! The idle states of the machine: the driver's claims, how they were used, how often the governor missed, and what
//! waking from them cost where something traces.

use super::{dim, glyphs, strong};
use crate::tui::state::State;
use crate::tui::words::{self, cell, count, percent};
use crate::view::width::begin;
use ratatui::text::{Line, Span};
use wakewatt_core::units::show_ns;
use wakewatt_core::watch::document::StateRate;
use wakewatt_core::watch::{LatencyRow, Why};
use wakewatt_words::{say, told, word};

/// Lines of the panel.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line<'static>> {
    let Some(rates) = &state.rates else { return vec![Line::raw("")] };
    let mut lines = Vec::new();
    if rates.states.is_empty() {
        lines.push(Line::raw(word!(" no idle states: idle time is not split, and wake-ups are not counted")));
    } else {
        let is_wide = width >= 96;
        let more = match is_wide {
            true => words::row(&[(word!("below/s"), 8), (word!("refused/s"), 8)]),
            false => String::new(),
        };
        let heading = words::row(&[
            (word!("state"), -14),
            (word!("claimed"), 8),
            (word!("residency"), 9),
            (word!("share"), 7),
            (word!("wakes/s"), 8),
            (word!("mean stay"), 9),
            (word!("above/s"), 8),
        ]);
        let heading = format!("  {heading}{more}");
        lines.push(Line::styled(heading, dim(state)));
        let parts = glyphs::parts(state.look, &rates.machine.summary, &rates.states);
        for (info, part) in rates.states.iter().zip(parts.iter().skip(2)) {
            let used = rates.machine.summary.idle.iter().find(|s| s.index == info.index);
            let fallback = StateRate::default();
            let used = used.unwrap_or(&fallback);
            let claim = |ns: Option<u64>| ns.map_or("–".to_string(), show_ns);
            let more = if is_wide {
                let lets = info.lets_package.as_deref().map_or(String::new(), |package| say!("  lets {package}"));
                words::row(&[(&cell(used.below_per_s, count), 8), (&cell(used.rejected_per_s, count), 8)]) + &lets
            } else {
                String::new()
            };
            let name = words::escaped(&info.name);
            let text = words::row(&[
                (begin(&name, 14), -14),
                (&claim(info.exit_latency_ns), 8),
                (&claim(info.target_residency_ns), 9),
                (&cell(used.share_ratio, percent), 7),
                (&cell(used.wakeups_per_s, count), 8),
                (&mean_stay(used, rates.machine.n_online), 9),
                (&cell(used.above_per_s, count), 8),
            ]) + &more;
            lines.push(Line::from(vec![
                Span::raw(" "),
                Span::styled(part.glyph.to_string(), part.style),
                Span::raw(text),
            ]));
        }
        lines.push(Line::styled(
            word!(" above: woke before the target residency; below: could have gone deeper"),
            dim(state),
        ));
    }
    let package_states = match rates.places.is_empty() {
        true => words::all_package_states(&rates.packages),
        false => say!("package states: {}", told(Why::NotRecorded.explain())),
    };
    lines.push(Line::styled(format!(" {package_states}"), dim(state)));
    lines.extend(latency(state));
    lines
}

/// Time in a state by times left; of all CPUs together.
fn mean_stay(used: &StateRate, n_cpus: usize) -> String {
    match (used.share_ratio.get(), used.wakeups_per_s.get()) {
        (Some(share), Some(wakeups)) if wakeups > 0.0 => {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most the CPUs' seconds
            let ns = (share * n_cpus as f64 / wakeups * 1e9) as u64;
            show_ns(ns)
        }
        _ => "–".into(),
    }
}

fn latency(state: &State) -> Vec<Line<'static>> {
    let rows: &[LatencyRow] = match &state.latency {
        Ok(rows) => rows,
        Err(why) => {
            return vec![Line::from(vec![
                Span::styled(word!(" wake-up latency: "), strong()),
                Span::raw(say!("needs tracing ({})", words::escaped(why))),
            ])];
        }
    };
    let heading = words::row(&[
        (word!("woken from"), -16),
        (word!("by"), -20),
        ("n", 9),
        ("p50", 9),
        ("p99", 9),
        (word!("lost"), 9),
    ]);
    let mut lines = vec![Line::styled(heading, dim(state))];
    let ns = |v: Option<u64>| v.map_or("–".to_string(), show_ns);
    lines.extend(rows.iter().map(|row| {
        Line::raw(words::row(&[
            (&words::escaped(&row.state), -16),
            (&words::escaped(&row.class), -20),
            (&row.n.to_string(), 9),
            (&ns(row.p50_ns), 9),
            (&ns(row.p99_ns), 9),
            (&show_ns(row.lost_ns), 9),
        ]))
    }));
    if rows.is_empty() {
        lines.push(Line::raw(word!(" nothing was woken yet")));
    }
    lines
}
