//! `wakewatt explain`: what a term, an idle state, a rule or a setting means, with this machine's own numbers.
//!
//! Terms, states and rules are core's to explain; settings are `tune`'s, from the words it keeps of each. Reading is that
//! of `doctor --read-only`: every topic, on a live machine one register per package.

use crate::cli::explain::ExplainArgs;
use crate::exit::{Code, Failure};
use crate::output::{self, Colour};
use crate::view::wrap::wrap;
use crate::view::{Style, origin};
use anyhow::Result;
use std::fmt::Write as _;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::explain::{Explanation, Here, Kind, explain, names};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::nearest::most_like;
use wakewatt_core::source::Source;
use wakewatt_core::visible;
use wakewatt_tune::knob::{Host, Knob};
use wakewatt_tune::knobs::KNOBS;
use wakewatt_tune::reference;
use wakewatt_words::{Language, say, told, within, word};

/// So many suggestions for an unknown word.
const SUGGESTIONS: usize = 4;

/// Runs it.
pub fn run(args: &ExplainArgs, colour: Colour) -> Result<Code> {
    let language = if args.json { Language::English } else { wakewatt_words::wanted() };
    within(language, || explained(args, colour))
}

fn explained(args: &ExplainArgs, colour: Colour) -> Result<Code> {
    let source = super::open(&args.from)?;
    let evidence = Evidence { facts: Snapshot::read(&*source, |_| true), ..Evidence::default() };
    let Some(word) = &args.term else {
        output::print(&(all_names(&evidence).join("\n") + "\n"))?;
        return Ok(Code::Fine);
    };
    let Some(explanation) = explain(word, &evidence).or_else(|| knob(word, &*source)) else {
        return Err(unknown(word, &evidence));
    };
    if args.json {
        output::print(&output::json("explain", &explanation)?)?;
    } else {
        output::print(&text(&explanation, Style { is_on: colour.is_on() }))?;
    }
    Ok(Code::Fine)
}

/// Terms, states and rules of core, settings of tune; each spelling once.
fn all_names(evidence: &Evidence) -> Vec<String> {
    let mut all = names(evidence);
    all.extend(KNOBS.iter().map(|k| k.about().id.to_string()));
    let mut seen = std::collections::HashSet::new();
    all.retain(|name| seen.insert(name.to_lowercase()));
    all
}

fn unknown(word: &str, evidence: &Evidence) -> anyhow::Error {
    let all = all_names(evidence);
    let near = most_like(word, all.iter().map(String::as_str), SUGGESTIONS);
    let word = visible::line(word);
    let help = match near.is_empty() {
        true => say!("wakewatt explain --list shows every word"),
        false => say!("did you mean {near}?", near = near.join(", ")),
    };
    Failure::error(Code::Usage, say!("no explanation of \"{word}\"; {help}"))
}

/// A setting, by its id or by that of one of its sites (`idle.state.C6`).
fn knob(word: &str, source: &dyn Source) -> Option<Explanation> {
    let word = word.trim();
    let is_it = |id: &str| {
        word.get(..id.len()).is_some_and(|front| front.eq_ignore_ascii_case(id))
            && (word.len() == id.len() || word[id.len()..].starts_with('.'))
    };
    let knob: &dyn Knob = *KNOBS.iter().filter(|k| is_it(k.about().id)).max_by_key(|k| k.about().id.len())?;
    let (about, host) = (knob.about(), Host::read(source));
    let (mut here, mut cannot_tell) = (Vec::new(), Vec::new());
    match knob.sites(&host) {
        Err(why) => cannot_tell.push(why),
        Ok(mut sites) => {
            if word.len() > about.id.len() {
                sites.retain(|s| s.name.eq_ignore_ascii_case(word));
            }
            if sites.is_empty() {
                cannot_tell.push(say!("there is no setting {name} here", name = visible::line(word)));
            }
            for site in &sites {
                let now = site.now.as_ref().map(|text| knob.decode(site, text));
                let now = now.or_else(|| site.unread.clone()).unwrap_or_else(|| word!("unknown").into());
                let says = match &site.refusal {
                    Some(why) => say!("{now} (takes nothing: {why})"),
                    None => say!("{now} (takes {words})", words = site.valid),
                };
                if here.iter().all(|h: &Here| h.what != site.name || h.says != says) {
                    here.push(Here { what: site.name.clone(), says });
                }
            }
        }
    }
    Some(Explanation {
        origin: host.facts.origin.clone(),
        name: about.id.into(),
        kind: Kind::Knob,
        family: None,
        title: Some(told(about.title).into()),
        text: reference::lines(about).join("\n"),
        here,
        cannot_tell,
        source: Some(about.source.into()),
        see_also: about.moves.iter().map(ToString::to_string).collect(),
    })
}

fn text(explanation: &Explanation, style: Style) -> String {
    let width = output::width();
    let mut out = style.bold(&explanation.name);
    if let Some(title) = &explanation.title {
        let _ = write!(out, "  {}", style.dim(title));
    }
    out.push('\n');
    for paragraph in explanation.text.lines() {
        let _ = writeln!(out, "{}", wrap("  ", "  ", paragraph, width));
    }
    let _ = writeln!(out, "\n{}", style.bold(&say!("On {host}", host = visible::line(&origin(&explanation.origin)))));
    for Here { what, says } in &explanation.here {
        let _ = writeln!(out, "{}", wrap(&say!("  {what}: ", what = visible::line(what)), "    ", says, width));
    }
    for why in &explanation.cannot_tell {
        let _ = writeln!(out, "{}", wrap(word!("  cannot tell: "), "    ", why, width));
    }
    out.push('\n');
    if let Some(source) = &explanation.source {
        let _ = writeln!(out, "{}", style.dim(&wrap(word!("Source: "), "  ", source, width)));
    }
    if !explanation.see_also.is_empty() {
        let _ =
            writeln!(out, "{}", style.dim(&wrap(word!("See also: "), "  ", &explanation.see_also.join(", "), width)));
    }
    out
}
