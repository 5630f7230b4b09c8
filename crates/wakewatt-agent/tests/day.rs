//! A day of the agent in a minute: does its memory stay where it was?
//!
//! One process, one thread, nothing beside it: an agent on a tree whose counters move, an interval of ten seconds after the other without waiting. In each it
//! reads, writes all three formats, makes what the page shows, and keeps the interval in a history that is full before noon, so that its oldest goes; settings and findings
//! are looked at as often as in a day. Memory is compared at the same point of that round, right after findings. As many intervals as
//! `WAKEWATT_AGENT_INTERVALS` says; a day has 8640.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::Path;
use wakewatt_agent::history::{Limits, segments};
use wakewatt_agent::{Engine, Machine, Plan};
use wakewatt_core::watch::Sources;
use wakewatt_host::own_usage::resident_bytes;

const START_MS: u64 = 1_760_000_000_000;
const N_CPUS: usize = 16;
const CPU: &str = "sys/devices/system/cpu";
/// Findings are judged once in so many intervals.
const TEN_MINUTES: u64 = 60;

fn put(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn machine(root: &Path) {
    put(root, &format!("{CPU}/present"), "0-15\n");
    put(root, &format!("{CPU}/online"), "0-15\n");
    put(root, &format!("{CPU}/cpuidle/current_driver"), "intel_idle\n");
    for (node, cpus) in [(0, "0-7\n"), (1, "8-15\n")] {
        put(root, &format!("sys/devices/system/node/node{node}/cpulist"), cpus);
    }
    for cpu in 0..N_CPUS {
        for (index, name, exit_us) in [(0, "C1", 2), (1, "C1E", 10), (2, "C6", 133)] {
            let at = format!("{CPU}/cpu{cpu}/cpuidle/state{index}");
            put(root, &format!("{at}/name"), &format!("{name}\n"));
            put(root, &format!("{at}/latency"), &format!("{exit_us}\n"));
            for file in ["usage", "time", "above", "below", "rejected"] {
                put(root, &format!("{at}/{file}"), "0\n");
            }
        }
    }
    moved(root, 0);
}

/// The counters of an interval: of all CPUs in /proc/stat, of one in sysfs. The governor changes every hour.
fn moved(root: &Path, i: u64) {
    let cpu = |at: usize| format!("cpu{at} {} 0 {i} {} 0 0 0 0\n", 3 * i, 900 * i + at as u64);
    let all: String = (0..N_CPUS).map(cpu).collect();
    put(
        root,
        "proc/stat",
        &format!("cpu  {} 0 0 {}\n{all}intr {}\nctxt {}\n", 48 * i, 14_400 * i, 7_001 * i, 9_001 * i),
    );
    let at = format!("{CPU}/cpu{}/cpuidle/state{}", i % 16, i % 3);
    put(root, &format!("{at}/usage"), &format!("{}\n", 1_000 * i));
    put(root, &format!("{at}/time"), &format!("{}\n", 9_000_000 * i));
    let governor = if (i / 360).is_multiple_of(2) { "menu\n" } else { "teo\n" };
    put(root, &format!("{CPU}/cpuidle/current_governor"), governor);
}

#[test]
fn memory_stays_flat_through_a_day() {
    let n = std::env::var("WAKEWATT_AGENT_INTERVALS").map_or(1_200, |text| text.parse::<u64>().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let (tree, history) = (dir.path().join("tree"), dir.path().join("history"));
    machine(&tree);
    let mut plan = Plan::of(Machine::Tree(tree.clone()), Sources::Quiet, "1");
    // Full after some five hundred intervals: what is old goes, again and again.
    plan.history = Some((history.clone(), Limits { most_bytes: 64 << 10, free_share: 0.0 }));
    let mut engine = Engine::open(plan).unwrap();
    let (mut told, mut n_bytes) = (Vec::new(), 0);
    for i in 1..=n {
        moved(&tree, i);
        n_bytes += engine.live_through(i, START_MS + i * 10_000);
        if i % TEN_MINUTES == 0 {
            told.push(resident_bytes().unwrap());
        }
    }
    assert_eq!(engine.no_history_because(), None);
    assert!(n_bytes as u64 > n * 5_000, "{n_bytes} bytes told");
    let kept: u64 = segments(&history).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!((16 << 10..=80 << 10).contains(&kept), "{kept} bytes kept");
    // The first quarter fills what fills: caches, the ring, the recent hour.
    let most = |part: &[u64]| *part.iter().max().unwrap();
    let quarter = told.len() / 4;
    let (early, middle, late) = (most(&told[..quarter]), most(&told[quarter..2 * quarter]), most(&told[3 * quarter..]));
    println!(
        "{n} intervals: {:.2} MB after ten minutes; at most {:.2}, {:.2} and {:.2} MB in the first, second and last quarter",
        told[0] as f64 / 1e6,
        early as f64 / 1e6,
        middle as f64 / 1e6,
        late as f64 / 1e6
    );
    // From the second quarter to the last are half of all intervals: of 1200, a leak of 440 bytes in each.
    assert!(late <= middle + 1024 * 1024, "from {middle} to {late} bytes");
}
