//! What `nvidia-smi --query-gpu=index,power.draw,name --format=csv,noheader,nounits` prints.
//!
//! One line per card: `0, 118.53, NVIDIA H200`. The name stands last because it may hold anything. A card that does not
//! measure says `[N/A]` or `[Not Supported]`, a broken one `[Unknown Error]` or `ERR!`. `power.draw` is the mean over the
//! last second on cards from Ampere on (not on GA100), the present value before. Source: `nvidia-smi --help-query-gpu`.

use super::{quoted, uw_of_watts};

/// The fields to ask for, in this order.
pub const FIELDS: &str = "index,power.draw,name";

/// One card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its power, or why not.
    pub power_uw: Result<i64, String>,
}

/// Every line that is a card; a line that is none is an error.
pub fn parse(text: &str) -> Result<Vec<Card>, String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(card).collect()
}

fn card(line: &str) -> Result<Card, String> {
    let wrong = || format!("nvidia-smi said {}", quoted(line));
    let mut fields = line.splitn(3, ',').map(str::trim);
    let (Some(index), Some(power), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
        return Err(wrong());
    };
    let index = index.parse().map_err(|_| wrong())?;
    let power_uw = match power.parse::<f64>() {
        Ok(watts) => uw_of_watts(watts),
        Err(_) => Err(format!("the card says {} for its power", quoted(power))),
    };
    Ok(Card { index, name: name.into(), power_uw })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_that_measure_and_cards_that_do_not() {
        let cards = parse("0, 118.53, NVIDIA H200\n1, [N/A], Tesla K80, board 2\n2, [Unknown Error], X\n").unwrap();
        assert_eq!(cards[0], Card { index: 0, name: "NVIDIA H200".into(), power_uw: Ok(118_530_000) });
        assert_eq!(cards[1].name, "Tesla K80, board 2");
        assert!(cards[1].power_uw.clone().unwrap_err().contains("[N/A]"));
        assert!(cards[2].power_uw.is_err());
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn what_is_no_card_is_an_error() {
        for text in ["No devices were found", "0, 118.53", "Failed to initialize NVML: Driver/library version mismatch"]
        {
            assert!(parse(text).unwrap_err().starts_with("nvidia-smi said"), "{text}");
        }
    }
}
