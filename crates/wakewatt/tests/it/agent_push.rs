//! `agent --otlp`: what a collector gets, decoded by messages that this test declares for itself from the published numbers of the fields; and what becomes of what it does not take.

use crate::agent::{Agent, soon, tree, value};
use crate::tool::run;
use prost::Message;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// `opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest`, as far as it is looked at.
#[derive(Clone, PartialEq, Message)]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Any", tags = "1, 2, 3, 4")]
    value: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Any {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(oneof = "Data", tags = "5, 7")]
    data: Option<Data>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    points: Vec<Point>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    points: Vec<Point>,
    #[prost(int32, tag = "2")]
    temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Point {
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    start_ns: u64,
    #[prost(fixed64, tag = "3")]
    at_ns: u64,
    #[prost(oneof = "Number", tags = "4, 6")]
    value: Option<Number>,
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
enum Number {
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(sfixed64, tag = "6")]
    Int(i64),
}

fn said(attributes: &[KeyValue], key: &str) -> Option<String> {
    match attributes.iter().find(|one| one.key == key)?.value.clone()?.value? {
        Any::Text(text) => Some(text),
        other => Some(format!("{other:?}")),
    }
}

/// A collector that answers each request with the next of these, the last one again and again; heads and bodies come back.
fn collector(answers: &'static [&'static str]) -> (SocketAddr, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (got, gets) = channel();
    std::thread::spawn(move || {
        let mut answers = answers.iter().copied().peekable();
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = BufReader::new(stream);
            // As many requests as one connection brings.
            loop {
                let mut head = String::new();
                while stream.read_line(&mut head).is_ok_and(|n| n > 2) {}
                let length = head.lines().find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
                });
                let Some(length) = length else { break };
                let mut body = vec![0; length];
                if stream.read_exact(&mut body).is_err() || got.send((head, body)).is_err() {
                    return;
                }
                let answer = answers.next_if(|_| true).unwrap_or("200 OK");
                let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
                if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (address, gets)
}

fn next(gets: &Receiver<(String, Vec<u8>)>) -> (String, Export) {
    let (head, body) = gets.recv_timeout(Duration::from_secs(120)).expect("a push within two minutes");
    (head, Export::decode(&body[..]).unwrap())
}

#[test]
fn a_collector_gets_every_interval_by_the_names_of_the_conventions() {
    let dir = tempfile::tempdir().unwrap();
    let tree_at = dir.path().join("tree");
    tree(&tree_at, 4, 1000);
    let put = |path: &str, text: &str| crate::agent::write(&tree_at, path, text);
    put("sys/class/powercap/intel-rapl:0/name", "package-0");
    put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850");
    put("sys/class/powercap/intel-rapl:0/energy_uj", "1000000000");
    put("proc/sys/kernel/hostname", "db7");
    let header = dir.path().join("header");
    fs::write(&header, "Authorization: Bearer 0123456789abcdef\n").unwrap();
    fs::set_permissions(&header, fs::Permissions::from_mode(0o600)).unwrap();
    let (address, gets) = collector(&["503 Busy\r\nRetry-After: 1"]);
    let url = format!("http://{address}");
    let args = ["--sysroot", tree_at.to_str().unwrap(), "--interval", "1s", "--sources", "package", "--otlp", &url];
    let agent = Agent::start(&[&args[..], &["--otlp-header-file", header.to_str().unwrap()]].concat());
    let (head, first) = next(&gets);
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    let lower = head.to_ascii_lowercase();
    assert!(lower.contains("content-type: application/x-protobuf\r\n"), "{head}");
    assert!(lower.contains("authorization: bearer 0123456789abcdef\r\n"), "{head}");
    // What was not taken comes again, the same.
    let (_, again) = next(&gets);
    assert_eq!(first, again);
    let (_, later) = next(&gets);
    assert_ne!(first, later);
    let resource = later.resource_metrics[0].resource.clone().unwrap().attributes;
    assert_eq!(said(&resource, "service.name").as_deref(), Some("wakewatt-agent"));
    assert_eq!(said(&resource, "host.name").as_deref(), Some("db7"));
    let metrics = &later.resource_metrics[0].scope_metrics[0].metrics;
    let sum = |name: &str| match metrics.iter().find(|metric| metric.name == name).map(|metric| metric.data.clone()) {
        Some(Some(Data::Sum(sum))) => sum,
        other => panic!("{name}: {other:?}"),
    };
    let energy = sum("hw.energy");
    assert!(energy.is_monotonic && energy.temporality == 2);
    assert_eq!(said(&energy.points[0].attributes, "hw.type").as_deref(), Some("cpu"));
    assert_eq!(energy.points[0].value, Some(Number::Double(0.0)));
    assert!(energy.points[0].start_ns > 0 && energy.points[0].at_ns > energy.points[0].start_ns);
    assert!(sum("system.cpu.time").points.iter().any(|p| said(&p.attributes, "cpu.mode").as_deref() == Some("idle")));
    assert_eq!(sum("wakewatt.cpuidle.entries").points.len(), 4, "two states on two nodes");
    let gauge = metrics.iter().find(|metric| metric.name == "wakewatt.cpuidle.exit.latency").unwrap();
    assert!(gauge.unit == "s" && !gauge.description.is_empty() && matches!(gauge.data, Some(Data::Gauge(_))));
    // It is told in the agent's own page, too.
    soon("pushes are counted", || value(&agent.text(), "wakewatt_agent_pushes_total{outcome=\"sent\"}") >= Some(2.0));
    soon("the push is well again", || value(&agent.text(), "wakewatt_agent_source_up{source=\"push\"}") == Some(1.0));
    assert_eq!(agent.end(), Some(130));
}

#[test]
fn a_collector_that_refuses_or_is_away_keeps_nobody_else_waiting() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), 2, 1000);
    let gone = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let (refusing, _gets) = collector(&["400 Bad Request"; 1000]);
    for (address, outcome) in [(gone, None), (refusing, Some("dropped"))] {
        let url = format!("http://{address}/");
        let agent = Agent::start(&["--sysroot", dir.path().to_str().unwrap(), "--interval", "1s", "--otlp", &url]);
        soon("what goes wrong is told", || {
            let page = agent.text();
            let line = page.lines().find(|line| line.starts_with("wakewatt_agent_source_up{source=\"push\",why=\""));
            line.is_some_and(|line| line.contains(&address.to_string()) && line.ends_with(" 0"))
        });
        if let Some(outcome) = outcome {
            let sample = format!("wakewatt_agent_pushes_total{{outcome=\"{outcome}\"}}");
            soon("what was refused is counted", || value(&agent.text(), &sample) >= Some(1.0));
        }
        assert_eq!(agent.end(), Some(130));
    }
}

#[test]
fn credentials_of_a_collector_cross_no_network_in_the_clear() {
    let dir = tempfile::tempdir().unwrap();
    let header = dir.path().join("header");
    fs::write(&header, "Authorization: Bearer hunter2\n").unwrap();
    fs::set_permissions(&header, fs::Permissions::from_mode(0o600)).unwrap();
    let at = |url: &str| run(&["agent", "--otlp", url, "--otlp-header-file", header.to_str().unwrap()]);
    let exposed = at("http://192.0.2.1:4318");
    assert!(exposed.code == Some(7) && exposed.err.contains("unencrypted"), "{}", exposed.err);
    let named = at("http://me:hunter2@127.0.0.1:4318");
    assert!(named.code == Some(2) && !named.err.contains("hunter2"), "{}", named.err);
    fs::set_permissions(&header, fs::Permissions::from_mode(0o644)).unwrap();
    let open = at("http://127.0.0.1:4318");
    assert!(open.code == Some(4) && open.err.contains("chmod 600") && !open.err.contains("hunter2"), "{}", open.err);
}
