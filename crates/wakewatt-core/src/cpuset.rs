//! Sets of CPUs (or nodes) in the kernel's list notation: `0-3,8,10-11`.
//!
//! Kept as sorted, disjoint, inclusive ranges, so that a 576-CPU machine costs one range. Numbers are bounded by what a
//! kernel can be built for, because every reader goes through a set number by number: a hostile `0-4294967295` is an
//! error, not a loop.

use crate::units::Cpu;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use wakewatt_words::say;

/// The largest NR_CPUS a kernel can be built with (x86 MAXSMP, powerpc); nodes and dies are fewer.
pub const MAX_CPUS: u32 = 8192;

/// A set of CPUs, nodes or other small ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet(Vec<(u32, u32)>);

impl CpuSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses kernel list notation; an empty or blank text is the empty set (the kernel writes that for "no CPU").
    pub fn parse(text: &str) -> Result<Self, String> {
        CpuSet::parse_below(text, MAX_CPUS)
    }

    /// The same for ids of another kind, all below `end`.
    pub fn parse_below(text: &str, end: u32) -> Result<Self, String> {
        let mut set = CpuSet::new();
        let text = text.trim();
        if text.is_empty() {
            return Ok(set);
        }
        for part in text.split([',', ' ']).map(str::trim).filter(|p| !p.is_empty()) {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let number = |s: &str| {
                s.parse::<u32>().ok().filter(|n| *n < end).ok_or_else(|| format!("\"{part}\" is not a CPU range"))
            };
            let (low, high) = (number(low)?, number(high)?);
            if low > high {
                return Err(format!("range \"{part}\" runs backwards"));
            }
            set.0.push((low, high));
        }
        set.0.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(set.0.len());
        for (low, high) in set.0 {
            match merged.last_mut() {
                Some(last) if low <= last.1 + 1 => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Ok(CpuSet(merged))
    }

    /// Parses the kernel's mask notation: hexadecimal words of 32 CPUs, highest first (`00000000,0000ffff`).
    pub fn parse_mask(text: &str) -> Result<Self, String> {
        let wrong = || "expected a CPU mask in hexadecimal".to_string();
        let mut ids = Vec::new();
        for (word, digits) in text.trim().rsplit(',').enumerate() {
            let low = u32::try_from(word).ok().and_then(|w| w.checked_mul(32)).filter(|low| *low < MAX_CPUS);
            let low = low.ok_or_else(wrong)?;
            let bits = u32::from_str_radix(digits, 16).map_err(|_| wrong())?;
            ids.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| low + bit));
        }
        Ok(ids.into_iter().collect())
    }

    /// Adds one id.
    pub fn insert(&mut self, id: u32) {
        if let Some(last) = self.0.last_mut() {
            if id == last.1 + 1 {
                last.1 = id;
                return;
            }
            if id > last.1 {
                self.0.push((id, id));
                return;
            }
        } else {
            self.0.push((id, id));
            return;
        }
        if self.contains(id) {
            return;
        }
        let at = self.0.partition_point(|r| r.0 < id);
        self.0.insert(at, (id, id));
        if at + 1 < self.0.len() && self.0[at].1 + 1 == self.0[at + 1].0 {
            self.0[at].1 = self.0[at + 1].1;
            self.0.remove(at + 1);
        }
        if at > 0 && self.0[at - 1].1 + 1 == self.0[at].0 {
            self.0[at - 1].1 = self.0[at].1;
            self.0.remove(at);
        }
    }

    /// Is the id in the set?
    pub fn contains(&self, id: u32) -> bool {
        let at = self.0.partition_point(|r| r.1 < id);
        self.0.get(at).is_some_and(|r| r.0 <= id)
    }

    /// The ids in rising order.
    pub fn iter(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.0.iter().flat_map(|&(low, high)| low..=high)
    }

    /// How many ids.
    pub fn len(&self) -> usize {
        self.0.iter().map(|&(low, high)| (high - low + 1) as usize).sum()
    }

    /// No id at all?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest id.
    pub fn first(&self) -> Option<Cpu> {
        self.0.first().map(|r| r.0)
    }

    /// As a sentence names CPUs: `CPU 3`, `CPUs 0-3,8`.
    pub fn named(&self) -> String {
        if self.len() == 1 { say!("CPU {self}") } else { say!("CPUs {self}") }
    }

    /// Ids here that are not in `other`.
    pub fn minus(&self, other: &CpuSet) -> CpuSet {
        self.iter().filter(|id| !other.contains(*id)).collect()
    }

    /// Ids in both.
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        self.iter().filter(|id| other.contains(*id)).collect()
    }

    /// Ids in either.
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        let mut all = self.clone();
        other.iter().for_each(|id| all.insert(id));
        all
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        let mut ids: Vec<u32> = ids.into_iter().collect();
        ids.sort_unstable();
        let mut set = CpuSet::new();
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (low, high)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if low == high { write!(f, "{comma}{low}")? } else { write!(f, "{comma}{low}-{high}")? }
        }
        Ok(())
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        CpuSet::parse(&String::deserialize(d)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CpuSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CpuSet".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$",
            "description": "CPUs in kernel list notation, e.g. 0-3,8" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        for text in ["", "0", "0-3", "0-3,8,10-11", "0,2,4,6"] {
            assert_eq!(CpuSet::parse(&format!("{text}\n")).unwrap().to_string(), text);
        }
        assert_eq!(CpuSet::parse("3,1,2,1").unwrap().to_string(), "1-3");
    }

    #[test]
    fn refuses_nonsense_without_looping() {
        for text in ["x", "1-", "-1", "5-2", "0-4294967295", "99999999999", "0-8192"] {
            assert!(CpuSet::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reads_masks() {
        for (mask, list) in [("0", ""), ("3", "0-1"), ("00000001,80000000", "31-32"), ("f,00000000,00000000", "64-67")]
        {
            assert_eq!(CpuSet::parse_mask(mask).unwrap().to_string(), list);
        }
        for bad in ["", "x", "1ffffffff", "-1"] {
            assert!(CpuSet::parse_mask(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(ids in proptest::collection::btree_set(0u32..300, 0..60), order in any::<bool>()) {
            let mut set = CpuSet::new();
            let mut list: Vec<u32> = ids.iter().copied().collect();
            if order { list.reverse(); }
            list.into_iter().for_each(|id| set.insert(id));
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), ids.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(CpuSet::parse(&set.to_string()).unwrap(), set);
        }
    }
}
