//! What was read, as a page of metrics: one file per part of the machine.
//!
//! Sums go over the CPUs of a node and a package; with `--per-cpu` each CPU stands by itself. Nothing here reads anything.

mod cpus;
mod described;
mod found;
mod idle;
mod meters;
mod own;
mod payers;
mod pressure;

pub(crate) use described::{Described, LASTING_TOPICS, SETTING_TOPICS};
pub use found::Found;
pub(crate) use idle::word as class_word;
pub(crate) use own::Own;
pub(crate) use pressure::{FILES as PRESSURE_FILES, Pressures};

use crate::measured::MeasuredExits;
use crate::metric::{Labels, Page, Word};
use crate::paying::Payers;
use crate::totals::{Seat, Totals};
use compact_str::ToCompactString as _;
use std::collections::BTreeMap;
use wakewatt_core::samples::kernel_histogram::KernelHistogram;
use wakewatt_core::samples::wakes::WakeClass;
use wakewatt_core::watch::{Counters, Layout};

/// Wake-ups by the idle state they left (name, index) and their class.
pub type Latencies = BTreeMap<(String, u32, WakeClass), KernelHistogram>;

/// Everything a page is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    /// What there is to watch.
    pub layout: &'a Layout,
    /// The last moment.
    pub now: &'a Counters,
    /// Counters since the agent started.
    pub totals: &'a Totals,
    /// How long tasks waited.
    pub pressures: &'a Pressures,
    /// Settings and findings.
    pub described: &'a Described,
    /// What leaving states was measured to take, with `--measured`.
    pub measured: Option<&'a MeasuredExits>,
    /// Wake-up latency, with `--trace`.
    pub latencies: &'a Latencies,
    /// Who pays, with `--by`.
    pub payers: Option<&'a Payers>,
    /// The agent itself.
    pub own: &'a Own,
    /// Each CPU by itself?
    pub is_per_cpu: bool,
}

/// The page.
pub(crate) fn page(known: &Known<'_>) -> Page {
    let mut page = Page { start_s: known.own.start_s, ..Page::default() };
    idle::add(&mut page, known);
    if let Some(payers) = known.payers {
        payers::add(&mut page, payers);
    }
    cpus::add(&mut page, known);
    meters::add(&mut page, known);
    described::add(&mut page, known.described);
    own::add(&mut page, known);
    page
}

/// Where CPUs sit: what sums are made over.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    node: Option<u32>,
    package: Option<u32>,
    cpu: Option<u32>,
}

impl Place {
    fn of(seat: Seat, is_per_cpu: bool) -> Place {
        Place { node: seat.node, package: seat.package, cpu: is_per_cpu.then_some(seat.cpu) }
    }

    /// What is known of it, after other labels.
    fn after(&self, first: impl IntoIterator<Item = (&'static str, Word)>) -> Labels {
        let parts = [("node", self.node), ("package", self.package), ("cpu", self.cpu)];
        let mut labels = Labels::with_capacity(4);
        labels.extend(first);
        labels.extend(parts.into_iter().filter_map(|(name, number)| Some((name, number?.to_compact_string()))));
        labels
    }
}
