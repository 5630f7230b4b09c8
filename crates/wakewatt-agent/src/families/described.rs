//! What changes seldom: settings, findings, who holds the latency limit.
//!
//! A setting is a label of one info metric, so that a store shows its change as an old series that ends and a new one that begins.

use super::Found;
use crate::metric::{Labels, Page, names};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::fact::{Fact, PerCpu};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::boot::{Cmdline, is_same_name};
use wakewatt_core::facts::freq::Freq;
use wakewatt_core::facts::holders::Holders;
use wakewatt_core::record::mask::KEPT_ARGUMENTS;
use wakewatt_core::rules::{self, Answer, Weight};
use wakewatt_core::samples::Samples;

/// Holders that are named; more are not worth a series each.
const MOST_HOLDERS: usize = 5;

/// Settings and findings, as last looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    /// Labels of the settings.
    pub settings: Labels,
    /// Findings, the heaviest first, each rule's once.
    pub findings: Vec<Found>,
    /// When they were judged, in milliseconds since 1970.
    pub judged_ms: Option<u64>,
    /// Programs that hold the latency limit.
    pub holders: Vec<String>,
    /// Known daemons that run, or `none`; empty where that is not known.
    pub daemons: Vec<String>,
    /// Name and index of each state that is switched off somewhere, and on how many CPUs.
    pub disabled: Vec<(String, u32, u32)>,
}

/// What the settings are made of and may change while the kernel runs.
pub(crate) const SETTING_TOPICS: [&str; 2] = ["idle", "freq"];
/// What cannot.
pub(crate) const LASTING_TOPICS: [&str; 3] = ["kernel", "dimms", "boot"];

impl Described {
    /// Looks at the settings again.
    pub(crate) fn look(&mut self, facts: &Snapshot, lasting: &Snapshot) {
        self.settings = settings(facts, lasting);
        let states = facts.idle.states.iter();
        self.disabled = states
            .filter_map(|state| {
                let n = state.is_disabled.cpus_where(|is| *is).iter().count();
                (n > 0).then(|| (state.label(), state.index, u32::try_from(n).unwrap_or(u32::MAX)))
            })
            .collect();
    }

    /// Looks at processes: which daemons run, and who holds the latency limit.
    pub(crate) fn hold(&mut self, facts: &Snapshot) {
        self.daemons = daemons(&facts.holders);
        let holders = facts.holders.of_latency_limit().unwrap_or_default();
        self.holders = holders.iter().filter_map(|holder| holder.comm.clone()).collect();
        self.holders.sort();
        self.holders.dedup();
        self.holders.truncate(MOST_HOLDERS);
    }

    /// Judges facts by every rule; what rests on measurements has none to rest on.
    pub(crate) fn judge(&mut self, facts: Snapshot, now_ms: u64) {
        let evidence = Evidence { facts, ..Evidence::of(Samples::default()) };
        let found = rules::judge(&evidence).into_iter().filter_map(|ruling| match ruling.answer {
            Answer::Yes(finding) => Some(Found {
                is_choice: rules::is_choice(&finding.id, finding.weight),
                rule: finding.id,
                title: finding.title,
                weight: finding.weight,
                cost: finding.cost.text,
                remedy: finding.remedy,
            }),
            _ => None,
        });
        self.findings = found.collect();
        self.judged_ms = Some(now_ms);
    }
}

fn weight(weight: Weight) -> &'static str {
    match weight {
        Weight::Problem => "problem",
        Weight::Risk => "risk",
        Weight::Note => "note",
    }
}

pub(super) fn add(page: &mut Page, described: &Described) {
    if !described.settings.is_empty() {
        page.number(&names::SETTINGS, described.settings.clone(), 1.0);
    }
    for daemon in &described.daemons {
        page.number(&names::DAEMON, vec![("daemon", daemon.as_str().into())], 1.0);
    }
    let mut found: Vec<(&str, &'static str)> =
        described.findings.iter().map(|found| (found.rule.as_str(), weight(found.weight))).collect();
    found.sort_unstable();
    found.dedup();
    for (rule, weight) in found {
        page.number(&names::FINDING, vec![("rule", rule.into()), ("weight", weight.into())], 1.0);
    }
}

fn settings(facts: &Snapshot, lasting: &Snapshot) -> Labels {
    let word = |fact: &Fact<String>| fact.get().cloned();
    // Where CPUs differ: all of them, which is a setting by itself.
    let all = |per_cpu: &PerCpu<String>| {
        let mut known: Vec<&str> = per_cpu.known().map(|(_, word)| word.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        (!known.is_empty()).then(|| known.join("+"))
    };
    let freq: &Freq = &facts.freq;
    let processor = facts.topology.processor.known().next().map(|(_, p)| p.clone());
    let on_off = |is: bool| if is { "on" } else { "off" }.to_string();
    let values = [
        ("idle_driver", word(&facts.idle.driver)),
        ("idle_governor", word(&facts.idle.governor)),
        ("idle_table", facts.idle.table_checksum()),
        ("frequency_driver", all(&freq.policies.by_cpu(&freq.policies.driver))),
        ("frequency_governor", all(&freq.governors())),
        ("energy_preference", preference(freq)),
        ("turbo", freq.is_turbo_allowed().map(on_off)),
        ("smt", facts.topology.is_smt_active.get().copied().map(on_off)),
        ("kernel", word(&lasting.kernel.release)),
        ("cmdline", lasting.boot.cmdline.get().map(arguments)),
        ("microcode", processor.as_ref().and_then(|p| p.microcode).map(|m| format!("{m:#x}"))),
        ("bios", word(&lasting.dimms.bios_version)),
        ("processor", processor.and_then(|p| p.name)),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name, value?.into()))).collect()
}

fn preference(freq: &Freq) -> Option<String> {
    let per_cpu = freq.policies.by_cpu(&freq.policies.energy_preference);
    let mut known: Vec<String> = per_cpu.known().map(|(_, preference)| preference.to_string()).collect();
    known.sort();
    known.dedup();
    (!known.is_empty()).then(|| known.join("+"))
}

/// Boot arguments that captures keep, because what they set is looked at; words of the loader and of the console are left out, and whatever may be a secret.
fn arguments(cmdline: &Cmdline) -> String {
    const NO_SETTING: [&str; 14] = [
        "ro",
        "rw",
        "quiet",
        "splash",
        "rhgb",
        "console",
        "earlyprintk",
        "earlycon",
        "loglevel",
        "debug",
        "panic",
        "reboot",
        "crashkernel",
        "nofb",
    ];
    let is_setting = |key: &str| {
        let is_in = |list: &[&str]| list.iter().any(|own| is_same_name(own, key));
        is_in(KEPT_ARGUMENTS) && !is_in(&NO_SETTING)
    };
    let words = cmdline.tokens.iter().filter(|token| is_setting(&token.key)).map(|token| match &token.value {
        Some(value) => format!("{}={value}", token.key),
        None => token.key.clone(),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "no such argument".into() } else { words.join(" ") }
}

/// Daemons that run and turn what is looked at; empty where /proc could not be read.
fn daemons(holders: &Holders) -> Vec<String> {
    if holders.n_processes.get().is_none_or(|n| *n == 0) {
        return Vec::new();
    }
    let mut names: Vec<String> = holders.daemons.iter().map(|daemon| daemon.name.clone()).collect();
    names.sort();
    names.dedup();
    // Who sees only itself (hidepid, a PID namespace) knows nothing of the others.
    let sees_others = holders.n_processes.get().is_some_and(|n| *n > 1);
    if names.is_empty() && sees_others { vec!["none".into()] } else { names }
}
