//! `wakewatt simulate`: a server in the computer. Arguments to a study of the simulation crate, and what it came to.

mod arrivals;
mod csv;
mod text;

use crate::cli::simulate::SimulateArgs;
use crate::exit::{Code, Failure};
use crate::features::Feature;
use crate::output::{self, Outlet};
use crate::quantity_table;
use crate::report::modelled::ModelledReport;
use crate::saved;
use anyhow::Result;
use std::path::Path;
use std::time::SystemTime;
use wakewatt_core::cost::Rates;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::source::Tree;
use wakewatt_core::visible;
use wakewatt_host::input;
use wakewatt_sim::examples::{EXAMPLES, example};
use wakewatt_sim::samples::samples;
use wakewatt_sim::sensitivity;
use wakewatt_sim::server::{Queues, Server, ServerError};
use wakewatt_sim::study::study;

/// Runs it.
pub fn run(args: &SimulateArgs) -> Result<Code> {
    if args.examples {
        output::print(&text::examples(EXAMPLES))?;
        return Ok(Code::Fine);
    }
    if let Some(name) = &args.example {
        output::print(shipped(name)?)?;
        return Ok(Code::Fine);
    }
    args.parquet.iter().try_for_each(|_| Feature::Parquet.need("simulate --parquet"))?;
    let Some(path) = &args.file else { return Ok(Code::Usage) };
    let refused = |why: String| Failure::error(Code::BadFile, format!("{}: {}", path.display(), visible::line(&why)));
    let mut server = Server::parse_with(&read(path)?, &asked(args)).map_err(|e| refused(e.to_string()))?;
    if let Some(file) = &args.arrivals {
        let taken = arrivals::taken(file)?;
        server.workload.arrivals = taken.arrivals;
        // Where what was assumed is said, this is said too.
        server.about = format!("{} Arrivals: {}", server.about.trim_end(), taken.told);
        server.check().map_err(|e| refused(format!("with --arrivals: {e}")))?;
    }
    if server.machine.iter().any(|machine| machine.queues == Queues::Shared) {
        server.about = format!(
            "{} In the shared queue a request stays with the CPU that it wakes; queues = \"unbound\" lets the first free CPU take it.",
            server.about.trim_end()
        );
    }
    if server.machine.iter().any(|machine| machine.threads > 1) {
        server.about = format!(
            "{} Watts at part load with SMT: published servers are modelled 5 to 30 % high (docs/methods/simulate-watts.md).",
            server.about.trim_end()
        );
    }
    for name in &args.setting {
        if !server.setting.iter().any(|s| s.name == *name) {
            let known: Vec<&str> = server.setting.iter().map(|s| s.name.as_str()).collect();
            let why = format!("no setting {name:?}; the file has {}", known.join(", "));
            return Err(Failure::error(Code::Usage, why));
        }
    }
    let n_threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    // No facts: the machines are of the file, not of this host.
    let nowhere = Tree::default();
    let page = args.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    let saving = saved::start(args.save.as_deref(), "simulate", &nowhere)?;
    let failed = |e: ServerError| refused(e.to_string());
    let mut found = study(&server, &args.sweep, &args.setting, n_threads).map_err(failed)?;
    found.sensitivity = sensitivity::of_study(&server, &found, n_threads).map_err(failed)?;
    // Files first: a terminal that is gone must not cost them.
    if let Some(page) = &page {
        super::write_page(page, &ModelledReport::of_study(&server, &found), &path.to_string_lossy())?;
    }
    let evidence = Evidence::of(samples(&server, &found, args.title.as_deref()));
    if let Some(file) = &args.parquet {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        quantity_table::write(file, &evidence, &now, "simulate")?;
    }
    output::print(&if args.json {
        output::json("simulate", &found)?
    } else if args.csv {
        csv::study(&found)
    } else {
        text::study(&found, args.details, output::width())
    })?;
    let rates = Rates { price: args.price.clone(), emission: args.co2.clone() };
    output::costs(&rates, &evidence)?;
    Ok(saving.map_or(Code::Fine, |saving| saving.finish_with(&evidence, Code::Fine)))
}

/// The options that stand for fields.
fn asked(args: &SimulateArgs) -> Vec<String> {
    let duration = args.duration.map(|ns| format!("run.duration={ns}ns"));
    let replications = args.replications.map(|n| format!("run.replications={n}"));
    let seed = args.seed.map(|n| format!("run.seed={n}"));
    args.set.iter().cloned().chain(duration).chain(replications).chain(seed).collect()
}

/// A file, or a shipped one by its name: what holds a slash or a point is a file.
fn read(path: &Path) -> Result<String> {
    let name = path.to_string_lossy();
    if name.contains('/') || name.contains('.') {
        return Ok(input::read_text(path, input::SERVER)?);
    }
    Ok(shipped(&name)?.to_string())
}

fn shipped(name: &str) -> Result<&'static str> {
    example(name).map(|e| e.text).ok_or_else(|| {
        let known: Vec<&str> = EXAMPLES.iter().map(|e| e.name).collect();
        Failure::error(
            Code::Usage,
            format!(
                "no shipped server {name:?}; there are {}; a file's name holds a point or a slash",
                known.join(", ")
            ),
        )
    })
}
