//! One attribute: its type, the values it takes, and whether it may be written at all.
//!
//! A person's word is matched with what the registry lists: exactly by value name or display name, else by letters and digits
//! alone, `Enabled` being `Enable`. Some makers repeat the attribute's name in the value (`CbsDfCmnDramNpsNPS4`, Lenovo's values
//! that begin with a digit), so a value also goes by what remains without it.

use crate::setting::Setting;
use serde_json::Value;
use wakewatt_core::visible;

/// Values of one attribute that are read.
const MAX_CHOICES: usize = 4096;
/// Values that an error lists.
const SHOWN_CHOICES: usize = 16;

/// What kind of value it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of a list.
    Enumeration,
    /// Any text within its length.
    Text,
    /// A whole number within bounds.
    Integer,
    /// Yes or no.
    Boolean,
    /// Never read, shown or set here.
    Password,
    /// A type that the standard does not know.
    Other,
}

/// One value of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `ValueName`.
    pub name: String,
    /// `ValueDisplayName`.
    pub display: Option<String>,
}

/// One attribute of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// As the BMC spells it.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// For people; the only readable name on firmware with codes.
    pub label: String,
    /// Where in the setup menu.
    pub menu: String,
    /// Of an enumeration.
    pub choices: Vec<Choice>,
    /// Live on Dell and HPE: it changes with the profile.
    pub is_read_only: bool,
    /// Shown but not selectable.
    pub is_gray: bool,
    /// Not shown.
    pub is_hidden: bool,
    /// Never changes.
    pub is_immutable: bool,
    /// Takes effect at the next boot only; assumed where the registry does not say.
    pub needs_reset: bool,
    /// Smallest and largest number.
    pub bounds: (Option<i64>, Option<i64>),
    /// Distance of allowed numbers; none or 0: any.
    pub step: Option<i64>,
    /// Shortest and longest text, in letters.
    pub lengths: (Option<usize>, Option<usize>),
    /// The BMC speaks of its values by their display names.
    pub is_display_spoken: bool,
}

/// Why an attribute does not take a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Not in its list.
    #[error("{value} is not allowed; it takes {takes}")]
    NotListed {
        /// What was asked for.
        value: String,
        /// What there is.
        takes: String,
    },
    /// Two values are as like.
    #[error("{value} could be {candidates}; say which")]
    Ambiguous {
        /// What was asked for.
        value: String,
        /// What it could be.
        candidates: String,
    },
    /// No number, or out of bounds.
    #[error("{value} is not allowed; it takes {takes}")]
    NoSuchNumber {
        /// What was asked for.
        value: String,
        /// Its bounds.
        takes: String,
    },
    /// Too short or too long.
    #[error("a text of {n_letters} letters is not allowed; it takes {takes}")]
    Length {
        /// Of what was asked for.
        n_letters: usize,
        /// Its bounds.
        takes: String,
    },
    /// Not set here.
    #[error("it is a password, and passwords are not set here")]
    Password,
    /// Of an unknown type.
    #[error("its type is none that the standard knows, so nothing can be checked")]
    UnknownType,
}

/// Letters and digits, small, `enabled` as `enable`: what is left to compare when spellings differ.
pub fn plain(text: &str) -> String {
    let mut out: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    if out == "enabled" || out == "disabled" {
        out.pop();
    }
    out
}

impl Attribute {
    /// One entry of the registry; none without a name.
    pub fn parse(entry: &Value) -> Option<Attribute> {
        let name = entry["AttributeName"].as_str().filter(|name| !name.is_empty())?.to_string();
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_string();
        let flag = |key: &str| entry[key].as_bool().unwrap_or(false);
        let length = |key: &str| entry[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let kind = match entry["Type"].as_str() {
            Some("Enumeration") => Kind::Enumeration,
            Some("String") => Kind::Text,
            Some("Integer") => Kind::Integer,
            Some("Boolean") => Kind::Boolean,
            Some("Password") => Kind::Password,
            _ => Kind::Other,
        };
        let choice = |value: &Value| {
            let name = Setting::of(&value["ValueName"])?.word();
            Some(Choice { name, display: value["ValueDisplayName"].as_str().map(str::to_string) })
        };
        let values = entry["Value"].as_array().into_iter().flatten().take(MAX_CHOICES);
        Some(Attribute {
            kind,
            label: text("DisplayName"),
            menu: text("MenuPath"),
            choices: values.filter_map(choice).collect(),
            is_read_only: flag("ReadOnly"),
            is_gray: flag("GrayOut"),
            is_hidden: flag("Hidden"),
            is_immutable: flag("Immutable"),
            needs_reset: entry["ResetRequired"].as_bool().unwrap_or(true),
            bounds: (entry["LowerBound"].as_i64(), entry["UpperBound"].as_i64()),
            step: entry["ScalarIncrement"].as_i64().filter(|step| *step > 0),
            lengths: (length("MinLength"), length("MaxLength")),
            is_display_spoken: false,
            name,
        })
    }

    /// Is this value one of its display names (and no value name)? None where it is neither, or both.
    pub(crate) fn is_display(&self, word: &str) -> Option<bool> {
        let is_name = self.choices.iter().any(|choice| choice.name == word);
        let is_shown = self.choices.iter().any(|choice| choice.display.as_deref() == Some(word));
        (is_name != is_shown).then_some(is_shown)
    }

    fn choice_at(&self, word: &str) -> Option<usize> {
        let by_name = self.choices.iter().position(|choice| choice.name == word);
        by_name.or_else(|| self.choices.iter().position(|choice| choice.display.as_deref() == Some(word)))
    }

    /// The same value, by whichever of its names?
    pub fn is_same(&self, a: &Setting, b: &Setting) -> bool {
        let at = |value: &Setting| self.choice_at(&value.word());
        a.is_same(b) || (at(a).is_some() && at(a) == at(b))
    }

    /// How a choice is written to the BMC.
    pub fn spelled(&self, choice: &Choice) -> Setting {
        let display = choice.display.as_ref().filter(|_| self.is_display_spoken);
        Setting::Text(display.unwrap_or(&choice.name).clone())
    }

    /// What it takes, for people.
    pub fn takes(&self) -> String {
        let or = |n: Option<String>, other: &str| n.unwrap_or_else(|| other.into());
        match self.kind {
            Kind::Enumeration => {
                let spelled = |choice: &Choice| self.spelled(choice).to_string();
                let mut all: Vec<String> = self.choices.iter().take(SHOWN_CHOICES).map(spelled).collect();
                if self.choices.len() > SHOWN_CHOICES {
                    all.push(format!("and {} more", self.choices.len() - SHOWN_CHOICES));
                }
                all.join(", ")
            }
            Kind::Integer => {
                let (low, high) = self.bounds;
                let step =
                    self.step.filter(|step| *step > 1).map_or(String::new(), |step| format!(" in steps of {step}"));
                let bound = |n: Option<i64>, other: &str| or(n.map(|n| n.to_string()), other);
                format!("numbers from {} to {}{step}", bound(low, "any"), bound(high, "any"))
            }
            Kind::Boolean => "true, false".into(),
            Kind::Text => {
                let (low, high) = self.lengths;
                let bound = |n: Option<usize>, other: &str| or(n.map(|n| n.to_string()), other);
                format!("{} to {} letters", bound(low, "0"), bound(high, "any number of"))
            }
            Kind::Password | Kind::Other => "nothing here".into(),
        }
    }

    /// A person's word as a value that this attribute takes.
    pub fn accept(&self, word: &str, current: Option<&Setting>) -> Result<Setting, NotTaken> {
        let value = || visible::line(word).into_owned();
        let typed = |setting: Setting| match current {
            // The registry says Integer, the BMC writes text: it knows best what it reads.
            Some(Setting::Text(_)) => Setting::Text(setting.word()),
            _ => setting,
        };
        match self.kind {
            Kind::Enumeration => self.choose(word).map(|choice| self.spelled(choice)),
            Kind::Boolean => match plain(word).as_str() {
                "true" | "on" | "yes" | "1" | "enable" => Ok(typed(Setting::Flag(true))),
                "false" | "off" | "no" | "0" | "disable" => Ok(typed(Setting::Flag(false))),
                _ => Err(NotTaken::NotListed { value: value(), takes: self.takes() }),
            },
            Kind::Integer => {
                let (low, high) = self.bounds;
                let is_step = |n: i64| {
                    let from = i128::from(n) - i128::from(low.unwrap_or(0));
                    self.step.is_none_or(|step| from % i128::from(step) == 0)
                };
                let is_within = |n: &i64| low.is_none_or(|low| *n >= low) && high.is_none_or(|high| *n <= high);
                let number = word.trim().parse().ok().filter(is_within).filter(|n| is_step(*n));
                let refused = || NotTaken::NoSuchNumber { value: value(), takes: self.takes() };
                number.map(|n| typed(Setting::Number(n))).ok_or_else(refused)
            }
            Kind::Text => {
                let n_letters = word.chars().count();
                let (low, high) = self.lengths;
                let is_within = low.is_none_or(|low| n_letters >= low) && high.is_none_or(|high| n_letters <= high);
                let refused = || NotTaken::Length { n_letters, takes: self.takes() };
                is_within.then(|| Setting::Text(word.into())).ok_or_else(refused)
            }
            Kind::Password => Err(NotTaken::Password),
            Kind::Other => Err(NotTaken::UnknownType),
        }
    }

    /// The one value that this word means.
    pub fn choose(&self, word: &str) -> Result<&Choice, NotTaken> {
        if let Some(at) = self.choice_at(word) {
            return Ok(&self.choices[at]);
        }
        let (wanted, own) = (plain(word), plain(&self.name));
        let is_it = |text: &str| {
            let text = plain(text);
            // Value names that repeat the attribute's.
            let short = text.strip_prefix(&own).map(plain);
            !wanted.is_empty() && (text == wanted || short.as_deref() == Some(&wanted))
        };
        let like: Vec<&Choice> =
            self.choices.iter().filter(|c| is_it(&c.name) || c.display.as_deref().is_some_and(is_it)).collect();
        let value = visible::line(word).into_owned();
        match like[..] {
            [one] => Ok(one),
            [] => Err(NotTaken::NotListed { value, takes: self.takes() }),
            _ => {
                let candidates: Vec<String> = like.iter().map(|choice| self.spelled(choice).to_string()).collect();
                Err(NotTaken::Ambiguous { value, candidates: candidates.join(" or ") })
            }
        }
    }
}
