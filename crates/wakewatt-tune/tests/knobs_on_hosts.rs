//! Every knob on every recorded host: how many sites, and what the first of each name takes.
//!
//! The golden file is `knobs_on_hosts.txt`; after a change that is meant: `UPDATE_EXPECT=1 cargo test -p wakewatt-tune`.

use expect_test::expect_file;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use wakewatt_core::facts::holders::DAEMONS;
use wakewatt_tune::knob::{Host, Site};
use wakewatt_tune::knobs::{KNOBS, find};

fn hosts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let files = std::fs::read_dir(folder).expect("fixtures").flatten().map(|entry| entry.path());
    let mut hosts: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "host")).collect();
    hosts.sort();
    assert!(hosts.len() > 5);
    hosts
}

#[test]
fn sites_and_values_on_recorded_hosts() {
    let mut out = String::new();
    for path in hosts() {
        let tree = wakewatt_host::recorded::open(&path).unwrap();
        let host = Host::read(&tree);
        let _ = writeln!(out, "== {}", path.file_stem().unwrap().to_string_lossy());
        for knob in KNOBS {
            let id = knob.about().id;
            let sites = match knob.sites(&host) {
                Ok(sites) => sites,
                Err(why) => {
                    let _ = writeln!(out, "{id}: none: {why}");
                    continue;
                }
            };
            assert!(!sites.is_empty(), "{id}: an empty list says nothing");
            let mut by_name: BTreeMap<&str, Vec<&Site>> = BTreeMap::new();
            for site in &sites {
                assert_eq!(find(&site.name).map(|k| k.about().id), Some(id), "{}", site.name);
                by_name.entry(&site.name).or_default().push(site);
                // What is there can be said, and nothing that a user types makes it panic.
                site.now.iter().for_each(|now| assert!(knob.decode(site, now).len() < 200));
                knob.effective(&host, site);
                for word in ["", "off", "min", "0", "-1", "99999999999999999999", "1e400W", "é", "cpus:", "50us"] {
                    let _ = knob.encode(&host, site, word);
                }
            }
            let n_places = sites.iter().map(|s| (&s.name, &s.place)).collect::<BTreeSet<_>>().len();
            assert_eq!(n_places, sites.len(), "{id}: a place twice");
            for (name, sites) in by_name {
                let site = sites[0];
                let now = site.now.as_deref().map_or("?".into(), |now| knob.decode(site, now));
                let _ = write!(
                    out,
                    "{name}: {} sites; {} [{}] {now} of {}",
                    sites.len(),
                    site.place,
                    site.cpus,
                    site.valid
                );
                let effective = knob.effective(&host, site).map_or(String::new(), |e| format!("; in force: {e}"));
                let refused = site.refusal.as_ref().map_or(String::new(), |r| format!("; refused: {r}"));
                let _ = writeln!(out, "{effective}{refused}");
            }
        }
    }
    expect_file!["knobs_on_hosts.txt"].assert_eq(&out);
}

/// Whatever the files hold, nothing panics and nothing is read for ever.
#[test]
fn junk_in_every_file() {
    let junk: [&[u8]; 7] =
        [b"", b"\xff\n", b"-1", b"18446744073709551615", b"0-4294967295", b"[a] b\n0 1\n", b"intel-rapl:0 package-0"];
    for path in hosts() {
        for content in junk {
            let mut tree = wakewatt_host::recorded::open(&path).expect("a recorded host");
            let keep = ["/online", "/present", "physical_package_id", "/name"];
            for (path, file) in tree.files.iter_mut().filter(|(p, _)| !keep.iter().any(|k| p.ends_with(k))) {
                if path.starts_with('/') || path.starts_with("ethtool:") {
                    *file = Ok(content.to_vec());
                }
            }
            let zone = "/sys/class/powercap/intel-rapl:0/constraint_0";
            for (file, text) in
                [("name", b"long_term".as_slice()), ("power_limit_uw", content), ("max_power_uw", content)]
            {
                tree.files.insert(format!("{zone}_{file}"), Ok(text.to_vec()));
            }
            tree.folders.remove("/sys/class/powercap");
            tree.msrs.values_mut().for_each(|value| *value = Ok(u64::MAX));
            let host = Host::read(&tree);
            for knob in KNOBS {
                for site in knob.sites(&host).unwrap_or_default().iter().take(8) {
                    let _ = (knob.effective(&host, site), site.now.as_ref().map(|now| knob.decode(site, now)));
                    for word in ["max", "min", "on", "packages:1", "half", "1us", "1.25GHz", "18446744073709551615"] {
                        if let Ok(text) = knob.encode(&host, site, word) {
                            let _ =
                                (knob.kept(&text, ""), knob.kept(&text, "0"), knob.kept("18446744073709551615", &text));
                        }
                    }
                }
            }
        }
    }
}

/// What is there now can be asked for: else undo by hand, and profiles made from a host, would not work.
#[test]
fn the_value_of_now_is_a_value_one_can_ask_for() {
    for path in hosts() {
        let tree = wakewatt_host::recorded::open(&path).unwrap();
        let host = Host::read(&tree);
        for knob in KNOBS {
            for site in knob.sites(&host).unwrap_or_default().iter().filter(|s| s.refusal.is_none()) {
                let Some(now) = &site.now else { continue };
                let text = knob.encode(&host, site, &knob.decode(site, now));
                let is_rounded = site.name.starts_with("freq.m") || site.name.starts_with("power.");
                assert!(is_rounded || text.as_ref() == Ok(now), "{}@{}: {now:?} gives {text:?}", site.name, site.place);
            }
        }
    }
}

#[test]
fn the_table_of_knobs_holds_together() {
    let mut ids = BTreeSet::new();
    let overlaps: BTreeSet<&str> = DAEMONS.iter().flat_map(|d| d.overlaps.iter().copied()).collect();
    for about in KNOBS.iter().map(|k| k.about()) {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(
            about.id.contains('.') && about.id.split('.').all(|w| !w.is_empty() && w.chars().all(is_word)),
            "{}",
            about.id
        );
        assert!(ids.insert(about.id), "{} twice", about.id);
        for text in [about.title, about.unit, about.price.up, about.price.down, about.risk, about.source] {
            assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text:?}", about.id);
        }
        for moved in about.moves {
            assert!(KNOBS.iter().any(|k| k.about().id == *moved), "{} moves {moved}", about.id);
        }
        about.overlaps.iter().for_each(|o| assert!(overlaps.contains(o), "{}: nobody overlaps in {o:?}", about.id));
    }
}
