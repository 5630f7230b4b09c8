//! A worker process: one thread per CPU of its node, orders from standard input, replies to standard output.
//!
//! It is bound to its node before it starts (CPUs and memory, as numactl does), so tables, stacks and histograms lie where
//! the threads run. Threads are pinned, of ordinary priority (SCHED_OTHER: it stands for an ordinary server), with 1 ns of
//! timer slack, so that a sleep is as exact as the kernel's timers are. Between orders everything sleeps without a timer:
//! that is active idle. The end of standard input ends the process, whatever it is doing, so it cannot outlive who started
//! it.

use super::message::{Counted, Order, Reply, Times};
use super::pace::{self, Pace, Tally};
use super::schedule::Schedule;
use crate::table_work::Work;
use std::io::{BufRead, Write};
use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_host::affinity::{Pinned, confine};
use wakewatt_host::clock::{monotonic_ns, thread_cpu_ns};
use wakewatt_host::sleep::sleep_until;

/// Enough for the loops, and no more on a machine with hundreds of CPUs.
const STACK_BYTES: usize = 256 * 1024;

/// For one thread.
enum Task {
    Cost,
    Units(u64),
    Closed(Times),
    Open(Times, u64, f64),
}

/// From one thread.
enum Answer {
    Done,
    Cost(f64),
    Counted(Counted),
    Failed(String),
}

enum Event {
    Line(String),
    End,
    Answer(usize, Answer),
}

/// Runs until the input ends.
pub fn run(input: impl BufRead + Send + 'static, mut output: impl Write) -> Result<(), String> {
    let (send, events) = channel();
    let lines = send.clone();
    let read = move || {
        for line in input.lines() {
            let Ok(line) = line else { break };
            if lines.send(Event::Line(line)).is_err() {
                return;
            }
        }
        let _ = lines.send(Event::End);
    };
    std::thread::Builder::new().name("orders".into()).spawn(read).map_err(|e| format!("no thread for orders: {e}"))?;
    let mut threads: Vec<Sender<Task>> = Vec::new();
    let mut answers: Vec<Option<Answer>> = Vec::new();
    for event in events {
        match event {
            Event::End => break,
            Event::Line(line) => {
                let order = serde_json::from_str(&line).map_err(|e| format!("an order that is none: {e}"))?;
                give(order, &mut threads, &send)?;
                answers = threads.iter().map(|_| None).collect();
            }
            Event::Answer(thread, answer) => {
                if let Some(place) = answers.get_mut(thread) {
                    *place = Some(answer);
                }
                if !answers.is_empty() && answers.iter().all(Option::is_some) {
                    let reply = joined(std::mem::take(&mut answers).into_iter().flatten());
                    let mut text = serde_json::to_string(&reply).map_err(|e| e.to_string())?;
                    text.push('\n');
                    // Nobody listens any more: the end.
                    if output.write_all(text.as_bytes()).and_then(|()| output.flush()).is_err() {
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Hands an order to the threads; the first makes them.
fn give(order: Order, threads: &mut Vec<Sender<Task>>, send: &Sender<Event>) -> Result<(), String> {
    let missing = || "an order for another number of threads".to_string();
    match order {
        Order::Start { cpus, seed } => {
            for (index, cpu) in cpus.into_iter().enumerate() {
                threads.push(thread(index, cpu, seed, send.clone())?);
            }
        }
        Order::Cost => tell(threads, |_| Some(Task::Cost)).ok_or_else(missing)?,
        Order::Units(n) => tell(threads, |_| Some(Task::Units(n))).ok_or_else(missing)?,
        Order::Closed(times) => tell(threads, |_| Some(Task::Closed(times))).ok_or_else(missing)?,
        Order::Open { times, seeds, per_s } => {
            tell(threads, |i| Some(Task::Open(times, *seeds.get(i)?, *per_s.get(i)?))).ok_or_else(missing)?;
        }
    }
    Ok(())
}

fn tell(threads: &[Sender<Task>], task: impl Fn(usize) -> Option<Task>) -> Option<()> {
    threads.iter().enumerate().try_for_each(|(index, thread)| thread.send(task(index)?).ok())
}

fn joined(answers: impl Iterator<Item = Answer>) -> Reply {
    let (mut costs, mut counted) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Answer::Failed(why) => return Reply::Failed(why),
            Answer::Cost(ns) => costs.push(ns),
            Answer::Counted(one) => counted.push(one),
            Answer::Done => {}
        }
    }
    match (costs.is_empty(), counted.is_empty()) {
        (false, _) => Reply::Cost(costs),
        (_, false) => Reply::Counted(counted),
        _ => Reply::Done,
    }
}

fn thread(index: usize, cpu: u32, seed: u64, send: Sender<Event>) -> Result<Sender<Task>, String> {
    let (tasks, to_do) = channel();
    let run = move || {
        let pinned = Pinned::to(cpu);
        let ready = match &pinned {
            Ok(_) => Answer::Done,
            Err(why) => Answer::Failed(format!("CPU {cpu} cannot be used ({why}); name others with --cpus")),
        };
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut real =
            Real { work: Work::new(seed.wrapping_add(u64::from(cpu))), n_units: 1, here: [cpu].into_iter().collect() };
        let _ = send.send(Event::Answer(index, ready));
        obey(&mut real, &to_do, |answer| drop(send.send(Event::Answer(index, answer))));
    };
    let thread = std::thread::Builder::new().name(format!("load-{cpu}")).stack_size(STACK_BYTES);
    thread.spawn(run).map_err(|e| format!("no thread for CPU {cpu}: {e}; is there a limit of processes?"))?;
    Ok(tasks)
}

fn obey(real: &mut Real, to_do: &Receiver<Task>, answer: impl Fn(Answer)) {
    for task in to_do {
        answer(match task {
            Task::Cost => Answer::Cost(real.work.cost_ns(monotonic_ns)),
            Task::Units(n) => {
                real.n_units = n;
                Answer::Done
            }
            Task::Closed(times) => {
                let (mut tally, is_displaced) = (Tally::default(), real.is_displaced());
                pace::closed(real, &times, &mut tally);
                Answer::Counted(Counted { is_displaced, ..tally.finish() })
            }
            Task::Open(times, seed, per_s) => {
                let (mut tally, is_displaced) = (Tally::default(), real.is_displaced());
                pace::open(real, Schedule::new(seed, per_s, times.start_at_ns), &times, &mut tally);
                Answer::Counted(Counted { is_displaced, ..tally.finish() })
            }
        });
    }
}

/// This machine.
struct Real {
    work: Work,
    n_units: u64,
    /// Its one CPU.
    here: CpuSet,
}

impl Real {
    /// Goes back to its CPU: one that was offline meanwhile has lost its threads for good. Is it still away?
    fn is_displaced(&self) -> bool {
        confine(&self.here).is_err()
    }
}

impl Pace for Real {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
    fn sleep_until(&mut self, at_ns: u64) {
        let _ = sleep_until(at_ns);
    }
    fn cpu_ns(&self) -> u64 {
        thread_cpu_ns()
    }
    fn work(&mut self) {
        self.work.run(self.n_units);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, pipe};
    use wakewatt_host::affinity::allowed_cpus;

    /// A worker in a thread, with real pipes.
    fn say(orders: &[Order]) -> Vec<Reply> {
        let (orders_from, mut orders_to) = pipe().unwrap();
        let (replies_from, replies_to) = pipe().unwrap();
        let worker = std::thread::spawn(move || run(BufReader::new(orders_from), replies_to));
        let mut replies = BufReader::new(replies_from).lines();
        let all = orders.iter().map(|order| {
            let line = serde_json::to_string(order).unwrap();
            writeln!(orders_to, "{line}").unwrap();
            serde_json::from_str(&replies.next().unwrap().unwrap()).unwrap()
        });
        let all = all.collect();
        drop(orders_to);
        worker.join().unwrap().unwrap();
        all
    }

    #[test]
    fn orders_are_obeyed_and_counted() {
        let cpu = allowed_cpus().unwrap().first().unwrap();
        let now = monotonic_ns() + 20_000_000;
        let times = Times { start_at_ns: now, from_ns: now, to_ns: now + 100_000_000, end_at_ns: now + 5_000_000_000 };
        let short = Times { end_at_ns: now + 150_000_000, ..times };
        let replies = say(&[
            Order::Start { cpus: vec![cpu], seed: 1 },
            Order::Units(3),
            Order::Open { times: short, seeds: vec![8], per_s: vec![1000.0] },
        ]);
        assert_eq!(replies[..2], [Reply::Done, Reply::Done]);
        let Reply::Counted(counted) = &replies[2] else { panic!("{replies:?}") };
        let planned = Schedule::new(8, 1000.0, now).take_while(|at| *at < times.to_ns).count();
        assert_eq!((counted.len(), counted[0].n_planned), (1, planned as u64));
    }

    #[test]
    fn a_cpu_that_is_not_there_and_a_line_that_is_no_order_are_told() {
        let replies = say(&[Order::Start { cpus: vec![100_000], seed: 1 }]);
        assert!(matches!(&replies[0], Reply::Failed(why) if why.contains("CPU 100000")), "{replies:?}");
        let why = run(BufReader::new(&b"nonsense\n"[..]), Vec::new()).unwrap_err();
        assert!(why.contains("an order that is none"), "{why}");
        let odd = Order::Open {
            times: Times { start_at_ns: 0, from_ns: 0, to_ns: 0, end_at_ns: 0 },
            seeds: vec![],
            per_s: vec![],
        };
        let cpu = allowed_cpus().unwrap().first().unwrap();
        let start = serde_json::to_string(&Order::Start { cpus: vec![cpu], seed: 1 }).unwrap();
        let text = format!("{start}\n{}\n", serde_json::to_string(&odd).unwrap());
        let why = run(BufReader::new(std::io::Cursor::new(text)), Vec::new()).unwrap_err();
        assert!(why.contains("another number of threads"), "{why}");
    }
}
