//! Every golden decision that came with the project is decided alike: no mismatch, and none left out.
// The bans are for the models themselves; a test may read files.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::io::Read;
use wakewatt_models::vectors::{Replay, Verdict};

#[test]
fn the_models_decide_as_the_kernels_did() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/vectors");
    let mut n_files = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()).filter(|n| n.ends_with(".jsonl.xz")) else {
            continue;
        };
        let mut text = String::new();
        let file = std::fs::File::open(&path).unwrap();
        lzma_rust2::XzReader::new(file, false).read_to_string(&mut text).unwrap();
        let (mut replay, mut n_same) = (Replay::default(), 0u32);
        for (at, line) in text.lines().enumerate() {
            match replay.line(line).unwrap() {
                Verdict::Same => n_same += 1,
                Verdict::Different(words) => wrong.push(format!("{name}:{}: {words}", at + 1)),
                Verdict::Followed => {}
            }
        }
        n_files += 1;
        assert!(n_same > 100 || !wrong.is_empty(), "{name}: only {n_same} decisions");
    }
    assert!(n_files >= 14, "{n_files} files");
    assert!(wrong.is_empty(), "{} mismatches, first: {:#?}", wrong.len(), &wrong[..wrong.len().min(40)]);
}
