//! What the shop sells: products made from a seed, so that every start of the shop sells the same.
//!
//! Sizes are those of ordinary shops: a name of three words, a description of 400 to 1200 bytes. Texts are drawn from a
//! small stock of words, so that each word of [`WORDS`] is found in a few percent of all products, as searches are.

use wakewatt_core::stats::random::Random;

/// Words of names and descriptions; what clients search for. Letters only: no query language reads more into them.
pub const WORDS: [&str; 40] = [
    "amber", "basket", "birch", "brass", "bright", "canvas", "cedar", "chair", "clock", "copper", "cotton", "cup",
    "desk", "felt", "garden", "glass", "green", "kettle", "lamp", "leather", "light", "linen", "mirror", "oak",
    "paper", "pillow", "plain", "quiet", "round", "rug", "shelf", "silver", "slate", "small", "stool", "table", "tall",
    "walnut", "warm", "wool",
];

/// Departments of the shop.
pub const N_CATEGORIES: i64 = 20;
/// In stock of each product: enough for days of load, so that "sold out" is an event of tests.
pub const STOCK: i64 = 1_000_000;

/// One product, as it is put into the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// From 1.
    pub id: i64,
    /// Department, from 0.
    pub category: i64,
    /// Three words.
    pub name: String,
    /// A paragraph.
    pub description: String,
    /// In cents.
    pub price_cents: i64,
}

/// All products of a seed.
pub fn products(n: u32, seed: u64) -> impl Iterator<Item = Made> {
    let mut random = Random::new(seed ^ 0x5109);
    (1..=i64::from(n)).map(move |id| product(id, &mut random))
}

fn product(id: i64, random: &mut Random) -> Made {
    let mut text = |n_words: usize| {
        let words: Vec<&str> = (0..n_words).map(|_| WORDS[random.index(WORDS.len())]).collect();
        words.join(" ")
    };
    let name = text(3);
    let mut description = text(8);
    // Filler that no search finds: most text of a page is not what people look for.
    let n_filler = 40 + random.index(90);
    (0..n_filler).for_each(|_| description.push_str(" and so on,"));
    let price_cents = i64::try_from(random.below(20_000)).unwrap_or(0) + 99;
    Made { id, category: id % N_CATEGORIES, name, description, price_cents }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_sells_the_same() {
        let all: Vec<Made> = products(50, 1).collect();
        assert_eq!(all, products(50, 1).collect::<Vec<_>>());
        assert_ne!(all, products(50, 2).collect::<Vec<_>>());
        assert!(all.iter().all(|p| (400..1600).contains(&p.description.len()) && p.price_cents > 0));
        assert_eq!((all[0].id, all[49].id), (1, 50));
    }
}
