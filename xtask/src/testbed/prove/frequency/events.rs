//! The kernel's event log, read into samples of the sampling governors and updates of schedutil.
//!
//! What one task logs in turn belongs together: a sample begins with dbs_update, reads the idle time of its CPUs, ends with the load,
//! and is followed by the clock, if it was changed. The governor's start also reads idle times, without a sample: the base of the first.

use std::collections::HashMap;

/// One line: `  kworker/0:1-25  [000] .....  3.123456: load: (x <- y) load=5`.
struct Event<'a> {
    at_us: u64,
    cpu: u32,
    task: &'a str,
    name: &'a str,
    body: &'a str,
}

impl<'a> Event<'a> {
    fn parse(line: &'a str) -> Option<Event<'a>> {
        let (task, rest) = line.split_once(" [")?;
        let (cpu, rest) = rest.split_once(']')?;
        let (before, rest) = rest.split_once(": ")?;
        let (name, body) = rest.split_once(": ")?;
        let (seconds, micros) = before.split_whitespace().next_back()?.split_once('.')?;
        let at_us = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
        Some(Event { at_us, cpu: cpu.parse().ok()?, task: task.trim(), name, body })
    }

    fn number(&self, key: &str) -> Option<u64> {
        let at = self.body.find(key)? + key.len();
        let word = self.body[at..].split(|c: char| c.is_whitespace() || c == ')').next()?;
        word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
    }

    fn small(&self, key: &str) -> Option<u32> {
        self.number(key)?.try_into().ok()
    }
}

/// A CPU's idle time as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) at_us: u64,
    pub(super) idle_us: u64,
}

/// One sample of a policy of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) cpu: u32,
    pub(super) before: Reading,
    pub(super) now: Reading,
    /// As the kernel computed it.
    pub(super) load: u32,
    /// The clock set by it; none where it stayed.
    pub(super) set_khz: Option<u32>,
}

/// What a task is in the middle of.
#[derive(Default)]
struct Doing {
    is_sample: bool,
    cpu: Option<u32>,
    now: Option<Reading>,
    /// Its last sample, which a clock may still follow.
    sample: Option<usize>,
}

impl Sample {
    /// All of a log, in order. Samples whose CPU was not read before are its base only.
    pub(super) fn all(log: &str) -> Vec<Sample> {
        let mut samples: Vec<Sample> = Vec::new();
        let mut doing: HashMap<&str, Doing> = HashMap::new();
        let mut read: HashMap<u32, Reading> = HashMap::new();
        for event in log.lines().filter_map(Event::parse) {
            let task = doing.entry(event.task).or_default();
            match event.name {
                "sample" => *task = Doing { is_sample: true, ..Doing::default() },
                "reads" => task.cpu = event.small(" cpu="),
                "idle" => {
                    let Some((cpu, idle_us)) = task.cpu.zip(event.number(" us=")) else { continue };
                    let now = Reading { at_us: event.at_us, idle_us };
                    if task.is_sample {
                        task.now = Some(now);
                    } else {
                        read.insert(cpu, now);
                    }
                }
                "load" => {
                    let (Some(cpu), Some(now), Some(load)) = (task.cpu, task.now, event.small(" load=")) else {
                        continue;
                    };
                    if let Some(before) = read.insert(cpu, now) {
                        samples.push(Sample { cpu, before, now, load, set_khz: None });
                        task.sample = Some(samples.len() - 1);
                    }
                    task.is_sample = false;
                }
                "cpu_frequency" => {
                    let found = task.sample.and_then(|at| samples.get_mut(at));
                    let cpu = event.small("cpu_id=");
                    if let Some(sample) = found.filter(|s| Some(s.cpu) == cpu) {
                        sample.set_khz = event.small("state=");
                    }
                }
                _ => {}
            }
        }
        samples
    }
}

/// One update of schedutil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) cpu: u32,
    /// The use it saw, 0 to 1024.
    pub(super) utilisation: u32,
    /// Was the CPU idle since its last update, as the kernel counts that: passes of the idle loop that tried to stop the tick?
    pub(super) was_idle: bool,
    /// The clock set by it; none where it stayed.
    pub(super) set_khz: Option<u32>,
}

impl Update {
    /// All of a log, in order.
    pub(super) fn all(log: &str) -> Vec<Update> {
        let mut updates: Vec<Update> = Vec::new();
        let mut asked: HashMap<&str, u32> = HashMap::new();
        let mut last: HashMap<&str, usize> = HashMap::new();
        let mut was_idle: HashMap<u32, bool> = HashMap::new();
        for event in log.lines().filter_map(Event::parse) {
            match event.name {
                "uses" => {
                    asked.extend(event.small(" cpu=").map(|cpu| (event.task, cpu)));
                }
                "use" => {
                    let Some((cpu, utilisation)) = asked.remove(event.task).zip(event.small(" use=")) else { continue };
                    let was_idle = was_idle.insert(cpu, false).unwrap_or(true);
                    updates.push(Update { cpu, utilisation, was_idle, set_khz: None });
                    last.insert(event.task, updates.len() - 1);
                }
                "cpu_frequency" => {
                    let found = last.remove(event.task).and_then(|at| updates.get_mut(at));
                    let cpu = event.small("cpu_id=");
                    if let Some(update) = found.filter(|u| Some(u.cpu) == cpu) {
                        update.set_khz = event.small("state=");
                    }
                }
                "stops" => {
                    was_idle.insert(event.cpu, true);
                }
                _ => {}
            }
        }
        updates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
# tracer: nop
      sh-61      [001] .....     2.000000: reads: (get_cpu_idle_time+0x0/0x90) cpu=0
      sh-61      [001] .....     2.000010: idle: (x <- get_cpu_idle_time) us=1900000
 kworker/0:1-25  [000] .....     2.010000: sample: (dbs_update+0x0/0x2f0) policy=0xffff8880
 kworker/0:1-25  [000] .....     2.010003: reads: (get_cpu_idle_time+0x0/0x90) cpu=0
 kworker/0:1-25  [000] .....     2.010010: idle: (x <- get_cpu_idle_time) us=1902000
 kworker/0:1-25  [000] .....     2.010020: load: (x <- dbs_update) load=80
 kworker/0:1-25  [000] .....     2.010030: cpu_frequency: state=2000000 cpu_id=0
 kworker/0:1-25  [000] .....     2.010031: cpu_frequency: state=1200000 cpu_id=1
  <idle>-0       [001] d....     3.000000: uses: (effective_cpu_util+0x0/0x140) cpu=1
  <idle>-0       [001] d....     3.000005: use: (y <- effective_cpu_util) use=820
  <idle>-0       [001] d....     3.000009: cpu_frequency: state=1600000 cpu_id=1
  <idle>-0       [001] d....     3.100000: uses: (effective_cpu_util+0x0/0x140) cpu=1
  <idle>-0       [001] d....     3.100005: use: (y <- effective_cpu_util) use=10
";

    #[test]
    fn a_sample_has_its_readings_its_load_and_its_clock() {
        let want = Sample {
            cpu: 0,
            before: Reading { at_us: 2_000_010, idle_us: 1_900_000 },
            now: Reading { at_us: 2_010_010, idle_us: 1_902_000 },
            load: 80,
            set_khz: Some(2_000_000),
        };
        assert_eq!(Sample::all(LOG), [want]);
    }

    #[test]
    fn an_update_has_its_use_and_its_clock() {
        let update = |utilisation, was_idle, set_khz| Update { cpu: 1, utilisation, was_idle, set_khz };
        assert_eq!(Update::all(LOG), [update(820, true, Some(1_600_000)), update(10, false, None)]);
    }
}
