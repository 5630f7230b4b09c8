//! The systemd units that keep settings across boots, hold a limit, and undo what nobody confirmed.
//!
//! They are generated, not shipped as files, because they name this binary's path. Without systemd the same commands
//! can be called by any init: that is all the units do. systemd never runs a unit beside itself, so a `recover` that
//! takes longer than the timer's minute is not joined by a second one.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A unit or rule: file name under its folder, and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Where it belongs.
    pub path: &'static str,
    pub text: String,
}

/// The profile that is applied at boot.
pub const BOOT_PROFILE: &str = "/etc/wakewatt/boot.toml";
/// The unit that applies it.
pub const APPLY_UNIT: &str = "wakewatt-apply.service";

/// Where this program lies.
pub fn this_program() -> std::io::Result<String> {
    let text = std::env::current_exe()?.display().to_string();
    // After an upgrade the kernel marks the old file; the new one lies at the same path.
    Ok(text.trim_end_matches(" (deleted)").to_string())
}

/// All of them, for a binary at this path.
pub fn units(binary: &str) -> Vec<Unit> {
    let start = quoted("", binary);
    let start_pre = quoted("-", binary);
    vec![
        Unit {
            path: "/etc/systemd/system/wakewatt-apply.service",
            text: format!(
                "# Written by wakewatt. Sets again at boot what `wakewatt tune apply --persist` has set.\n\
                 [Unit]\n\
                 Description=Settings of wakewatt (idle states, frequency)\n\
                 Documentation=man:wakewatt-tune(1)\n\
                 ConditionPathExists={BOOT_PROFILE}\n\
                 # After the daemons that would overrule it, before the work that needs it.\n\
                 After=local-fs.target tuned.service tlp.service cpupower.service power-profiles-daemon.service auto-cpufreq.service\n\
                 Before=kubelet.service docker.service containerd.service postgresql.service\n\
                 \n\
                 [Service]\n\
                 Type=oneshot\n\
                 RemainAfterExit=yes\n\
                 ExecStartPre={start_pre} recover\n\
                 ExecStart={start} tune apply {BOOT_PROFILE} --keep-going --at-boot\n\
                 \n\
                 [Install]\n\
                 WantedBy=multi-user.target\n"
            ),
        },
        Unit {
            path: "/etc/systemd/system/wakewatt-hold@.service",
            text: format!(
                "# Written by wakewatt. Holds a wake-up latency limit while it runs: systemctl start wakewatt-hold@50us\n\
                 [Unit]\n\
                 Description=Holds the wake-up latency limit %I\n\
                 Documentation=man:wakewatt-tune(1)\n\
                 \n\
                 [Service]\n\
                 ExecStart={start} hold %I\n\
                 Restart=on-failure\n\
                 \n\
                 [Install]\n\
                 WantedBy=multi-user.target\n"
            ),
        },
        Unit {
            path: "/etc/systemd/system/wakewatt-confirm.service",
            text: format!(
                "# Written by wakewatt. Undoes settings that nobody confirmed in time, and what a killed run left.\n\
                 [Unit]\n\
                 Description=Undoes unconfirmed settings of wakewatt\n\
                 Documentation=man:wakewatt-recover(1)\n\
                 \n\
                 [Service]\n\
                 Type=oneshot\n\
                 ExecStart={start} recover\n"
            ),
        },
        Unit {
            path: "/etc/systemd/system/wakewatt-confirm.timer",
            text: "# Written by wakewatt. A second watch beside the process that waits for the confirmation.\n\
                   [Unit]\n\
                   Description=Looks for unconfirmed settings of wakewatt\n\
                   \n\
                   [Timer]\n\
                   OnBootSec=2min\n\
                   OnUnitActiveSec=1min\n\
                   AccuracySec=10s\n\
                   \n\
                   [Install]\n\
                   WantedBy=timers.target\n"
                .into(),
        },
        Unit {
            path: "/etc/udev/rules.d/90-wakewatt.rules",
            text: format!(
                "# Written by wakewatt. A CPU that comes online has its old settings: set them again.\n\
                 ACTION==\"online\", SUBSYSTEM==\"cpu\", RUN+=\"/usr/bin/systemctl --no-block try-restart {APPLY_UNIT}\"\n"
            ),
        },
    ]
}

/// The first word of a command, for systemd.syntax(7): quoted where it must be, with `%` doubled.
fn quoted(prefix: &str, binary: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@,=".contains(c) || !c.is_ascii();
    let word = binary.replace('%', "%%");
    if binary.chars().all(|c| is_plain(c) || c == '%') {
        return format!("{prefix}{word}");
    }
    // The prefix is looked for after the quotes have gone. A quote in the name itself stays in its word; systemd refuses
    // such a program.
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{prefix}{word}\"")
}

/// Why root must not run this file at every boot: who may change it, or a folder above it, becomes root then.
pub fn unsafe_path(binary: &Path) -> Option<String> {
    if !binary.is_absolute() {
        return Some(format!("{} is no absolute path; {INSTALL}", binary.display()));
    }
    let real = match std::fs::canonicalize(binary) {
        Ok(real) => real,
        Err(e) => return Some(format!("{} cannot be looked at: {e}; {INSTALL}", binary.display())),
    };
    // The path as written, too: who may write a folder on it may replace a link there.
    let (path, why) = first_fault(binary.ancestors().chain(real.ancestors()), |_| false)?;
    Some(format!("{} {why}, and root would run {} at every boot; {INSTALL}", path.display(), binary.display()))
}

/// Why root must not write a unit into this folder: who may change it, or one above, could exchange the unit. Looked at
/// is what exists; the rest would be made by root.
pub fn unsafe_folder(folder: &Path) -> Option<String> {
    const ADVICE: &str = "name a folder in which only root may write, or print the units without --write";
    let there = folder.ancestors().find(|path| path.symlink_metadata().is_ok())?;
    let real = match std::fs::canonicalize(there) {
        Ok(real) => real,
        Err(e) => return Some(format!("{} cannot be looked at: {e}; {ADVICE}", there.display())),
    };
    // In a sticky folder above (/tmp) nobody else can exchange what is root's.
    let is_sticky_above = |path: &Path, mode: u32| mode & 0o1000 != 0 && path != folder && path != real;
    let chain = there.ancestors().chain(real.ancestors());
    let (path, why) = first_fault(chain, |(path, meta)| meta.uid() == 0 && is_sticky_above(path, meta.mode()))?;
    Some(format!("{} {why}, and root would start what is written to {}; {ADVICE}", path.display(), folder.display()))
}

fn first_fault<'a>(
    mut paths: impl Iterator<Item = &'a Path>,
    is_let_pass: impl Fn((&Path, &std::fs::Metadata)) -> bool,
) -> Option<(&'a Path, String)> {
    paths.find_map(|path| match std::fs::symlink_metadata(path) {
        Ok(meta) if is_let_pass((path, &meta)) => None,
        Ok(m) => Some((path, fault(m.uid(), m.mode(), m.is_symlink())?)),
        Err(e) => Some((path, format!("cannot be looked at: {e}"))),
    })
}

const INSTALL: &str = "install it where only root may write: make install, or copy it to /usr/local/bin";

/// What is wrong with one file or folder on the way. A sticky folder is no better: a name in it is free for all.
fn fault(uid: u32, mode: u32, is_link: bool) -> Option<String> {
    if uid != 0 {
        return Some(format!("belongs to user {uid}"));
    }
    match (mode & 0o020 != 0, mode & 0o002 != 0) {
        // Nobody can write a link: it is made anew, which is the folder's matter.
        _ if is_link => None,
        (_, true) => Some("may be written by everybody".into()),
        (true, false) => Some("may be written by its group".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::process::Command;
    use wakewatt_testing::{Lacks, skipped};

    #[test]
    fn what_others_may_write_is_no_file_for_root() {
        assert_eq!(fault(0, 0o100_755, false), None);
        assert_eq!(fault(0, 0o120_777, true), None);
        assert_eq!(fault(1000, 0o100_755, false).unwrap(), "belongs to user 1000");
        assert_eq!(fault(0, 0o041_777, false).unwrap(), "may be written by everybody");
        assert_eq!(fault(0, 0o040_775, false).unwrap(), "may be written by its group");
        assert!(unsafe_path(Path::new("wakewatt")).unwrap().contains("no absolute path"));
        assert!(unsafe_path(Path::new("/none/wakewatt")).unwrap().contains("make install"));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("wakewatt");
        std::fs::write(&file, "").unwrap();
        assert!(unsafe_path(&file).is_some(), "a folder below /tmp");
    }

    #[test]
    fn every_folder_above_counts_and_so_does_a_link() {
        // Only root can make a safe place, and only where the folders above are safe.
        let safe = Path::new("/var/lib");
        let Some(dir) = tempfile::tempdir_in(safe).ok().filter(|d| unsafe_path(d.path()).is_none()) else {
            let test = "every_folder_above_counts_and_so_does_a_link";
            let lacks = if rustix::process::geteuid().is_root() { Lacks::Here } else { Lacks::Root };
            return skipped(test, lacks, "no folder that only root may write to");
        };
        let folder = dir.path().join("bin");
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("wakewatt");
        std::fs::write(&file, "").unwrap();
        let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let names = |path: &Path| unsafe_path(&file).is_some_and(|why| why.starts_with(&path.display().to_string()));
        mode(&file, 0o755);
        mode(&folder, 0o755);
        assert_eq!(unsafe_path(&file), None);
        for path in [&folder, &file] {
            mode(path, 0o775);
            assert!(names(path));
            mode(path, 0o755);
            if chown(path, Some(1234), None).is_ok() {
                assert!(names(path));
                chown(path, Some(0), None).unwrap();
            }
        }
        assert_eq!(unsafe_path(&file), None);
        assert_eq!(unsafe_folder(&folder.join("etc/systemd/system")), None, "what is not there yet is made");
        mode(&folder, 0o1777);
        assert!(unsafe_folder(&folder).unwrap().contains("may be written by everybody"));
        assert!(unsafe_folder(&folder.join("etc")).unwrap().contains("may be written by everybody"));
        let staging = folder.join("staging");
        std::fs::create_dir(&staging).unwrap();
        mode(&staging, 0o755);
        assert_eq!(unsafe_folder(&staging), None, "root's own in a sticky folder");
        assert!(unsafe_path(&staging).is_some(), "but no place for a program");
        mode(&folder, 0o777);
        assert!(unsafe_folder(&staging).is_some());
        mode(&folder, 0o755);
        let link = dir.path().join("link");
        symlink(&file, &link).unwrap();
        assert_eq!(unsafe_path(&link), None);
        mode(&folder, 0o1777);
        assert!(unsafe_path(&link).unwrap().contains("may be written by everybody"));
    }

    #[test]
    fn a_path_with_blanks_and_percents_stays_one_word() {
        assert_eq!(quoted("-", "/usr/local/bin/wakewatt"), "-/usr/local/bin/wakewatt");
        assert_eq!(quoted("", "/opt/50%/wakewatt"), "/opt/50%%/wakewatt");
        assert_eq!(quoted("-", "/opt/my \"tools\"/wakewatt"), "\"-/opt/my \\\"tools\\\"/wakewatt\"");
        assert!(units("/opt/my tools/wakewatt")[0].text.contains("\nExecStart=\"/opt/my tools/wakewatt\" tune apply "));
    }

    #[test]
    fn systemd_itself_finds_no_fault() {
        let own = std::env::current_exe().unwrap();
        verify(&own);
        // The same program under a name that must be quoted.
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("50% of wakewatt");
        symlink(&own, &odd).unwrap();
        verify(&odd);
    }

    fn verify(binary: &Path) {
        let dir = tempfile::tempdir().unwrap();
        let binary = binary.display().to_string();
        let mut files = Vec::new();
        for unit in units(&binary).iter().filter(|u| u.path.contains("/systemd/")) {
            let name = unit.path.rsplit('/').next().unwrap();
            std::fs::write(dir.path().join(name), &unit.text).unwrap();
            // A template is checked through an instance.
            files.push(dir.path().join(name.replace("@.", "@50us.")));
            if name.contains("@.") {
                std::fs::write(dir.path().join(name.replace("@.", "@50us.")), &unit.text).unwrap();
            }
        }
        // Without the man pages and the manager of this machine; only where systemd is installed.
        let Ok(output) = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&files).output() else {
            let test = "systemd_itself_finds_no_fault";
            return skipped(test, Lacks::Program("systemd-analyze"), "nobody to verify units with");
        };
        let words = String::from_utf8_lossy(&output.stderr);
        let ours: Vec<&str> = words.lines().filter(|l| l.contains("wakewatt")).collect();
        assert!(ours.is_empty(), "{words}");
    }

    #[test]
    fn the_apply_unit_names_the_profile_and_the_binary() {
        let apply = &units("/opt/wakewatt")[0];
        assert!(
            apply.text.contains("ExecStart=/opt/wakewatt tune apply /etc/wakewatt/boot.toml --keep-going --at-boot")
        );
    }
}
