//! `wakewatt load shop`: arguments to a plan, and what came of it. With `--listen` there are no clients (`open`).

mod database;
mod open;
mod text;

pub use open::serve_for_parent;

use crate::cli::shop::ShopArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::meters::meters;
use crate::output::{self, Colour};
use crate::progress::Progress;
use crate::saved;
use anyhow::{Context, Result};
use std::path::Path;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::load::{Ask, Length};
use wakewatt_host::input;
use wakewatt_host::live::Live;
use wakewatt_lab::meters::Meters;
use wakewatt_lab::shop::client::Mix;
use wakewatt_lab::shop::levels::{ShopPlan, levels};
use wakewatt_lab::shop::server::Storage;
use wakewatt_lab::shop::{self, MOST_OPEN, Serving, ShopSpec, on_disk};

const IN_MEMORY: &str = "/dev/shm";

/// Runs it.
pub(super) fn run(args: &ShopArgs) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    if let Some(listen) = args.listen {
        return open::only_serve(args, listen, storage(args)?, &interrupt);
    }
    let src = Live::this_machine();
    let saving = saved::start(args.save.as_deref(), "load shop", &src)?;
    let length = length(args);
    let plan = ShopPlan {
        spec: spec(args, meters(&args.meters)?)?,
        asks: asks(args),
        phases_ns: phases(args, length),
        length,
        is_thinking: args.rate.is_empty(),
    };
    let done = levels(interrupt.lab(&src, &Progress::start("load shop")), plan)?;
    let shown = match args.json {
        true => output::json("load-shop", &done).and_then(|text| output::print(&text)),
        false => output::print(&text::text(&done, output::width(), Colour::Auto.is_on())),
    };
    let own = match (interrupt.is_set(), done.not_done.is_empty()) {
        (true, _) => Code::Interrupted,
        (_, true) => Code::Fine,
        _ => Code::CouldNotMeasure,
    };
    let evidence = Evidence {
        not_done: done.not_done,
        samples: Samples { load: vec![done.run], ..Samples::default() },
        ..Evidence::default()
    };
    let priced = if args.json { Ok(()) } else { output::costs(&args.meters.rates.rates(), &evidence) };
    let own = output::settled(shown.and(priced), own);
    Ok(saving.map_or(own, |saving| saving.finish_with(&evidence, own)))
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
    let folder = if args.in_memory { IN_MEMORY.into() } else { args.folder.clone().unwrap_or_else(on_disk) };
    Ok(Storage::Sqlite { folder, is_durable: args.durable })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of `load shop` alone.
    #[derive(clap::Parser)]
    struct ShopLine {
        #[command(flatten)]
        args: ShopArgs,
    }

    #[test]
    fn a_workload_of_an_experiment_is_what_the_command_line_gives_unasked() {
        let line = <ShopLine as clap::Parser>::parse_from(["shop", "--clients", "7", "--seed", "3"]);
        let (own, asked) = (ShopSpec::own(7, 3, Meters::none()).unwrap(), spec(&line.args, Meters::none()).unwrap());
        assert_eq!(format!("{:?}", own.serving), format!("{:?}", asked.serving));
        let rest =
            |s: &ShopSpec| (s.cpus.clone(), s.client_cpus.clone(), s.n_clients, s.think_ns, s.timeout_ns, s.seed);
        assert_eq!(rest(&own), rest(&asked));
    }
}
