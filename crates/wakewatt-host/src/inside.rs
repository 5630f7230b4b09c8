//! A path opened inside a root, whatever links it goes through: by the kernel where it can, else step by step.
//!
//! openat2(2) with RESOLVE_IN_ROOT does it in one call, from Linux 5.6 on; seccomp filters of container runtimes that do not
//! know the call answer ENOSYS or EPERM. Then each component is opened by itself with O_PATH and O_NOFOLLOW, and what a
//! link says is resolved here: an absolute one begins at the root, `..` goes back to the folder we came from (a descriptor
//! kept, so that no rename meanwhile leads out) and stops at the root, and after forty links it is a circle.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

/// Opens `path` inside `root`.
pub(crate) fn open(root: &OwnedFd, path: &str, flags: OFlags, has_openat2: bool) -> Result<OwnedFd, Errno> {
    if !has_openat2 {
        return walk(root, path, flags);
    }
    let inside = path.trim_start_matches('/');
    let inside = if inside.is_empty() { "." } else { inside };
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, inside, flags, Mode::empty(), resolve) {
        // AGAIN: somebody renamed meanwhile, and the kernel will not vouch for a `..`.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => walk(root, path, flags),
        other => other,
    }
}

fn walk(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut left: VecDeque<Vec<u8>> = steps(path.as_bytes()).collect();
    // The folders from the root, which is not among them, to where we are.
    let mut way: Vec<OwnedFd> = Vec::new();
    let mut n_links = 0;
    while let Some(step) = left.pop_front() {
        if step == b".." {
            way.pop();
            continue;
        }
        let here = way.last().map_or(root.as_fd(), AsFd::as_fd);
        let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(here, step.as_slice(), look, Mode::empty())?;
        match kind(&fd)? {
            FileType::Symlink if left.is_empty() && flags.contains(OFlags::NOFOLLOW) => {
                return if flags.contains(OFlags::PATH) { Ok(fd) } else { Err(Errno::LOOP) };
            }
            FileType::Symlink => {
                n_links += 1;
                if n_links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = rustix::fs::readlinkat(&fd, "", Vec::new())?;
                if target.as_bytes().starts_with(b"/") {
                    way.clear();
                }
                steps(target.as_bytes()).rev().for_each(|step| left.push_front(step));
            }
            FileType::Directory => way.push(fd),
            _ if left.is_empty() => return opened(here, &step, fd.as_fd(), flags),
            _ => return Err(Errno::NOTDIR),
        }
    }
    let here = way.last().map_or(root.as_fd(), AsFd::as_fd);
    rustix::fs::openat(here, ".", flags, Mode::empty())
}

/// The file that was looked at, for use. Another one under its name by now is refused, if it is a link by the kernel.
fn opened(here: BorrowedFd<'_>, step: &[u8], looked: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let fd = rustix::fs::openat(here, step, flags | OFlags::NOFOLLOW, Mode::empty())?;
    let id = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).map(|s| (s.st_dev, s.st_ino));
    if id(fd.as_fd())? == id(looked)? { Ok(fd) } else { Err(Errno::AGAIN) }
}

fn kind(fd: &OwnedFd) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(fd, "", AtFlags::EMPTY_PATH)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

fn steps(path: &[u8]) -> impl DoubleEndedIterator<Item = Vec<u8>> {
    path.split(|b| *b == b'/').filter(|step| !matches!(*step, b"" | b".")).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// What the file holds, either way; both must say the same.
    fn both(root: &OwnedFd, path: &str) -> Result<String, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let read = |has_openat2| {
            let fd = open(root, path, flags, has_openat2)?;
            let mut bytes = [0u8; 64];
            let n = rustix::io::read(&fd, &mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes[..n]).into_owned())
        };
        let by_hand = read(false);
        // Where this very test runs under a filter, openat2's answer is ours.
        assert_eq!(read(true), by_hand, "{path}");
        by_hand
    }

    #[test]
    fn no_link_leads_out_and_none_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let at = |p: &str| dir.path().join("root").join(p);
        fs::create_dir_all(at("sys/a/b")).unwrap();
        fs::create_dir_all(at("etc")).unwrap();
        fs::write(dir.path().join("secret"), "outside").unwrap();
        fs::write(at("secret"), "inside").unwrap();
        fs::write(at("sys/a/value"), "7").unwrap();
        let outside = dir.path().join("secret");
        for (link, target) in [
            ("sys/absolute", "/secret"),
            ("sys/climb", "../../../../../../secret"),
            ("sys/far", outside.to_str().unwrap()),
            ("sys/up", ".."),
            ("sys/chain1", "chain2/../value"),
            ("sys/chain2", "/sys/a/./b"),
            ("sys/folder", "/sys/a"),
            ("sys/out", "../.."),
            ("sys/loop1", "loop2"),
            ("sys/loop2", "/sys/loop1"),
            ("sys/self", "self/x"),
            ("sys/dangling", "nothing"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        let root =
            rustix::fs::open(at(""), OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        for (path, found) in [
            ("/sys/a/value", Ok("7")),
            ("sys//a/./value", Ok("7")),
            ("/../../secret", Ok("inside")),
            ("/sys/absolute", Ok("inside")),
            ("/sys/climb", Ok("inside")),
            ("/sys/up/secret", Ok("inside")),
            ("/sys/out/../secret", Ok("inside")),
            ("/sys/out/out/secret", Err(Errno::NOENT)),
            ("/sys/a/b/../../../secret", Ok("inside")),
            ("/sys/chain1", Ok("7")),
            ("/sys/folder/value", Ok("7")),
            ("/sys/folder/../../../secret", Ok("inside")),
            ("/sys/far", Err(Errno::NOENT)),
            ("/sys/loop1", Err(Errno::LOOP)),
            ("/sys/self", Err(Errno::LOOP)),
            ("/sys/dangling", Err(Errno::NOENT)),
            ("/sys/a/value/x", Err(Errno::NOTDIR)),
            ("/sys/a/none", Err(Errno::NOENT)),
        ] {
            assert_eq!(both(&root, path), found.map(str::to_string), "{path}");
        }
        // As many links as the kernel follows, and one more.
        symlink("/sys/a/value", at("sys/n1")).unwrap();
        for n in 2..=MAX_LINKS + 1 {
            symlink(format!("n{}", n - 1), at(&format!("sys/n{n}"))).unwrap();
        }
        assert_eq!(both(&root, &format!("/sys/n{MAX_LINKS}")), Ok("7".into()));
        assert_eq!(both(&root, &format!("/sys/n{}", MAX_LINKS + 1)), Err(Errno::LOOP));
    }
}
