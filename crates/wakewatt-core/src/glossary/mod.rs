//! What the words of the field mean: the terms that `wakewatt explain` knows besides rules and knobs.
//!
//! One file per family of terms, each a list in reading order. A term says what the word means on any machine; what it
//! comes to on this one is `explain`'s work. Only meanings are kept here: no number that a machine could tell itself.
//! The words of this program (arm, block, finding) are in docs/glossary.md. To add a term: one line in its family.

mod core_states;
mod energy;
mod frequency;
mod hardware;
mod kernel;
mod package_states;
mod system_states;

/// What kind of thing a term names; decides which facts of a machine belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// A state of a core, as hardware and driver name it.
    CoreState,
    /// A state of a whole package.
    PackageState,
    /// A state of the whole machine, in ACPI's words.
    SystemState,
    /// How the kernel chooses idle states and who limits it.
    Kernel,
    /// How fast a core runs, and who decides.
    Frequency,
    /// Watts, joules and what limits them.
    Energy,
    /// Registers, threads of a core, memory nodes.
    Hardware,
}

impl Family {
    /// One of the family, in the order in which a list of terms reads.
    const fn term(
        self,
        name: &'static str,
        aliases: &'static [&'static str],
        source: &'static str,
        see_also: &'static [&'static str],
        text: &'static str,
    ) -> Term {
        Term { name, aliases, family: self, text, source, see_also, only: None }
    }
}

/// Whose processors a term belongs to, where it is one maker's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Intel's.
    Intel,
    /// AMD's and Hygon's.
    Amd,
    /// Arm's and those of its licensees.
    Arm,
}

/// One word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// As it is written: C6.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// The kind of thing it names.
    pub family: Family,
    /// What it means, on any machine.
    pub text: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// Terms to read next.
    pub see_also: &'static [&'static str],
    /// Whose word it is; none: everybody's.
    pub only: Option<Only>,
}

impl Term {
    const fn only(self, maker: Only) -> Term {
        Term { only: Some(maker), ..self }
    }
}

/// The families, each with the file that its terms stand in.
const FAMILIES: [(&str, &[Term]); 7] = [
    ("crates/wakewatt-core/src/glossary/core_states.rs", core_states::TERMS),
    ("crates/wakewatt-core/src/glossary/package_states.rs", package_states::TERMS),
    ("crates/wakewatt-core/src/glossary/system_states.rs", system_states::TERMS),
    ("crates/wakewatt-core/src/glossary/kernel.rs", kernel::TERMS),
    ("crates/wakewatt-core/src/glossary/frequency.rs", frequency::TERMS),
    ("crates/wakewatt-core/src/glossary/energy.rs", energy::TERMS),
    ("crates/wakewatt-core/src/glossary/hardware.rs", hardware::TERMS),
];

/// Every term, by family.
pub fn terms() -> impl Iterator<Item = &'static Term> {
    FAMILIES.into_iter().flat_map(|(_, terms)| terms)
}

/// What every term means, with the file that says it; looked up where it is shown.
pub(crate) fn words() -> impl Iterator<Item = (&'static str, &'static str)> {
    FAMILIES.into_iter().flat_map(|(file, terms)| terms.iter().map(move |term| (file, term.text)))
}

/// The term of this name or spelling, in any case of letters.
pub fn find(word: &str) -> Option<&'static Term> {
    let is_it = |name: &&str| name.eq_ignore_ascii_case(word.trim());
    terms().find(|term| is_it(&term.name)).or_else(|| terms().find(|term| term.aliases.iter().any(&is_it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_leads_to_one_term() {
        let mut seen: Vec<String> = Vec::new();
        for term in terms() {
            for name in std::iter::once(&term.name).chain(term.aliases) {
                let name = name.to_lowercase();
                assert!(!seen.contains(&name), "{name} is two terms");
                seen.push(name);
            }
            assert!(term.text.ends_with('.') && !term.source.is_empty(), "{} is incomplete", term.name);
            for other in term.see_also {
                assert!(find(other).is_some() && *other != term.name, "{}: see {other}?", term.name);
            }
        }
        assert!(seen.len() > 50, "the families are in the list");
    }

    #[test]
    fn letters_may_be_small() {
        assert_eq!(find(" pc6 ").map(|t| t.name), Some("PC6"));
        assert_eq!(find("c7S").map(|t| t.name), Some("C7"));
        assert_eq!(find("package c6").map(|t| t.family), Some(Family::PackageState));
        assert_eq!(find("C99"), None);
    }
}
