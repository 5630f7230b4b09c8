//! How far one assumption moves a number of the outcome.

use crate::server::Quantity;
use serde::{Deserialize, Serialize};

/// The assumption that moves a quantity most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// Which number of the outcome.
    pub quantity: Quantity,
    /// The field of the server file.
    pub field: String,
    /// How the number changes, as a part of it, with a fifth less and a fifth more of the field.
    pub ratios: [f64; 2],
}

impl Moved {
    /// The larger of the two changes.
    pub(crate) fn size(&self) -> f64 {
        self.ratios.iter().fold(0.0, |most, ratio| most.max(ratio.abs()))
    }
}

impl std::fmt::Display for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.quantity.name();
        if self.size() < 0.005 {
            return write!(f, "{name}: no assumption by 0.5 %");
        }
        let [less, more] = self.ratios.map(|ratio| format!("{:+.1} %", ratio * 100.0).replace('-', "−"));
        write!(f, "{name}: {} ({less} with a fifth less, {more} with a fifth more)", self.field)
    }
}
