//! `wakewatt agent`: the machine's metrics over HTTP, for months.

use crate::cli::agent::AgentArgs;
use crate::exit::Code;
use anyhow::Result;

#[cfg(feature = "agent")]
mod query;
#[cfg(feature = "agent")]
pub use query::Document;

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
    use std::time::Duration;
    use wakewatt_agent::history::Limits;
    use wakewatt_agent::{Admission, Engine, Format, Lent, Machine, NamedPayers, Plan, Started, is_private, listen};
    use wakewatt_core::watch::Sources;

    if let Some(AgentPast::Query(args)) = &args.past {
        return query::run(args);
    }
    let pair = args.tls_cert.as_deref().zip(args.tls_key.as_deref());
    let admission = Admission::open(pair, args.token_file.as_deref())?;
    if let Some(why) = lacking(&admission).filter(|_| !is_private(&args.listen)) {
        let why = format!("{}: others could ask there, and {why}; or listen on 127.0.0.1 or ::1", args.listen);
        return Err(Failure::error(Code::Refused, why));
    }
    if args.history.is_some() && args.interval > MOST_KEPT_INTERVAL_NS {
        let why =
            "--interval: with --history at most 60s; a longer pause could not be told from a time without an agent";
        return Err(Failure::error(Code::Usage, why));
    }
    let interrupt = Interrupt::listen()?;
    let plan = Plan {
        machine: match (&args.host, &args.sysroot) {
            (Some(file), _) => Machine::Recorded(file.clone()),
            (_, Some(folder)) => Machine::Tree(folder.clone()),
            _ => Machine::Here,
        },
        sources: match args.sources.as_str() {
            "package" => Sources::Package,
            "all" => Sources::All,
            _ => Sources::Quiet,
        },
        interval: Duration::from_nanos(args.interval),
        is_traced: args.trace,
        payers: args.by.map(|by| NamedPayers { by: by.into(), n_places: args.top }),
        is_per_cpu: args.per_cpu,
        version: env!("CARGO_PKG_VERSION"),
        history: args.history.clone().map(|folder| {
            let free_share = f64::from(args.history_free) / 100.0;
            (folder, Limits { most_bytes: args.history_limit, free_share })
        }),
    };
    if args.once {
        let engine = Engine::open(plan)?;
        remark(engine.not_traced_because());
        if let Some(why) = engine.no_payers_because() {
            output::remark(&format!("who pays is not told: {why}"));
        }
        output::print(&String::from_utf8_lossy(&Format::Text.write(engine.page())))?;
        return Ok(Code::Fine);
    }
    let listener = listen(args.listen).map_err(failed)?;
    let address = listener.local_addr().unwrap_or(args.listen);
    let scheme = if admission.is_encrypted() { "https" } else { "http" };
    let told = |started: &Started| {
        remark(started.not_traced_because.as_deref());
        if let Some(why) = &started.no_payers_because {
            output::remark(&format!("who pays is not told: {why}"));
        }
        started.trace_gaps.iter().for_each(|gap| output::remark(&format!("not traced: {gap}")));
        // A history that cannot be kept is no reason to answer nothing; every page says so, too.
        if let Some(why) = &started.no_history_because {
            output::remark(&format!("the past is not kept: {why}"));
        }
        output::remark(&format!(
            "this node at {scheme}://{address}/, metrics at {scheme}://{address}/metrics; Ctrl-C ends it"
        ));
    };
    let other = interrupt.clone();
    let page = crate::report::node::maker()?;
    let lent = Lent { page, admission, wait: || interrupt.wait(), wake: Arc::new(move || other.set()) };
    wakewatt_agent::run(plan, listener, told, lent).map_err(failed)?;
    Ok(Code::Interrupted)
}

/// What is missing before others may ask, and what to do.
#[cfg(feature = "agent")]
fn lacking(admission: &wakewatt_agent::Admission) -> Option<&'static str> {
    match (admission.is_encrypted(), admission.has_token()) {
        (true, true) => None,
        (false, false) => {
            Some("answers are neither encrypted nor behind a password: give --tls-cert, --tls-key and --token-file")
        }
        (false, true) => Some("the token would be sent for all to read: give --tls-cert and --tls-key"),
        (true, false) => Some("everybody would be answered: give --token-file"),
    }
}

/// Whoever keeps the agent running tells by the code whether to start another one.
#[cfg(feature = "agent")]
fn failed(trouble: wakewatt_agent::Trouble) -> anyhow::Error {
    use crate::exit::Failure;
    use wakewatt_agent::Trouble;
    match trouble {
        Trouble::Read(refusal) => refusal.into(),
        Trouble::Start(_) | Trouble::Ended(_) => Failure::error(Code::CouldNotMeasure, trouble.to_string()),
        Trouble::Listen { .. } => trouble.into(),
    }
}

#[cfg(feature = "agent")]
fn remark(not_traced_because: Option<&str>) {
    if let Some(why) = not_traced_because {
        crate::output::remark(&format!("wake-ups are not traced: {why}"));
    }
}

#[cfg(all(test, feature = "agent"))]
mod tests {
    use super::*;
    use crate::exit::code_of;
    use wakewatt_agent::Trouble;

    #[test]
    fn an_agent_that_died_is_no_success() {
        let died = failed(Trouble::Ended("reads"));
        assert_eq!(code_of(&died), Code::CouldNotMeasure);
        assert!(died.to_string().contains("the thread that reads ended"), "{died}");
    }
}
