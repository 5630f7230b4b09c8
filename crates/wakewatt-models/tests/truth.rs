//! docs/truth.md is what the models say today; `UPDATE_EXPECT=1` writes it, as `cargo xtask truth` does.
// The bans are for the models themselves; a test may read files.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[test]
fn the_page_of_published_truth_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/truth.md");
    let page = wakewatt_models::truth::page();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == page, "docs/truth.md is stale; run: cargo xtask truth");
}
