//! `fleet collect`: captures, runs and recordings of many nodes, in one folder.
//!
//! The engine is carry's; here are the folder, the index on disk (written at most once a second and at the end, so a kill costs
//! the answers of a second), the names of a masked collection, and what is said.

use super::{reach, tables};
use crate::cli::collect::CollectArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use wakewatt_carry::collect::{self, Collection, INDEX_FILE, Index, Outcome, Reason, What, called};
use wakewatt_carry::{Carrier, NodeName};
use wakewatt_core::units::show_bytes;
use wakewatt_core::visible;
use wakewatt_host::input;
use wakewatt_host::place::{self, Folder};
use wakewatt_host::store::{self, Disk};

const SCHEMA: &str = "fleet-collect";
/// Who is who, where names are masked: not for others.
const PRIVATE: u32 = 0o600;

/// Runs it.
pub(super) fn run(args: &CollectArgs) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    let carrier = match reach::bmcs(&args.bmcs, PathBuf::new())? {
        Some(bmcs) => bmcs,
        None => reach::any(&args.ssh, &args.kubernetes)?,
    };
    let folder = Folder::make(&args.output)?;
    let mut index = begun(args, &*carrier)?;
    let asked = asked(args, &index);
    let mut known = names(args, &index)?;
    let nodes = carrier.nodes().map_err(|why| reach::failure(&why))?;
    let nodes = called(nodes, args.mask, &mut known);
    if args.mask {
        let text = serde_json::to_vec_pretty(&known)?;
        store::replace(&Disk, &names_file(args)?, &text, PRIVATE)?;
    }
    let now = || humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut written: Option<Instant> = None;
    let mut told = |index: &Index, node: &str| -> Result<()> {
        for answer in index.nodes.get(node).iter().flat_map(|n| &n.answers) {
            // Who is silent has been told with what was asked first.
            if let Outcome::Missing { why, reason } = &answer.outcome
                && *reason != Reason::NotAsked
            {
                output::remark(&format!("{node}: {}: {}", answer.what.word(), visible::line(why)));
            }
        }
        if written.is_none_or(|at| at.elapsed() > Duration::from_secs(1)) {
            write(&args.output, index)?;
            written = Some(Instant::now());
        }
        Ok(())
    };
    let collection = Collection {
        carrier: &*carrier,
        folder: &folder,
        asked: &asked,
        n_parallel: usize::from(args.parallel),
        slack: Duration::from_nanos(args.timeout),
        stop: interrupt.flag(),
        now: &now,
    };
    collect::collect(collection, &nodes, &mut index, &mut told)?;
    index.written_at = now();
    write(&args.output, &index)?;
    if args.parquet {
        tables::write(&args.output, &args.output)?;
    }
    output::print(&if args.json { output::json(SCHEMA, &index)? } else { text(&index, &args.output) })?;
    Ok(match index.n_whole_of() {
        _ if interrupt.is_set() => Code::Interrupted,
        _ if index.is_complete => Code::Fine,
        (0, _) => Code::CouldNotMeasure,
        _ => Code::Partial,
    })
}

/// The index of the folder, to go on with; a new one where there is none.
fn begun(args: &CollectArgs, carrier: &dyn Carrier) -> Result<Index> {
    let path = args.output.join(INDEX_FILE);
    if !path.exists() {
        let began_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        return Ok(Index { carrier: carrier.word().into(), began_at, is_masked: args.mask, ..Index::default() });
    }
    let refuse = |why: &str| Failure::error(Code::BadFile, format!("{}: {why}", path.display()));
    if !args.resume {
        return Err(refuse("a collection is here already; go on with --resume, or name another folder"));
    }
    let document: serde_json::Value = serde_json::from_str(&input::read_text(&path, input::KEPT)?)
        .map_err(|e| refuse(&format!("cannot be read: {e}; collect into another folder")))?;
    if document["schema"] != format!("wakewatt/{SCHEMA}/v1") {
        return Err(refuse("is no index of fleet collect; name another folder"));
    }
    let index: Index = serde_json::from_value(document)
        .map_err(|e| refuse(&format!("cannot be read: {e}; collect into another folder")))?;
    if index.is_masked != args.mask {
        return Err(refuse("names of nodes are masked in one of the two and not in the other; give --mask as before"));
    }
    Ok(Index { carrier: carrier.word().into(), ..index })
}

fn asked(args: &CollectArgs, index: &Index) -> Vec<What> {
    let trace = args.trace.map(|for_ns| What::Trace { for_ns, most_mib: args.trace_mib });
    let mut now: Vec<What> = args.capture.then_some(What::Capture).into_iter().chain(args.run).chain(trace).collect();
    if args.bmcs.bmc.is_some() {
        now.push(What::Firmware);
    } else if now.is_empty() && index.asked.is_empty() {
        now.push(What::Capture);
    }
    collect::together(&index.asked, &now)
}

/// Beside the folder, whatever its path looks like (`.`, `../x/..`), so that the folder can be handed on.
fn names_file(args: &CollectArgs) -> Result<PathBuf> {
    let folder =
        std::fs::canonicalize(&args.output).with_context(|| format!("{}: not readable", args.output.display()))?;
    let Some(name) = folder.file_name() else {
        let why = format!("{}: nothing lies beside it for the list of names; give a folder below it", folder.display());
        return Err(Failure::error(Code::Usage, why));
    };
    let mut name = name.to_os_string();
    name.push(".names.json");
    Ok(folder.with_file_name(name))
}

/// What nodes are called in a masked collection so far.
fn names(args: &CollectArgs, index: &Index) -> Result<BTreeMap<NodeName, String>> {
    if !args.mask || index.nodes.is_empty() {
        return Ok(BTreeMap::new());
    }
    let path = names_file(args)?;
    if !path.exists() {
        // Numbered anew, a node would be given what another said.
        let why = format!("{}: is gone, and with it who is who; collect into another folder", path.display());
        return Err(Failure::error(Code::BadFile, why));
    }
    let text = input::read_text(&path, input::KEPT)?;
    serde_json::from_str(&text).with_context(|| format!("{}: is no list of names", path.display()))
}

fn write(folder: &Path, index: &Index) -> Result<()> {
    let path = folder.join(INDEX_FILE);
    Ok(place::write(&path, output::json(SCHEMA, index)?.as_bytes())?)
}

fn text(index: &Index, folder: &Path) -> String {
    let (n_whole, n_all) = index.n_whole_of();
    let folder = folder.display();
    let plural = if index.nodes.len() == 1 { "node" } else { "nodes" };
    let mut out = format!(
        "{} {plural} by {}: {n_whole} of {n_all} answers in {folder}, {}\n",
        index.nodes.len(),
        visible::line(&index.carrier),
        show_bytes(index.n_bytes())
    );
    let mut silent: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (node, answer) in index.answers() {
        if let Outcome::Missing { reason, .. } = &answer.outcome
            && *reason != Reason::NotAsked
        {
            silent.entry(reason.words()).or_default().push(node);
        }
    }
    for (why, mut nodes) in silent {
        nodes.dedup();
        let shown: Vec<String> = nodes.iter().take(8).map(|n| visible::line(n).into_owned()).collect();
        let more = if nodes.len() > 8 { format!(" and {} more", nodes.len() - 8) } else { String::new() };
        let _ = writeln!(out, "  {why}: {}{more}", shown.join(", "));
    }
    let _ = match n_whole < n_all {
        true => {
            writeln!(out, "Go on with the same command and --resume; {folder}/{INDEX_FILE} says why each is missing.")
        }
        false => writeln!(out, "Read it with: wakewatt fleet compare --files {folder}; wakewatt fleet tables {folder}"),
    };
    out
}
