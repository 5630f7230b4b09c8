//! Rules of a registry: while some attributes have some values, another is locked, hidden, or has a value forced on it.
//!
//! Source: DMTF AttributeRegistry v1_3, `Dependencies`. What real ones do: several conditions without `MapTerms` mean OR (Dell);
//! a flag may be the text `"true"`; an attribute of a condition may not exist (Supermicro's placeholders). So a rule is true,
//! false, or not to be told, and what cannot be told locks nothing. Where terms are mixed they are taken from left to right.

use crate::setting::Setting;
use serde_json::Value;

/// Conditions of one rule that are read.
const MAX_CONDITIONS: usize = 256;

/// True, false, or not to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    Yes,
    /// It does not.
    No,
    /// Something that it asks for is not there.
    Unknown,
}

impl Truth {
    fn of(is_so: bool) -> Truth {
        if is_so { Truth::Yes } else { Truth::No }
    }
    fn and(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::No, _) | (_, Truth::No) => Truth::No,
            (Truth::Yes, Truth::Yes) => Truth::Yes,
            _ => Truth::Unknown,
        }
    }
    fn or(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::Yes, _) | (_, Truth::Yes) => Truth::Yes,
            (Truth::No, Truth::No) => Truth::No,
            _ => Truth::Unknown,
        }
    }
}

/// What of an attribute a rule asks about or sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Its value.
    Value,
    /// May not be written.
    ReadOnly,
    /// Shown but not selectable.
    GrayOut,
    /// Not shown.
    Hidden,
    /// Anything else, which decides nothing here.
    Other,
}

impl Property {
    fn parse(value: &Value) -> Property {
        match value.as_str() {
            Some("CurrentValue") => Property::Value,
            Some("ReadOnly") => Property::ReadOnly,
            Some("GrayOut") => Property::GrayOut,
            Some("Hidden") => Property::Hidden,
            _ => Property::Other,
        }
    }
    /// Does it keep an attribute from being written?
    pub fn is_lock(self) -> bool {
        matches!(self, Property::ReadOnly | Property::GrayOut | Property::Hidden)
    }
    /// In a sentence about the attribute.
    pub fn word(self) -> &'static str {
        match self {
            Property::ReadOnly => "read-only",
            Property::GrayOut => "greyed out",
            Property::Hidden => "hidden",
            Property::Value | Property::Other => "set",
        }
    }
}

/// How a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Of numbers: greater, greater or equal, less, less or equal.
    Greater,
    /// At least.
    AtLeast,
    /// Less.
    Less,
    /// At most.
    AtMost,
}

impl Test {
    /// Compares; texts have no order.
    pub fn truth(self, value: &Setting, with: &Setting, is_same: bool) -> Truth {
        let number = |setting: &Setting| match setting {
            Setting::Number(n) => Some(*n),
            Setting::Text(text) => text.trim().parse().ok(),
            Setting::Flag(_) => None,
        };
        let order = |test: fn(&i64, &i64) -> bool| match (number(value), number(with)) {
            (Some(a), Some(b)) => Truth::of(test(&a, &b)),
            _ => Truth::Unknown,
        };
        match self {
            Test::Equal => Truth::of(is_same),
            Test::NotEqual => Truth::of(!is_same),
            Test::Greater => order(i64::gt),
            Test::AtLeast => order(i64::ge),
            Test::Less => order(i64::lt),
            Test::AtMost => order(i64::le),
        }
    }
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whose.
    pub attribute: String,
    /// What of it.
    pub property: Property,
    /// Compared how.
    pub test: Test,
    /// With what.
    pub value: Setting,
    /// Joined by AND with its neighbour; none: not said.
    is_and: Option<bool>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// While these hold …
    pub conditions: Vec<Condition>,
    /// … this attribute …
    pub to: String,
    /// … has this property …
    pub property: Property,
    /// … at this value.
    pub value: Option<Setting>,
}

impl Rule {
    /// One entry; none where it is no rule that can be read.
    pub fn parse(entry: &Value) -> Option<Rule> {
        let rule = &entry["Dependency"];
        let to = rule["MapToAttribute"].as_str().or(entry["DependencyFor"].as_str())?.to_string();
        let from = rule["MapFrom"].as_array().filter(|from| !from.is_empty() && from.len() <= MAX_CONDITIONS)?;
        let conditions: Option<Vec<Condition>> = from.iter().map(condition).collect();
        let property = Property::parse(&rule["MapToProperty"]);
        Some(Rule { conditions: conditions?, to, property, value: Setting::of(&rule["MapToValue"]) })
    }

    /// Does it lock its attribute while it holds?
    pub fn is_lock(&self) -> bool {
        self.property.is_lock() && self.value.as_ref().is_some_and(|value| value.word().eq_ignore_ascii_case("true"))
    }

    /// The value that it forces on its attribute while it holds.
    pub fn forces(&self) -> Option<&Setting> {
        self.value.as_ref().filter(|_| self.property == Property::Value)
    }

    /// Does it hold?
    pub fn truth(&self, of: &dyn Fn(&Condition) -> Truth) -> Truth {
        let mut all = self.conditions.iter();
        let Some(first) = all.next() else { return Truth::Unknown };
        let (mut truth, mut last) = (of(first), first);
        for condition in all {
            let is_and = condition.is_and.or(last.is_and).unwrap_or(false);
            truth = if is_and { truth.and(of(condition)) } else { truth.or(of(condition)) };
            last = condition;
        }
        truth
    }
}

fn condition(from: &Value) -> Option<Condition> {
    let test = match from["MapFromCondition"].as_str()? {
        "EQU" => Test::Equal,
        "NEQ" => Test::NotEqual,
        "GTR" => Test::Greater,
        "GEQ" => Test::AtLeast,
        "LSS" => Test::Less,
        "LEQ" => Test::AtMost,
        _ => return None,
    };
    let is_and = match from["MapTerms"].as_str() {
        Some("AND") => Some(true),
        Some("OR") => Some(false),
        _ => None,
    };
    let property = match Property::parse(&from["MapFromProperty"]) {
        // Left out by some; a value is what rules ask about.
        Property::Other if from["MapFromProperty"].is_null() => Property::Value,
        other => other,
    };
    let attribute = from["MapFromAttribute"].as_str()?.to_string();
    Some(Condition { attribute, property, test, value: Setting::of(&from["MapFromValue"])?, is_and })
}
