//! One level of load against an open shop: clients come in, a window is recorded, what was under way is let finish.
//!
//! Phases: settle (nothing runs), ramp (clients come in, or the rate runs already), recorded, ramp down (load goes on,
//! so that nobody in the window has it easier at its end). Then nothing new is planned, and requests under way may end
//! within the time-out. The window begins when the meters have been read once; watts, CPU time, idle states and requests
//! are all of that window.
//!
//! A level that broke a rule is kept and says so. It is abandoned only where there is nothing to keep: the server died, or
//! nobody answers any more.
//!
//! Server and clients go to their CPUs at the beginning of each level: an arm may have taken one offline and brought it back,
//! and threads that lost a CPU so do not find it again by themselves.

use super::Shop;
use super::client::{Failure, Generator, Pace, Tally, client_spec};
use super::rules::broken_rules;
use super::usage::{CpuOf, GeneratorUse, Usage, Used};
use crate::bench::IdleBaseline;
use crate::load;
use crate::load::rules::{Surroundings, environment, silences};
use crate::load::usage::{load_average, n_smis};
use crate::load::within::{N_PARTS, cpu_per_op};
use crate::meters::Meters;
use crate::noise::NoiseCounters;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use wakewatt_core::samples::Window;
use wakewatt_core::samples::broken_rule::BrokenRule;
use wakewatt_core::samples::energy::EnergySample;
use wakewatt_core::samples::load::{Ask, CpuBy, Length, Level};
use wakewatt_core::source::Source;
use wakewatt_core::units::show_ns;
use wakewatt_host::clock::monotonic_ns;

/// How often it is looked whether all is well: also how soon a stop is obeyed.
const TICK_NS: u64 = 100_000_000;
/// So long without any good answer while requests fail: nobody is there any more.
const LOST_NS: u64 = 5_000_000_000;
/// Settle, ramp up, recorded, ramp down.
pub fn default_phases(length: Length) -> [u64; 4] {
    let s = |n: u64| n * 1_000_000_000;
    match length {
        Length::Quick => [s(1), s(3), s(10), s(1)],
        Length::SpecLike => [s(10), s(30), s(240), s(30)],
        _ => [s(5), s(10), s(60), s(5)],
    }
}

/// A level, and what the clients did.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    pub level: Level,
    pub generator: GeneratorUse,
}

/// What the window held beside requests.
struct Around {
    window: Window,
    used: Used,
    /// CPU time of the server's CPUs in each part of the window.
    cpu_of_parts: Vec<u64>,
    idle: Vec<wakewatt_core::samples::IdleDelta>,
    energy: Option<EnergySample>,
    load_average: Option<f64>,
    notes: Vec<String>,
    beside: Surroundings,
    n_client_cpus: usize,
    is_interrupted: bool,
}

impl Shop {
    /// One level. Phases are settle, ramp up, recorded, ramp down; setting the flag ends it early.
    pub fn level(
        &mut self,
        ask: Ask,
        phases_ns: [u64; 4],
        stop: &AtomicBool,
        src: &dyn Source,
    ) -> Result<Level, String> {
        self.ran(ask, phases_ns, stop, src).map(|ran| ran.level)
    }

    /// The same, and what the clients did.
    pub fn ran(&mut self, ask: Ask, phases_ns: [u64; 4], stop: &AtomicBool, src: &dyn Source) -> Result<Ran, String> {
        let [settle_ns, ramp_ns, record_ns, down_ns] = phases_ns;
        let pace = match ask {
            Ask::Clients(n) if n > self.n_fit => {
                return Err(format!(
                    "they do not fit, {} do; raise the hard limit of open files (ulimit -Hn)",
                    self.n_fit
                ));
            }
            Ask::Clients(n) => Pace::Clients { n, think_ns: self.spec.think_ns, ramp_ns },
            Ask::Rate(per_s) if per_s > 0.0 && per_s.is_finite() => Pace::Rate { per_s, most_open: self.n_fit.max(1) },
            Ask::Idle => Pace::Clients { n: 0, think_ns: self.spec.think_ns, ramp_ns },
            _ => return Err("the shop is asked for clients, a rate, or idle".into()),
        };
        self.n_levels += 1;
        let displaced = self.server.as_ref().and_then(|server| server.confine(&self.places.server).err());
        self.pass(monotonic_ns() + settle_ns, stop, None)?;
        let spec = client_spec(self, pace);
        let n_threads = spec.n_threads;
        let generator = Generator::start(spec)?;
        let recorded = self.pass(monotonic_ns() + ramp_ns, stop, Some(&generator));
        let mut around = match recorded.and_then(|()| self.record([ramp_ns, record_ns], stop, src, &generator)) {
            Ok(around) => around,
            // The thread that ended knows why.
            Err(why) if generator.is_broken() => return Err(generator.halt().err().unwrap_or(why)),
            Err(why) => return Err(why),
        };
        if self.is_here {
            around.notes.extend(self.places.offline(src));
            let server = &self.places.server;
            around.notes.extend(displaced.map(|why| format!("the server cannot be kept on CPUs {server}: {why}")));
            let n_displaced = generator.shared().n_displaced.load(Relaxed);
            if n_displaced > 0 {
                let n = format!("{n_displaced} of {n_threads} threads of the clients");
                around.notes.push(format!("{n} could not run on CPUs {} (offline?)", self.places.clients));
            }
        }
        if !around.is_interrupted {
            self.pass(monotonic_ns() + down_ns, stop, Some(&generator))?;
        }
        generator.close();
        let last_ns = monotonic_ns() + self.spec.timeout_ns;
        while generator.shared().n_under_way.load(Relaxed) > 0 && monotonic_ns() < last_ns && !stop.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let tally = generator.halt()?;
        if let Some(why) = self.server.as_mut().and_then(|s| s.has_ended()) {
            return Err(format!("{why}; nothing of this level counts"));
        }
        Ok(self.summed(ask, phases_ns, n_threads, &tally, around))
    }

    /// Waits, looking after server and target. A stop is an error here: nothing was recorded yet.
    fn pass(&mut self, until_ns: u64, stop: &AtomicBool, generator: Option<&Generator>) -> Result<(), String> {
        if self.watch(until_ns, stop, generator)? { Ok(()) } else { Err("interrupted".into()) }
    }

    /// Waits until then; false where it was stopped.
    fn watch(&mut self, until_ns: u64, stop: &AtomicBool, generator: Option<&Generator>) -> Result<bool, String> {
        let mut silence = Silence::default();
        loop {
            if stop.load(Relaxed) {
                return Ok(false);
            }
            if let Some(why) = self.server.as_mut().and_then(|s| s.has_ended()) {
                return Err(format!("{why}; nothing of this level counts"));
            }
            let now_ns = monotonic_ns();
            if let Some(generator) = generator {
                if generator.is_broken() {
                    return Err("a thread of the clients ended early; please report this".into());
                }
                let (good, bad) = (generator.shared().n_good.load(Relaxed), generator.shared().n_bad.load(Relaxed));
                if silence.is_lost(good, bad, now_ns) {
                    let silent = show_ns(LOST_NS);
                    return Err(format!("{}: no good answer for {silent} ({bad} failed)", self.target.at));
                }
            }
            if now_ns >= until_ns {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_nanos(TICK_NS.min(until_ns - now_ns)));
        }
    }

    fn record(
        &mut self,
        [ramp_ns, record_ns]: [u64; 2],
        stop: &AtomicBool,
        src: &dyn Source,
        generator: &Generator,
    ) -> Result<Around, String> {
        let recorder = self.spec.meters.as_ref().map(Meters::start);
        let cpus = self.places.server.clone();
        let idle = IdleBaseline::read(src, &cpus.iter().collect::<Vec<_>>());
        let both = cpus.union(&self.places.clients);
        let before = Usage::read(self.cpu_of, &self.target, &cpus, src);
        let noise_at_ns = monotonic_ns();
        let noise = NoiseCounters::read(src, &both, before.ours_ns(self.cpu_of).unwrap_or(0)).without_interrupts();
        let smis = n_smis(src, &cpus);
        let start_at_ns = monotonic_ns();
        let recorded = &generator.shared().recorded;
        recorded.end(start_at_ns + record_ns);
        recorded.begin(start_at_ns);
        let mut edges = vec![before.cpus().clone()];
        let mut is_whole = true;
        for part in 1..=N_PARTS as u64 {
            let edge_ns = start_at_ns + record_ns / N_PARTS as u64 * part;
            let edge_ns = if part == N_PARTS as u64 { start_at_ns + record_ns } else { edge_ns };
            is_whole = is_whole && self.watch(edge_ns, stop, Some(generator))?;
            edges.push(load::usage::Usage::read(src, &cpus, monotonic_ns()));
        }
        let cpu_of_parts = edges.windows(2).map(|edge| edge[1].since(&edge[0]).cpu_ns).collect();
        let end_at_ns = if is_whole { start_at_ns + record_ns } else { monotonic_ns() };
        recorded.end(end_at_ns);
        let after = Usage::read(self.cpu_of, &self.target, &cpus, src);
        let used = after.since(&before).within(end_at_ns - start_at_ns);
        let idle = idle.since(src);
        // Where the server's own time is not known, nobody can tell it from that of others; steal and throttling one can.
        let ours_ns = after.ours_ns(self.cpu_of).filter(|_| before.ours_ns(self.cpu_of).is_some());
        let noise_ns = monotonic_ns() - noise_at_ns;
        let now = NoiseCounters::read(src, &both, ours_ns.unwrap_or(u64::MAX)).without_interrupts();
        let noise = now.since(&noise, noise_ns);
        // Of a server of our own it is known where it runs, too; one that somebody else has started may run on other CPUs.
        let is_known = self.server.is_some() && ours_ns.is_some() && !used.cpus.is_empty();
        let since = n_smis(src, &cpus).zip(smis).map_or(0, |(now, then)| now.saturating_sub(then));
        // Of a server elsewhere this machine says nothing.
        let (notes, beside) = match self.is_here {
            true => {
                let (steal_ratio, n_throttles) = (noise.steal_ratio, noise.n_throttles);
                let foreign_ratio = is_known.then_some(noise.foreign_ratio.max(0.0));
                // A share that is known is told by the rules.
                let noise = if foreign_ratio.is_some() { noise.without_others() } else { noise };
                (
                    noise.notes(),
                    Surroundings { capacity_per_s: None, steal_ratio, n_throttles, n_smis: since, foreign_ratio },
                )
            }
            false => (Vec::new(), Surroundings::default()),
        };
        let load_average = load_average(src, ramp_ns.saturating_add(end_at_ns - start_at_ns)).filter(|_| self.is_here);
        let window = Window { start_at_ns, end_at_ns };
        let energy = recorder.map(|recorder| recorder.stop_within(window));
        let energy = energy.zip(self.spec.meters.as_ref()).and_then(|(sample, meters)| meters.said(sample));
        let (n_client_cpus, is_interrupted) = (self.places.n_client_cpus(src), !is_whole);
        Ok(Around {
            window,
            used,
            cpu_of_parts,
            idle,
            energy,
            load_average,
            notes,
            beside,
            n_client_cpus,
            is_interrupted,
        })
    }

    /// CPU time of the requests, and its part in the kernel; how it was counted, where it was.
    fn cost(&self, used: &Used) -> (Option<(u64, u64)>, Option<CpuBy>) {
        let is_apart = self.places.server.and(&self.places.clients).is_empty();
        let is_own = self.cpu_of == CpuOf::ServerProcess;
        // A server that we started runs where we put it, with all that belongs to it.
        let busy = used.busy.filter(|_| is_own && self.server.is_some() && is_apart);
        let machine = used.machine.filter(|_| self.is_here && (is_own || self.cpu_of == CpuOf::Machine));
        let counted = [(busy, CpuBy::BusyCpus), (machine, CpuBy::MachineLessOwn), (used.server, CpuBy::Process)];
        let found = counted.into_iter().find_map(|(cost, by)| Some((cost?, by)));
        (found.map(|(cost, _)| cost), found.map(|(_, by)| by))
    }

    fn summed(&self, ask: Ask, phases_ns: [u64; 4], n_threads: u32, tally: &Tally, around: Around) -> Ran {
        let window_s = around.window.length_ns().max(1) as f64 / 1e9;
        let n_failed = tally.n_failed();
        let n_done = tally.n_planned.saturating_sub(n_failed);
        let (server, cpu_by) = self.cost(&around.used);
        let parts_ns = if cpu_by == Some(CpuBy::BusyCpus) { &around.cpu_of_parts[..] } else { &[] };
        let per_op = cpu_per_op(tally.ended(), parts_ns, around.window.length_ns());
        let mut level = Level {
            ask,
            phases_ns,
            window: around.window,
            target_per_s: if let Ask::Rate(per_s) = ask { Some(per_s) } else { None },
            n_planned: tally.n_planned,
            n_done,
            n_failed,
            per_s: tally.n_answered as f64 / window_s,
            figure: None,
            latency: tally.latency(),
            service: tally.service(),
            parts: tally.parts(&self.pages()),
            cpu_per_op: per_op.filter(|_| !around.is_interrupted),
            cpu_ns: server.map_or(0, |(all, _)| all),
            cpu_by,
            system_ns: server.map_or(0, |(_, system)| system),
            cpus: around.used.cpus,
            foreign_ratio: around.beside.foreign_ratio,
            load_average: around.load_average,
            idle: around.idle,
            energy: around.energy,
            disturbances: around.notes,
            broken_rules: Vec::new(),
        };
        let generator = GeneratorUse {
            n_threads,
            cpu_ns: around.used.own.map(|(all, _)| all),
            system_ns: around.used.own.map(|(_, system)| system),
            late: tally.late(),
            failures: tally.failures.iter().map(|(why, n)| (Failure::word(*why), *n)).collect(),
        };
        if server.is_none() && self.cpu_of != CpuOf::Unknown {
            level.disturbances.push("the server did not say what CPU time it used".into());
        }
        level.disturbances.extend(silences(level.energy.as_ref()));
        if around.is_interrupted {
            let part = show_ns(level.window.length_ns());
            level.broken_rules.push(format!("interrupted after {part} of {}", show_ns(phases_ns[2])).into());
        }
        level
            .broken_rules
            .extend(broken_rules(&level, &generator, around.n_client_cpus).into_iter().map(BrokenRule::Said));
        level.broken_rules.extend(environment(level.energy.as_ref(), &around.beside));
        Ran { level, generator }
    }
}

/// Since when nobody has had a good answer.
#[derive(Debug, Default)]
struct Silence {
    n_good: u64,
    n_bad: u64,
    since_ns: Option<u64>,
}

impl Silence {
    /// Only failures are signs of it: clients who think for long do not ask, and so get no answer.
    fn is_lost(&mut self, n_good: u64, n_bad: u64, now_ns: u64) -> bool {
        if n_good != self.n_good {
            *self = Silence { n_good, n_bad, since_ns: None };
        }
        if n_bad == self.n_bad {
            return false;
        }
        self.n_bad = n_bad;
        now_ns - *self.since_ns.get_or_insert(now_ns) > LOST_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shop::server::tests::Open;
    use crate::shop::{Serving, ShopSpec};
    use wakewatt_core::source::Tree;

    const PHASES: [u64; 4] = [0, 100_000_000, 500_000_000, 0];

    fn spec(open: &Open) -> ShopSpec {
        ShopSpec {
            serving: Serving::Elsewhere { url: format!("http://{}", open.at), mix: None },
            cpus: None,
            client_cpus: None,
            n_clients: 10,
            think_ns: 20_000_000,
            // Nobody is late because the machine is busy.
            timeout_ns: 120_000_000_000,
            seed: 1,
            meters: None,
        }
    }

    /// The same level, each time twice as long, until something was done in it: a busy machine may take its time.
    fn patiently(mut run: impl FnMut([u64; 4]) -> Ran, is_enough: impl Fn(&Ran) -> bool) -> (Ran, [u64; 4]) {
        let mut phases = PHASES;
        loop {
            let ran = run(phases);
            if is_enough(&ran) || phases[2] > 20_000_000_000 {
                return (ran, phases);
            }
            phases[2] *= 2;
        }
    }

    #[test]
    fn levels_of_clients_rates_and_idle() {
        let (open, stop, src) = (Open::shop(), AtomicBool::new(false), Tree::default());
        let mut shop = Shop::start(spec(&open), &stop, &src).unwrap();
        assert!(shop.is_here && shop.cpu_of == CpuOf::ServerProcess && shop.n_fit == 10);
        let run = |phases| shop.ran(Ask::Clients(3), phases, &stop, &src).unwrap();
        let (ran, phases) = patiently(run, |ran| ran.level.n_done > 0);
        let level = &ran.level;
        assert!(level.n_planned > 0 && level.n_done > 0 && level.per_s > 0.0, "{level:?}");
        assert_eq!(level.n_planned, level.n_done + level.n_failed);
        assert_eq!(level.foreign_ratio, None, "a server that somebody else has started may run anywhere");
        assert!(
            level.broken_rules.iter().all(|why| !why.to_string().contains("other processes")),
            "{:?}",
            level.broken_rules
        );
        assert_eq!((level.parts.len(), level.window.length_ns(), level.energy.is_none()), (7, phases[2], true));
        assert!(level.cpu_ns > 0 && ran.generator.late.n == level.n_planned);
        let run = |phases| shop.ran(Ask::Rate(40.0), phases, &stop, &src).unwrap();
        let (rate, phases) = patiently(run, |ran| ran.level.n_planned >= 3);
        let most = 40.0 * phases[2] as f64 / 1e9 + 40.0;
        let n_planned = rate.level.n_planned;
        assert!(rate.level.target_per_s == Some(40.0) && n_planned >= 3, "{n_planned}");
        assert!((n_planned as f64) < most, "{n_planned} of {most}");
        let idle = shop.level(Ask::Idle, PHASES, &stop, &src).unwrap();
        assert_eq!((idle.n_planned, idle.latency, idle.broken_rules), (0, None, vec![]));
        assert!(shop.level(Ask::Share(0.5), PHASES, &stop, &src).is_err());
        assert!(shop.level(Ask::Clients(11), PHASES, &stop, &src).unwrap_err().contains("ulimit"));
        assert!(shop.level(Ask::Rate(f64::NAN), PHASES, &stop, &src).is_err());
    }

    #[test]
    fn cpus_that_are_offline_are_in_the_levels_notes() {
        let (open, stop) = (Open::shop(), AtomicBool::new(false));
        let nothing = Tree::from_text("//- /sys/devices/system/cpu/online\n4000\n");
        let mut shop = Shop::start(spec(&open), &stop, &nothing).unwrap();
        let notes = shop.level(Ask::Clients(1), PHASES, &stop, &nothing).unwrap().disturbances;
        let n = shop.places.clients.len();
        assert!(notes.iter().any(|note| note.starts_with(&format!("{n} of {n} client CPU"))), "{notes:?}");
    }

    #[test]
    fn only_failures_without_a_good_answer_between_are_silence() {
        let (mut silence, s) = (Silence::default(), LOST_NS);
        assert!(!silence.is_lost(5, 1, 0));
        assert!(!silence.is_lost(5, 2, s), "the first");
        assert!(!silence.is_lost(5, 2, 9 * s), "who thinks for long does not ask");
        assert!(silence.is_lost(5, 3, 9 * s));
        assert!(!silence.is_lost(6, 4, 10 * s) && !silence.is_lost(6, 5, 20 * s), "a good answer between");
        assert!(!silence.is_lost(6, 6, 21 * s) && silence.is_lost(6, 7, 22 * s));
        let mut never = Silence::default();
        assert!(!never.is_lost(0, 3, 0) && never.is_lost(0, 9, s + 1), "nobody ever answered");
    }

    #[test]
    fn a_stop_keeps_what_was_recorded() {
        let (open, stop, src) = (Open::shop(), AtomicBool::new(false), Tree::default());
        let mut shop = Shop::start(spec(&open), &stop, &src).unwrap();
        let mut before_ms = 700;
        let level = loop {
            stop.store(false, Relaxed);
            let ran = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(before_ms));
                    stop.store(true, Relaxed);
                });
                shop.ran(Ask::Clients(3), [0, 0, 600_000_000_000, 0], &stop, &src)
            });
            match ran {
                Ok(ran) if ran.level.n_done > 0 || before_ms > 30_000 => break ran.level,
                Err(why) if before_ms > 30_000 => panic!("{why}"),
                _ => before_ms *= 2,
            }
        };
        assert!(
            level.broken_rules[0].to_string().contains("interrupted after") && level.n_done > 0,
            "{:?}",
            level.broken_rules
        );
        assert_eq!(shop.level(Ask::Clients(3), PHASES, &stop, &src).unwrap_err(), "interrupted");
    }
}
