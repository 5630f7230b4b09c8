//! Links in Redfish documents: followed only to paths of the same server.
//!
//! Paths are never built from ids: those are `1`, `System.Embedded.1`, `Self`, a serial number. A registry may lie outside
//! `/redfish/v1` (Supermicro: `/registries/…`), so any plain path counts; what could lead to another server, or out of a
//! recorded folder, does not.

use serde_json::Value;

/// Members of a collection that are looked at, at most.
const MAX_MEMBERS: usize = 512;

/// A text that is a plain path of this server; without its fragment, but with a slash at its end: HPE redirects those who
/// leave it out.
pub fn path_of(text: &str) -> Option<String> {
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.~:()'%#@+=,".contains(c));
    let is_own = text.starts_with('/') && !text.starts_with("//") && !text.split('/').any(|part| part == "..");
    let path = text.split('#').next().unwrap_or(text);
    (is_plain && is_own && path.len() > 1 && path.len() < 1024).then(|| path.to_string())
}

/// The path behind `{"@odata.id": …}`.
pub fn link(value: &Value) -> Option<String> {
    path_of(value["@odata.id"].as_str()?)
}

/// The members of a collection, each once.
pub fn members(document: &Value) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for path in document["Members"].as_array().into_iter().flatten().take(MAX_MEMBERS).filter_map(link) {
        if !out.contains(&path) {
            out.push(path);
        }
    }
    out
}

/// What a `Location` header leads to: a path, or a URL of this very server.
pub fn location(base: &str, text: &str) -> Option<String> {
    path_of(text.strip_prefix(base).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn links_stay_on_the_server() {
        for (text, path) in [
            ("/redfish/v1/Systems/1/", Some("/redfish/v1/Systems/1/")),
            ("/registries/BiosAttributeRegistry.1.0.0.json", Some("/registries/BiosAttributeRegistry.1.0.0.json")),
            ("/redfish/v1/Systems/1#/Bios", Some("/redfish/v1/Systems/1")),
            ("//evil/redfish", None),
            ("https://evil/redfish", None),
            ("/redfish/../../etc/passwd", None),
            ("/a b\r\nHost: x", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(path_of(text).as_deref(), path, "{text}");
        }
        assert_eq!(location("https://bmc", "https://bmc/redfish/v1/x"), Some("/redfish/v1/x".into()));
        assert_eq!(location("https://bmc", "https://other/redfish/v1/x"), None);
        assert_eq!(
            members(&json!({ "Members": [{"@odata.id": "/a"}, {"@odata.id": "/a"}, 7, {"@odata.id": 7}] })),
            ["/a"]
        );
        assert!(members(&json!("x")).is_empty());
    }
}
