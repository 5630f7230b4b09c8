//! Does it show in the primary metric which arm ran before? A comparison takes it that it does not.

use super::super::table::{Table, heads};
use super::super::words;
use super::section::Section;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_words::{say, word};

/// Below this it shows.
const SHOWS: f64 = 0.05;

/// None where too few rounds tell.
pub(super) fn section(run: &ExperimentRun) -> Option<Section> {
    let rows: Vec<Vec<String>> = run
        .carry_over
        .iter()
        .map(|c| vec![c.arm.clone(), words::ratio(c.ratio), words::p_value(c.p_value), c.n_rounds.to_string()])
        .collect();
    if rows.is_empty() {
        return None;
    }
    let baseline = run.arms.first().map_or("", |a| a.id.as_str());
    let mut out = Section::new(word!("What ran before"));
    out.tables.push(Table {
        caption: say!(
            "Order (AB/BA): {baseline} over the arm where {baseline} came first, over the same where it came second; 1 if the order does nothing; measured, primary metric"
        ),
        heads: heads(&[word!("arm"), word!("ratio of the two orders"), "p", word!("rounds")]),
        rows,
        n_text_columns: 1,
    });
    let shown: Vec<&str> = run.carry_over.iter().filter(|c| c.p_value <= SHOWS).map(|c| c.arm.as_str()).collect();
    if !shown.is_empty() {
        out.remarks.push(say!(
            "what ran before shows in the comparison with {}: an arm leaves something to the next, or the machine drifted within the \
             rounds; longer blocks (interleave = \"off\" in a plan) tell which",
            shown.join(", ")
        ));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::experiment::CarryOver;

    #[test]
    fn an_order_that_shows_is_told_and_one_that_does_not_is_a_row() {
        let mut run = ExperimentRun::default();
        assert!(section(&run).is_none());
        let one = |arm: &str, p_value| CarryOver { arm: arm.into(), ratio: 0.9, p_value, n_rounds: 12 };
        run.carry_over = vec![one("poll", 0.6), one("shallow", 0.01)];
        let section = section(&run).unwrap();
        assert_eq!((section.tables[0].rows.len(), section.remarks.len()), (2, 1));
        assert!(section.remarks[0].contains("with shallow:"), "{:?}", section.remarks);
    }
}
