//! A fact is what the host says, or the exact reason why it says nothing.
//!
//! House rule 1: absence is a value. cpupower prints a latency of 0 for an unreadable file; here a [`Fact`] is either
//! known, or a [`Gap`] with the path and the reason. [`PerCpu`] holds the same file of every CPU, grouped by equal
//! content as it is read, so 512 CPUs with one value cost one parse and print as one line ("290us on CPUs 0-143").

use crate::cpuset::CpuSet;
use crate::source::{ErrorKind, ReadError, Source};
use crate::units::Cpu;
use crate::visible;
use crate::{gap_reasons, kept_words};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::collections::HashMap;
use wakewatt_words::word;

/// What kind of hole this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GapKind {
    /// The kernel has no such file: the feature is not there, or not in this kernel.
    Absent,
    /// There, but not for this user.
    Denied,
    /// There, and its content is not what the kernel documents.
    Malformed,
    /// There, and reading it failed.
    Failed,
    /// The recording does not hold it.
    NotRecorded,
    /// wakewatt did not look (topic not asked for).
    NotRead,
}

impl GapKind {
    /// One or two words for tables.
    pub fn word(self) -> &'static str {
        match self {
            GapKind::Absent => word!("absent"),
            GapKind::Denied => word!("denied"),
            GapKind::Malformed => word!("malformed"),
            GapKind::Failed => word!("unreadable"),
            GapKind::NotRecorded => word!("not recorded"),
            GapKind::NotRead => word!("not read"),
        }
    }
}

/// A hole in our knowledge: which file, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// The class of hole.
    pub kind: GapKind,
    /// The file or register that was asked for.
    pub path: String,
    /// Why it could not be read, in words.
    pub reason: String,
}

impl Gap {
    /// From a failed read.
    pub fn from_read(path: &str, error: &ReadError) -> Gap {
        let kind = match error.kind {
            ErrorKind::Absent => GapKind::Absent,
            ErrorKind::Denied => GapKind::Denied,
            ErrorKind::NotRecorded => GapKind::NotRecorded,
            ErrorKind::Failed => GapKind::Failed,
        };
        Gap { kind, path: path.into(), reason: error.detail.clone() }
    }

    /// From a folder that is there and cannot be looked into; one that is not there, or that a recording leaves out,
    /// simply holds nothing.
    pub fn of_closed_folder<T>(path: &str, listing: &Result<T, ReadError>) -> Option<Gap> {
        let error = listing.as_ref().err()?;
        matches!(error.kind, ErrorKind::Denied | ErrorKind::Failed).then(|| Gap::from_read(path, error))
    }

    /// The content was not as documented.
    pub fn malformed(path: &str, reason: impl Into<String>) -> Gap {
        Gap { kind: GapKind::Malformed, path: path.into(), reason: reason.into() }
    }
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = gap_reasons::told(&self.reason)
            .map_or_else(|| visible::line(&kept_words::shown(&self.reason)).into_owned(), Into::into);
        if self.path.is_empty() { f.write_str(&reason) } else { write!(f, "{}: {reason}", visible::line(&self.path)) }
    }
}

/// Known, or a gap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fact<T> {
    /// The host says so.
    Known(T),
    /// It does not say, because.
    Gap(Gap),
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Fact::Gap(Gap { kind: GapKind::NotRead, path: String::new(), reason: "not read".into() })
    }
}

impl<T> Fact<T> {
    /// The value, if known.
    pub fn get(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Gap(_) => None,
        }
    }
    /// The gap, if it is one.
    pub fn gap(&self) -> Option<&Gap> {
        match self {
            Fact::Known(_) => None,
            Fact::Gap(gap) => Some(gap),
        }
    }
    /// Known?
    pub fn is_known(&self) -> bool {
        self.get().is_some()
    }
    /// The same gap, or the mapped value.
    pub fn map<U>(&self, f: impl FnOnce(&T) -> U) -> Fact<U> {
        match self {
            Fact::Known(value) => Fact::Known(f(value)),
            Fact::Gap(gap) => Fact::Gap(gap.clone()),
        }
    }
}

impl<T: Serialize> Serialize for Fact<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(1))?;
        match self {
            Fact::Known(value) => map.serialize_entry("value", value)?,
            Fact::Gap(gap) => map.serialize_entry("gap", gap)?,
        }
        map.end()
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Fact<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("FactOf{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let value = generator.subschema_for::<T>();
        let gap = generator.subschema_for::<Gap>();
        schemars::json_schema!({ "description": "known (value), or a gap that says why not", "oneOf": [
            { "type": "object", "properties": { "value": value }, "required": ["value"], "additionalProperties": false },
            { "type": "object", "properties": { "gap": gap }, "required": ["gap"], "additionalProperties": false } ] })
    }
}

/// CPUs that share one fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group<T> {
    /// The CPUs that share the fact.
    pub cpus: CpuSet,
    /// What these CPUs have in common.
    #[serde(flatten)]
    pub fact: Fact<T>,
}

/// One fact for every CPU, grouped by equal content, in order of the first CPU of each group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct PerCpu<T>(pub Vec<Group<T>>);

impl<T> Default for PerCpu<T> {
    fn default() -> Self {
        PerCpu(Vec::new())
    }
}

impl<T> PerCpu<T> {
    /// Reads `path(cpu)` for every CPU and parses each distinct content once.
    pub fn read(
        src: &dyn Source,
        cpus: impl IntoIterator<Item = Cpu>,
        path: impl Fn(Cpu) -> String,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> PerCpu<T> {
        PerCpu::read_with(cpus, path, |_, path| src.read(path), parse)
    }

    /// The same with the caller's own way to get the bytes (a listing that already says "absent", say).
    pub fn read_with(
        cpus: impl IntoIterator<Item = Cpu>,
        path: impl Fn(Cpu) -> String,
        raw: impl Fn(Cpu, &str) -> Result<Vec<u8>, ReadError>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> PerCpu<T> {
        let mut groups: Vec<Group<T>> = Vec::new();
        let mut seen: HashMap<Result<Vec<u8>, ReadError>, usize> = HashMap::new();
        let mut last: Option<(Result<Vec<u8>, ReadError>, usize)> = None;
        for cpu in cpus {
            let path = path(cpu);
            let raw = raw(cpu, &path);
            if let Some((before, at)) = &last {
                if *before == raw {
                    groups[*at].cpus.insert(cpu);
                    continue;
                }
            }
            let at = *seen.entry(raw.clone()).or_insert_with(|| {
                groups.push(Group { cpus: CpuSet::new(), fact: parse_raw(&path, &raw, &parse) });
                groups.len() - 1
            });
            groups[at].cpus.insert(cpu);
            last = Some((raw, at));
        }
        PerCpu(groups)
    }

    /// The fact of one CPU.
    pub fn of(&self, cpu: Cpu) -> Option<&Fact<T>> {
        self.0.iter().find(|g| g.cpus.contains(cpu)).map(|g| &g.fact)
    }

    /// What is known, by CPU: for whoever asks for every CPU, where [`PerCpu::of`] would go through the groups each time.
    pub fn by_cpu(&self) -> HashMap<Cpu, &T> {
        self.known().flat_map(|(cpus, value)| cpus.iter().map(move |cpu| (cpu, value))).collect()
    }

    /// Known groups: CPUs and value.
    pub fn known(&self) -> impl Iterator<Item = (&CpuSet, &T)> {
        self.0.iter().filter_map(|g| g.fact.get().map(|v| (&g.cpus, v)))
    }

    /// The CPUs whose value satisfies the test.
    pub fn cpus_where(&self, test: impl Fn(&T) -> bool) -> CpuSet {
        self.known().filter(|(_, v)| test(v)).flat_map(|(cpus, _)| cpus.iter()).collect()
    }

    /// Nothing known at all?
    pub fn is_unknown(&self) -> bool {
        self.known().next().is_none()
    }

    /// The gaps, with their CPUs.
    pub fn gaps(&self) -> impl Iterator<Item = (&CpuSet, &Gap)> {
        self.0.iter().filter_map(|g| g.fact.gap().map(|gap| (&g.cpus, gap)))
    }
}

impl<T: Clone + PartialEq> PerCpu<T> {
    /// The value, if every CPU whose fact is known has the same one.
    pub fn uniform(&self) -> Option<&T> {
        let mut values = self.known().map(|(_, v)| v);
        let first = values.next()?;
        values.all(|v| v == first).then_some(first)
    }

    /// Groups a value computed per CPU (not read from one file each).
    pub fn group(items: impl IntoIterator<Item = (Cpu, Fact<T>)>) -> PerCpu<T> {
        let mut groups: Vec<Group<T>> = Vec::new();
        for (cpu, fact) in items {
            match groups.iter_mut().find(|g| g.fact == fact) {
                Some(group) => group.cpus.insert(cpu),
                None => groups.push(Group { cpus: [cpu].into_iter().collect(), fact }),
            }
        }
        PerCpu(groups)
    }
}

fn parse_raw<T>(path: &str, raw: &Result<Vec<u8>, ReadError>, parse: impl Fn(&str) -> Result<T, String>) -> Fact<T> {
    let bytes = match raw {
        Ok(bytes) => bytes,
        Err(error) => return Fact::Gap(Gap::from_read(path, error)),
    };
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) => parse(text.trim_end_matches(['\n', '\0'])),
        Err(_) => Err("not text".into()),
    };
    match parsed {
        Ok(value) => Fact::Known(value),
        Err(reason) => Fact::Gap(Gap::malformed(path, reason)),
    }
}

/// Reads and parses one file.
pub fn fact<T>(src: &dyn Source, path: &str, parse: impl Fn(&str) -> Result<T, String>) -> Fact<T> {
    parse_raw(path, &src.read(path), parse)
}

/// Parsers for the shapes kernel files come in. Each says what it expected.
pub mod parse {
    use crate::cpuset::CpuSet;
    use crate::visible::is_hidden;

    /// Shortens foreign text for an error message.
    fn quote(text: &str) -> String {
        let short: String = text.chars().take(40).map(|c| if is_hidden(c) { '?' } else { c }).collect();
        format!("\"{short}\"{}", if text.chars().count() > 40 { "…" } else { "" })
    }

    /// A non-empty line.
    pub fn word(text: &str) -> Result<String, String> {
        let text = text.trim();
        if text.is_empty() { Err("empty".into()) } else { Ok(text.to_string()) }
    }

    /// Words separated by blanks; an empty file is an empty list.
    pub fn words(text: &str) -> Result<Vec<String>, String> {
        Ok(text.split_whitespace().map(str::to_string).collect())
    }

    /// An unsigned number.
    pub fn number(text: &str) -> Result<u64, String> {
        // Rust also takes "+5", which no kernel file holds.
        let digits = Some(text.trim()).filter(|t| !t.starts_with('+')).and_then(|t| t.parse().ok());
        digits.ok_or_else(|| format!("expected a number, found {}", quote(text)))
    }

    /// Whole percent in the file, 0 to 1 here.
    pub fn percent(text: &str) -> Result<f64, String> {
        let percent =
            u32::try_from(number(text)?).map_err(|_| format!("expected a percentage, found {}", quote(text)))?;
        Ok(f64::from(percent) / 100.0)
    }

    /// Megahertz in the file, kilohertz here.
    pub fn mhz_to_khz(text: &str) -> Result<u64, String> {
        number(text)?.checked_mul(1000).ok_or_else(|| "too many megahertz".to_string())
    }

    /// Numbers separated by blanks.
    pub fn numbers(text: &str) -> Result<Vec<u64>, String> {
        text.split_whitespace().map(number).collect()
    }

    /// A signed number.
    pub fn signed(text: &str) -> Result<i64, String> {
        text.trim().parse().map_err(|_| format!("expected a number, found {}", quote(text)))
    }

    /// Microseconds in the file, nanoseconds here.
    pub fn us_to_ns(text: &str) -> Result<u64, String> {
        number(text)?.checked_mul(1000).ok_or_else(|| "too many microseconds".to_string())
    }

    /// `0`/`1`, `Y`/`N`, `on`/`off`, `enabled`/`disabled`.
    pub fn flag(text: &str) -> Result<bool, String> {
        match text.trim() {
            "1" | "Y" | "y" | "on" | "enabled" => Ok(true),
            "0" | "N" | "n" | "off" | "disabled" => Ok(false),
            other => Err(format!("expected a switch (0 or 1), found {}", quote(other))),
        }
    }

    /// Lines of a name and a number (`nr_throttled 12`); other lines are passed over, none at all is an error.
    pub fn counters(text: &str) -> Result<std::collections::BTreeMap<String, u64>, String> {
        let line = |l: &str| l.split_once([' ', '\t']).and_then(|(k, v)| Some((k.to_string(), v.trim().parse().ok()?)));
        let all: std::collections::BTreeMap<String, u64> = text.lines().filter_map(line).collect();
        if all.is_empty() { Err(format!("expected lines of name and number, found {}", quote(text))) } else { Ok(all) }
    }

    /// Kernel mask notation.
    pub fn mask(text: &str) -> Result<CpuSet, String> {
        CpuSet::parse_mask(text)
    }

    /// Kernel list notation.
    pub fn cpus(text: &str) -> Result<CpuSet, String> {
        CpuSet::parse(text)
    }

    /// The bracketed choice of `default [performance] powersave`.
    pub fn chosen(text: &str) -> Result<String, String> {
        text.split_whitespace()
            .find_map(|w| w.strip_prefix('[')?.strip_suffix(']'))
            .map(str::to_string)
            .ok_or_else(|| format!("expected one [choice], found {}", quote(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn equal_content_is_one_group_and_gaps_stay_apart() {
        let tree = Tree::from_text("//- /c0\n7\n//- /c1\n7\n//- /c2\n9\n//- /c3!denied\n//- /c5\nx\n");
        let facts = PerCpu::read(&tree, 0..6, |c| format!("/c{c}"), parse::number);
        let shown: Vec<String> = facts.0.iter().map(|g| format!("{} {:?}", g.cpus, g.fact.get())).collect();
        assert_eq!(shown, ["0-1 Some(7)", "2 Some(9)", "3 None", "4 None", "5 None"]);
        let kinds: Vec<GapKind> = facts.gaps().map(|(_, g)| g.kind).collect();
        assert_eq!(kinds, [GapKind::Denied, GapKind::Absent, GapKind::Malformed]);
        assert_eq!(facts.uniform(), None);
        assert_eq!(facts.cpus_where(|v| *v == 7).to_string(), "0-1");
    }

    #[test]
    fn an_unreadable_latency_is_never_zero() {
        let tree = Tree::from_text("//- /empty\n//- /minus\n-1\n//- /plus\n+5\n");
        for path in ["/empty", "/minus", "/plus", "/missing"] {
            assert!(fact(&tree, path, parse::us_to_ns).gap().is_some(), "{path}");
        }
    }
}
