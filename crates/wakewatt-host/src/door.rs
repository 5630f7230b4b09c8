//! A socket in the file system that others on this machine come to: where may it lie, and what of one that is there already?
//!
//! The folder must be root's or the caller's and nobody else's to write to ([`trust`](crate::trust)), and no link: in a foreign folder a neighbour could
//! lay another socket in this one's place and be asked instead. Everything then happens below the open folder, whatever its name leads to by now. A socket that
//! nobody answers at was left by a process that is gone, and is taken away; one that is answered, and anything that is no socket, stays.

use crate::trust::{Caller, Distrust};
use rustix::fs::{AtFlags, FileType, Mode, chmodat, fchmod, statat, unlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Connections that wait to be accepted.
const WAITING: i32 = 128;

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// Not the path of a file in a folder.
    #[error("{}: name a file with its whole path, such as /run/wakewatt/agent.sock", .0.display())]
    NoFile(PathBuf),
    /// The folder is in somebody else's hands.
    #[error("{0}: whoever can write there could be asked in our place")]
    Folder(#[from] Distrust),
    /// Somebody answers there.
    #[error("{}: another process answers there; end it, or name another path", .0.display())]
    Taken(PathBuf),
    /// What is there is left alone.
    #[error("{}: is there and is no socket; it is left alone", .0.display())]
    Foreign(PathBuf),
    /// The system refused.
    #[error("{}: cannot listen there: {source}", path.display())]
    System {
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// Listens at a path, for whom the mode lets.
pub fn listen(path: &Path, mode: u32) -> Result<UnixListener, DoorError> {
    let no_file = || DoorError::NoFile(path.into());
    let (Some(folder), Some(name), true) = (path.parent(), path.file_name(), path.is_absolute()) else {
        return Err(no_file());
    };
    let folder = Caller::this_process().open_folder(folder)?;
    let fd = folder.as_fd();
    let refused = |errno: Errno| DoorError::System { path: path.into(), source: errno.into() };
    // By the folder that is open; also a path that is longer than an address of a socket may be.
    let below = Path::new("/proc/self/fd").join(fd.as_raw_fd().to_string()).join(name);
    match statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(refused(errno)),
        Ok(found) if FileType::from_raw_mode(found.st_mode) != FileType::Socket => {
            return Err(DoorError::Foreign(path.into()));
        }
        Ok(_) => match asked(&below) {
            Err(Errno::CONNREFUSED) => unlinkat(fd, name, AtFlags::empty()).map_err(refused)?,
            // Whoever is too busy to take us is there.
            Ok(_) | Err(_) => return Err(DoorError::Taken(path.into())),
        },
    }
    let made = || -> rustix::io::Result<OwnedFd> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // A socket hands its own mode to the file: nobody but the owner until that is what was asked for (unix(7), fchmod before bind).
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        bind(&socket, &SocketAddrUnix::new(&below)?)?;
        // No link can be in its place: nobody else writes to this folder.
        chmodat(fd, name, Mode::from_raw_mode(mode & 0o777), AtFlags::empty())?;
        rustix::net::listen(&socket, WAITING)?;
        Ok(socket)
    };
    Ok(made().map_err(refused)?.into())
}

/// Connects without waiting: a stopped process whose queue is full would keep us for ever (EAGAIN says that it is there).
fn asked(socket: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let ours = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&ours, &SocketAddrUnix::new(socket)?)?;
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

    #[test]
    fn one_that_is_too_busy_to_answer_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        let _busy = listen(&path, 0o600).unwrap();
        let mut waiting = Vec::new();
        // Nobody accepts: its queue fills, and a connection that waits would wait for ever.
        let full = loop {
            match asked(&path) {
                Ok(socket) => waiting.push(socket),
                Err(why) => break why,
            }
        };
        assert_eq!(full, Errno::AGAIN);
        assert!(matches!(listen(&path, 0o600), Err(DoorError::Taken(_))));
    }

    #[test]
    fn a_socket_left_behind_goes_and_everything_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let first = listen(&at("agent.sock"), 0o660).unwrap();
        let found = std::fs::symlink_metadata(at("agent.sock")).unwrap();
        assert!(found.file_type().is_socket() && found.mode() & 0o777 == 0o660, "{:o}", found.mode());
        assert!(matches!(listen(&at("agent.sock"), 0o600), Err(DoorError::Taken(_))));
        drop(first);
        let _again = listen(&at("agent.sock"), 0o600).unwrap();
        assert_eq!(std::fs::symlink_metadata(at("agent.sock")).unwrap().mode() & 0o777, 0o600);
        std::fs::write(at("file"), "kept").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        for name in ["file", "link", "dangling"] {
            assert!(matches!(listen(&at(name), 0o600), Err(DoorError::Foreign(_))), "{name}");
        }
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "kept");
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn a_folder_that_others_write_to_or_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(matches!(listen(&open.join("s"), 0o600), Err(DoorError::Folder(_))));
        let way = dir.path().join("way");
        symlink(dir.path(), &way).unwrap();
        assert!(matches!(listen(&way.join("s"), 0o600), Err(DoorError::Folder(_))));
        for path in ["s", "/", "run/s", "/run/.."] {
            assert!(matches!(listen(Path::new(path), 0o600), Err(DoorError::NoFile(_))), "{path}");
        }
    }
}
