//! Which registry file belongs to a BIOS: an exact match fails on most makers.
//!
//! A BIOS names `BiosAttributeRegistry.v1_0_3`, the file calls itself `…v1_0_0` and `BiosAttributeRegistry1.0` (Dell),
//! `BiosAttributeRegistry` and `BiosAttributeRegistry.1.0.0` (Supermicro), or the BIOS names none (OpenBMC). So, in this order: the
//! same id; the same registry; the same without its version; the only file whose id speaks of BIOS attributes. Files that can
//! be told apart by their path are looked at first, because a list may have dozens.

use crate::link::{members, path_of};
use crate::registry::{NoRegistry, Registry};
use crate::service::{NoDocument, Service};
use serde_json::Value;

/// Registry files that are looked at.
const MAX_FILES: usize = 64;

/// Why there is no registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// The service lists none.
    #[error("this BMC lists no registries")]
    NoList,
    /// None of them is this BIOS's.
    #[error("none of the BMC's {n_files} registries is that of its BIOS ({wanted})")]
    NoMatch {
        /// The name that the BIOS gives.
        wanted: String,
        /// How many there are.
        n_files: usize,
    },
    /// The file names no place.
    #[error("{0}: names no place where the registry lies")]
    NoPlace(String),
    /// It cannot be read.
    #[error(transparent)]
    NotRead(#[from] NoDocument),
    /// It is something else.
    #[error(transparent)]
    NotOne(#[from] NoRegistry),
}

/// Finds and reads it.
pub(super) fn find(service: &mut dyn Service, list: Option<&str>, wanted: Option<&str>) -> Result<Registry, NotFound> {
    let files = members(&service.get(list.ok_or(NotFound::NoList)?)?.json);
    let file = choose(service, &files, wanted)?;
    let json = service.get(&file)?.json;
    let places = json["Location"].as_array().ok_or_else(|| NotFound::NoPlace(file.clone()))?;
    let is_english =
        |place: &&Value| place["Language"].as_str().is_some_and(|l| l.to_ascii_lowercase().starts_with("en"));
    let place = places.iter().find(is_english).or(places.first());
    // iLO 4 has the path one level deeper.
    let uri = place.and_then(|place| place["Uri"].as_str().or(place["Uri"]["extref"].as_str()));
    let uri = uri.and_then(path_of).ok_or_else(|| NotFound::NoPlace(file.clone()))?;
    Ok(Registry::parse(&service.get(&uri)?.json, &uri)?)
}

fn choose(service: &mut dyn Service, files: &[String], wanted: Option<&str>) -> Result<String, NotFound> {
    let is_likely = |path: &&String| path.to_ascii_lowercase().contains("biosattributereg");
    let mut chosen: Vec<&String> = files.iter().filter(is_likely).collect();
    if chosen.is_empty() {
        chosen = files.iter().collect();
    }
    let mut seen: Vec<(&String, [String; 2])> = Vec::new();
    for path in chosen.into_iter().take(MAX_FILES) {
        if let Ok(document) = service.get(path) {
            let name = |key: &str| document.json[key].as_str().unwrap_or_default().to_string();
            seen.push((path, [name("Id"), name("Registry")]));
        }
    }
    let wanted = wanted.unwrap_or("BiosAttributeRegistry");
    let with = |test: &dyn Fn(&str) -> bool| seen.iter().find(|(_, names)| names.iter().any(|name| test(name)));
    let exact = with(&|name| name == wanted).or_else(|| with(&|name| stem(name) == stem(wanted)));
    let of_bios: Vec<_> =
        seen.iter().filter(|(_, names)| names.iter().any(|n| n.contains("BiosAttributeReg"))).collect();
    let only = if let [one] = of_bios[..] { Some(one) } else { None };
    let none = || NotFound::NoMatch { wanted: wanted.into(), n_files: files.len() };
    exact.or(only).map(|(path, _)| (*path).clone()).ok_or_else(none)
}

/// Without what looks like a version.
fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_what_follows_the_first_dot() {
        assert_eq!(stem("BiosAttributeRegistryA42.v1_2_60"), "BiosAttributeRegistryA42");
        assert_eq!(stem("BiosAttributeRegistry.1.0.0"), "BiosAttributeRegistry");
    }
}
