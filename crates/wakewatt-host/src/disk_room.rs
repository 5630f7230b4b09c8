//! How much of a file system is still free: for whoever writes for months.

use std::io;
use std::path::Path;

/// Share of the blocks that an ordinary user may still take, 0 to 1; 1 where the file system counts none.
pub fn free_share(path: &Path) -> io::Result<f64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(if stat.f_blocks == 0 { 1.0 } else { stat.f_bavail as f64 / stat.f_blocks as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_share() {
        assert!((0.0..=1.0).contains(&free_share(Path::new("/")).unwrap()));
        assert_eq!(free_share(Path::new("/proc")).unwrap(), 1.0);
        assert!(free_share(Path::new("/no/such/folder")).is_err());
    }
}
