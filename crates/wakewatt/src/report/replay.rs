//! A replay as one HTML page: how far it may be trusted, what would change, recorded beside predicted, every latency limit, and what was asked.
//!
//! A result that is not to be trusted says so in the heading, whatever was asked; else the answer stands there and the share of identical
//! decisions right below.

use super::finish::finish;
use super::view::Section;
use super::view::replay as sections;
use super::{template, trace::clean};
use anyhow::Context;
use minijinja::context;
use serde::Serialize;
use wakewatt_core::samples::replayed::Replayed;
use wakewatt_models::replay::slo::Slo;
use wakewatt_models::replay::sweep::Sweep;
use wakewatt_models::replay::{Upgrade, words};
use wakewatt_words::{say, word};

/// What is shown.
#[derive(Debug)]
pub struct ReplayReport<'a> {
    /// Name of the recording.
    pub title: String,
    /// When it was written.
    pub generated_at: String,
    /// Recorded beside what was asked.
    pub replayed: &'a Replayed,
    /// Every latency limit.
    pub sweep: &'a Sweep,
    /// The objective, where one was asked.
    pub slo: Option<&'a Slo>,
    /// The upgrade, where one was asked.
    pub upgrade: Option<&'a Upgrade>,
}

#[derive(Serialize)]
struct Page {
    sentence: String,
    then: Vec<String>,
    sections: Vec<Section>,
}

impl ReplayReport<'_> {
    /// The self-contained page.
    pub fn to_html(&self) -> anyhow::Result<String> {
        wakewatt_words::spoken(|| {
            let env = template::environment()?;
            let page = env.get_template("replay_page.html").context("report template replay_page.html")?;
            page.render(context! {
                r => self.page(),
                title => clean(&self.title),
                generated_at => self.generated_at,
                version => env!("CARGO_PKG_VERSION"),
            })
            .context("filling the replay template")
            .map(|html| finish(&html))
        })
    }

    fn page(&self) -> Page {
        let r = self.replayed;
        let answer = match (self.slo, self.upgrade) {
            (Some(slo), _) => slo.answer.clone(),
            (_, Some(upgrade)) => upgrade.judgement.clone(),
            (None, None) if r.setting.is_empty() || !r.followed.is_enough() => {
                word!("Recorded idle time, and every latency limit for it").to_string()
            }
            (None, None) => say!("With {}: {}.", sections::setting(r), words::change(&r.recorded, &r.predicted)),
        };
        let (sentence, then) = match r.is_trusted {
            Some(true) => (answer, vec![r.trust.clone()]),
            _ => (r.trust.clone(), vec![answer]),
        };
        let command = self.slo.and_then(|slo| slo.command.clone()).map(|line| say!("To plan it: {line}"));
        let mut all: Vec<Section> = self.slo.map(sections::slo).into_iter().collect();
        all.extend(self.upgrade.map(sections::upgrade));
        // What the figures of all sections rest on is said once, with the first figures.
        for section in &mut all {
            section.remarks.retain(|line| !r.remarks.iter().any(|said| clean(said) == *line));
        }
        all.push(sections::section(r, ""));
        all.push(sections::sweep(self.sweep));
        let cleaned = |lines: Vec<String>| lines.iter().map(|line| clean(line)).collect::<Vec<_>>();
        Page { sentence: clean(&sentence), then: cleaned(then.into_iter().chain(command).collect()), sections: all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::record::wtrace::{Item, Reader};
    use wakewatt_models::replay::slo::{Asked, Objective, slo};
    use wakewatt_models::replay::{Change, Replay, sweep};

    /// The recording of the models' own tests under a table of three states.
    fn replays(is_trusted: bool) -> Vec<(u64, Replayed)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/vm-haltpoll-6.18.wtrace");
        let bytes = std::fs::read(path).unwrap();
        let parsed = |texts: &[&str]| texts.iter().map(|text| Change::parse(text).unwrap()).collect::<Vec<_>>();
        let corrections = match is_trusted {
            true => parsed(&["guest-halt-poll=0us"]),
            false => parsed(&["governor=ladder", "table=POLL:0us/0us,C1:400us/900us,C2:900us/2ms"]),
        };
        let table = "table=POLL:0us/0us,C1<b>:2us/2us,C6:133us/600us";
        let one = |limit_ns: u64| {
            let mut reader = Reader::new(&bytes).unwrap();
            let header = reader.header.clone();
            let changes = [parsed(&["governor=menu", table]), vec![sweep::asking(limit_ns)]].concat();
            let mut replay = Replay::new(&header, &changes, &corrections).unwrap();
            for item in reader.by_ref() {
                match item {
                    Item::Pairs(pairs) => replay.pairs(&pairs),
                    Item::Choices(choices) => replay.choices(&choices),
                    Item::Mark(mark) => replay.mark(&mark),
                }
            }
            (limit_ns, replay.finish())
        };
        [0, 2_000, 133_000].map(one).to_vec()
    }

    #[test]
    fn the_page_says_first_what_must_be_known_first() {
        for is_trusted in [true, false] {
            let all = replays(is_trusted);
            let asked = Asked {
                objective: Objective::parse("p99 < 1ms over 40 hops").unwrap(),
                sleeper_ratio: None,
                hop_cost_ns: 0,
            };
            let (swept, answered) = (sweep::sweep(&all), slo(&all, &asked).unwrap());
            let report = ReplayReport {
                title: "a <b>.wtrace".into(),
                generated_at: "now".into(),
                replayed: &all[2].1,
                sweep: &swept,
                slo: Some(&answered),
                upgrade: None,
            };
            let html = report.to_html().unwrap().replace('\u{a0}', " ");
            let heading = html.split("<h1 id=\"verdict\">").nth(1).unwrap();
            assert_eq!(heading.starts_with("Not to be trusted"), !is_trusted, "{heading:.200}");
            for part in
                ["% of", "<svg", "modelled", "wakewatt tune plan --max-latency", "Share of idle time", "C1&lt;b&gt;"]
            {
                assert!(html.contains(part), "{part}");
            }
            for forbidden in ["http://", "https://", "<script", "src=", "url(", "NaN", "C1<b>"] {
                assert!(!html.contains(forbidden), "{forbidden}");
            }
        }
    }
}
