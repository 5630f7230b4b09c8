//! `wakewatt tune knobs`: what can be set here, what it says now, what it takes.

use crate::cli::tune::KnobsArgs;
use crate::exit::{Code, Failure};
use crate::output::{self, Colour};
use crate::view::wrap::wrap;
use crate::view::{Style, origin};
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_tune::knob::{Host, Knob, Reversible, Scope, Site};
use wakewatt_tune::knobs::KNOBS;
use wakewatt_words::{Language, say, told, within, word};

/// One knob on a host.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnobHere {
    /// Id of the knob.
    pub id: String,
    /// What it sets, in words.
    pub title: String,
    /// Unit and form of a value.
    pub unit: String,
    /// What one setting reaches.
    pub scope: Scope,
    /// What the register behind it reaches.
    pub io_scope: Scope,
    /// Can it be taken back?
    pub reversible: Reversible,
    /// What setting it costs, in words.
    pub price: String,
    /// What can go wrong.
    pub risk: String,
    /// What daemons that turn it call it.
    pub overlaps: Vec<String>,
    /// Where it can be set; empty where it cannot.
    pub sites: Vec<Site>,
    /// Why it cannot be set here; none where it can.
    pub missing: Option<String>,
}

/// All knobs on a host.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knobs {
    /// Which host this is about: this one, or a recording.
    pub origin: String,
    /// In the order of the list.
    pub knobs: Vec<KnobHere>,
}

/// Runs it.
pub(super) fn run(args: &KnobsArgs, colour: Colour) -> Result<Code> {
    let language = if args.json { Language::English } else { wakewatt_words::wanted() };
    within(language, || listed(args, colour))
}

fn listed(args: &KnobsArgs, colour: Colour) -> Result<Code> {
    let source = crate::cmd::open(&args.from)?;
    let host = Host::read(&*source);
    let is_wanted =
        |id: &str| args.ids.is_empty() || args.ids.iter().any(|w| id.starts_with(w.as_str()) || w.starts_with(id));
    let chosen: Vec<&dyn Knob> = KNOBS.iter().copied().filter(|k| is_wanted(k.about().id)).collect();
    if chosen.is_empty() {
        let ids: Vec<&str> = KNOBS.iter().map(|k| k.about().id).collect();
        return Err(Failure::error(
            Code::Usage,
            say!("{asked}: no such knob; there are {ids}", asked = args.ids.join(", "), ids = ids.join(", ")),
        ));
    }
    let knobs =
        Knobs { origin: host.facts.origin.clone(), knobs: chosen.iter().map(|k| here(*k, &host, &args.ids)).collect() };
    if args.json {
        output::print(&output::json("tune-knobs", &knobs)?)?;
    } else {
        output::print(&text(&knobs, &chosen, Style { is_on: colour.is_on() }, !args.ids.is_empty()))?;
    }
    Ok(Code::Fine)
}

fn here(knob: &dyn Knob, host: &Host<'_>, wanted: &[String]) -> KnobHere {
    let about = knob.about();
    let (mut sites, missing) = match knob.sites(host) {
        Ok(sites) => (sites, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    // `idle.state.C6` names one of a knob's settings.
    if wanted.iter().any(|w| w.len() > about.id.len() && sites.iter().any(|s| s.name == *w)) {
        sites.retain(|s| wanted.contains(&s.name));
    }
    KnobHere {
        id: about.id.into(),
        title: told(about.title).into(),
        unit: told(about.unit).into(),
        scope: about.scope,
        io_scope: about.io_scope,
        reversible: about.reversible,
        price: about.price.in_general(),
        risk: told(about.risk).into(),
        overlaps: about.overlaps.iter().map(ToString::to_string).collect(),
        sites,
        missing,
    }
}

fn text(knobs: &Knobs, chosen: &[&dyn Knob], style: Style, is_long: bool) -> String {
    let mut out = String::new();
    let width = output::width();
    let head = say!("Settings of {host} (wakewatt tune plan --set NAME[@PLACE]=VALUE)", host = origin(&knobs.origin));
    let _ = writeln!(out, "{head}");
    let mut absent = Vec::new();
    for (here, knob) in knobs.knobs.iter().zip(chosen) {
        if let Some(why) = &here.missing {
            absent.push((here, why));
            continue;
        }
        let _ = writeln!(out, "\n{}  {}", style.bold(&here.id), style.dim(&here.title));
        for (name, now, valid, at) in summary(*knob, &here.sites) {
            let _ = writeln!(out, "{}", wrap(&format!("  {name} = {now}  "), "      ", &at, width));
            let _ = writeln!(out, "{}", wrap(&say!("      takes "), "        ", &valid, width));
        }
        if is_long {
            for (word, what) in
                [(word!("unit"), &here.unit), (word!("price"), &here.price), (word!("risk"), &here.risk)]
            {
                let _ = writeln!(out, "{}", wrap(&format!("      {word}: "), "        ", what, width));
            }
        }
    }
    if !absent.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("Not here")));
        for (here, why) in absent {
            let _ = writeln!(out, "{}", wrap(&format!("  {}: ", here.id), "      ", why, width));
        }
    }
    out
}

/// Equal sites together: name, value now, values taken, where.
fn summary(knob: &dyn Knob, sites: &[Site]) -> Vec<(String, String, String, String)> {
    let mut rows: Vec<(String, String, String, CpuSet, Vec<&Site>)> = Vec::new();
    for site in sites {
        let now = site.now.as_ref().map_or_else(
            || format!("({})", site.unread.as_deref().unwrap_or(word!("unknown"))),
            |text| knob.decode(site, text),
        );
        let valid = site.refusal.as_ref().map_or_else(|| site.valid.to_string(), |why| say!("nothing: {why}"));
        let is_like = |r: &&mut (String, String, String, CpuSet, Vec<&Site>)| {
            r.0 == site.name && r.1 == now && r.2 == valid && r.4.iter().all(|other| other.kind == site.kind)
        };
        match rows.iter_mut().find(is_like) {
            Some(row) => {
                row.3 = row.3.union(&site.cpus);
                row.4.push(site);
            }
            None => rows.push((site.name.clone(), now, valid, site.cpus.clone(), vec![site])),
        }
    }
    let place = |cpus: &CpuSet, sites: &[&Site]| {
        let names: Vec<&str> = sites.iter().map(|s| s.place.as_str()).collect();
        let names = match names.len() {
            1..=3 => names.join(", "),
            n => say!("{names} and {n_more} more", names = names[..2].join(", "), n_more = n - 2),
        };
        match (sites.first().and_then(|s| s.kind.as_deref()), cpus.is_empty()) {
            (Some(kind), true) => format!("{kind}: {names}"),
            (Some(kind), false) => say!("{kind}: {names}; CPUs {cpus}"),
            (None, false) => say!("CPUs {cpus}"),
            (None, true) => names,
        }
    };
    rows.into_iter().map(|(name, now, valid, cpus, sites)| (name, now, valid, place(&cpus, &sites))).collect()
}
