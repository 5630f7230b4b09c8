//! Size bombs: what a small input may allocate, counted by the allocator and not by a clock.
//!
//! The budget is a multiple of the input and a constant, as the pages of the formats state it. All that was ever
//! allocated counts, not only the peak: it bounds time as well, and a loaded machine cannot change it. One test, because
//! the allocator counts for the whole process.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // A test and its helpers.

use cap::Cap;
use std::alloc::System;
use wakewatt_core::record::wtrace::{Item, Reader};
use wakewatt_readers::target;

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Most that an input may take: bytes allocated in all, for each byte of input and besides.
const ALL_PER_BYTE: usize = 1024;
const ALL_BASE: usize = 2 << 30;
/// And at once.
const PEAK_PER_BYTE: usize = 128;
const PEAK_BASE: usize = 128 << 20;

fn check(name: &str, what: &str, input: &[u8]) {
    let before = (HEAP.total_allocated(), HEAP.allocated());
    // The peak is of the process so far, so the bombs come in any order and the largest counts.
    target(name).unwrap()(input);
    let (all, peak) = (HEAP.total_allocated() - before.0, HEAP.max_allocated() - before.1.min(HEAP.max_allocated()));
    println!(
        "{name}, {what}: {} bytes in, {} KiB allocated in all, peak so far {} KiB",
        input.len(),
        all >> 10,
        peak >> 10
    );
    assert!(all <= ALL_BASE + ALL_PER_BYTE * input.len(), "{name}, {what}: {all} bytes allocated in all");
    assert!(peak <= PEAK_BASE + PEAK_PER_BYTE * input.len(), "{name}, {what}: {peak} bytes at once");
}

const CPU: &str = "/sys/devices/system/cpu";

fn host(lines: &str) -> Vec<u8> {
    format!("wakewatt-host 1\n{CPU}/online = 0\n{CPU}/present = 0\n{lines}# end\n").into_bytes()
}

/// A block of a `.wtrace` file.
fn block(kind: u8, payload: &[u8]) -> Vec<u8> {
    let sum = crc(&[&[kind], payload].concat());
    let length = u32::try_from(payload.len()).unwrap();
    [&[kind][..], &length.to_le_bytes(), &sum.to_le_bytes(), payload].concat()
}

fn crc(bytes: &[u8]) -> u32 {
    wakewatt_core::watch::recording::crc32(bytes)
}

fn wtrace(tables: &[String], n_blocks: u32) -> Vec<u8> {
    let header = format!(
        "{{\"wakewatt\":\"0\",\"created_at_s\":0,\"kernel\":\"6\",\"arch\":\"x\",\"n_cpus\":1,\"tables\":[{}],\
         \"limits\":[],\"sources\":[],\"gaps\":[],\"window_ns\":1,\"every_window\":1}}",
        tables.join(",")
    );
    let mut file = [b"wakewatt-wtrace 1\n", &block(b'H', header.as_bytes())[..]].concat();
    for cpu in 0..n_blocks {
        // One pair: CPU, n, start; a new tag (state, then nothing known), entry, duration.
        let number = [(cpu & 0x7f) as u8 | 0x80, (cpu >> 7 & 0x3f) as u8];
        file.extend(block(b'P', &[&number[..], &[1, 0], &[0, (cpu & 0x7f) as u8, 0, 1]].concat()));
    }
    file
}

/// Version 2: blocks of 4096 pairs that weigh a bit each.
fn thin_wtrace(n_blocks: usize) -> Vec<u8> {
    let header = r#"{"wakewatt":"0","created_at_s":0,"kernel":"6","arch":"x","n_cpus":1,"tables":[],"limits":[],"sources":[],"gaps":[],"window_ns":1,"every_window":1}"#;
    // CPU 0, 4096 pairs, from 0 on, one tag that says nothing, then columns of zeros.
    let pairs = block(b'C', &[&[0, 0x80, 0x20, 0, 1, 0][..], &[0; 512]].concat());
    [b"wakewatt-wtrace 2\n", &block(b'H', header.as_bytes())[..], &pairs.repeat(n_blocks)].concat()
}

#[test]
fn bombs_stay_inside_their_budget() {
    let states = host(&format!("{CPU}/cpu0/cpuidle/ list state{{0-65535}}\n"));
    assert!(states.len() < 160);
    check("host", "the 115 bytes of 65,536 idle states", &states);
    check("host", "as many as are let in", &host(&format!("{CPU}/cpu0/cpuidle/ list state{{0-15999}}\n")));
    let everybody = format!("{CPU}/online = 0-8191\n{CPU}/present = 0-8191\n");
    check("host", "8192 CPUs and no file", &host(&everybody));
    check(
        "host",
        "states of 8192 CPUs",
        &host(&format!("{everybody}{CPU}/cpu{{0-8191}}/cpuidle/ list state{{0-9}}\n")),
    );
    let two_kilobytes: String = (0..30).map(|n| format!("{CPU}/cpu{n}/cpuidle/ list state{{0-65535}}\n")).collect();
    check("host", "2 KB of lists", &host(&two_kilobytes));
    let names = ["net", "block", "hwmon", "thermal", "powercap", "bdi", "nvme", "infiniband"];
    for name in names {
        check("host", name, &host(&format!("/sys/class/{name}/ list {name}{{0-15999}}\n")));
    }
    for folder in
        ["/proc/irq/ list a{0-15999}", "/sys/devices/system/node/ list node{0-8191}", "/sys/fs/cgroup/ list g{0-15999}"]
    {
        check("host", folder, &host(&format!("{folder}\n")));
    }
    let thirty: String = (0..600).map(|n| format!("/sys/class/net/v{n}/ list queue{{0-199}} rx-{{0-99}}\n")).collect();
    check("host", "30 KB of lists in lists", &host(&thirty));
    let blocks = format!("/proc/cpuinfo blocks\n\t{}\t^2001\n", "processor : 1\n\t".repeat(2000) + "\n")
        + &"\t^2001\n".repeat(2000);
    check("host", "copied blocks", &host(&blocks));

    let state = r#"{"index":1,"name":"a","is_polling":false}"#;
    let lists: Vec<String> = (0..20_000).map(|_| format!("{{\"cpus\":\"0-8191\",\"states\":[{state}]}}")).collect();
    check("wtrace", "tables of all CPUs", &wtrace(&lists, 8000));
    let apart: Vec<String> = (0..8000).map(|cpu| format!("{{\"cpus\":\"{cpu}\",\"states\":[{state}]}}")).collect();
    check("wtrace", "a table for each of 8000 CPUs", &wtrace(&apart, 8000));
    check("wtrace", "as many tables as are let in", &wtrace(&apart[..4000], 8000));
    let many = format!("{{\"cpus\":\"0\",\"states\":[{}]}}", vec![state; 20_000].join(","));
    check("wtrace", "20,000 states", &wtrace(&[many], 8000));

    let thin = thin_wtrace(100);
    let n_pairs = Reader::new(&thin).unwrap().map(|item| if let Item::Pairs(pairs) = item { pairs.len() } else { 0 });
    assert_eq!(n_pairs.sum::<usize>(), 409_600, "a bomb that does not go off");
    check("wtrace", "eight pairs a byte", &thin);

    let deep = format!("{{\"schema\":\"wakewatt/run/v1\",\"x\":{}", "[".repeat(1 << 20));
    check("run", "nesting", deep.as_bytes());
    let inside = String::from_utf8(host(&two_kilobytes)).unwrap();
    let run = serde_json::json!({ "schema": "wakewatt/run/v1", "made_at": "", "command": "", "host": inside });
    check("run", "a bomb in its facts", run.to_string().as_bytes());
    let empty = format!(
        r#"{{"schema":"wakewatt/run/v1","made_at":"","command":"","host":"wakewatt-host 1\n","not_done":[{}""]}}"#,
        "\"\",".repeat(1 << 18)
    );
    check("run", "empty remarks", empty.as_bytes());
    check("meters", "nesting", "[".repeat(1 << 20).as_bytes());
    check("meters", "labels without end", format!("a{{{}", "b=\"\",".repeat(1 << 17)).as_bytes());
    check("plan", "dotted keys", "a.".repeat(1 << 15).as_bytes());
    check("plan", "nesting", format!("a={}", "[".repeat(1 << 16)).as_bytes());
    check("profile", "tables", "[[a]]\n".repeat(1 << 15).as_bytes());
    check("journal", "nesting", "[".repeat(1 << 20).as_bytes());
    let list = |n: u32| {
        format!(
            "p{n}:\n- value: 1\n  cpus: 0-8191\ngovernor:\n- value: g{n}\n  cpus: 0-8191\nC{n}:\n- value: on\n  cpus: 0-8191\n"
        )
    };
    check("import", "a list of all CPUs, again and again", (0..2000).map(list).collect::<String>().as_bytes());
    let wide = format!(
        "Vendor ID: GenuineIntel\nThread(s) per core: 1\nOn-line CPU(s) list: 0-8191\nModel name: x\nFlags: {}\n",
        "a ".repeat(900)
    );
    check("import", "2 KB of lscpu for 8192 CPUs", wide.as_bytes());
    check(
        "import",
        "65,536 CPUs in a hundred bytes",
        b"Vendor ID: GenuineIntel\nOn-line CPU(s) list: 0-65535\nThread(s) per core: 1\nModel name: x\n",
    );
    let wakes = |n: u32| {
        format!("a 1 [{}] {n}.5: sched:sched_waking: comm=t{n} pid={n} prio=1 target_cpu={}\n", n % 8192, n % 8191)
    };
    check("import", "a task a line", (0..50_000).map(wakes).collect::<String>().as_bytes());
    check("import", "columns", format!("Busy% {}\n{}", "PkgWatt ".repeat(400), "1 ".repeat(1 << 19)).as_bytes());
    check("boot", "words", "a ".repeat(1 << 17).as_bytes());
}
