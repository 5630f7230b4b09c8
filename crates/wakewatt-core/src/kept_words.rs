//! Sentences that run files keep, in the language of whoever reads them.
//!
//! What a probe or an experiment said of itself (why a block does not count, how an arm was set, why this setting was turned) is
//! kept in English, as it was said. The sentences that this project words itself are listed here as templates: a kept sentence is
//! matched with them, its numbers and names are taken out, and the same is said with the template's translation. Any other
//! sentence stays as it is: what the kernel or a person said is nobody's to translate. Nothing is decided on the outcome.

use wakewatt_words::{Language, language, told};

/// The templates, the more particular first. A hole is `{name}`, or `{}` by its place; what stands in a hole may be one itself.
const TEMPLATES: &[&str] = &[
    // Why doctor turned what it turned (`choice.rs`).
    "idle states: {why}",
    "the frequency governor: {why}",
    "median {} wake-up {} with current settings",
    "after {} of idle a CPU takes {} to run (median)",
    "the deepest idle state that can be entered claims an exit latency of {}",
    "after {pause} of idle {} of work ends up to {} later than at full speed (median)",
    "no ramp was seen after {pause} of idle",
    "how fast a CPU is after such a pause was not measured",
    // Arms, and why a block does not count (lab's `setting_arms.rs`, `noise.rs`, `load/rules.rs`, `experiment`).
    "the machine is so already: nothing is written",
    "nothing is written",
    "{file} held open at {limit} us, released after the block",
    "effective limit {limit}",
    "baseline again",
    "it would be the machine as it is: no idle state here takes longer than {limit} to leave",
    "it would be the machine as it is: no idle state here is deeper than {name}",
    "no idle state here sleeps, or none says how long it takes to leave",
    "this machine has no idle driver, so the kernel offers no setting to turn ({path} is missing)",
    "{file} is already held at 0 by another process, so this machine polls and there is nothing to compare; stop the holder first ({command})",
    "other processes used {share} % of the measured CPUs' time",
    "{level}: other processes used at least {share} % of the CPUs' time ({allowed} % are allowed)",
    "other processes used at least {share} % of the CPUs' time ({allowed} % are allowed)",
    "the hypervisor took {share} % of the measured CPUs' time",
    "round {n} is drawn, the middle one of {all} by the primary metric; what is proved rests on all of them",
    "{called} of {n} metrics are called different at 5 %, where {expected} are expected by chance",
    "the baseline against itself: {said}",
    "the baseline against itself",
    "watts are absent, because no meter of this machine works: {why}",
    // Probes.
    "watts are absent, because no meter of this machine works",
    "no cycle counter ({why}: a guest without a virtual PMU, or perf_event_paranoid above 2), so speed is relative",
    "counting instructions on CPU {cpu} (a guest without a virtual PMU, or perf_event_paranoid above 0): {why}",
    "this is a virtual machine: leaving HLT includes the hypervisor scheduling the CPU back in",
    "wake-ups onto a CPU that was not idle are all counted; one in {n} of them is timed, chosen at random, and their time lost is estimated from those",
    "not read (--hardware reads it, which wakes every CPU twice)",
    "{n} of {all} processes may not be looked at",
    "arm {arm}",
    "this arm",
    // Where facts are from (`saved.rs`).
    "run {file} ({command}, {at})",
    "recorded host {name}",
    // Questions of shipped plans (lab's `plans`).
    "How much faster does this machine wake up without deep idle states, and what does that cost?",
    "What does sleep between requests cost an online shop, and what does it save?",
    "What does sleep between requests cost an online shop of {n} clients?",
    "How much of a random 32 KiB read is the CPU waking up?",
    "Which frequency governor does the most work per watt, and what does each cost in latency?",
    "What do loads take as found and without sleep, for a model to be fitted to one and to predict the other?",
    "Does this machine answer faster with SMT switched off?",
    "Does automatic NUMA balancing help this machine's load?",
    "What does this agent cost the machine in wake-ups, CPU time, watts and latency?",
    // Files that a person named (host's `input.rs`), and plans (lab's `plan`).
    "{file}: cannot be read: {why}; {hint}",
    "{file}: not a file but {found}; {hint}",
    "{name}: no such plan, and no such file; there are {all}; did you mean {near}?",
    "{name}: no such plan, and no such file; there are {all}",
    "{plan}: it asks about a program: name it behind --, such as -- {example}",
    "{file}: No such file or directory (os error 2)",
    "{path}: no such file",
    "{path}: no such folder",
    "No such file or directory (os error 2)",
    "Permission denied (os error 13)",
    "make one with: {command}; a folder is given with --sysroot",
    "make one with: {command}",
    "make one with --save FILE of doctor, measure or load",
    "make a recording with: {command}",
    "a shipped one goes by its name: {all}",
    "list the shipped ones with: {command}",
    "begin with: {command}",
];

/// Sentences of run files that earlier versions saved.
const EARLIER: &[&str] =
    &["the {} wake-up takes {} as found (median); where nobody sleeps it would take a few microseconds"];

/// All of them.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    TEMPLATES.iter().chain(EARLIER).copied()
}

/// A kept sentence in the language in force; as it was kept, where it is none of these.
pub fn shown(kept: &str) -> String {
    match language() {
        Language::English => kept.to_string(),
        Language::Chinese => known(kept).unwrap_or_else(|| kept.to_string()),
    }
}

/// The same, where it is one of these.
pub(crate) fn known(kept: &str) -> Option<String> {
    words().find_map(|template| Some(filled(told(template), &taken(template, kept)?)))
}

/// A template's fixed parts, and the name of the hole behind each.
fn parts(template: &str) -> Vec<(&str, Option<&str>)> {
    let (mut all, mut rest) = (Vec::new(), template);
    while let Some((fixed, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else { break };
        all.push((fixed, Some(name)));
        rest = after;
    }
    all.push((rest, None));
    all
}

/// What stands in the holes of a sentence that was made by this template; none where it was not.
fn taken<'a>(template: &'a str, kept: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
    let parts = parts(template);
    let (mut holes, mut rest, mut open) = (Vec::new(), kept, None);
    for (at, (fixed, name)) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let (before, after) = match open {
            None => ("", rest.strip_prefix(fixed)?),
            Some(_) if is_last => (rest.strip_suffix(fixed)?, ""),
            Some(_) => rest.split_once(fixed)?,
        };
        if let Some(name) = open {
            holes.push((name, before));
        } else if is_last && !after.is_empty() {
            return None;
        }
        (rest, open) = (after, *name);
    }
    Some(holes)
}

/// The template in another language, with the same in its holes.
fn filled(template: &str, holes: &[(&str, &str)]) -> String {
    let mut by_place = holes.iter().filter(|(name, _)| name.is_empty());
    let mut out = String::new();
    for (fixed, name) in parts(template) {
        out += fixed;
        let hole = match name {
            None => continue,
            Some("") => by_place.next(),
            // Another order than the English.
            Some(place) if place.parse::<usize>().is_ok() => {
                holes.iter().filter(|(name, _)| name.is_empty()).nth(place.parse().unwrap_or_default())
            }
            Some(name) => holes.iter().find(|(hole, _)| *hole == name),
        };
        out += &hole.map_or(String::new(), |(_, text)| shown(text));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use wakewatt_words::within;

    fn chinese(kept: &str) -> String {
        within(Language::Chinese, || shown(kept))
    }

    #[test]
    fn a_kept_sentence_is_said_again_with_its_own_numbers() {
        let why = "idle states: median eventfd wake-up 23.1us with current settings";
        let said = chinese(why);
        assert!(said.contains("23.1us") && said.contains("eventfd") && !said.contains("current settings"), "{said}");
        assert_eq!(shown(why), why);
        let said = chinese("/dev/cpu_dma_latency held open at 0 us, released after the block");
        assert!(said.contains("/dev/cpu_dma_latency") && said.contains("0 us") && !said.contains("held"), "{said}");
        assert_eq!(chinese("somebody's own: nothing is written here"), "somebody's own: nothing is written here");
    }

    #[test]
    fn every_template_is_known_again_and_translated() {
        for template in TEMPLATES {
            let made = template.replace('{', "").replace('}', "7");
            assert!(taken(template, &made).is_some(), "{template}");
            // `{level}: …` is another sentence behind a name.
            assert_ne!(chinese(&made), made, "{template}");
        }
    }

    /// Whoever rewords a sentence where it is made has to keep the old template and add the new one.
    #[test]
    #[allow(clippy::disallowed_methods)] // Reads this project's sources, no machine.
    fn every_template_is_what_some_source_says() {
        fn read(folder: &Path, all: &mut String) {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    read(&entry, all);
                } else if entry.extension().is_some_and(|e| e == "rs" || e == "toml")
                    && !entry.ends_with("kept_words.rs")
                {
                    *all += &fs::read_to_string(&entry).unwrap();
                }
            }
        }
        let mut all = String::new();
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        fs::read_dir(top.join("crates")).unwrap().for_each(|one| {
            let folders = ["src", "plans"].map(|name| one.as_ref().unwrap().path().join(name));
            folders.iter().filter(|folder| folder.is_dir()).for_each(|folder| read(folder, &mut all));
        });
        read(&top.join("bench/plans"), &mut all);
        // A sentence that goes on in the next line.
        let all: String = all.split("\\\n").map(str::trim_start).collect();
        // Some are put together of several, so each of their parts is looked for.
        fn clauses(template: &str) -> Vec<&str> {
            let fixed = parts(template).into_iter().flat_map(|(fixed, _)| fixed.split([',', ';', ':']));
            fixed.map(str::trim).filter(|clause| clause.len() > 9).collect()
        }
        let of_the_system = |template: &str| template.contains("(os error ");
        let is_lost = |t: &&&str| !of_the_system(t) && !clauses(t).iter().all(|clause| all.contains(clause));
        let lost: Vec<_> = TEMPLATES.iter().filter(is_lost).collect();
        assert!(lost.is_empty(), "nobody says these: {lost:#?}");
    }
}
