//! The bucket rule stands twice: in C for the kernel, in Rust for reading. Both run over the same values here.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use wakewatt_core::samples::kernel_histogram::bucket_of;
use wakewatt_testing::{Lacks, skipped};

const PROGRAM: &str = r#"
extern int printf(const char *, ...);
extern unsigned long long strtoull(const char *, char **, int);
#include "hist.h"
int main(int n, char **v) { for (int i = 1; i < n; i++) printf("%u\n", bucket_of(strtoull(v[i], 0, 10))); return 0; }
"#;

#[test]
fn both_sides_put_every_value_into_the_same_bucket() {
    let compiler = ["clang", "cc", "gcc"].into_iter().find(|c| Command::new(c).arg("--version").output().is_ok());
    let Some(compiler) = compiler else {
        let test = "both_sides_put_every_value_into_the_same_bucket";
        return skipped(test, Lacks::Program("cc"), "no C compiler");
    };
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("b.c"), folder.path().join("b"));
    std::fs::write(&source, PROGRAM).unwrap();
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/shared");
    let built = Command::new(compiler).arg("-w").arg("-I").arg(shared).arg(&source).arg("-o").arg(&program).output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut values: Vec<u64> = (0..2_000).collect();
    for power in 0..64 {
        let v = 1u64 << power;
        values.extend([v - 1, v, v + 1, v + v / 3, u64::MAX - v]);
    }
    let words: Vec<String> = values.iter().map(ToString::to_string).collect();
    let said = Command::new(&program).args(&words).output().unwrap();
    let theirs: Vec<usize> = String::from_utf8(said.stdout).unwrap().lines().map(|l| l.parse().unwrap()).collect();
    let ours: Vec<usize> = values.iter().map(|v| bucket_of(*v)).collect();
    assert_eq!(theirs, ours);
}
