//! One HTML file: no network, no script, opens from a USB stick, follows light, dark and print.
//!
//! Facts are foreign text (a kernel command line may hold anything), so the engine escapes every value; the only strings
//! passed through are the figures, whose writer escapes for itself. A content security policy in the page forbids
//! loading anything, so even a mistake here could not call out.

use super::finish::finish;
use super::{Report, template, view};
use anyhow::Context;
use minijinja::context;

/// The page.
pub fn render(report: &Report) -> anyhow::Result<String> {
    let env = template::environment()?;
    let page = env.get_template("page.html").context("report template page.html")?;
    let html = page.render(context! { r => view::of(report) }).context("filling the report template")?;
    Ok(finish(&html))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use wakewatt_core::facts::Snapshot;
    use wakewatt_core::samples::not_done::{NotDone, Step};
    use wakewatt_core::source::Tree;

    /// Elements that never close.
    const VOID: [&str; 4] = ["meta", "br", "hr", "wbr"];

    /// Every tag closes in order: a page that a browser had to mend is not the page that was meant.
    fn unbalanced(html: &str) -> Option<String> {
        let mut open: Vec<String> = Vec::new();
        for tag in html.split('<').skip(1).filter(|t| !t.starts_with('!')) {
            let Some((inside, _)) = tag.split_once('>') else { return Some(format!("unclosed: {tag:.40}")) };
            let name: String =
                inside.trim_start_matches('/').chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
            if inside.starts_with('/') {
                let top = open.pop().unwrap_or_default();
                if top != name {
                    return Some(format!("</{name}> closes <{top}>"));
                }
            } else if !inside.ends_with('/') && !VOID.contains(&name.as_str()) {
                open.push(name);
            }
        }
        (!open.is_empty()).then(|| format!("never closed: {open:?}"))
    }

    #[test]
    fn every_page_is_whole_and_calls_nobody() {
        for (name, report) in sample::all() {
            let html = render(&report).unwrap();
            for forbidden in ["http://", "https://", "<script", "src=", "url(", "@import", "<link", "xmlns", "NaN"] {
                assert!(!html.contains(forbidden), "{name}: {forbidden}");
            }
            assert_eq!(unbalanced(&html), None, "{name}");
            assert!(html.contains("<html lang=\"en\"") && html.contains("name=\"viewport\""), "{name}");
            assert!(html.contains(r#"scope="col""#) || report.evidence.samples.experiment.is_none(), "{name}");
        }
    }

    #[test]
    fn the_page_shows_every_part() {
        let html = render(&sample::three_arms()).unwrap().replace('\u{a0}', " ").replace("&#x2f;", "/");
        for part in [
            "Put back: yes",
            "C6",
            "170 µs",
            "<figcaption>",
            "<title",
            "<desc",
            "10 of 10 rounds agree",
            "rule.dimm-speed",
            "95 %",
            "/dev/cpu_dma_latency",
            "measured",
            "claimed",
            "SCHED_OTHER",
            "0x5eed",
        ] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn foreign_text_never_becomes_markup() {
        let evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
        let mut report = sample::two_arms();
        let root = "/sys/devices/system/cpu";
        let text = format!(
            "//- {root}/online\n0\n//- {root}/present\n0\n//- {root}/cpuidle/current_driver\n{evil}\n//- {root}/cpu0/cpuidle/state0/name\n{evil}\n//- {root}/cpu0/cpuidle/state0/latency\n{evil}\n"
        );
        let facts = Snapshot::read(&Tree::from_text(&text), |_| true);
        report.evidence.facts = facts;
        report.title = evil.into();
        report.host_sheets = report.evidence.facts.sheets();
        report.evidence.not_done.push(NotDone::new(Step::Unnamed, evil));
        let run = report.evidence.samples.experiment.as_mut().unwrap();
        run.arms[1].title = evil.into();
        run.arms[0].id = evil.into();
        run.blocks.iter_mut().filter(|b| b.arm == "default").for_each(|b| b.arm = evil.into());
        run.metrics[0].title = evil.into();
        run.pooled.iter_mut().for_each(|p| p.title = evil.into());
        run.effects.iter_mut().for_each(|e| e.baseline = evil.into());
        run.before[0].1 = evil.into();
        let html = render(&report).unwrap();
        assert!(!html.contains("<script") && !html.contains("<img") && html.contains("&lt;script"), "escaped");
        assert_eq!(unbalanced(&html), None);
    }

    #[test]
    fn a_long_list_folds_and_settings_left_behind_are_shouted() {
        let mut report = sample::two_arms();
        report.evidence.not_done = (0..40).map(|i| NotDone::named(format!("thing {i}"), "not there")).collect();
        report.evidence.samples.experiment.as_mut().unwrap().after[1].1 = "n/a".into();
        let html = render(&report).unwrap();
        assert!(html.contains("more</summary>") && html.contains("Thing 39"), "all are there");
        assert!(html.contains("Put back: NO") && html.contains("class=\"warning\""), "not put back");
        assert_eq!(unbalanced(&html), None);
    }
}
