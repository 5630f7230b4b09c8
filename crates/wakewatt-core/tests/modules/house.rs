//! The modules of a crate, what each file names, and where a name leads: through imports and re-exports to the file that
//! defines it.

use crate::tokens;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path below the crate; the crate itself is empty.
pub(crate) type Name = Vec<String>;

/// Names that lead somewhere else are followed so far, at most: an import may lead to an import.
const MOST_STEPS: usize = 20;

#[derive(Debug, Default)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    /// What `use` brought in, by its name here.
    imports: BTreeMap<String, Name>,
    /// Modules whose every name was brought in.
    globs: Vec<Name>,
    /// Every path in the code, imports included, but not what is only passed on from below.
    paths: Vec<Name>,
}

/// A crate, read.
#[derive(Debug, Default)]
pub(crate) struct House {
    modules: BTreeMap<Name, Module>,
}

impl House {
    /// Reads `lib.rs` or `main.rs` of this folder and all that they declare.
    pub(crate) fn read(folder: &Path) -> House {
        let mut house = House::default();
        let file = ["lib.rs", "main.rs"].into_iter().find(|f| folder.join(f).is_file()).unwrap_or("lib.rs");
        house.add(Vec::new(), folder, Path::new(file));
        house
    }

    fn add(&mut self, name: Name, folder: &Path, file: &Path) {
        let tokens = tokens::of(&fs::read_to_string(folder.join(file)).unwrap_or_default());
        let module = module(&tokens, file.display().to_string());
        let below = if name.is_empty() { Path::new("").into() } else { name.iter().collect::<std::path::PathBuf>() };
        for child in &module.children {
            let flat = below.join(format!("{child}.rs"));
            let deep = below.join(child).join("mod.rs");
            let file = if folder.join(&flat).is_file() { flat } else { deep };
            self.add([&name[..], std::slice::from_ref(child)].concat(), folder, &file);
        }
        self.modules.insert(name, module);
    }

    /// The file that a path in this module leads to; none where it leads out of the crate.
    fn target(&self, from: &[String], path: &[String], n_steps: usize) -> Option<Name> {
        let (first, rest) = path.split_first()?;
        if n_steps == 0 {
            return None;
        }
        match first.as_str() {
            "crate" => self.below(Vec::new(), rest, n_steps),
            "self" => self.below(from.to_vec(), rest, n_steps),
            "super" => {
                let (_, parent) = from.split_last()?;
                match rest.first().map(String::as_str) {
                    Some("super") => self.target(parent, rest, n_steps),
                    _ => self.below(parent.to_vec(), rest, n_steps),
                }
            }
            _ => {
                let module = self.modules.get(from)?;
                let is_known = module.children.contains(first) || module.imports.contains_key(first);
                if is_known { self.below(from.to_vec(), path, n_steps) } else { None }
            }
        }
    }

    fn below(&self, at: Name, path: &[String], n_steps: usize) -> Option<Name> {
        let module = self.modules.get(&at)?;
        let Some((first, rest)) = path.split_first() else { return Some(at) };
        if module.children.contains(first) {
            return self.below([&at[..], std::slice::from_ref(first)].concat(), rest, n_steps);
        }
        if let Some(import) = module.imports.get(first) {
            return self.target(&at, &[&import[..], rest].concat(), n_steps - 1);
        }
        // Whose of several? All of this house have one at most.
        let through = module.globs.iter().find_map(|glob| self.target(&at, glob, n_steps - 1));
        through.filter(|_| rest.is_empty() && first.starts_with(char::is_uppercase)).or(Some(at))
    }

    /// All uses of one file by another.
    fn uses(&self) -> impl Iterator<Item = (&Name, &Module, Name)> {
        self.modules.iter().flat_map(move |(name, module)| {
            let targets: BTreeSet<Name> =
                module.paths.iter().filter_map(|path| self.target(name, path, MOST_STEPS)).collect();
            targets.into_iter().filter(move |target| target != name).map(move |target| (name, module, target))
        })
    }

    /// The folder in which two modules part, and which of its modules each belongs to.
    fn parting<'a>(a: &'a [String], b: &'a [String]) -> Option<(&'a [String], &'a String, &'a String)> {
        let n = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        Some((&a[..n], a.get(n)?, b.get(n)?))
    }

    /// For each folder: which of its modules uses which.
    pub(crate) fn levels(&self) -> BTreeMap<Name, BTreeMap<String, BTreeSet<String>>> {
        let mut levels: BTreeMap<Name, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, _, to) in self.uses() {
            if let Some((level, from, to)) = House::parting(from, &to) {
                levels.entry(level.to_vec()).or_default().entry(from.clone()).or_default().insert(to.clone());
            }
        }
        levels
    }

    /// The uses among these modules of a folder, in words: one example of each.
    pub(crate) fn why(&self, level: &[String], circle: &BTreeSet<String>) -> Vec<String> {
        let mut said: BTreeMap<(String, String), String> = BTreeMap::new();
        for (name, module, target) in self.uses() {
            let Some((at, from, to)) = House::parting(name, &target) else { continue };
            if at == level && circle.contains(from) && circle.contains(to) {
                let words = || format!("{from} uses {to}: {} names {}", module.file, target.join("/"));
                said.entry((from.clone(), to.clone())).or_insert_with(words);
            }
        }
        said.into_values().collect()
    }
}

fn module(tokens: &[String], file: String) -> Module {
    let mut module = Module { file, ..Module::default() };
    let (mut i, mut visible) = (0, false);
    let token = |i: usize| tokens.get(i).map_or("", String::as_str);
    while i < tokens.len() {
        match token(i) {
            "pub" => {
                visible = true;
                i += 1;
                // `pub(crate)` and the like.
                if token(i) == "(" {
                    i += tokens[i..].iter().take_while(|t| *t != ")").count() + 1;
                }
                continue;
            }
            "mod" if token(i + 2) == ";" => {
                module.children.insert(token(i + 1).into());
                i += 3;
            }
            "use" => {
                let end = i + tokens[i..].iter().take_while(|t| *t != ";").count();
                let mut leaves = Vec::new();
                tree(&tokens[i + 1..end], &[], &mut leaves);
                for (path, name) in leaves {
                    let is_passed_on = visible && !matches!(path[0].as_str(), "crate" | "super");
                    match name.as_str() {
                        "*" => module.globs.push(path.clone()),
                        _ => drop(module.imports.insert(name, path.clone())),
                    }
                    if !is_passed_on {
                        module.paths.push(path);
                    }
                }
                i = end;
            }
            word if is_head(word) && !matches!(token(i.wrapping_sub(1)), "::" | "$") && token(i + 1) == "::" => {
                let (path, end) = path(tokens, i);
                module.paths.push(path);
                i = end;
            }
            _ => i += 1,
        }
        visible = false;
    }
    module
}

fn is_head(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// `a::b::C` from here on, and what follows it.
fn path(tokens: &[String], from: usize) -> (Name, usize) {
    let (mut out, mut i) = (vec![tokens[from].clone()], from + 1);
    while tokens.get(i).is_some_and(|t| t == "::") && tokens.get(i + 1).is_some_and(|t| is_head(t)) {
        out.push(tokens[i + 1].clone());
        i += 2;
    }
    (out, i)
}

/// The leaves of `a::{b, c::{d as e, self}}`: whole path, and the name it has here.
fn tree(tokens: &[String], before: &[String], out: &mut Vec<(Name, String)>) {
    let mut path = before.to_vec();
    let mut i = 0;
    while i < tokens.len() {
        match tokens[i].as_str() {
            "::" => i += 1,
            "{" => {
                let inner = &tokens[i + 1..tokens.len().saturating_sub(1)];
                split(inner).into_iter().for_each(|part| tree(part, &path, out));
                return;
            }
            "as" => {
                let name = tokens.get(i + 1).cloned().unwrap_or_default();
                return out.push((path, name));
            }
            "*" => return out.push((path, "*".into())),
            "self" if !path.is_empty() => i += 1,
            word => {
                path.push(word.into());
                i += 1;
            }
        }
    }
    if let Some(name) = path.last().cloned() {
        out.push((path, name));
    }
}

/// At the commas that are not inside braces.
fn split(tokens: &[String]) -> Vec<&[String]> {
    let (mut out, mut depth, mut from) = (Vec::new(), 0, 0);
    for (i, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 0 => {
                out.push(&tokens[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    out.push(&tokens[from..]);
    out.into_iter().filter(|part| !part.is_empty()).collect()
}
