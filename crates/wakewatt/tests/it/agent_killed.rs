//! A real Prometheus scrapes the agent on this machine, under load, and both are killed (SIGKILL) again and again: is anything counted twice, and is anything
//! lost beyond what nobody looked at?
//!
//! The judge is the kernel. Its own counters are read four times a second, with the time; the store's samples are summed as PromQL sums them (a step down is a
//! restart, the new value is growth). That sum may never be more than the kernel counted between the first sample and the last, and never less than that
//! without the time around each kill of the agent. A sample shows a reading at most a second older than itself. Half a minute in `make test`; with
//! `make prove-agent` as long as is asked for, with wake-ups traced, and what came of it written down.

use crate::agent::reached;
use crate::packaging::{DASHBOARDS, queries, shipped};
use crate::tool::{is_root, wait_until, wakewatt};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wakewatt_testing::{Lacks, skipped};

/// How long, in seconds.
const FOR: &str = "WAKEWATT_PROVE_AGENT_S";
/// Where what came of it is written.
const TOLD: &str = "WAKEWATT_PROVE_AGENT_TOLD";
const LOOK: Duration = Duration::from_millis(250);
/// A reading serves who asks within this.
const STALE_S: f64 = 1.5;
const COUNTERS: [&str; 3] =
    ["wakewatt_context_switches_total", "wakewatt_interrupts_total", "wakewatt_cpuidle_entries_total"];

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The kernel's own counters: a time, and a number for each of ours.
type Look = (f64, [u64; 3]);

fn look() -> Look {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let of = |word: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(word)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let cpus = fs::read_dir("/sys/devices/system/cpu").unwrap().flatten();
    let states = cpus.filter_map(|cpu| fs::read_dir(cpu.path().join("cpuidle")).ok()).flatten().flatten();
    let usages = states.filter_map(|state| fs::read_to_string(state.path().join("usage")).ok());
    let n_entries = usages.map(|text| text.trim().parse::<u64>().unwrap()).sum();
    (now_s(), [of("ctxt "), of("intr "), n_entries])
}

/// Sleepers, sometimes many and sometimes few, and somebody who looks at what the kernel counts.
struct Machine {
    stop: Arc<AtomicBool>,
    sleepers: Vec<JoinHandle<()>>,
    looker: Option<JoinHandle<Vec<Look>>>,
}

impl Machine {
    fn start() -> Machine {
        let stop = Arc::new(AtomicBool::new(false));
        let begun = Instant::now();
        let sleepers = (0..4).map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let is_busy = begun.elapsed().as_secs() % 20 < 10;
                    std::thread::sleep(Duration::from_millis(if is_busy { 1 } else { 8 }));
                }
            })
        });
        let sleepers = sleepers.collect();
        let looker = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut looks = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    looks.push(look());
                    std::thread::sleep(LOOK);
                }
                looks.push(look());
                looks
            }
        });
        Machine { stop, sleepers, looker: Some(looker) }
    }

    fn end(mut self) -> Vec<Look> {
        self.stop.store(true, Ordering::Relaxed);
        self.looker.take().unwrap().join().unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.sleepers.drain(..).for_each(|sleeper| sleeper.join().unwrap());
    }
}

/// At least so much had been counted by then, and at most so much.
fn counted(looks: &[Look], which: usize, at_s: f64) -> (u64, u64) {
    let after = looks.partition_point(|(s, _)| *s <= at_s);
    let at = |i: usize| looks[i.min(looks.len() - 1)].1[which];
    (at(after.saturating_sub(1)), at(after))
}

/// Agent or store; killed when dropped.
struct Killed(Child);

impl Killed {
    fn spawn(command: &mut Command) -> Killed {
        Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The store's answer; none while it does not answer.
fn query(store: SocketAddr, promql: &str) -> Option<Vec<Value>> {
    let mut stream = reached(store).ok()?;
    let encoded: String = promql.bytes().map(|b| format!("%{b:02X}")).collect();
    write!(stream, "GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let document: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1)?).ok()?;
    (document["status"] == "success").then(|| document["data"]["result"].as_array().cloned())?
}

fn number(value: &Value) -> f64 {
    value.as_str().unwrap().parse().unwrap()
}

/// Times and values of each series that the store holds of a metric.
fn samples(store: SocketAddr, metric: &str, for_s: u64) -> Vec<Vec<(f64, f64)>> {
    let found = query(store, &format!("{metric}[{}s]", for_s + 600)).unwrap();
    let of = |series: &Value| {
        let values = series["values"].as_array().unwrap().iter();
        values.map(|pair| (pair[0].as_f64().unwrap(), number(&pair[1]))).collect()
    };
    found.iter().map(of).collect()
}

/// As PromQL sums: what was there at first is no growth, a step down is a restart.
fn grown(series: &[(f64, f64)]) -> (f64, usize) {
    let steps = series.windows(2).map(|pair| (pair[0].1, pair[1].1));
    let sum = steps.clone().map(|(then, now)| if now < then { now } else { now - then }).sum();
    (sum, steps.filter(|(then, now)| now < then).count())
}

struct Parties<'a> {
    folder: &'a Path,
    agent_at: SocketAddr,
    store_at: SocketAddr,
    is_traced: bool,
}

impl Parties<'_> {
    fn agent(&self) -> Killed {
        let (listen, history) = (self.agent_at.to_string(), self.folder.join("history"));
        let mut command = wakewatt(&["agent", "--listen", &listen, "--interval", "5s", "--history"]);
        command.arg(history).args(if self.is_traced { &["--trace", "--by", "cgroup"][..] } else { &[] });
        Killed::spawn(&mut command)
    }

    fn store(&self) -> Killed {
        let at = |what: &str, name: &str| format!("{what}={}", self.folder.join(name).display());
        let args = [at("--config.file", "prometheus.yml"), at("--storage.tsdb.path", "data")];
        let listen = format!("--web.listen-address={}", self.store_at);
        Killed::spawn(Command::new("prometheus").args(args).arg(listen))
    }

    /// A scrape that ended after this.
    fn is_scraped_after(&self, at_s: f64) -> bool {
        let found = query(self.store_at, "max(timestamp(up == 1))");
        found.is_some_and(|found| found.first().is_some_and(|one| number(&one["value"][1]) > at_s))
    }
}

#[test]
fn killed_again_and_again_nothing_is_counted_twice() {
    if Command::new("prometheus").arg("--version").output().is_err() {
        skipped("agent_killed", Lacks::Program("prometheus"), "nobody to scrape");
        return;
    }
    let asked: Option<u64> = std::env::var(FOR).ok().map(|text| text.parse().unwrap());
    let for_s = asked.unwrap_or(30);
    // Short runs kill each twice; long ones each of them every ten minutes, in turn.
    let n_kills = (for_s / 300).max(4);
    let dir = tempfile::tempdir().unwrap();
    let is_traced = asked.is_some() && is_root();
    let all = Parties { folder: dir.path(), agent_at: free(), store_at: free(), is_traced };
    let every_s = (for_s / 120).clamp(1, 5);
    let config = format!(
        "global: {{scrape_interval: {every_s}s, scrape_timeout: {every_s}s}}\nscrape_configs: [{{job_name: w, static_configs: [{{targets: ['{}']}}]}}]\n",
        all.agent_at
    );
    fs::write(dir.path().join("prometheus.yml"), config).unwrap();
    let soon = |what: &str, at_s: f64| {
        assert!(
            wait_until(Duration::from_secs(120), || all.is_scraped_after(at_s)),
            "no scrape in two minutes: {what}"
        );
    };
    let machine = Machine::start();
    let (mut agent, mut store) = (Some(all.agent()), Some(all.store()));
    soon("at the start", now_s());
    // When the agent was killed, and from when on a new one was there.
    let mut gaps: Vec<(f64, f64)> = Vec::new();
    for i in 0..n_kills {
        std::thread::sleep(Duration::from_secs(for_s) / u32::try_from(n_kills + 1).unwrap());
        let away = Duration::from_millis(500 * (i % 5));
        if i % 2 == 0 {
            let killed_s = now_s();
            drop(agent.take());
            std::thread::sleep(away);
            agent = Some(all.agent());
            soon("of the new agent", now_s() + every_s as f64);
            gaps.push((killed_s, now_s()));
        } else {
            drop(store.take());
            std::thread::sleep(away);
            store = Some(all.store());
            soon("by the new store", now_s());
        }
    }
    std::thread::sleep(Duration::from_secs(for_s) / u32::try_from(n_kills + 1).unwrap());
    soon("at the end", now_s());
    let found = dashboards(&all);
    drop(agent);
    let looks = machine.end();
    // A sample has the time at which its scrape began, which may take as long as it is given.
    let late_s = every_s as f64 + 0.5;
    let mut told = format!(
        "seconds,{for_s}\nagents killed,{}\nstores killed,{}\nscrapes every,{every_s} s\n",
        gaps.len(),
        n_kills - gaps.len() as u64
    );
    for (which, metric) in COUNTERS.into_iter().enumerate() {
        let series = samples(all.store_at, metric, for_s);
        if series.is_empty() && looks.iter().all(|(_, counted)| counted[which] == 0) {
            skipped("agent_killed::idle", Lacks::Here, "no idle driver that counts");
            continue;
        }
        let times = || series.iter().flatten().map(|(s, _)| *s);
        let (first_s, last_s) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
        let sum: f64 = series.iter().map(|one| grown(one).0).sum();
        let n_resets = series.iter().map(|one| grown(one).1).max().unwrap_or(0);
        let n_samples = series.iter().map(Vec::len).max().unwrap_or(0);
        let most = counted(&looks, which, last_s + late_s).1 - counted(&looks, which, first_s - STALE_S).0;
        let between = |from_s: f64, to_s: f64| counted(&looks, which, to_s).1 - counted(&looks, which, from_s).0;
        // From the last sample of an agent to the first of the next nobody is told what happened.
        let unseen: u64 = gaps
            .iter()
            .map(|(from_s, to_s)| {
                let before = times().filter(|s| s < from_s).fold(first_s, f64::max);
                let after = times().filter(|s| *s > *from_s && s <= to_s).fold(*to_s, f64::min);
                between(before - STALE_S, after + late_s)
            })
            .sum();
        let least =
            counted(&looks, which, last_s - STALE_S).0.saturating_sub(counted(&looks, which, first_s + late_s).1);
        let _ = writeln!(
            told,
            "{metric},{sum:.0} in the store of {n_samples} samples; {least} to {most} by the kernel; up to {unseen} around kills; {n_resets} restarts seen"
        );
        assert!(sum > 0.0 && sum <= most as f64, "counted twice: {told}");
        assert!(sum >= least.saturating_sub(unseen) as f64, "lost: {told}");
        assert!(n_resets <= gaps.len(), "a step down without a kill: {told}");
        // No month of idle time in one second: no rate beyond what the kernel saw in any second, thrice for how PromQL extends what it saw.
        let at_most =
            looks.windows(6).map(|w| (w[5].1[which] - w[0].1[which]) as f64 / (w[5].0 - w[0].0)).fold(0.0, f64::max);
        let rate = format!("max_over_time(sum(rate({metric}[{}s]))[{}s:{every_s}s])", 6 * every_s, for_s + 60);
        let fastest = query(all.store_at, &rate).unwrap().first().map_or(0.0, |one| number(&one["value"][1]));
        let _ = writeln!(told, "{metric} fastest,{fastest:.0}/s by the store; {at_most:.0}/s by the kernel");
        assert!(fastest <= 3.0 * at_most, "{told}");
    }
    let memory = samples(all.store_at, "wakewatt_agent_resident_memory_bytes", for_s).concat();
    let bytes = || memory.iter().map(|(_, bytes)| *bytes);
    let _ = writeln!(
        told,
        "memory of the agent,{:.1} to {:.1} MB",
        bytes().fold(f64::MAX, f64::min) / 1e6,
        bytes().fold(0.0, f64::max) / 1e6
    );
    told += &found;
    if let Ok(path) = std::env::var(TOLD) {
        fs::write(path, &told).unwrap();
    }
    println!("{told}");
    drop(store);
}

/// Every query of the dashboards, asked of a store that holds what the agent told: how many find something, and which do not.
fn dashboards(all: &Parties<'_>) -> String {
    let mut told = String::new();
    for file in DASHBOARDS {
        let dashboard: Value = serde_json::from_str(&shipped(file)).unwrap();
        let all_queries = queries(&dashboard, "w", &all.agent_at.to_string());
        let empty: Vec<&String> = all_queries
            .iter()
            .filter(|promql| {
                query(all.store_at, promql).unwrap_or_else(|| panic!("{file}: refused: {promql}")).is_empty()
            })
            .collect();
        let _ = writeln!(
            told,
            "{file},{} of {} queries find something",
            all_queries.len() - empty.len(),
            all_queries.len()
        );
        for promql in &empty {
            let _ = writeln!(told, "{file} finds nothing here,{promql}");
        }
        // Where somebody paid, each panel of payers says who; the share without a name needs such a one.
        let has_paid = query(all.store_at, "sum(increase(wakewatt_payer_lost_seconds_total[5m])) > 0");
        let is_silent = |promql: &&&String| promql.contains("sum by (payer) (rate(wakewatt_payer_lost_seconds_total");
        assert!(has_paid.is_none_or(|paid| paid.is_empty()) || !empty.iter().any(|q| is_silent(&q)), "{told}");
    }
    told
}
