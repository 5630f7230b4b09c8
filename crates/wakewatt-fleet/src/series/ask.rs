//! Questions in pieces: as many windows at once as a store will answer, and fewer where it says that it was too much.

use super::answer::{Labels, read};
use super::window::pieces;
use crate::table::Window;
use std::io::Read;

/// Points that one answer should hold: some megabytes of JSON.
const MOST_IN_ONE: usize = 200_000;

/// Who asks the store: a path with its query, already encoded, to the bytes of the answer.
pub trait Door {
    /// Asks. The bytes end where the door's limit is.
    fn ask(&self, path: &str) -> Result<Box<dyn Read + '_>, Refusal>;
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The store said that it is too much at once, or took too long: a smaller question may do.
    #[error("{0}")]
    TooMuch(String),
    /// Anything else.
    #[error("{0}")]
    Final(String),
}

/// Percent-encoding of all but the unreserved (RFC 3986).
fn escaped(text: &str) -> String {
    let of_byte = |b: u8| match b {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    text.bytes().map(of_byte).collect()
}

/// What becomes of an answer: who a series speaks of (asked once a series), then its values. Values of a piece are given when
/// all of it has come, so that what is asked again is not counted twice.
pub(super) struct Taker<'a> {
    /// Some number for these labels; none where the series is nobody's.
    pub(super) whose: &'a mut dyn FnMut(&Labels) -> Option<usize>,
    /// Takes that number, a window and a value.
    pub(super) take: &'a mut dyn FnMut(usize, usize, f64),
}

/// Asks for a query at the end of every window.
pub(super) fn ask(
    door: &dyn Door,
    promql: &str,
    windows: &[Window],
    n_series: usize,
    taker: &mut Taker<'_>,
) -> Result<usize, Refusal> {
    let most = (MOST_IN_ONE / n_series.max(1)).max(1);
    let mut waiting = pieces(windows.len(), most);
    waiting.reverse();
    let mut n_seen = 0;
    while let Some((from, to)) = waiting.pop() {
        match piece(door, promql, &windows[from..to], from, taker) {
            Ok(n) => n_seen = n.max(n_seen),
            Err(Refusal::TooMuch(_)) if to - from > 1 => {
                let middle = from + (to - from) / 2;
                waiting.push((middle, to));
                waiting.push((from, middle));
            }
            Err(why) => return Err(why),
        }
    }
    Ok(n_seen)
}

fn piece(
    door: &dyn Door,
    promql: &str,
    windows: &[Window],
    first: usize,
    taker: &mut Taker<'_>,
) -> Result<usize, Refusal> {
    let (Some(from), Some(to)) = (windows.first(), windows.last()) else { return Ok(0) };
    let step_ms = (from.to_ms - from.from_ms).max(1000);
    let (start_s, end_s, step_s) = (from.to_ms / 1000, to.to_ms / 1000, step_ms / 1000);
    let query = escaped(promql);
    let path = format!("/api/v1/query_range?query={query}&start={start_s}&end={end_s}&step={step_s}");
    let bytes = door.ask(&path)?;
    let window_of = |at: f64| {
        let steps = ((at - start_s as f64) / step_s as f64).round();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked
        let of = (steps >= 0.0 && steps < windows.len() as f64).then_some(steps as usize);
        of
    };
    let mut came: Vec<(usize, usize, f64)> = Vec::new();
    let answer = read(bytes, &mut |labels, points| {
        if let Some(whose) = (taker.whose)(labels) {
            let of_window = |(at, value): &(f64, f64)| Some((whose, first + window_of(*at)?, *value));
            came.extend(points.iter().filter_map(of_window));
        }
    });
    let answer = answer.map_err(|why| match why.classify() {
        // The door's limit, its deadline, or a connection that broke: in smaller pieces it may come whole.
        serde_json::error::Category::Io | serde_json::error::Category::Eof => {
            Refusal::TooMuch(format!("the answer to {promql} ended early: {why}"))
        }
        _ => Refusal::Final(format!("the answer to {promql} is none of Prometheus: {why}")),
    })?;
    if answer.is_success {
        came.into_iter().for_each(|(whose, window, value)| (taker.take)(whose, window, value));
        return Ok(answer.n_series);
    }
    let why = answer.error.unwrap_or_else(|| "no reason given".into());
    Err(Refusal::Final(format!("{promql}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::super::window::windows;
    use super::*;
    use std::cell::RefCell;

    /// Answers ranges of at most `most` steps, and counts the questions.
    struct Store {
        most: u64,
        asked: RefCell<Vec<(u64, u64)>>,
    }

    impl Door for Store {
        fn ask(&self, path: &str) -> Result<Box<dyn Read + '_>, Refusal> {
            let of = |key: &str| path.split(key).nth(1)?.split('&').next()?.parse::<u64>().ok();
            let (start, end, step) = (of("start=").unwrap(), of("end=").unwrap(), of("step=").unwrap());
            self.asked.borrow_mut().push((start, end));
            if (end - start) / step + 1 > self.most {
                return Err(Refusal::TooMuch("exceeded maximum".into()));
            }
            let points: Vec<String> =
                (start..=end).step_by(usize::try_from(step).unwrap()).map(|t| format!("[{t},\"{t}\"]")).collect();
            let text = format!(
                r#"{{"status":"success","data":{{"result":[{{"metric":{{"instance":"a"}},"values":[{}]}}]}}}}"#,
                points.join(",")
            );
            Ok(Box::new(std::io::Cursor::new(text)))
        }
    }

    #[test]
    fn what_is_too_much_is_asked_in_halves_and_comes_once() {
        let all = windows(1_000_000_000, 60, 100);
        for most in [1, 7, 50, 1000] {
            let store = Store { most, asked: RefCell::default() };
            let mut seen = vec![0.0; 100];
            let mut taker = Taker { whose: &mut |_| Some(0), take: &mut |_, window, value| seen[window] += value };
            ask(&store, "up", &all, 1, &mut taker).unwrap();
            for (window, value) in all.iter().zip(&seen) {
                assert_eq!(*value, window.to_ms as f64 / 1e3, "each window once, with its own value");
            }
        }
        let never = Store { most: 0, asked: RefCell::default() };
        let mut taker = Taker { whose: &mut |_| None, take: &mut |_, _, _| {} };
        let why = ask(&never, "up", &all, 1, &mut taker).unwrap_err();
        assert_eq!(why, Refusal::TooMuch("exceeded maximum".into()));
        assert!(never.asked.borrow().len() < 12, "it gives up at one window");
    }

    #[test]
    fn a_query_cannot_leave_its_place() {
        assert_eq!(escaped("a{b=\"c&d\"}"), "a%7Bb%3D%22c%26d%22%7D");
    }
}
