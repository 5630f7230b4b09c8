//! A model's result as one HTML page: what came out in a sentence, what must be known with it, and sections of figures and tables.
//!
//! Of `simulate` and of `fit`. Every page says in its first line that it is modelled; where something measured stands beside it, its
//! section says which numbers those are.

use super::finish::finish;
use super::view::section::Section;
use super::view::{fitted, simulated};
use super::{template, trace::clean};
use anyhow::Context;
use minijinja::context;
use serde::Serialize;
use wakewatt_sim::fit::Fit;
use wakewatt_sim::sensitivity::listed;
use wakewatt_sim::server::Server;
use wakewatt_sim::study::Study;
use wakewatt_words::{say, spoken, word};

/// The page, apart from where it came from.
#[derive(Debug, Serialize)]
pub struct ModelledReport {
    kind: &'static str,
    sentence: String,
    then: Vec<String>,
    sections: Vec<Section>,
}

impl ModelledReport {
    /// Of a simulation.
    pub fn of_study(server: &Server, study: &Study) -> ModelledReport {
        spoken(|| {
            let n = study.points.first().map_or(0, |p| p.outcome.n_replications);
            let mut then = vec![match n {
                0 | 1 => word!("One replication: the numbers have no intervals.").to_string(),
                n => say!(
                    "Intervals are at least 95 %, from {n} replications: how well the model's number is known, not how well the model fits a machine."
                ),
            }];
            then.extend(listed(&study.sensitivity).map(|list| say!("Most sensitive assumption (±20 %): {list}.")));
            if !study.about.is_empty() {
                then.push(say!("Assumed: {}", study.about.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
            let sentence = simulated::sentence(study);
            let sections = simulated::sections(server, study);
            ModelledReport::made(word!("A server simulated"), &sentence, &then, sections)
        })
    }

    /// Of fits and what they foretell.
    pub fn of_fits(fits: &[Fit]) -> ModelledReport {
        spoken(|| {
            let then = vec![
            word!("What was measured under a predicted setting took no part in the fit. Errors are parts of what was measured.").to_string(),
        ];
            let sections = fits.iter().enumerate().flat_map(|(i, fit)| fitted::sections(fit, i)).collect();
            ModelledReport::made(word!("A model of this machine"), &fitted::sentence(fits), &then, sections)
        })
    }

    fn made(kind: &'static str, sentence: &str, then: &[String], sections: Vec<Section>) -> ModelledReport {
        let then = then.iter().map(|line| clean(line)).collect();
        ModelledReport { kind, sentence: clean(sentence), then, sections }
    }

    /// The self-contained page.
    pub fn to_html(&self, title: &str, generated_at: &str) -> anyhow::Result<String> {
        wakewatt_words::spoken(|| {
            let env = template::environment()?;
            let page = env.get_template("modelled_page.html").context("report template modelled_page.html")?;
            page.render(context! {
                r => self,
                title => clean(title),
                generated_at => generated_at,
                version => env!("CARGO_PKG_VERSION"),
            })
            .context("filling the page of a model")
            .map(|html| finish(&html))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_sim::examples::example;
    use wakewatt_sim::study::{Sweep, study};

    fn page(name: &str, set: &[&str], sweeps: &[&str]) -> String {
        let set: Vec<String> = [&["run.duration=300ms", "run.replications=2", "run.warmup=50ms"], set]
            .concat()
            .iter()
            .map(ToString::to_string)
            .collect();
        let server = Server::parse_with(example(name).unwrap().text, &set).unwrap();
        let sweeps: Vec<Sweep> = sweeps.iter().map(|text| Sweep::parse(text).unwrap()).collect();
        let found = study(&server, &sweeps, &[], 2).unwrap();
        ModelledReport::of_study(&server, &found).to_html("a <b>.toml", "now").unwrap().replace('\u{a0}', " ")
    }

    #[test]
    fn a_page_of_every_kind_of_study_is_whole_and_loads_nothing() {
        let swept = page("plain", &[], &["machine.idle.max_latency=0us,2us,133us"]);
        assert!(swept.contains("The frontier") && swept.contains("max_latency=2us"), "a sweep is drawn");
        let levels = page("k4-governors", &["workload.arrivals.percent=[20.0, 60.0]"], &[]);
        assert!(levels.contains("By level") && levels.contains("Published beside simulated"));
        let change = page("change", &["change.at=100ms"], &[]);
        assert!(change.contains("Over time"));
        for html in [swept, levels, change] {
            assert!(html.contains("modelled") && html.contains("<svg") && html.contains("a &lt;b&gt;.toml"));
            for forbidden in ["http://", "https://", "<script", "src=", "url(", "NaN", "a <b>"] {
                assert!(!html.contains(forbidden), "{forbidden}");
            }
        }
    }
}
