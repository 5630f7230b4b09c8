//! Texts of other tools as they lie on a disk: files, packed files, archives, folders. Which of them are read, and that they are of
//! one host; what they say is the business of `wakewatt_import`.
//!
//! A long text of events is read line by line; everything else is taken whole, as far as any tool prints. A folder or an archive that
//! holds the reports of several hosts is refused with their names, because two hosts must not become one.

use crate::exit::{Code, Failure};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};
use wakewatt_host::{material, recorded};
use wakewatt_import::archive::{is_inner, is_tar, walk_tar, wanted};
use wakewatt_import::events::are_events;
use wakewatt_import::plain::decoded;
use wakewatt_import::{Imported, Input, import};

/// By so much of it a text is told.
const FRONT: u64 = 256 << 10;
/// The longest text that is read whole.
const MAX_WHOLE: u64 = 64 << 20;
/// All that is taken of an archive.
const MAX_TAKEN: usize = 1 << 30;

/// Inputs, and the hosts that they are of.
#[derive(Default)]
struct Gathered {
    inputs: Vec<Input>,
    roots: BTreeSet<String>,
    n_bytes: usize,
    remarks: Vec<String>,
}

/// Reads all of them as one host.
pub(crate) fn read(files: &[PathBuf]) -> Result<Imported> {
    if let [file] = files {
        // What `import -o` and `capture` wrote is read as what it is.
        if is_host_file(file) {
            let tree = recorded::open(file)?;
            return Ok(Imported::of_host(tree));
        }
    }
    let mut all = Gathered::default();
    for file in files {
        let before = all.inputs.len();
        if file.is_dir() {
            all.folder(file)?
        } else {
            all.file(file, &file.display().to_string(), "")?
        }
        if all.inputs.len() == before {
            let name = file.display();
            return Err(Failure::error(
                Code::BadFile,
                format!("{name}: no file in it is one that is read here; docs/import.md lists them"),
            ));
        }
    }
    if all.roots.len() > 1 {
        let names: Vec<&str> = all.roots.iter().take(10).map(String::as_str).collect();
        let (n, names) = (all.roots.len(), names.join(", "));
        return Err(Failure::error(
            Code::Usage,
            format!("these are reports of {n} hosts ({names}): give those of one, as a folder or an archive"),
        ));
    }
    let mut imported = import(all.inputs);
    imported.document.remarks.extend(all.remarks);
    Ok(imported)
}

fn is_host_file(path: &Path) -> bool {
    let mut front = Vec::new();
    let begins = |text: Box<dyn BufRead>| text.take(14).read_to_end(&mut front).is_ok() && front == b"wakewatt-host ";
    path.is_file() && material::open(path).is_ok_and(begins)
}

impl Gathered {
    fn file(&mut self, path: &Path, name: &str, within: &str) -> Result<()> {
        let mut text = material::open(path)?;
        let mut front = Vec::new();
        text.by_ref().take(FRONT).read_to_end(&mut front).with_context(|| format!("{name}: cannot be read"))?;
        if is_tar(&front) {
            return self.archive(&mut Cursor::new(front).chain(text), name, within);
        }
        if are_events(&mut decoded(&front).lines()) {
            let lines: Box<dyn BufRead> = Box::new(Cursor::new(front).chain(text));
            self.inputs.push(Input::Events { name: name.into(), lines });
            return Ok(());
        }
        text.take(MAX_WHOLE + 1 - front.len() as u64)
            .read_to_end(&mut front)
            .with_context(|| format!("{name}: cannot be read"))?;
        if front.len() as u64 > MAX_WHOLE {
            return Err(Failure::error(
                Code::BadFile,
                format!("{name}: longer than {} MiB, and no text of events", MAX_WHOLE >> 20),
            ));
        }
        self.n_bytes = self.n_bytes.saturating_add(front.len());
        if self.n_bytes > MAX_TAKEN {
            return Err(Failure::error(Code::BadFile, format!("{name}: more than {} MiB in all", MAX_TAKEN >> 20)));
        }
        self.inputs.push(Input::Text { name: name.into(), path: None, bytes: front });
        Ok(())
    }

    fn archive(&mut self, tar: &mut dyn Read, name: &str, within: &str) -> Result<()> {
        let (mut n_inner, mut n_over) = (0, 0);
        let mut taken: Vec<(String, Vec<u8>)> = Vec::new();
        let mut room = MAX_TAKEN.saturating_sub(self.n_bytes);
        let ended = walk_tar(
            tar,
            &mut |entry| {
                n_inner += usize::from(is_inner(entry));
                wanted(entry).map(|w| w.max_bytes)
            },
            &mut |entry, bytes| match room.checked_sub(bytes.len() + 256) {
                Some(left) => {
                    room = left;
                    taken.push((entry.into(), bytes));
                }
                None => n_over += 1,
            },
        );
        self.n_bytes = MAX_TAKEN - room;
        for (entry, bytes) in taken {
            let Some(want) = wanted(&entry) else { continue };
            self.roots.extend(want.root.map(|root| format!("{within}{root}")));
            self.inputs.push(Input::Text { name: format!("{name}:{entry}"), path: want.path, bytes });
        }
        if let Err(error) = ended {
            self.remarks.push(format!("{name}: {error}; what stood before it was read"));
        }
        if n_inner > 0 {
            self.remarks.push(format!(
                "{name}: {n_inner} archives inside it were not opened; unpack it and give the folder of one host"
            ));
        }
        if n_over > 0 {
            self.remarks.push(format!(
                "{name}: {n_over} files were left out, because there was more than {} MiB",
                MAX_TAKEN >> 20
            ));
        }
        Ok(())
    }

    fn folder(&mut self, folder: &Path) -> Result<()> {
        let shown = folder.display();
        for entry in material::below(folder)? {
            let (path, name) = (folder.join(&entry), format!("{shown}/{entry}"));
            if is_inner(&entry) {
                self.file(&path, &name, &format!("{entry}:"))?;
                continue;
            }
            let Some(want) = wanted(&entry) else { continue };
            self.roots.extend(want.root);
            // A file that cannot be read is one fact less, not the end.
            let read = match want.path {
                None => self.file(&path, &name, ""),
                Some(kernel) => material::open(&path).map_err(anyhow::Error::from).and_then(|text| {
                    let mut bytes = Vec::new();
                    text.take(want.max_bytes).read_to_end(&mut bytes)?;
                    self.n_bytes = self.n_bytes.saturating_add(bytes.len());
                    self.inputs.push(Input::Text { name: name.clone(), path: Some(kernel), bytes });
                    Ok(())
                }),
            };
            if let Err(error) = read {
                self.remarks.push(format!("{error:#}").replace('\n', " "));
            }
            if self.n_bytes > MAX_TAKEN {
                self.remarks.push(format!(
                    "{shown}: the rest was left out, because there was more than {} MiB",
                    MAX_TAKEN >> 20
                ));
                break;
            }
        }
        Ok(())
    }
}
