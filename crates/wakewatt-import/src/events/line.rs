//! One line of events: who ran, on which CPU, when, and what happened.
//!
//! ```text
//!        swapper     0 [009] 328583.185774630: power:cpu_idle: state=1 cpu_id=9              perf script
//!   db 12/13 [001] 12.000345:          1 sched:sched_waking: comm=web pid=7 prio=120 target_cpu=003
//!           <idle>-0     [001] d..2.  123.456789: cpu_idle: state=4294967295 cpu_id=1        trace-cmd, ftrace
//! ```
//! A command's name may hold blanks and brackets, so the CPU is the last `[digits]` in front of the time. Older versions of both tools
//! write `prev:pid [prio] R ==> next:pid [prio]` and `comm:pid [prio] CPU:003`.

use std::collections::HashMap;
use wakewatt_core::cpuset::MAX_CPUS;

/// Names of tasks as numbers; beyond so many they are one.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<Box<str>, u32>,
    list: Vec<Box<str>>,
}

const MAX_NAMES: usize = 1 << 16;

impl Names {
    fn of(&mut self, name: &str) -> u32 {
        let name = name.trim();
        if let Some(number) = self.known.get(name) {
            return *number;
        }
        let name: Box<str> = if self.list.len() < MAX_NAMES {
            name.chars().take(64).collect::<String>().into()
        } else {
            "(others)".into()
        };
        if let Some(number) = self.known.get(&name) {
            return *number;
        }
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(name.clone());
        self.known.insert(name, number);
        number
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        self.list.get(number as usize).map_or("?", |name| &**name)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A CPU enters a state, or leaves it (none).
    Idle { cpu: u32, state: Option<u8> },
    /// A task is made runnable. `is_placed`: the CPU named is where it was put, not where it last ran.
    Waking { pid: i32, name: u32, target: u32, is_placed: bool },
    /// A task runs on.
    Switch { pid: i32, name: u32 },
    /// A timer's function runs.
    Timer { is_tick: bool },
    /// Any other interrupt.
    Interrupt,
    /// The interrupt by which one CPU wakes another.
    Reschedule,
    /// Known to be an event, and not one that is used.
    Other,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at_ns: u64,
    pub(crate) cpu: u32,
    pub(crate) what: What,
}

/// CPU, time, name of the event, its fields.
pub(crate) fn parts(text: &str) -> Option<(u32, u64, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('[') {
        let open = from + open;
        from = open + 1;
        let Some(length) = text[from..].find(']') else { break };
        let Some(cpu) = text[from..from + length].parse::<u32>().ok().filter(|cpu| *cpu < MAX_CPUS) else { continue };
        // Flags of ftrace (`d..2.`) may stand before the time.
        let mut rest = text[from + length + 1..].trim_start();
        for _ in 0..2 {
            let (word, tail) = rest.split_once(char::is_whitespace)?;
            if let Some(at_ns) = word.strip_suffix(':').and_then(time_ns) {
                let tail = tail.trim_start();
                // perf prints the period of the sample in front where it has one.
                let tail = match tail.split_once(char::is_whitespace) {
                    Some((period, tail)) if period.bytes().all(|b| b.is_ascii_digit()) => tail.trim_start(),
                    _ => tail,
                };
                let (event, fields) = named(tail)?;
                return Some((cpu, at_ns, event, fields));
            }
            rest = tail.trim_start();
        }
    }
    None
}

/// `sched:sched_waking: fields` or `sched_waking: fields`; the name without its family.
fn named(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')?;
    let (first, rest) = (&text[..end], text[end..].strip_prefix(':')?);
    if first.is_empty() {
        return None;
    }
    if rest.starts_with(char::is_whitespace) || rest.is_empty() {
        return Some((first, rest.trim()));
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')?;
    let fields = rest[end..].strip_prefix(':')?;
    (end > 0).then_some((&rest[..end], fields.trim()))
}

/// `328583.185774630` in nanoseconds; a comma for the point as well.
fn time_ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once(['.', ','])?;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction.parse::<u64>().ok()? * scale)
}

/// The value of a field, up to the next blank.
fn field<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    let mut from = 0;
    while let Some(at) = fields[from..].find(key) {
        let at = from + at;
        let value = &fields[at + key.len()..];
        if (at == 0 || fields[..at].ends_with([' ', '\t', ','])) && value.starts_with('=') {
            let value = &value[1..];
            return Some(value.split([' ', '\t', ',']).next().unwrap_or(value));
        }
        from = at + key.len();
    }
    None
}

fn number<T: std::str::FromStr>(fields: &str, key: &str) -> Option<T> {
    field(fields, key)?.parse().ok()
}

/// A name between two keys: it may hold blanks.
fn between<'a>(fields: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let start = fields.find(from)? + from.len();
    let end = fields[start..].find(to)?;
    Some(&fields[start..start + end])
}

/// The whole event. An error says what is missing in an event that would be used.
pub(crate) fn event(text: &str, names: &mut Names) -> Option<Result<Event, &'static str>> {
    let (cpu, at_ns, name, fields) = parts(text)?;
    let what = match name {
        "cpu_idle" => idle(cpu, fields).ok_or("cpu_idle without a state"),
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
            waking(fields, name != "sched_waking", names).ok_or("a wake-up without task and CPU")
        }
        "sched_switch" => switch(fields, names).ok_or("a switch without the next task"),
        "hrtimer_expire_entry" => {
            Ok(What::Timer { is_tick: fields.contains("tick_sched") || fields.contains("tick_nohz") })
        }
        "timer_expire_entry" | "local_timer_entry" => Ok(What::Timer { is_tick: false }),
        "reschedule_entry" | "call_function_entry" | "call_function_single_entry" | "ipi_entry" => Ok(What::Reschedule),
        "irq_handler_entry" => Ok(What::Interrupt),
        _ => Ok(What::Other),
    };
    Some(what.map(|what| Event { at_ns, cpu, what }))
}

fn idle(cpu: u32, fields: &str) -> Option<What> {
    let state = field(fields, "state")?;
    let cpu = number(fields, "cpu_id").filter(|cpu| *cpu < MAX_CPUS).unwrap_or(cpu);
    // -1 as the kernel's unsigned number, of 32 or 64 bits.
    let state = match state {
        "4294967295" | "-1" | "18446744073709551615" | "0xffffffff" => None,
        state => Some(state.parse::<u8>().ok().filter(|s| *s < 64)?),
    };
    Some(What::Idle { cpu, state })
}

fn waking(fields: &str, is_placed: bool, names: &mut Names) -> Option<What> {
    if let Some(name) = between(fields, "comm=", " pid=") {
        let target = number(fields, "target_cpu").filter(|cpu| *cpu < MAX_CPUS)?;
        return Some(What::Waking { pid: number(fields, "pid")?, name: names.of(name), target, is_placed });
    }
    let (task, rest) = fields.split_once(" [")?;
    let (name, pid) = task.rsplit_once(':')?;
    let cpu = &rest[rest.find("CPU:")? + 4..];
    let target = cpu.split_whitespace().next()?.parse().ok().filter(|cpu| *cpu < MAX_CPUS)?;
    Some(What::Waking { pid: pid.trim().parse().ok()?, name: names.of(name), target, is_placed })
}

fn switch(fields: &str, names: &mut Names) -> Option<What> {
    let next = &fields[fields.find("==>")? + 3..];
    if let Some(name) = between(next, "next_comm=", " next_pid=") {
        return Some(What::Switch { pid: number(next, "next_pid")?, name: names.of(name) });
    }
    let task = next.trim().rsplit_once(" [").map_or(next.trim(), |(task, _)| task);
    let (name, pid) = task.rsplit_once(':')?;
    Some(What::Switch { pid: pid.trim().parse().ok()?, name: names.of(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_perf_trace_cmd_and_ftrace() {
        let mut names = Names::default();
        let mut read = |text: &str| event(text, &mut names).map(|e| e.map(|e| (e.cpu, e.at_ns, e.what)));
        let idle = |cpu, state| What::Idle { cpu, state };
        assert_eq!(
            read("         swapper     0 [009] 328583.185774630: power:cpu_idle: state=1 cpu_id=9"),
            Some(Ok((9, 328_583_185_774_630, idle(9, Some(1)))))
        );
        assert_eq!(
            read("<idle>-0     [001] d..2.  12.000345: cpu_idle: state=4294967295 cpu_id=1"),
            Some(Ok((1, 12_000_345_000, idle(1, None))))
        );
        assert_eq!(
            read(
                " Web [x] Content 12/13 [001] 12.000345:          1 sched:sched_waking: comm=a b pid=7 prio=120 target_cpu=003"
            ),
            Some(Ok((1, 12_000_345_000, What::Waking { pid: 7, name: 0, target: 3, is_placed: false })))
        );
        assert_eq!(
            read("x-1 [000] 1.5: sched_wakeup: bash:77 [120] success=1 CPU:002"),
            Some(Ok((0, 1_500_000_000, What::Waking { pid: 77, name: 1, target: 2, is_placed: true })))
        );
        let switch = What::Switch { pid: 7, name: 0 };
        assert_eq!(
            read(
                "swapper 0 [003] 12.5: sched:sched_switch: prev_comm=swapper/3 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a b next_pid=7 next_prio=120"
            ),
            Some(Ok((3, 12_500_000_000, switch)))
        );
        assert_eq!(
            read("swapper 0 [003] 12.5: sched:sched_switch: swapper/3:0 [120] R ==> a b:7 [120]"),
            Some(Ok((3, 12_500_000_000, switch)))
        );
        assert_eq!(
            read("swapper 0 [003] 12.5: timer:hrtimer_expire_entry: hrtimer=0x1 function=tick_sched_timer now=1"),
            Some(Ok((3, 12_500_000_000, What::Timer { is_tick: true })))
        );
        assert!(matches!(read("swapper 0 [003] 12.5: power:cpu_idle: st"), Some(Err(_))));
        assert_eq!(read("no event [003] at all"), None);
        assert_eq!(read("x 1 [99999] 12.5: power:cpu_idle: state=1"), None);
    }
}
