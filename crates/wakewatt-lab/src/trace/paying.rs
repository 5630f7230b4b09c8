//! Who pays, reading by reading, for a look that lasts for months: what each payer lost since the reading before.
//!
//! The probe keeps the most recent cgroups and drops the others, folders come and go, and names change; none of that may make a sum step back.
//! So only growth is told, beside the sums over everybody, which the probe never drops: whoever adds up calls the difference "other". Folders
//! are walked at most twice a minute: what a new cgroup loses before that is nobody's. Memory is bounded by the probe's own table.

use super::folders::Folders;
use super::named::Named;
use super::names::Names;
use super::payers::{docker_name, names};
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::samples::payers::{PayerKind, PodNames, container_of, name};
use wakewatt_core::samples::wakes::{Counted, WakeCounters};
use wakewatt_core::source::Source;

/// From walk to walk, where there is a cgroup that nobody knows.
const NEW_EVERY_NS: u64 = 30_000_000_000;
/// From walk to walk, because names come later than cgroups.
const ALL_EVERY_NS: u64 = 600_000_000_000;

/// How many walks may leave a payer out before it is forgotten, and how many are kept for that.
const KEPT_READINGS: u8 = 100;
const MOST_KEPT: usize = 20_000;

/// Name and index of an idle state.
pub type StateKey = (String, u32);

/// Wake-ups and what they lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many wake-ups.
    pub n: u64,
    /// Their latency added up, in nanoseconds.
    pub ns: u64,
}

impl Lost {
    /// Adds to it.
    pub fn add(&mut self, more: Lost) {
        (self.n, self.ns) = (self.n.saturating_add(more.n), self.ns.saturating_add(more.ns));
    }

    /// What is left of it.
    pub fn less(self, other: Lost) -> Lost {
        Lost { n: self.n.saturating_sub(other.n), ns: self.ns.saturating_sub(other.ns) }
    }
}

/// What wake-ups out of idle lost, of those that contain the exit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// By payer and state, since the reading before; what is of nobody that can be named is not there.
    pub grown: BTreeMap<(String, StateKey), Lost>,
    /// By state, since the probe was attached, whoever was woken.
    pub totals: BTreeMap<StateKey, Lost>,
}

/// What is known of the payers.
#[derive(Debug)]
pub(super) struct Paying {
    by: PayerKind,
    folders: Folders,
    names: PodNames,
    /// Names that Docker told, by container: reading them costs a file each.
    docker: BTreeMap<String, Option<String>>,
    /// What each had, and in how many readings since it was missing.
    last: BTreeMap<(u64, Option<u32>), (Lost, u8)>,
    /// When states were called otherwise last, if ever, and what had come together by then.
    since: Option<WakeCounters>,
    before: BTreeMap<StateKey, Lost>,
    looked_at_ns: u64,
}

impl Paying {
    /// Refuses with the reason where paths mean something else here.
    pub(super) fn start(by: PayerKind, src: &dyn Source, now_ns: u64) -> Result<Paying, String> {
        Ok(Paying::with(by, Folders::start()?, src, now_ns))
    }

    fn with(by: PayerKind, folders: Folders, src: &dyn Source, looked_at_ns: u64) -> Paying {
        Paying {
            by,
            folders,
            names: names(src),
            docker: BTreeMap::new(),
            last: BTreeMap::new(),
            since: None,
            before: BTreeMap::new(),
            looked_at_ns,
        }
    }

    /// From now on states are called otherwise; `old` is what they were. What payers lost since the last reading is nobody's.
    pub(super) fn rename(&mut self, now: &WakeCounters, old: &Named) {
        if old.stale_because().is_none() {
            self.before = self.totals(now, &old.names);
        }
        self.since = Some(now.clone());
        let groups = now.groups.iter();
        let whole = groups.map(|g| ((g.cgroup, g.state), (Lost { n: g.n, ns: g.sum_ns }, 0)));
        self.last = whole.collect();
    }

    /// By state, since the probe was attached, whoever was woken.
    fn totals(&self, now: &WakeCounters, states: &Names) -> BTreeMap<StateKey, Lost> {
        let mut totals = self.before.clone();
        let later = self.since.as_ref().map(|since| now.since(since));
        let cpus = &later.as_ref().unwrap_or(now).cpus;
        let first = first_of(now);
        for ((state, counted), hist) in cpus.iter().flat_map(|cpu| &cpu.cells) {
            if let (Some(state), Counted::Wake(class)) = (state, counted)
                && class.contains_exit()
            {
                let key = (states.of_state(first, *state), *state);
                totals.entry(key).or_default().add(Lost { n: hist.n, ns: hist.sum_ns });
            }
        }
        totals
    }

    /// Takes the next reading.
    pub(super) fn paid(&mut self, now: &WakeCounters, states: &Names, src: &dyn Source) -> Paid {
        self.look(now, src);
        let mut paid = Paid { totals: self.totals(now, states), ..Paid::default() };
        let first = first_of(now);
        let key_of = |state: u32| (states.of_state(first, state), state);
        // A walk of the kernel's table that was cut short leaves payers out: kept for longer, they are not counted twice. One that was dropped
        // meanwhile, and has more by now than it had, is told too little; never too much.
        self.last.values_mut().for_each(|(_, missed)| *missed += 1);
        for group in &now.groups {
            let whole = Lost { n: group.n, ns: group.sum_ns };
            let before = self.last.insert((group.cgroup, group.state), (whole, 0));
            // One that was dropped and came back counts from zero again.
            let before = before.map(|(lost, _)| lost).filter(|before| before.n <= whole.n);
            let more = whole.less(before.unwrap_or_default());
            let (Some(state), Some(name)) = (group.state, self.name(group.cgroup)) else { continue };
            if more.n > 0 {
                paid.grown.entry((name, key_of(state))).or_default().add(more);
            }
        }
        let most_missed = if self.last.len() < MOST_KEPT { KEPT_READINGS } else { 1 };
        self.last.retain(|_, (_, missed)| *missed <= most_missed);
        paid
    }

    fn name(&self, id: u64) -> Option<String> {
        self.folders.path(id).map(|path| name(self.by, path, &self.names).0)
    }

    /// Looks at folders and names, where that is due.
    fn look(&mut self, now: &WakeCounters, src: &dyn Source) {
        let since_ns = now.at_ns.saturating_sub(self.looked_at_ns);
        let is_unnamed = |id: u64| {
            let container = self.folders.path(id).and_then(container_of);
            self.by == PayerKind::Container
                && container.is_some_and(|c| !self.names.has_container(c) && !self.docker.contains_key(c))
        };
        let is_due = |id: u64| self.folders.is_new(id) || is_unnamed(id);
        let has_new = || now.groups.iter().any(|group| is_due(group.cgroup));
        if since_ns < NEW_EVERY_NS || (since_ns < ALL_EVERY_NS && !has_new()) {
            return;
        }
        self.looked_at_ns = now.at_ns;
        let asked: BTreeSet<u64> = now.groups.iter().map(|group| group.cgroup).collect();
        self.folders.again(&asked);
        self.names = names(src);
        if self.by == PayerKind::Container {
            let ids = asked.iter().filter_map(|id| container_of(self.folders.path(*id)?)).map(String::from);
            let ids: BTreeSet<String> = ids.collect();
            self.docker.retain(|id, _| ids.contains(id));
            for id in ids {
                if self.names.has_container(&id) {
                    continue;
                }
                if let Some(name) = self.docker.entry(id.clone()).or_insert_with_key(|id| docker_name(id, src)) {
                    self.names.container(&id, name);
                }
            }
        }
    }
}

/// The CPU whose names stand for all.
fn first_of(now: &WakeCounters) -> u32 {
    now.cpus.first().map_or(0, |cpu| cpu.cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use wakewatt_core::facts::Snapshot;
    use wakewatt_core::samples::kernel_histogram::KernelHistogram;
    use wakewatt_core::samples::wakes::{CpuCounters, GroupCounters, WakeClass};
    use wakewatt_core::source::Tree;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn reading(at_ns: u64, lost: u64, groups: &[(u64, u64)]) -> WakeCounters {
        let mut hist = KernelHistogram::default();
        (0..lost).for_each(|_| hist.add(100));
        let cells = [((Some(1), Counted::Wake(WakeClass::Remote)), hist)].into_iter().collect();
        let mut groups: Vec<GroupCounters> = groups
            .iter()
            .map(|(cgroup, n)| GroupCounters { cgroup: *cgroup, state: Some(1), n: *n, sum_ns: 100 * n })
            .collect();
        groups.sort_by_key(|group| (group.cgroup, group.state));
        WakeCounters {
            at_ns,
            cpus: vec![CpuCounters { cells, ..CpuCounters::default() }],
            groups,
            ..WakeCounters::default()
        }
    }

    #[test]
    fn growth_is_told_once_and_a_container_by_its_name_when_it_is_known() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = root.path().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::metadata(folder).unwrap().ino()
        };
        let web = make(&format!("docker-{ID}.scope"));
        let docker = format!("//- /var/lib/docker/containers/{ID}/config.v2.json\n{{\"Name\":\"/web\"}}\n");
        let src = Tree::from_text(&docker);
        let states = Names::of(&Snapshot::default());
        let mut paying = Paying::with(PayerKind::Container, Folders::below(root.path().into()), &src, 0);
        let mut told = |at_s: u64, lost: u64, groups: &[(u64, u64)]| {
            let paid = paying.paid(&reading(at_s * 1_000_000_000, lost, groups), &states, &src);
            let grown: Vec<(String, u64)> = paid.grown.iter().map(|((name, _), lost)| (name.clone(), lost.n)).collect();
            (grown, paid.totals.values().map(|lost| lost.n).sum::<u64>())
        };
        let (short, gone) = ("container 0123456789ab".to_string(), u64::MAX);
        assert_eq!(told(10, 9, &[(web, 5), (gone, 4)]), (vec![(short, 5)], 9));
        let late = make("later");
        let more = (vec![("in no container".into(), 1), ("web".into(), 2)], 14);
        assert_eq!(told(40, 14, &[(web, 7), (gone, 4), (late, 1)]), more);
        // Pushed out of the kernel's table and back; nothing of a cgroup that nobody saw.
        assert_eq!(told(50, 15, &[(web, 1), (gone, 5)]), (vec![("web".into(), 1)], 15));
        assert_eq!(told(60, 15, &[(web, 1), (gone, 5)]), (vec![], 15));
        // A walk that was cut short, then a whole one.
        assert_eq!(told(70, 15, &[(gone, 5)]), (vec![], 15));
        assert_eq!(told(80, 17, &[(web, 3), (gone, 5)]), (vec![("web".into(), 2)], 17));
        // Two of them cut short, while others paid.
        assert_eq!(told(90, 18, &[(gone, 5)]), (vec![], 18));
        assert_eq!(told(100, 28, &[(gone, 15)]), (vec![], 28));
        assert_eq!(told(110, 30, &[(web, 5), (gone, 15)]), (vec![("web".into(), 2)], 30));
    }

    #[test]
    fn what_was_lost_keeps_the_name_of_its_state() {
        let root = tempfile::tempdir().unwrap();
        let src = Tree::from_text("");
        let states = Names::of(&Snapshot::default());
        let mut paying = Paying::with(PayerKind::Cgroup, Folders::below(root.path().into()), &src, 0);
        assert_eq!(paying.paid(&reading(10, 9, &[]), &states, &src).totals[&("default idle".into(), 1)].n, 9);
        paying.rename(&reading(11, 10, &[]), &Named::of(states));
        let text = "//- /sys/devices/system/cpu/present\n0\n//- /sys/devices/system/cpu/cpu0/cpuidle/state1/name\nC6\n";
        let states = Names::of(&Snapshot::read(&Tree::from_text(text), |topic| topic == "idle"));
        let totals = paying.paid(&reading(20, 12, &[]), &states, &src).totals;
        let told: Vec<(String, u64)> = totals.into_iter().map(|((name, _), lost)| (name, lost.n)).collect();
        assert_eq!(told, [("C6".into(), 2), ("default idle".into(), 10)]);
    }
}
