//! The bill of materials: CycloneDX 1.5 as JSON, of what is linked into one binary.
//!
//! Made here and not by cargo-cyclonedx, because it tells more about a static binary: the C library, SQLite and compiler are in it
//! with the versions that stand in the file itself, and macros and build scripts are not. Purls are those of the package-url
//! specification (`pkg:cargo/NAME@VERSION`), so that a scanner finds advisories. The serial number follows from the binary, so
//! the same binary has the same bill.

use super::linked::{BESIDE, Crate, Linked};
use super::tool::sha256;
use anyhow::Result;
use serde_json::{Value, json};

/// The document for a binary.
pub(super) fn document(linked: &Linked, binary: &[u8], version: &str, time: &str) -> Result<String> {
    let digest = sha256(binary)?;
    let own = linked.crates.values().find(|linked| linked.is_ours && linked.name == "wakewatt");
    let root = own.map(reference).unwrap_or_default();
    let found = BESIDE.iter().filter_map(|(name, marker, licence, about)| {
        Some(beside(name, &version_after(binary, marker.as_bytes())?, licence, about))
    });
    let sqlite = linked.sqlite().map(|version| beside("sqlite", &version, "blessing", "inside libsqlite3-sys"));
    let beside: Vec<Value> = found.chain(sqlite).collect();
    let names = |values: &[Value]| values.iter().map(|v| v["bom-ref"].clone()).collect::<Vec<_>>();
    let mut components: Vec<Value> =
        linked.crates.values().filter(|linked| reference(linked) != root).map(component).collect();
    let mut dependencies: Vec<Value> =
        linked.crates.values().map(|of| depends(linked, of, &root, &names(&beside))).collect();
    dependencies.extend(names(&beside).into_iter().map(|name| json!({ "ref": name, "dependsOn": [] })));
    components.extend(beside);
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial(&digest),
        "version": 1,
        "metadata": {
            "timestamp": time,
            "tools": { "components": [{ "type": "application", "name": "wakewatt xtask", "version": version }] },
            "component": {
                "type": "application", "bom-ref": root, "name": "wakewatt", "version": version,
                "purl": format!("pkg:generic/wakewatt@{version}"),
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "hashes": [{ "alg": "SHA-256", "content": digest }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// A crate's name in the document.
fn reference(linked: &Crate) -> String {
    format!("pkg:cargo/{}@{}", linked.name, linked.version)
}

fn component(linked: &Crate) -> Value {
    let mut out = json!({
        "type": "library",
        "bom-ref": reference(linked),
        "name": linked.name,
        "version": linked.version,
        "scope": "required",
        "licenses": [{ "expression": linked.licence }],
        "purl": reference(linked),
    });
    if !linked.about.is_empty() {
        out["description"] = json!(linked.about);
    }
    if let Some(checksum) = &linked.checksum {
        out["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if linked.repository.starts_with("https://") && !linked.is_ours {
        out["externalReferences"] = json!([{ "type": "vcs", "url": linked.repository }]);
    }
    out
}

fn depends(all: &Linked, of: &Crate, root: &str, beside: &[Value]) -> Value {
    let mut on: Vec<Value> =
        of.uses.iter().filter_map(|key| all.crates.get(key)).map(|c| json!(reference(c))).collect();
    if reference(of) == root {
        on.extend_from_slice(beside);
    }
    json!({ "ref": reference(of), "dependsOn": on })
}

/// What is no crate.
fn beside(name: &str, version: &str, licence: &str, about: &str) -> Value {
    json!({
        "type": "library", "bom-ref": format!("pkg:generic/{name}@{version}"), "name": name, "version": version,
        "description": about, "scope": "required", "licenses": [{ "expression": licence }],
        "purl": format!("pkg:generic/{name}@{version}"),
    })
}

/// The first word with a digit at its front in the text that begins with the marker.
fn version_after(binary: &[u8], marker: &[u8]) -> Option<String> {
    let at = binary.windows(marker.len()).position(|bytes| bytes == marker)?;
    let text: Vec<u8> =
        binary[at..].iter().skip(marker.len()).take(100).copied().take_while(|b| (32..127).contains(b)).collect();
    let text = String::from_utf8(text).ok()?;
    let mut words = text.split([' ', '(', ')']);
    words.find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(|word| word.trim_end_matches('.').to_string())
}

/// A UUID of version 8 (RFC 9562: made by whoever uses it) from a digest.
fn serial(digest: &str) -> String {
    let d = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-8{}-8{}-{}", d(0, 8), d(8, 12), d(12, 15), d(15, 18), d(18, 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_the_binary() {
        let binary = b"\0\x01GNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.\0rustc version 1.95.0 (5980)\0GCC: (Debian 12.2.0-14) 12.2.0\0";
        let of = |marker: &str| version_after(binary, marker.as_bytes());
        assert_eq!(of("GNU C Library ").as_deref(), Some("2.36-9+deb12u14"));
        assert_eq!(of("rustc version ").as_deref(), Some("1.95.0"));
        assert_eq!(of("GCC: ").as_deref(), Some("12.2.0-14"));
        assert_eq!(of("musl "), None);
    }

    #[test]
    fn a_serial_number_is_a_uuid() {
        assert_eq!(
            serial("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
            "urn:uuid:01234567-89ab-8cde-8f01-23456789abcd"
        );
    }
}
