//! The agent beside node_exporter: CPU time per scrape and memory, on this machine and on a made-up tree of 512 CPUs; and what it takes with
//! wake-ups attributed.
//!
//! Both run at once and are asked in turn, each once in a little more than a second, because the agent reads at most once a second and node_exporter at each question: a faster
//! pace would flatter us. They are asked as Prometheus asks (`scraper`), here at its usual pace as well, and once more by bare requests on a connection each. node_exporter (Debian's) has the collectors that answer the same questions: cpu, cpufreq, hwmon, rapl, pressure. CPU time is that of
//! all threads since the first question (schedstat, in nanoseconds), what they do between questions included, from a minute after their start (they run for months): of the agent's looks at settings, one a minute, none falls into the questions of each second, and one in four scrapes of the usual pace has one. With wake-ups attributed the process's time and that of its
//! programs in the kernel are added; the kernel counts the latter while BPF_ENABLE_STATS holds it to, no longer than the measurement. Two looks at a clock
//! belong to each counted run and to no other: what programs that return at once are counted with is taken off, and named.

use super::record::Load;
use super::scraper::Scraper;
use super::{Measured, Row, median};
use crate::gen_host;
use anyhow::{Context, Result};
use aya::sys::{Stats, enable_stats};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PEER: &str = "prometheus-node-exporter";
/// How often each is asked, and how long after the other.
struct Pace {
    rounds: usize,
    pause: Duration,
}

const FAST: Pace = Pace { rounds: 40, pause: Duration::from_millis(550) };
/// Prometheus's usual fifteen seconds: a minute's look at settings falls to four scrapes.
const USUAL: Pace = Pace { rounds: 12, pause: Duration::from_millis(7500) };
/// An agent that is older has done what it does once: a minute after its start it looks around again, and lets go of what that used.
const SETTLED: Duration = Duration::from_secs(72);
const N_CPUS: u32 = 512;
const TRACED_WHAT: &str = "agent --trace at 10,000 wake-ups a second";
const TRACED_GOAL: &str = "below 0.5 %, programs scaled to 10,000/s";
/// Programs of the probe that `trace --empty` makes return at once.
const EMPTIED: [&str; 2] = ["on_waking", "on_switch"];
const TRACED: Duration = Duration::from_secs(20);
/// Debian's own ceiling for ours.
const MOST_BYTES: f64 = 30e6;

/// A server, ended when it is dropped.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    /// Kept open, so that it never writes into a closed pipe.
    _told: Option<BufReader<std::process::ChildStderr>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let mut all = Measured { rows: Vec::new(), csv: "where,who,value,unit\n".into() };
    let scratch = tempfile::tempdir()?;
    let tree = scratch.path().join("host");
    gen_host::write(&tree, N_CPUS)?;
    for (place, tree) in [("here", None), ("512 CPUs", Some(tree.as_path()))] {
        beside(binary, place, tree, &mut all)?;
    }
    if rustix::process::geteuid().is_root() {
        // What was measured until then stands.
        all.rows.push(traced(binary, &mut all.csv).unwrap_or_else(|why| Row {
            what: TRACED_WHAT,
            ours: format!("could not be measured: {why:#}"),
            peer: "-".into(),
            goal: TRACED_GOAL,
            is_met: Some(false),
        }));
    }
    Ok(all)
}

fn beside(binary: &Path, place: &'static str, tree: Option<&Path>, all: &mut Measured) -> Result<()> {
    let ours =
        agent(binary, tree.map(|tree| ("--sysroot", tree)).into_iter().flat_map(|(k, v)| [k.as_ref(), v.as_os_str()]))?;
    let peer = match node_exporter(tree) {
        Ok(peer) => peer,
        Err(why) => {
            eprintln!("agent: skipped beside node_exporter: {why:#}");
            return Ok(());
        }
    };
    let is_here = place == "here";
    let began = Instant::now();
    while began.elapsed() < SETTLED {
        ask(&ours)?;
        ask(&peer)?;
        std::thread::sleep(SETTLED / 12);
    }
    let row = |what: &'static str, cpu_us: (f64, f64), bytes: (usize, usize)| Row {
        what,
        ours: format!("{:.0} us, {} bytes", cpu_us.0, bytes.0),
        peer: format!("{PEER}: {:.0} us, {} bytes; ratio {:.2}", cpu_us.1, bytes.1, cpu_us.0 / cpu_us.1),
        goal: "a quarter",
        is_met: Some(cpu_us.0 <= cpu_us.1 / 4.0),
    };
    let (mut us, mut theirs) = (Scraper::of(ours.address), Scraper::of(peer.address));
    let (cpu_us, bytes) = in_turn(FAST, (&ours, &mut || us.scrape()), (&peer, &mut || theirs.scrape()))?;
    let what = if is_here { "agent: CPU time per scrape, here" } else { "agent: CPU time per scrape, 512 CPUs" };
    all.rows.push(row(what, cpu_us, bytes));
    told(all, place, "scrape", cpu_us, bytes);
    if is_here {
        let (cpu_us, bytes) = in_turn(USUAL, (&ours, &mut || us.scrape()), (&peer, &mut || theirs.scrape()))?;
        all.rows.push(row("agent: CPU time per scrape every 15 s, here", cpu_us, bytes));
        told(all, place, "scrape every 15 s", cpu_us, bytes);
        let other = agent(binary, std::iter::empty())?;
        std::thread::sleep(SETTLED);
        let mut anew = Scraper::of(other.address);
        let of_new = &mut || {
            anew.let_go();
            anew.scrape()
        };
        let (cpu_us, _) = in_turn(FAST, (&ours, &mut || us.scrape()), (&other, of_new))?;
        all.rows.push(Row {
            what: "agent: a connection that is kept",
            ours: format!("{:.0} us a scrape", cpu_us.0),
            peer: format!("itself, a connection each: {:.0} us; ratio {:.2}", cpu_us.1, cpu_us.0 / cpu_us.1),
            goal: "-",
            is_met: None,
        });
        let _ = writeln!(all.csv, "{place},wakewatt,{:.1},us per scrape with a connection of its own", cpu_us.1);
    }
    let (cpu_us, bytes) = in_turn(FAST, (&ours, &mut || ask(&ours)), (&peer, &mut || ask(&peer)))?;
    let what =
        if is_here { "agent: CPU time per bare request, here" } else { "agent: CPU time per bare request, 512 CPUs" };
    all.rows.push(row(what, cpu_us, bytes));
    told(all, place, "bare request", cpu_us, bytes);
    let memory = (resident(&ours, "VmRSS:")?, resident(&peer, "VmRSS:")?);
    let own = (resident(&ours, "RssAnon:")?, resident(&peer, "RssAnon:")?);
    for (who, memory, own) in [("wakewatt", memory.0, own.0), (PEER, memory.1, own.1)] {
        let _ = writeln!(all.csv, "{place},{who},{memory:.0},bytes resident\n{place},{who},{own:.0},bytes of no file");
    }
    all.rows.push(Row {
        what: if is_here { "agent: memory, here" } else { "agent: memory, 512 CPUs" },
        ours: format!("{:.1} MB, {:.1} without what the program's file holds", memory.0 / 1e6, own.0 / 1e6),
        peer: format!("{PEER}: {:.1} MB, {:.1}; ratio {:.2}", memory.1 / 1e6, own.1 / 1e6, memory.0 / memory.1),
        goal: "half, below 30 MB",
        is_met: Some(memory.0 <= memory.1 / 2.0 && memory.0 < MOST_BYTES),
    });
    Ok(())
}

/// A server and a question to it, which says how many bytes came.
type Asked<'a> = (&'a Server, &'a mut dyn FnMut() -> Result<usize>);

/// CPU time per question in microseconds, and bytes of the last answer, of both; asked in turn.
fn in_turn(pace: Pace, ours: Asked<'_>, peer: Asked<'_>) -> Result<((f64, f64), (usize, usize))> {
    // The first questions fill caches on both sides.
    ours.1()?;
    peer.1()?;
    let before = (cpu_ns(ours.0)?, cpu_ns(peer.0)?);
    let mut bytes = (0, 0);
    for _ in 0..pace.rounds {
        bytes.0 = ours.1()?;
        std::thread::sleep(pace.pause);
        bytes.1 = peer.1()?;
        std::thread::sleep(pace.pause);
    }
    let per = |now: u64, then: u64| (now - then) as f64 / 1e3 / pace.rounds as f64;
    Ok(((per(cpu_ns(ours.0)?, before.0), per(cpu_ns(peer.0)?, before.1)), bytes))
}

fn told(all: &mut Measured, place: &str, question: &str, cpu_us: (f64, f64), bytes: (usize, usize)) {
    for (who, cpu_us, page) in [("wakewatt", cpu_us.0, bytes.0), (PEER, cpu_us.1, bytes.1)] {
        let _ = writeln!(
            all.csv,
            "{place},{who},{cpu_us:.1},us per {question}\n{place},{who},{page},bytes of a {question}"
        );
    }
}

/// With the probe, under some ten thousand wake-ups a second.
fn traced(binary: &Path, csv: &mut String) -> Result<Row> {
    let (ours, counting_ns) = with_program_times(|| Ok((under_wakeups(binary)?, counting_ns(binary)?)))?;
    let Wakeups { n_wakes_per_s, own_share, kernel_share, n_runs_per_s } = ours;
    let _ = writeln!(
        csv,
        "traced,wakewatt,{n_wakes_per_s:.0},wake-ups per second\ntraced,wakewatt,{own_share:.6},CPUs of the process\ntraced,wakewatt,{kernel_share:.6},CPUs of its programs\n\
         traced,wakewatt,{n_runs_per_s:.0},runs of programs per second\ntraced,empty,{counting_ns:.1},ns of a run of an empty program"
    );
    let scale = 10_000.0 / n_wakes_per_s.max(1.0);
    let counting = counting_ns * 1e-9 * n_runs_per_s * scale;
    let at_ten_thousand = own_share + kernel_share * scale - counting;
    Ok(Row {
        what: TRACED_WHAT,
        ours: format!(
            "{:.2} % of one CPU, and {:.2} % of the kernel's counting (a program that returns at once is counted with {counting_ns:.0} ns): {:.2} % the process, {:.2} % its programs at {n_wakes_per_s:.0} wake-ups/s, counting included",
            at_ten_thousand * 100.0,
            counting * 100.0,
            own_share * 100.0,
            kernel_share * 100.0
        ),
        peer: "-".into(),
        goal: TRACED_GOAL,
        is_met: (n_wakes_per_s >= 5_000.0).then_some(at_ten_thousand < 0.005),
    })
}

/// While the kernel counts what programs take: as long as an open file says so, which is closed however this ends.
pub(super) fn with_program_times<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let _counting = enable_stats(Stats::RunTime).context("the kernel does not count what programs take")?;
    work()
}

/// What tracing takes under so many wake-ups.
struct Wakeups {
    n_wakes_per_s: f64,
    /// CPUs that the process takes.
    own_share: f64,
    /// CPUs that its programs take, with the kernel's counting of it.
    kernel_share: f64,
    n_runs_per_s: f64,
}

/// What the kernel's counting adds to each run, nearly: what it counts for programs that return at once, under the same load. It holds their call, too, which is paid always.
fn counting_ns(binary: &Path) -> Result<f64> {
    let _load = start_load()?;
    // Three seconds of it are enough; the rest is cut off.
    let mut child = Command::new(binary)
        .args(["trace", "--for", "60s", "--json", "--empty"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| binary.display().to_string())?;
    let looked = (|| {
        std::thread::sleep(Duration::from_secs(2));
        let before = programs()?;
        std::thread::sleep(Duration::from_secs(3));
        let now = programs()?;
        let n_runs = now.emptied.n_runs.saturating_sub(before.emptied.n_runs);
        anyhow::ensure!(n_runs > 0, "empty programs did not run");
        Ok(now.emptied.run_ns.saturating_sub(before.emptied.run_ns) as f64 / n_runs as f64)
    })();
    let _ = child.kill();
    let _ = child.wait();
    looked
}

fn start_load() -> Result<Load> {
    let load = Load::start(std::thread::available_parallelism()?.get());
    std::thread::sleep(Duration::from_secs(1));
    Ok(load)
}

fn under_wakeups(binary: &Path) -> Result<Wakeups> {
    let ours = agent(binary, ["--trace".as_ref()])?;
    ask(&ours)?;
    let load = start_load()?;
    let (cpu, ran, began) = (cpu_ns(&ours)?, programs()?, Instant::now());
    std::thread::sleep(TRACED);
    let took = began.elapsed().as_secs_f64();
    let (cpu, ran_now) = (cpu_ns(&ours)? - cpu, programs()?);
    drop(load);
    let per_s = |now: u64, then: u64| now.saturating_sub(then) as f64 / took;
    Ok(Wakeups {
        n_wakes_per_s: per_s(ran_now.runs_of_wake, ran.runs_of_wake),
        own_share: cpu as f64 / 1e9 / took,
        kernel_share: per_s(ran_now.all.run_ns, ran.all.run_ns) / 1e9,
        n_runs_per_s: per_s(ran_now.all.n_runs, ran.all.n_runs),
    })
}

/// What programs have taken.
#[derive(Default)]
struct Taken {
    run_ns: u64,
    n_runs: u64,
}

/// What programs of tracing have taken, all and those that can be emptied, and how often the busiest of them ran.
#[derive(Default)]
struct Programs {
    all: Taken,
    emptied: Taken,
    runs_of_wake: u64,
}

fn programs() -> Result<Programs> {
    let out = Command::new("bpftool").args(["prog", "show", "--json"]).output().context("bpftool")?;
    let all: serde_json::Value = serde_json::from_slice(&out.stdout).context("bpftool prog show")?;
    let tracing =
        all.as_array().into_iter().flatten().filter(|p| p["type"] == "tracing" || p["type"] == "raw_tracepoint");
    let mut sum = Programs::default();
    for program in tracing {
        let number = |what: &str| program[what].as_u64().unwrap_or(0);
        let name = program["name"].as_str().unwrap_or_default();
        let add = |taken: &mut Taken| {
            taken.run_ns += number("run_time_ns");
            taken.n_runs += number("run_cnt");
        };
        add(&mut sum.all);
        if EMPTIED.contains(&name) {
            add(&mut sum.emptied);
        }
        if name.contains("wak") {
            sum.runs_of_wake += number("run_cnt");
        }
    }
    Ok(sum)
}

pub(crate) fn agent<'a>(binary: &Path, words: impl IntoIterator<Item = &'a std::ffi::OsStr>) -> Result<Server> {
    let mut command = Command::new(binary);
    command.args(["agent", "--listen", "127.0.0.1:0"]).args(words).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| binary.display().to_string())?;
    let mut told = BufReader::new(child.stderr.take().context("no standard error")?);
    let mut line = String::new();
    let address = loop {
        line.clear();
        anyhow::ensure!(told.read_line(&mut line)? > 0, "the agent ended before it answered");
        let place = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        if let Some(address) = place.and_then(|text| text.parse().ok()) {
            break address;
        }
    };
    Ok(Server { child, address, _told: Some(told) })
}

fn node_exporter(tree: Option<&Path>) -> Result<Server> {
    // Free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut command = Command::new(PEER);
    command.arg("--collector.disable-defaults").arg(format!("--web.listen-address={address}"));
    command.args(["cpu", "cpufreq", "hwmon", "rapl", "pressure"].map(|name| format!("--collector.{name}")));
    if let Some(tree) = tree {
        let below = |folder: &str| tree.join(folder).display().to_string();
        command.arg(format!("--path.sysfs={}", below("sys"))).arg(format!("--path.procfs={}", below("proc")));
    }
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context(PEER)?;
    let server = Server { child, address, _told: None };
    let until = Instant::now() + Duration::from_secs(20);
    while ask(&server).is_err() {
        anyhow::ensure!(Instant::now() < until, "{PEER} does not answer");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(server)
}

/// Bytes of the page, its head included.
fn ask(server: &Server) -> Result<usize> {
    answer(server, "/metrics", "").map(|(page, _)| page.len())
}

/// What stands at a path.
pub(crate) fn asked(server: &Server, path: &str) -> Result<Vec<u8>> {
    asked_with(server, path, "")
}

/// The same, with more lines in the head of the question.
pub(crate) fn asked_with(server: &Server, path: &str, lines: &str) -> Result<Vec<u8>> {
    let (mut page, head) = answer(server, path, lines)?;
    page.drain(..head);
    Ok(page)
}

/// Head and body, and where the body begins.
fn answer(server: &Server, path: &str, lines: &str) -> Result<(Vec<u8>, usize)> {
    let mut stream = TcpStream::connect_timeout(&server.address, Duration::from_secs(10))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}Connection: close\r\n\r\n")?;
    let mut page = Vec::new();
    stream.read_to_end(&mut page)?;
    anyhow::ensure!(page.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&page[..page.len().min(80)]));
    let head = page.windows(4).position(|four| four == b"\r\n\r\n").context("an answer without an end of its head")?;
    Ok((page, head + 4))
}

/// Of all threads there are; none of them ends while it is measured.
fn cpu_ns(server: &Server) -> Result<u64> {
    let mut sum = 0;
    for task in std::fs::read_dir(format!("/proc/{}/task", server.child.id()))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        sum += text.split_whitespace().next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

/// Resident memory in bytes, all of it or the part of a kind: the median of a few looks.
fn resident(server: &Server, kind: &str) -> Result<f64> {
    let path = format!("/proc/{}/status", server.child.id());
    let look = || -> Result<f64> {
        let text = std::fs::read_to_string(&path).context(path.clone())?;
        let line = text.lines().find_map(|line| line.strip_prefix(kind)).context("no VmRSS")?;
        let kib: f64 = line.split_whitespace().next().context("no VmRSS")?.parse()?;
        Ok(kib * 1024.0)
    };
    Ok(median(&(0..3).map(|_| look()).collect::<Result<Vec<_>>>()?))
}
