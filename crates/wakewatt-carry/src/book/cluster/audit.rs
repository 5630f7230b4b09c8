//! The audit log: lines in a row of ConfigMaps, appended to the last, never taken away.
//!
//! An append writes its object whole, so objects are small: 64 kB costs 32 kB a line on the average, where one of 1 MiB would
//! cost half a megabyte. What has been written is durable when the API server has answered.

use super::{BookError, Kind, Place};
use serde_json::{Value, json};

/// When the next one is begun.
const FULL: usize = 64_000;
/// All together 16 MB, some 60,000 lines.
const MOST: usize = 256;

/// Where the next line goes.
pub(super) struct Log {
    n: usize,
    /// The last object; null where there is none yet.
    last: Value,
}

impl Log {
    /// Its end, found by halves: the objects are a row without gaps.
    pub(super) fn find(place: &Place) -> Result<Log, BookError> {
        let get = |n: usize| place.get(Kind::ConfigMap, &name(place, n));
        let (mut there, mut missing) = (get(0)?, MOST);
        let mut n = 0;
        while there.is_some() && missing - n > 1 {
            let middle = n + (missing - n) / 2;
            match get(middle)? {
                Some(found) => (n, there) = (middle, Some(found)),
                None => missing = middle,
            }
        }
        Ok(Log { n, last: there.unwrap_or_default() })
    }

    /// The last line that was written.
    pub(super) fn last_line(&self) -> Option<&str> {
        self.last["data"]["lines"].as_str()?.lines().last()
    }

    pub(super) fn append(&mut self, place: &Place, line: &str) -> Result<(), BookError> {
        let before = self.last["data"]["lines"].as_str().unwrap_or_default();
        let is_new = before.len() + line.len() > FULL && !before.is_empty();
        let n = self.n + usize::from(is_new);
        if n >= MOST {
            let why = format!(
                "the audit log is full ({MOST} objects); keep what it says (kubectl get configmaps -l app.kubernetes.io/part-of={0} -o yaml), then delete the objects {0}-audit-…: the next line begins a new one",
                place.name
            );
            return Err(BookError::Broken { place: place.said(), why });
        }
        let mut object = if is_new || self.last.is_null() {
            place.config_map(&name(place, n), Value::Null)
        } else {
            self.last.clone()
        };
        object["data"] = json!({"lines": if is_new { format!("{line}\n") } else { format!("{before}{line}\n") }});
        self.last = place.put(Kind::ConfigMap, object)?;
        self.n = n;
        Ok(())
    }
}

fn name(place: &Place, n: usize) -> String {
    format!("{}-audit-{n}", place.name)
}
