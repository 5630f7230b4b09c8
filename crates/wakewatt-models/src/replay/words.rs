//! Sentences that text and page share: what changes from one side to another.

use wakewatt_core::samples::replayed::{Side, StateTold};
use wakewatt_core::units::rough_ns;

/// A share in percent.
pub(super) fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

/// What a verdict rests on that nobody measured; nothing where all was.
pub(super) fn by_claims(states: &[&str]) -> String {
    match states {
        [] => String::new(),
        [one] => format!("; the exit latency of {one} is claimed, not measured"),
        [first, .., last] if states.len() > 4 => {
            format!("; the exit latencies of {} states ({first} to {last}) are claimed, not measured", states.len())
        }
        many => format!("; the exit latencies of {} are claimed, not measured", many.join(", ")),
    }
}

/// The largest change of a state's share of idle time.
fn largest_change<'a>(old: &'a Side, new: &'a Side) -> Option<(&'a str, f64, f64)> {
    let share = |side: &Side, name: &str| side.state(name).map_or(0.0, |s: &StateTold| s.time_ratio);
    let of = |name: &'a str| (name, share(old, name), share(new, name));
    let size = |c: &(&str, f64, f64)| (c.2 - c.1).abs();
    let all = old.names(new).into_iter().map(of);
    all.max_by(|a, b| size(a).total_cmp(&size(b))).filter(|c| percent(c.1) != percent(c.2))
}

/// Idle time, delay and energy: "C6 goes from 80.1 % to 0.0 % of idle time, a wake-up comes 60 us sooner on average, energy while idle
/// +210.0 % (model)".
pub fn change(old: &Side, new: &Side) -> String {
    let time = largest_change(old, new).map_or("idle time by state stays as it is".into(), |c| {
        format!("{} goes from {} to {} of idle time", c.0, percent(c.1), percent(c.2))
    });
    let later = new.wake_cost.mean_ns - old.wake_cost.mean_ns;
    let delay = match later {
        d if d.abs() < 0.5 => "a wake-up costs the same on average".to_string(),
        d => format!("a wake-up comes {} {} on average", rough_ns(d.abs()), if d < 0.0 { "sooner" } else { "later" }),
    };
    let energy = match old.modelled_energy_uj {
        uj if uj > 0.0 => format!("energy while idle {:+.1} % (model)", (new.modelled_energy_uj / uj - 1.0) * 100.0),
        _ => "energy while idle cannot be compared".into(),
    };
    format!("{time}, {delay}, {energy}{}", by_claims(&old.claimed_with(new)))
}
