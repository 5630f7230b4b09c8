//! `perf sched latency` and `perf sched timehist`: delays from being runnable to running, as perf had made them.
//!
//! `latency` prints per task how often it ran (`Switches`, in newer versions `Count`), its mean and greatest delay; older versions
//! say `avg: 0.012 ms`, newer ones head the columns with the unit. `timehist` prints every run with its delay in ms. Neither says which idle state a CPU was in: for that
//! the events themselves are needed (`perf script`).

use crate::plain::number;
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "perf-sched", title: "perf sched", detect, read };

fn is_head(line: &str) -> bool {
    is_latency_head(line) || (line.contains("task name") && line.contains("sch delay") && line.contains("run time"))
}

fn is_latency_head(line: &str) -> bool {
    line.contains("Task") && line.contains("Runtime") && (line.contains("Switches") || line.contains("Count"))
}

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "perf", is_head) * 2
}

/// `avg:   0.012 ms` or `0.012 ms`.
fn ms(text: &str) -> Option<f64> {
    let text = text.trim();
    let text = text
        .split_once(':')
        .filter(|(word, _)| word.trim().bytes().all(|b| b.is_ascii_alphabetic()))
        .map_or(text, |(_, rest)| rest);
    number(text.trim().trim_end_matches("ms").trim_end_matches('s').trim())
}

fn read(reading: &mut Reading<'_>) {
    let (mut is_latency, mut is_hist) = (false, false);
    // The rule above the head.
    let mut rule = None;
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if is_head(text) {
            (is_latency, is_hist) = (is_latency_head(text), text.contains("sch delay"));
            reading.take(at);
            rule.into_iter().for_each(|at| reading.unused(at));
        } else if (is_latency || is_hist)
            && !text.is_empty()
            && text.bytes().all(|b| matches!(b, b'-' | b'=' | b' ' | b'|' | b'+'))
        {
            reading.unused(at);
        } else if is_latency && text.contains('|') {
            let cells: Vec<&str> = text.split('|').map(str::trim).collect();
            let row = || Some((cells.first().filter(|name| !name.is_empty())?, ms(cells.get(3)?)?, ms(cells.get(4)?)?));
            match row() {
                Some((task, mean, greatest)) => {
                    let task: String = task.chars().take(40).collect();
                    reading.figure(at, "mean scheduling delay", &task, "ms", mean);
                    reading.figure(at, "greatest scheduling delay", &task, "ms", greatest);
                }
                None if text.starts_with("TOTAL") => reading.unused(at),
                None => reading.refuse(at, "no task with mean and greatest delay"),
            }
        } else if is_hist {
            let words: Vec<&str> = text.split_whitespace().collect();
            let cpu = words.get(1).and_then(|w| w.strip_prefix('[')?.strip_suffix(']')?.parse::<u32>().ok());
            if words.first() == Some(&"time") || text.starts_with("(sec)") || words.contains(&"(msec)") {
                reading.unused(at);
            } else if let (Some(cpu), Some(delay)) = (cpu, words.len().checked_sub(2).and_then(|i| number(words[i]))) {
                reading.figure(at, "scheduling delay", &format!("CPU {cpu}"), "ms", delay);
            }
        } else if is_latency && text.starts_with("TOTAL") {
            reading.unused(at);
        }
        rule = (text.len() > 9 && text.bytes().all(|b| b == b'-')).then_some(at);
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read};

    #[test]
    fn delays_of_tasks_and_of_runs() {
        let text = "  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           |\n ---------------------------------\n\
            db:(12)               |     53.018 ms |     1000 | avg:   0.045 ms | max:   0.912 ms | max start:    12.3 s | max end: 12.4 s\n -----------------------------\n  TOTAL:                |     53.018 ms |     1000 |\n\
            time    cpu  task name                       wait time  sch delay   run time\n                             [tid/pid]                          (msec)     (msec)     (msec)\n--------------- ------  ------------------------------  ---------  ---------  ---------\n\
            12.345678 [0003]  db[12/12]                            0.500      0.045      0.100\n";
        let found = read(text);
        assert_eq!(formats(&found), ["perf-sched"]);
        let figures: Vec<(String, f64)> =
            found.document.derived.iter().map(|d| (format!("{} {}", d.what, d.of), d.mean)).collect();
        assert_eq!(figures[0], ("mean scheduling delay db:(12)".into(), 0.045));
        assert_eq!(figures[2], ("scheduling delay CPU 3".into(), 0.045));
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }

    #[test]
    fn the_head_of_newer_versions() {
        let text = " ----------\n  Task                  |   Runtime ms  |  Count   | Avg delay ms    | Max delay ms    | Max delay start           | Max delay end          |\n ----------\n\
            nginx:(4)             |    123.456 ms |     1234 | avg:   0.123 ms | max:   4.567 ms | max start: 12345.678901 s | max end: 12345.683468 s\n\
            kworker/0:1:123       |      1.456 ms |       34 | avg:   0.023 ms | max:   0.567 ms | max start: 12345.678901 s | max end: 12345.679468 s\n ----------\n  TOTAL:                |    124.912 ms |     1268 |\n";
        let found = read(text);
        assert_eq!(formats(&found), ["perf-sched"]);
        let delays: Vec<(&str, f64)> = found.document.derived.iter().map(|d| (d.of.as_str(), d.mean)).collect();
        assert_eq!(
            delays,
            [("nginx:(4)", 0.123), ("nginx:(4)", 4.567), ("kworker/0:1:123", 0.023), ("kworker/0:1:123", 0.567)]
        );
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }
}
