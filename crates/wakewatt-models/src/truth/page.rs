//! docs/truth.md: the page made from the code, so that no figure in it can be older than the models.

use super::{ALL, Truth};
use std::fmt::Write as _;

const HEAD: &str = "<!-- made by `cargo xtask truth`; do not edit -->\n# Published truth\n\n\
Figures that others measured and published, beside what the models of this project make of a workload that could have given them. None of these recordings is public: what can be \
held is the order and the rough ratio, and every assumption is said. The models themselves are held to decisions of the kernels' own code (`cargo xtask vectors`), which is \
the stronger proof. The published figures came to us as the task of this page; the threads themselves were not read for it.\n";

const FOOT: &str = "\n## Not here\n\n\
- **The 15 input vectors of February 2025 for menu's typical interval** could not be found: they are in none of the project's specifications or data, and nothing was made up in their place. \
The typical interval is held to menu's recorded decisions (fixtures/vectors) and, by property, to the rule written out with all its divisions.\n";

/// The page.
pub fn page() -> String {
    let mut out = HEAD.to_string();
    ALL.iter().for_each(|truth| section(&mut out, &truth()));
    out + FOOT
}

fn section(out: &mut String, truth: &Truth) {
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let _ = write!(
        out,
        "\n## {}\n\n**Published.** {}\n\n**The life we made.** {}\n\n",
        truth.title, truth.source, truth.life
    );
    out.push_str(&line(truth.columns));
    out.push_str(&line(&vec!["---"; truth.columns.len()]));
    for row in &truth.rows {
        out.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let _ = write!(out, "\n**How near.** {}\n", truth.nearness);
}
