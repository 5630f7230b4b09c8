//! A comparison for pipelines: Markdown for the summary of a job, JUnit's XML for whoever counts tests.
//!
//! Titles and names come from run files, so markup in them is escaped in both. JUnit's format has no standard; what is written
//! here is the part that every reader knows: a testcase for each quantity under each rule, a `failure` where it is worse,
//! `skipped` where nothing can be told and nobody asked for certainty, and an `error` for a rule without a quantity.

use super::charts::svg::escape;
use super::markdown::safe;
use std::fmt::Write as _;
use wakewatt_core::compare::Comparison;
use wakewatt_core::compare::gate::{Check, Gate, GateEnd, Standing};
use wakewatt_core::visible;

/// For the summary of a job.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::from("## wakewatt compare\n\n");
    if let Some(gate) = &comparison.gate {
        let sign = match gate.end {
            GateEnd::Passed if gate.checks.iter().all(|c| c.standing.is_unsure()) => "❔",
            GateEnd::Passed => "✅",
            GateEnd::Failed | GateEnd::NothingToJudge => "❌",
        };
        let _ = writeln!(out, "{sign} **{}**\n", safe(&gate.sentence));
    }
    for (letter, host) in ["A", "B", "C", "D", "E", "F"].iter().zip(&comparison.hosts) {
        let _ = writeln!(out, "- {letter}: {}", safe(host));
    }
    if let Some(gate) = comparison.gate.as_ref().filter(|gate| !gate.checks.is_empty()) {
        out += "\n| rule | quantity | B is | 95 % interval | |\n|---|---|---:|---:|---|\n";
        gate.checks.iter().for_each(|check| out += &row(check));
    }
    let mut list = |head: &str, lines: &[String]| {
        if !lines.is_empty() {
            let lines: String = lines.iter().map(|line| format!("- {}\n", safe(line))).collect();
            let _ = write!(out, "\n### {head}\n\n{lines}");
        }
    };
    if let Some(runs) = &comparison.runs {
        list("What stands out", &runs.summary);
        list("Suspects", &runs.suspects.iter().take(5).map(|s| s.line()).collect::<Vec<_>>());
        list("What cannot be concluded", &runs.cannot_conclude);
    }
    let predicted = comparison.differences.iter().filter_map(|d| Some((d, d.predicted.as_ref()?)));
    list(
        "Predicted effect (modelled)",
        &predicted.map(|(d, p)| format!("{}: {}", d.label, p.text)).collect::<Vec<_>>(),
    );
    out
}

fn row(check: &Check) -> String {
    let percent = |worse: f64| format!("{:+.1} %", worse * 100.0);
    let interval = check.worse_low_ratio.zip(check.worse_high_ratio);
    let interval = interval.map_or("none".into(), |(low, high)| format!("{} to {}", percent(low), percent(high)));
    let word = match check.standing {
        Standing::Worse => "❌ worse",
        Standing::Holds => "✅ holds",
        _ if check.fails => "❌ cannot tell",
        _ => "❔ cannot tell",
    };
    let (rule, title) = (safe(&check.rule), safe(&check.title));
    format!("| {rule} | {title} | {} worse | {interval} | {word} |\n", percent(check.worse_ratio))
}

/// For whoever counts tests.
pub fn junit(gate: &Gate) -> String {
    let count = |is: fn(&Check) -> bool| gate.checks.iter().filter(|c| is(c)).count();
    let (n_failed, n_skipped) = (count(|c| c.fails), count(is_skipped));
    let n_errors = gate.without_quantity.len();
    let n_tests = gate.checks.len() + n_errors;
    let counts = format!("tests=\"{n_tests}\" failures=\"{n_failed}\" errors=\"{n_errors}\"");
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n\
         <testsuite name=\"wakewatt compare\" {counts} skipped=\"{n_skipped}\">\n"
    );
    for check in &gate.checks {
        let says = text(&check.sentence);
        let inside = match check.fails {
            true => format!("<failure message=\"{says}\" type=\"{}\"/>", word(check.standing)),
            false if is_skipped(check) => format!("<skipped message=\"{says}\"/>"),
            false => format!("<system-out>{says}</system-out>"),
        };
        out += &case(&check.rule, &format!("{} ({})", check.title, check.id), &inside);
    }
    for why in &gate.without_quantity {
        let rule = why.split(": ").next().unwrap_or_default();
        out += &case(rule, "something to judge", &format!("<error message=\"{}\"/>", text(why)));
    }
    out + "</testsuite>\n</testsuites>\n"
}

fn is_skipped(check: &Check) -> bool {
    !check.fails && check.standing.is_unsure()
}

fn case(rule: &str, name: &str, inside: &str) -> String {
    format!("<testcase classname=\"wakewatt.{}\" name=\"{}\">{inside}</testcase>\n", text(rule), text(name))
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Holds => "holds",
        Standing::Worse => "worse",
        Standing::NoInterval => "no-interval",
        Standing::WideInterval => "wide-interval",
        Standing::MayBeChance => "may-be-chance",
    }
}

/// What XML lets in nowhere is made visible, too: two characters that are none.
fn text(foreign: &str) -> String {
    let mut clean = String::with_capacity(foreign.len());
    for c in foreign.chars() {
        if matches!(c, '\u{fffe}' | '\u{ffff}') { visible::show(c, &mut clean) } else { clean.push(c) }
    }
    escape(&clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up() -> Gate {
        let check = |title: &str, standing, fails| Check {
            rule: "slower:5%".into(),
            id: "load.x".into(),
            title: title.into(),
            standing,
            fails,
            worse_ratio: 0.2,
            worse_low_ratio: Some(0.1),
            worse_high_ratio: Some(0.3),
            covers: None,
            p_value: Some(0.001),
            sentence: format!("{title}: said"),
        };
        Gate {
            end: GateEnd::Failed,
            sentence: "The gate failed.".into(),
            checks: vec![
                check("</testcase>|<b>\u{ffff}\u{1b}\"", Standing::Worse, true),
                check("b", Standing::WideInterval, false),
                check("c", Standing::NoInterval, true),
                check("d", Standing::Holds, false),
            ],
            without_quantity: vec!["watts:3%: no power was measured on both sides".into()],
        }
    }

    #[test]
    fn junit_counts_and_lets_no_markup_in() {
        let xml = junit(&made_up());
        assert!(xml.contains("tests=\"5\" failures=\"2\" errors=\"1\" skipped=\"1\""), "{xml}");
        let name = "name=\"&lt;/testcase&gt;|&lt;b&gt;\\u{ffff}\\x1b&quot; (load.x)\"";
        assert!(xml.contains(name) && !xml.contains('\u{1b}') && !xml.contains("<b>"), "{xml}");
        assert_eq!(xml.matches("<testcase ").count(), 5);
        assert_eq!(xml.matches("</testcase>").count(), 5);
        assert!(xml.contains("<testcase classname=\"wakewatt.watts:3%\""), "{xml}");
    }

    #[test]
    fn markdown_has_a_row_for_each_and_escapes() {
        let comparison = wakewatt_core::compare::compare(&[]);
        let page = markdown(&Comparison { gate: Some(Box::new(made_up())), hosts: vec!["a".into()], ..comparison });
        assert!(page.contains("❌ **The gate failed.**") && page.matches("| slower:5% |").count() == 4, "{page}");
        assert!(
            page.contains("&lt;/testcase>\\|&lt;b>") && page.contains("+20.0 % worse | +10.0 % to +30.0 %"),
            "{page}"
        );
        assert!(page.contains("❔ cannot tell") && page.contains("❌ cannot tell"), "{page}");
    }
}
