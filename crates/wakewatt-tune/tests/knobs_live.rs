//! Knobs on the machine this runs on: each is set to another value, judged, and put back. Needs root, and disturbs for a
//! moment: `WAKEWATT_LIVE=1 cargo test -p wakewatt-tune --test knobs_live -- --nocapture`. With KNOBS_LIVE_ALL set CPUs go off
//! and registers are written too, which is for a machine of one's own.
#![allow(clippy::print_stdout)]

use wakewatt_host::live::Live;
use wakewatt_host::sink::{LiveSink, Sink};
use wakewatt_testing::{Lacks, skipped};
use wakewatt_tune::knob::{Host, Knob, Site};
use wakewatt_tune::knobs::find;

/// Puts a file back, whatever happens.
struct Back<'a> {
    sink: &'a LiveSink,
    path: String,
    before: String,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        if self.sink.read(&self.path).as_ref() == Ok(&self.before) {
            return;
        }
        if let Err(error) = self.sink.write(&self.path, &self.before) {
            println!("NOT PUT BACK: {error}, was {:?}", self.before);
        }
    }
}

fn turn(host: &Host<'_>, sink: &LiveSink, knob: &dyn Knob, site: &Site, word: &str) -> String {
    let before = match sink.read(&site.path) {
        Ok(before) => before,
        Err(error) => return format!("unread: {error}"),
    };
    assert_eq!(site.now.as_ref(), Some(&before), "{}@{}: Source and Sink read the same", site.name, site.place);
    let text = match knob.encode(host, site, word) {
        Ok(text) => text,
        Err(why) => return format!("refused by us: {why}"),
    };
    let back = Back { sink, path: site.path.clone(), before: before.clone() };
    let said = match sink.write(&site.path, &text) {
        Err(error) => format!("refused by the kernel: {error}"),
        Ok(()) => {
            let now = sink.read(&site.path).unwrap_or_else(|e| e.to_string());
            // Not kept is the kernel's word too: a driver may take a write and do nothing.
            format!("{} -> {} {:?}", knob.decode(site, &before), knob.decode(site, &now), knob.kept(&text, &now))
        }
    };
    drop(back);
    let after = sink.read(&site.path).unwrap_or_default();
    assert_eq!(after, before, "{}@{}: not put back", site.name, site.place);
    said
}

#[test]
fn knobs_of_this_machine() {
    if std::env::var("WAKEWATT_LIVE").as_deref() != Ok("1") {
        return skipped("knobs_of_this_machine", Lacks::Live, "needs WAKEWATT_LIVE=1 and root");
    }
    let (live, sink) = (Live::this_machine(), LiveSink::this_machine());
    let host = Host::read(&live);
    let is_all = std::env::var_os("KNOBS_LIVE_ALL").is_some();
    for (id, words) in [
        ("idle.governor", ["menu", "ladder"].as_slice()),
        ("idle.state", &["off", "on"]),
        ("qos.cpu", &["poll", "50us", "none"]),
        ("idle.haltpoll", &["off", "100000"]),
        ("memory.numa_balancing", &["on", "tiering"]),
        ("irq.affinity", &["0", "1"]),
        ("net.coalescing", &["0", "1"]),
        ("pcie.aspm", &["performance", "default"]),
        ("cpu.online", if is_all { &["off"] } else { &["on"] }),
        ("cpu.smt", if is_all { &["off"] } else { &["on"] }),
        ("msr.package_limit", if is_all { &["2"] } else { &[] }),
        ("msr.c1_demotion", if is_all { &["on"] } else { &[] }),
        ("freq.governor", &["performance"]),
        ("freq.boost", &["off"]),
        ("freq.max", &["min"]),
        ("place.consolidate", &["half"]),
    ] {
        let Some(knob) = find(id) else { panic!("{id}") };
        match knob.sites(&host) {
            Err(why) => println!("{id}: none: {why}"),
            Ok(sites) => {
                for site in &sites {
                    if let Some(why) = &site.refusal {
                        println!("{}@{}: would refuse: {why}", site.name, site.place);
                        continue;
                    }
                    for word in words {
                        println!("{}@{} {word}: {}", site.name, site.place, turn(&host, &sink, knob, site, word));
                    }
                }
            }
        }
    }
}
