//! One number of a network interface's interrupt coalescing: `ethtool:eth0/rx-usecs`.
//!
//! All numbers go to the driver together, so a write reads them, changes one and writes the rest back
//! ([`crate::ethtool`]). A driver refuses what it does not have (EOPNOTSUPP), rounds, or changes others along with it;
//! the read-back shows. Inside another network namespace the interface has another meaning: it is this process's one.

use super::{SinkError, refuse};
use crate::ethtool::{FIELDS, get_coalesce, set_coalesce};
use std::path::Path;

/// The interface and the field's position.
fn parse<'a>(root: &Path, path: &'a str) -> Result<(&'a str, usize), SinkError> {
    if root != Path::new("/") {
        return Err(refuse(path, "a folder has no network interfaces"));
    }
    let parsed = || {
        let (interface, field) = path.strip_prefix("ethtool:")?.rsplit_once('/')?;
        Some((interface, FIELDS.iter().find(|(_, name)| *name == field)?.0))
    };
    parsed().ok_or_else(|| refuse(path, "not a coalescing setting such as ethtool:eth0/rx-usecs"))
}

fn fail(path: &str, error: &std::io::Error) -> SinkError {
    match error.raw_os_error() {
        Some(libc::ENODEV) => SinkError { is_absent: true, ..refuse(path, "no such network interface") },
        Some(libc::EOPNOTSUPP) => refuse(path, "the driver has no such setting"),
        _ => refuse(path, error.to_string()),
    }
}

/// The number as the driver tells it.
pub(super) fn read(root: &Path, path: &str) -> Result<String, SinkError> {
    let (interface, at) = parse(root, path)?;
    Ok(get_coalesce(interface).map_err(|e| fail(path, &e))?[at].to_string())
}

/// Changes one number.
pub(super) fn write(root: &Path, path: &str, value: &str) -> Result<(), SinkError> {
    let (interface, at) = parse(root, path)?;
    let number: u32 = value.trim().parse().map_err(|_| refuse(path, format!("{value:?} is no number")))?;
    let mut words = get_coalesce(interface).map_err(|e| fail(path, &e))?;
    words[at] = number;
    set_coalesce(interface, words).map_err(|e| fail(path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_nonsense_are_refused() {
        for path in
            ["ethtool:lo/rx-usecs", "ethtool:nosuch0/rx-usecs", "ethtool:lo/nonsense", "ethtool:", "ethtool:/rx-usecs"]
        {
            assert!(read(Path::new("/"), path).is_err() && write(Path::new("/"), path, "1").is_err(), "{path}");
        }
        assert!(read(Path::new("/tmp"), "ethtool:lo/rx-usecs").unwrap_err().what.contains("folder"));
    }
}
