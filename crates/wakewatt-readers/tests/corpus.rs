//! The kept inputs of `fuzz/corpus` and former crashes of `fuzz/regressions` through the readers of a stable build.

use std::fs;
use std::path::{Path, PathBuf};
use wakewatt_readers::TARGETS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// What is kept stays small, every target has seeds, and none of them panics.
#[test]
fn kept_inputs_pass() {
    let mut n_bytes = 0;
    for (name, target) in TARGETS {
        let mut n_inputs = 0;
        for folder in ["corpus", "regressions"] {
            for file in fs::read_dir(fuzz().join(folder).join(name)).into_iter().flatten().flatten() {
                let bytes = fs::read(file.path()).unwrap();
                n_bytes += bytes.len();
                n_inputs += 1;
                println!("{name}: {}", file.path().display());
                target(&bytes);
                // Cut in the middle, too: most of what arrives damaged is.
                target(&bytes[..bytes.len() / 2]);
            }
        }
        assert!(n_inputs > 0, "fuzz/corpus/{name} has no seed");
    }
    assert!(n_bytes < 300_000, "{n_bytes} bytes: minimise the corpus");
}

/// A target that cargo-fuzz does not see would never be fuzzed.
#[test]
fn every_target_is_a_program_of_fuzz() {
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml lacks {name}");
        let program = fs::read_to_string(fuzz().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("target(\"{name}\")")), "{name}");
    }
}
