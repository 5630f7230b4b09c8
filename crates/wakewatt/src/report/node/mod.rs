//! The page of an agent: one node now and over the last hours, in the style of the report.
//!
//! Data flows as in the report: the agent's documents to `view` (every number as text) and `past` (drawings) to a template. The page holds no script: the
//! browser asks for it again every ten seconds, so it is whole without one, and its policy can forbid them all.

mod draw;
mod past;
mod tiles;
mod view;

use crate::report::template;
use anyhow::{Context, Result};
use minijinja::context;
use std::sync::Arc;
use wakewatt_agent::PageMaker;
use wakewatt_words::word;

/// The page is asked for again after this, in seconds: as often as an agent reads by itself where no other interval is asked for.
const REFRESH_S: u32 = 10;

/// Makes pages for as long as an agent lives; templates are read once.
pub(crate) fn maker() -> Result<PageMaker> {
    let env = template::environment()?;
    env.get_template("node_page.html").context("report template node_page.html")?;
    Ok(Arc::new(move |node, before| {
        let page = || {
            let template = env.get_template("node_page.html")?;
            template.render(context! {
                n => view::of(node, &|what| past::since(before, what)),
                past => past::of(before),
                title => node.hostname.as_deref().unwrap_or(word!("this node")),
                refresh_s => REFRESH_S,
            })
        };
        page().map_err(|why| format!("{why:#}"))
    }))
}

#[cfg(test)]
mod tests;
