//! The disk probe on real files: what is refused, what is read, and that nothing is ever opened for writing.

use super::*;
use std::io::Write as _;
use wakewatt_core::samples::disk::DiskTargetKind;
use wakewatt_core::source::Tree;

fn about() -> DiskTarget {
    DiskTarget {
        path: "x".into(),
        kind: DiskTargetKind::File,
        filesystem: None,
        device: None,
        size_bytes: 2 << 20,
        is_direct: false,
    }
}

/// Two MiB through the page cache: every machine can do that.
fn file(size: usize) -> (tempfile::NamedTempFile, Target) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![1; size]).unwrap();
    let target = Target::open(file.path(), false).unwrap();
    (file, target)
}

fn spec(engine: DiskEngine) -> DiskSpec {
    let cpu = allowed_cpus().unwrap().first().unwrap();
    DiskSpec { warmup_ns: 1_000_000, fifo_priority: None, ..DiskSpec::on(engine, cpu, 60_000_000, 4) }
}

fn go(spec: &DiskSpec, target: &Target) -> Result<DiskSample, BenchError> {
    disk(spec, target, about(), &AtomicBool::new(false), &Tree::default()).map(|s| s.sample)
}

/// On a machine that does everything else first a short window holds nothing: twice as long, until it holds enough.
fn patiently(
    spec: &DiskSpec,
    target: &Target,
    is_enough: impl Fn(&Result<DiskSample, BenchError>) -> bool,
) -> (DiskSpec, Result<DiskSample, BenchError>) {
    let mut spec = spec.clone();
    loop {
        let result = go(&spec, target);
        if is_enough(&result) || spec.duration_ns > 20_000_000_000 {
            return (spec, result);
        }
        spec.duration_ns *= 2;
    }
}

#[test]
fn both_engines_read_at_depth_one_and_deeper_in_both_loops() {
    let (_file, target) = file(2 << 20);
    for engine in [DiskEngine::Psync, DiskEngine::IoUring] {
        for (depth, planned_per_s, access) in [
            (1, None, DiskAccess::Random),
            (4, None, DiskAccess::Sequential),
            (1, Some(2000.0), DiskAccess::Random),
            (4, Some(2000.0), DiskAccess::Random),
        ] {
            let spec = DiskSpec { depth, planned_per_s, access, ..spec(engine) };
            let is_enough = |result: &Result<DiskSample, BenchError>| match result {
                Ok(sample) => sample.latency.n > 10,
                Err(why) => !matches!(why, BenchError::NoSamples),
            };
            let (spec, sample) = patiently(&spec, &target, is_enough);
            let sample = match sample {
                Ok(sample) => sample,
                // A container may forbid it.
                Err(BenchError::Unavailable(why)) if why.starts_with("io_uring") => continue,
                Err(other) => panic!("{other}"),
            };
            assert!(sample.latency.n > 10 && sample.reads_per_s > 0.0, "{sample:?}");
            assert_eq!(sample.service.is_some(), planned_per_s.is_some());
            assert!(sample.n_reads_with_warmup >= sample.latency.n);
            assert_eq!(sample.cpus.len(), if engine == DiskEngine::Psync { depth as usize } else { 1 });
            if let Some(per_s) = planned_per_s {
                // As many as the plan has, and ten deviations.
                let planned = per_s * spec.duration_ns as f64 / 1e9;
                let n = sample.latency.n + sample.n_never_started;
                assert!((n as f64) < planned + 10.0 * planned.sqrt(), "{n} of {planned}");
            }
        }
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_way_out() {
    let (_file, target) = file(2 << 20);
    let psync = spec(DiskEngine::Psync);
    let refused = |spec: DiskSpec| go(&spec, &target).unwrap_err().to_string();
    assert!(refused(DiskSpec { block_bytes: 5000, ..psync.clone() }).contains("power of two"));
    assert!(refused(DiskSpec { depth: 0, ..psync.clone() }).contains("1 to 256"));
    assert!(refused(DiskSpec { planned_per_s: Some(0.0), ..psync.clone() }).contains("rate"));
    assert!(refused(DiskSpec { cpus: vec![4000], ..psync.clone() }).contains("taskset"));
    assert!(refused(DiskSpec { depth: 256, block_bytes: 1 << 20, ..psync.clone() }).contains("larger file"));
    let (_small, target) = file(4096);
    let small = go(&psync, &target).unwrap_err().to_string();
    assert!(small.contains("holds 4KiB, and at least 1MiB are needed"), "{small}");
}

#[test]
fn a_stop_ends_it_and_a_file_cut_short_is_an_error() {
    let (file, target) = file(2 << 20);
    let long = DiskSpec { duration_ns: 60_000_000_000, planned_per_s: Some(0.5), ..spec(DiskEngine::Psync) };
    let stop = AtomicBool::new(true);
    assert!(matches!(disk(&long, &target, about(), &stop, &Tree::default()), Err(BenchError::NoSamples)));
    file.as_file().set_len(4096).unwrap();
    let was_read = |result: &Result<DiskSample, BenchError>| !matches!(result, Err(BenchError::NoSamples));
    let (_, cut) = patiently(&spec(DiskEngine::Psync), &target, was_read);
    assert!(cut.unwrap_err().to_string().contains("became shorter"));
}
