//! The kernel's log (`dmesg`, `journalctl -k`, console logs): what it says of idle driver, microcode, clock, boot line, machine.
//!
//! Most lines of a log are of no interest here and are passed over as such; they count as known, because they are lines of a log.
//! `intel_idle: max_cstate 1 reached` is the driver's own word that a limit holds. That a driver announced itself is not that it is in
//! charge: what is concluded gives way to what another text says outright.

use crate::facts::CPU;
use crate::plain::hex;
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "kernel-log", title: "kernel log", detect, read };

/// What follows the time stamp: `[    0.000000] Linux…`, `Nov 20 10:00:00 db7 kernel: Linux…`, `<6>[ 1.0] …`.
fn message(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = line
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
        .filter(|(level, _)| level.len() < 4)
        .map_or(line, |(_, rest)| rest);
    if let Some(rest) = line.strip_prefix('[') {
        let (stamp, rest) = rest.split_once(']')?;
        let is_stamp = stamp.trim_start().starts_with(|c: char| c.is_ascii_digit()) || stamp.contains(':');
        // The name of a thread (`T12`) or CPU may follow.
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("[ ").and_then(|r| r.split_once(']')).map_or(rest, |(_, r)| r);
        return is_stamp.then(|| rest.trim());
    }
    line.split_once(" kernel: ").filter(|(front, _)| front.len() < 80).map(|(_, rest)| {
        let rest = rest.trim();
        rest.strip_prefix('[')
            .and_then(|r| r.split_once(']'))
            .filter(|(s, _)| s.contains('.'))
            .map_or(rest, |(_, r)| r.trim())
    })
}

/// `Nov 20 10:00:00 db7 sshd[1]: hello`, `2026-11-20T10:00:00+0000 db7 …`, `-- Boot 1f2… --`: a log's line that is not the kernel's.
fn is_of_others(line: &str) -> bool {
    let line = line.trim();
    let mut words = line.split_whitespace();
    let (Some(first), second, third) = (words.next(), words.next(), words.next()) else { return false };
    let is_day = || second.is_some_and(|day| day.len() <= 2 && day.bytes().all(|b| b.is_ascii_digit()));
    let is_time = |word: &str| word.len() >= 8 && word.as_bytes()[2] == b':' && word.as_bytes()[5] == b':';
    let is_stamp = first.len() >= 19 && first.as_bytes()[4] == b'-' && first.as_bytes()[10] == b'T';
    let is_month = first.len() == 3 && first.bytes().all(|b| b.is_ascii_alphabetic());
    is_stamp || (is_month && is_day() && third.is_some_and(is_time)) || line.starts_with("-- ")
}

fn detect(section: &Section<'_>) -> u32 {
    let by = likely(section, "journalctl", |line| message(line).is_some());
    likely(section, "dmesg", |line| message(line).is_some()).max(by)
}

fn read(reading: &mut Reading<'_>) {
    let mut clock = None;
    let mut idle_driver = None;
    let lines = reading.open_lines();
    let begins = |text: &str| message(text).is_some_and(|said| said.starts_with("Linux version "));
    let n_boots = lines.iter().filter(|(_, line)| begins(&line.text)).count();
    // A log of several boots is of several machines, as it were: what holds now is the last one's.
    let from = lines.iter().rposition(|(_, line)| begins(&line.text)).filter(|_| n_boots > 1).unwrap_or(0);
    if n_boots > 1 {
        reading.remark(format!("kernel log of {n_boots} boots: only the last is read"));
    }
    for (at, line) in &lines[..from] {
        if message(&line.text).is_some() || is_of_others(&line.text) {
            reading.unused(*at);
        }
    }
    for (at, line) in lines.into_iter().skip(from) {
        let Some(said) = message(&line.text) else {
            if is_of_others(&line.text) {
                reading.unused(at);
            }
            continue;
        };
        reading.unused(at);
        if let Some(rest) = said.strip_prefix("Linux version ") {
            reading.put(at, "/proc/version", said);
            if let Some(release) = rest.split_whitespace().next() {
                reading.put(at, "/proc/sys/kernel/osrelease", release);
            }
        } else if let Some(rest) =
            said.strip_prefix("Command line: ").or_else(|| said.strip_prefix("Kernel command line: "))
        {
            reading.put(at, "/proc/cmdline", rest);
        } else if let Some(rest) = said.strip_prefix("DMI: ") {
            let (machine, bios) = rest.split_once(", BIOS ").unwrap_or((rest, ""));
            let (machine, board) = machine.rsplit_once('/').unwrap_or((machine, ""));
            reading.conclude(at, "/sys/class/dmi/id/product_name", machine);
            if !board.is_empty() {
                reading.conclude(at, "/sys/class/dmi/id/board_name", board);
            }
            if let Some((version, date)) = bios.split_once(' ') {
                reading.conclude(at, "/sys/class/dmi/id/bios_version", version);
                reading.conclude(at, "/sys/class/dmi/id/bios_date", date);
            }
        } else if let Some(rest) = said.strip_prefix("intel_idle: ").or_else(|| said.strip_prefix("ACPI: intel_idle: "))
        {
            intel_idle(reading, at, rest, &mut idle_driver);
        } else if let Some(governor) = said.strip_prefix("cpuidle: using governor ") {
            // Each announces itself; the last one that was registered with the highest rating wins, which the log does not say.
            reading.say(format!("kernel log: cpuidle may use governor {governor}"));
            reading.take(at);
        } else if let Some(rest) = said.strip_prefix("clocksource: Switched to clocksource ") {
            clock = Some((at, rest.split_whitespace().next().unwrap_or(rest).to_string()));
        } else if said.contains("Marking TSC unstable")
            || (said.starts_with("clocksource: ") && said.contains("unstable"))
        {
            reading.say(format!("kernel log: {said}"));
            reading.take(at);
        } else if said.starts_with("ACPI: processor limited to max C-state")
            || said.starts_with("processor: limited to max C-state")
        {
            if let Some(n) = said.rsplit(' ').next().filter(|n| n.parse::<u8>().is_ok()) {
                reading.put(at, "/sys/module/processor/parameters/max_cstate", n);
            }
        } else if said.starts_with("microcode: ") || said.starts_with("microcode updated") {
            let words = ["revision=", "Current revision: ", "to revision ", "revision: "];
            let found = words.iter().find_map(|w| said.split(w).nth(1)).and_then(hex);
            if let Some(revision) = found {
                reading.conclude(at, &format!("{CPU}/cpu0/microcode/version"), &format!("0x{revision:x}"));
                reading.take(at);
            }
        } else if let Some(rest) = said.strip_prefix("smpboot: CPU0: ").or_else(|| said.strip_prefix("CPU0: ")) {
            processor(reading, at, rest);
        } else if let Some(name) = said.strip_prefix("Hypervisor detected: ") {
            reading.say(format!("kernel log: this is a guest of {name}"));
            reading.take(at);
        } else if said.contains("intel_pstate: HWP enabled")
            || said.starts_with("ENERGY_PERF_BIAS:")
            || said.contains("intel_pstate: ")
        {
            reading.say(format!("kernel log: {said}"));
            reading.take(at);
        } else if said.starts_with("mce: ") && said.contains("temperature") || said.contains("CPU clock throttled") {
            reading.say(format!("kernel log: {}", said.chars().take(120).collect::<String>()));
            reading.take(at);
        }
    }
    if let Some((at, clock)) = clock {
        reading.put(at, "/sys/devices/system/clocksource/clocksource0/current_clocksource", &clock);
    }
    if let Some((at, driver)) = idle_driver {
        reading.conclude(at, &format!("{CPU}/cpuidle/current_driver"), driver);
    }
}

fn intel_idle(reading: &mut Reading<'_>, at: usize, said: &str, driver: &mut Option<(usize, &'static str)>) {
    let parameter = "/sys/module/intel_idle/parameters/max_cstate";
    if let Some(n) = said.strip_prefix("max_cstate ").and_then(|rest| rest.strip_suffix(" reached")) {
        // As the driver prints its parameter: it stopped there.
        if n.trim().parse::<u8>().is_ok() {
            reading.put(at, parameter, n.trim());
        }
    } else if said.starts_with("intel_idle yielding to") {
        *driver = Some((at, if said.contains("acpi_idle") { "acpi_idle" } else { "none" }));
        reading.take(at);
    } else if said.starts_with("disabled") {
        reading.put(at, parameter, "0");
    } else if said.starts_with("does not run on") || said.starts_with("Please enable MWAIT") {
        reading.say(format!("kernel log: intel_idle {said}"));
        reading.take(at);
    } else if said.starts_with("v0.") || said.contains("model 0x") || said.contains("Using ") {
        driver.get_or_insert((at, "intel_idle"));
        reading.take(at);
    } else {
        reading.unused(at);
    }
}

/// `Intel(R) Xeon(R) Gold 6226R (family: 0x6, model: 0x55, stepping: 0x7)`.
fn processor(reading: &mut Reading<'_>, at: usize, said: &str) {
    let Some((name, ids)) = said.split_once(" (") else { return };
    let of = |key: &str| ids.split(key).nth(1).and_then(hex);
    let (Some(family), Some(model)) = (of("family: "), of("model: ")) else { return };
    let vendor = if name.contains("Intel") {
        "GenuineIntel"
    } else if name.contains("AMD") {
        "AuthenticAMD"
    } else {
        return;
    };
    let stepping = of("stepping: ").map_or(String::new(), |n| format!("\nstepping\t: {n}"));
    let block = format!(
        "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t: {model}\nmodel name\t: {name}{stepping}"
    );
    reading.conclude(at, "/proc/cpuinfo", &block);
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn what_the_log_says_of_idle() {
        let text = "[    0.000000] Linux version 5.15.0-91-generic (build@x) (gcc) #101-Ubuntu SMP Tue Nov 14\n[    0.000000] Command line: BOOT_IMAGE=/vmlinuz intel_idle.max_cstate=1 processor.max_cstate=1\n\
            [    0.000000] DMI: Dell Inc. PowerEdge R640/0H28RR, BIOS 2.10.2 02/24/2021\n[    0.10] smpboot: CPU0: Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz (family: 0x6, model: 0x55, stepping: 0x7)\n\
            [    1.000000] intel_idle: MWAIT substates: 0x2020\n[    1.000001] intel_idle: v0.5.1 model 0x55\n[    1.000002] intel_idle: max_cstate 1 reached\n\
            [    1.200000] clocksource: Switched to clocksource tsc-early\n[    2.2] clocksource: Switched to clocksource tsc\n[    3.0] microcode: sig=0x50657, pf=0x80, revision=0x5003604\n[    4.0] usb 1-1: new device\n";
        let found = read(text);
        assert_eq!(formats(&found), ["kernel-log"]);
        assert_eq!(says(&found, "/sys/module/intel_idle/parameters/max_cstate").as_deref(), Some("1"));
        assert_eq!(says(&found, "/proc/sys/kernel/osrelease").as_deref(), Some("5.15.0-91-generic"));
        assert_eq!(
            says(&found, "/sys/devices/system/clocksource/clocksource0/current_clocksource").as_deref(),
            Some("tsc")
        );
        assert_eq!(says(&found, "/sys/class/dmi/id/bios_version").as_deref(), Some("2.10.2"));
        assert_eq!(found.document.files[0].n_not_understood, 0);
        let journal =
            read("Nov 20 10:00:00 db7 kernel: intel_idle: max_cstate 1 reached\nNov 20 10:00:00 db7 sshd[1]: hello\n");
        assert_eq!(says(&journal, "/sys/module/intel_idle/parameters/max_cstate").as_deref(), Some("1"));
        assert_eq!((journal.document.files[0].n_unused, journal.document.files[0].n_not_understood), (1, 0));
    }
}
