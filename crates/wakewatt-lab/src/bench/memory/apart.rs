//! Memory measured in a process of its own: if memory runs out, that process ends and nothing else does.
//!
//! [`room`](super::room) keeps it from running out as far as can be known; what others take between the question and the
//! touch cannot. So the process that touches makes itself the kernel's first choice (host's `oom`) before anything else,
//! and who started it, holding the rest of `doctor`, stays as it was. Both ends are the same binary and say one JSON
//! document per line: down goes what to measure, then `"Stop"` where the run is interrupted; up come progress and the
//! result. The end of standard input ends the measuring process, and so does the end of the thread that started it
//! (`bound`). It has a process group of its own, so Ctrl-C reaches it as a stop, and what is known by then comes back.

use super::{MemorySpec, memory};
use crate::bench::BenchError;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use wakewatt_core::samples::memory::MemorySample;
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::bound::bind;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::live::Live;

/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long what is known may take to come after a stop, and how long a process may take to be gone: its memory goes first.
const GRACE_NS: u64 = 30_000_000_000;

/// To the measuring process.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Measure(Box<MemorySpec>),
    Stop,
}

/// From it.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    At(f64, String),
    Found(Box<MemorySample>),
    Failed(String),
}

/// As [`memory`], by a process that is started for it.
pub fn memory_apart(
    program: &[OsString],
    spec: &MemorySpec,
    stop: &AtomicBool,
    progress: &dyn Fn(f64, &str),
) -> Result<MemorySample, BenchError> {
    let mut process = Process::start(program)?;
    process.order(&Order::Measure(Box::new(spec.clone())))?;
    let mut doing = "starting".to_string();
    let mut stopped_at_ns = None;
    loop {
        match process.said.recv_timeout(LOOK) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(Said::At(share, what)) => {
                    progress(share, &what);
                    doing = what;
                }
                Ok(Said::Found(sample)) => return Ok(*sample),
                Ok(Said::Failed(why)) => return Err(BenchError::Unavailable(why)),
                Err(why) => {
                    return Err(BenchError::system("hearing the measuring process", std::io::Error::other(why)));
                }
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(process.ended(doing)),
        }
        if stop.load(Ordering::Relaxed) && stopped_at_ns.is_none() {
            process.order(&Order::Stop)?;
            stopped_at_ns = Some(monotonic_ns());
        }
        if stopped_at_ns.is_some_and(|at_ns| monotonic_ns().saturating_sub(at_ns) > GRACE_NS) {
            return Err(BenchError::NoSamples);
        }
    }
}

/// The process; killed and waited for when it is dropped.
struct Process {
    child: Child,
    orders: ChildStdin,
    said: Receiver<String>,
}

impl Process {
    fn start(program: &[OsString]) -> Result<Process, BenchError> {
        let cannot = |why: std::io::Error| BenchError::system("starting a process that measures memory", why);
        let (program, arguments) = program.split_first().ok_or(BenchError::Crashed)?;
        let mut command =
            wakewatt_host::environment::users(program).map_err(|why| cannot(std::io::Error::other(why)))?;
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        bind(&mut command, &allowed_cpus().map_err(|why| cannot(why.into()))?, None).map_err(cannot)?;
        let mut child = command.spawn().map_err(cannot)?;
        let (orders, replies) = match child.stdin.take().zip(child.stdout.take()) {
            Some(pipes) => pipes,
            None => return Err(BenchError::Crashed),
        };
        let (send, said) = channel();
        let process = Process { child, orders, said };
        let listen = move || {
            for line in BufReader::new(replies).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("memory-replies".into()).spawn(listen).map_err(cannot)?;
        Ok(process)
    }

    /// Whether it was heard shows in what is said next: a process that has ended says nothing more.
    fn order(&mut self, order: &Order) -> Result<(), BenchError> {
        let mut line = serde_json::to_string(order).map_err(|why| {
            BenchError::system("telling the measuring process what to measure", std::io::Error::other(why))
        })?;
        line.push('\n');
        let _ = self.orders.write_all(line.as_bytes()).and_then(|()| self.orders.flush());
        Ok(())
    }

    /// It closed its output without a result: how did it end?
    fn ended(&mut self, doing: String) -> BenchError {
        let until_ns = monotonic_ns().saturating_add(GRACE_NS);
        while monotonic_ns() < until_ns {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    return status.signal().map_or(BenchError::Crashed, |signal| BenchError::Ended { signal, doing });
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(_) => break,
            }
        }
        BenchError::Crashed
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

enum Event {
    Order(String),
    End,
    Said(Said),
}

/// The measuring process: until it has answered, or its input ends.
pub fn serve(input: impl BufRead + Send + 'static, output: impl Write) -> Result<(), String> {
    // Before anything is touched; where /proc may not be written the room alone has to do, and that is said.
    let unprotected = wakewatt_host::oom::go_first().err().map(|why| {
        format!("that the measuring process goes first if memory runs out: /proc/self/oom_score_adj: {why}")
    });
    obey(input, output, unprotected)
}

fn obey(
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
    unprotected: Option<String>,
) -> Result<(), String> {
    let (send, events) = channel();
    let orders = send.clone();
    let listen = move || {
        for line in input.lines().map_while(Result::ok) {
            if orders.send(Event::Order(line)).is_err() {
                return;
            }
        }
        let _ = orders.send(Event::End);
    };
    std::thread::Builder::new()
        .name("orders".into())
        .spawn(listen)
        .map_err(|e| format!("no thread for orders: {e}"))?;
    let stop = Arc::new(AtomicBool::new(false));
    for event in events {
        match event {
            Event::End => break,
            Event::Order(line) => {
                match serde_json::from_str(&line).map_err(|e| format!("an order that is none: {e}"))? {
                    Order::Stop => stop.store(true, Ordering::Relaxed),
                    Order::Measure(spec) => {
                        let (send, stop, unprotected) = (send.clone(), Arc::clone(&stop), unprotected.clone());
                        let measure = move || drop(send.send(Event::Said(measured(&spec, &stop, unprotected, &send))));
                        let thread = std::thread::Builder::new().name("memory".into());
                        thread.spawn(measure).map_err(|e| format!("no thread to measure memory: {e}"))?;
                    }
                }
            }
            Event::Said(said) => {
                let mut text = serde_json::to_string(&said).map_err(|e| e.to_string())?;
                text.push('\n');
                // Nobody listens any more: the end, as after an answer.
                let is_heard = output.write_all(text.as_bytes()).and_then(|()| output.flush()).is_ok();
                if !is_heard || !matches!(said, Said::At(..)) {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn measured(spec: &MemorySpec, stop: &AtomicBool, unprotected: Option<String>, send: &Sender<Event>) -> Said {
    let progress = |share: f64, what: &str| drop(send.send(Event::Said(Said::At(share, what.into()))));
    let run = || memory(spec, &Live::this_machine(), stop, &progress);
    // A crash must be an answer, or the other end waits for one. (Where a panic ends the process at once, as in what packages hold, its
    // closed output is the answer.)
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(Err(BenchError::Crashed)) {
        Ok(mut sample) => {
            sample.not_done.extend(unprotected);
            Said::Found(Box::new(sample))
        }
        Err(why) => Said::Failed(why.to_string()),
    }
}

/// Vector widths go by their word.
pub(super) mod width {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use wakewatt_host::vector_loops::Width;

    const ALL: [Width; 5] = [Width::Scalar, Width::Sse2, Width::Neon, Width::Avx2, Width::Avx512];

    #[allow(clippy::ref_option)] // serde's signature
    pub(in super::super) fn serialize<S: Serializer>(width: &Option<Width>, to: S) -> Result<S::Ok, S::Error> {
        width.map(Width::word).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Width>, D::Error> {
        let word = Option::<String>::deserialize(from)?;
        let find = |word: String| ALL.into_iter().find(|width| width.word() == word).ok_or(D::Error::custom(word));
        word.map(find).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Nodes;
    use super::*;
    use wakewatt_host::vector_loops::Width;

    fn tiny() -> MemorySpec {
        let cpus = allowed_cpus().unwrap();
        MemorySpec {
            sizes_bytes: vec![16 << 10, 1 << 20],
            may_grow: false,
            memory_bytes: Some(1 << 20),
            traffic: Vec::new(),
            is_loaded: false,
            nodes: None,
            n_samples: 2,
            sample_ns: 300_000,
            warmup_ns: 0,
            width: Some(Width::Scalar),
            ..MemorySpec::full(cpus.first().unwrap(), cpus, Nodes::default())
        }
    }

    /// What is said to an order; not by `serve`, which would make the test the kernel's first choice.
    fn answer(orders: &str) -> Vec<Said> {
        let (from, mut to) = std::io::pipe().unwrap();
        to.write_all(orders.as_bytes()).unwrap();
        let mut said = Vec::new();
        obey(BufReader::new(from), &mut said, Some("unprotected".into())).unwrap();
        drop(to);
        let text = String::from_utf8(said).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn an_order_is_answered_with_progress_and_a_sample() {
        let order = serde_json::to_string(&Order::Measure(Box::new(tiny()))).unwrap();
        let Order::Measure(back) = serde_json::from_str(&order).unwrap() else { panic!("{order}") };
        assert_eq!(*back, tiny(), "nothing is lost on the way");
        let said = answer(&format!("{order}\n"));
        let Some((Said::Found(sample), before)) = said.split_last() else { panic!("{said:?}") };
        assert!(!before.is_empty() && before.iter().all(|said| matches!(said, Said::At(..))), "{before:?}");
        assert_eq!((sample.latency.len(), sample.latency[0].points.len()), (2, 2));
        assert!(sample.not_done.contains(&"unprotected".to_string()), "{:?}", sample.not_done);
        let absent = Order::Measure(Box::new(MemorySpec { cpu: 100_000, ..tiny() }));
        let said = answer(&format!("{}\n", serde_json::to_string(&absent).unwrap()));
        assert!(matches!(&said[..], [Said::Failed(why)] if why.contains("CPU 100000")), "{said:?}");
        assert!(obey(&b"nonsense\n"[..], Vec::new(), None).unwrap_err().contains("an order that is none"));
        obey(&b""[..], Vec::new(), None).unwrap();
    }

    /// A shell in the place of the measuring process.
    fn with_shell(script: &str, stop: bool) -> Result<MemorySample, BenchError> {
        let program = ["sh", "-c", script].map(OsString::from);
        memory_apart(&program, &tiny(), &AtomicBool::new(stop), &|_, _| ())
    }

    #[test]
    fn a_process_that_the_kernel_ends_is_a_typed_error() {
        let at = r#"read order; echo '{"At":[0.5,"latency of 1GiB"]}'; "#;
        for signal in [9, 7] {
            let ended = with_shell(&format!("{at} kill -{signal} $$"), false).unwrap_err();
            assert!(
                matches!(&ended, BenchError::Ended { signal: s, doing } if *s == signal && doing == "latency of 1GiB"),
                "{ended:?}"
            );
            let said = ended.to_string();
            assert!(said.contains(&format!("signal {signal} (the kernel")) && said.contains("--max-size"), "{said}");
        }
        assert!(matches!(with_shell("exit 3", false), Err(BenchError::Crashed)));
        let failed = with_shell(r#"echo '{"Failed":"no room"}'; sleep 60"#, false).unwrap_err();
        assert_eq!(failed.to_string(), "no room");
    }

    #[test]
    fn a_stop_is_passed_on_and_the_answer_waited_for() {
        let said = with_shell(r#"read order; read stop; echo "{\"Failed\":$stop}""#, true).unwrap_err();
        assert_eq!(said.to_string(), "Stop");
    }
}
