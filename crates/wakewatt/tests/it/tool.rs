//! What every test here needs: the recorded hosts, and the program with nothing inherited from this environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_wakewatt");
/// The user nobody, for what an unprivileged user sees.
pub const NOBODY: u32 = 65534;

/// `fixtures/` of the repository.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").canonicalize().unwrap()
}

/// Every recorded host: name and file. A file dropped into `fixtures/hosts` joins.
pub fn hosts() -> Vec<(String, PathBuf)> {
    let mut hosts: Vec<(String, PathBuf)> = std::fs::read_dir(fixtures().join("hosts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "host"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    hosts.sort();
    assert!(!hosts.is_empty(), "fixtures/hosts holds no .host file");
    hosts
}

/// One recorded host.
pub fn host(name: &str) -> PathBuf {
    fixtures().join("hosts").join(format!("{name}.host"))
}

/// The program with an empty environment but for a fixed width, in `/`.
pub fn wakewatt(args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(args).env_clear().env("COLUMNS", "100").current_dir("/").stdin(Stdio::null());
    command
}

/// What a run said.
#[derive(Debug)]
pub struct Said {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs it to its end; no run may panic, whatever it is given.
pub fn said(command: &mut Command) -> Said {
    // A copy of the program may still be open for writing in a child that another test is just starting.
    let mut output = command.output();
    let is_busy =
        |o: &std::io::Result<Output>| o.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::ExecutableFileBusy);
    wait_until(Duration::from_secs(120), || {
        if is_busy(&output) {
            output = command.output();
        }
        !is_busy(&output)
    });
    let Output { status, stdout, stderr } = output.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let said = Said { code: status.code(), out: text(stdout), err: text(stderr) };
    assert!(!said.err.contains("panicked"), "{command:?} panicked: {}", said.err);
    said
}

/// Runs it on these arguments.
pub fn run(args: &[&str]) -> Said {
    said(&mut wakewatt(args))
}

/// Is this process root?
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Waits until `is_so`, or gives up.
pub fn wait_until(at_most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < at_most {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    is_so()
}

/// Does anybody answer at a port of this machine?
pub fn answers(port: u16) -> bool {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    std::net::TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

/// The program where an unprivileged user may run it: the build folder may lie behind a closed one.
pub struct ForNobody {
    dir: tempfile::TempDir,
}

impl ForNobody {
    /// Copies it.
    pub fn new() -> ForNobody {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::copy(PROGRAM, dir.path().join("wakewatt")).unwrap();
        ForNobody { dir }
    }

    /// A folder that everybody may look into and only the owner may write to.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// The program as an unprivileged user, in [`ForNobody::folder`], with an empty environment.
    pub fn command(&self, args: &[&str]) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(self.dir.path().join("wakewatt"));
        command.args(args).env_clear().current_dir(self.dir.path()).stdin(Stdio::null());
        if is_root() {
            // Being root, std also drops the supplementary groups.
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}
