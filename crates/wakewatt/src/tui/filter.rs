//! Which CPUs to show: terms, all of which must hold.
//!
//! A CPU list (`0-3,8`), `busy>50` and `busy<5` (percent), `wakes>1000` (per second), `freq<2000` (MHz), `package=1`,
//! `node=0`, `asleep`, `limited`, `throttled`, `offline`. A number that is not known satisfies no comparison.

use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::document::CpuRate;

/// Parsed terms and the text they came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// As typed.
    pub text: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
enum Term {
    Cpus(CpuSet),
    Above(Quantity, f64),
    Below(Quantity, f64),
    Package(u32),
    Node(u32),
    Asleep,
    Limited,
    Throttled,
    Offline,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    BusyPercent,
    WakeupsPerSecond,
    Mhz,
}

impl Filter {
    /// Parses what was typed; the error says what would be understood.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let terms: Result<Vec<Term>, String> = text.split_whitespace().map(term).collect();
        Ok(Filter { text: text.trim().into(), terms: terms? })
    }

    /// Shows all?
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Is this CPU shown?
    pub fn matches(&self, cpu: &CpuRate) -> bool {
        self.terms.iter().all(|term| holds(term, cpu))
    }
}

fn term(word: &str) -> Result<Term, String> {
    let wrong = || {
        format!(
            "filter \"{word}\": use a CPU list (0-3,8), busy>50, wakes>1000, freq<2000, package=1, node=0, asleep, limited, throttled, offline"
        )
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
    if let Some(at) = word.find(['>', '<']) {
        let (name, rest) = word.split_at(at);
        let quantity = match name {
            "busy" => Quantity::BusyPercent,
            "wakes" | "wakeups" => Quantity::WakeupsPerSecond,
            "freq" | "mhz" => Quantity::Mhz,
            _ => return Err(wrong()),
        };
        let value = number(&rest[1..]).ok_or_else(wrong)?;
        return Ok(if rest.starts_with('>') { Term::Above(quantity, value) } else { Term::Below(quantity, value) });
    }
    if let Some((name, value)) = word.split_once('=') {
        let value = value.parse().map_err(|_| wrong())?;
        return match name {
            "package" | "pkg" => Ok(Term::Package(value)),
            "node" => Ok(Term::Node(value)),
            _ => Err(wrong()),
        };
    }
    match word {
        "asleep" => Ok(Term::Asleep),
        "limited" => Ok(Term::Limited),
        "throttled" => Ok(Term::Throttled),
        "offline" => Ok(Term::Offline),
        _ => CpuSet::parse(word).map(Term::Cpus).map_err(|_| wrong()),
    }
}

fn holds(term: &Term, cpu: &CpuRate) -> bool {
    let value = |quantity: Quantity| match quantity {
        Quantity::BusyPercent => cpu.busy_ratio.get().map(|r| r * 100.0),
        Quantity::WakeupsPerSecond => cpu.wakeups_per_s.get(),
        Quantity::Mhz => cpu.freq_khz.get().map(|khz| khz as f64 / 1e3),
    };
    match term {
        Term::Cpus(set) => set.contains(cpu.cpu),
        Term::Above(quantity, limit) => value(*quantity).is_some_and(|v| v > *limit),
        Term::Below(quantity, limit) => value(*quantity).is_some_and(|v| v < *limit),
        Term::Package(n) => cpu.package == Some(*n),
        Term::Node(n) => cpu.node == Some(*n),
        Term::Asleep => cpu.is_asleep_throughout(),
        Term::Limited => cpu.limit.get().is_some_and(|l| l != LatencyLimit::None),
        Term::Throttled => cpu.throttles_per_s.get().is_some_and(|t| t > 0.0),
        Term::Offline => !cpu.is_online,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::watch::{Reading, Why};

    #[test]
    fn terms_are_anded_and_unknown_numbers_match_nothing() {
        let cpu =
            |n, busy| CpuRate { cpu: n, package: Some(1), is_online: true, busy_ratio: busy, ..CpuRate::default() };
        let filter = Filter::parse("0-3 busy>50 package=1").unwrap();
        assert!(filter.matches(&cpu(2, Reading::Known(0.6))));
        assert!(!filter.matches(&cpu(2, Reading::Known(0.4))));
        assert!(!filter.matches(&cpu(5, Reading::Known(0.6))));
        assert!(!filter.matches(&cpu(2, Reading::Missing(Why::Denied))));
        assert!(Filter::parse("").unwrap().matches(&cpu(9, Reading::Known(0.0))));
        for bad in ["busy>x", "heat>3", "foo", "package=x", "busy>"] {
            assert!(Filter::parse(bad).unwrap_err().contains("use a CPU list"), "{bad}");
        }
    }
}
