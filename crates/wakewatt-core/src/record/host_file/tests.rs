//! What is written reads back; what was not written by us is refused by its line.

use super::read::TOO_MUCH;
use super::*;
use crate::source::{ErrorKind, Source, Tree};
use expect_test::expect;
use proptest::prelude::*;

fn sample() -> Tree {
    let mut tree = Tree::from_text(
        "//- /proc/loadavg\na\nb\n//- /sys/class/x!denied\n//- msr 0x1b0 cpu0 6\n//- msr 0x1b0 cpu1 6\n",
    );
    for cpu in 0..9u32 {
        tree.files.insert(format!("/sys/cpu{cpu}/latency"), Ok(b"290\n".to_vec()));
        tree.files.insert(format!("/sys/cpu{cpu}/usage"), Ok(format!("{cpu}\n").into_bytes()));
    }
    tree.files.insert("/dmi".into(), Ok(vec![0, 1, 255]));
    tree.files.insert("/odd name{}".into(), Ok(b"no newline".to_vec()));
    tree.folders.insert("/sys".into(), Ok(vec!["cpu0".into(), "cpu1".into(), "cpuidle".into()]));
    tree.links.insert("/sys/driver".into(), Ok("../x y".into()));
    tree
}

#[test]
fn many_cpus_are_one_line() {
    expect![[r#"
        wakewatt-host 1
        # made by a test
        /dmi hex
        	0001ff
        /odd%20name%7B%7D =- no newline
        /proc/loadavg <<
        	a
        	b
        /sys/ list cpu{0-1} cpuidle
        /sys/class/x : denied Permission denied
        /sys/cpu{0-8}/latency = 290
        /sys/cpu{0-8}/usage each 0 1 2 3 4 5 6 7 8
        /sys/driver -> ../x%20y
        msr 0x1b0 cpu{0-1} 6
        # end
    "#]]
    .assert_eq(&write(&sample(), &["made by a test".into()]));
}

#[test]
fn round_trip() {
    let tree = sample();
    let back = read(&write(&tree, &[]), "test").unwrap();
    assert_eq!(
        (&back.files, &back.folders, &back.links, &back.msrs),
        (&tree.files, &tree.folders, &tree.links, &tree.msrs)
    );
    assert_eq!(back.read("/never/asked").unwrap_err().kind, ErrorKind::NotRecorded);
    assert_eq!(back.read("/sys/cpu7").unwrap_err().kind, ErrorKind::Absent, "the folder was listed without it");
}

#[test]
fn a_cut_at_the_end_of_a_line_shows() {
    let whole = write(&sample(), &[]);
    assert!(has_end(&whole) && has_end(whole.trim_end()));
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    for end in &ends[..ends.len() - 2] {
        assert!(!has_end(&whole[..*end]), "{}", &whole[..*end]);
    }
}

/// What the lines unfold to is counted before it is made; a real machine's groups are far inside.
#[test]
fn bombs_are_refused_by_their_line() {
    let states = "/sys/devices/system/cpu/cpu0/cpuidle/ list state{0-65535}\n";
    let cpu = "/sys/devices/system/cpu";
    for bomb in [
        states.to_string(),
        format!("{cpu}/cpu{{0-8191}}/ list a{{0-99}}\n"),
        format!("/a{{0-65535}}/b = {}\n", "x".repeat(2000)),
        format!("/a{{0-9999}}/{} : absent\n", "x".repeat(8000)),
        format!("/a{{0-9999}}/b/ : denied {}\n", "x".repeat(8000)),
        "/sys/class/net/ list veth{0-9999}\n/sys/class/block/ list sd{0-9999}\n".into(),
        format!("/a{{0-65535}}/b{} = 1\n/a{{0-65535}}/c = 1\n/a{{0-65535}}/d = 1\n", "x".repeat(9)),
    ] {
        let error = read(&format!("wakewatt-host 1\n{bomb}"), "x").unwrap_err();
        assert!(matches!(&error, HostFileError::Line { what, .. } if what == TOO_MUCH), "{bomb:.60}: {error}");
    }
    let block = format!("{}\n", "x\n".repeat(4000));
    let bomb = format!("/x blocks\n\t{}\n", (block + &"^4001\n".repeat(4000)).trim_end().replace('\n', "\n\t"));
    let error = read(&format!("wakewatt-host 1\n{bomb}"), "x").unwrap_err();
    assert!(error.to_string().contains("blocks larger"), "{error}");
    // 8192 CPUs, the most a kernel can have, with their states and counters.
    let usage: Vec<String> = (0..8192).map(|n| (n * 7919).to_string()).collect();
    let mut real = format!("{cpu}/ list cpu{{0-8191}}\n{cpu}/cpu{{0-8191}}/cpuidle/ list state{{0-4}}\n");
    for state in 0..5 {
        real += &format!("{cpu}/cpu{{0-8191}}/cpuidle/state{state}/usage each {}\n", usage.join(" "));
        real += &format!("{cpu}/cpu{{0-8191}}/cpuidle/state{state}/latency = 290\n");
    }
    assert_eq!(read(&format!("wakewatt-host 1\n{real}"), "x").unwrap().files.len(), 81_920);
}

#[test]
fn blocks_that_differ_in_a_line_are_counted() {
    let flags = "fpu vme ".repeat(100);
    let text: String = (0..40).map(|cpu| format!("processor : {cpu}\nmodel : x\nflags : {flags}\n\n")).collect();
    let mut tree = Tree::default();
    tree.files.insert("/proc/cpuinfo".into(), Ok(text.clone().into_bytes()));
    let written = write(&tree, &[]);
    assert!(written.len() < 2500, "{}", written.len());
    assert!(written.contains("\tprocessor : 7\n\t^3\n"), "{written}");
    assert_eq!(read(&written, "x").unwrap().files["/proc/cpuinfo"], Ok(text.into_bytes()));
    for bad in ["^9", "^x", "^18446744073709551615", "a\n\t\n\t^5"] {
        assert!(read(&format!("wakewatt-host 1\n/x blocks\n\t{bad}\n"), "x").is_err(), "{bad}");
    }
}

#[test]
fn other_versions_and_rubbish_say_so() {
    assert_eq!(read("", "x"), Err(HostFileError::NotAHostFile));
    assert_eq!(read("\u{0}\u{1}binary", "x"), Err(HostFileError::NotAHostFile));
    assert_eq!(read("wakewatt-host 2\n", "x"), Err(HostFileError::Version("2".into())));
    for bad in [
        "/x",
        "/x ? 1",
        "/cpu{0-99999999999}/x = 1",
        "/cpu{0-3}/x each 1 2",
        "/x hex\n\tzz",
        "msr 1 2 3",
        "/x : sometimes",
        "/%zz = 1",
    ] {
        let error = read(&format!("wakewatt-host 1\n{bad}\n"), "x").unwrap_err();
        assert!(matches!(error, HostFileError::Line { line: 2, .. }), "{bad}: {error}");
    }
    let bomb = "/a{0-65000}/b = 1\n".repeat(40);
    assert!(read(&format!("wakewatt-host 1\n{bomb}"), "x").unwrap_err().to_string().contains("more entries"));
}

proptest! {
    #[test]
    fn any_content_survives(bytes in proptest::collection::vec(any::<u8>(), 0..80), text in "[ -~\n\t]{0,60}", name in "[a-z %{}]{1,12}") {
        let mut tree = Tree::default();
        tree.files.insert(format!("/{name}/a"), Ok(bytes));
        tree.files.insert("/b".into(), Ok(text.into_bytes()));
        let back = read(&write(&tree, &[]), "x").unwrap();
        prop_assert_eq!(back.files, tree.files);
    }

    #[test]
    fn blocks_survive(lines in proptest::collection::vec("[a-c^]?|", 0..60), n_times in 1usize..200) {
        let text = format!("{}\n", lines.join("\n")).repeat(n_times * 20);
        let mut tree = Tree::default();
        tree.files.insert("/b".into(), Ok(text.into_bytes()));
        let back = read(&write(&tree, &[]), "x").unwrap();
        prop_assert_eq!(back.files, tree.files);
    }

    #[test]
    fn no_input_panics(text in "(wakewatt-host 1\n)?[ -~\n\t{}]{0,200}") {
        let _ = read(&text, "x");
    }
}
