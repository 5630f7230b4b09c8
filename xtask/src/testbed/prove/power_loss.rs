//! The power fails in the middle of `tune apply --persist` and of its undo, on a real ext4: after the next boot `recover` and
//! `undo` find everything that is there, and leave the disk as it was.
//!
//! QEMU writes down every write and flush of the disk in their order (its blklogwrites, the format of dm-log-writes). A power
//! loss is then made, not waited for: all writes up to a flush, and of those after it any, since a disk without power keeps
//! what it likes of its cache. The disks so made stand behind one another on a second machine's disk, which mounts each and
//! asks wakewatt. Source: Documentation/admin-guide/device-mapper/log-writes.rst.

use super::dump;
use super::{FOLDER, Inside, LIMIT, PRELUDE, Proof, ProofResult, as_filed, no_words};
use crate::testbed::machine::Machine;
use crate::testbed::run::{self, Ending, Job};
use crate::testbed::wakewatt;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const PROOF: Proof =
    Proof { name: "power-loss", machine: "governors", words: no_words, shape: as_filed, script, judge, boots };

const N_LOSSES: usize = 50;
const DISK_MIB: usize = 8;
const DISK_BYTES: usize = DISK_MIB << 20;
const SEED: u64 = 20_261_128;

/// The disk's folders in the place of the machine's own. systemctl is what makes the links, and flushes nothing.
const MOUNTED: &str = r#"
CPU=/sys/devices/system/cpu
on_disk() {
  mount -t ext4 "$1" /mnt && mount --bind /mnt/etc /etc && mkdir -p /var/lib/wakewatt && mount --bind /mnt/state /var/lib/wakewatt
}
off_disk() { umount /var/lib/wakewatt; umount /etc; umount /mnt; }
chmod 755 / /bin; mkdir -p /mnt
cat >/bin/systemctl <<'S'
#!/bin/sh
[ "$1" = enable ] || exit 0
for last; do :; done
wants=/etc/systemd/system/multi-user.target.wants
case $last in *.timer) wants=/etc/systemd/system/timers.target.wants;; esac
mkdir -p $wants; ln -sf ../$last $wants/$last
S
chmod 755 /bin/systemctl
SET='--set idle.state.C3=off --set freq.governor=performance'
"#;

/// What is written down: settings that stay, taken back, and stay again.
fn recorded_script() -> String {
    format!(
        "{MOUNTED}\non_disk /dev/vda || exit 9\nsync\n\
         for n in 1 2 3; do\n\
           run apply.$n wakewatt tune apply --persist $SET\n\
           run more.$n wakewatt tune apply --persist --set qos.cpu=40us\n\
           run undo.$n wakewatt tune undo --all\n\
         done\n\
         run apply.4 wakewatt tune apply --persist $SET\nsync\n"
    )
}

/// What is asked of each disk after the boot.
fn script() -> String {
    let (shell, last) = (dump::SHELL, N_LOSSES);
    format!(
        "{shell}\n{MOUNTED}\ndump_cpu before\nn=0\nwhile [ $n -lt {last} ]; do\n\
           losetup -o $((n * {DISK_BYTES})) /dev/loop0 /dev/vda\n\
           if on_disk /dev/loop0; then echo yes; else echo no; fi >$n.mounted\n\
           (cd /mnt && find etc state -name lost+found -prune -o -print | sort) >$n.found\n\
           run $n.status wakewatt tune status\n\
           run $n.recover wakewatt recover\n\
           run $n.undo wakewatt tune undo --all\n\
           run $n.after wakewatt tune status\n\
           (cd /mnt && find etc state/open ! -type d 2>/dev/null | sort) >$n.left\n\
           dump_cpu $n.now\n\
           if cmp -s $n.now.dump before.dump; then echo same; else diff -a before.dump $n.now.dump; fi >$n.same\n\
           rm -f $n.now.*\n\
           off_disk; losetup -d /dev/loop0; n=$((n + 1))\ndone\n"
    )
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    let (mut n_open, mut n_persisted) = (0, 0);
    for n in 0..N_LOSSES {
        let found = inside.text(&format!("{n}.found"));
        verdict.expect(inside.text(&format!("{n}.mounted")) == "yes\n", || format!("{n}: the disk does not mount"));
        n_open += usize::from(found.contains("state/open/tune-"));
        n_persisted += usize::from(found.contains("etc/wakewatt/boot.toml"));
        verdict.step(inside, &format!("{n}.recover"), 0, &[]);
        verdict.step(inside, &format!("{n}.undo"), 0, &[]);
        verdict.step(inside, &format!("{n}.after"), 0, &[]);
        let left = inside.text(&format!("{n}.left"));
        verdict.expect(left == "etc/group\netc/passwd\n", || {
            let before = inside.said(&format!("{n}.undo"));
            format!("{n}: left on the disk: {} (undo: {})", left.trim().replace('\n', ", "), before.trim())
        });
        let same = inside.text(&format!("{n}.same"));
        verdict.expect(same == "same\n", || format!("{n}: settings differ: {}", same.trim()));
        let said = inside.said(&format!("{n}.status"));
        verdict.expect(!said.contains("panicked at"), || format!("{n}.status: {said}"));
    }
    verdict.expect(n_open > 0 && n_persisted > 0, || {
        format!("no loss in the middle: {n_open} with a journal, {n_persisted} with settings for the boot")
    });
    verdict.counted.push(format!(
        "{N_LOSSES} losses of power: {n_open} left a journal, {n_persisted} settings for every boot; after recover and undo \
         nothing is left of any"
    ));
    Ok(verdict)
}

fn boots(proof: &Proof, machine: &Machine, binary: Option<&Path>) -> Result<Option<ProofResult>> {
    let wakewatt = wakewatt::made(machine.arch, binary)?;
    let out =
        crate::testbed::out_folder(machine, Some(&crate::testbed::cache()?.join("out").join("prove-power-loss")))?;
    let work = tempfile::Builder::new().prefix("disks").tempdir_in(&out)?;
    let at = |name: &str| work.path().join(name);
    make_disk(&at("tree"), &at("disk"))?;
    let pristine = std::fs::read(at("disk"))?;
    let mut machine = machine.clone();
    machine.modules.extend(["virtio_blk", "crc32c_generic", "ext4", "loop"].map(String::from));
    let logged = format!(
        "driver=blklogwrites,node-name=disk,file.driver=file,file.filename={},log.driver=file,log.filename={}",
        at("disk").display(),
        at("log").display()
    );
    std::fs::write(at("log"), "")?;
    let Some(inside) = ran(&machine, &wakewatt, &logged, &recorded_script(), &out)? else { return Ok(None) };
    let mut verdict = ProofResult::default();
    let steps = (1..4).flat_map(|n| ["apply", "more", "undo"].map(|what| format!("{what}.{n}")));
    for step in steps.chain(["apply.4".into()]) {
        verdict.step(&inside, &step, 0, &[]);
    }
    let log = WriteLog::parse(&std::fs::read(at("log"))?)?;
    let mut dice = Dice(SEED);
    let mut all = Vec::with_capacity(N_LOSSES * DISK_BYTES);
    for _ in 0..N_LOSSES {
        all.extend(log.after_loss(&pristine, &mut dice));
    }
    std::fs::write(at("losses"), all)?;
    let plain = format!("driver=file,node-name=disk,filename={}", at("losses").display());
    let Some(inside) = ran(&machine, &wakewatt, &plain, &(proof.script)(), &out)? else { return Ok(None) };
    let judged = (proof.judge)(&inside)?;
    verdict.counted.push(format!(
        "{} writes and {} flushes of the disk by ten commands; seed {SEED}",
        log.writes.iter().filter(|write| !write.bytes.is_empty()).count(),
        log.writes.iter().filter(|write| write.is_flush).count()
    ));
    verdict.counted.extend(judged.counted);
    verdict.wrong.extend(judged.wrong);
    Ok(Some(verdict))
}

/// A machine with this disk, and what its script left.
fn ran(machine: &Machine, wakewatt: &Path, disk: &str, script: &str, out: &Path) -> Result<Option<Inside>> {
    let mut machine = machine.clone();
    machine.qemu_args.extend(["-blockdev", disk, "-device", "virtio-blk-pci,drive=disk"].map(String::from));
    let ran = run::run(&Job {
        machine: &machine,
        wakewatt: Some(wakewatt),
        command: &["sh".into(), "-c".into(), format!("{PRELUDE}{script}\nexit 0\n")],
        files: &[],
        fetch: &[FOLDER.into()],
        out,
        timeout: LIMIT,
        is_echoed: false,
    })?;
    match ran.ending {
        Ending::Exited(0) => Ok(Some(Inside { folder: out.join("files").join(FOLDER.trim_start_matches('/')) })),
        Ending::Interrupted => Ok(None),
        other => bail!("the script ended with {other:?}; see {}", out.display()),
    }
}

/// A file system with what a machine has in /etc, as far as it matters here.
fn make_disk(tree: &Path, disk: &Path) -> Result<()> {
    let folder = |name: &str| std::fs::create_dir_all(tree.join(name));
    ["etc/systemd/system", "etc/udev/rules.d", "state"].into_iter().try_for_each(folder)?;
    std::fs::write(tree.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
    std::fs::write(tree.join("etc/group"), "root:x:0:\n")?;
    let tree: PathBuf = tree.into();
    let said = Command::new("mkfs.ext4")
        .args(["-q", "-F", "-b", "1024", "-J", "size=1", "-E", "root_owner=0:0,lazy_itable_init=0", "-d"])
        .arg(&tree)
        .arg(disk)
        .arg(format!("{DISK_MIB}M"))
        .output()
        .context("mkfs.ext4 could not be started; install e2fsprogs")?;
    if !said.status.success() {
        bail!("mkfs.ext4: {}", String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(())
}

/// Random numbers that are the same for a seed (splitmix64: Steele, Lea and Flood 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % n.max(1) as u64).unwrap_or(0)
    }
}

/// A write, a flush, or both.
struct Write {
    at: usize,
    bytes: Vec<u8>,
    /// What was written before it is on the disk for good.
    is_flush: bool,
    /// It is itself (force unit access).
    is_durable: bool,
}

/// What reached the disk, in its order.
struct WriteLog {
    writes: Vec<Write>,
}

const MAGIC: u64 = 0x006a_7366_7773_6872;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
impl WriteLog {
    /// Of a log: a head, then each entry in whole sectors of the log, with its data behind.
    fn parse(log: &[u8]) -> Result<WriteLog> {
        let number = |at: usize| -> Result<u64> {
            let bytes = log.get(at..at + 8).with_context(|| format!("the log ends at byte {at}"))?;
            Ok(u64::from_le_bytes(bytes.try_into()?))
        };
        if number(0)? != MAGIC {
            bail!("this is no log of writes");
        }
        let n_entries = number(16)?;
        let sector = usize::try_from(number(24)? & 0xffff_ffff)?;
        let (mut at, mut writes) = (sector, Vec::new());
        for _ in 0..n_entries {
            let (start, n_sectors, flags) = (number(at)?, number(at + 8)?, number(at + 16)?);
            at += sector;
            let n_bytes = usize::try_from(n_sectors)?.checked_mul(sector).context("an entry is too long")?;
            let has_data = flags & DISCARD == 0;
            let bytes = if has_data {
                log.get(at..at.saturating_add(n_bytes)).context("an entry is cut off")?.to_vec()
            } else {
                vec![0; n_bytes]
            };
            at += if has_data { n_bytes } else { 0 };
            writes.push(Write {
                at: usize::try_from(start)? * sector,
                bytes,
                is_flush: flags & FLUSH != 0,
                is_durable: flags & FUA != 0,
            });
        }
        Ok(WriteLog { writes })
    }

    /// The disk after a loss at a random moment: what was flushed, and of the rest until then any of it.
    fn after_loss(&self, pristine: &[u8], dice: &mut Dice) -> Vec<u8> {
        let moment = dice.below(self.writes.len() + 1);
        let flushed = self.writes[..moment].iter().rposition(|write| write.is_flush).map_or(0, |at| at + 1);
        let mut disk = pristine.to_vec();
        for (at, write) in self.writes[..moment].iter().enumerate() {
            if at < flushed || write.is_durable || dice.below(2) == 0 {
                let end = (write.at + write.bytes.len()).min(disk.len());
                let start = write.at.min(end);
                disk[start..end].copy_from_slice(&write.bytes[..end - start]);
            }
        }
        disk
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SECTOR: usize = 512;

    #[test]
    fn what_was_flushed_stays_and_of_the_rest_anything() {
        let mut log = vec![0; SECTOR];
        log[..8].copy_from_slice(&MAGIC.to_le_bytes());
        log[16] = 3;
        log[24..28].copy_from_slice(&512u32.to_le_bytes());
        let mut entry = |sector: u64, n: u64, flags: u64, byte: u8| {
            let mut head = vec![0; SECTOR];
            for (at, number) in [sector, n, flags].into_iter().enumerate() {
                head[at * 8..at * 8 + 8].copy_from_slice(&number.to_le_bytes());
            }
            log.extend(head);
            log.extend(vec![byte; usize::try_from(n).unwrap() * SECTOR]);
        };
        entry(0, 1, 0, 1);
        entry(0, 0, FLUSH, 0);
        entry(1, 1, 0, 2);
        let log = WriteLog::parse(&log).unwrap();
        let mut dice = Dice(1);
        let seen: std::collections::BTreeSet<(u8, u8)> = (0..200)
            .map(|_| {
                let disk = log.after_loss(&[0; 2 * SECTOR], &mut dice);
                (disk[0], disk[SECTOR])
            })
            .collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(0, 0), (1, 0), (1, 2)]);
        assert!(WriteLog::parse(b"").is_err() && WriteLog::parse(&[0; 4096]).is_err());
    }
}
