//! The kernel's log of this boot, from `/dev/kmsg`: one record per read, until none is left.
//!
//! Reading needs root where `kernel.dmesg_restrict` is 1 (the default of most distributions). A record is
//! `level,number,microseconds,flags;text`; what follows on lines that begin with a blank is its dictionary.
//! Old records may have been overwritten: what the log does not hold proves nothing.

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

/// More than any ring buffer holds.
const MAX_RECORDS: usize = 200_000;

/// The texts, one per line; an error in the operating system's words.
pub fn read() -> Result<String, String> {
    let fail = |e: Errno| format!("/dev/kmsg: {}", std::io::Error::from_raw_os_error(e.raw_os_error()));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open("/dev/kmsg", flags, Mode::empty()).map_err(fail)?;
    // From the oldest record on.
    rustix::fs::seek(&fd, SeekFrom::Start(0)).map_err(fail)?;
    let mut log = String::new();
    let mut record = [0u8; 8192];
    for _ in 0..MAX_RECORDS {
        match rustix::io::read(&fd, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => break,
            // Overwritten while we read, or longer than the buffer: the next one.
            Err(Errno::PIPE | Errno::INVAL) => {}
            Err(e) => return Err(fail(e)),
            Ok(n) => log += &text_of(&String::from_utf8_lossy(&record[..n])),
        }
    }
    Ok(log)
}

/// Says a line in it, as a warning of this program's: the last place to be heard from for a process without a terminal.
/// Where that is not allowed there is nobody left to tell.
pub fn say(line: &str) {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(fd) = rustix::fs::open("/dev/kmsg", flags, Mode::empty()) {
        let _ = rustix::io::write(&fd, format!("<4>wakewatt: {line}\n").as_bytes());
    }
}

fn text_of(record: &str) -> String {
    let text = record.split_once(';').map_or("", |(_, text)| text);
    text.lines().next().map_or(String::new(), |line| format!("{line}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_record_without_its_dictionary() {
        assert_eq!(text_of("6,339,5140900,-;ACPI: limited\n SUBSYSTEM=acpi\n"), "ACPI: limited\n");
        assert_eq!(text_of("garbage"), "");
    }
}
