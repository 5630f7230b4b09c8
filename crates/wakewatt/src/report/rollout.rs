//! A rollout as one HTML page: how it stands, what its gates saw before and after with the moment of each stage, who is what.

use super::template;
use super::trace::clean;
pub use super::view::rollout::Course;
use super::view::rollout::sections;
use super::view::section::Section;
use anyhow::Context;
use minijinja::context;
use serde::Serialize;
use wakewatt_fleet::rollout::state::{Is, Rollout};
use wakewatt_words::{say, spoken};

/// The page, apart from when it was made.
#[derive(Debug, Serialize)]
pub struct RolloutReport {
    title: String,
    sentence: String,
    then: Vec<String>,
    sections: Vec<Section>,
}

impl RolloutReport {
    /// Of a document; `is` says a node's state in words.
    pub fn of(r: &Rollout, courses: &[Course], remarks: Vec<String>, is: &dyn Fn(Is) -> &'static str) -> RolloutReport {
        spoken(|| {
            let mut then: Vec<String> = r.why.iter().map(|why| clean(&say!("Why: {why}."))).collect();
            then.push(clean(&say!("{}, begun by {}, over {}.", r.id, r.by, r.carrier)));
            let sections = sections(r, courses, remarks, is);
            RolloutReport { title: clean(&r.name), sentence: clean(&r.sentence()), then, sections }
        })
    }

    /// The self-contained page.
    pub fn to_html(&self, generated_at: &str) -> anyhow::Result<String> {
        wakewatt_words::spoken(|| {
            let env = template::environment()?;
            let page = env.get_template("rollout_page.html").context("report template rollout_page.html")?;
            page.render(context! {
                r => self,
                title => self.title,
                generated_at => generated_at,
                version => env!("CARGO_PKG_VERSION"),
            })
            .context("filling the page of a rollout")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_fleet::rollout::plan::{EXAMPLE, parse};
    use wakewatt_fleet::rollout::state::Beginning;

    #[test]
    fn a_page_marks_each_stage_and_loads_nothing() {
        let plan = parse(EXAMPLE).unwrap();
        let names = (0..12).map(|n| format!("n{n}")).collect();
        let beginning = Beginning { id: "x-1".into(), by: "<b>ann".into(), carrier: "ssh".into(), now_ms: 1_000_000 };
        let mut r = Rollout::new(&plan, EXAMPLE, names, beginning);
        for (at, stage) in r.stages.iter_mut().enumerate() {
            stage.began_ms = Some(1_000_000 + at as u64 * 600_000);
            stage.changed_ms = Some(1_060_000 + at as u64 * 600_000);
        }
        let at_ms: Vec<u64> = (0..40).map(|n| n * 60_000).collect();
        let line = at_ms.iter().map(|at| (*at != 600_000).then_some(*at as f64 / 1e6)).collect();
        let courses = [Course {
            name: "errors".into(),
            what: "value".into(),
            limits: [Some(0.01), None],
            at_ms,
            lines: vec![("a".into(), line)],
        }];
        let html = RolloutReport::of(&r, &courses, vec!["no chart".into()], &|_| "waiting").to_html("now").unwrap();
        let html = html.replace('\u{a0}', " ");
        for wanted in ["Under way, stage canary", "a quarter", "the rest", "errors", "&lt;b&gt;ann", "no chart"] {
            assert!(html.contains(wanted), "{wanted}");
        }
        assert_eq!(html.matches("<svg").count(), 2, "one figure for two widths");
        for forbidden in ["http://", "https://", "src=", "url(", "NaN", "<b>ann"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
    }
}
