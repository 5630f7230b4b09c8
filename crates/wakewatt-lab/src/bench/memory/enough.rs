//! How large must a working set be to lie in memory for certain, and arrays to pass through it?
//!
//! Defaults of 100 and 256 MB lie inside large caches (docs/methods/memory.md), and then load, matrix and the price of random
//! placement tell of a cache. Four times the last level before memory is enough. Where that level ends is best seen in a
//! curve that settles; but a curve that stops short settles on the cache, so it counts only if it went to four times what
//! the machine reports. Without such a curve the report itself counts, times four, and without a report 2 GiB. Guests are
//! told too much as often as too little, so the curve decides where it went far enough.

use super::latency::needed_bytes;
use super::room::Room;
use super::{MemorySpec, step_up};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::{Cpus, Domain, cache::Caches, topology::Topology};
use wakewatt_core::samples::memory::LatencyCurve;
use wakewatt_core::source::Source;
use wakewatt_core::units::{Cpu, show_bytes};

/// So many times the cache.
const TIMES: u64 = 4;
/// Never taken less, unless told or for want of room: this is how far small machines have always been measured.
const LEAST_BYTES: u64 = 256 << 20;
/// When nothing is known.
const BLIND_BYTES: u64 = 2 << 30;
/// Arrays of one thread are never smaller than this, however many threads there are: several times its share of any L3.
const MIN_ARRAY_BYTES: u64 = 64 << 20;
/// And one of many threads needs no more: a guest may be told of a whole host's cache on every CPU.
const MAX_ARRAY_BYTES: u64 = 512 << 20;

/// Each thread's region is rounded up to whole pages of this size.
const HUGE_BYTES: u64 = 2 << 20;

/// What threads on these CPUs touch at the same time.
pub(super) fn held_bytes(cpus: &CpuSet, n_arrays: u64, array_bytes: u64) -> u64 {
    let each = array_bytes.saturating_mul(n_arrays).saturating_add(HUGE_BYTES);
    each.saturating_mul(cpus.len() as u64)
}

/// The last-level caches as reported: who shares each, and what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LastLevels(Vec<(CpuSet, u64)>);

impl LastLevels {
    /// From sysfs.
    pub fn of(src: &dyn Source) -> LastLevels {
        let caches = Caches::read(src, &Cpus::read(src));
        let is_last = |cpus: &CpuSet| cpus.first().and_then(|cpu| caches.last_level_of(cpu)) == Some(cpus);
        let last = caches.caches.iter().filter(|cache| is_last(&cache.cpus));
        LastLevels(last.filter_map(|cache| Some((cache.cpus.clone(), *cache.size_bytes.get()?))).collect())
    }

    /// The largest that this CPU uses; a smaller one of the same CPUs is a level before it.
    fn of_cpu(&self, cpu: Cpu) -> Option<u64> {
        self.0.iter().filter(|(cpus, _)| cpus.contains(cpu)).map(|(_, bytes)| *bytes).max()
    }

    /// All that these CPUs use together.
    fn total(&self, cpus: &CpuSet) -> u64 {
        let mut seen = CpuSet::default();
        let mut sum = 0u64;
        for (shared, _) in self.0.iter().filter(|(shared, _)| !shared.and(cpus).is_empty()) {
            let Some(cpu) = shared.first().filter(|cpu| !seen.contains(*cpu)) else { continue };
            seen.insert(cpu);
            sum = sum.saturating_add(self.of_cpu(cpu).unwrap_or(0));
        }
        sum
    }

    /// What a curve on this CPU has to reach, so that its end can be believed.
    pub(super) fn curve_to(&self, cpu: Cpu) -> u64 {
        self.of_cpu(cpu).map_or(LEAST_BYTES, |bytes| bytes.saturating_mul(TIMES).max(LEAST_BYTES))
    }
}

/// A working set that lies in memory, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Enough {
    pub(super) bytes: u64,
    pub(super) ground: String,
}

impl Enough {
    /// From the curves taken and the caches reported.
    pub(super) fn of(curves: &[LatencyCurve], levels: &LastLevels, cpu: Cpu) -> Enough {
        let reported = levels.of_cpu(cpu);
        let knee = curves.iter().find_map(|curve| {
            let [.., before, memory] = curve.plateaus.as_slice() else { return None };
            let is_far = curve.points.last().is_some_and(|p| p.size_bytes >= levels.curve_to(cpu));
            // The slope between two levels may be longer than a factor of four.
            (curve.is_settled && is_far)
                .then(|| (before.to_bytes, before.to_bytes.saturating_mul(TIMES).max(memory.from_bytes)))
        });
        match (knee, reported) {
            (Some((knee, bytes)), _) => {
                Enough { bytes, ground: format!("the last level before memory ends near {}", show_bytes(knee)) }
            }
            (None, Some(cache)) => Enough {
                bytes: cache.saturating_mul(TIMES),
                ground: format!("the last-level cache is reported as {}", show_bytes(cache)),
            },
            (None, None) => Enough { bytes: BLIND_BYTES, ground: "no last-level cache is reported".into() },
        }
    }

    /// The working set that is taken: at least this one, or what room and patience allow.
    pub(super) fn within(&self, spec: &MemorySpec, room: &Room) -> u64 {
        // Halves, so that the numbers stay round.
        let wished = self.bytes.max(LEAST_BYTES);
        let fits = (0..40).map(|k| wished >> k).find(|bytes| needed_bytes(*bytes, spec.stride_bytes) <= room.bytes);
        fits.unwrap_or(4096).min(spec.largest_bytes).max(4096)
    }

    /// A sentence where the working set is not enough.
    pub(super) fn doubt(&self, taken_bytes: u64) -> Option<String> {
        (taken_bytes < self.bytes).then(|| {
            format!(
                "latency surely of memory: load and matrix were measured with {}, which may lie in a cache ({}, so {} \
                 are needed); no price of random placement is formed from it; `wakewatt measure memory` takes what there is room for, --size what you say",
                show_bytes(taken_bytes),
                self.ground,
                show_bytes(self.bytes)
            )
        })
    }
}

impl MemorySpec {
    /// Looks up what the machine says of its caches and of the chasing CPU's core. A curve that may grow is then taken
    /// far enough for its end to be believed, as room allows.
    pub(super) fn on(mut self, src: &dyn Source, room: &Room) -> MemorySpec {
        self.last_levels = LastLevels::of(src);
        let topology = Topology::read(src, &Cpus::read(src));
        self.core_cpus = topology.siblings_of(self.cpu).unwrap_or_default();
        let far = self.last_levels.curve_to(self.cpu).min(self.largest_bytes);
        while let Some(next) = self.sizes_bytes.last().filter(|last| self.may_grow && **last < far).map(|l| step_up(*l))
        {
            if room.refuse(needed_bytes(next, self.stride_bytes)).is_some() {
                break;
            }
            self.sizes_bytes.push(next);
        }
        self
    }

    /// Leaves out sizes that nobody asked for and that there is no room for, down to the smallest; says which.
    pub(super) fn shorten(&mut self, room: &Room) -> Vec<String> {
        let mut said = Vec::new();
        while self.memory_bytes.is_none() && !self.pages.is_empty() && self.sizes_bytes.len() > 1 {
            let Some(largest) = self.sizes_bytes.last().copied() else { break };
            let Some(why) = room.refuse(needed_bytes(largest, self.stride_bytes)) else { break };
            self.sizes_bytes.pop();
            said.push(format!("latency of {}: {why}", show_bytes(largest)));
        }
        said
    }

    /// The chased working set of load and matrix.
    pub(super) fn working_set_bytes(&self) -> u64 {
        self.memory_bytes.unwrap_or(LEAST_BYTES)
    }

    /// One thread's array on each of these CPUs: as told, or beyond the caches of all of them as far as there is room.
    pub(super) fn array_bytes_for(&self, cpus: &CpuSet, n_arrays: u64, room: &Room) -> u64 {
        let n = cpus.len().max(1) as u64;
        if let Some(told) = self.array_bytes {
            return (told / n).max(MIN_ARRAY_BYTES.min(told));
        }
        let all = self.working_set_bytes().max(self.last_levels.total(cpus).saturating_mul(TIMES));
        let most = if n > 1 { MAX_ARRAY_BYTES } else { self.largest_bytes.max(MIN_ARRAY_BYTES) };
        let wanted = (all / n).clamp(MIN_ARRAY_BYTES, most);
        let fits = (room.bytes / n).saturating_sub(HUGE_BYTES) / n_arrays.max(1);
        // Whole megabytes; what does not even fit at its least is refused by the caller.
        (wanted.min(fits) & !0xf_ffff).max(MIN_ARRAY_BYTES)
    }

    /// A sentence where arrays of this size may lie in caches in part.
    pub(super) fn array_doubt(&self, cpus: &CpuSet, array_bytes: u64) -> Option<String> {
        let (all, caches) = (array_bytes.saturating_mul(cpus.len() as u64), self.last_levels.total(cpus));
        (self.array_bytes.is_none() && all < caches.saturating_mul(TIMES)).then(|| {
            format!(
                "bandwidth surely of memory on CPUs {cpus}: arrays of {} in all, and their caches are reported as {}",
                show_bytes(all),
                show_bytes(caches)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::memory::{LatencyPoint, PageWish, plateaus};
    use wakewatt_core::source::Tree;

    fn curve(ns_by_mib: &[(u64, f64)]) -> LatencyCurve {
        let point = |(mib, ns): &(u64, f64)| LatencyPoint::of(mib << 20, &[*ns], 9).unwrap();
        let points: Vec<LatencyPoint> = ns_by_mib.iter().map(point).collect();
        let (plateaus, is_settled) = plateaus(&points);
        LatencyCurve {
            pages: PageWish::Huge,
            huge_ratio: None,
            cpu: 0,
            node: None,
            stride_bytes: 64,
            locality_bytes: None,
            points,
            plateaus,
            is_settled,
        }
    }

    fn levels(text: &str) -> LastLevels {
        LastLevels(text.split(';').map(|l| l.split_once('=').unwrap()).map(of).collect())
    }

    fn of((cpus, mib): (&str, &str)) -> (CpuSet, u64) {
        (CpuSet::parse(cpus).unwrap(), mib.parse::<u64>().unwrap() << 20)
    }

    #[test]
    fn a_curve_that_ends_on_a_large_cache_is_not_believed() {
        // 504 MiB of L3: 128 and 256 MiB are one level, but it is the cache.
        let stopped = [curve(&[(1, 5.0), (2, 5.0), (64, 30.0), (128, 31.0), (256, 32.0)])];
        let enough = Enough::of(&stopped, &levels("0-85=504"), 0);
        assert_eq!(enough.bytes, 2016 << 20, "{}", enough.ground);
        let far = [curve(&[(64, 30.0), (128, 30.0), (512, 31.0), (1024, 90.0), (2048, 99.0), (4096, 99.0)])];
        assert_eq!(Enough::of(&far, &levels("0-85=504"), 0).bytes, 2048 << 20);
        // A guest that is told of 260 MiB and gets little of it: the curve went far enough to say so.
        let guest = [curve(&[(1, 5.0), (2, 5.0), (128, 80.0), (256, 80.0), (512, 80.0), (1040, 80.0)])];
        let enough = Enough::of(&guest, &levels("0-1=260"), 0);
        assert_eq!((enough.bytes, enough.ground.contains("2MiB")), (128 << 20, true), "{}", enough.ground);
        assert_eq!(Enough::of(&[], &LastLevels::default(), 0).bytes, BLIND_BYTES);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let enough = Enough::of(&[], &levels("0-7=384"), 3);
        let spec = MemorySpec::short(0, CpuSet::parse("0-7").unwrap(), super::super::Nodes::default());
        let room = |bytes| Room { bytes, limit: "x".into() };
        let taken = enough.within(&spec, &room(u64::MAX));
        assert_eq!((enough.bytes, taken), (1536 << 20, 512 << 20), "doctor's patience");
        assert!(enough.doubt(taken).unwrap().contains("with 512MiB, which may lie in a cache"));
        assert_eq!((enough.within(&spec, &room(400 << 20)), enough.doubt(enough.bytes)), (192 << 20, None));
    }

    #[test]
    fn arrays_reach_beyond_the_caches_of_all_their_cpus() {
        let mut spec = MemorySpec::full(0, CpuSet::parse("0-3").unwrap(), super::super::Nodes::default());
        spec.last_levels = levels("0-1=96;2-3=96;4-5=96");
        let room = |bytes| Room { bytes, limit: "x".into() };
        let (all, one) = (spec.cpus.clone(), CpuSet::parse("0").unwrap());
        assert_eq!(spec.array_bytes_for(&all, 1, &room(u64::MAX)), 192 << 20);
        assert_eq!(spec.array_bytes_for(&one, 1, &room(u64::MAX)), 384 << 20);
        let small = spec.array_bytes_for(&all, 2, &room(800 << 20));
        assert_eq!(small, 99 << 20, "two arrays of four threads, each with its rounding up");
        assert!(held_bytes(&all, 2, small) <= 800 << 20);
        assert!(
            spec.array_doubt(&all, small).unwrap().contains("396MiB in all, and their caches are reported as 192MiB")
        );
        assert_eq!(spec.array_doubt(&all, 192 << 20), None);
        spec.array_bytes = Some(256 << 20);
        assert_eq!(spec.array_bytes_for(&all, 1, &room(0)), 64 << 20, "told, so taken; the caller refuses");
        let many = CpuSet::parse("0-999").unwrap();
        assert_eq!(MemorySpec { array_bytes: Some(1 << 20), ..spec }.array_bytes_for(&many, 1, &room(0)), 1 << 20);
    }

    #[test]
    fn only_the_last_level_is_read() {
        let at = "//- /sys/devices/system/cpu";
        let cache = |cpu: u32, index: u32, level: u32, size: &str, cpus: &str| {
            let at = format!("{at}/cpu{cpu}/cache/index{index}");
            format!("{at}/level\n{level}\n{at}/type\nUnified\n{at}/size\n{size}\n{at}/shared_cpu_list\n{cpus}\n")
        };
        let text = format!(
            "{at}/online\n0-1\n{}{}{}",
            cache(0, 2, 2, "1024K", "0"),
            cache(1, 2, 2, "1024K", "1"),
            cache(0, 3, 3, "32M", "0-1")
        );
        let read = LastLevels::of(&Tree::from_text(&text));
        assert_eq!(read, levels("0-1=32"));
        assert_eq!((read.of_cpu(1), read.total(&CpuSet::parse("0-1").unwrap())), (Some(32 << 20), 32 << 20));
    }
}
