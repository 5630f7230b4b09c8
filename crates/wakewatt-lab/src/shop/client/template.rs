//! Text with things to draw in it: `/product/{popular:1-500}`.
//!
//! Braces that mean nothing here stay as they are, so that JSON needs no escapes. See `mix.rs` for what there is.

use wakewatt_core::stats::random::Random;

/// Text with things to draw in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Number(u64, u64),
    Popular(u64, u64),
    Word(Vec<String>),
    Session,
    Client,
}

impl Template {
    /// Reads it; an error says which braces make no sense.
    pub(super) fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            pieces.push(Piece::Text(before.into()));
            let found = from.find('}').map(|end| (piece(&from[1..end]), &from[end + 1..]));
            match found {
                Some((Err(why), _)) => return Err(why),
                Some((Ok(Some(piece)), after)) => {
                    pieces.push(piece);
                    rest = after;
                }
                // A brace of JSON, say.
                _ => {
                    pieces.push(Piece::Text("{".into()));
                    rest = &from[1..];
                }
            }
        }
        pieces.push(Piece::Text(rest.into()));
        Ok(Template(pieces))
    }

    /// Draws everything.
    pub(super) fn fill(&self, random: &mut Random, session: u64, client: u32) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Number(low, high) => out.push_str(&(low + random.below(high - low + 1)).to_string()),
                Piece::Popular(low, high) => out.push_str(&(low + popular(random, high - low + 1)).to_string()),
                Piece::Word(words) => out.push_str(&words[random.index(words.len())]),
                Piece::Session => out.push_str(&session.to_string()),
                Piece::Client => out.push_str(&client.to_string()),
            }
        }
        out
    }
}

/// Below `n`, small ones more often: the cube of a uniform number.
fn popular(random: &mut Random, n: u64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Not negative, below n.
    let at = (random.unit().powi(3) * n as f64) as u64;
    at.min(n - 1)
}

/// What stands in braces; none where it is not for us.
fn piece(inside: &str) -> Result<Option<Piece>, String> {
    let range = |text: &str| {
        let (low, high) = text.split_once('-')?;
        let (low, high) = (low.trim().parse::<u64>().ok()?, high.trim().parse::<u64>().ok()?);
        (low <= high && high < 1 << 62).then_some((low, high))
    };
    let wrong = || format!("{{{}}}: write a range such as 1-500", inside.escape_default());
    match inside.split_once(':') {
        None if inside == "session" => Ok(Some(Piece::Session)),
        None if inside == "client" => Ok(Some(Piece::Client)),
        Some(("number", text)) => range(text).map(|(l, h)| Some(Piece::Number(l, h))).ok_or_else(wrong),
        Some(("popular", text)) => range(text).map(|(l, h)| Some(Piece::Popular(l, h))).ok_or_else(wrong),
        Some(("word", text)) => Ok(Some(Piece::Word(text.split('|').map(str::to_string).collect()))),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_breaks_it_and_plain_text_stays(text in "[a-z{}:|/0-9-]{0,40}", seed in any::<u64>()) {
            if let Ok(template) = Template::parse(&text) {
                let filled = template.fill(&mut Random::new(seed), 7, 8);
                if !["{number:", "{popular:", "{word:", "{session}", "{client}"].iter().any(|k| text.contains(k)) {
                    prop_assert_eq!(filled, text);
                }
            }
        }
    }
}
