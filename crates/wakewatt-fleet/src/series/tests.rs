//! A store of answers: names of node_exporter and kube-state-metrics alone, what the agent has in their place, and refusals.

use super::window::windows;
use super::*;
use crate::measure::{Measure, Quantity};
use std::io::{Cursor, Read};

/// Answers a question by its words: labels and a value for every window.
struct Store(fn(&str) -> Vec<(&'static str, f64)>);

impl Door for Store {
    fn ask(&self, path: &str) -> Result<Box<dyn Read + '_>, Refusal> {
        let of = |key: &str| path.split(key).nth(1)?.split('&').next()?.parse::<u64>().ok();
        let (start, end, step) = (of("start=").unwrap(), of("end=").unwrap(), of("step=").unwrap());
        let query = path.split("query=").nth(1).unwrap().split('&').next().unwrap();
        let series: Vec<String> = (self.0)(query)
            .into_iter()
            .map(|(labels, value)| {
                let points: Vec<String> = (start..=end)
                    .step_by(usize::try_from(step).unwrap())
                    .map(|t| format!("[{t},\"{value}\"]"))
                    .collect();
                format!("{{\"metric\":{{{labels}}},\"values\":[{}]}}", points.join(","))
            })
            .collect();
        let text = format!("{{\"status\":\"success\",\"data\":{{\"result\":[{}]}}}}", series.join(","));
        Ok(Box::new(Cursor::new(text)))
    }
}

fn wanted(work: &str) -> Wanted {
    Wanted {
        label: "instance".into(),
        windows: windows(1_000_000_000, 3600, 4),
        work: Some(work.into()),
        peers_by: vec!["kernel".into()],
        ..Wanted::default()
    }
}

#[test]
fn kubernetes_names_are_joined_by_address_and_its_words_make_classes() {
    let store = Store(|query| match query {
        q if q.contains("kube_node_info") => vec![
            (r#""instance":"ksm:8080","node":"worker-1","internal_ip":"10.0.0.1","kernel_version":"6.1""#, 1.0),
            (r#""instance":"ksm:8080","node":"worker-2","internal_ip":"10.0.0.2","kernel_version":"6.12""#, 1.0),
        ],
        q if q.contains("kube_node_labels") => {
            vec![(r#""node":"worker-1","label_node_kubernetes_io_instance_type":"m5.large""#, 1.0)]
        }
        q if q.contains("requests") => {
            vec![
                (r#""node":"worker-1","pod":"a""#, 3.0),
                (r#""node":"worker-1","pod":"b""#, 4.0),
                (r#""node":"gone""#, 9.0),
            ]
        }
        q if q.starts_with("count%20by%20%28instance%29%20%28node_cpu_seconds") => {
            vec![(r#""instance":"10.0.0.1:9100""#, 8.0), (r#""instance":"10.0.0.2:9100""#, 8.0)]
        }
        q if q.contains("node_cpu_seconds_total") => {
            vec![(r#""instance":"10.0.0.1:9100""#, 2.0), (r#""instance":"10.0.0.2:9100""#, 1.0)]
        }
        _ => Vec::new(),
    });
    let found = gather(&store, &wanted("requests")).unwrap();
    let node = &found.table.nodes[0];
    assert_eq!((node.name.as_str(), node.also.clone()), ("10.0.0.1:9100", vec!["worker-1".to_string()]));
    assert_eq!(node.get(Quantity::Work, 0), Some(7.0), "series of one node are added up");
    assert!((node.measured(Measure::CpuPerWork, 3).unwrap() - 2.0 / 7.0).abs() < 1e-6);
    assert_eq!(node.hardware.words(), "m5.large, 8 CPUs, kernel 6.1");
    assert_ne!(node.hardware, found.table.nodes[1].hardware, "peers have the kernel in common, as asked");
    assert!(found.remarks.iter().any(|r| r.contains("1 of 3 series name no node")), "{:?}", found.remarks);
    assert_eq!(found.agent_would_add.len(), 4, "{:?}", found.agent_would_add);
}

#[test]
fn the_agent_alone_is_enough() {
    let store = Store(|query| match query {
        q if q.contains("node_") => Vec::new(),
        q if q.contains("wakewatt_cpu_seconds") => vec![(r#""instance":"a:9742""#, 2.0)],
        q if q.contains("wakewatt_cpus_online") => vec![(r#""instance":"a:9742""#, 4.0)],
        q if q.contains("wakewatt_cpu_frequency") => vec![(r#""instance":"a:9742""#, 2e9)],
        q if q.contains("wakewatt_energy") => vec![(r#""instance":"a:9742""#, 50.0)],
        q if q.contains("wakewatt_settings") => {
            vec![(r#""instance":"a:9742","processor":"EPYC","idle_driver":"acpi_idle","kernel":"6.1""#, 1.0)]
        }
        q if q.contains("requests") => vec![(r#""instance":"a:8080""#, 10.0)],
        _ => Vec::new(),
    });
    let found = gather(&store, &wanted("requests")).unwrap();
    let node = &found.table.nodes[0];
    assert_eq!(node.measured(Measure::JoulesPerWork, 0), Some(5.0), "by the name without its port");
    assert!((node.measured(Measure::CyclesPerWork, 0).unwrap() - 4e8).abs() < 1e3);
    assert_eq!(node.settings["idle driver"], "acpi_idle");
    assert!(node.hardware.words().starts_with("EPYC, 4 CPUs"));
}

#[test]
fn the_users_own_cpu_time_stands_in_place_of_all() {
    let store = Store(|query| match query {
        q if q.contains("container_cpu") => vec![(r#""instance":"a""#, 0.5)],
        q if q.contains("requests") => vec![(r#""instance":"a""#, 10.0)],
        q if q.contains("node_cpu_seconds") || q.contains("node_load1") => vec![(r#""instance":"a""#, 2.0)],
        _ => Vec::new(),
    });
    let wanted = Wanted { cpu: Some("container_cpu".into()), ..wanted("requests") };
    let node = gather(&store, &wanted).unwrap().table.nodes.remove(0);
    assert_eq!(node.measured(Measure::CpuPerWork, 0), Some(0.05));
    assert_eq!(node.measured(Measure::SystemShare, 0), None, "the whole node's system time is not the work's");
}
