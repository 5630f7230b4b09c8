//! `wakewatt agent`: the machine's metrics over HTTP, for months.

use crate::cli::agent::AgentArgs;
use crate::exit::Code;
use anyhow::Result;

#[cfg(feature = "agent")]
mod admit;
#[cfg(feature = "agent")]
mod document;
#[cfg(feature = "agent")]
mod query;
#[cfg(feature = "agent")]
mod table;
#[cfg(feature = "agent")]
pub use document::Document;
#[cfg(feature = "agent")]
mod told;

/// Twice and a half of it is what a query takes for no gap.
#[cfg(feature = "agent")]
const MOST_KEPT_INTERVAL_NS: u64 = 60_000_000_000;

#[cfg(not(feature = "agent"))]
pub(super) fn run(_: &AgentArgs) -> Result<Code> {
    Err(crate::features::Feature::Agent.lacking("agent"))
}

#[cfg(feature = "agent")]
pub(super) fn run(args: &AgentArgs) -> Result<Code> {
    use crate::cli::agent::AgentPast;
    use crate::exit::Failure;
    use crate::interrupt::Interrupt;
    use crate::output;
    use std::sync::Arc;
    use wakewatt_agent::{Engine, Format, Lent, Say, Started, Teller};

    if let Some(AgentPast::Query(args)) = &args.past {
        return query::run(args);
    }
    // The past's fault and the agent's own go to the same log.
    let say: Say = Arc::new(output::remark);
    let certificate = Teller::new("certificate", Arc::clone(&say));
    let admission = admit::admission(args, &certificate)?;
    if args.history.is_some() && args.interval.is_some_and(|ns| ns > MOST_KEPT_INTERVAL_NS) {
        let why =
            "--interval: with --history at most 60s; a longer pause could not be told from a time without an agent";
        return Err(Failure::error(Code::Usage, why));
    }
    let push = admit::push(args)?;
    let interrupt = Interrupt::listen()?;
    let mut plan = plan(args);
    plan.measured = args.measured.as_deref().map(measured).transpose()?;
    if args.once {
        let engine = Engine::open(plan)?;
        told::not_traced(engine.not_traced_because());
        told::no_payers(engine.no_payers_because());
        output::print(&String::from_utf8_lossy(&Format::Text.write(engine.page())))?;
        return Ok(Code::Fine);
    }
    plan.confine = Some(admit::confine(args));
    plan.beside = admit::beside(args, push.as_ref());
    plan.tellers.extend(admission.is_encrypted().then_some(certificate));
    let push = push.map(|push| (push, Teller::new("push", say)));
    if let Some((_, teller)) = &push {
        plan.outbox = Some(wakewatt_agent::Outbox::default());
        plan.tellers.push(teller.clone());
    }
    let (door, place) = admit::door(args, admission.is_encrypted())?;
    let told = |started: &Started| told::started(started, &place);
    let other = interrupt.clone();
    let page = crate::report::node::maker()?;
    let lent = Lent { page, admission, push, wait: || interrupt.wait(), wake: Arc::new(move || other.set()) };
    wakewatt_agent::run(plan, door, told, lent).map_err(failed)?;
    Ok(Code::Interrupted)
}

#[cfg(feature = "agent")]
fn plan(args: &AgentArgs) -> wakewatt_agent::Plan {
    use wakewatt_agent::history::Limits;
    use wakewatt_agent::{Machine, Plan};
    use wakewatt_core::watch::Sources;

    let machine = match (&args.host, &args.sysroot) {
        (Some(file), _) => Machine::Recorded(file.clone()),
        (_, Some(folder)) => Machine::Tree(folder.clone()),
        _ => Machine::Here,
    };
    let sources = match args.sources.as_str() {
        "package" => Sources::Package,
        "all" => Sources::All,
        _ => Sources::Quiet,
    };
    let history = args.history.clone().map(|folder| {
        let free_share = f64::from(args.history_free) / 100.0;
        (folder, Limits { most_bytes: args.history_limit, free_share })
    });
    Plan {
        interval: args.interval.map(std::time::Duration::from_nanos),
        is_traced: args.trace,
        payers: args.by.map(|by| wakewatt_agent::NamedPayers { by: by.into(), n_places: args.top }),
        is_per_cpu: args.per_cpu,
        history,
        ..Plan::of(machine, sources, env!("CARGO_PKG_VERSION"))
    }
}

/// What a run measured of leaving idle states.
#[cfg(feature = "agent")]
fn measured(run: &std::path::Path) -> Result<wakewatt_agent::MeasuredExits> {
    let (_, evidence) = crate::saved::open(run)?;
    let bad = |why| crate::exit::Failure::error(Code::BadFile, format!("{}: {why}", run.display()));
    wakewatt_agent::MeasuredExits::of(&evidence).map_err(bad)
}

/// Whoever keeps the agent running tells by the code whether to start another one.
#[cfg(feature = "agent")]
fn failed(trouble: wakewatt_agent::Trouble) -> anyhow::Error {
    use crate::exit::Failure;
    use wakewatt_agent::Trouble;
    match trouble {
        Trouble::Read(refusal) => refusal.into(),
        Trouble::Start(_) | Trouble::Clock(_) | Trouble::Ended(_) | Trouble::Unconfined(_) => {
            Failure::error(Code::CouldNotMeasure, trouble.to_string())
        }
        Trouble::Listen { .. } => trouble.into(),
    }
}

#[cfg(all(test, feature = "agent"))]
mod tests {
    use super::*;
    use crate::exit::code_of;
    use wakewatt_agent::Trouble;

    #[test]
    fn an_agent_that_died_is_no_success() {
        let died = failed(Trouble::Ended("reads and answers"));
        assert_eq!(code_of(&died), Code::CouldNotMeasure);
        assert!(died.to_string().contains("the thread that reads and answers ended"), "{died}");
    }
}
