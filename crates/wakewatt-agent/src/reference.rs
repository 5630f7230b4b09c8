//! The page `docs/ref/metrics.md`: every metric with its kind, unit, labels and meaning.

use crate::metric::names::METRICS;
use std::fmt::Write as _;

/// The page, without its heading line about who made it.
pub fn metrics() -> String {
    let mut page = String::from(
        "# Metrics of `wakewatt agent`\n\n\
         Base units; counters count from the start of the agent (`wakewatt_agent_start_time_seconds`, and `_created` in OpenMetrics). A label that is not known is\n\
         left out, and so is a sample that cannot be read. `cpu` appears with `--per-cpu` only, in place of sums over node and package.\n\n\
         | metric | kind | unit | labels | meaning |\n|---|---|---|---|---|\n",
    );
    for metric in METRICS {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            metric.sample_name(),
            metric.kind.word(),
            metric.unit.unwrap_or("–"),
            metric.labels.join(", "),
            metric.help
        );
    }
    page
}
