//! A fleet compared, as one HTML page: the answer, who is odd and why, a strip per class, odd nodes over time.

use super::finish::finish;
use super::template;
use super::trace::clean;
use super::view::fleet::sections;
use super::view::section::Section;
use anyhow::Context;
use minijinja::context;
use serde::Serialize;
use wakewatt_fleet::document::Fleet;
use wakewatt_words::{say, spoken, word};

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
        spoken(|| {
            let mut then = Vec::new();
            then.extend(fleet.work.as_ref().map(|work| clean(&say!("Work: {work}"))));
            then.push(word!("Nodes are compared with nodes of equal hardware at equal load. What is called odd is so by chance in at most 5 % of fleets, and differs by 5 % at least.").into());
            FleetReport {
                title: clean(&fleet.source),
                sentence: clean(&fleet.sentence),
                then,
                sections: sections(fleet),
            }
        })
    }

    /// The self-contained page.
    pub fn to_html(&self, generated_at: &str) -> anyhow::Result<String> {
        wakewatt_words::spoken(|| {
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
            .map(|html| finish(&html))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_fleet::compare::{Asked, compare};
    use wakewatt_fleet::measure::Quantity;
    use wakewatt_fleet::table::{Node, Table, Window};

    #[test]
    fn a_page_names_the_odd_ones_draws_everybody_and_loads_nothing() {
        let windows = (0..8).map(|w| Window { from_ms: w * 3_600_000, to_ms: (w + 1) * 3_600_000 }).collect();
        let mut table = Table { windows, ..Table::default() };
        for at in 0..12usize {
            let mut node = Node::named(format!("<script>n{at}"));
            node.settings.insert("kernel".into(), if at == 7 { "<b>6.1" } else { "6.12" }.into());
            for window in 0..8usize {
                let noise = 1.0 + 0.03 * ((at * 5 + window * 3) % 7) as f64 / 7.0;
                node.set(Quantity::Work, window, 8, 1000.0);
                let cost = if at == 7 { 0.05 } else { 0.02 };
                // A gap in the middle of the odd one's line.
                if at != 7 || window != 4 {
                    node.set(Quantity::Busy, window, 8, 1000.0 * cost * noise);
                }
            }
            table.nodes.push(node);
        }
        let asked = Asked { source: "https://store.example".into(), work: Some("sum(<x>)".into()), ..Asked::default() };
        let fleet = compare(&table, Asked { changed_at_ms: Some(4 * 3_600_000), ..asked });
        let html = FleetReport::of(&fleet).to_html("now").unwrap().replace('\u{a0}', " ");
        assert!(html.contains("1 of 12 nodes pay more") && html.contains("&lt;script&gt;n7"), "{html}");
        assert!(html.contains("&lt;b&gt;6.1") && html.contains("6.12") && html.contains("Before and after"));
        assert_eq!(html.matches("<svg").count(), 4, "strips and small multiples, each for two widths");
        for forbidden in ["http://", "https://", "<script>n", "src=", "url(", "NaN", "<b>6.1", "<x>"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        let nothing = FleetReport::of(&compare(&Table::default(), Asked::default())).to_html("now").unwrap();
        assert!(nothing.contains("No node was found."));
    }
}
