//! The template engine with every template and style: what the pages of a report and of a trace are filled from.
//!
//! It escapes every value; a style sheet is no markup and passes as it stands. Fixed words of a template go through `t`,
//! which is `told` with arguments by name: `{{ t("and {n} more", n=3) }}`.

use crate::view::width::is_wide;
use anyhow::Context;
use minijinja::value::{Kwargs, Value};
use minijinja::{AutoEscape, Environment, Error};
use wakewatt_words::{language, told};

const TEMPLATES: &[(&str, &str)] = &[
    ("page.html", include_str!("templates/page.html")),
    ("head.html", include_str!("templates/head.html")),
    ("experiment.html", include_str!("templates/experiment.html")),
    ("findings.html", include_str!("templates/findings.html")),
    ("sentence_page.html", include_str!("templates/sentence_page.html")),
    ("fleet_page.html", include_str!("templates/fleet_page.html")),
    ("rollout_page.html", include_str!("templates/rollout_page.html")),
    ("node_page.html", include_str!("templates/node_page.html")),
    ("parts.html", include_str!("templates/parts.html")),
    ("trace.html", include_str!("templates/trace.html")),
    ("plain_page.html", include_str!("templates/plain_page.html")),
    ("replication_page.html", include_str!("templates/replication_page.html")),
    ("trace_page.html", include_str!("templates/trace_page.html")),
    ("replay_page.html", include_str!("templates/replay_page.html")),
    ("modelled_page.html", include_str!("templates/modelled_page.html")),
    ("style.css", STYLE),
    ("chart.css", CHART_STYLE),
];

/// Of the page; it holds the palettes.
pub(super) const STYLE: &str = include_str!("templates/style.css");
/// Of the drawings, in the page and on their own.
pub(super) const CHART_STYLE: &str = include_str!("templates/chart.css");

/// The template engine, with every template.
pub(super) fn environment() -> anyhow::Result<Environment<'static>> {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_auto_escape_callback(|name| if name.ends_with(".css") { AutoEscape::None } else { AutoEscape::Html });
    env.add_filter("tie", tie);
    env.add_function("t", fixed);
    env.add_global("language", language().tag());
    for (name, source) in TEMPLATES {
        env.add_template(name, source).with_context(|| format!("report template {name}"))?;
    }
    Ok(env)
}

/// Fixed words in the language in force, with what `{name}` stands for.
fn fixed(english: &str, args: Kwargs) -> Result<String, Error> {
    let mut text = told(english).to_string();
    for name in args.args() {
        text = text.replace(&format!("{{{name}}}"), &args.get::<Value>(name)?.to_string());
    }
    Ok(text)
}

/// The fixed words of all templates: what stands in a `t(…)`.
pub(crate) fn spoken() -> Vec<&'static str> {
    let mut all = Vec::new();
    for (_, source) in TEMPLATES {
        let mut pieces = source.split("t(\"");
        let mut before = pieces.next().unwrap_or_default();
        for piece in pieces {
            if !before.ends_with(char::is_alphanumeric) {
                all.extend(piece.split('"').next());
            }
            before = piece;
        }
    }
    all
}

/// Keeps a number and its unit on one line: `34 us`, `95 %`.
fn tie(text: String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        out.push_str(word);
        let ends_in_digit = word.chars().last().is_some_and(|c| c.is_ascii_digit());
        let unit = |w: &&str| {
            // Chinese has no blank behind a comma.
            let unit = w.split(is_wide).next().unwrap_or_default().trim_end_matches([',', '.', ';', ':', ')', ']']);
            ["ns", "us", "ms", "s", "%", "times", "rounds"].contains(&unit)
        };
        match words.peek() {
            Some(next) if (ends_in_digit && unit(next)) || word == "=" || *next == "=" => out.push('\u{a0}'),
            Some(_) => out.push(' '),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stays_with_its_number() {
        assert_eq!(tie("34 us against 6.5 us, 10 rounds".into()), "34\u{a0}us against 6.5\u{a0}us, 10\u{a0}rounds");
        assert_eq!(tie("是 34 us（标称）".into()), "是 34\u{a0}us（标称）");
    }

    #[test]
    fn fixed_words_are_found_and_take_their_arguments() {
        let all = spoken();
        assert!(all.contains(&"What to do") && all.contains(&"and {n} more") && !all.contains(&" --"), "{all:?}");
        let mut env = environment().unwrap();
        env.add_template("x.html", "{{ t(\"and {n} more\", n=3) }}").unwrap();
        assert_eq!(env.get_template("x.html").unwrap().render(minijinja::context! {}).unwrap(), "and 3 more");
    }
}
