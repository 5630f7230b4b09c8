//! How much of a file system is still free: for whoever writes for months.

use rustix::fd::AsFd;
use std::io;

/// Share of the blocks that an ordinary user may still take where this is open, 0 to 1; 1 where the file system counts none.
pub(crate) fn free_share(open: impl AsFd) -> io::Result<f64> {
    let stat = rustix::fs::fstatvfs(open)?;
    Ok(if stat.f_blocks == 0 { 1.0 } else { stat.f_bavail as f64 / stat.f_blocks as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_share() {
        let share = |path: &str| free_share(std::fs::File::open(path).unwrap()).unwrap();
        assert!((0.0..=1.0).contains(&share("/")));
        assert_eq!(share("/proc"), 1.0);
    }
}
