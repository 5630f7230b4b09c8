//! What the kernel said about it while it started.
//!
//! Lines of drivers/idle/intel_idle.c ("max_cstate N reached"), drivers/acpi ("processor limited to max C-state"),
//! drivers/cpufreq/intel_pstate.c ("P-states controlled by the platform"), arch/x86 intel_epb.c ("Set to 'normal'"),
//! init/main.c and kernel/params.c (unknown parameters). Their absence proves nothing: the buffer may have wrapped, and
//! some are said only when there was something to cut. So an absent line is never "broken".

use super::super::argument::split_word;
use super::{BootWanted, Check};

const PLACE: &str = "kernel log";

/// All lines that matter for these parameters.
pub(super) fn said(text: Option<&str>, wanted: &BootWanted, checks: &mut Vec<Check>) {
    let Some(text) = text else {
        let check = Check::new("what the kernel said", PLACE, "no complaint");
        return checks
            .push(check.cannot_tell("", "the kernel's log could not be read (root is needed, or it is restricted)"));
    };
    let line = |part: &str| text.lines().find(|l| l.contains(part)).map(str::trim);
    number(wanted, "intel_idle.max_cstate", line("intel_idle: max_cstate"), "max_cstate ", checks);
    number(wanted, "processor.max_cstate", line("processor limited to max C-state"), "max C-state ", checks);
    let is_mode_wanted = ["active", "passive"].iter().any(|m| wanted.value("intel_pstate") == Some(m));
    if let Some(found) = line("P-states controlled by the platform").filter(|_| is_mode_wanted) {
        checks.push(Check::new("who controls frequency", PLACE, "intel_pstate").found(found, false));
    }
    if let Some(found) = line("ENERGY_PERF_BIAS: Set to 'normal'") {
        let why =
            "the kernel has replaced the firmware's energy bias, as it always does; it is set at run time, not at boot";
        checks.push(Check::new("energy bias", PLACE, "as the firmware set it").cannot_tell(found, why));
    }
    for argument in &wanted.arguments {
        if let Some(found) = text.lines().find(|l| is_unknown(l, argument)) {
            let check = Check::new(format!("{} understood", argument.key()), PLACE, "no complaint");
            checks.push(check.found(found.trim(), false));
        }
    }
}

/// A line that repeats a limit.
fn number(wanted: &BootWanted, key: &str, line: Option<&str>, before: &str, checks: &mut Vec<Check>) {
    let Some(value) = wanted.value(key) else { return };
    let check = Check::new(format!("{key} said by the kernel"), PLACE, value);
    let said = line.and_then(|l| {
        let digits: String = l.split(before).nth(1)?.chars().take_while(char::is_ascii_digit).collect();
        Some((l, digits))
    });
    checks.push(match said {
        Some((line, digits)) => check.found(line, digits == value),
        None => check.cannot_tell("", "the kernel says it only if there was a deeper state to leave out"),
    });
}

/// `Unknown kernel command line parameters "a=1 b", will be passed to user space.` or `mod: unknown parameter 'x' ignored`.
fn is_unknown(line: &str, argument: &crate::boot::Argument) -> bool {
    if let Some((_, rest)) = line.split_once("nknown kernel command line parameters \"") {
        return rest
            .split('"')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .any(|w| argument.has_name(split_word(w).0));
    }
    let Some((module, parameter)) = argument.key().split_once('.') else { return false };
    line.contains(&format!("{module}: unknown parameter '{parameter}"))
}
