//! Several claims in an order declared beforehand: each is tested at the whole level, and only after all before it were proven.
//!
//! Nobody pays for the number of arms, only for their order. The chance of any false proof is that of the first claim in the
//! order that is not true (Maurer, Hothorn and Lehmacher 1995): what comes after it can only be proven after it was. With
//! looks the same holds of their shares, since a claim that is not true is called at any of them with at most their sum. The
//! adjusted p-value is the greatest so far. Not here: arms that nobody put in an order (`family`, by Holm).

/// A p-value and the level it is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Of its test by itself.
    pub p_value: f64,
    /// Of the look that judges it.
    pub level: f64,
}

/// What is left of a claim in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InPlace {
    /// The greatest p-value up to here.
    pub p_value: f64,
    /// Is it proven, and all before it?
    pub is_proven: bool,
}

/// Claims in their order.
pub fn in_sequence(claims: &[Claim]) -> Vec<InPlace> {
    let (mut most, mut is_open) = (0.0f64, true);
    let place = |claim: &Claim| {
        most = most.max(claim.p_value);
        is_open &= claim.p_value <= claim.level;
        InPlace { p_value: most, is_proven: is_open }
    };
    claims.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_an_open_claim_stays_open() {
        let claims = [0.001, 0.03, 0.2, 0.0001].map(|p_value| Claim { p_value, level: 0.05 });
        let found = in_sequence(&claims);
        assert_eq!(found.iter().map(|c| c.p_value).collect::<Vec<_>>(), [0.001, 0.03, 0.2, 0.2]);
        assert_eq!(found.iter().map(|c| c.is_proven).collect::<Vec<_>>(), [true, true, false, false]);
        let strict = [Claim { p_value: 0.01, level: 0.006 }, Claim { p_value: 0.001, level: 0.05 }];
        assert!(in_sequence(&strict).iter().all(|c| !c.is_proven), "each against its own look's level");
        assert!(in_sequence(&[]).is_empty());
    }
}
