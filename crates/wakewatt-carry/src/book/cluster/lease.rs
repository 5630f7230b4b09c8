//! Who holds a rollout: a Lease, as the control plane's own leaders hold theirs.
//!
//! It ends by itself 120 s after it was last renewed, which is longer than an API server takes to start again. Whether
//! another's has ended is told by two wall clocks, the writer's and ours, so it is given half a minute more; clocks further apart than that cannot lead to two who write (the state's version
//! decides that), only to a rollout that is stopped by another. Our own is told by our own clock, which no one sets: 120 s
//! after the last renewal was asked for it is no longer ours, and nothing more is changed.

use super::{BookError, Kind, Place};
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant, SystemTime};

/// How long a Lease lasts without being renewed.
pub(super) const LASTS_S: u64 = 120;
const LASTS: Duration = Duration::from_secs(LASTS_S);
/// Between the clocks of two operators.
const SKEW: Duration = Duration::from_secs(30);
/// Renewed no more often than this by writes.
const OFTEN: Duration = Duration::from_secs(LASTS_S / 8);

/// A Lease that is ours.
pub(super) struct Held {
    object: Value,
    who: String,
    /// When the last renewal was asked for.
    since: Instant,
    /// Somebody else had it, or it was there before.
    pub(super) has_taken_over: bool,
}

impl Held {
    /// Takes it, if nobody has it.
    pub(super) fn take(place: &Place, who: &str, now: SystemTime) -> Result<Held, BookError> {
        let who = format!("{who} {:08x}", RandomState::new().build_hasher().finish() >> 32);
        let found = place.get(Kind::Lease, &place.name)?;
        if let Some((holder, until)) = found.as_ref().and_then(holder)
            && until + SKEW > now
        {
            return Err(held(place, holder, until + SKEW));
        }
        let has_taken_over = found.is_some();
        let mut object = found.unwrap_or_else(|| {
            let metadata = json!({"name": place.name, "namespace": place.namespace});
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}})
        });
        let n_transitions = object["spec"]["leaseTransitions"].as_u64().unwrap_or_default();
        object["spec"] = json!({
            "holderIdentity": who, "leaseDurationSeconds": LASTS_S, "acquireTime": micro(now), "renewTime": micro(now),
            "leaseTransitions": n_transitions + u64::from(has_taken_over),
        });
        let since = Instant::now();
        match place.put(Kind::Lease, object) {
            Ok(object) => Ok(Held { object, who, since, has_taken_over }),
            // Somebody was faster.
            Err(BookError::Changed(_)) => {
                let now = place.get(Kind::Lease, &place.name)?;
                Err(now.as_ref().and_then(holder).map_or_else(
                    || BookError::Changed(place.said()),
                    |(holder, until)| held(place, holder, until + SKEW),
                ))
            }
            Err(error) => Err(error),
        }
    }

    /// Is it still ours, by our own clock?
    pub(super) fn check(&mut self, place: &Place) -> Result<(), BookError> {
        if self.since.elapsed() > OFTEN { self.renew(place) } else { Ok(()) }
    }

    /// Renews it, unless that was done just now.
    pub(super) fn renew(&mut self, place: &Place) -> Result<(), BookError> {
        if self.since.elapsed() < Duration::from_secs(1) {
            return Ok(());
        }
        let asked = Instant::now();
        self.object["spec"]["renewTime"] = json!(micro(SystemTime::now()));
        match place.put(Kind::Lease, self.object.clone()) {
            // Answered after it had ended: somebody else may have looked in between. The version says that nobody wrote.
            Ok(object) => {
                (self.object, self.since) = (object, asked);
                Ok(())
            }
            Err(BookError::Changed(place_said)) => {
                let now = place.get(Kind::Lease, &place.name)?;
                match now.as_ref().and_then(holder) {
                    Some((other, until)) if other != self.who => Err(held(place, other, until + SKEW)),
                    _ => Err(BookError::Changed(place_said)),
                }
            }
            Err(error) if self.since.elapsed() < LASTS => {
                // Still ours: who asks for a write hears of the trouble there, with its reason.
                let _ = error;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Gives it back; best effort, for it ends by itself.
    pub(super) fn let_go(&self, place: &Place) {
        let mut object = self.object.clone();
        object["spec"]["holderIdentity"] = json!("");
        let right =
            super::Right { verb: "update", resource: "leases.coordination.k8s.io", namespace: Some(&place.namespace) };
        let path = place.path(Kind::Lease, &place.name);
        let _ = place.api.ask_once(right, &path, super::Body::Object(&object), Instant::now() + Duration::from_secs(5));
    }
}

/// Who has it, and until when; none where it was given back.
fn holder(lease: &Value) -> Option<(String, SystemTime)> {
    let spec = &lease["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|who| !who.is_empty())?;
    let lasts = Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or(LASTS_S).min(3600));
    // One that never says when it was renewed has ended.
    let renewed = spec["renewTime"].as_str().and_then(|text| humantime::parse_rfc3339(text).ok())?;
    Some((wakewatt_core::visible::line(holder).into_owned(), renewed + lasts))
}

fn held(place: &Place, holder: String, until: SystemTime) -> BookError {
    let until = Some(humantime::format_rfc3339_seconds(until).to_string());
    BookError::Held { place: format!("lease {}/{}", place.namespace, place.name), holder, until }
}

/// As the API writes such times.
fn micro(time: SystemTime) -> String {
    humantime::format_rfc3339_micros(time).to_string()
}
