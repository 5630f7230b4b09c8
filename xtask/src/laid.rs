//! The list of what the linker lays together (packaging/together.ld, made by `together`): how it is told, and what came of it.

use anyhow::{Context, Result};
use object::{Object as _, ObjectSection as _};
use std::hash::{Hash as _, Hasher as _};
use std::path::PathBuf;

const LIST: &str = "packaging/together.ld";
/// Name of the section.
pub(crate) const SECTION: &str = ".text.together";
/// Behind the number of them, in the list's head.
pub(crate) const BYTES: &str = " bytes";

/// Where the list lies.
pub(crate) fn list() -> PathBuf {
    crate::repository().join(LIST)
}

/// For the linker, which runs in the repository: the list, and a question that changes with it and has no answer, because cargo links again where flags
/// differ and looks into no file that they name. No folder's name is in them, so that two folders make the same bytes.
pub(crate) fn flags() -> Result<[String; 2]> {
    let text = std::fs::read_to_string(list()).with_context(|| list().display().to_string())?;
    let mut hasher = std::hash::DefaultHasher::new();
    text.hash(&mut hasher);
    let list = format!("link-arg=-Wl,-T,{LIST}");
    Ok([list, format!("link-arg=-Wl,--trace-symbol=together_{:016x}", hasher.finish())])
}

/// Bytes of a linked program that were laid together; 0 where the linker knows no such thing.
pub(crate) fn laid(program: &[u8]) -> u64 {
    let file = object::File::parse(program).ok();
    file.and_then(|file| Some(file.section_by_name(SECTION)?.size())).unwrap_or(0)
}

/// Bytes that were laid together when the list was made.
pub(crate) fn expected() -> Result<u64> {
    let text = std::fs::read_to_string(list()).with_context(|| list().display().to_string())?;
    let bytes = text.split_once(BYTES).and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok());
    bytes.with_context(|| format!("{}: its head does not say how many bytes it lays together", list().display()))
}
