//! Wake-up latency for `watch --trace`: what the probe counted since it was last asked.

use super::named::{Latencies, Named};
use super::names::{Names, settings};
use super::paying::{Paid, Paying};
use super::refused;
use crate::refusal::Refusal;
use crate::watch::LatencyFeed;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::samples::traced::rows;
use wakewatt_core::samples::wakes::WakeCounters;
use wakewatt_core::source::Source;
use wakewatt_core::watch::LatencyRow;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_probes::wake::{Scope, Spec, WakeProbe};

/// An attached probe and its last reading.
#[derive(Debug)]
pub struct WakeFeed {
    probe: WakeProbe,
    named: Named,
    last: WakeCounters,
    /// None where nobody asked; else, or why it cannot be told.
    paying: Option<Result<Paying, String>>,
}

impl WakeFeed {
    /// Attaches.
    pub fn attach(src: &dyn Source) -> Result<WakeFeed, Refusal> {
        WakeFeed::attach_by(src, None)
    }

    /// Attaches, and adds up who pays in this way where that can be told here.
    pub fn attach_by(src: &dyn Source, by: Option<PayerKind>) -> Result<WakeFeed, Refusal> {
        let paying = by.map(|by| Paying::start(by, src, monotonic_ns()));
        let facts: Snapshot = settings(src);
        let names = Names::of(&facts);
        let (n_states, polling_state) = (names.n_states(), names.polling());
        let spec = Spec {
            scope: Scope::Machine,
            n_states,
            polling_state,
            record_bytes: None,
            is_exact: false,
            is_by_cgroup: matches!(paying, Some(Ok(_))),
            is_by_waker: false,
            is_brief: true,
            is_empty: false,
        };
        let mut probe = WakeProbe::attach(&spec).map_err(refused)?;
        let last = probe.read(monotonic_ns()).map_err(refused)?;
        Ok(WakeFeed { probe, named: Named::of(names), last, paying })
    }

    /// What the probe could not attach, and what is missing for it.
    pub fn gaps(&self) -> &[String] {
        self.probe.gaps()
    }

    /// Looks again at what states are called.
    pub fn look_again(&mut self, src: &dyn Source) -> Result<(), Refusal> {
        let names = Names::of(&settings(src));
        let now = self.probe.read(monotonic_ns()).map_err(refused)?;
        if let Some(Ok(paying)) = &mut self.paying
            && !self.named.names.is_same(&names)
        {
            paying.rename(&now, &self.named);
        }
        self.named.rename(names, &now);
        Ok(())
    }

    /// Why nothing is counted although it is attached.
    pub fn stale_because(&self) -> Option<&str> {
        self.named.stale_because()
    }

    /// Why it cannot be told who pays although that was asked.
    pub fn no_payers_because(&self) -> Option<&str> {
        self.paying.as_ref()?.as_ref().err().map(String::as_str)
    }
}

/// What the probe counted since it was attached.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Wake-ups over all CPUs, by name and index of the state they left and by class; of those whose state is known.
    pub latencies: Latencies,
    /// Wake-ups that could not be counted.
    pub n_unclassed: u64,
    /// Who pays; none where that was not asked for, or cannot be told here.
    pub paid: Option<Paid>,
}

impl WakeFeed {
    /// Everything since it was attached.
    pub fn counted(&mut self, src: &dyn Source) -> Result<Counted, Refusal> {
        let now = self.probe.read(monotonic_ns()).map_err(refused)?;
        let paying = self.paying.as_mut().and_then(|paying| paying.as_mut().ok());
        let is_counted = self.named.stale_because().is_none();
        let paid = paying.filter(|_| is_counted).map(|paying| paying.paid(&now, &self.named.names, src));
        let n_unclassed = now.cpus.iter().map(|cpu| cpu.n_unclassed).sum();
        Ok(Counted { latencies: self.named.latencies(&now), n_unclassed, paid })
    }
}

impl LatencyFeed for WakeFeed {
    fn rows(&mut self) -> Result<Vec<LatencyRow>, String> {
        let now = self.probe.read(monotonic_ns()).map_err(|why| why.to_string())?;
        let name_of = |cpu, state| self.named.names.of_state(cpu, state);
        let found = rows(&now.since(&self.last), &name_of, None);
        self.last = now;
        Ok(found
            .into_iter()
            .map(|row| LatencyRow {
                state: row.state.unwrap_or_else(|| "(not idle)".into()),
                class: row.class.words().into(),
                n: row.n,
                p50_ns: row.latency.p50_ns(),
                p99_ns: row.latency.p99_ns(),
                lost_ns: row.total_ns.unwrap_or(0),
            })
            .collect())
    }
}
