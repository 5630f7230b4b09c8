//! A trace as one HTML page: the report's style and parts, its own order.

use super::{TraceReport, view};
use crate::report::finish::finish;
use crate::report::template;
use anyhow::Context;
use minijinja::context;

/// The page.
pub(super) fn render(report: &TraceReport<'_>) -> anyhow::Result<String> {
    let env = template::environment()?;
    let page = env.get_template("trace_page.html").context("report template trace_page.html")?;
    page.render(context! {
        traced => view::of(report.traced, report.is_by_cpu),
        title => report.title,
        generated_at => report.generated_at,
        version => env!("CARGO_PKG_VERSION"),
    })
    .context("filling the trace template")
    .map(|html| finish(&html))
}
