//! A server in the computer: what is printed, the documents, equal seeds, saved runs that others read, and files that are refused.

use crate::schemas::{assert_valid, validator};
use crate::tool::run;
use std::fs;

/// Short, so that the suite stays short.
const SHORT: [&str; 4] = ["--duration", "300ms", "--replications", "2"];

fn simulate(args: &[&str]) -> crate::tool::Said {
    run(&[&["simulate"], args, &SHORT[..]].concat())
}

#[test]
fn a_shipped_server_is_printed_and_simulated() {
    let list = run(&["simulate", "--examples"]);
    assert!(list.out.contains("k0-kubernetes") && list.out.contains("plain"), "{list:?}");
    let printed = run(&["simulate", "--example", "plain"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, &printed.out).unwrap();
    let said = simulate(&[file.to_str().unwrap(), "--details"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let first = "plain (modelled, not measured; exit latencies claimed by table SKX: ";
    assert!(said.out.starts_with(first) && said.out.lines().next().unwrap().contains("C6"), "{}", said.out);
    for words in ["modelled, not measured", "as-found", "shallow-fast", "entries/s", "Assumed: "] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert_eq!(said.out, simulate(&["plain", "--details", "--threads", "1"]).out, "by name, and on one thread");
    assert_ne!(said.out, simulate(&["plain", "--details", "--seed", "9"]).out);
}

#[test]
fn the_documents_are_as_published() {
    let said = simulate(&["k4-governors", "--json", "--setting", "performance", "--setting", "powersave"]);
    let document = assert_valid(&validator("simulate"), "simulate", &said.out);
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 22);
    assert!(points.iter().all(|p| p["outcome"]["label"] == "modelled"));
    assert_eq!(document["held"][0]["published"]["value"], 10.0);
    let swept =
        simulate(&["plain", "--csv", "--setting", "as-found", "--sweep", "machine.idle.max_latency=0us,2us,133us"]);
    let lines: Vec<&str> = swept.out.lines().collect();
    assert_eq!((lines.len(), lines[0].split(',').count()), (4, lines[3].split(',').count()), "{}", swept.out);
    assert!(swept.out.contains(",true,false,"), "somebody is on the frontier: {}", swept.out);
}

#[test]
fn what_the_numbers_cannot_carry_is_said_beside_them() {
    let plain = simulate(&["plain", "--setting", "as-found"]);
    let line = plain.out.lines().find(|line| line.starts_with("Most sensitive assumption (±20 %): ")).unwrap();
    assert!(line.contains("p99: machine.") && line.contains("watts: machine.power."), "{line}");
    let rate = |per_s: &str| simulate(&["plain", "--setting", "as-found", "--set", per_s]).out;
    let busy = rate("workload.arrivals.per_s=1e6");
    assert!(busy.contains("as-found: saturated (server, all CPUs); its times grow with the duration"), "{busy}");
    let one = run(&["simulate", "plain", "--setting", "as-found", "--duration", "300ms", "--replications", "1"]).out;
    assert!(one.contains("as-found: times without an interval: one replication has none"), "{one}");
    let shared = simulate(&["plain", "--setting", "as-found", "--set", "machine.queues=shared"]).out;
    let smt = simulate(&["plain", "--setting", "as-found", "--set", "machine.threads=2"]).out;
    assert!(smt.contains("modelled 5 to 30 % high") && !plain.out.contains("modelled 5 to 30 % high"), "{smt}");
    assert!(shared.contains("a request stays with the CPU that it wakes; queues = \"unbound\""), "{shared}");
}

#[test]
fn a_simulated_run_is_read_by_report_and_compare() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for (setting, file) in [("as-found", "a.run"), ("shallow", "b.run")] {
        let said = simulate(&["plain", "--setting", setting, "--title", "shop", "--save", &path(file)]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let compared = run(&["compare", &path("a.run"), &path("b.run")]);
    assert!(compared.out.contains("shop"), "{compared:?}");
    let report = run(&["report", &path("a.run"), "-o", &path("page.html")]);
    assert_eq!(report.code, Some(0), "{report:?}");
    let page = fs::read_to_string(path("page.html")).unwrap();
    assert!(page.contains("Simulated, not measured"), "the page says what it is");
    let change = simulate(&["change", "--set", "change.at=100ms", "--save", &path("c.run")]);
    assert_eq!(change.code, Some(0), "{change:?}");
    run(&["report", &path("c.run"), "-o", &path("change.html")]);
    let drawn = fs::read_to_string(path("change.html")).unwrap();
    assert!(drawn.contains("mean time of a request (simulated)") && drawn.contains("setting tuned"));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let said = |args: &[&str]| {
        let said = simulate(args);
        (said.code, said.err)
    };
    let (code, why) = said(&["plain", "--set", "machine.idle.max_latncy=5us"]);
    assert!(code == Some(4) && why.contains("did you mean max_latency?"), "{code:?} {why}");
    let (code, why) = said(&["plain", "--set", "machine.cores=0"]);
    assert!(code == Some(4) && why.contains("machine[0].cores"), "{code:?} {why}");
    let (code, why) = said(&["k9-unknown"]);
    assert!(code == Some(2) && why.contains("k2-ping"), "{code:?} {why}");
    let (code, why) = said(&["plain", "--setting", "none"]);
    assert!(code == Some(2) && why.contains("shallow-fast"), "{code:?} {why}");
    assert_eq!(said(&["./none.toml"]).0, Some(4));
    assert_eq!(said(&["plain", "--sweep", "machine.hz=1..0/1"]).0, Some(2));
    assert_eq!(said(&[]).0, Some(2));
}

#[test]
fn a_sweep_is_drawn_with_its_frontier() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("sweep.html");
    let sweep = "machine.idle.max_latency=0us,2us,133us";
    let said = simulate(&["plain", "--setting", "as-found", "--sweep", sweep, "-o", page.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("The frontier") && html.contains("beaten by nobody") && html.contains("max_latency=0us"));
    let refused = simulate(&["plain", "-o", "/nowhere/at/all.html"]);
    assert!(refused.code == Some(4) && refused.out.is_empty(), "{refused:?}");
}

#[test]
fn arrivals_are_taken_from_a_recording_and_from_nothing_else() {
    let recording = crate::tool::fixtures().join("traces/vm-haltpoll-6.18.wtrace");
    let recording = recording.to_str().unwrap();
    let args = ["plain", "--setting", "as-found", "--arrivals", recording, "--json"];
    let said = simulate(&args);
    let document = assert_valid(&validator("simulate"), "simulate", &said.out);
    let about = document["about"].as_str().unwrap();
    assert!(about.contains("recorded wake-ups as arrivals"), "{about}");
    let poisson = simulate(&["plain", "--setting", "as-found", "--json"]);
    assert_ne!(said.out, poisson.out);
    assert_eq!(said.out, simulate(&args).out, "equal inputs, equal bytes");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.run");
    simulate(&["plain", "--setting", "as-found", "--save", file.to_str().unwrap()]);
    let run = simulate(&["plain", "--arrivals", file.to_str().unwrap()]);
    // A simulated run keeps its points as a load: its rate can be asked again, its requests cannot.
    assert_eq!(run.code, Some(0), "{run:?}");
    let again = simulate(&["plain", "--setting", "as-found", "--arrivals", file.to_str().unwrap(), "--json"]);
    let document = assert_valid(&validator("simulate"), "simulate", &again.out);
    let about = document["about"].as_str().unwrap();
    assert!(about.contains("the time of no single request"), "{about}");
    let measured = crate::tool::fixtures().join("hosts");
    let no_load = simulate(&["plain", "--arrivals", measured.to_str().unwrap()]);
    assert_eq!(no_load.code, Some(4), "{no_load:?}");
    // The same table from the run and at once, but for the moment in its metadata.
    let tables = ["at-once", "later"].map(|name| folder.path().join(name).with_extension("parquet"));
    let [at_once, later] = tables.each_ref().map(|path| path.to_str().unwrap());
    let said = simulate(&["plain", "--setting", "as-found", "--parquet", at_once]);
    if wakewatt::features::Feature::Parquet.is_in() {
        assert_eq!(said.code, Some(0), "{said:?}");
        crate::tool::run(&["report", file.to_str().unwrap(), "--parquet", later]);
        let lengths = tables.each_ref().map(|path| fs::read(path).unwrap().len());
        assert_eq!(lengths[0], lengths[1]);
    } else {
        assert_eq!(said.code, Some(2), "{said:?}");
    }
    let none = simulate(&["plain", "--arrivals", "/none.wtrace"]);
    assert!(none.code == Some(4) && none.err.contains("/none.wtrace"), "{none:?}");
}
