//! A fleet compared, as one HTML page: the answer, who is odd and why, a strip per class, odd nodes over time.

use super::template;
use super::trace::clean;
use super::view::fleet::sections;
use super::view::section::Section;
use anyhow::Context;
use minijinja::context;
use serde::Serialize;
use wakewatt_fleet::document::Fleet;

/// The page, apart from when it was made.
#[derive(Debug, Serialize)]
pub struct FleetReport {
    title: String,
    sentence: String,
    then: Vec<String>,
    sections: Vec<Section>,
}

impl FleetReport {
    /// Of a document.
    pub fn of(fleet: &Fleet) -> FleetReport {
        let mut then = Vec::new();
        then.extend(fleet.work.as_ref().map(|work| clean(&format!("Work: {work}"))));
        then.push("Nodes are compared with nodes of equal hardware at equal load. What is called odd is so by chance in at most 5 % of fleets, and differs by 5 % at least.".into());
        FleetReport { title: clean(&fleet.source), sentence: clean(&fleet.sentence), then, sections: sections(fleet) }
    }

    /// The self-contained page.
    pub fn to_html(&self, generated_at: &str) -> anyhow::Result<String> {
        let env = template::environment()?;
        let page = env.get_template("fleet_page.html").context("report template fleet_page.html")?;
        // No address in a page that loads nothing: the scheme says nothing to a reader.
        let title = self.title.trim_start_matches("https://").trim_start_matches("http://");
        page.render(context! {
            r => self,
            title => title,
            generated_at => generated_at,
            version => env!("CARGO_PKG_VERSION"),
        })
        .context("filling the page of a fleet")
    }
}
