//! The systemd units that keep settings across boots, hold a limit, and undo what nobody confirmed.
//!
//! They are generated, not shipped as files, because they name this binary's path. Without systemd the same commands
//! can be called by any init: that is all the units do.

/// A unit or rule: file name under its folder, and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Where it belongs.
    pub path: &'static str,
    /// Its text.
    pub text: String,
}

/// The profile that is applied at boot.
pub const BOOT_PROFILE: &str = "/etc/wakewatt/boot.toml";
/// The unit that applies it.
pub const APPLY_UNIT: &str = "wakewatt-apply.service";

/// All of them, for a binary at this path.
pub fn units(binary: &str) -> Vec<Unit> {
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
                 ExecStartPre=-{binary} recover\n\
                 ExecStart={binary} tune apply {BOOT_PROFILE} --keep-going --at-boot\n\
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
                 ExecStart={binary} hold %I\n\
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
                 ExecStart={binary} recover\n"
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn systemd_itself_finds_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        let binary = std::env::current_exe().unwrap().display().to_string();
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
            eprintln!("skipped: systemd-analyze is not here");
            return;
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
