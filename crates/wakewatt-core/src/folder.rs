//! Folders of attribute files, listed once: a file that is not in the listing is absent without a system call.
//!
//! Kernel attributes come and go with driver, model and version, and most of them exist on no given machine. Probing
//! thirty names on 512 CPUs would cost fifteen thousand failing opens; one listing answers them all. [`Folder`] is one
//! folder; [`Folders`] is the same folder of every CPU (or policy, zone, device: the key is only a number), each
//! listed for itself, because hybrid machines differ between policies, or taken to be [alike](Folders::alike), where
//! the kernel registers the same group of files for every CPU.

use crate::fact::{Fact, Gap, PerCpu, fact};
use crate::source::{Read, ReadError, Source};

/// One folder and the names in it.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where it is.
    pub path: String,
    names: Read<Vec<String>>,
    missing: ReadError,
}

impl Folder {
    /// Lists it.
    pub fn list(src: &dyn Source, path: impl Into<String>) -> Folder {
        let path = path.into();
        Folder { names: sorted(src.list(&path)), path, missing: src.missing() }
    }

    /// The names, none where the folder cannot be listed.
    pub fn names(&self) -> &[String] {
        self.names.as_deref().unwrap_or_default()
    }

    /// Is the file there?
    pub fn has(&self, file: &str) -> bool {
        lookup(&self.names, file, &self.missing).is_ok()
    }

    /// Why the folder itself cannot be listed.
    pub fn gap(&self) -> Option<Gap> {
        self.names.as_ref().err().map(|error| Gap::from_read(&self.path, error))
    }

    /// Reads and parses one file in it.
    pub fn fact<T>(&self, src: &dyn Source, file: &str, parse: impl Fn(&str) -> Result<T, String>) -> Fact<T> {
        let path = format!("{}/{file}", self.path);
        match lookup(&self.names, file, &self.missing) {
            Ok(()) => fact(src, &path, parse),
            Err(error) => Fact::Gap(Gap::from_read(&path, &error)),
        }
    }

    /// The numbers of names like `policy12`, rising.
    pub fn numbered(&self, prefix: &str) -> Vec<u32> {
        numbered(self.names(), prefix)
    }
}

/// One folder per number, with what lies in each. Equal listings are kept once.
pub struct Folders<P> {
    path: P,
    keys: Vec<(u32, usize)>,
    listings: Vec<Read<Vec<String>>>,
    missing: ReadError,
}

impl<P: Fn(u32) -> String> Folders<P> {
    /// Lists the folder of every key.
    pub fn list(src: &dyn Source, keys: impl IntoIterator<Item = u32>, path: P) -> Folders<P> {
        let mut found = Folders { path, keys: Vec::new(), listings: Vec::new(), missing: src.missing() };
        for key in keys {
            let names = sorted(src.list(&(found.path)(key)));
            let at = found.listings.iter().position(|known| *known == names).unwrap_or_else(|| {
                found.listings.push(names);
                found.listings.len() - 1
            });
            found.keys.push((key, at));
        }
        found
    }

    /// Lists the folder of the first key only and takes the others to hold the same names.
    pub fn alike(src: &dyn Source, keys: impl IntoIterator<Item = u32>, path: P) -> Folders<P> {
        let keys: Vec<(u32, usize)> = keys.into_iter().map(|key| (key, 0)).collect();
        let listings = keys.first().map(|(first, _)| sorted(src.list(&path(*first)))).into_iter().collect();
        Folders { path, keys, listings, missing: src.missing() }
    }

    /// Reads one file of every folder that has it; the others are gaps.
    pub fn read<T>(&self, src: &dyn Source, file: &str, parse: impl Fn(&str) -> Result<T, String>) -> PerCpu<T> {
        let there: Vec<Read<()>> = self.listings.iter().map(|names| lookup(names, file, &self.missing)).collect();
        let mut keys = self.keys.iter();
        let at = std::cell::Cell::new(0);
        PerCpu::read_with(
            std::iter::from_fn(|| keys.next().map(|(key, listing)| (at.set(*listing), *key).1)),
            |key| format!("{}/{file}", (self.path)(key)),
            |_, path| there[at.get()].clone().and_then(|()| src.read(path)),
            parse,
        )
    }

    /// The keys whose folder has this name.
    pub fn with<'a>(&'a self, file: &'a str) -> impl Iterator<Item = u32> + 'a {
        self.keys
            .iter()
            .filter(move |(_, at)| lookup(&self.listings[*at], file, &self.missing).is_ok())
            .map(|(key, _)| *key)
    }

    /// Every name that occurs in any of them, sorted within each listing.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.listings.iter().flatten().flatten()
    }

    /// Does any folder have it?
    pub fn any(&self, file: &str) -> bool {
        self.with(file).next().is_some()
    }
}

/// The first path component decides: `stats/time_in_state` is looked for where `stats` is.
fn lookup(names: &Read<Vec<String>>, file: &str, missing: &ReadError) -> Read<()> {
    let head = file.split('/').next().unwrap_or(file);
    match names {
        Ok(names) if names.binary_search_by(|name| name.as_str().cmp(head)).is_ok() => Ok(()),
        Ok(_) => Err(missing.clone()),
        Err(error) => Err(error.clone()),
    }
}

fn sorted(names: Read<Vec<String>>) -> Read<Vec<String>> {
    names.map(|mut names| {
        names.sort_unstable();
        names
    })
}

/// The numbers behind a prefix, rising; anything that is not a small number is not one of the kernel's names.
pub fn numbered(names: &[String], prefix: &str) -> Vec<u32> {
    let number = |name: &String| name.strip_prefix(prefix)?.parse().ok().filter(|n| *n < 1 << 16);
    let mut found: Vec<u32> = names.iter().filter_map(number).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::{GapKind, parse};
    use crate::source::Tree;
    use std::cell::RefCell;

    /// Counts what is asked of a tree.
    struct Asked(Tree, RefCell<Vec<String>>);

    impl Source for Asked {
        fn read(&self, path: &str) -> Read<Vec<u8>> {
            self.1.borrow_mut().push(path.into());
            self.0.read(path)
        }
        fn list(&self, path: &str) -> Read<Vec<String>> {
            self.1.borrow_mut().push(format!("{path}/"));
            self.0.list(path)
        }
        fn link(&self, path: &str) -> Read<String> {
            self.0.link(path)
        }
        fn msr(&self, cpu: u32, address: u32) -> Read<u64> {
            self.0.msr(cpu, address)
        }
        fn origin(&self) -> String {
            self.0.origin()
        }
    }

    #[test]
    fn what_is_not_listed_is_not_opened() {
        let tree = Tree::from_text("//- /p0/a\n1\n//- /p1/a\n1\n//- /p1/b!denied\n//- /p1/deep/x\n5\n");
        let src = Asked(tree, RefCell::default());
        let folders = Folders::list(&src, 0..3, |n| format!("/p{n}"));
        let shown = |facts: &PerCpu<u64>| {
            facts.0.iter().map(|g| format!("{} {:?}", g.cpus, g.fact.gap().map(|g| g.kind))).collect::<Vec<_>>()
        };
        assert_eq!(shown(&folders.read(&src, "a", parse::number)), ["0-1 None", "2 Some(Absent)"]);
        assert_eq!(shown(&folders.read(&src, "b", parse::number)), ["0,2 Some(Absent)", "1 Some(Denied)"]);
        assert_eq!(folders.read(&src, "deep/x", parse::number).of(1).unwrap().get(), Some(&5));
        assert_eq!(folders.read(&src, "c", parse::number).gaps().next().unwrap().1.kind, GapKind::Absent);
        assert_eq!(*src.1.borrow(), ["/p0/", "/p1/", "/p2/", "/p0/a", "/p1/a", "/p1/b", "/p1/deep/x"]);
        assert_eq!(folders.with("b").collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn hostile_numbers_are_no_names() {
        let names: Vec<String> = ["p10", "p2", "p4294967295", "p-1", "px", "p"].map(String::from).into();
        assert_eq!(numbered(&names, "p"), [2, 10]);
    }
}
