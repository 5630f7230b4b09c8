//! Is this machine fit for a benchmark, now? Two seconds, before an hour of numbers that nobody can use.
//!
//! Jobs that flap mostly run on machines that were never looked at: a shared guest, a clock that follows load, a neighbour on
//! the same core. What can be read is read and each thing gets a word and a line that changes it; what cannot be read (whose
//! guests share this host) is measured by doing the same work twice (`aa.rs`), while the kernel counts what others and the
//! hypervisor took. Nothing is changed, and nothing needs root.

mod aa;

pub use aa::SelfDifference;

use crate::context::Lab;
use crate::noise::NoiseCounters;
use crate::pick;
use serde::Serialize;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::enterable::{self, Enterable};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::taken::{FOREIGN_RATIO, STEAL_RATIO};
use wakewatt_core::units::show_ns;
use wakewatt_words::{say, word};

/// What is read: all of a large machine's facts would take longer than the two seconds.
const TOPICS: [&str; 7] = ["idle", "qos", "freq", "topology", "thermal", "virt", "load"];
/// An idle state that takes longer to leave is in the numbers of whatever sleeps in between.
const DEEP_NS: u64 = 20_000;

/// A thing that decides about benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// Which policy drives the clock.
    Governor,
    /// Whether the clock may exceed its base.
    Turbo,
    /// How deep idle CPUs sleep.
    Idle,
    /// Whether two CPUs share a core.
    Smt,
    /// Whether this is a guest.
    Guest,
    /// What the hypervisor took while it was looked.
    Steal,
    /// What other processes took while it was looked.
    Others,
    /// Whether the processor throttled while it was looked.
    Heat,
}

/// How one of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fitness {
    /// No reason to worry.
    Good,
    /// Adds noise to benchmarks, or a bias.
    Noisy,
    /// Nothing here tells.
    Unknown,
}

/// One of them, looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Looked {
    /// What was looked at.
    pub matter: Matter,
    /// How it is.
    pub fitness: Fitness,
    /// What was found, and what it does.
    pub says: String,
    /// What would help; none where nothing has to, or nothing here can.
    pub remedy: Option<String>,
}

/// What two seconds showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Preflight {
    /// By how much the machine differs from itself; none where that could not be measured.
    pub self_difference: Option<SelfDifference>,
    /// Why it was not measured.
    pub not_measured_because: Option<String>,
    /// Share of the CPUs' time that the hypervisor took; none where the kernel does not count it.
    pub steal_ratio: Option<f64>,
    /// Share that other processes used.
    pub foreign_ratio: Option<f64>,
    /// Times the processor throttled meanwhile.
    pub n_throttles: u64,
    /// Everything that was looked at.
    pub looked: Vec<Looked>,
    /// How long it all took.
    pub took_ns: u64,
}

/// Looks, works, and looks again.
pub fn preflight(lab: Lab<'_>, allowed: &CpuSet) -> Preflight {
    let start_ns = lab.clock.now_ns();
    let facts = Snapshot::read(lab.src, |topic| TOPICS.contains(&topic));
    let read = || NoiseCounters::read(lab.src, allowed, lab.clock.own_cpu_ns());
    let (before, from_ns) = (read(), lab.clock.now_ns());
    let measured = match pick::sleeper(allowed) {
        Some(cpu) => aa::measure(cpu, pick::seed_of_now(), lab.stop),
        None => Err(word!("no CPU may be used").into()),
    };
    let (after, to_ns) = (read(), lab.clock.now_ns());
    let noise = after.since(&before, to_ns.saturating_sub(from_ns));
    let taken = (before.is_known() && after.is_known()).then(|| noise.taken());
    let (self_difference, why) = match measured {
        Ok(Some(found)) => (Some(found), None),
        Ok(None) if lab.is_stopped() => (None, Some(word!("interrupted").to_string())),
        Ok(None) => (None, Some(word!("this CPU was taken away for most of the time").to_string())),
        Err(why) => (None, Some(why)),
    };
    let mut looked = of_facts(&facts);
    // Most hypervisors tell a guest of no steal at all: where none was told since boot, a zero says nothing.
    let is_told = facts.virt.is_guest() != Some(true) || facts.load.stat.get().is_some_and(|s| s.total.steal_ns > 0);
    let steal = taken.map(|t| t.steal_ratio).filter(|ratio| is_told || *ratio > 0.0);
    looked.push(share(Matter::Steal, steal, STEAL_RATIO));
    looked.push(share(Matter::Others, taken.and_then(|t| t.foreign_ratio), FOREIGN_RATIO));
    looked.push(heat(&facts, noise.n_throttles));
    Preflight {
        self_difference,
        not_measured_because: why,
        steal_ratio: taken.map(|t| t.steal_ratio),
        foreign_ratio: taken.and_then(|t| t.foreign_ratio),
        n_throttles: noise.n_throttles,
        looked,
        took_ns: lab.clock.now_ns().saturating_sub(start_ns),
    }
}

/// What the settings say.
fn of_facts(facts: &Snapshot) -> Vec<Looked> {
    vec![governor(facts), turbo(facts), idle(facts), smt(facts), guest(facts)]
}

fn good(matter: Matter, says: impl Into<String>) -> Looked {
    Looked { matter, fitness: Fitness::Good, says: says.into(), remedy: None }
}

fn noisy(matter: Matter, says: impl Into<String>, remedy: Option<&str>) -> Looked {
    Looked { matter, fitness: Fitness::Noisy, says: says.into(), remedy: remedy.map(ToString::to_string) }
}

fn unknown(matter: Matter, says: &str) -> Looked {
    Looked { matter, fitness: Fitness::Unknown, says: says.into(), remedy: None }
}

fn governor(facts: &Snapshot) -> Looked {
    let governors = facts.freq.governors();
    let mut names: Vec<&str> = governors.known().map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    match names[..] {
        [] => unknown(Matter::Governor, word!("no cpufreq here: whoever owns the hardware sets the clock")),
        ["performance"] => good(Matter::Governor, word!("performance: the clock does not wait for load")),
        _ => noisy(
            Matter::Governor,
            say!("{}: the clock follows load, so short runs measure its ramp", names.join(", ")),
            Some("sudo wakewatt tune apply --set freq.governor=performance"),
        ),
    }
}

fn turbo(facts: &Snapshot) -> Looked {
    match facts.freq.is_turbo_allowed() {
        None => unknown(Matter::Turbo, word!("no switch says whether the clock may exceed its base")),
        Some(false) => good(Matter::Turbo, word!("off: the clock does not depend on heat and on who else works")),
        Some(true) => noisy(
            Matter::Turbo,
            word!("on: the clock depends on heat and on how many cores work; off, numbers are lower and steadier"),
            Some("sudo wakewatt tune apply --set freq.boost=off"),
        ),
    }
}

fn idle(facts: &Snapshot) -> Looked {
    if facts.virt.is_guest() == Some(true) {
        return unknown(
            Matter::Idle,
            word!("a guest: the hypervisor decides how deep idle CPUs sleep, and nothing here shows it"),
        );
    }
    let all = enterable::of(facts);
    if let Some(cause) = all.iter().find_map(Enterable::spins) {
        return noisy(
            Matter::Idle,
            say!("idle CPUs spin ({}), which takes turbo headroom from the others", cause.words()),
            None,
        );
    }
    let deepest = all.iter().filter_map(Enterable::deepest).filter_map(|row| Some((row.exit_latency_ns?, &row.name)));
    match deepest.max() {
        None => {
            unknown(Matter::Idle, word!("no idle states to be seen: the hypervisor decides how deep idle CPUs sleep"))
        }
        Some((ns, name)) if ns <= DEEP_NS => {
            good(Matter::Idle, say!("{name} is the deepest state allowed and claims {} to leave", show_ns(ns)))
        }
        Some((ns, name)) => noisy(
            Matter::Idle,
            say!("{name} claims {} to leave, so whatever waits in between pays that now and then", show_ns(ns)),
            Some("sudo wakewatt tune apply --max-latency 20us"),
        ),
    }
}

fn smt(facts: &Snapshot) -> Looked {
    match facts.topology.is_smt_active.get() {
        None => unknown(Matter::Smt, word!("nothing says whether CPUs share cores")),
        Some(false) => good(Matter::Smt, word!("no CPU shares its core with another one of this system")),
        Some(true) => noisy(
            Matter::Smt,
            word!("on: whoever works on the other half of a core takes from this one"),
            Some(word!("leave the sibling of every measured CPU idle (wakewatt inspect topology lists them)")),
        ),
    }
}

fn guest(facts: &Snapshot) -> Looked {
    match facts.virt.is_guest() {
        None => unknown(Matter::Guest, word!("nothing says whether this is a guest")),
        Some(false) => good(Matter::Guest, word!("the metal itself, as far as can be told")),
        Some(true) => {
            let guest = match facts.virt.hypervisors.first() {
                Some(clue) => say!("a guest of {}", clue.name),
                None => word!("a guest").into(),
            };
            noisy(
                Matter::Guest,
                say!("{guest}: neighbours share caches, memory and clock, and are seen only by what they cost"),
                Some(word!("run both sides of a comparison in one job, taking turns, and several times")),
            )
        }
    }
}

fn share(matter: Matter, ratio: Option<f64>, limit: f64) -> Looked {
    let why = if matter == Matter::Steal {
        word!("this guest was told of none since boot")
    } else {
        word!("not counted here")
    };
    let Some(ratio) = ratio else { return unknown(matter, why) };
    let percent = say!("{:.1} % of the CPUs' time meanwhile", ratio.max(0.0) * 100.0);
    match (ratio <= limit, matter) {
        (true, _) => good(matter, percent),
        (false, Matter::Steal) => noisy(matter, say!("{percent}: the host is shared and full"), None),
        (false, _) => {
            noisy(matter, percent, Some(word!("see who it is with wakewatt trace, or wait: doctor --wait-quiet 5min")))
        }
    }
}

fn heat(facts: &Snapshot, n_throttles: u64) -> Looked {
    match (n_throttles, facts.thermal.was_throttled()) {
        (0, None) => unknown(Matter::Heat, word!("no counter of throttling here")),
        (0, Some(false)) => good(Matter::Heat, word!("not throttled since boot")),
        (0, Some(true)) => good(Matter::Heat, word!("not throttled meanwhile, but since boot")),
        (n, _) => {
            noisy(Matter::Heat, say!("throttled {n} times meanwhile"), Some(word!("let it cool, or look at the fans")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn looked(text: &str) -> Vec<(Matter, Fitness)> {
        let facts = Snapshot::read(&Tree::from_text(text), |_| true);
        of_facts(&facts).iter().map(|l| (l.matter, l.fitness)).collect()
    }

    #[test]
    fn what_nothing_tells_is_unknown_and_not_good() {
        for (matter, fitness) in looked("//- /proc/stat\ncpu0 1 1 1 1 1 1 1 1\n") {
            assert_eq!(fitness, Fitness::Unknown, "{matter:?}");
        }
        assert_eq!(share(Matter::Steal, None, STEAL_RATIO).fitness, Fitness::Unknown);
        assert_eq!(heat(&Snapshot::default(), 0).fitness, Fitness::Unknown);
    }

    #[test]
    fn settings_that_add_noise_are_named_with_what_helps() {
        let root = "/sys/devices/system/cpu";
        let host = |governor: &str, latency_us: u32, smt: u8, turbo_off: u8| {
            format!(
                "//- {root}/online\n0-1\n//- {root}/present\n0-1\n//- {root}/cpufreq/policy0/scaling_governor\n{governor}\n\
                 //- {root}/cpufreq/policy0/affected_cpus\n0 1\n//- {root}/intel_pstate/no_turbo\n{turbo_off}\n\
                 //- {root}/smt/active\n{smt}\n//- {root}/cpuidle/current_driver\nintel_idle\n\
                 //- {root}/cpu0/cpuidle/state1/name\nC6\n//- {root}/cpu0/cpuidle/state1/latency\n{latency_us}\n\
                 //- {root}/cpu0/cpuidle/state1/disable\n0\n"
            )
        };
        let of = |text: &str| looked(text)[..4].iter().map(|(_, fitness)| *fitness).collect::<Vec<_>>();
        assert_eq!(of(&host("powersave", 133, 1, 0)), [Fitness::Noisy; 4]);
        assert_eq!(of(&host("performance", 2, 0, 1)), [Fitness::Good; 4]);
        let facts = Snapshot::read(&Tree::from_text(&host("powersave", 133, 1, 0)), |_| true);
        assert!(of_facts(&facts)[..4].iter().all(|l| l.remedy.is_some()), "noise without a remedy");
        assert!(idle(&facts).says.contains("C6 claims 133us to leave"), "{:?}", idle(&facts));
    }

    #[test]
    fn shares_are_judged_by_the_bounds_of_blocks() {
        assert_eq!(share(Matter::Steal, Some(0.004), STEAL_RATIO).fitness, Fitness::Good);
        assert_eq!(share(Matter::Steal, Some(0.02), STEAL_RATIO).fitness, Fitness::Noisy);
        assert!(share(Matter::Others, Some(0.5), FOREIGN_RATIO).says.contains("50.0 %"));
        assert_eq!(heat(&Snapshot::default(), 3).fitness, Fitness::Noisy);
    }
}
