//! The end of `doctor` in a terminal: verdict, ranked findings, what could not be seen. The rest is in the page.
//!
//! Wrapped to the width, colour only if told; foreign text is stripped of control characters, because an escape
//! sequence in a device name must not reach the terminal.

use super::view::Todo;
use super::{Report, verdict, view};
use crate::view::width::{begin, padded, places};
use crate::view::wrap::{wrap, wrap_command};
use wakewatt_words::{say, told, word};

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub width: usize,
    /// ANSI colours?
    pub is_coloured: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style { width: 80, is_coloured: false }
    }
}

/// Beyond this the terminal only counts.
/// The same for questions without an answer.
const N_CANNOT_TELL: usize = 6;
const N_NOT_SEEN: usize = 8;
/// Lines of one section.
const N_LINES: usize = 6;
const BOLD: &str = "1";
const RED: &str = "31";
const DIM: &str = "2";

pub fn render(report: &Report, style: Style) -> String {
    let r = view::of(report);
    let mut out = Paper { style, text: String::new() };
    out.wrap(BOLD, "", "", &r.sentence);
    if let Some(busy) = &r.busy {
        out.wrap(RED, "! ", "  ", busy);
    }
    out.wrap(DIM, "", "", &r.how_sure);
    for warning in &r.warnings {
        out.wrap(RED, "! ", "  ", warning);
    }
    out.text.push('\n');
    if r.findings.is_empty() {
        out.wrap("", "", "", word!("No findings."));
    }
    for (i, f) in r.findings.iter().enumerate() {
        let number = format!("{:>2}. ", i + 1);
        out.wrap(BOLD, &number, "    ", &say!("{} [{}, confidence {}]", f.title, told(f.weight), told(f.confidence)));
        out.wrap(
            "",
            word!("    cost:   "),
            "            ",
            &say!("{cost} ({label})", cost = f.cost, label = told(f.cost_label)),
        );
        out.wrap("", word!("    remedy: "), "            ", &f.remedy);
        out.wrap("", word!("    price:  "), "            ", &f.price);
        out.wrap("", word!("    verify: "), "            ", &f.verify);
        for (label, line) in &f.commands {
            out.text += &(wrap_command(
                &format!("    {}", padded(&say!("{label}:", label = told(label)), 8)),
                "              ",
                line,
                style.width,
            ) + "\n");
        }
    }
    if let Some(how) = r.how_to_apply {
        out.wrap("", "\n", "", how);
    }
    let said: Vec<_> = r.sections.iter().map(|s| (s, s.lines.iter().chain(&s.in_short).collect::<Vec<_>>())).collect();
    if said.iter().any(|(_, lines)| !lines.is_empty()) {
        out.wrap(BOLD, "\n", "", word!("Measured:"));
    }
    for (s, lines) in said.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        out.wrap("", "  ", "  ", &s.title);
        for line in lines.iter().take(N_LINES) {
            out.wrap("", "    - ", "      ", line);
        }
        if lines.len() > N_LINES {
            out.wrap(DIM, "    - ", "      ", &say!("and {} more, in the report", lines.len() - N_LINES));
        }
    }
    // A question whose files this machine does not have, or that has no next step, is counted and not printed.
    let (asked, idle): (Vec<_>, Vec<_>) = r.cannot_tell.iter().partition(|x| x.has_next_step);
    if !r.cannot_tell.is_empty() {
        out.wrap(BOLD, "\n", "", word!("Cannot tell:"));
        for x in asked.iter().take(N_CANNOT_TELL) {
            let hint = x.try_this.as_deref().map_or(String::new(), |t| say!("; to find out: {t}"));
            out.wrap(
                "",
                "  - ",
                "    ",
                &say!("{question} {because}{hint}", question = x.question, because = x.because),
            );
        }
        let n_left = asked.len().saturating_sub(N_CANNOT_TELL);
        if n_left > 0 {
            out.wrap("", "  - ", "    ", &say!("and {n_left} more questions, listed in the report"));
        }
        if !idle.is_empty() {
            let n = idle.len();
            out.wrap(
                DIM,
                "  - ",
                "    ",
                &say!("{n} questions need files that are not here (the report and --json list them)"),
            );
        }
    }
    if !r.not_seen.is_empty() {
        out.wrap(BOLD, "\n", "", word!("Could not be looked at:"));
        for line in r.not_seen.iter().take(N_NOT_SEEN) {
            out.wrap("", "  - ", "    ", line);
        }
        if r.not_seen.len() > N_NOT_SEEN {
            out.wrap("", "  - ", "    ", &say!("and {} more, listed in the report", r.not_seen.len() - N_NOT_SEEN));
        }
    }
    if let Some(is_restored) = r.is_restored {
        let (colour, word) = if is_restored { ("", word!("yes")) } else { (RED, word!("NO, see the report")) };
        out.wrap(colour, "\n", "", &say!("Everything put back: {word}."));
    }
    out.text
}

/// Of a run that was cut short: what was put back, and what is known by now. Five lines at most.
pub fn interrupted(report: &Report, style: Style) -> String {
    report.spoken(|report| {
        let r = view::of(report);
        let mut out = Paper { style, text: String::new() };
        let (colour, line) = match r.is_restored {
            None => ("", word!("Interrupted. Nothing was changed.")),
            Some(true) => ("", word!("Interrupted. Everything put back: yes.")),
            Some(false) => (RED, word!("Interrupted. Everything put back: NO, see the report.")),
        };
        out.wrap(colour, "", "", line);
        out.at_most(N_SENTENCE, BOLD, "", &r.sentence);
        out.text
    })
}

/// Lines of the shortest form, and of its parts at most.
const N_BRIEF: usize = 10;
const N_SENTENCE: usize = 3;
const N_WARNING: usize = 2;
const N_ACTION: usize = 3;

/// Ten lines: verdict, how sure, what to do with its price, line and way back, and what else there is. Lines to paste stay whole.
pub fn brief(report: &Report, style: Style) -> String {
    report.spoken(|report| in_short(report, style))
}

fn in_short(report: &Report, style: Style) -> String {
    let r = view::of(report);
    let mut out = Paper { style, text: String::new() };
    out.at_most(N_SENTENCE, BOLD, "", &r.sentence);
    let warning = r.warnings.first().or(r.busy.as_ref());
    let (colour, first, sure) = warning.map_or((DIM, "", &r.how_sure), |warning| (RED, "! ", warning));
    let Some(todo) = &r.todo else {
        out.at_most(N_WARNING, colour, first, sure);
        return out.text;
    };
    // A warning first, then the action whole; what else there is and a second line on how sure take what is left.
    let (label, action) = (word!("do:    "), action(todo, &r.sentence));
    let n_pasted = [&todo.price, &todo.apply, &todo.undo].into_iter().flatten().count();
    let mut n_left = N_BRIEF.saturating_sub(out.text.lines().count() + n_pasted);
    let mut take = |n: usize| {
        let n_taken = n.min(n_left);
        n_left -= n_taken;
        n_taken
    };
    let n_wanted = out.wrapped(first, sure).lines().count().min(N_WARNING);
    let n_sure = take(if warning.is_some() { n_wanted } else { 1 });
    let n_action = take(out.wrapped(label, &action).lines().count().min(N_ACTION));
    let n_more = take(usize::from(!todo.more.is_empty()));
    let n_sure = n_sure + take(n_wanted - n_sure.min(n_wanted));
    out.at_most(n_sure, colour, first, sure);
    out.at_most(n_action, "", label, &action);
    todo.price.iter().for_each(|price| out.at_most(1, "", word!("price: "), price));
    todo.apply.iter().for_each(|line| out.text += &format!("{}{line}\n", word!("paste: ")));
    todo.undo.iter().for_each(|line| out.text += &format!("{}{line}\n", word!("undo:  ")));
    if n_more > 0 {
        out.at_most(1, DIM, "", &todo.more);
    }
    out.text
}

/// What to do first, because the line may end before what it is about, which the verdict often names already.
fn action(todo: &Todo, sentence: &str) -> String {
    let (about, remedy) = (&todo.about, &todo.remedy);
    match todo.price {
        _ if sentence.contains(&verdict::in_sentence(about)) => remedy.clone(),
        Some(_) => say!("{remedy} ({about})"),
        None => say!("{about}. {remedy}"),
    }
}

struct Paper {
    style: Style,
    text: String,
}

impl Paper {
    fn wrapped(&self, first: &str, text: &str) -> String {
        wrap(first, &" ".repeat(places(first)), text, self.style.width)
    }

    /// A paragraph that ends after so many lines, and shows that it does.
    fn at_most(&mut self, n_lines: usize, colour: &str, first: &str, text: &str) {
        let wrapped = self.wrapped(first, text);
        let kept: Vec<&str> = wrapped.lines().take(n_lines).collect();
        let mut body = kept.join("\n");
        if wrapped.lines().count() > n_lines {
            let last = kept.last().copied().unwrap_or_default();
            let before = body.len() - last.len();
            let n_kept = begin(last, self.style.width.saturating_sub(2)).len();
            body = format!("{} …", body[..before + n_kept].trim_end());
        }
        self.paint(colour, &body);
    }

    fn paint(&mut self, colour: &str, body: &str) {
        self.text += &match self.style.is_coloured && !colour.is_empty() {
            true => format!("\u{1b}[{colour}m{body}\u{1b}[0m\n"),
            false => format!("{body}\n"),
        };
    }

    /// One paragraph: `first` opens it, `rest` indents the lines after. Words longer than a line stand alone.
    fn wrap(&mut self, colour: &str, first: &str, rest: &str, text: &str) {
        self.paint(colour, &wrap(first, rest, text, self.style.width));
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use wakewatt_core::samples::not_done::{NotDone, Step};
    use wakewatt_words::{Language, within};

    #[test]
    fn in_short_is_ten_lines_with_the_line_to_paste_whole() {
        for (name, report) in sample::all() {
            for width in [60, 80, 140] {
                let text = brief(&report, Style { width, is_coloured: false });
                assert!((1..=10).contains(&text.lines().count()), "{name}: {text}");
                let is_long = |line: &&str| !line.contains(": sudo ") && line.chars().count() > width;
                assert_eq!(text.lines().find(is_long), None, "{name}");
                if let Some(line) = view::of(&report).todo.and_then(|todo| todo.apply) {
                    assert!(text.contains(&format!("paste: {line}\n")), "{name}: {text}");
                }
            }
        }
    }
    #[test]
    fn in_short_the_action_stands_first_and_is_whole() {
        let report = super::super::chinese::recorded(include_str!("../../../../fixtures/hosts/rome0.host"));
        for language in [Language::English, Language::Chinese] {
            let text = within(language, || in_short(&report.translated(), Style::default()));
            let remedy = within(language, || view::of(&report.translated()).todo.unwrap().remedy);
            let label = if language == Language::English { "do: " } else { "做" };
            let at = text.lines().position(|l| l.starts_with(label)).unwrap_or_else(|| panic!("{text}"));
            let flat: String = text.lines().skip(at).flat_map(str::split_whitespace).collect();
            assert!(flat.contains(&remedy.split_whitespace().collect::<String>()), "{remedy}: {text}");
            assert!(text.lines().count() <= 10 && text.contains("sudo wakewatt tune apply"), "{text}");
        }
    }

    #[test]
    fn it_fits_the_width_and_has_no_colour_unless_told() {
        for (name, mut report) in sample::all() {
            report.evidence.not_done.push(NotDone::new(Step::Unnamed, "evil \u{1b}[31m device"));
            for width in [60, 80, 120] {
                let text = render(&report, Style { width, is_coloured: false });
                let longest = text.lines().filter(|l| !l.contains('/')).map(|l| l.chars().count()).max().unwrap_or(0);
                assert!(longest <= width, "{name}: {longest} > {width}");
                assert!(!text.contains('\u{1b}'), "{name}");
            }
            assert!(render(&report, Style { width: 80, is_coloured: true }).contains("\u{1b}[1m"));
        }
    }

    #[test]
    fn a_governor_that_costs_comes_with_a_line_for_tune_and_its_undo() {
        let text = render(&sample::governor(), Style::default());
        let find = |s: &str| text.find(s).unwrap_or_else(|| panic!("{s} in {text}"));
        assert!(
            find("load at 10 %, median answer 769 us with")
                < find(" 1. The governor ondemand makes requests after a pause 1.35 times slower")
        );
        let apply = "sudo wakewatt tune apply --set freq.governor=performance";
        assert!(find(apply) < find("undo:   sudo wakewatt tune undo"));
        assert!(find("Everything put back: yes.") > 0);
    }

    #[test]
    fn the_summary_ranks_findings_and_names_what_is_missing() {
        let text = render(&sample::two_arms(), Style::default());
        let find = |s: &str| text.find(s).unwrap_or_else(|| panic!("{s} in {text}"));
        assert!(find("Idle states cost latency here") < find(" 1. Idle states") && find(" 2. ") < find("Cannot tell:"));
        assert!(find("Could not be looked at:") < find("Everything put back: yes."));
    }
}
