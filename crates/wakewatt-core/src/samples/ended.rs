//! How a run or an experiment ended.
//!
//! A run that was cut short or failed between two looks allows no verdict and can go on; one that had enough cannot be
//! asked again. What did not go back afterwards stands beside either.

use super::worded::worded;
use std::fmt;
use wakewatt_words::{say, told, word};

/// How it ended, and what was left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub how: How,
    /// What could not be put back; none where all was.
    pub not_put_back: Option<String>,
}

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// It has not.
    #[default]
    Running,
    /// Somebody ended it.
    Interrupted,
    /// Something could not be done: what.
    Failed(String),
    /// A look decided it, or its time was spent: in words.
    Enough(String),
}

const INTERRUPTED: &str = "it was interrupted";
const FAILED: &str = "it failed: ";
const NOT_PUT_BACK: &str = "; not everything is as before: ";

impl Ended {
    /// By a look or the end of the time.
    pub fn enough(words: impl Into<String>) -> Ended {
        How::Enough(words.into()).into()
    }

    /// From a document.
    pub fn read(text: &str) -> Ended {
        let (how, not_put_back) = match text.split_once(NOT_PUT_BACK) {
            Some((how, why)) => (how, Some(why.to_string())),
            None => (text, None),
        };
        let how = match how {
            "" => How::Running,
            INTERRUPTED => How::Interrupted,
            _ => how.strip_prefix(FAILED).map_or_else(|| How::Enough(how.into()), |why| How::Failed(why.into())),
        };
        Ended { how, not_put_back }
    }

    /// May what it shows be judged? Not between two looks, while it may still go on.
    pub fn is_final(&self) -> bool {
        !matches!(self.how, How::Interrupted | How::Failed(_))
    }
}

impl From<How> for Ended {
    fn from(how: How) -> Ended {
        Ended { how, not_put_back: None }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.how {
            How::Running => {}
            How::Interrupted => f.write_str(word!("it was interrupted"))?,
            How::Failed(why) => f.write_str(&say!("it failed: {why}"))?,
            How::Enough(words) => f.write_str(&enough(words))?,
        }
        self.not_put_back.iter().try_for_each(|why| f.write_str(&say!("; not everything is as before: {why}")))
    }
}

/// What a look said stands in run files as data: "every arm is decided after 8 rounds".
fn enough(words: &str) -> String {
    match words.strip_suffix(" rounds").and_then(|words| words.rsplit_once(" after ")) {
        Some((why, n_rounds)) => say!("{why} after {n_rounds} rounds", why = told(why)),
        None => told(words).to_string(),
    }
}

worded!(Ended);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let stuck = |how: How| Ended { how, not_put_back: Some("stuck".into()) };
        let hows = [How::Running, How::Interrupted, How::Failed("disk full".into()), How::Enough("spent".into())];
        for how in hows {
            for ended in [how.clone().into(), stuck(how)] {
                assert_eq!(Ended::read(&ended.to_string()), ended);
            }
        }
        assert_eq!(stuck(How::Interrupted).to_string(), "it was interrupted; not everything is as before: stuck");
        assert!(!stuck(How::Interrupted).is_final() && Ended::enough("narrow").is_final());
    }
}
