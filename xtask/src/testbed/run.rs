//! One run: QEMU started, watched, ended, its results put into a folder.
//!
//! QEMU must not outlive this process, however that ends: it is started through `setpriv --pdeathsig`, it has its own
//! process group so that Ctrl-C reaches only us, and it is killed and waited for before the working folder goes.
//! A kernel that panics powers off (`panic=-1`, `-no-reboot`); a machine that says nothing more meets the time-out. A kernel
//! that locks up before its first program runs is booted again: QEMU's threads now and then lose an interrupt between
//! emulated CPUs there, which says nothing about wakewatt.

use super::board::{Board, escaped};
use super::boards;
use super::guest::{self, Inside, Results};
use super::kernel::{self, Kernel};
use super::machine::Machine;
use super::modules;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What to run, and where.
pub(super) struct Job<'a> {
    pub machine: &'a Machine,
    /// The wakewatt binary to put inside.
    pub wakewatt: Option<&'a Path>,
    /// The command, word by word.
    pub command: &'a [String],
    /// Further files: here, and there.
    pub files: &'a [(PathBuf, String)],
    /// Paths to bring back.
    pub fetch: &'a [String],
    /// Where results go.
    pub out: &'a Path,
    /// When to give up, counted from the start of QEMU.
    pub timeout: Duration,
    /// Whether the command's streams are repeated here while it runs.
    pub is_echoed: bool,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The command did, with this code.
    Exited(u8),
    /// Not in time; what it wrote until then is kept.
    Late,
    /// A signal to this process.
    Interrupted,
}

/// A run that took place.
pub(super) struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// What came back.
    pub results: Results,
    /// The kernel's release.
    pub release: String,
    /// From the start of QEMU to its end.
    pub wall: Duration,
}

/// A machine that locks up so often has a reason.
const MAX_BOOTS: usize = 3;

pub(super) fn run(job: &Job) -> Result<Ran> {
    let interrupted = interrupted()?;
    let board = boards::of(job.machine.arch);
    let kernel = kernel::get(board.debian_arch(), &job.machine.kernel)?;
    let work = work_folder(&super::cache()?)?;
    let lock = File::create(job.out.join(".lock")).with_context(|| format!("{}: not writable", job.out.display()))?;
    if lock.try_lock().is_err() {
        bail!("{}: another run writes there now; wait, or give another folder with --out", job.out.display());
    }
    clear(job.out)?;
    let args = arguments(job, board, &kernel, work.path())?;
    let mut echo =
        [Echo::open(&job.out.join("stdout"), job.is_echoed), Echo::open(&job.out.join("stderr"), job.is_echoed)];
    let mut started = Instant::now();
    let mut qemu = Qemu::start(board, &args, job.out)?;
    let mut n_boots = 1;
    let cut_short = loop {
        let status = qemu.0.try_wait()?;
        repeat(&mut echo);
        if let Some(status) = status {
            if !status.success() {
                bail!("{} ended with {status}: {}", board.program(), tail(&job.out.join("qemu.log")));
            }
            break None;
        }
        if interrupted.load(Ordering::Relaxed) {
            break Some(Ending::Interrupted);
        }
        if started.elapsed() > job.timeout {
            break Some(Ending::Late);
        }
        if n_boots < MAX_BOOTS && is_locked_up_at_boot(&work.path().join("results"), &job.out.join("console.log")) {
            let _ = writeln!(std::io::stderr(), "testbed: the kernel locked up while it booted; booting again");
            drop(qemu);
            n_boots += 1;
            // Its complaint must not be read again before QEMU opens the file anew.
            std::fs::remove_file(job.out.join("console.log"))?;
            (started, qemu) = (Instant::now(), Qemu::start(board, &args, job.out)?);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    drop(qemu);
    repeat(&mut echo);
    let wall = started.elapsed();
    let results = guest::results(&std::fs::read(work.path().join("results")).unwrap_or_default());
    save(&results, job.out)?;
    let ending = match (cut_short, results.code) {
        (Some(ending), _) => ending,
        (None, Some(code)) if results.is_whole => Ending::Exited(code),
        _ => bail!("the machine ended without results; its last words:\n{}", tail(&job.out.join("console.log"))),
    };
    Ok(Ran { ending, results, release: kernel.release, wall })
}

/// Set by Ctrl-C and its like. One for all runs of this process, so that a signal between two of them counts.
fn interrupted() -> Result<&'static AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if FLAG.get().is_none() {
        let flag = FLAG.get_or_init(Arc::default);
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(flag))?;
        }
    }
    Ok(FLAG.get_or_init(Arc::default))
}

/// Nothing has come back yet, not even that it booted, and the kernel complains of a CPU that does not go on.
fn is_locked_up_at_boot(results: &Path, console: &Path) -> bool {
    let is_booted = std::fs::metadata(results).is_ok_and(|meta| meta.len() > 0);
    !is_booted && std::fs::read(console).is_ok_and(|log| String::from_utf8_lossy(&log).contains("soft lockup"))
}

/// A folder for this run, removed with the value; one whose run was killed before it could is removed here.
fn work_folder(cache: &Path) -> Result<tempfile::TempDir> {
    for entry in std::fs::read_dir(cache)?.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(".run-").and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let prefix = format!(".run-{}-", std::process::id());
    Ok(tempfile::Builder::new().prefix(&prefix).tempdir_in(cache)?)
}

/// The whole command line of QEMU, and the files it names.
fn arguments(job: &Job, board: &dyn Board, kernel: &Kernel, work: &Path) -> Result<Vec<String>> {
    let mut wishes: Vec<String> = ["virtio_pci", "virtio_console"].map(String::from).to_vec();
    wishes.extend(board.modules(job.machine));
    wishes.extend(job.machine.modules.iter().cloned());
    let modules = modules::ordered(&wishes, &kernel.modules)?;
    let (files, command, fetch) = (job.files, job.command, job.fetch);
    let wakewatt = job.wakewatt.map(|binary| super::wakewatt::stripped(binary, job.machine.arch, work)).transpose()?;
    let inside = Inside { kernel, modules: &modules, wakewatt: wakewatt.as_deref(), files, command, fetch };
    let initramfs = work.join("initramfs.cpio");
    std::fs::write(&initramfs, guest::archive(&inside)?)
        .with_context(|| format!("{}: not writable; is the disk full?", initramfs.display()))?;
    let words = [board.command_line(), "panic=-1", &job.machine.command_line.join(" ")].join(" ");
    let mut args = board.qemu_args(job.machine, kernel, work)?;
    args.extend(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"].map(String::from));
    args.extend(["-kernel".into(), kernel.image.display().to_string()]);
    args.extend(["-initrd".into(), initramfs.display().to_string(), "-append".into(), words]);
    args.extend(["-serial".into(), format!("file:{}", job.out.join("console.log").display())]);
    args.extend(["-device".into(), "virtio-serial-pci".into()]);
    for (name, path) in
        [("results", work.join("results")), ("stdout", job.out.join("stdout")), ("stderr", job.out.join("stderr"))]
    {
        args.extend(["-chardev".into(), format!("file,id={name},path={}", escaped(&path))]);
        args.extend(["-device".into(), format!("virtserialport,chardev={name},name={name}")]);
    }
    args.extend(job.machine.qemu_args.iter().cloned());
    Ok(args)
}

/// The process; killed and waited for when it is dropped.
struct Qemu(Child);

impl Qemu {
    fn start(board: &dyn Board, args: &[String], out: &Path) -> Result<Self> {
        let program = board.program();
        if crate::bench::installed(program).is_none() {
            bail!("{program} is missing; install it: sudo apt-get install {}", board.program_package());
        }
        let log = File::create(out.join("qemu.log")).with_context(|| format!("{}: not writable", out.display()))?;
        let mut command = if crate::bench::installed("setpriv").is_some() {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", program]);
            command
        } else {
            Command::new(program)
        };
        let child =
            command.args(args).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0).spawn();
        Ok(Self(child.with_context(|| format!("{program} could not be started"))?))
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Repeats what QEMU writes into a file.
struct Echo(Option<File>);

impl Echo {
    fn open(path: &Path, is_wanted: bool) -> Self {
        // Made here before QEMU opens it, so that there is something to read from the start.
        let file = if is_wanted { File::create(path).and_then(|_| File::open(path)).ok() } else { None };
        Self(file)
    }

    fn copy(&mut self, to: &mut dyn Write) {
        let Some(file) = &mut self.0 else { return };
        let mut bytes = Vec::new();
        let is_read = file.read_to_end(&mut bytes).is_ok();
        // A closed pipe at our end is no reason to lose the run.
        if is_read && !bytes.is_empty() {
            let _ = to.write_all(&bytes).and_then(|()| to.flush());
        }
    }
}

fn repeat(echo: &mut [Echo; 2]) {
    echo[0].copy(&mut std::io::stdout());
    echo[1].copy(&mut std::io::stderr());
}

/// Removes what an earlier run left, and nothing else.
fn clear(out: &Path) -> Result<()> {
    for name in ["console.log", "qemu.log", "stdout", "stderr"] {
        let _ = std::fs::remove_file(out.join(name));
    }
    match std::fs::remove_dir_all(out.join("files")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{}: an earlier run's files cannot be removed", out.display()))
        }
        _ => Ok(()),
    }
}

/// Fetched files, below `files` under their path inside.
fn save(results: &Results, out: &Path) -> Result<()> {
    for (path, content) in &results.files {
        // The path comes from inside; it must not lead out of the folder.
        if path.split('/').any(|part| part == "..") {
            bail!("{path:?}: a path with .. is not fetched; give the plain one");
        }
        let place = out.join("files").join(path.trim_start_matches('/'));
        let folder = place.parent().unwrap_or(out);
        std::fs::create_dir_all(folder).with_context(|| format!("{}: not writable", folder.display()))?;
        std::fs::write(&place, content).with_context(|| format!("{}: not writable", place.display()))?;
    }
    Ok(())
}

/// The last lines of a log.
fn tail(path: &Path) -> String {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(15)).fold(String::new(), |text, line| text + line + "\n");
    format!("{last}(all of it: {})", path.display())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_lock_up_before_the_first_record_boots_again() {
        let folder = tempfile::tempdir().unwrap();
        let (results, console) = (folder.path().join("results"), folder.path().join("console.log"));
        assert!(!is_locked_up_at_boot(&results, &console), "QEMU has not begun");
        std::fs::write(&results, "").unwrap();
        std::fs::write(&console, "[    1.7] clocksource: Switched\n").unwrap();
        assert!(!is_locked_up_at_boot(&results, &console), "it is booting");
        std::fs::write(&console, "[   29.1] watchdog: BUG: soft lockup - CPU#1 stuck for 26s!\n").unwrap();
        assert!(is_locked_up_at_boot(&results, &console));
        std::fs::write(&results, "boot 3.10\n").unwrap();
        assert!(!is_locked_up_at_boot(&results, &console), "a finding, or a busy host: not to be hidden");
    }
}
