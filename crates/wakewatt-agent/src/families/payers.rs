//! Who pays: wake-ups out of idle by who was woken, as many as have a place, and everybody else.

use crate::metric::{Labels, Page, Word, names};
use crate::paying::{OTHERS, Payers};
use compact_str::ToCompactString as _;
use wakewatt_lab::trace::{Lost, StateKey};

pub(super) fn add(page: &mut Page, payers: &Payers) {
    let by = || ("by", Word::from(payers.by.word()));
    let labels = |name: Option<&str>, (state, index): &StateKey| -> Labels {
        let payer = name.map(|name| ("payer", name.to_compact_string()));
        let state = [("state", state.as_str().into()), ("index", index.to_compact_string())];
        [Some(by()), payer].into_iter().flatten().chain(state).collect()
    };
    let sums = payers.sums();
    let named =
        || sums.iter().map(|((name, state), lost)| (labels(Some(name.as_deref().unwrap_or(OTHERS)), state), lost));
    named().for_each(|(labels, lost)| page.number(&names::PAYER_WAKEUPS, labels, lost.n as f64));
    named().for_each(|(labels, lost)| page.number(&names::PAYER_LOST, labels, seconds(lost)));
    let retired = || payers.retired().iter().map(|(state, lost)| (labels(None, state), lost));
    retired().for_each(|(labels, lost)| page.number(&names::PAYER_RETIRED_WAKEUPS, labels, lost.n as f64));
    retired().for_each(|(labels, lost)| page.number(&names::PAYER_RETIRED_LOST, labels, seconds(lost)));
    page.number(&names::PAYER_UNTOLD, vec![by()], payers.n_untold() as f64);
}

fn seconds(lost: &Lost) -> f64 {
    lost.ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Value;
    use std::time::{Duration, Instant};
    use wakewatt_core::samples::payers::PayerKind;
    use wakewatt_lab::trace::Paid;

    #[test]
    fn series_are_bounded_and_add_up() {
        let start = Instant::now();
        let mut payers = Payers::new(PayerKind::Pod, 3, start);
        let state = |index: u32| (format!("C{index}"), index);
        let mut totals = std::collections::BTreeMap::new();
        for at in 0..40u64 {
            let mut grown = std::collections::BTreeMap::new();
            for pod in 0..500u64 {
                let (name, state) = (format!("shop/web-{pod}"), state(u32::try_from(pod % 2).unwrap()));
                let lost = Lost { n: 2, ns: 1_000_000 * (pod + 1) };
                totals.entry(state.clone()).or_insert(Lost::default()).add(lost);
                grown.insert((name, state), lost);
            }
            payers.advance(start + Duration::from_secs(10 * at), &Paid { grown, totals: totals.clone() });
        }
        let mut page = Page::default();
        add(&mut page, &payers);
        let family = |metric| page.families.iter().find(|f| std::ptr::eq(f.metric, metric)).unwrap();
        let value = |value: &Value| if let Value::Number(n) = value { *n } else { 0.0 };
        let sum = |metric| family(metric).samples.iter().map(|s| value(&s.value)).sum::<f64>();
        // Three names and the others, in two states.
        assert_eq!(family(&names::PAYER_WAKEUPS).samples.len(), 8);
        let all: u64 = totals.values().map(|lost| lost.n).sum();
        assert_eq!(sum(&names::PAYER_WAKEUPS) + sum(&names::PAYER_RETIRED_WAKEUPS), all as f64);
        let all_ns: u64 = totals.values().map(|lost| lost.ns).sum();
        let told = sum(&names::PAYER_LOST) + sum(&names::PAYER_RETIRED_LOST);
        assert!((told - all_ns as f64 / 1e9).abs() < 1e-6 && sum(&names::PAYER_UNTOLD) == 0.0);
        let labels = &family(&names::PAYER_WAKEUPS).samples[0].labels;
        assert_eq!(labels[..2], [("by", Word::from("pod")), ("payer", Word::from(OTHERS))]);
    }
}
