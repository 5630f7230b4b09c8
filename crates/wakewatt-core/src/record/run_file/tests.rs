//! Tests of the run file: nothing is lost, nothing panics, and every error says what to try.

use super::*;
use crate::distribution::Distribution;
use crate::samples::network::NetworkSample;
use crate::samples::wakeup::{WakeKind, WakeupSample};
use crate::samples::{IdleDelta, Scheduling, StateDelta, Window};
use proptest::prelude::*;

const HOST: &str = "wakewatt-host 1\n/sys/devices/system/cpu/online = 0-1\n/sys/devices/system/cpu/present = 0-1\n/proc/sys/kernel/osrelease = 5.14.17\n";

fn wakeup(kind: WakeKind, latencies: Vec<u64>, cpu: u32) -> WakeupSample {
    WakeupSample {
        kind,
        cpu,
        from_cpu: Some(0),
        gap_ns: 1_000_000,
        scheduling: Scheduling::Other("not \"root\"\n".into()),
        latency: Distribution::from_ns(latencies),
        pauses: Default::default(),
        waker: None,
        clock_bound_ns: None,
        n_late_starts: 1,
        clock_read_ns: 25,
        window: Window { start_at_ns: u64::MAX - 5, end_at_ns: u64::MAX },
        idle: Some(IdleDelta {
            cpu,
            states: vec![StateDelta { index: 1, name: "C1 ü".into(), n_usage: 7, time_ns: 9_007_199_254_740_993 }],
        }),
    }
}

fn network(peer: &str) -> NetworkSample {
    NetworkSample {
        transport: crate::samples::network::Transport::Udp,
        peer: peer.into(),
        requester_cpu: None,
        responder_cpu: None,
        gap_ns: 1,
        scheduling: Scheduling::Fifo(80),
        round_trip: Distribution::from_ns(1..100),
        split: Err("the peer is no wakewatt".into()),
        n_sent: 99,
        n_lost: 0,
        n_late_starts: 0,
        window: Window::default(),
        idle: vec![],
    }
}

fn run(evidence: &Evidence) -> RunFile {
    RunFile::of(evidence, HOST.into(), Names::default(), "measure wakeup", "2026-11-21T09:00:00Z".into()).unwrap()
}

/// As the command writes it: the envelope first.
fn written(run: &RunFile) -> String {
    let mut value = serde_json::to_value(run).unwrap();
    value["schema"] = SCHEMA.into();
    value["wakewatt"] = "0".into();
    value.to_string()
}

fn evidence() -> Evidence {
    Evidence {
        not_done: vec![NotDone::named("tcp round trip to db7.example:7117", "refused")],
        samples: Samples {
            wakeups: vec![wakeup(WakeKind::Timer, (1..2000).collect(), 1)],
            network: vec![network("loopback"), network("db7.example:7117"), network("10.1.2.3:7117")],
            ..Samples::default()
        },
        ..Evidence::default()
    }
}

#[test]
fn facts_are_read_again_and_samples_stay() {
    let run = run(&evidence());
    let back = RunFile::read(&written(&run)).unwrap();
    assert_eq!(back, run);
    let again = back.evidence("x.run").unwrap();
    assert_eq!(again.facts.cpus.online.get().unwrap().to_string(), "0-1");
    assert_eq!((again.facts.origin.as_str(), again.samples.wakeups.len()), ("x.run", 1));
    assert_eq!(again.samples.wakeups, evidence().samples.wakeups);
}

#[test]
fn peers_are_masked_wherever_they_stand() {
    let text = written(&run(&evidence()));
    assert!(!text.contains("db7") && !text.contains("10.1.2.3"), "{text}");
    let back = RunFile::read(&text).unwrap();
    let peers: Vec<&str> = back.samples.network.iter().map(|s| s.peer.as_str()).collect();
    assert_eq!(peers, ["loopback", "peer-1", "peer-2"]);
    assert_eq!(back.not_done, [NotDone::named("tcp round trip to peer-1", "refused")]);
}

#[test]
fn what_is_unknown_is_ignored_and_what_is_missing_is_empty() {
    let text =
        format!(r#"{{"schema":"{SCHEMA}","made_at":"x","command":"doctor","host":"wakewatt-host 1\n","news":[1]}}"#);
    let run = RunFile::read(&text).unwrap();
    assert!(run.samples.wakeups.is_empty() && run.evidence("x").unwrap().facts.idle.states.is_empty());
}

#[test]
fn every_error_says_what_to_try() {
    let error = |text: &str| RunFile::read(text).unwrap_err().to_string();
    for (text, says) in [
        ("", "make one with --save"),
        ("wakewatt-host 1\n", "make one with --save"),
        ("\u{0}\u{1}ELF", "make one with --save"),
        ("{}", "make one with --save"),
        (r#"{"schema":"somebody/else/v1"}"#, "make one with --save"),
        (r#"{"schema":"wakewatt/doctor/v1"}"#, "document of --json (wakewatt/doctor/v1)"),
        (r#"{"schema":"wakewatt/run/v2"}"#, "this wakewatt reads wakewatt/run/v1"),
        (r#"{"schema":"wakewatt/run/v1"}"#, "damaged: missing field"),
        (r#"{"schema":7}"#, "damaged"),
        (r#"{"schema":"wakewatt/run/v1","host"#, "cut off at line 1"),
    ] {
        assert!(error(text).contains(says), "{text}: {}", error(text));
    }
    let run = RunFile { host: "wakewatt-host 9\n".into(), ..RunFile::default() };
    let error = RunFile::read(&written(&run)).unwrap().evidence("x").unwrap_err().to_string();
    assert!(error.contains("the facts in it: format version 9"), "{error}");
    assert!(
        RunFile::read(&"[".repeat(200_000)).is_err() && RunFile::read(&"{\"a\":".repeat(200_000)).is_err(),
        "depth"
    );
}

#[test]
fn a_cut_file_is_an_error_wherever_it_was_cut() {
    let text = written(&run(&evidence()));
    for at in (0..text.len()).step_by(1024).filter(|at| text.is_char_boundary(*at)) {
        assert!(RunFile::read(&text[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let bytes = written(&run(&evidence())).into_bytes();
    for at in (0..bytes.len()).step_by(37) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 7);
        let Ok(text) = String::from_utf8(damaged) else { continue };
        if let Ok(run) = RunFile::read(&text) {
            let _ = run.evidence("x");
        }
    }
}

proptest! {
    #[test]
    fn a_wakeup_survives(latencies in prop::collection::vec(1u64..10_000_000_000, 0..60), cpu in any::<u32>(), word in "\\PC{0,12}") {
        let mut sample = wakeup(WakeKind::Eventfd, latencies, cpu);
        sample.scheduling = Scheduling::Other(word.clone());
        let run = RunFile { not_done: vec![NotDone::read(&word)], ..run(&Evidence::of(Samples { wakeups: vec![sample], ..Samples::default() })) };
        prop_assert_eq!(RunFile::read(&written(&run)).unwrap(), run);
    }

    #[test]
    fn no_input_panics(text in "[{\\[\"a-z:,0-9 }\\]]{0,200}") {
        let _ = RunFile::read(&text);
    }
}
