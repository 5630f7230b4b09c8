//! The agent itself: what it costs, what it could not read, since when it counts.

use super::Known;
use crate::confined::Guarded;
use crate::metric::{Page, Word, names};
use std::sync::Arc;

/// What the agent knows of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    /// Its version.
    pub version: &'static str,
    /// When it started, in seconds since 1970.
    pub start_s: f64,
    /// Memory now; none where the kernel does not say.
    pub resident_bytes: Option<u64>,
    /// Source and, where it does not answer, why.
    pub sources: Vec<(&'static str, Option<String>)>,
    /// When the certificate expires, in seconds since 1970; none without one.
    pub certificate_end_s: Option<u64>,
    /// What was given up.
    pub guards: Arc<[Guarded]>,
    /// Pages sent and dropped; none without a push.
    pub pushes: Option<(u64, u64)>,
    /// Wake-ups that could not be counted; none without a trace.
    pub n_events_lost: Option<u64>,
}

pub(super) fn add(page: &mut Page, known: &Known<'_>) {
    let own = known.own;
    page.number(&names::BUILD, vec![("version", own.version.into())], 1.0);
    page.number(&names::START, Vec::new(), own.start_s);
    for (source, trouble) in &own.sources {
        let mut labels = vec![("source", Word::from(*source))];
        labels.extend(trouble.as_ref().map(|why| ("why", why.as_str().into())));
        page.number(&names::SOURCE_UP, labels, if trouble.is_none() { 1.0 } else { 0.0 });
    }
    if let Some(end_s) = own.certificate_end_s {
        page.number(&names::CERTIFICATE_EXPIRY, Vec::new(), end_s as f64);
    }
    for one in own.guards.iter() {
        let mut labels = vec![("guard", Word::from(one.guard))];
        labels.extend(one.not_because.as_ref().map(|why| ("why", why.as_str().into())));
        page.number(&names::CONFINED, labels, if one.kept.is_some() { 1.0 } else { 0.0 });
    }
    if let Some((n_sent, n_dropped)) = own.pushes {
        page.number(&names::PUSHES, vec![("outcome", "sent".into())], n_sent as f64);
        page.number(&names::PUSHES, vec![("outcome", "dropped".into())], n_dropped as f64);
    }
    page.number(&names::STEPS_BACK, Vec::new(), known.totals.n_resets as f64);
    page.number(&names::OWN_CPU, Vec::new(), known.now.clocks.own_cpu_ns as f64 / 1e9);
    page.known(&names::OWN_MEMORY, Vec::new(), own.resident_bytes.map(|n| n as f64));
    // A process is always told its own (getrusage(2)).
    page.number(&names::OWN_WAKEUPS, Vec::new(), known.now.clocks.n_own_wakeups as f64);
    page.number(&names::OWN_INTERRUPTS, Vec::new(), known.totals.n_remote_interrupts as f64);
    page.number(&names::READING_TIME, Vec::new(), known.now.took_ns as f64 / 1e9);
    page.known(&names::EVENTS_LOST, Vec::new(), own.n_events_lost.map(|n| n as f64));
}
