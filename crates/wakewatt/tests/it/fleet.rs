//! `fleet compare` against a real Prometheus: case K0 with nodes that export over HTTP, a day of history with everything that
//! happens in a day, and what is said where too little is known. Against a store of answers: 5,000 nodes, and hostile ones.

use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, fixtures, run, wait_until, wakewatt};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wakewatt_testing::{Lacks, skipped};

const WORK: &str = "sum by (instance) (rate(http_requests_total[$window]))";

/// A node of case K0.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Usual,
    DeepIdle,
    LowClock,
    Busy,
}

fn kind(node: usize) -> Kind {
    match node {
        2 | 9 | 21 => Kind::DeepIdle,
        5 | 16 => Kind::LowClock,
        7 | 12 | 23 => Kind::Busy,
        _ => Kind::Usual,
    }
}

/// What equal nodes differ by, without a random number: some percent.
fn silent(node: usize) -> f64 {
    1.0 + 0.04 * ((node * 7919 % 26) as f64 / 26.0 - 0.5)
}

/// Requests per second, CPU seconds per request, hertz.
fn rates(node: usize) -> (f64, f64, f64) {
    let per_s = 50.0 + (node % 5) as f64 * 4.0;
    match kind(node) {
        Kind::Usual => (per_s, 0.02 * silent(node), 2.1e9),
        Kind::DeepIdle => (per_s, 0.044 * silent(node), 2.1e9),
        Kind::LowClock => (per_s, 0.041 * silent(node), 1.02e9),
        Kind::Busy => (per_s * 1.5, 0.02 * silent(node), 2.1e9),
    }
}

/// The page of a node after so many seconds; with the agent's metrics or without.
fn page(node: usize, seconds: f64, has_agent: bool) -> String {
    let (per_s, cost, hertz) = rates(node);
    let (busy, mut out) = (per_s * cost, String::new());
    for cpu in 0..4 {
        let share = if kind(node) == Kind::DeepIdle { 0.35 } else { 0.2 };
        for (mode, rate) in [("user", 1.0 - share), ("system", share), ("idle", 4.0 / busy - 1.0)] {
            let _ = writeln!(
                out,
                "node_cpu_seconds_total{{cpu=\"{cpu}\",mode=\"{mode}\"}} {}",
                seconds * busy * rate / 4.0
            );
        }
        let _ = writeln!(out, "node_cpu_scaling_frequency_hertz{{cpu=\"{cpu}\"}} {hertz}");
    }
    let load = if kind(node) == Kind::DeepIdle { busy * 2.5 } else { busy * 1.2 };
    let _ = writeln!(out, "node_load1 {load}\nnode_memory_MemTotal_bytes 2.06e+11");
    let _ = writeln!(out, "node_uname_info{{nodename=\"host{node:02}\",release=\"6.1.0\"}} 1");
    let _ = writeln!(out, "http_requests_total{{code=\"200\"}} {}", seconds * per_s);
    if has_agent {
        let governor = if kind(node) == Kind::LowClock { "powersave" } else { "performance" };
        let _ = writeln!(
            out,
            "wakewatt_settings_info{{processor=\"Xeon Gold 6230\",frequency_governor=\"{governor}\",kernel=\"6.1.0\"}} 1"
        );
        for (index, state, exit_s) in [(1, "C1", "2e-06"), (2, "C6", "0.000133")] {
            let labels = format!("state=\"{state}\",index=\"{index}\"");
            let off = if index == 2 && kind(node) != Kind::DeepIdle { 4 } else { 0 };
            let _ = writeln!(out, "wakewatt_cpuidle_exit_latency_seconds{{{labels},source=\"claimed\"}} {exit_s}");
            let _ = writeln!(out, "wakewatt_cpuidle_disabled_cpus{{{labels}}} {off}");
        }
    }
    out
}

/// A process that ends with the test.
struct Store {
    child: Child,
    url: String,
    _dir: tempfile::TempDir,
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reached(address: SocketAddr) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, Duration::from_secs(60))
}

/// A Prometheus with this configuration over the data in the folder.
fn prometheus(dir: tempfile::TempDir, scrape: &str) -> Store {
    fs::write(dir.path().join("prometheus.yml"), scrape).unwrap();
    let own = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", dir.path().join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
        .arg("--storage.tsdb.retention.time=100y")
        .arg(format!("--web.listen-address={own}"))
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let store = Store { child, url: format!("http://{own}"), _dir: dir };
    let is_ready = || {
        let Ok(mut stream) = reached(own) else { return false };
        let mut said = String::new();
        let asked = stream.write_all(b"GET /-/ready HTTP/1.0\r\nHost: x\r\n\r\n");
        asked.is_ok() && stream.read_to_string(&mut said).is_ok() && said.contains(" 200 ")
    };
    assert!(wait_until(Duration::from_secs(120), is_ready), "Prometheus is not ready in two minutes");
    store
}

fn lacks(program: &str, test: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        skipped(test, Lacks::Program(program), "no store to ask");
    }
    !is_there
}

fn compare(url: &str, more: &[&str]) -> Said {
    run(&[&["fleet", "compare", "--prometheus", url, "--work", WORK], more].concat())
}

fn document(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_valid(&validator("fleet-compare"), "fleet compare", &said.out)
}

fn named<'a>(document: &'a Value, word: &str) -> Vec<&'a str> {
    let nodes = document["nodes"].as_array().unwrap().iter();
    let mut found: Vec<&str> = nodes.filter(|n| n["word"] == word).map(|n| n["name"].as_str().unwrap()).collect();
    found.sort_unstable();
    found
}

fn node<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["nodes"].as_array().unwrap().iter().find(|n| n["name"] == name).unwrap()
}

/// K0: 26 nodes export over HTTP, Prometheus scrapes them, and the guilty are found by what they cost.
#[test]
fn the_guilty_of_26_scraped_nodes_are_found_and_the_busy_are_not_accused() {
    if lacks("prometheus", "fleet::scraped") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let start = Instant::now();
    // Ends with the test's process: nobody asks it any more once Prometheus is gone.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = String::new();
            let mut reader = BufReader::new(&stream);
            while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
            let path = head.split(' ').nth(1).unwrap_or_default();
            let Ok(at) = path.trim_start_matches('/').parse() else { continue };
            let body = page(at, 1000.0 + start.elapsed().as_secs_f64(), true);
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let mut scrape =
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: node\n  static_configs:\n".to_string();
    for at in 0..26 {
        let labels = format!("{{instance: 'node{at:02}:9100', __metrics_path__: '/{at}'}}");
        let _ = writeln!(scrape, "  - {{targets: ['{target}'], labels: {labels}}}");
    }
    let store = prometheus(tempfile::tempdir().unwrap(), &scrape);
    let guilty = ["node02:9100", "node05:9100", "node09:9100", "node16:9100", "node21:9100"];
    let ask = |more: &[&str]| compare(&store.url, &[&["--last", "30s", "--windows", "3"], more].concat());
    let mut seen = Value::Null;
    // Three windows must have passed; a scrape that was late on a busy machine is late in one of them only.
    let is_found = || {
        let said = ask(&["--json"]);
        if said.code == Some(0) {
            seen = document(&said);
        }
        seen.is_object() && named(&seen, "dearer") == guilty && named(&seen, "cannot_tell").is_empty()
    };
    assert!(wait_until(Duration::from_secs(180), is_found), "{}", seen["sentence"]);
    assert_eq!(named(&seen, "like").len(), 21, "the busy are like their peers: {}", seen["sentence"]);
    let deep = node(&seen, "node09:9100");
    assert_eq!(deep["differs"][0]["here"], "C6, 133us", "{deep}");
    assert!(deep["differs"][0]["predicted"].as_str().unwrap().contains("131us longer"), "{deep}");
    let slow = node(&seen, "node05:9100");
    assert!(slow["sentence"].as_str().unwrap().contains("the clock is what to look at"), "{slow}");
    assert_eq!(slow["differs"][0]["here"], "powersave", "{slow}");
    assert!(ask(&[]).out.contains("frequency governor: powersave here, performance on peers"));
}

/// Seconds since 1970 at the end of the day that is loaded: long ago, so that nothing hangs on now.
const DAY_S: u64 = 1_720_000_800;
const UNTIL: &str = "2024-07-03T10:00:00Z";
const HALF: &str = "2024-07-03T07:00:00Z";

/// Six hours of 26 nodes, a sample a minute: one restarts, one has gaps, one is given another address, one only exists later.
/// Series with value and moment, families in one piece each.
fn history() -> Vec<(String, u64)> {
    let mut lines: Vec<(String, u64)> = Vec::new();
    let n_minutes = 360u64;
    for at in 0..26 {
        for minute in 0..=n_minutes {
            // A gap of 80 minutes; a node that was bought late in the day.
            if (at == 3 && (100..180).contains(&minute)) || (at == 4 && minute < 320) {
                continue;
            }
            let name = if at == 6 && minute >= 180 { "moved06".to_string() } else { format!("node{at:02}") };
            // A restart: counters begin again.
            let since = if at == 8 && minute >= 200 { minute - 200 } else { minute };
            for line in page(at, 60.0 * since as f64, false).lines() {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (metric, labels) = series.split_once('{').unwrap_or((series, ""));
                let labels = labels.trim_end_matches('}');
                let comma = if labels.is_empty() { "" } else { "," };
                let sample = format!("{metric}{{instance=\"{name}:9100\"{comma}{labels}}} {value}");
                lines.push((sample, DAY_S - n_minutes * 60 + minute * 60));
            }
        }
    }
    lines.sort_by(|a, b| a.0.split('{').next().cmp(&b.0.split('{').next()));
    lines
}

/// What is found of that day, in whichever store it lies.
fn assert_day(url: &str, page_at: &str) {
    let in_windows =
        |n: &str, more: &[&str]| compare(url, &[&["--until", UNTIL, "--last", "6h", "--windows", n], more].concat());
    let ask = |more: &[&str]| in_windows("12", more);
    let found = document(&ask(&["--json"]));
    let guilty = ["node02:9100", "node05:9100", "node09:9100", "node16:9100", "node21:9100"];
    assert_eq!(named(&found, "dearer"), guilty, "{}", found["sentence"]);
    assert_eq!(found["nodes"].as_array().unwrap().len(), 26, "the one with a new address is one node");
    let also = found["nodes"].as_array().unwrap().iter().find(|n| n["name"] == "moved06:9100").unwrap();
    assert!(also["also_named"].as_array().unwrap().contains(&"node06:9100".into()), "{also}");
    let ratio = |name: &str| node(&found, name)["measures"][0]["ratio"].as_f64().unwrap();
    for name in ["node03:9100", "node08:9100", "moved06:9100"] {
        assert!(
            (0.9..1.1).contains(&ratio(name)),
            "{name}: gaps, restarts and names cost nothing: {}",
            node(&found, name)
        );
    }
    let late = node(&found, "node04:9100");
    assert!(late["word"] == "cannot_tell" && late["measures"].as_array().unwrap().is_empty(), "{late}");
    assert!(!found["agent_would_add"].as_array().unwrap().is_empty());
    let fine = document(&in_windows("72", &["--json"]));
    assert!(guilty.iter().all(|name| named(&fine, "dearer").contains(name)), "{}", fine["sentence"]);
    let text = ask(&["--all", "--changed-at", HALF, "-o", page_at]);
    assert!(
        text.out.contains("5 of 25 nodes pay more") && text.out.contains("The agent on each node would add"),
        "{}",
        text.out
    );
    let html = fs::read_to_string(page_at).unwrap();
    assert!(html.contains("<svg") && html.contains("Before and after") && html.contains("node09:9100"));
    for forbidden in ["http://", "https://", "<script", "src=", "url(", "NaN"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    let csv = ask(&["--csv"]);
    let rows: Vec<&str> = csv.out.lines().collect();
    assert!(rows[0].starts_with("node,class,node_is,measure") && rows.len() > 100, "{}", csv.out);
    let changed = document(&ask(&["--json", "--changed-at", HALF]));
    let ratio = node(&changed, "node01:9100")["change"]["ratio"].as_f64().unwrap();
    assert!((0.95..1.05).contains(&ratio), "nothing was changed: {ratio}");
}

#[test]
fn a_day_with_restarts_gaps_and_new_names_is_read_from_prometheus() {
    if lacks("prometheus", "fleet::prometheus_day") || lacks("promtool", "fleet::prometheus_day") {
        return;
    }
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (file, data) = (dir.path().join("history.om"), dir.path().join("data"));
    let lines: Vec<String> = history().into_iter().map(|(sample, at_s)| format!("{sample} {at_s}\n")).collect();
    fs::write(&file, lines.concat() + "# EOF\n").unwrap();
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([&file, &data])
        .stdout(Stdio::null())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let store = prometheus(dir, "global: {scrape_interval: 1m}\n");
    assert_day(&store.url, out.path().join("fleet.html").to_str().unwrap());
    // A store with a sample a minute has no rate in a quarter of one, and refuses more than 11,000 points a series.
    let too_fine = compare(&store.url, &["--until", UNTIL, "--last", "6h", "--windows", "1440"]);
    assert!(too_fine.code == Some(3) && too_fine.err.contains("must hold two samples"), "{}", too_fine.err);
    let long = compare(&store.url, &["--until", UNTIL, "--last", "1600h", "--windows", "16000", "--json"]);
    assert_eq!(named(&document(&long), "dearer").len(), 5, "windows of six minutes in two pieces");
}

#[test]
fn the_same_day_is_read_from_victoria_metrics() {
    if lacks("victoria-metrics", "fleet::victoria_metrics_day") {
        return;
    }
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let own = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let child = Command::new("victoria-metrics")
        .arg(format!("-storageDataPath={}", dir.path().join("data").display()))
        .arg(format!("-httpListenAddr={own}"))
        .args(["-retentionPeriod=100y", "-search.latencyOffset=1s"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let store = Store { child, url: format!("http://{own}"), _dir: dir };
    let asked = |request: &str, body: &str| -> Option<String> {
        let mut stream = reached(own).ok()?;
        let head = format!("{request} HTTP/1.0\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    let is_ready = || asked("GET /health", "").is_some_and(|said| said.contains(" 200 "));
    assert!(wait_until(Duration::from_secs(120), is_ready), "VictoriaMetrics is not ready in two minutes");
    let lines: Vec<String> = history().into_iter().map(|(sample, at_s)| format!("{sample} {at_s}000\n")).collect();
    assert!(asked("POST /api/v1/import/prometheus", &lines.concat()).is_some_and(|said| said.contains(" 204 ")));
    let _ = asked("GET /internal/force_flush", "");
    let last = format!("GET /api/v1/query?query=count%28node_load1%29&time={DAY_S}");
    let is_there = || asked(&last, "").is_some_and(|said| said.contains("\"26\""));
    assert!(
        wait_until(Duration::from_secs(120), is_there),
        "the history is not there after two minutes: {:?}",
        asked(&last, "")
    );
    assert_day(&store.url, out.path().join("fleet.html").to_str().unwrap());
}

#[test]
fn a_question_that_finds_nobody_says_what_to_try() {
    let store = answering(|_| matrix(&[]));
    let said = compare(&store, &[]);
    assert!(said.code == Some(3) && said.err.contains("--node-label"), "{}", said.err);
    let store = answering(|query| match query.contains("http_requests") {
        true => matrix(&[("pod=web-1".into(), vec![1.0; 12])]),
        false => matrix(&[("instance=a:9100".into(), vec![1.0; 12])]),
    });
    let said = compare(&store, &[]);
    assert!(
        said.code == Some(3) && said.err.contains("none of its 1 series") && said.err.contains("pod"),
        "{}",
        said.err
    );
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(compare(&format!("http://{closed}"), &[]).code, Some(3));
    let said = compare("http://127.0.0.1:1", &["--last", "30s"]);
    assert!(said.code == Some(2) && said.err.contains("--windows"), "{}", said.err);
    assert_eq!(run(&["fleet", "compare"]).code, Some(2));
    let said = compare("http://metrics.example:9090", &["--token-file", "/dev/null"]);
    assert!(said.code != Some(0) && said.err.contains("/dev/null"), "{}", said.err);
}

/// A store of answers: takes the PromQL of a range query, gives JSON.
fn answering(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = String::new();
            let mut reader = BufReader::new(&stream);
            while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
            let query = head.split("query=").nth(1).and_then(|q| q.split('&').next()).unwrap_or_default();
            let of = |key: &str| head.split(key).nth(1)?.split(['&', ' ']).next()?.parse::<u64>().ok();
            let body = answer(&query.replace("%5F", "_"));
            // Times as asked for.
            let (start, step) = (of("start=").unwrap_or(0), of("step=").unwrap_or(1));
            let body = (0..12).fold(body, |b, w| b.replace(&format!("[T{w},"), &format!("[{},", start + w * step)));
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    url
}

/// An answer of these series, `key=value` and their values window by window.
fn matrix(series: &[(String, Vec<f64>)]) -> String {
    let mut out = String::from(r#"{"status":"success","data":{"resultType":"matrix","result":["#);
    for (at, (labels, values)) in series.iter().enumerate() {
        let labels: Vec<String> =
            labels.split(';').filter_map(|l| l.split_once('=')).map(|(k, v)| format!("\"{k}\":\"{v}\"")).collect();
        let values: Vec<String> = values.iter().enumerate().map(|(w, v)| format!("[T{w},\"{v}\"]")).collect();
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(out, "{comma}{{\"metric\":{{{}}},\"values\":[{}]}}", labels.join(","), values.join(","));
    }
    out + "]}}"
}

/// 5,000 nodes from recorded series: within seconds and 200 MB.
#[test]
fn five_thousand_nodes_fit_into_memory() {
    let noise = |node: usize, window: usize| 1.0 + 0.05 * ((node * 31 + window * 17) % 100) as f64 / 100.0;
    let all = move |per_node: &dyn Fn(usize, usize) -> f64, labels: &dyn Fn(usize) -> String| {
        let series: Vec<(String, Vec<f64>)> = (0..5000)
            .map(|n| (format!("instance=node{n:04}:9100{}", labels(n)), (0..12).map(|w| per_node(n, w)).collect()))
            .collect();
        matrix(&series)
    };
    let store = answering(move |query| {
        let none: &dyn Fn(usize) -> String = &|_| String::new();
        let per_s = |n: usize, w: usize| 100.0 + (n % 40) as f64 + 5.0 * (w as f64).sin();
        match query {
            q if q.contains("http_requests") => all(&per_s, none),
            q if q.contains("node_load1") => all(&|n, w| 3.0 * noise(n, w), none),
            q if q.starts_with("count%20by%20%28instance%29%20%28node_cpu_seconds") => all(&|_, _| 48.0, none),
            q if q.contains("node_cpu_seconds") => {
                let bad = |n: usize| if n.is_multiple_of(250) { 1.5 } else { 1.0 };
                all(&|n, w| per_s(n, w) * 0.02 * bad(n) * noise(n, w), none)
            }
            q if q.contains("node_uname_info") => {
                all(&|_, _| 1.0, &|n| format!(";nodename=n{n};release=6.1.{}", n % 3))
            }
            q if q.contains("MemTotal") => all(&|_, _| 4e11, none),
            q if q.contains("scaling_frequency_hertz") => all(&|n, w| 2.1e9 * noise(n, w), none),
            q if q.contains("rapl") => all(&|n, w| 200.0 * noise(n, w), none),
            _ => matrix(&[]),
        }
    });
    let out = tempfile::tempdir().unwrap();
    let page = out.path().join("fleet.html");
    let mut child = wakewatt(&["fleet", "compare", "--prometheus", &store, "--work", WORK, "--json", "-o"])
        .arg(&page)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    let (mut peak_kib, start) = (0u64, Instant::now());
    let mut pipe = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let kib =
            status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = start.elapsed();
    let text = reading.join().unwrap().unwrap();
    let found = assert_valid(&validator("fleet-compare"), "5,000 nodes", &text);
    println!("5,000 nodes: {took:.1?}, {} MB", peak_kib / 1000);
    assert_eq!(named(&found, "dearer").len(), 20, "{}", found["sentence"]);
    assert!(peak_kib < 200_000, "{peak_kib} KiB");
}

/// A folder of recorded hosts: nothing is measured, and what is set otherwise is told all the same.
#[test]
fn a_folder_of_hosts_is_told_apart_by_settings() {
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(fixtures().join("hosts/dell-latitude-5420-tgl.host")).unwrap();
    for at in 0..5 {
        fs::write(dir.path().join(format!("n{at}.host")), &text).unwrap();
    }
    let said = run(&["fleet", "compare", "--files", dir.path().to_str().unwrap(), "--json"]);
    let found = assert_valid(&validator("fleet-compare"), "files", &said.out);
    assert_eq!((found["nodes"].as_array().unwrap().len(), found["classes"].as_array().unwrap().len()), (5, 1));
    let sentence = found["sentence"].as_str().unwrap();
    assert!(said.code == Some(0) && sentence.contains("nothing differs within a class (5 nodes known)"), "{sentence}");
    let other = text.replace("scaling_governor = powersave", "scaling_governor = performance");
    assert_ne!(other, text);
    fs::write(dir.path().join("n4.host"), other).unwrap();
    let said = run(&["fleet", "compare", "--files", dir.path().to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("frequency governor: performance here, powersave on peers"), "{}", said.out);
    let none = tempfile::tempdir().unwrap();
    let said = run(&["fleet", "compare", "--files", none.path().to_str().unwrap()]);
    assert!(said.code == Some(4) && said.err.contains("wakewatt capture"), "{}", said.err);
}

/// Ten nodes and the loads that were measured on each (here: simulated), one of them with another governor.
#[test]
fn a_folder_of_runs_is_compared_like_a_store() {
    let dir = tempfile::tempdir().unwrap();
    for at in 0..10 {
        let (file, seed) = (dir.path().join(format!("n{at}.run")), at.to_string());
        let setting = if at == 3 { "powersave" } else { "performance" };
        let short = ["--duration", "200ms", "--replications", "1", "--save", file.to_str().unwrap()];
        let said = run(&[&["simulate", "k4-governors", "--setting", setting, "--seed", &seed], &short[..]].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let said = run(&["fleet", "compare", "--files", dir.path().to_str().unwrap(), "--json"]);
    let found = document(&said);
    assert_eq!(named(&found, "dearer"), ["n3"], "{}", found["sentence"]);
    assert!(found["window_s"].is_null() && found["n_windows"].as_u64().unwrap() >= 10);
}

/// An answer without end, and one that is none.
#[test]
fn hostile_stores_are_survived() {
    for body in ["", "{}", "[]", "<html>", "{\"status\":\"success\",\"data\":{\"result\":[{\"values\":[[1,", "null"] {
        let store = answering(move |_| body.to_string());
        let said = compare(&store, &[]);
        assert!(said.code == Some(3) && !said.err.is_empty(), "{body}: {said:?}");
    }
    let long = format!(
        "{{\"status\":\"success\",\"data\":{{\"result\":[{}]}}}}",
        "{\"metric\":{\"instance\":\"x\"}},".repeat(1_000_000)
    );
    let store = answering(move |_| long.clone());
    let said = compare(&store, &["--timeout", "30s"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
}
