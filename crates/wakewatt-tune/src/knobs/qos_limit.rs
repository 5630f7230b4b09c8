//! Latency limits as knobs: `qos.global` for the machine, `qos.cpu` for one CPU; words `none`, `poll` or `50us`.
//!
//! The two files give the number 0 opposite meanings (`units.rs`), so people never say it. A limit below the exit
//! latency of the shallowest sleeping state leaves only POLL: every idle CPU spins, turbo headroom is gone. 1us does that
//! on Skylake-SP (C1: 2us) and not on Ice Lake-SP (C1: 1us), so a number that comes to polling is refused unless the word
//! is `poll` (docs/knobs/idle.md). What is in force is the smallest of all requests, other people's included, resolved against
//! the idle table. Sources: Documentation/power/pm_qos_interface.rst, ABI/testing/sysfs-devices-power.

use super::one_file;
use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::then::HOLD;
use wakewatt_core::budget;
use wakewatt_core::enterable;
use wakewatt_core::facts::pm_qos::{self, GLOBAL, cpu_limit_path};
use wakewatt_core::source::ErrorKind;
use wakewatt_core::units::LatencyLimit;
use wakewatt_host::sink::hold;
use wakewatt_words::word;

/// `qos.global`.
pub struct GlobalLatency;
/// `qos.cpu`.
pub struct CpuLatency;

const WORDS: &str = "none, poll, or a latency with its unit (50us)";

const ABOUT_GLOBAL: About = About {
    id: "qos.global",
    title: "latency limit for all CPUs",
    unit: WORDS,
    scope: Scope::Machine,
    io_scope: Scope::Machine,
    stage: Stage::Latency,
    reversible: Reversible::ByItself,
    price: Price {
        up: "idle CPUs sleep deeper again: fewer watts, slower wake-ups",
        down: "idle CPUs leave out the states above the limit: more watts, less turbo headroom for the busy ones",
    },
    risk: "in force only while a process holds it; another holder's smaller limit wins; ignored where no cpuidle driver runs",
    overlaps: &["latency limit"],
    moves: &[],
    source: "Documentation/power/pm_qos_interface.rst; kernel/power/qos.c",
};

const ABOUT_CPU: About = About {
    id: "qos.cpu",
    title: "latency limit for one CPU",
    unit: WORDS,
    scope: Scope::Cpu,
    io_scope: Scope::Core,
    reversible: Reversible::Exactly,
    price: Price {
        up: "this CPU sleeps deeper again: fewer watts, slower wake-ups",
        down: "for this CPU only; its core sleeps no deeper than its shallowest sibling",
    },
    risk: "one value shared by all of user space, owned by nobody; it stays after the writer's end and some hosts boot with one",
    overlaps: &["latency limit", "latency limit (annotations)"],
    source: "Documentation/ABI/testing/sysfs-devices-power (pm_qos_resume_latency_us)",
    ..ABOUT_GLOBAL
};

/// What the user means, or why that would be a mistake on these CPUs.
fn limit_of(host: &Host<'_>, site: &Site, word: &str) -> Result<LatencyLimit, String> {
    let limit = LatencyLimit::parse(word).map_err(|why| format!("{}: {why}", site.name))?;
    // The kernel keeps whole microseconds; rounding up would loosen the limit.
    let limit = match limit {
        LatencyLimit::AtMostNs(ns) if ns < 1000 => {
            return Err(format!("{}: less than 1us is polling: say poll if that is meant", site.name));
        }
        LatencyLimit::AtMostNs(ns) => LatencyLimit::AtMostNs((ns - ns % 1000).min(1_999_999_999_000)),
        word => word,
    };
    if let (false, Some(why)) = (limit == LatencyLimit::None, host.facts.idle.no_states_because()) {
        return Err(format!("{}: {limit} would act on nothing: {}", site.name, why.words()));
    }
    // Where every sleeping state is disabled, no limit is to blame.
    let spins = |r: &&budget::Resolution| r.is_polling && !r.excluded.is_empty() && !r.cpus.and(&site.cpus).is_empty();
    if limit != LatencyLimit::Poll {
        if let Some(r) = budget::resolve(limit, &host.facts.idle).iter().find(spins) {
            let first = r.excluded.first().map_or(String::new(), |c| format!("; the shallowest that sleeps is {c}"));
            return Err(format!("{}: {limit} would poll by accident{first}; say poll if that is meant", site.name));
        }
    }
    Ok(limit)
}

/// How much sleep a limit allows.
fn rank_of(shown: &str) -> Option<u64> {
    Some(match LatencyLimit::parse(shown).ok()? {
        LatencyLimit::Poll => 0,
        LatencyLimit::AtMostNs(ns) => ns,
        LatencyLimit::None => u64::MAX,
    })
}

/// `none`, `poll`, `50us`: whole microseconds, so that equal limits are equal texts.
fn canonical(limit: LatencyLimit) -> String {
    match limit {
        LatencyLimit::AtMostNs(ns) => format!("{}us", ns / 1000),
        word => word.to_string(),
    }
}

/// What a limit comes to; where C1 is entered as C1E, that is said, and only then is the register asked.
fn comes_to(host: &Host<'_>, limit: LatencyLimit, all: &[budget::Resolution], sentence: String) -> String {
    let ends_in_c1 = limit != LatencyLimit::None && all.iter().any(budget::Resolution::ends_in_c1);
    match ends_in_c1.then(|| host.c1_promoted()).flatten() {
        Some(on) => sentence + &budget::promoted(on),
        None => sentence,
    }
}

/// The limits of our own holders, as the sink reads them: from the command line. The device itself says only the smallest
/// of everybody's.
fn held_by_us(host: &Host<'_>) -> Result<Vec<String>, String> {
    let mut limits = Vec::new();
    for holder in host.facts.holders.open.iter().filter(|h| h.path == GLOBAL) {
        let path = format!("/proc/{}/cmdline", holder.pid);
        let may_be_ours = holder.comm.as_deref().is_none_or(|comm| comm.starts_with("wakewatt"));
        match host.source.read(&path) {
            Ok(line) => limits.extend(hold::limit_of(&line)),
            Err(e) if may_be_ours => return Err(format!("{path}: {}", e.detail)),
            Err(_) => {}
        }
    }
    Ok(limits)
}

impl Knob for GlobalLatency {
    fn about(&self) -> &'static About {
        &ABOUT_GLOBAL
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let unread = match host.source.read(GLOBAL) {
            Err(e) if e.kind == ErrorKind::Absent => {
                let because = word!("a container without /dev, or a kernel without PM QoS");
                return Err(one_file::missing(host, GLOBAL, because));
            }
            other => other.err().map(|e| e.detail),
        };
        let (now, unread) = match held_by_us(host) {
            Ok(limits) => (Some(hold::together(limits)), None),
            Err(why) => (None, Some(unread.unwrap_or(why))),
        };
        let (name, place) = (ABOUT_GLOBAL.id.into(), "machine".into());
        let valid = Valid::Text(WORDS.into());
        Ok(vec![Site {
            name,
            place,
            cpus: host.online(),
            path: HOLD.into(),
            now,
            unread,
            valid,
            refusal: None,
            kind: None,
        }])
    }
    fn encode(&self, host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        limit_of(host, site, word).map(canonical)
    }
    fn rank(&self, _: &str, _: &str, shown: &str) -> Option<u64> {
        rank_of(shown)
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        match (LatencyLimit::parse(requested), LatencyLimit::parse(read_back)) {
            (Ok(asked), Ok(now)) if asked == now => Kept::Exactly,
            (Ok(asked), Ok(now)) if now < asked => Kept::Legally(format!("somebody else asks for {now}")),
            _ => Kept::Not,
        }
    }
    fn is_ours(&self, ours: &str, now: &str) -> bool {
        // A change that was cut short leaves two holders, both of them ours.
        now.split(' ').any(|limit| limit == ours) || matches!(self.kept(ours, now), Kept::Legally(_))
    }
    fn effective(&self, host: &Host<'_>, _: &Site) -> Option<String> {
        let limit = *host.facts.qos.global.get()?;
        let said = budget::sentence(limit, &host.facts.idle);
        let all = budget::resolve(limit, &host.facts.idle);
        Some(if said.is_empty() { canonical(limit) } else { comes_to(host, limit, &all, said) })
    }
}

impl Knob for CpuLatency {
    fn about(&self) -> &'static About {
        &ABOUT_CPU
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let site = |cpu| {
            let valid = Valid::Text(WORDS.into());
            one_file::find(host, ABOUT_CPU.id, format!("cpu{cpu}"), one_file::only(cpu), cpu_limit_path(cpu), valid)
        };
        let sites: Vec<Site> = host.facts.cpus.running().filter_map(site).collect();
        if sites.is_empty() {
            return Err(one_file::missing(
                host,
                &cpu_limit_path(0),
                word!("a kernel without PM QoS, or too partial a recording"),
            ));
        }
        Ok(sites)
    }
    fn encode(&self, host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        limit_of(host, site, word).map(LatencyLimit::as_cpu_text)
    }
    fn rank(&self, _: &str, _: &str, shown: &str) -> Option<u64> {
        rank_of(shown)
    }
    fn decode(&self, _: &Site, text: &str) -> String {
        pm_qos::parse_cpu_limit(text).map_or_else(|_| text.to_string(), canonical)
    }
    fn effective(&self, host: &Host<'_>, site: &Site) -> Option<String> {
        let cpu = site.cpus.first()?;
        let limit = enterable::in_force(&host.facts.qos, cpu);
        let all = budget::resolve(limit, &host.facts.idle);
        let Some(own) = all.iter().find(|r| r.cpus.contains(cpu)) else { return Some(canonical(limit)) };
        Some(comes_to(host, limit, std::slice::from_ref(own), own.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn machine(c1_us: u32) -> Tree {
        let cpu = "/sys/devices/system/cpu";
        let state = |i: u32, name: &str, us: u32| {
            let at = format!("//- {cpu}/cpu0/cpuidle/state{i}");
            format!("{at}/name\n{name}\n{at}/latency\n{us}\n{at}/disable\n0\n")
        };
        let text =
            format!("//- {cpu}/online\n0\n//- {cpu}/present\n0\n//- {cpu}/cpu0/power/pm_qos_resume_latency_us\nn/a\n");
        let mut tree = Tree::from_text(&(text + &state(0, "POLL", 0) + &state(1, "C1", c1_us) + &state(2, "C6", 133)));
        tree.files.insert(GLOBAL.into(), Ok(70i32.to_ne_bytes().to_vec()));
        tree
    }

    #[test]
    fn polling_needs_the_word() {
        let tree = machine(2);
        let host = Host::read(&tree);
        for knob in [&GlobalLatency as &dyn Knob, &CpuLatency] {
            let site = knob.sites(&host).unwrap().remove(0);
            let refused = knob.encode(&host, &site, "1us").unwrap_err();
            assert!(refused.contains("poll by accident; the shallowest that sleeps is C1 (2us)"), "{refused}");
            assert!(knob.encode(&host, &site, "50").is_err() && knob.encode(&host, &site, "800ns").is_err());
        }
        let other = machine(1);
        let host = Host::read(&other);
        let site = GlobalLatency.sites(&host).unwrap().remove(0);
        assert_eq!(GlobalLatency.encode(&host, &site, "1us").unwrap(), "1us");
    }

    #[test]
    fn words_go_to_each_file_its_own_way_and_back() {
        let tree = machine(2);
        let host = Host::read(&tree);
        let global = GlobalLatency.sites(&host).unwrap().remove(0);
        let cpu = CpuLatency.sites(&host).unwrap().remove(0);
        let texts =
            |word| (GlobalLatency.encode(&host, &global, word).unwrap(), CpuLatency.encode(&host, &cpu, word).unwrap());
        assert_eq!(texts("none"), ("none".into(), "0".into()));
        assert_eq!(texts("poll"), ("poll".into(), "n/a".into()));
        assert_eq!(texts("0.0509ms"), ("50us".into(), "50".into()));
        assert_eq!((global.now.as_deref(), global.path.as_str()), (Some("none"), HOLD));
        assert_eq!(["0", "n/a", "50"].map(|t| CpuLatency.decode(&cpu, t)), ["none", "poll", "50us"]);
        assert_eq!(cpu.now.as_deref(), Some("n/a"));
        assert!(CpuLatency.effective(&host, &cpu).unwrap().starts_with("poll -> POLL"));
        assert!(GlobalLatency.effective(&host, &global).unwrap().starts_with("70us -> C1 (2us)"));
        assert_eq!(GlobalLatency.kept("50us", "20us"), Kept::Legally("somebody else asks for 20us".into()));
    }

    #[test]
    fn a_limit_that_ends_in_c1_says_where_that_is_c1e() {
        let says = |register: u64| {
            let mut tree = machine(2);
            let info = "processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 87\n\n";
            tree.files.insert("/proc/cpuinfo".into(), Ok(info.into()));
            tree.files.insert(cpu_limit_path(0), Ok("50\n".into()));
            tree.msrs.insert((0x1fc, 0), Ok(register));
            let host = Host::read(&tree);
            [&GlobalLatency as &dyn Knob, &CpuLatency].map(|knob| {
                let site = knob.sites(&host).unwrap().remove(0);
                knob.effective(&host, &site)
                    .unwrap()
                    .ends_with("but C1 is entered as C1E here, which takes longer than C1 claims")
            })
        };
        assert_eq!((says(2), says(0)), ([true; 2], [false; 2]));
    }

    #[test]
    fn our_own_holder_is_what_is_now() {
        let mut tree = machine(2);
        let now = |tree: &Tree| GlobalLatency.sites(&Host::read(tree)).unwrap().remove(0);
        let holder = |tree: &mut Tree, pid: u32, comm: &str, line: Option<&str>| {
            tree.files.insert(format!("/proc/{pid}/comm"), Ok(format!("{comm}\n").into()));
            tree.links.insert(format!("/proc/{pid}/fd/3"), Ok(GLOBAL.into()));
            line.map(|line| tree.files.insert(format!("/proc/{pid}/cmdline"), Ok(line.into())));
        };
        // Somebody else's is not ours, however small the machine's limit is.
        holder(&mut tree, 6, "tuned", Some("/usr/bin/python3\0/usr/sbin/tuned\0"));
        tree.files.insert(GLOBAL.into(), Ok(20i32.to_ne_bytes().to_vec()));
        assert_eq!(now(&tree).now.as_deref(), Some("none"));
        holder(&mut tree, 7, "wakewatt", Some("/opt/wakewatt\x00hold\x0050us\0"));
        assert_eq!(now(&tree).now.as_deref(), Some("50us"));
        holder(&mut tree, 8, "wakewatt", Some("/opt/wakewatt\x00hold\x0010us\0"));
        assert_eq!(now(&tree).now.as_deref(), Some("10us 50us"));
        assert!(GlobalLatency.is_ours("50us", "10us 50us") && !GlobalLatency.is_ours("50us", "none"));
        assert_eq!(GlobalLatency.kept("50us", "10us 50us"), Kept::Not);
        // A command line that cannot be read is no answer.
        holder(&mut tree, 9, "wakewatt", None);
        let site = now(&tree);
        assert!(site.now.is_none() && site.unread.unwrap().contains("/proc/9/cmdline"));
    }
}
