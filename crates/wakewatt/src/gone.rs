//! Has the other end gone: the terminal closed, the reader of the pipe ended?
//!
//! A write then fails with EIO (terminal) or EPIPE (pipe). EIO is also what a dying disk says, so the error alone does
//! not tell; `poll` does, whatever the file is: a regular file never hangs up. Ending because of it is an interruption
//! like Ctrl-C: settings are put back first.

use crate::exit::{Code, Failure};
use crate::interrupt::GONE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;

/// Has this file lost its other end?
pub fn is_gone(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    let seen = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    seen.is_ok_and(|n| n > 0) && fds[0].revents().intersects(GONE)
}

/// Did writing to standard output fail because its terminal closed? A pipe says so itself, with an error of its own.
pub fn is_closed_terminal(error: &anyhow::Error) -> bool {
    let is_eio = |e: &std::io::Error| e.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    error.chain().any(|c| c.downcast_ref::<std::io::Error>().is_some_and(is_eio)) && is_gone(rustix::stdio::stdout())
}

/// For those who found out while waiting.
pub fn error() -> anyhow::Error {
    Failure::error(Code::Interrupted, "the terminal is gone")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn pipes_hang_up_and_files_do_not() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        assert!(!is_gone(write.as_fd()));
        drop(read);
        assert!(is_gone(write.as_fd()));
        assert!(!is_gone(tempfile::tempfile().unwrap().as_fd()));
        assert!(!is_gone(std::fs::File::open("/dev/null").unwrap().as_fd()));
    }
}
