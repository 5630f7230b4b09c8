//! What a person wants: `bios.c-states=off` by its word, or `attr:ProcCStates=Disabled` by the BMC's own name.

use std::fmt;
use wakewatt_core::visible;

/// One thing that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A concept and a word, or one of the attribute's own values.
    Concept {
        /// Without `bios.`.
        id: String,
        /// What it is to be.
        value: String,
    },
    /// An attribute and a value, as the registry spells them.
    Attribute {
        /// Its name.
        name: String,
        /// What it is to be.
        value: String,
    },
}

/// What comes before the name of an attribute.
const ATTRIBUTE: &str = "attr:";

impl Wish {
    /// From the command line.
    pub fn parse(text: &str) -> Result<Wish, String> {
        let (name, value) = text.split_once('=').ok_or("say what it is to be, such as bios.c-states=off")?;
        if name.trim().is_empty() || value.is_empty() {
            return Err("name and value, such as bios.c-states=off or attr:ProcCStates=Disabled".into());
        }
        let value = value.to_string();
        Ok(match name.trim().strip_prefix(ATTRIBUTE) {
            Some(name) => Wish::Attribute { name: name.into(), value },
            None => Wish::Concept { id: name.trim().strip_prefix("bios.").unwrap_or(name.trim()).into(), value },
        })
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Wish::Concept { id, value } => format!("bios.{id}={value}"),
            Wish::Attribute { name, value } => format!("{ATTRIBUTE}{name}={value}"),
        };
        f.write_str(&visible::line(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_names_are_told_apart() {
        for text in ["bios.c-states=off", "attr:PackageCState_3D25=C0/C1 state", "attr:A=b=c"] {
            assert_eq!(Wish::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Wish::parse("c-states=off").unwrap().to_string(), "bios.c-states=off");
        assert!(Wish::parse("c-states").is_err() && Wish::parse("=x").is_err() && Wish::parse("a=").is_err());
    }
}
