//! The boot itself: another boot id, every wanted word once and in force, and the parameters as their modules hold them.
//!
//! `/proc/cmdline` is what the loader passed. A word that comes again later with another value is overruled; what
//! follows `--` belongs to init. A module's own parameter file is better evidence than the line, where it exists.

use super::super::argument::is_same_name;
use super::super::parameters::{Evidence, known};
use super::{BootWanted, Check, text};
use crate::boot::Argument;
use wakewatt_core::facts::boot::{BootToken, Cmdline};
use wakewatt_core::source::Source;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const LINE: &str = "/proc/cmdline";

/// Has the machine booted since?
pub(super) fn boot(source: &dyn Source, wanted: &BootWanted, checks: &mut Vec<Check>) {
    let Some(then) = wanted.planned_in_boot.as_deref().filter(|id| !id.is_empty()) else { return };
    let check = Check::new("a new boot", BOOT_ID, format!("another boot than {then}"));
    checks.push(match text(source, BOOT_ID) {
        Ok(now) => {
            let is_new = now != then;
            check.found(now, is_new)
        }
        Err(why) => check.cannot_tell("", why),
    });
}

/// Every word once and in force.
pub(super) fn words(source: &dyn Source, wanted: &BootWanted, checks: &mut Vec<Check>) {
    let line = text(source, LINE);
    for argument in &wanted.arguments {
        let check = Check::new(format!("{} on the kernel's line", argument.key()), LINE, format!("{argument}, once"));
        checks.push(match &line {
            Err(why) => check.cannot_tell("", why.clone()),
            Ok(line) => once(check, argument, &Cmdline::parse(line)),
        });
    }
}

fn once(check: Check, argument: &Argument, line: &Cmdline) -> Check {
    let shown = |t: &&BootToken| t.value.as_ref().map_or(t.key.clone(), |v| format!("{}={v}", t.key));
    let named: Vec<&BootToken> = line.tokens.iter().filter(|t| is_same_name(&t.key, argument.key())).collect();
    let is_ours = |t: &&&BootToken| t.value.as_deref() == argument.value();
    let is_in_force = named.last().is_some_and(|t| is_ours(&t));
    let n_ours = named.iter().filter(is_ours).count();
    let found = match named.as_slice() {
        [] => "not there".to_string(),
        all => all.iter().map(shown).collect::<Vec<_>>().join(" "),
    };
    let found = match (n_ours, is_in_force) {
        (1.., false) => format!("{found} (the last counts)"),
        (2.., true) => format!("{found} (more than once)"),
        _ => found,
    };
    check.found(found, n_ours == 1 && is_in_force)
}

/// The parameters as the modules, drivers and governors hold them.
pub(super) fn parameters(source: &dyn Source, wanted: &BootWanted, checks: &mut Vec<Check>) {
    for argument in &wanted.arguments {
        let value = argument.value().unwrap_or_default();
        let what = format!("{} in force", argument.key());
        match known(argument.key()).map(|p| p.evidence) {
            Some(Evidence::HoldsValue(path)) => {
                let check = Check::new(what, path, value);
                checks.push(compare(source, check, |now| is_equal(argument, now)));
            }
            Some(Evidence::Holds(path, text)) => {
                let is_on = !is_off(value);
                let check = Check::new(what, path, if is_on { text.into() } else { format!("not {text}") });
                checks.push(compare(source, check, |now| (now == text) == is_on));
            }
            Some(Evidence::HoldsNot(path, text)) => {
                checks.push(compare(source, Check::new(what, path, format!("not {text}")), |now| now != text));
            }
            Some(Evidence::Absent(path)) => {
                let check = Check::new(what, path, "no such folder");
                let is_there = source.list(path).is_ok();
                checks.push(check.found(if is_there { "there" } else { "not there" }, !is_there));
            }
            Some(Evidence::CommandLineOnly) | None => {}
        }
    }
}

fn compare(source: &dyn Source, check: Check, holds: impl Fn(&str) -> bool) -> Check {
    match text(source, &check.path) {
        Ok(now) => {
            let is_so = holds(&now);
            check.found(now, is_so)
        }
        Err(why) => {
            let why = match check.path.strip_prefix("/sys/module/").and_then(|p| p.split('/').next()) {
                Some(module) => format!("{why}; {module} is not in this kernel, not loaded, or has no such parameter"),
                None => why,
            };
            check.cannot_tell("", why)
        }
    }
}

fn is_off(value: &str) -> bool {
    matches!(value, "0" | "n" | "N" | "no" | "off")
}

/// The kernel prints a switch as Y or N, numbers in decimal, and raises processor.max_cstate=0 to 1.
fn is_equal(argument: &Argument, now: &str) -> bool {
    let wanted = argument.value().unwrap_or_default();
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    match now {
        "Y" => !is_off(wanted),
        "N" => is_off(wanted),
        "1" if argument.has_name("processor.max_cstate") => matches!(wanted, "0" | "1"),
        _ => now == wanted || (number(now).is_some() && number(now) == number(wanted)),
    }
}
