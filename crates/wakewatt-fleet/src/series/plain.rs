//! One query of the user's as it is: its values at a moment, or its course; and which nodes names mean.

use super::answer::Labels;
use super::ask::{Door, Refusal, Taker, ask};
use super::names::Names;
use crate::table::{Node, Window};
use std::collections::BTreeMap;

/// More series than this are no answer that a person could judge.
const MOST_SERIES: usize = 10_000;

/// The values of all series at a moment.
pub fn values_at(door: &dyn Door, promql: &str, at_ms: u64) -> Result<Vec<f64>, Refusal> {
    let at_s = at_ms / 1000;
    let moment = [Window { from_ms: at_s.saturating_sub(1) * 1000, to_ms: at_s * 1000 }];
    Ok(courses(door, promql, &moment)?.into_iter().filter_map(|(_, course)| course[0]).collect())
}

/// A series in words, and its value at the end of each window.
pub type Course = (String, Vec<Option<f64>>);

/// Every series with its value at the end of each window, in the order of their labels in words.
pub fn courses(door: &dyn Door, promql: &str, windows: &[Window]) -> Result<Vec<Course>, Refusal> {
    let mut places: BTreeMap<Labels, usize> = BTreeMap::new();
    let mut found: Vec<Vec<Option<f64>>> = Vec::new();
    let mut whose = |labels: &Labels| {
        let next = places.len();
        let is_new = !places.contains_key(labels);
        (!is_new || next < MOST_SERIES).then(|| *places.entry(labels.clone()).or_insert(next))
    };
    let mut take = |series: usize, window: usize, value: f64| {
        if found.len() <= series {
            found.resize(series + 1, vec![None; windows.len()]);
        }
        found[series][window] = Some(value);
    };
    ask(door, promql, windows, 100, &mut Taker { whose: &mut whose, take: &mut take })?;
    let words = |labels: &Labels| {
        let all: Vec<&str> = labels.iter().filter(|(k, _)| *k != "__name__").map(|(_, v)| v.as_str()).collect();
        all.join(" ")
    };
    let course = |at: usize| found.get(at).cloned();
    Ok(places.iter().filter_map(|(labels, at)| Some((words(labels), course(*at)?))).collect())
}

/// Which node of a table each name means, with or without port and domain.
pub fn places(nodes: &[Node], names: &[&str]) -> Vec<Option<usize>> {
    let known = Names::of(nodes);
    names.iter().map(|name| known.find(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read};

    struct Fixed(&'static str);

    impl Door for Fixed {
        fn ask(&self, _: &str) -> Result<Box<dyn Read + '_>, Refusal> {
            Ok(Box::new(Cursor::new(self.0)))
        }
    }

    #[test]
    fn values_come_with_their_series_and_rubbish_is_refused() {
        let door = Fixed(
            r#"{"status":"success","data":{"result":[{"metric":{"instance":"a","__name__":"x"},"values":[[100,"0.5"]]},{"metric":{"instance":"b"},"values":[[100,"NaN"]]}]}}"#,
        );
        assert_eq!(values_at(&door, "x", 100_500).unwrap(), [0.5]);
        let windows = [Window { from_ms: 90_000, to_ms: 100_000 }];
        assert_eq!(courses(&door, "x", &windows).unwrap(), [("a".to_string(), vec![Some(0.5)])]);
        assert!(values_at(&Fixed("<html>"), "x", 100_500).is_err());
        assert_eq!(values_at(&Fixed(r#"{"status":"success","data":{"result":[]}}"#), "x", 0).unwrap(), [0.0; 0]);
    }

    #[test]
    fn a_node_is_found_with_and_without_its_port() {
        let nodes = ["web-1:9100", "web-2.example.org:9100"].map(Node::named);
        assert_eq!(places(&nodes, &["web-2", "web-1", "web-3"]), [Some(1), Some(0), None]);
    }
}
