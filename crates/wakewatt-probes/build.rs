//! Compiles the eBPF programs with clang.
//!
//! Without clang the crate still builds: the program is empty and tracing says why it cannot. The variable
//! `WAKEWATT_NO_CLANG` (any value) does the same on a machine that has clang, so that this path is tested too.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [&str; 2] = ["wake", "icmp"];

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-env-changed=WAKEWATT_NO_CLANG");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = find_clang();
    for name in PROGRAMS {
        let object = out.join(format!("{name}.bpf.o"));
        let source = PathBuf::from(format!("src/{name}/{name}.bpf.c"));
        match &clang {
            Some(clang) => compile(clang, &source, &object),
            None => std::fs::write(&object, b"").expect("OUT_DIR is writable"),
        }
    }
    if clang.is_none() {
        // Installed later, it shall be noticed.
        println!("cargo:rerun-if-changed=/usr/bin");
        println!("cargo:warning=no clang with a BPF target: built without eBPF programs, so `trace` will not work");
    }
}

/// The first clang that knows the BPF target.
fn find_clang() -> Option<String> {
    if std::env::var_os("WAKEWATT_NO_CLANG").is_some() {
        return None;
    }
    let named = std::env::var("CLANG").ok();
    let usual = ["clang".to_string()].into_iter().chain((14..=24).rev().map(|v| format!("clang-{v}")));
    named.into_iter().chain(usual).find(|clang| {
        let targets = Command::new(clang).arg("--print-targets").output();
        targets.is_ok_and(|o| o.status.success() && String::from_utf8_lossy(&o.stdout).contains("bpf"))
    })
}

/// Programs on kprobes read the registers of the architecture they will run on.
fn registers() -> Vec<String> {
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let is_known = ["x86_64", "aarch64"].contains(&arch.as_str());
    if is_known { vec![format!("-DARCH_{arch}"), "-DARCH_HAS_REGISTERS".into()] } else { Vec::new() }
}

/// BTF names the files that lines are of; with the folder's own name in them, the same sources in two folders would be two programs.
fn named_alike() -> String {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    format!("-ffile-prefix-map={folder}=/wakewatt/probes")
}

fn compile(clang: &str, source: &Path, object: &Path) {
    // -g makes the BTF that relocation needs; -mcpu=v3 is understood since Linux 5.1.
    let status = Command::new(clang)
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-std=gnu11", "-Wall", "-Werror", "-Isrc/shared"])
        .args(registers())
        .arg(named_alike())
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status();
    assert!(status.is_ok_and(|s| s.success()), "{clang} failed to compile {}", source.display());
}
