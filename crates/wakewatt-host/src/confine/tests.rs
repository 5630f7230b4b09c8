//! Each test confines a thread of its own, because nothing of it can be undone; what the kernel lacks is skipped by name.

use super::*;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

/// What this thread says once it is confined.
fn confined<T: Send + 'static>(needs: Needs, say: impl FnOnce() -> T + Send + 'static) -> (Vec<Held>, T) {
    std::thread::spawn(move || (this_thread(&needs), say())).join().unwrap()
}

fn holds(held: &[Held], guard: Guard, test: &str) -> bool {
    let one = held.iter().find(|one| one.guard == guard).unwrap();
    if let Err(why) = &one.kept {
        skipped(test, Lacks::Here, why);
    }
    one.kept.is_ok()
}

#[test]
fn files_beyond_those_named_cannot_be_opened_and_what_is_absent_looks_absent() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for folder in ["read", "write", "other"] {
        fs::create_dir(at(folder)).unwrap();
        fs::write(at(folder).join("file"), "x").unwrap();
    }
    let (read, write, other) = (at("read"), at("write"), at("other"));
    let needs = Needs {
        read: vec![read.clone(), at("nowhere"), "/proc".into()],
        write: vec![write.clone()],
        ..Needs::default()
    };
    let kind = |result: std::io::Result<()>| result.err().map(|why| why.kind());
    let reads = |path: &Path| fs::read(path).map(drop);
    let (held, said) = confined(needs, move || {
        (
            [
                kind(reads(&read.join("file"))),
                kind(reads(&write.join("file"))),
                kind(fs::write(write.join("new"), "y")),
            ],
            kind(fs::remove_file(write.join("file"))),
            [
                kind(reads(&other.join("file"))),
                kind(reads(Path::new("/etc/shadow"))),
                kind(fs::write(read.join("new"), "y")),
                kind(fs::remove_file(read.join("file"))),
            ],
            kind(reads(&read.join("none"))),
        )
    });
    if holds(&held, Guard::Files, "confine::files") {
        let denied = Some(ErrorKind::PermissionDenied);
        assert_eq!(said, ([None; 3], None, [denied; 4], Some(ErrorKind::NotFound)), "{held:?}");
    }
}

#[test]
fn capabilities_go_in_every_set_and_a_thread_that_is_made_has_none_either() {
    let status = || fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let needs = Needs { read: vec!["/proc".into()], ..Needs::default() };
    let (held, (own, made)) = confined(needs, move || (status(), std::thread::spawn(status).join().unwrap()));
    for status in [own, made] {
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            let line = status.lines().find(|line| line.starts_with(set)).unwrap();
            assert!(line.trim_end().ends_with("0000000000000000"), "{line}: {held:?}");
        }
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        if holds(&held, Guard::Calls, "confine::calls") {
            assert!(status.contains("Seccomp:\t2"), "{status}");
        }
    }
}

#[test]
fn no_program_is_started_no_memory_made_code_and_no_mode_changed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let write = vec![dir.path().to_path_buf()];
    // Without files, so that what is refused is refused by the filter.
    let needs = Needs { write, looks_into_processes: true, ..Needs::default() };
    let (held, said) = confined(needs, move || {
        let program = std::process::Command::new("/bin/true").status().is_ok();
        let mode = fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o777)).is_ok();
        let append = fs::write(file.with_extension("new"), "y").is_ok();
        let thread = std::thread::Builder::new().spawn(|| 7).is_ok_and(|thread| thread.join().is_ok());
        (program, mode, append, thread, super::n_unconfined())
    });
    if holds(&held, Guard::Calls, "confine::calls") {
        assert_eq!((said.0, said.1, said.2, said.3), (false, false, true, true), "{held:?}");
        // The threads of this test program.
        assert!(said.4.is_none_or(|n| n > 0), "{said:?}");
    }
}

#[test]
fn only_the_named_port_is_reached() {
    let listeners = [TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap()];
    let [named, other] = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
    let needs = Needs { connect: vec![named.port()], ..Needs::default() };
    let is_reached = |at: SocketAddr| TcpStream::connect_timeout(&at, Duration::from_secs(60)).is_ok();
    let (held, said) = confined(needs, move || (is_reached(named), is_reached(other)));
    if holds(&held, Guard::Ports, "confine::ports") {
        assert_eq!(said, (true, false), "{held:?}");
    }
}

#[test]
fn a_capability_that_is_tried_without_is_there_again() {
    let held = || rustix::thread::capabilities(None).unwrap().effective;
    let before = held();
    let mut seen = before;
    assert!(works_without(Capability::Bpf, || {
        seen = held();
        true
    }));
    assert!(!seen.contains(rustix::thread::CapabilitySet::BPF));
    assert_eq!(held(), before);
    assert!(!works_without(Capability::Bpf, || false));
}
