//! A book in memory, whose writer is killed at a write, and a judge that says what it is told: for the tests of rollouts.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use wakewatt_carry::NodeName;
use wakewatt_carry::book::{Book, BookError};
use wakewatt_carry::rollout::Judge;
use wakewatt_fleet::rollout::gate::{Verdict, Word};
use wakewatt_fleet::rollout::plan::Gate;
use wakewatt_fleet::rollout::state::Rollout;

/// What was written, and how many writes are left before the writer is killed.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) lines: Vec<String>,
    pub(crate) n_left: Option<usize>,
}

impl Memory {
    fn dies(&mut self) -> Result<(), BookError> {
        match &mut self.n_left {
            Some(0) => Err(BookError::Broken { place: "memory".into(), why: "killed".into() }),
            Some(n) => {
                *n -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Book for Memory {
    fn place(&self) -> String {
        "memory".into()
    }
    fn read(&mut self) -> Result<Option<Vec<u8>>, BookError> {
        Ok(self.state.clone())
    }
    fn write(&mut self, state: &[u8]) -> Result<(), BookError> {
        self.dies()?;
        self.state = Some(state.to_vec());
        Ok(())
    }
    fn audit(&mut self, line: &str) -> Result<(), BookError> {
        self.dies()?;
        assert!(!line.contains(wakewatt_testing::bmc::PASSWORD));
        assert!(!line.contains('\n') && serde_json::from_str::<serde_json::Value>(line).is_ok());
        self.lines.push(line.into());
        Ok(())
    }
    fn annotate(&mut self, _: &NodeName, marks: &BTreeMap<String, String>) -> Result<(), BookError> {
        assert!(marks.contains_key("rollout-state"));
        Ok(())
    }
}

/// The canary passes; what comes after may not.
pub(crate) struct Says(pub(crate) Word);

impl Judge for Says {
    fn judge(&self, _: &Gate, r: &Rollout) -> Verdict {
        Verdict::new(if r.stage == 0 { Word::Passed } else { self.0 }, "as told")
    }
}
