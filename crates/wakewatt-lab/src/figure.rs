//! The figure a command prints: by an expression over its lines, or a place in its JSON. Its output passes through.
//!
//! The last match counts, since benchmarks print intermediate results first. JSON may be the whole output or one line of
//! it. `load -- CMD` looks at standard output; a command as a workload of an experiment is read the same way.

use regex_lite::Regex;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// So much of the end of an output is kept to look for figures.
const KEPT_BYTES: usize = 16 << 20;
/// Longer ones are cut.
const LONGEST_LINE_BYTES: u64 = 1 << 20;

/// Where the figure is.
#[derive(Debug)]
pub enum Figure {
    /// In the first group.
    Expression(Regex),
    /// At an RFC 6901 pointer.
    Pointer(String),
}

impl Figure {
    /// From the command line; none where it names none.
    pub fn parse(expression: Option<&str>, pointer: Option<&str>) -> Result<Option<Figure>, String> {
        if let Some(text) = expression {
            let regex = Regex::new(text).map_err(|e| format!("--metric: {e}"))?;
            return match regex.captures_len() {
                2 => Ok(Some(Figure::Expression(regex))),
                1 => Err("--metric: put the number into a group, such as 'score: ([0-9.]+)'".into()),
                _ => Err("--metric: one group, please; others can be written (?:...)".into()),
            };
        }
        match pointer {
            Some(text) if !text.starts_with('/') => {
                Err(format!("--metric-json {text}: a pointer begins with /, such as /jobs/0/read/iops"))
            }
            Some(text) => Ok(Some(Figure::Pointer(text.into()))),
            None => Ok(None),
        }
    }

    /// The option that names it, without what was given: that may hold a name.
    pub fn option(&self) -> &'static str {
        match self {
            Figure::Expression(_) => "--metric",
            Figure::Pointer(_) => "--metric-json",
        }
    }

    /// As it was given.
    pub fn name(&self) -> String {
        match self {
            Figure::Expression(regex) => format!("--metric '{}'", regex.as_str()),
            Figure::Pointer(text) => format!("--metric-json {text}"),
        }
    }

    /// The last number it finds.
    pub fn find(&self, output: &Output) -> Result<f64, String> {
        let text = output.text();
        let number = match self {
            Figure::Expression(regex) => {
                let mut all =
                    text.lines().filter_map(|line| regex.captures_iter(line).last()?.get(1).map(|g| g.as_str()));
                all.next_back().map(|word| plain(word).parse::<f64>().map_err(|_| word.to_string()))
            }
            Figure::Pointer(pointer) => {
                let whole = serde_json::from_str::<Value>(&text).ok();
                let lines = || text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let at = |v: &Value| v.pointer(pointer).cloned();
                let value = whole.as_ref().and_then(at).or_else(|| lines().find_map(|v| at(&v)));
                value.map(|v| match &v {
                    Value::String(word) => word.trim().parse().map_err(|_| word.clone()),
                    other => other.as_f64().ok_or_else(|| other.to_string()),
                })
            }
        };
        let n = output.n_lines;
        match number {
            Some(Ok(number)) if number.is_finite() => Ok(number),
            Some(Ok(number)) => Err(format!("{} found {number}", self.name())),
            Some(Err(word)) => Err(format!("{} found {word:?}, which is no number", self.name())),
            None => Err(format!(
                "{} found nothing in its {n} {} of standard output; does it print to standard error?",
                self.name(),
                if n == 1 { "line" } else { "lines" }
            )),
        }
    }
}

/// Without the commas between thousands, where they can be nothing else: `12,5` stays as it is, and is no number.
pub fn plain(word: &str) -> String {
    let whole = word.split('.').next().unwrap_or_default();
    let mut groups = whole.split(',');
    let is_grouped = groups.next().is_some_and(|g| (1..=3).contains(&g.len())) && groups.all(|g| g.len() == 3);
    if is_grouped { word.replace(',', "") } else { word.to_string() }
}

/// What a command printed.
#[derive(Clone, Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    n_lines: u64,
}

/// An output while it is printed.
pub struct Following {
    so_far: Arc<Mutex<Output>>,
    is_over: Receiver<()>,
}

impl Output {
    /// Reads to the end, and hands on each line, or what is there of a very long one.
    pub fn follow(
        from: impl Read + Send + 'static,
        mut pass: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<Following, String> {
        let so_far = Arc::new(Mutex::new(Output::default()));
        let (over, is_over) = channel();
        let kept = Arc::clone(&so_far);
        let read = move || {
            let (mut from, mut line) = (BufReader::new(from), Vec::new());
            while from.by_ref().take(LONGEST_LINE_BYTES).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                // What it is passed to must not stop the reading, or the command would wait for us for ever.
                pass(&line);
                kept.lock().unwrap_or_else(PoisonError::into_inner).take(&line);
                line.clear();
            }
            let _ = over.send(());
        };
        let thread = std::thread::Builder::new().name("output".into()).spawn(read);
        thread.map_err(|e| format!("no thread for the command's output: {e}"))?;
        Ok(Following { so_far, is_over })
    }

    /// As text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn take(&mut self, line: &[u8]) {
        self.n_lines += 1;
        self.bytes.extend_from_slice(line);
        if self.bytes.len() > 2 * KEPT_BYTES {
            self.bytes.drain(..self.bytes.len() - KEPT_BYTES);
        }
    }
}

impl Following {
    /// What was printed; waits so long for the rest, because what the command left running may hold its output open.
    pub fn finish(self, at_most: Duration) -> Output {
        let _ = self.is_over.recv_timeout(at_most);
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Output {
        let mut output = Output::default();
        text.split_inclusive('\n').for_each(|line| output.take(line.as_bytes()));
        output
    }

    #[test]
    fn the_last_figure_counts_and_none_is_a_clear_error() {
        let by = |text| Figure::parse(Some(text), None).unwrap().unwrap();
        let score = by("score: ([0-9.,]+)");
        assert_eq!(score.find(&printed("score: 1\nx\nscore: 2 score: 1,234.5\nend\n")), Ok(1234.5));
        let why = score.find(&printed("a\nb\n")).unwrap_err();
        assert!(why.contains("--metric 'score: ([0-9.,]+)' found nothing in its 2 lines"), "{why}");
        assert!(by("(.*)x").find(&printed("fastx\n")).unwrap_err().contains("\"fast\", which is no number"));
        assert!(score.find(&printed("score: 12,5\n")).is_err(), "a comma for a point is not guessed at");
        assert!(by("(inf)").find(&printed("inf\n")).is_err());
        for bad in ["(", "no group", "(a)(b)"] {
            assert!(Figure::parse(Some(bad), None).unwrap_err().starts_with("--metric"), "{bad}");
        }
    }

    #[test]
    fn json_is_the_whole_output_or_a_line_of_it() {
        let figure = Figure::parse(None, Some("/jobs/0/iops")).unwrap().unwrap();
        assert_eq!(figure.find(&printed("{\"jobs\":\n[{\"iops\": 12.5}]}\n")), Ok(12.5));
        assert_eq!(figure.find(&printed("hello\n{\"jobs\":[{\"iops\": \"7\"}]}\nbye\n")), Ok(7.0));
        assert!(figure.find(&printed("{\"jobs\":[{\"iops\": [1]}]}\n")).unwrap_err().contains("no number"));
        assert!(figure.find(&printed("")).unwrap_err().contains("0 lines"));
        assert!(Figure::parse(None, Some("jobs")).is_err());
        assert!(Figure::parse(None, None).unwrap().is_none());
    }

    #[test]
    fn an_output_held_open_is_not_waited_for() {
        let (from, to) = std::io::pipe().unwrap();
        let following = Output::follow(from, |_| {}).unwrap();
        assert_eq!(following.finish(Duration::from_millis(10)).n_lines, 0);
        drop(to);
    }
}
