//! Which words of core stand in constants, to be looked up where they are shown?
//!
//! `wakewatt_words::told` looks words up while running; `cargo xtask words` asks here which there are.

use crate::compare::{gate, predict, residency};
use crate::facts::msr::registers;
use crate::facts::{holders, kernel};
use crate::samples::cores::Nearness;
use crate::samples::wakes::WakeClass;
use crate::samples::{not_done, payers, repeated, replayed, titles};
use crate::{glossary, kept_words, rules, stats};

/// Where they stand, and the words.
pub fn all() -> Vec<(&'static str, &'static str)> {
    let mut all = Vec::new();
    let mut add = |place: &'static str, words: &mut dyn Iterator<Item = &'static str>| {
        all.extend(words.map(|words| (place, words)));
    };
    add("crates/wakewatt-core/src/rules/known_kernel_changes.rs", &mut rules::kernel_change_words());
    add(
        "crates/wakewatt-core/src/facts/holders.rs",
        &mut holders::DAEMONS.iter().flat_map(|daemon| daemon.overlaps.iter().copied()),
    );
    add("crates/wakewatt-core/src/kept_words.rs", &mut kept_words::words());
    add(
        "crates/wakewatt-core/src/facts/msr/registers.rs",
        &mut registers::REGISTERS.iter().flat_map(|r| std::iter::once(r.help).chain(r.fields.iter().map(|f| f.label))),
    );
    add("crates/wakewatt-core/src/facts/kernel.rs", &mut kernel::PREEMPT.iter().copied());
    add("crates/wakewatt-core/src/samples/titles.rs", &mut titles::words());
    add("crates/wakewatt-core/src/samples/repeated.rs", &mut repeated::words());
    add("crates/wakewatt-core/src/samples/not_done.rs", &mut not_done::words());
    add("crates/wakewatt-core/src/samples/replayed.rs", &mut [replayed::AS_RECORDED].into_iter());
    add("crates/wakewatt-core/src/samples/payers.rs", &mut payers::words());
    add("crates/wakewatt-core/src/samples/cores.rs", &mut Nearness::ALL.into_iter().map(Nearness::words));
    add("crates/wakewatt-core/src/samples/wakes.rs", &mut WakeClass::ALL.into_iter().map(WakeClass::words));
    add("crates/wakewatt-core/src/stats/sequential.rs", &mut stats::sequential::words());
    add("crates/wakewatt-core/src/compare/gate/rule.rs", &mut gate::words());
    add("crates/wakewatt-core/src/compare/predict.rs", &mut predict::words());
    add("crates/wakewatt-core/src/compare/residency.rs", &mut residency::words());
    all.extend(glossary::words());
    all
}
