//! May the arms of a plan be compared here? Who changes settings must be alone with them, and two arms must be left.

use crate::plan::Plan;
use crate::refusal::Refusal;
use crate::setting_arms::ReadyArm;
use wakewatt_core::samples::study::Skipped;
use wakewatt_tune::begin::BeginError;
use wakewatt_tune::knobs::qos_global::{HoldError, Lock};

/// Why settings cannot be changed now.
pub(super) fn not_begun(error: BeginError) -> Refusal {
    match error {
        BeginError::Busy(why) => Refusal::Busy(why),
        BeginError::Refused(why) => Refusal::Barred(why),
    }
}

/// One wakewatt at a time experiments with the latency limit.
pub(super) fn lock_limit() -> Result<Option<Lock>, Refusal> {
    match Lock::take() {
        Ok(held) => Ok(Some(held)),
        Err(why @ HoldError::Busy) => Err(Refusal::Busy(why.to_string())),
        // Without the device nobody experiments with it.
        Err(_) => Ok(None),
    }
}

/// What was left out, and why, in one line.
pub(super) fn all(skipped: &[Skipped]) -> String {
    let why: Vec<String> = skipped.iter().map(|s| format!("{}: {}", s.what, s.why)).collect();
    why.join("; ")
}

/// A strict plan leaves nothing out.
pub(super) fn strict(plan: &Plan, skipped: &[Skipped]) -> Result<(), Refusal> {
    if !plan.is_strict || skipped.is_empty() {
        return Ok(());
    }
    Err(Refusal::Barred(format!("not possible here, and --strict was said: {}", all(skipped))))
}

/// Too few arms are left.
pub(super) fn nothing_to_compare(skipped: &[Skipped]) -> Refusal {
    Refusal::Barred(format!("fewer than two arms can be set here: {}", all(skipped)))
}

/// Enough arms, and which one is the baseline.
pub(super) fn check(
    plan: &Plan,
    ready: &[ReadyArm],
    skipped: &[Skipped],
    remarks: &mut Vec<String>,
) -> Result<(), Refusal> {
    strict(plan, skipped)?;
    if ready.len() < 2 {
        return Err(nothing_to_compare(skipped));
    }
    let (wanted, found) = (plan.arms.first().map(|a| &a.name), ready.first().map(|a| &a.arm.id));
    if let (Some(wanted), Some(found)) = (wanted, found) {
        if wanted != found {
            remarks.push(format!("the plan compares with {wanted}, which cannot be set here; {found} takes its place"));
        }
    }
    Ok(())
}
