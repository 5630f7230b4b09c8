//! Paths as people type them: `x`, `./x`, `x/`, `../here/x`, and from the root, in the working folder.

use crate::tool::{fixtures, host, said, wakewatt};
use std::path::Path;

/// How a name in the working folder may be written.
fn forms(folder: &Path, name: &str) -> Vec<String> {
    let here = folder.file_name().unwrap().to_str().unwrap();
    vec![
        name.to_string(),
        format!("./{name}"),
        format!("../{here}/{name}"),
        format!("{}/{name}", folder.display()),
        format!(".//{name}"),
    ]
}

/// What is written, as a file or as a folder, and what is read. `PATH` stands for the path, `HOST` and `RUN` for files that are there.
const WRITES_FILE: &[&str] = &[
    "capture --host HOST -o PATH",
    "doctor --host HOST -o PATH",
    "doctor --host HOST --no-report --save PATH",
    "report RUN -o PATH",
    "simulate plain --save PATH",
    "simulate plain -o PATH",
    "import TEXT -o PATH",
    "replay TRACE --recorded hz=250 -o PATH",
    "replay TRACE --recorded hz=250 --csv PATH",
];
const WRITES_FOLDER: &[&str] = &["report RUN --csv PATH", "report RUN --svg PATH", "watch --once --record PATH"];
const READS_FILE: &[&str] = &[
    "inspect --host PATH",
    "doctor --no-report --host PATH",
    "explain C1 --host PATH",
    "tune plan latency --host PATH",
    "capture --host PATH -o out.host",
    "compare PATH PATH",
];

fn typed(folder: &Path, template: &str, path: &str) {
    let known = [
        ("HOST", host("sklep0").display().to_string()),
        ("RUN", folder.join("given.run").display().to_string()),
        ("TRACE", fixtures().join("traces/arm64-menu-exact-6.1.wtrace").display().to_string()),
        ("TEXT", fixtures().join("stories/jonas/lscpu.txt").display().to_string()),
        ("PATH", path.to_string()),
    ];
    let words: Vec<String> = template
        .split(' ')
        .map(|word| known.iter().find(|(name, _)| *name == word).map_or(word.to_string(), |(_, path)| path.clone()))
        .collect();
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = said(wakewatt(&args).current_dir(folder));
    assert_eq!(said.code, Some(0), "{args:?}: {said:?}");
}

#[test]
fn every_form_of_a_path_is_written_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    typed(&folder, "measure wakeup --duration 200ms --save PATH", "given.run");
    for template in WRITES_FILE {
        for path in forms(&folder, "made") {
            typed(&folder, template, &path);
            if template.contains("PATH") {
                assert!(folder.join("made").is_file(), "{template} with {path}");
                std::fs::remove_file(folder.join("made")).unwrap();
            }
        }
    }
    for template in WRITES_FOLDER {
        for path in forms(&folder, "made").into_iter().chain(["made/".to_string()]) {
            typed(&folder, template, &path);
            assert!(folder.join("made").is_dir(), "{template} with {path}");
            std::fs::remove_dir_all(folder.join("made")).unwrap();
        }
    }
    std::fs::copy(host("sklep0"), folder.join("given.host")).unwrap();
    for template in READS_FILE {
        for path in forms(&folder, "given.host") {
            typed(&folder, template, &path);
        }
    }
}

#[test]
fn a_folder_where_a_file_is_meant_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = host("sklep0");
    let recorded = recorded.to_str().unwrap();
    for args in [
        &["capture", "--host", recorded, "-o", "made/"][..],
        &["doctor", "--host", recorded, "-o", "made/"],
        &["doctor", "--host", recorded, "--no-report", "--save", "made/"],
    ] {
        let said = said(wakewatt(args).current_dir(dir.path()));
        assert!(
            said.code == Some(4) && said.err.contains("made/: it is a folder; name a file in it"),
            "{args:?}: {said:?}"
        );
    }
}
