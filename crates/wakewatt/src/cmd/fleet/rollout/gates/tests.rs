//! Gates over a store that answers, one that refuses, one that is not there; commands that pass, fail and hang; an experiment's document.

use super::*;
use crate::cli::fleet::FleetCommand;
use crate::cli::{Cli, Command};
use clap::Parser;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use wakewatt_carry::{CarryError, Node, Reply};
use wakewatt_fleet::rollout::plan::{EXAMPLE, parse};
use wakewatt_fleet::rollout::state::Beginning;

fn args(url: &str) -> Box<RolloutArgs> {
    let cli = Cli::parse_from(["wakewatt", "fleet", "rollout", "x.toml", "--prometheus", url]);
    match cli.command {
        Command::Fleet(fleet) => match fleet.command {
            FleetCommand::Rollout(args) => args,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Answers each request with the next of these, with the moment that was asked for as `$END`, and tells what was asked.
fn store(answers: Vec<&'static str>) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (body, stream) in answers.into_iter().zip(listener.incoming().flatten()) {
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            let _ = reader.read_line(&mut line);
            let _ = tell.send(line.clone());
            let end = line.split("end=").nth(1).and_then(|t| t.split(['&', ' ']).next()).unwrap_or("0");
            let body = body.replace("$END", end);
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {}
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = reader.get_mut().write_all((head + &body).as_bytes());
        }
    });
    (url, told)
}

/// A carrier whose nodes answer this to everything.
struct Says(i32, &'static str);

impl Carrier for Says {
    fn word(&self) -> &'static str {
        "test"
    }
    fn nodes(&self) -> Result<Vec<Node>, CarryError> {
        Ok(Vec::new())
    }
    fn run(&self, _: &NodeName, _: &Order) -> Result<Reply, CarryError> {
        Ok(Reply { code: self.0, output: self.1.as_bytes().to_vec(), said: String::new() })
    }
}

/// Ten nodes, of which the first has the change.
fn changed() -> Rollout {
    let plan = parse(EXAMPLE).unwrap();
    let names = (0..10).map(|n| format!("web-{n}.example")).collect();
    let mut r = Rollout::new(&plan, EXAMPLE, names, Beginning::default());
    r.nodes[0].is = Is::Applied;
    r
}

fn gate(toml: &str) -> Gate {
    let plan = EXAMPLE.split("[[gate]]").next().unwrap().replace("gates = [\"errors\"]", "");
    parse(&format!("{plan}\n[[gate]]\nname = \"g\"\nwithin = \"2s\"\n{toml}")).unwrap().gates.remove(0)
}

fn judged(url: &str, carrier: &Says, toml: &str) -> Verdict {
    Gates { args: &args(url), carrier }.judge(&gate(toml), &changed())
}

const NOBODY: Says = Says(0, "");

#[test]
fn a_query_is_asked_of_the_changed_nodes_and_no_answer_is_no_pass() {
    let answer = r#"{"status":"success","data":{"result":[{"metric":{},"values":[[$END,"0.5"]]}]}}"#;
    let at = |url: &str, toml| judged(url, &NOBODY, toml);
    let (url, asked) = store(vec![r#"{"status":"success","data":{"result":[]}}"#, "<html>", answer]);
    let toml = "promql = 'x{instance=~\"$changed\"}'\nbelow = 1";
    assert_eq!(at(&url, toml).word, Word::CannotTell);
    let question = asked.recv().unwrap();
    assert!(question.contains("web-0%5B.%5Dexample%29%28%3F%3A%5B.%5D"), "{question}");
    assert!(!question.contains("web-1"), "{question}");
    assert_eq!(at(&url, toml).word, Word::NoAnswer);
    let passed = at(&url, toml);
    assert!(passed.word == Word::Passed && passed.why == "0.5: below 1", "{}", passed.why);
    let gone = judged("http://127.0.0.1:9", &NOBODY, toml);
    assert_eq!(gone.word, Word::NoAnswer, "{}", gone.why);
}

#[test]
fn changed_nodes_that_a_store_does_not_know_are_no_verdict() {
    let empty = r#"{"status":"success","data":{"result":[]}}"#;
    let (url, _asked) = store(vec![empty; 50]);
    let mut r = changed();
    (r.stages[0].began_ms, r.stages[0].changed_ms) = (Some(now_ms() - 60_000), Some(now_ms() - 50_000));
    let gate = gate("compare = \"p99_s\"\nlatency = 'x$quantile'\nat_most_ratio = 1.05");
    let verdict = Gates { args: &args(&url), carrier: &NOBODY }.judge(&gate, &r);
    assert!(verdict.word == Word::CannotTell && verdict.why.contains("no node was found"), "{}", verdict.why);
}

#[test]
fn a_command_passes_with_0_cannot_tell_with_3_and_has_to_end_in_time() {
    let word = |script: &str| {
        let toml = format!("command = ['sh', '-c', '{script}']");
        judged("http://127.0.0.1:9", &NOBODY, &toml).word
    };
    assert_eq!(word("test \"$WAKEWATT_CHANGED\" = web-0.example"), Word::Passed);
    assert_eq!((word("exit 3"), word("exit 1"), word("kill -9 $$")), (Word::CannotTell, Word::Failed, Word::Failed));
    assert_eq!(word("sleep 600"), Word::Failed);
}

#[test]
fn an_experiment_is_judged_by_the_interval_of_its_effect() {
    let toml = "experiment = \"idle\"\narm = \"poll\"\nmetric = \"m\"\nat_most_ratio = 1.05";
    let word = |code, output| judged("http://127.0.0.1:9", &Says(code, output), toml).word;
    let good =
        r#"{"comparisons":[{"effect":{"arm":"poll","metric":"m","ratio":1.0,"ratio_low":0.98,"ratio_high":1.02}}]}"#;
    let bad =
        r#"{"comparisons":[{"effect":{"arm":"poll","metric":"m","ratio":1.3,"ratio_low":1.2,"ratio_high":1.4}}]}"#;
    let other =
        r#"{"comparisons":[{"effect":{"arm":"poll","metric":"n","ratio":1.0,"ratio_low":1.0,"ratio_high":1.0}}]}"#;
    assert_eq!((word(0, good), word(0, bad)), (Word::Passed, Word::Failed));
    assert_eq!((word(0, other), word(8, ""), word(0, "[]")), (Word::CannotTell, Word::CannotTell, Word::CannotTell));
}
