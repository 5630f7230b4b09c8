//! Fedora and RHEL with GRUB: entries per kernel, changed by grubby.
//!
//! With such entries /etc/default/grub and grub2-mkconfig no longer decide (rhboot/grub2#126), and `DEFAULT` instead of
//! `ALL` is lost with the next kernel (rhboot/grubby#55). grubby with `ALL` also changes the places from which later
//! kernels get their line. It *replaces* the value of a parameter that is there and remembers nothing, so
//! [`super::record`] keeps what was replaced. `ALL` includes the rescue entry, which we clean again; on RHEL 8 all
//! entries share one line, `kernelopts` in GRUB's environment block, and the rescue entry cannot be spared.
//! Sources: grubby-bls of rhboot/grubby, 20-grub.install of Fedora's grub2.

use super::bls::{self, ENTRIES, Entry};
use super::line::{Sorted, last_of, sort_out, without, words};
use super::look::{self, BootedBy};
use super::plan::{BootCommand, BootError, BootPlan, FileEdit, TryOnce};
use super::record::Record;
use super::{Argument, BootLoader, Detected, LoaderDescription, argument, parameters, reboot};
use wakewatt_core::source::Source;
use wakewatt_words::{say, word};

const ID: &str = "grub-bls";

/// See the head of this file.
pub struct GrubBls;

impl BootLoader for GrubBls {
    fn about(&self) -> &'static LoaderDescription {
        &LoaderDescription {
            id: ID,
            title: "GRUB with boot loader entries, as on Fedora and RHEL (grubby)",
            knowledge: "grubby(8), rhboot/grubby grubby-bls, the Boot Loader Specification",
        }
    }

    fn detect(&self, source: &dyn Source) -> Detected {
        let Some(grubby) = look::program(source, "grubby") else { return Detected::No };
        if look::files(source, ENTRIES, ".conf").is_empty() {
            return Detected::Unsure { why: say!("{grubby} exists and {ENTRIES} shows no entry (root may be needed)") };
        }
        match look::booted_by(source) {
            BootedBy::SystemdBoot(_) => Detected::No,
            BootedBy::Unknown if super::systemd_boot::is_installed(source).is_some() => Detected::Unsure {
                why: say!(
                    "{grubby} and {ENTRIES} exist, but so do files of systemd-boot, and no trace tells which booted"
                ),
            },
            BootedBy::Grub(why) => Detected::Yes { because: say!("{grubby} and {ENTRIES} exist, and {why}") },
            BootedBy::Unknown => Detected::Yes { because: say!("{grubby} and {ENTRIES} exist") },
        }
    }

    fn plan(&self, source: &dyn Source, arguments: &[Argument]) -> Result<BootPlan, BootError> {
        let record = Record::read(source, ID)?;
        let all = bls::entries(source, ENTRIES)?;
        let kernelopts = bls::grubenv(source, "kernelopts")?;
        let line = |entry: &Entry| base_line(entry, kernelopts.as_deref(), &record);
        let normal: Vec<&Entry> = all.iter().filter(|e| !e.is_rescue()).collect();
        let Some(first) = normal.first() else {
            return Err(BootError::refused(
                ENTRIES,
                word!("holds no entry of a kernel"),
                word!("look at what grubby --info=ALL says"),
            ));
        };
        let sorted = sort_out(arguments, &line(first), word!("the boot entries"))?;
        for entry in &normal[1..] {
            let other = sort_out(arguments, &line(entry), word!("the boot entries"))?;
            if (&other.missing, &other.overruled) != (&sorted.missing, &sorted.overruled) {
                let what = say!("has other values for {} than {}", argument::join(arguments), first.path);
                let advice =
                    word!("make the entries equal with grubby --update-kernel=ALL, or take the words out of all");
                return Err(BootError::refused(&entry.path, what, advice));
            }
        }
        let replaced = replaced(&sorted, &first.path)?;
        let change = Change::new(&record, &sorted.missing, &replaced);
        let mut plan = BootPlan {
            loader: ID.into(),
            arguments: arguments.to_vec(),
            edits: record.edit(ID, &sorted.missing, &replaced).into_iter().collect(),
            notes: sorted.notes,
            ..BootPlan::default()
        };
        if change.is_empty() {
            return Ok(plan);
        }
        let why = word!("changes every entry, and the line that later kernels get");
        plan.commands.push(change.command("ALL", why));
        let rescue = all.iter().filter(|e| e.is_rescue());
        let is_shared = all.iter().any(|e| e.options().iter().any(|w| w == "$kernelopts"));
        for entry in rescue {
            match entry.value("linux").and_then(|l| l.rsplit('/').next()) {
                Some(image) if !is_shared => {
                    plan.commands.extend(cleaned(&format!("/boot/{image}"), &change, &entry.options()));
                }
                _ => plan
                    .notes
                    .push(say!("{} shares its line with the others and gets these parameters too", entry.path)),
            }
        }
        if !replaced.is_empty() && all.iter().any(Entry::is_rescue) && !is_shared {
            plan.notes.push(say!(
                "the inverse commands put {} into the rescue entry too; a plan with no arguments does not",
                argument::join(&replaced)
            ));
        }
        plan.notes.push(reboot().into());
        plan.notes.extend(parameters::traps(arguments));
        plan.try_once = Some(match sorted.missing.as_slice() {
            [] => TryOnce::Refused { why: say!("taking parameters away needs no trial") },
            missing => match TryOnce::lingering(&record.added, missing) {
                Some(refused) => refused,
                None => trial(source, &normal, missing).unwrap_or_else(|why| TryOnce::Refused { why }),
            },
        });
        Ok(plan)
    }
}

/// The line of an entry as it would be without wakewatt.
fn base_line(entry: &Entry, kernelopts: Option<&str>, record: &Record) -> Vec<String> {
    let expand = |word: String| match word.as_str() {
        "$kernelopts" => words(kernelopts.unwrap_or_default()),
        _ => vec![word],
    };
    let now: Vec<String> = entry.options().into_iter().flat_map(expand).collect();
    let mut line = without(&now, &record.added);
    line.extend(record.replaced.iter().map(Argument::to_string));
    line
}

/// What grubby will throw out. Only words that can be put back by it are accepted.
fn replaced(sorted: &Sorted, path: &str) -> Result<Vec<Argument>, BootError> {
    let mut found: Vec<Argument> = Vec::new();
    for word in &sorted.overruled {
        let advice = word!("take it out with grubby --update-kernel=ALL --remove-args, then plan again");
        let Ok(argument) = Argument::parse(word) else {
            return Err(BootError::refused(path, say!("has {word}, which grubby could not put back"), advice));
        };
        if found.iter().any(|a| a.has_name(argument.key())) {
            return Err(BootError::refused(path, say!("has {} more than once", argument.key()), advice));
        }
        found.push(argument);
    }
    Ok(found)
}

/// What one call of grubby takes out and puts in.
struct Change {
    out: Vec<Argument>,
    add: Vec<Argument>,
    /// For the inverse: what comes back.
    back: Vec<Argument>,
}

impl Change {
    fn new(record: &Record, added: &[Argument], replaced: &[Argument]) -> Change {
        let minus = |a: &[Argument], b: &[Argument]| a.iter().filter(|x| !b.contains(x)).cloned().collect::<Vec<_>>();
        let mut add = minus(added, &record.added);
        add.extend(minus(&record.replaced, replaced));
        let mut back = minus(&record.added, added);
        back.extend(minus(replaced, &record.replaced));
        Change { out: minus(&record.added, added), add, back }
    }

    fn is_empty(&self) -> bool {
        self.out.is_empty() && self.add.is_empty()
    }

    fn command(&self, kernel: &str, why: &str) -> BootCommand {
        let undo = grubby(kernel, &self.add, &self.back);
        BootCommand { argv: grubby(kernel, &self.out, &self.add), undo, why: why.into() }
    }
}

fn grubby(kernel: &str, out: &[Argument], add: &[Argument]) -> Vec<String> {
    let mut argv = vec!["grubby".to_string(), format!("--update-kernel={kernel}")];
    if !out.is_empty() {
        argv.push(format!("--remove-args={}", argument::join(out)));
    }
    if !add.is_empty() {
        argv.push(format!("--args={}", argument::join(add)));
    }
    argv
}

/// The rescue entry back to what it was, after `ALL` has changed it.
fn cleaned(image: &str, change: &Change, line: &[String]) -> Option<BootCommand> {
    let had: Vec<Argument> = change
        .add
        .iter()
        .filter_map(|a| last_of(line, a.key()))
        .filter_map(|word| Argument::parse(word).ok())
        .collect();
    let out: Vec<Argument> = change.add.iter().filter(|a| !had.contains(a)).cloned().collect();
    let why = word!("the rescue entry stays without these parameters");
    (!out.is_empty()).then(|| BootCommand { argv: grubby(image, &out, &had), undo: Vec::new(), why: why.into() })
}

/// A copy of the running kernel's entry with the new words, booted once.
fn trial(source: &dyn Source, entries: &[&Entry], arguments: &[Argument]) -> Result<TryOnce, String> {
    let release = source.read("/proc/sys/kernel/osrelease").map_err(|_| "the running kernel's version is not known")?;
    let release = String::from_utf8_lossy(&release).trim().to_string();
    let is_running = |e: &&&Entry| !release.is_empty() && e.path.ends_with(&format!("-{release}.conf"));
    let entry = entries.iter().find(is_running).ok_or_else(|| say!("no entry of the running kernel {release}"))?;
    let config = look::text(source, "/boot/grub2/grub.cfg").ok().flatten().unwrap_or_default();
    if !config.contains("next_entry") {
        return Err(say!("/boot/grub2/grub.cfg does not look at next_entry, or cannot be read"));
    }
    if let Some(why) = look::why_grubenv_is_fixed(source, "/boot/grub2") {
        return Err(why);
    }
    let copy = entry.trial(&argument::join(arguments)).ok_or_else(|| say!("{} has no options line", entry.path))?;
    let path = format!("{ENTRIES}/{}.conf", bls::TRIAL);
    let before = look::bytes(source, &path).map_err(|e| e.to_string())?;
    let choose = BootCommand::new(
        &["grub2-reboot", bls::TRIAL],
        &["grub2-editenv", "/boot/grub2/grubenv", "unset", "next_entry"],
        "the next boot, and only that one, takes the trial entry",
    );
    let edits = FileEdit::text(&path, before, Some(copy)).into_iter().collect();
    Ok(TryOnce::Offered { edits, commands: vec![choose], to_keep: TryOnce::to_keep() })
}
