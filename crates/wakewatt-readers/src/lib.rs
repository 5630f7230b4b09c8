//! Every reader of bytes that others wrote, as a function of bytes alone: what `fuzz/` feeds and what the tests replay.
//!
//! A target reads its input as the program would and goes on as the program would (facts, rules, report), because most of
//! what a hostile file can do happens behind the parser. It returns nothing: the promise is that it ends, within the
//! budget of `docs/host-format.md` and its kin, without a panic. Files, processes and the network are left out; how a file
//! is opened is `wakewatt-host/src/input.rs`. To add one: a function and a line of [`TARGETS`], a folder of seeds under
//! `fuzz/corpus`, a file under `fuzz/fuzz_targets`.

#[cfg(feature = "fleet")]
mod fleet;
#[cfg(feature = "whole")]
mod whole;

use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::record::wtrace::{Item, Reader, Stream, Summing};
use wakewatt_core::record::{host_file, mask};
use wakewatt_core::samples::meters::{dcmi, line, nvidia, prometheus, redfish};
use wakewatt_core::watch::{Rates, recording};
use wakewatt_models::kernel::Kernel;
use wakewatt_models::{replay as replays, vectors as golden};
use wakewatt_sim::server::{Run, Server};
use wakewatt_sim::{simulate, span::Span};

/// A reader.
pub type Target = fn(&[u8]);

/// All of them; the name is the folder of its seeds.
pub const TARGETS: &[(&str, Target)] = &[
    ("host", host),
    ("run", run),
    ("wtrace", wtrace),
    ("replay", replay),
    ("vectors", vectors),
    ("server", server),
    ("watch", watch),
    ("meters", meters),
    ("series", series),
    ("import", import),
    ("rollout", rollout),
    ("firmware", firmware),
    #[cfg(feature = "fleet")]
    ("hosts", fleet::hosts),
    #[cfg(feature = "fleet")]
    ("replies", fleet::replies),
    #[cfg(feature = "fleet")]
    ("bmc", fleet::bmc),
    #[cfg(feature = "whole")]
    ("report", whole::report),
    #[cfg(feature = "whole")]
    ("profile", whole::profile),
    #[cfg(feature = "whole")]
    ("plan", whole::plan),
    #[cfg(feature = "whole")]
    ("journal", whole::journal),
    #[cfg(feature = "whole")]
    ("boot", whole::boot),
];

/// The target of that name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}

/// `.host`: facts, rows, and the writer.
pub fn host(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(mut tree) = host_file::read(&text, "fuzz") else { return };
    let facts = Snapshot::read(&tree, |_| true);
    let _ = facts.sheets();
    let _ = mask::tree(&mut tree);
    let _ = host_file::write(&tree, &[]);
}

/// Run file: facts, samples, rules.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(run) = RunFile::read(&text) else { return };
    let Ok(evidence) = run.evidence("fuzz") else { return };
    let _ = wakewatt_core::rules::judge(&evidence);
}

/// What a Prometheus-compatible API answers to a question on ranges.
pub fn series(bytes: &[u8]) {
    let _ = wakewatt_fleet::series::read_answer(bytes);
}

/// Plan of a rollout, the stages it makes, and a book's state.
pub fn rollout(bytes: &[u8]) {
    use wakewatt_fleet::rollout::{plan, state::Rollout};
    let _ = Rollout::from_bytes(bytes);
    let Ok(plan) = plan::parse(&String::from_utf8_lossy(bytes)) else { return };
    for n_nodes in [0, 1, 26, 5000] {
        let _ = (plan.stages_of(n_nodes), plan.unfit(n_nodes), plan.window_ms(0, n_nodes));
    }
    let _ = plan.change.words();
}

/// What `bios show` said of a node, beside nodes that have it otherwise.
pub fn firmware(bytes: &[u8]) {
    use wakewatt_fleet::compare::{Asked, compare};
    use wakewatt_fleet::folder::{Machine, table};
    let Ok(firmware) = wakewatt_fleet::firmware::parse(bytes) else { return };
    let mut other = firmware.clone();
    other.settings.values_mut().for_each(|value| value.push('x'));
    let machine =
        |(at, firmware)| Machine { name: format!("n{at}"), evidence: Default::default(), firmware: Some(firmware) };
    let machines: Vec<Machine> = [firmware.clone(), firmware, other].into_iter().enumerate().map(machine).collect();
    let _ = compare(&table(&machines, &[]), Asked::default());
}

/// What another tool printed: every format, a recording of its events, the facts and rules behind it; as an archive too.
pub fn import(bytes: &[u8]) {
    use wakewatt_import::{Input, archive};
    let mut inputs = vec![Input::Text { name: "fuzz".into(), path: None, bytes: bytes.to_vec() }];
    let mut tar = bytes;
    let mut take = |name: &str, bytes: Vec<u8>| {
        let path = archive::wanted(name).and_then(|wanted| wanted.path);
        inputs.push(Input::Text { name: name.into(), path, bytes });
    };
    let _ = archive::walk_tar(&mut tar, &mut |name| archive::wanted(name).map(|w| w.max_bytes), &mut take);
    let found = wakewatt_import::import(inputs);
    let facts = Snapshot::read(&found.facts.tree, |_| true);
    let evidence = wakewatt_core::evidence::Evidence { facts, samples: found.samples.clone(), ..Default::default() };
    let mut rulings = wakewatt_core::rules::judge(&evidence);
    found.facts.cite(&mut rulings);
    let _ = host_file::write(&found.facts.tree, &[]);
    if let Some(trace) = found.recorded.wtrace(&evidence.facts, "fuzz", 0) {
        wtrace(&trace);
    }
}

/// `.wtrace`: pairs and their summary.
pub fn wtrace(bytes: &[u8]) {
    let Ok(mut reader) = Reader::new(bytes) else { return };
    let header = reader.header.clone();
    let mut summing = Summing::new(&header);
    for item in reader.by_ref() {
        match item {
            Item::Pairs(pairs) => summing.pairs(&pairs),
            Item::Choices(choices) => drop(choices),
            Item::Mark(mark) => summing.mark(&mark),
        }
    }
    let _ = (summing.finish(), reader.ending());
}

/// `.wtrace` again, piece by piece: lived through under menu and a limit, by two kernels, and asked for an objective.
pub fn replay(bytes: &[u8]) {
    let mut pieces = bytes.chunks(97);
    let more = |into: &mut Vec<u8>| Ok(pieces.next().map(|piece| into.extend(piece)).is_some());
    let Ok(mut stream) = Stream::new(more) else { return };
    let header = stream.header.clone();
    let asked = ["governor=menu", "kernel=6.12.117", "hz=250", "max-latency=50us"];
    let asked: Vec<_> = asked.into_iter().flat_map(replays::Change::parse).collect();
    let Ok(kernel) = Kernel::parse("6.18.2") else { return };
    let Ok(mut replay) = replays::Replay::upgrade(&header, (None, kernel), &asked, &[]) else { return };
    for item in stream.by_ref() {
        match item {
            Item::Pairs(pairs) => replay.pairs(&pairs),
            Item::Choices(choices) => replay.choices(&choices),
            Item::Mark(mark) => replay.mark(&mark),
        }
    }
    let (_, replayed) = replay.finish_upgrade();
    let Ok(objective) = replays::slo::Objective::parse("p99 < 1ms over 8 hops + 4 parallel hops") else { return };
    let asked = replays::slo::Asked { objective, sleeper_ratio: None, hop_cost_ns: 0 };
    let _ = replays::slo::slo(&[(50_000, replayed)], &asked);
}

/// Golden decisions: the lines of a file, one governor's way after the other.
pub fn vectors(bytes: &[u8]) {
    let mut replay = golden::Replay::default();
    String::from_utf8_lossy(bytes).lines().for_each(|line| drop(replay.line(line)));
}

/// A server to simulate: the file, each of its settings, and a moment of its life.
pub fn server(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(server) = Server::parse(&text) else { return };
    for setting in &server.setting {
        let _ = server.under(setting);
    }
    // A file may ask for hours: what the engine does with it is seen in a microsecond of few.
    let mut server = server;
    let is_crowded = server.workload.arrivals.clients.is_some_and(|n| n > 1000) || server.n_cpus() > 512;
    if is_crowded || server.workload.arrivals.per_s.is_some_and(|n| n > 1e6) {
        return;
    }
    server.change = None;
    server.run =
        Run { duration: Some(Span::us(200)), warmup: Some(Span(0)), replications: 1, seed: server.run.seed, bins: 2 };
    if let Ok(outcome) = simulate(&server, 1) {
        assert!(outcome.wall_w.value >= 0.0 && outcome.mean_ns.value >= 0.0);
    }
}

/// Recording of `watch`: the rates of every interval.
pub fn watch(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let decode = |json: &str| serde_json::from_str(json).map_err(|e| e.to_string());
    let Ok(found) = recording::read(&text, decode) else { return };
    for pair in found.moments.windows(2) {
        let _ = Rates::between(&found.layout, &pair[0], &pair[1]);
    }
}

/// What meters answer, each decoder in turn.
pub fn meters(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = dcmi::decode(bytes);
    let _ = nvidia::parse(&text);
    let _ = prometheus::parse(&text);
    text.lines().for_each(|l| drop(line::parse(l)));
    if let Ok(document) = serde_json::from_slice(bytes) {
        let _ = (redfish::members(&document), redfish::readings(&document), redfish::path(&document));
    }
}
