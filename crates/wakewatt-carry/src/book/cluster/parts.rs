//! A state in one ConfigMap, or in several where it is too large for one.
//!
//! The parts are written before the ConfigMap names them, under the names of the set (a or b) that the state before does not
//! use; so whoever reads sees the old state or the new one, whenever the writer dies. Left-over parts are written over by the
//! next state of that set. A checksum of the whole says that parts belong together.

use super::{BookError, Kind, Place};
use serde_json::{Value, json};

/// Of the API's 1 MiB for an object, with room for what else is in it.
const IN_ONE: usize = 900_000;
/// More than this is no state of a rollout: 5,000 nodes are below 10 MB.
const MOST_PARTS: usize = 64;

/// Writes it under a name, in place of what was there; the ConfigMap as it is then.
pub(super) fn write(place: &Place, name: &str, head: &Value, state: &[u8]) -> Result<Value, BookError> {
    let broken = |why: String| BookError::Broken { place: place.said(), why };
    let text = std::str::from_utf8(state).map_err(|_| broken("a state that is no text".into()))?;
    let crc32 = crc32fast::hash(state).to_string();
    let old = set_of(head);
    let data = if text.len() <= IN_ONE {
        json!({"state": text, "crc32": crc32})
    } else {
        let pieces = cut(text);
        if pieces.len() > MOST_PARTS {
            return Err(broken(format!(
                "a state of {} bytes, more than is kept in a cluster; use --state with a folder",
                text.len()
            )));
        }
        let set = if old.as_ref().is_some_and(|(set, _)| set == "a") { "b" } else { "a" };
        for (n, piece) in pieces.iter().enumerate() {
            let name = part(name, set, n);
            let found = place.get(Kind::ConfigMap, &name)?;
            let mut object = found.unwrap_or_else(|| place.config_map(&name, Value::Null));
            object["data"] = json!({"part": piece});
            place.put(Kind::ConfigMap, object)?;
        }
        json!({"set": set, "n_parts": pieces.len().to_string(), "crc32": crc32})
    };
    let mut object = if head.is_null() { place.config_map(name, Value::Null) } else { head.clone() };
    object["data"] = data;
    let head = place.put(Kind::ConfigMap, object)?;
    remove_parts(place, name, old);
    Ok(head)
}

/// What stays is in nobody's way.
fn remove_parts(place: &Place, name: &str, parts: Option<(String, usize)>) {
    let (set, n_parts) = parts.unwrap_or_default();
    for n in 0..n_parts {
        let _ = place.remove(&part(name, &set, n));
    }
}

/// Reads it back, whole.
pub(super) fn read(place: &Place, head: &Value) -> Result<Vec<u8>, BookError> {
    let broken = |why: &str| BookError::Broken {
        place: place.said(),
        why: format!("{why}; kubectl get configmap shows it, and without it the rollout begins anew"),
    };
    let data = &head["data"];
    let text = match (data["state"].as_str(), set_of(head)) {
        (Some(text), _) => text.to_string(),
        (None, Some((set, n_parts))) => {
            let mut text = String::new();
            for n in 0..n_parts {
                let found = place.get(Kind::ConfigMap, &part(name_of(head), &set, n))?;
                let piece = found.as_ref().and_then(|found| found["data"]["part"].as_str());
                text += piece.ok_or_else(|| broken("a part of the state is missing"))?;
            }
            text
        }
        _ => return Err(broken("holds no state")),
    };
    if data["crc32"].as_str().and_then(|sum| sum.parse().ok()) != Some(crc32fast::hash(text.as_bytes())) {
        return Err(broken("the state is not what was written"));
    }
    Ok(text.into_bytes())
}

fn set_of(head: &Value) -> Option<(String, usize)> {
    let data = &head["data"];
    let n_parts: usize = data["n_parts"].as_str()?.parse().ok()?;
    Some((data["set"].as_str()?.to_string(), n_parts.min(MOST_PARTS)))
}

fn name_of(head: &Value) -> &str {
    head["metadata"]["name"].as_str().unwrap_or_default()
}

fn part(name: &str, set: &str, n: usize) -> String {
    format!("{name}-{set}-{n}")
}

/// Pieces that each fit into an object, cut between characters.
fn cut(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let mut at = rest.len().min(IN_ONE);
        while !rest.is_char_boundary(at) {
            at -= 1;
        }
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
