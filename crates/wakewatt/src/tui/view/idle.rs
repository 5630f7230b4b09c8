//! The idle states of the machine: the driver's claims, how they were used, how often the governor missed, and what
//! waking from them cost where something traces.

use super::{dim, glyphs, strong};
use crate::tui::state::State;
use crate::tui::words::{self, cell, count, percent};
use ratatui::text::{Line, Span};
use wakewatt_core::units::show_ns;
use wakewatt_core::watch::document::StateRate;
use wakewatt_core::watch::{LatencyRow, Why};

/// Lines of the panel.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line<'static>> {
    let Some(rates) = &state.rates else { return vec![Line::raw("")] };
    let mut lines = Vec::new();
    if rates.states.is_empty() {
        lines.push(Line::raw(" no idle states: idle time is not split, and wake-ups are not counted"));
    } else {
        let is_wide = width >= 96;
        let more = if is_wide { format!(" {:>8} {:>8}", "below/s", "refused/s") } else { String::new() };
        let heading = format!(
            "   {:<14} {:>8} {:>9} {:>7} {:>8} {:>9} {:>8}{more}",
            "state", "claimed", "residency", "share", "wakes/s", "mean stay", "above/s"
        );
        lines.push(Line::styled(heading, dim(state)));
        let parts = glyphs::parts(state.look, &rates.machine.summary, &rates.states);
        for (info, part) in rates.states.iter().zip(parts.iter().skip(2)) {
            let used = rates.machine.summary.idle.iter().find(|s| s.index == info.index);
            let fallback = StateRate::default();
            let used = used.unwrap_or(&fallback);
            let claim = |ns: Option<u64>| ns.map_or("–".to_string(), show_ns);
            let more = if is_wide {
                let lets = info.lets_package.as_deref().map_or(String::new(), |package| format!("  lets {package}"));
                format!(" {:>8} {:>8}{lets}", cell(used.below_per_s, count), cell(used.rejected_per_s, count))
            } else {
                String::new()
            };
            let name: String = words::escaped(&info.name).chars().take(14).collect();
            let text = format!(
                " {name:<14} {:>8} {:>9} {:>7} {:>8} {:>9} {:>8}{more}",
                claim(info.exit_latency_ns),
                claim(info.target_residency_ns),
                cell(used.share_ratio, percent),
                cell(used.wakeups_per_s, count),
                mean_stay(used, rates.machine.n_online),
                cell(used.above_per_s, count),
            );
            lines.push(Line::from(vec![
                Span::raw(" "),
                Span::styled(part.glyph.to_string(), part.style),
                Span::raw(text),
            ]));
        }
        lines.push(Line::styled(" above: woke before the target residency; below: could have gone deeper", dim(state)));
    }
    let package_states = match rates.places.is_empty() {
        true => words::all_package_states(&rates.packages),
        false => format!("package states: {}", Why::NotRecorded.explain()),
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
                Span::styled(" wake-up latency: ", strong()),
                Span::raw(format!("needs tracing ({})", words::escaped(why))),
            ])];
        }
    };
    let heading = format!(" {:<16} {:<20} {:>9} {:>9} {:>9} {:>9}", "woken from", "by", "n", "p50", "p99", "lost");
    let mut lines = vec![Line::styled(heading, dim(state))];
    let ns = |v: Option<u64>| v.map_or("–".to_string(), show_ns);
    lines.extend(rows.iter().map(|row| {
        Line::raw(format!(
            " {:<16} {:<20} {:>9} {:>9} {:>9} {:>9}",
            words::escaped(&row.state),
            words::escaped(&row.class),
            row.n,
            ns(row.p50_ns),
            ns(row.p99_ns),
            show_ns(row.lost_ns)
        ))
    }));
    if rows.is_empty() {
        lines.push(Line::raw(" nothing was woken yet"));
    }
    lines
}
