//! `wakewatt load shop`: opens the shop (or asks one that is open), runs one level per number of clients, and shows them.
//!
//! A level that fails ends the run, and what was done before is shown. With `--listen` there are no clients: the shop is
//! open for those of another host until interrupted.

use super::database;
use super::shop_text;
use crate::cli::shop::ShopArgs;
use crate::cmd::saved;
use crate::exit::{Code, Failure};
use crate::interrupt::{Interrupt, Wait};
use crate::output;
use crate::progress::Progress;
use anyhow::{Context, Result};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::load::{Ask, Length, LoadRun};
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::repeated;
use wakewatt_core::units::show_ns;
use wakewatt_host::affinity;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::input;
use wakewatt_host::live::Live;
use wakewatt_lab::load::settings::Watch;
use wakewatt_lab::load::usage::NO_LOAD_AVERAGE;
use wakewatt_lab::meters::Meters;
use wakewatt_lab::shop::client::Mix;
use wakewatt_lab::shop::server::{self, ServerSpec, Storage};
use wakewatt_lab::shop::{self, CpuOf, GeneratorUse, Serving, Shop, ShopSpec};

/// Connections in an open loop, at most.
const MOST_OPEN: u32 = 4096;
/// Where SQLite's files lie when nothing is said: on a disk, by the file system hierarchy's own rules.
const ON_DISK: &str = "/var/tmp";
const IN_MEMORY: &str = "/dev/shm";

/// What `load shop` found: a load run, and what is the shop's alone.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ShopRun {
    /// The run, level by level.
    #[serde(flatten)]
    pub run: LoadRun,
    /// The shop that was asked.
    pub shop: ShopDescription,
    /// What could not be done, and why.
    pub not_done: Vec<NotDone>,
}

/// What was asked, and by whom.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ShopDescription {
    /// Where its data lies, or its URL.
    pub title: String,
    /// Mean think time; none with a rate.
    pub think_ns: Option<u64>,
    /// Whose CPU time the levels count.
    pub cpu_of: CpuOf,
    /// Is the server on this machine?
    pub is_here: bool,
    /// What the clients did, level by level.
    pub clients: Vec<GeneratorUse>,
}

/// Runs it.
pub fn run(args: &ShopArgs) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    if let Some(listen) = args.listen {
        return only_serve(args, listen, &interrupt);
    }
    let src = Live::this_machine();
    let saving = saved::start(args.save.as_deref(), "load shop", &src)?;
    let could_not = |why: String| Failure::error(Code::CouldNotMeasure, why);
    let progress = Progress::start("load shop");
    progress.set(0.0, "opening the shop");
    let opened = Shop::start(spec(args, super::meters(&args.meters)?)?, interrupt.flag(), &src);
    let mut shop = match opened {
        Err(_) if interrupt.is_set() => return Err(Failure::error(Code::Interrupted, "interrupted")),
        other => other.map_err(could_not)?,
    };
    let length = length(args);
    let mut done = ShopRun {
        run: LoadRun { length, ..shop.run(&src) },
        shop: ShopDescription {
            title: shop.title.clone(),
            think_ns: args.rate.is_empty().then_some(args.think),
            cpu_of: shop.cpu_of,
            is_here: shop.is_here,
            clients: Vec::new(),
        },
        not_done: Vec::new(),
    };
    // Settings of another host cannot be seen from here.
    let mut watch = shop.is_here.then(|| Watch::start(&src, monotonic_ns()));
    let (asks, phases_ns) = (asks(args), phases(args, length));
    for (at, ask) in asks.iter().enumerate() {
        let left = asks.len() - at;
        let takes = show_ns(phases_ns.iter().sum::<u64>() * left as u64);
        progress.set(at as f64 / asks.len() as f64, &format!("{}; about {takes} left", shop_text::asked(*ask)));
        match shop.ran(*ask, phases_ns, interrupt.flag(), &src) {
            Ok(ran) => {
                done.run.levels.push(ran.level);
                done.shop.clients.push(ran.generator);
                done.run.changes.extend(watch.iter_mut().flat_map(|watch| watch.look(&src, monotonic_ns())));
            }
            Err(why) => done.not_done.push(NotDone::named(shop_text::asked(*ask), why)),
        }
        if interrupt.is_set() || !done.not_done.is_empty() {
            break;
        }
    }
    // What ended the last level may be what somebody changed.
    done.run.changes.extend(watch.iter_mut().flat_map(|watch| watch.look(&src, monotonic_ns())));
    if done.shop.is_here && done.run.levels.iter().any(|l| l.load_average.is_none()) {
        done.run.remarks.push(NO_LOAD_AVERAGE.into());
    }
    done.run.remarks.extend(repeated::told(&done.run));
    drop((progress, shop));
    let shown = match args.json {
        true => output::json("load-shop", &done).and_then(|text| output::print(&text)),
        false => output::print(&shop_text::text(&done)),
    };
    let own = match (interrupt.is_set(), done.not_done.is_empty()) {
        (true, _) => Code::Interrupted,
        (_, true) => Code::Fine,
        _ => Code::CouldNotMeasure,
    };
    let own = output::settled(shown, own);
    let evidence = Evidence {
        not_done: done.not_done,
        samples: Samples { load: vec![done.run], ..Samples::default() },
        ..Evidence::default()
    };
    Ok(saving.map_or(own, |saving| saving.finish_with(&evidence, own)))
}

/// The hidden command: a server for whoever started it.
pub fn serve_for_parent() -> Result<Code> {
    // Its process group is its own, so Ctrl-C in the terminal reaches its parent only, which decides when it ends. The
    // kernel's word that the parent is gone is not needed: then its input ends, and it can clear up.
    let passed_over = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, passed_over).context("cannot listen for signals")?;
    shop::process::child().map_err(|why| Failure::error(Code::CouldNotMeasure, why))?;
    Ok(Code::Fine)
}

fn asks(args: &ShopArgs) -> Vec<Ask> {
    let once: Vec<Ask> = match args.rate.is_empty() {
        true => args.clients.iter().map(|n| Ask::Clients(*n)).collect(),
        false => args.rate.iter().map(|per_s| Ask::Rate(*per_s)).collect(),
    };
    once.repeat(args.repeat as usize)
}

fn length(args: &ShopArgs) -> Length {
    match args {
        _ if args.duration.is_some() || args.ramp.is_some() => Length::Custom,
        _ if args.quick => Length::Quick,
        _ if args.spec_like => Length::SpecLike,
        _ => Length::Standard,
    }
}

fn phases(args: &ShopArgs, length: Length) -> [u64; 4] {
    let named = match length {
        Length::Custom if args.quick => Length::Quick,
        Length::Custom if args.spec_like => Length::SpecLike,
        other => other,
    };
    let [settle, ramp, record, down] = shop::default_phases(named);
    let record = args.duration.unwrap_or(record);
    // A short window needs no long pauses around it.
    [settle.min(record), args.ramp.unwrap_or(ramp), record, down.min(record)]
}

/// A shop on this machine with everything as when nothing is said, for so many clients: a workload of an experiment.
pub(crate) fn own_spec(n_clients: u32, seed: u64, meters: Meters) -> Result<ShopSpec> {
    let words = ["shop", "--clients", &n_clients.to_string(), "--seed", &seed.to_string()].map(str::to_string);
    let parsed = <ShopLine as clap::Parser>::try_parse_from(words);
    spec(&parsed.map_err(|e| Failure::error(Code::Usage, format!("shop: {e}")))?.args, meters)
}

/// The options of `load shop` alone, so that their defaults are written once.
#[derive(clap::Parser)]
struct ShopLine {
    #[command(flatten)]
    args: ShopArgs,
}

fn spec(args: &ShopArgs, meters: Meters) -> Result<ShopSpec> {
    let serving = match &args.url {
        Some(url) => Serving::Elsewhere { url: url.clone(), mix: args.mix.as_deref().map(mix).transpose()? },
        None => Serving::Own {
            program: std::env::current_exe().context("cannot find out where this program lies")?,
            n_products: args.products,
            n_workers: args.workers.map(|n| n as usize),
            storage: storage(args)?,
        },
    };
    let most = args.clients.iter().copied().max().unwrap_or(1);
    Ok(ShopSpec {
        serving,
        cpus: args.cpus.clone(),
        client_cpus: args.client_cpus.clone(),
        n_clients: if args.rate.is_empty() { most } else { MOST_OPEN },
        think_ns: args.think,
        timeout_ns: args.timeout,
        seed: args.seed,
        meters: Some(meters),
    })
}

fn mix(path: &Path) -> Result<Mix> {
    let text = input::read_text(path, input::MIX)?;
    Mix::parse(&text).map_err(|why| Failure::error(Code::BadFile, format!("{}: {why}", path.display())))
}

fn storage(args: &ShopArgs) -> Result<Storage> {
    if let Some(url) = &args.database {
        return database::storage(args, url);
    }
    let default = || match Path::new(ON_DISK).is_dir() {
        true => PathBuf::from(ON_DISK),
        false => std::env::temp_dir(),
    };
    let folder = if args.in_memory { IN_MEMORY.into() } else { args.folder.clone().unwrap_or_else(default) };
    Ok(Storage::Sqlite { folder, is_durable: args.durable })
}

fn only_serve(args: &ShopArgs, listen: SocketAddr, interrupt: &Interrupt) -> Result<Code> {
    let allowed = affinity::allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let cpus = args.cpus.clone().unwrap_or(allowed);
    // Before any thread is started: they inherit it.
    affinity::confine(&cpus).map_err(|e| Failure::error(Code::Usage, format!("--cpus {cpus}: {e}")))?;
    let n_workers = args.workers.map_or(cpus.len(), |n| n as usize).max(1);
    let spec = ServerSpec {
        listen,
        n_products: args.products,
        seed: args.seed,
        n_workers,
        n_connections: n_workers * 2,
        n_clients: args.clients.iter().copied().max().unwrap_or(1).max(MOST_OPEN),
        storage: storage(args)?,
    };
    let wait = Wait::listen()?;
    let (end, ended) = server::end();
    let flag = interrupt.clone();
    std::thread::spawn(move || {
        while !flag.is_set() {
            wait.wait(u64::MAX);
        }
        drop(end);
    });
    let ready = |about: &server::ServerDescription| {
        let at = about.listen.unwrap_or(listen);
        let warning = if at.ip().is_loopback() { "" } else { "; whoever reaches it may use it" };
        let products = about.n_products;
        output::remark(&format!("{products} products in {}, {n_workers} web threads on CPUs {cpus}", about.storage));
        output::remark(&format!("open at http://{at} until interrupted{warning}"));
    };
    server::serve(&spec, ready, ended).map_err(|why| Failure::error(Code::CouldNotMeasure, why))?;
    Ok(Code::Fine)
}
