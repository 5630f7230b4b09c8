//! `cargo xtask boot-tree`: does Debian's own GRUB make of our drop-in what the plan says?
//!
//! Needs root, debootstrap, mkfs.ext4 and a loop device. A minimal Debian with GRUB's tools is made once and kept as
//! `target/boot-tree/<suite>.tar`; the kernel and initrd in it are empty files, because grub-mkconfig looks at names
//! only. Each run unpacks it onto an ext4 image, so that grub-probe finds a real device for `/`: no program of GRUB is
//! replaced. /etc/default/grub is the copy of /usr/share/grub/default/grub that the package's postinst makes.
//!
//! Then: update-grub; the plan of the real `BootLoader` on that tree; its edits and commands inside it; the lines of
//! the normal and the recovery entry; the trial entry through grub-script-check; undo; and grub.cfg must be what it was,
//! byte for byte. All mounts live in a mount namespace of their own and go with the process, however it ends.
//! What this does not show: that a machine boots from it. For that, `--json` prints the line for a virtual machine.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wakewatt_core::source::{Read, Source};
use wakewatt_host::live::Live;
use wakewatt_tune::boot::{Argument, BootCommand, FileEdit, TryOnce, choose};

/// Arguments of `boot-tree`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Kernel parameters to plan for
    #[arg(long, default_value = "intel_idle.max_cstate=1 processor.max_cstate=1")]
    arguments: String,
    /// A cloud image: 50-cloudimg-settings.cfg assigns the variable
    #[arg(long)]
    cloud: bool,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
    /// Debian release
    #[arg(long, default_value = "bookworm")]
    suite: String,
    /// Where packages come from
    #[arg(long, default_value = "http://deb.debian.org/debian")]
    mirror: String,
}

/// Set in the process that has its own mount namespace.
const INSIDE: &str = "WAKEWATT_BOOT_TREE_INSIDE";
const CONFIG: &str = "boot/grub/grub.cfg";
const KERNEL: &str = "6.1.0-0-amd64";

pub(crate) fn run(args: &Args) -> Result<bool> {
    if std::env::var_os(INSIDE).is_none() {
        ensure!(rustix::process::geteuid().is_root(), "boot-tree mounts an image and runs chroot: run it as root");
        let own = std::env::current_exe().context("own program")?;
        let mut again = Command::new("unshare");
        again.args(["--mount", "--propagation", "private"]).arg(own).args(std::env::args_os().skip(1));
        return Ok(again.env(INSIDE, "1").status().context("unshare (util-linux)")?.success());
    }
    let folder = crate::repository().join("target/boot-tree");
    fs::create_dir_all(&folder)?;
    let tarball = cached(&folder, args)?;
    let root = mounted(&folder, &tarball)?;
    if args.cloud {
        let text = "# Set the default commandline\nGRUB_CMDLINE_LINUX_DEFAULT=\"console=tty1 console=ttyS0\"\n";
        fs::write(root.join("etc/default/grub.d/50-cloudimg-settings.cfg"), text)?;
    }
    let shown = prove(&root, args)?;
    print(&shown, args.json);
    Ok(true)
}

/// The minimal system, made once.
fn cached(folder: &Path, args: &Args) -> Result<PathBuf> {
    let tarball = folder.join(format!("{}.tar", args.suite));
    if tarball.exists() {
        return Ok(tarball);
    }
    eprintln!("making a minimal {} once (minutes) …", args.suite);
    let tree = tempfile::Builder::new().prefix("debootstrap-").tempdir_in(folder)?;
    let include = "--include=grub-common,grub2-common,grub-pc-bin";
    let log = fs::File::create(folder.join("debootstrap.log"))?;
    let mut make = Command::new("debootstrap");
    make.args(["--variant=minbase", include, &args.suite]).arg(tree.path()).arg(&args.mirror).stdout(log);
    run_ok(&mut make).context("see target/boot-tree/debootstrap.log")?;
    let beside = tarball.with_extension("part");
    run_ok(
        Command::new("tar")
            .args(["--numeric-owner", "--exclude=./var/cache/apt/archives/*.deb", "-cf"])
            .arg(&beside)
            .arg("-C")
            .arg(tree.path())
            .arg("."),
    )?;
    fs::rename(&beside, &tarball)?;
    Ok(tarball)
}

/// A fixed UUID: the printed lines are then the same on every machine.
const UUID: &str = "6f0c8a52-95c3-4f0e-8f10-5a7b1d3c9e21";

/// Unpacked onto an ext4 image, with /dev, /proc and /sys.
///
/// The image is mounted as `/dev/vda`, a node for the loop device in a /dev of our own: grub-mkconfig treats devices
/// named loop0 to loop9 as files on another disk and looks for that disk.
fn mounted(folder: &Path, tarball: &Path) -> Result<PathBuf> {
    let (image, root) = (folder.join("disk.img"), folder.join("root"));
    let (first, nodes) = (folder.join("first"), folder.join("dev"));
    for place in [&root, &first, &nodes] {
        fs::create_dir_all(place)?;
    }
    let _ = fs::remove_file(&image);
    fs::File::create(&image)?.set_len(2 << 30)?;
    run_ok(Command::new("mkfs.ext4").args(["-q", "-U", UUID]).arg(&image))?;
    run_ok(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&first)).context("a loop device is needed")?;
    let device = fs::metadata(&first)?.dev();
    run_ok(Command::new("mount").args(["-t", "tmpfs", "dev"]).arg(&nodes))?;
    for (name, kind, major, minor) in [
        ("vda", "b", rustix::fs::major(device), rustix::fs::minor(device)),
        ("null", "c", 1, 3),
        ("zero", "c", 1, 5),
        ("urandom", "c", 1, 9),
    ] {
        let numbers = [kind, &major.to_string(), &minor.to_string()];
        run_ok(Command::new("mknod").args(["-m", "666"]).arg(nodes.join(name)).args(numbers))?;
    }
    fs::create_dir_all(nodes.join("disk/by-uuid"))?;
    std::os::unix::fs::symlink("../../vda", nodes.join("disk/by-uuid").join(UUID))?;
    run_ok(Command::new("mount").arg("--move").arg(&nodes).arg("/dev"))?;
    // The second mount carries the name; without the first, the loop device goes when this one goes.
    run_ok(Command::new("mount").arg("/dev/vda").arg(&root))?;
    run_ok(Command::new("umount").arg(&first))?;
    run_ok(Command::new("tar").arg("-xf").arg(tarball).arg("-C").arg(&root))?;
    for name in ["vmlinuz", "initrd.img"] {
        fs::write(root.join(format!("boot/{name}-{KERNEL}")), "")?;
    }
    fs::create_dir_all(root.join("boot/grub"))?;
    fs::copy(root.join("usr/share/grub/default/grub"), root.join("etc/default/grub"))?;
    for (from, to) in [("/dev", "dev"), ("/sys", "sys")] {
        run_ok(Command::new("mount").args(["--bind", from]).arg(root.join(to)))?;
    }
    run_ok(Command::new("mount").args(["-t", "proc", "proc"]).arg(root.join("proc")))?;
    Ok(root)
}

/// The tree as a machine: its own files, and what its /proc would say if it were booted.
struct Booted {
    tree: Live,
}

impl Source for Booted {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        match path {
            "/proc/cmdline" => Ok(format!("BOOT_IMAGE=/boot/vmlinuz-{KERNEL} ro quiet\n").into_bytes()),
            "/proc/mounts" => Ok(b"/dev/sda / ext4 rw,relatime 0 0\n".to_vec()),
            _ if path.starts_with("/sys/firmware") => Err(self.missing()),
            _ => self.tree.read(path),
        }
    }
    fn list(&self, path: &str) -> Read<Vec<String>> {
        // The marks of a container belong to the machine this chore runs on.
        if path == "/run" { Err(self.missing()) } else { self.tree.list(path) }
    }
    fn link(&self, path: &str) -> Read<String> {
        self.tree.link(path)
    }
    fn msr(&self, cpu: u32, address: u32) -> Read<u64> {
        self.tree.msr(cpu, address)
    }
    fn missing(&self) -> wakewatt_core::source::ReadError {
        self.tree.missing()
    }
    fn origin(&self) -> String {
        self.tree.origin()
    }
}

/// The proof itself; the document that `--json` prints.
fn prove(root: &Path, args: &Args) -> Result<Value> {
    let wanted = Argument::parse_all(&args.arguments)?;
    run_inside(root, &["update-grub".into()])?;
    let before = fs::read(root.join(CONFIG))?;
    let source = Booted { tree: Live::sysroot(root)? };
    let (loader, because) = choose(&source)?;
    let plan = loader.plan(&source, &wanted)?;
    ensure!(plan.loader == "grub-debian", "the loader is {}, not GRUB", plan.loader);
    ensure!(!plan.is_empty(), "the plan is empty: {}", plan.notes.join("; "));

    apply(root, &plan.edits, &plan.commands)?;
    let after = fs::read_to_string(root.join(CONFIG))?;
    run_inside(root, &["grub-script-check".into(), format!("/{CONFIG}")])?;
    let again = loader.plan(&source, &wanted)?;
    ensure!(again.is_empty(), "a second plan on the changed tree is not empty");
    let lines = lines(&after);
    let (normal, recovery): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|l| !l.is_recovery());
    ensure!(
        !normal.is_empty() && !recovery.is_empty(),
        "grub.cfg has {} normal, {} recovery",
        normal.len(),
        recovery.len()
    );
    for argument in &wanted {
        let count = |line: &Line| line.words().filter(|w| *w == argument.to_string()).count();
        for line in &normal {
            ensure!(count(line) == 1, "{argument} is {} times in {}", count(line), line.text);
        }
        for line in &recovery {
            ensure!(count(line) == 0, "{argument} is in the recovery entry: {}", line.text);
        }
    }
    let kept = normal.iter().all(|l| l.words().any(|w| w == if args.cloud { "console=ttyS0" } else { "quiet" }));
    ensure!(kept, "the words of others are lost: {}", normal[0].text);
    let (normal, recovery) = (normal[0].text.clone(), recovery[0].text.clone());

    undo(root, &plan.edits, &plan.commands)?;
    ensure!(fs::read(root.join(CONFIG))? == before, "after the undo grub.cfg is not what it was");
    let trial = try_once(root, plan.try_once.as_ref())?;
    ensure!(fs::read(root.join(CONFIG))? == before, "the trial left a trace in grub.cfg");
    Ok(json!({
        "schema": "wakewatt/xtask-boot-tree/v1",
        "suite": args.suite,
        "is_cloud_image": args.cloud,
        "loader": plan.loader,
        "because": because,
        "arguments": wanted,
        "edits": plan.edits.iter().map(|e| &e.path).collect::<Vec<_>>(),
        "normal_before": self::lines(&String::from_utf8_lossy(&before)).first().map(|l| l.text.clone()),
        "normal": normal,
        "recovery": recovery,
        "trial": trial,
        "is_restored_byte_for_byte": true,
    }))
}

/// The trial entry: accepted by GRUB's own parser, chosen in the environment block, and gone after the undo.
fn try_once(root: &Path, offer: Option<&TryOnce>) -> Result<Option<String>> {
    let (edits, commands) = match offer {
        Some(TryOnce::Offered { edits, commands, .. }) => (edits, commands),
        Some(TryOnce::Refused { why }) => bail!("the trial is refused: {why}"),
        None => bail!("no word about a trial"),
    };
    apply(root, edits, commands)?;
    for edit in edits {
        run_inside(root, &["grub-script-check".into(), edit.path.clone()])?;
    }
    let environment = fs::read_to_string(root.join("boot/grub/grubenv"))?;
    ensure!(environment.contains("next_entry=wakewatt-try"), "grub-reboot has not chosen the trial: {environment}");
    let text = fs::read_to_string(root.join("boot/grub/custom.cfg"))?;
    undo(root, edits, commands)?;
    let environment = fs::read_to_string(root.join("boot/grub/grubenv"))?;
    ensure!(!environment.contains("next_entry"), "the undo has not cleared next_entry");
    ensure!(!root.join("boot/grub/custom.cfg").exists(), "the undo has left custom.cfg");
    Ok(lines(&text).first().map(|l| l.text.clone()))
}

fn apply(root: &Path, edits: &[FileEdit], commands: &[BootCommand]) -> Result<()> {
    for edit in edits {
        set(root, edit, &edit.before, &edit.after)?;
    }
    commands.iter().try_for_each(|c| run_inside(root, &c.argv))
}

fn undo(root: &Path, edits: &[FileEdit], commands: &[BootCommand]) -> Result<()> {
    for edit in edits.iter().rev() {
        set(root, edit, &edit.after, &edit.before)?;
    }
    commands.iter().rev().filter(|c| !c.undo.is_empty()).try_for_each(|c| run_inside(root, &c.undo))
}

fn set(root: &Path, edit: &FileEdit, from: &Option<Vec<u8>>, to: &Option<Vec<u8>>) -> Result<()> {
    let path = root.join(edit.path.trim_start_matches('/'));
    ensure!(fs::read(&path).ok() == *from, "{} is not what the plan expects", edit.path);
    match to {
        Some(bytes) => {
            fs::write(&path, bytes)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(edit.mode))?;
        }
        None => fs::remove_file(&path)?,
    }
    Ok(())
}

/// A `linux` line of grub.cfg.
struct Line {
    title: String,
    /// The kernel's command line, as GRUB passes it.
    text: String,
}

impl Line {
    fn is_recovery(&self) -> bool {
        self.title.contains("recovery mode")
    }
    fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split_whitespace()
    }
}

/// All of them, in order. GRUB puts BOOT_IMAGE= in front and one blank between words.
fn lines(config: &str) -> Vec<Line> {
    let mut title = String::new();
    let mut found = Vec::new();
    for line in config.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("menuentry") => title = line.split('\'').nth(1).unwrap_or_default().to_string(),
            Some("linux") => {
                let Some(image) = words.next() else { continue };
                let rest = words.collect::<Vec<_>>().join(" ");
                found.push(Line { title: title.clone(), text: format!("BOOT_IMAGE={image} {rest}") });
            }
            _ => {}
        }
    }
    found
}

fn run_inside(root: &Path, argv: &[String]) -> Result<()> {
    let mut command = Command::new("chroot");
    command.arg(root).args(argv).env("LC_ALL", "C").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    run_ok(&mut command)
}

fn run_ok(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    let out = command.stdin(Stdio::null()).output().with_context(|| name.clone())?;
    if !out.status.success() {
        bail!("{name}: {}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(())
}

fn print(shown: &Value, is_json: bool) {
    if is_json {
        println!("{shown:#}");
        return;
    }
    for key in ["because", "normal_before", "normal", "recovery", "trial"] {
        println!("{key:14} {}", shown[key].as_str().unwrap_or("none"));
    }
    println!("undone: grub.cfg is byte for byte what it was");
}
