//! What a BIOS held before: on disk before anything is staged, so that it can be staged again.
//!
//! One JSON file per application, replaced whole and durable before the first request that changes something. It lies where
//! `bios apply` runs, which need not be the machine: it names BMC and system. It holds no password, and attributes that are
//! passwords never get here. It ends when its undo is seen in force.

use crate::setting::Setting;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_host::store::{self, Disk, Store as _};

/// Where journals are kept by root; others name a folder.
pub const STATE_DIR: &str = "/var/lib/wakewatt/bios";
/// The version of the form.
const FORMAT: u64 = 1;

/// One attribute that an application changes, or moves along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The attribute.
    pub attribute: String,
    /// What it held; none where the BIOS did not tell.
    pub before: Option<Setting>,
    /// What it was to hold.
    pub ours: Setting,
    /// Nobody wrote it: a profile of the same application forces it.
    pub is_moved: bool,
}

/// How far an application is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Being staged; whether the BMC took it is not known.
    Open,
    /// The BMC took it.
    Staged,
    /// The old values are staged again.
    UndoStaged,
}

impl Phase {
    /// For people and files.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Open => "open",
            Phase::Staged => "staged",
            Phase::UndoStaged => "undo-staged",
        }
    }
    fn parse(word: &str) -> Option<Phase> {
        [Phase::Open, Phase::Staged, Phase::UndoStaged].into_iter().find(|phase| phase.word() == word)
    }
}

/// An application on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// The BMC's URL.
    pub bmc: String,
    /// Id of the system.
    pub system: String,
    /// Serial-free name of the machine, for people.
    pub machine: String,
    /// When it was made, in words.
    pub made_at: String,
    /// How far it is.
    pub phase: Phase,
    /// What was asked for.
    pub wishes: Vec<String>,
    /// What changes, in order.
    pub entries: Vec<Entry>,
    /// The job or task that applies it at the next boot.
    pub job: Option<String>,
    file: PathBuf,
}

/// It could not be kept or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct JournalError {
    path: String,
    what: String,
}

fn fail(path: &Path, what: impl ToString) -> JournalError {
    JournalError { path: path.display().to_string(), what: what.to_string() }
}

impl Journal {
    /// Writes a new one, durably. Nothing may be staged if this fails.
    pub fn create(folder: &Path, draft: Journal) -> Result<Journal, JournalError> {
        let cannot = |e: store::StoreError| {
            fail(
                folder,
                format!("cannot keep a journal, so nothing is staged: {}; name a folder with --journals", e.what),
            )
        };
        Disk.make_folder(folder).and_then(|()| Disk.close_folder(folder)).map_err(cannot)?;
        let number = |name: &String| name.strip_prefix("bios-")?.strip_suffix(".json")?.parse::<u32>().ok();
        let names = Disk.names(folder).map_err(cannot)?;
        let next = names.iter().filter_map(number).max().map_or(1, |n| n.saturating_add(1));
        let journal = Journal { file: folder.join(format!("bios-{next}.json")), ..draft };
        journal.save()?;
        Ok(journal)
    }

    /// A journal that has no file yet.
    pub fn draft(bmc: &str, system: &str, machine: String, made_at: String) -> Journal {
        Journal {
            bmc: bmc.into(),
            system: system.into(),
            machine,
            made_at,
            phase: Phase::Open,
            wishes: Vec::new(),
            entries: Vec::new(),
            job: None,
            file: PathBuf::new(),
        }
    }

    /// Writes it as it is now, durably.
    pub fn save(&self) -> Result<(), JournalError> {
        let entry = |entry: &Entry| json!({ "attribute": entry.attribute, "before": entry.before, "ours": entry.ours, "is_moved": entry.is_moved });
        let document = json!({
            "format": FORMAT, "bmc": self.bmc, "system": self.system, "machine": self.machine, "made_at": self.made_at,
            "phase": self.phase.word(), "wishes": self.wishes, "job": self.job,
            "entries": self.entries.iter().map(entry).collect::<Vec<_>>(),
        });
        store::replace(&Disk, &self.file, format!("{document:#}\n").as_bytes(), 0o600)
            .map_err(|e| fail(&self.file, e.what))
    }

    /// Reads one back.
    pub fn load(file: &Path) -> Result<Journal, JournalError> {
        let not_one = |what: &str| fail(file, format!("not a journal of bios apply: {what}"));
        let bytes = Disk.load(file).map_err(|e| fail(file, e.what))?.ok_or_else(|| fail(file, "no such journal"))?;
        let json: Value = serde_json::from_slice(&bytes).map_err(|_| not_one("it is no JSON"))?;
        if json["format"].as_u64() != Some(FORMAT) {
            return Err(not_one("its format is none that this wakewatt knows"));
        }
        let text =
            |key: &str| json[key].as_str().map(str::to_string).ok_or_else(|| not_one(&format!("it names no {key}")));
        let words = json["wishes"].as_array().into_iter().flatten();
        let entry = |entry: &Value| {
            Some(Entry {
                attribute: entry["attribute"].as_str()?.into(),
                before: Setting::of(&entry["before"]),
                ours: Setting::of(&entry["ours"])?,
                is_moved: entry["is_moved"].as_bool()?,
            })
        };
        let entries: Option<Vec<Entry>> = json["entries"].as_array().and_then(|all| all.iter().map(entry).collect());
        Ok(Journal {
            bmc: text("bmc")?,
            system: text("system")?,
            machine: text("machine")?,
            made_at: text("made_at")?,
            phase: Phase::parse(&text("phase")?).ok_or_else(|| not_one("its phase is unknown"))?,
            wishes: words.filter_map(|word| word.as_str().map(str::to_string)).collect(),
            entries: entries.ok_or_else(|| not_one("its entries cannot be read"))?,
            job: json["job"].as_str().map(str::to_string),
            file: file.to_path_buf(),
        })
    }

    /// Every journal in a folder, oldest first, and those that cannot be read.
    pub fn all(folder: &Path) -> (Vec<Journal>, Vec<JournalError>) {
        let mut names = match Disk.names(folder) {
            Ok(names) => names,
            Err(e) => return (Vec::new(), vec![fail(folder, e.what)]),
        };
        names.retain(|name| name.starts_with("bios-") && name.ends_with(".json"));
        let number = |name: &String| name.trim_start_matches("bios-").trim_end_matches(".json").parse::<u32>().ok();
        names.arrange_by_key(|name| (number(name), name.clone()));
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for name in names {
            match Journal::load(&folder.join(name)) {
                Ok(journal) => good.push(journal),
                Err(why) => bad.push(why),
            }
        }
        (good, bad)
    }

    /// What people call it: `bios-3`.
    pub fn id(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Done: the file goes.
    pub fn finish(&self) -> Result<(), JournalError> {
        store::remove(&Disk, &self.file).map_err(|e| fail(&self.file, e.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_what_it_wrote_and_refuses_what_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("bios");
        let mut draft = Journal::draft("https://bmc", "1", "R750".into(), "then".into());
        let (before, ours) = (Some(Setting::Text("Enabled".into())), Setting::Flag(false));
        draft.entries.push(Entry { attribute: "ProcCStates".into(), before, ours, is_moved: true });
        draft.wishes.push("bios.c-states=off".into());
        let first = Journal::create(&place, draft.clone()).unwrap();
        let second = Journal::create(&place, draft).unwrap();
        assert_eq!((first.id(), second.id()), ("bios-1".into(), "bios-2".into()));
        assert_eq!(Journal::load(&place.join("bios-1.json")).unwrap(), first);
        std::fs::write(place.join("bios-3.json"), "{\"format\":9}").unwrap();
        let (good, bad) = Journal::all(&place);
        assert_eq!((good.len(), bad.len()), (2, 1));
        first.finish().unwrap();
        assert!(Journal::load(&place.join("bios-1.json")).is_err());
    }
}
