//! The disk of the machine in memory: what is seen, and what a power loss leaves.
//!
//! Bytes become durable by `sync`, names by `sync_folder`; nothing does by itself. A write that the process dies at
//! leaves half of the bytes. Once it is read-only (`Fault::ReadOnly`) it is read as before, and everything else fails.

use super::SimulatedMachine;
use crate::store::{Store, StoreError};
use std::path::{Path, PathBuf};

/// One file's bytes, as seen now and as they are on the platter.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) seen: Vec<u8>,
    pub(super) durable: Vec<u8>,
}

impl SimulatedMachine {
    /// Puts a file on the disk, durably, as if it had always been there.
    pub fn put_file(&self, path: &str, text: &str) {
        let mut state = self.state.borrow_mut();
        state.inodes.push(Inode { seen: text.into(), durable: text.into() });
        let at = state.inodes.len() - 1;
        state.names.insert(path.into(), at);
        state.durable_names.insert(path.into(), at);
    }
}

fn struck(path: &Path) -> StoreError {
    StoreError::new(path, "Input/output error")
}

impl Store for SimulatedMachine {
    fn load(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        let mut state = self.state.borrow_mut();
        if state.is_struck() {
            return Err(struck(path));
        }
        Ok(state.names.get(path).map(|at| state.inodes[*at].seen.clone()))
    }
    fn names(&self, folder: &Path) -> Result<Vec<String>, StoreError> {
        let mut state = self.state.borrow_mut();
        if state.is_struck() {
            return Err(struck(folder));
        }
        let here = state.names.keys().filter(|p| p.parent() == Some(folder));
        Ok(here.filter_map(|p| Some(p.file_name()?.to_string_lossy().into_owned())).collect())
    }
    fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
        if self.state.borrow_mut().is_disk_struck() { Err(struck(folder)) } else { Ok(()) }
    }
    fn close_folder(&self, folder: &Path) -> Result<(), StoreError> {
        if self.state.borrow_mut().is_disk_struck() { Err(struck(folder)) } else { Ok(()) }
    }
    fn has_folder(&self, _: &Path) -> bool {
        true
    }
    fn write(&self, path: &Path, bytes: &[u8], _mode: u32) -> Result<(), StoreError> {
        let mut state = self.state.borrow_mut();
        let is_struck = state.is_disk_struck();
        if is_struck && !state.is_torn() {
            return Err(struck(path));
        }
        let seen = if is_struck { bytes[..bytes.len() / 2].to_vec() } else { bytes.to_vec() };
        state.inodes.push(Inode { seen, durable: Vec::new() });
        let at = state.inodes.len() - 1;
        state.names.insert(path.into(), at);
        if is_struck { Err(struck(path)) } else { Ok(()) }
    }
    fn sync(&self, path: &Path) -> Result<(), StoreError> {
        let mut state = self.state.borrow_mut();
        if state.is_disk_struck() {
            return Err(struck(path));
        }
        let at = state.names.get(path).copied().ok_or_else(|| struck(path))?;
        state.inodes[at].durable = state.inodes[at].seen.clone();
        Ok(())
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        let mut state = self.state.borrow_mut();
        if state.is_disk_struck() {
            return Err(struck(to));
        }
        let at = state.names.remove(from).ok_or_else(|| struck(from))?;
        state.names.insert(to.into(), at);
        Ok(())
    }
    fn sync_folder(&self, folder: &Path) -> Result<(), StoreError> {
        let mut state = self.state.borrow_mut();
        if state.is_disk_struck() {
            return Err(struck(folder));
        }
        let is_here = |p: &Path| p.parent() == Some(folder);
        state.durable_names.retain(|p, _| !is_here(p));
        let now: Vec<(PathBuf, usize)> =
            state.names.iter().filter(|(p, _)| is_here(p)).map(|(p, at)| (p.clone(), *at)).collect();
        state.durable_names.extend(now);
        Ok(())
    }
    fn remove(&self, path: &Path) -> Result<(), StoreError> {
        let mut state = self.state.borrow_mut();
        if state.is_disk_struck() {
            return Err(struck(path));
        }
        state.names.remove(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Sink;

    #[test]
    fn what_is_made_durable_outlives_the_power() {
        let machine = SimulatedMachine::new("");
        let file = Path::new("/etc/x");
        Store::write(&machine, file, b"text", 0o644).unwrap();
        machine.heal();
        machine.make_durable("file:/etc/x").unwrap();
        assert_eq!(machine.n_operations(), 3); // What was left beside it, the file, the folder.
        machine.power_cycle();
        assert_eq!(machine.load(file).unwrap().as_deref(), Some(b"text".as_slice()));
        // So does its absence, and an attribute has nothing of the kind.
        Store::remove(&machine, file).unwrap();
        machine.heal();
        machine.make_durable("file:/etc/x").unwrap();
        machine.make_durable("/sys/x").unwrap();
        assert_eq!(machine.n_operations(), 2);
        machine.power_cycle();
        assert_eq!(machine.load(file).unwrap(), None);
    }
}
