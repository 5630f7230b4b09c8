//! Levels of an open shop one after the other: what `load shop` runs.
//!
//! A level that fails ends the run, and what was done before is returned.

use super::{CpuOf, GeneratorUse, Shop, ShopSpec};
use crate::context::Lab;
use crate::load::settings::Watch;
use crate::load::usage::NO_LOAD_AVERAGE;
use crate::refusal::Refusal;
use serde::Serialize;
use wakewatt_core::samples::load::{Ask, Length, LoadRun};
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::repeated;
use wakewatt_core::units::{show_ns, three_digits};

/// What is to be run.
pub struct ShopPlan {
    /// The shop.
    pub spec: ShopSpec,
    /// In order.
    pub asks: Vec<Ask>,
    /// Settle, ramp up, record, ramp down.
    pub phases_ns: [u64; 4],
    /// What these lengths are called.
    pub length: Length,
    /// Do its clients think? Requests at a rate come whatever they think.
    pub is_thinking: bool,
}

/// What `load shop` found: a load run, and what is the shop's alone.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Opens the shop (or asks one that is open) and runs the levels.
pub fn levels(lab: Lab<'_>, plan: ShopPlan) -> Result<ShopRun, Refusal> {
    let Lab { src, stop, tell, clock } = lab;
    let ShopPlan { spec, asks, phases_ns, length, is_thinking } = plan;
    tell.progress(0.0, "opening the shop");
    let think_ns = is_thinking.then_some(spec.think_ns);
    let mut shop = match Shop::start(spec, stop, src) {
        Err(_) if lab.is_stopped() => return Err(Refusal::Stopped("interrupted".into())),
        other => other.map_err(Refusal::Unavailable)?,
    };
    let about = ShopDescription {
        title: shop.title.clone(),
        think_ns,
        cpu_of: shop.cpu_of,
        is_here: shop.is_here,
        clients: Vec::new(),
    };
    let mut done = ShopRun { run: LoadRun { length, ..shop.run(src) }, shop: about, not_done: Vec::new() };
    // Settings of another host cannot be seen from here.
    let mut watch = shop.is_here.then(|| Watch::start(src, clock.now_ns()));
    for (at, ask) in asks.iter().enumerate() {
        let left = asks.len() - at;
        let takes = show_ns(phases_ns.iter().sum::<u64>() * left as u64);
        tell.progress(at as f64 / asks.len() as f64, &format!("{}; about {takes} left", asked(*ask)));
        match shop.ran(*ask, phases_ns, stop, src) {
            Ok(ran) => {
                done.run.levels.push(ran.level);
                done.shop.clients.push(ran.generator);
                done.run.changes.extend(watch.iter_mut().flat_map(|watch| watch.look(src, clock.now_ns())));
            }
            Err(why) => done.not_done.push(NotDone::named(asked(*ask), why)),
        }
        if lab.is_stopped() || !done.not_done.is_empty() {
            break;
        }
    }
    // What ended the last level may be what somebody changed.
    done.run.changes.extend(watch.iter_mut().flat_map(|watch| watch.look(src, clock.now_ns())));
    if done.shop.is_here && done.run.levels.iter().any(|l| l.load_average.is_none()) {
        done.run.remarks.push(NO_LOAD_AVERAGE.into());
    }
    done.run.remarks.extend(repeated::told(&done.run));
    Ok(done)
}

/// "500 clients", "200 requests/s".
pub fn asked(ask: Ask) -> String {
    match ask {
        Ask::Rate(per_s) => format!("{} requests/s", three_digits(per_s)),
        _ => ask.to_string(),
    }
}
