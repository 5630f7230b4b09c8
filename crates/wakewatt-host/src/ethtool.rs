//! Interrupt coalescing of a network interface, which the kernel only tells by ioctl (SIOCETHTOOL).
//!
//! Offered as a pseudo-file `ethtool:<interface>/coalesce` so that a recording can hold it like any other file.
//! ETHTOOL_GCOALESCE only reads (linux/ethtool.h); a driver without coalescing answers "not supported". Setting
//! (ETHTOOL_SCOALESCE) is for the sink alone.

use rustix::net::{AddressFamily, SocketType, socket};
use std::os::fd::AsRawFd;
use wakewatt_core::source::{ErrorKind, Read, ReadError};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GCOALESCE: u32 = 0x0000_000e;
const ETHTOOL_SCOALESCE: u32 = 0x0000_000f;
/// struct ethtool_coalesce: cmd and 22 numbers.
const N_WORDS: usize = 23;
/// Which words we know, by position in struct ethtool_coalesce.
pub(crate) const FIELDS: &[(usize, &str)] = &[
    (1, "rx-usecs"),
    (2, "rx-frames"),
    (3, "rx-usecs-irq"),
    (5, "tx-usecs"),
    (6, "tx-frames"),
    (10, "adaptive-rx"),
    (11, "adaptive-tx"),
];

/// Answers `<interface>/coalesce` with one `name value` line per field.
pub(crate) fn answer(question: &str) -> Read<Vec<u8>> {
    let interface = question.strip_suffix("/coalesce").ok_or_else(ReadError::absent)?;
    let words = get_coalesce(interface).map_err(|e| {
        let kind = match e.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENODEV) => ErrorKind::Absent,
            Some(libc::EPERM | libc::EACCES) => ErrorKind::Denied,
            _ => ErrorKind::Failed,
        };
        ReadError::new(kind, e.to_string())
    })?;
    Ok(FIELDS.iter().map(|(at, name)| format!("{name} {}\n", words[*at])).collect::<String>().into_bytes())
}

/// struct ethtool_coalesce of an interface.
pub(crate) fn get_coalesce(interface: &str) -> std::io::Result<[u32; N_WORDS]> {
    let mut words = [0u32; N_WORDS];
    words[0] = ETHTOOL_GCOALESCE;
    call(interface, &mut words)?;
    Ok(words)
}

/// Gives it all of them.
pub(crate) fn set_coalesce(interface: &str, mut words: [u32; N_WORDS]) -> std::io::Result<()> {
    words[0] = ETHTOOL_SCOALESCE;
    call(interface, &mut words)
}

fn call(interface: &str, words: &mut [u32; N_WORDS]) -> std::io::Result<()> {
    let name = interface.as_bytes();
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(std::io::Error::from_raw_os_error(libc::ENODEV));
    }
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: an all-zero ifreq is valid (arrays of integers and a union of them).
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        // c_char is signed on x86-64 and unsigned on arm64.
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the kernel reads the ifreq, and reads and writes struct ethtool_coalesce, which `words` is as large as;
    // both outlive the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn loopback_has_no_coalescing_and_nonsense_is_absent() {
        for question in ["lo/coalesce", "nosuch0/coalesce", "a-name-far-too-long-for-linux/coalesce", "lo/other"] {
            assert!(super::answer(question).is_err(), "{question}");
        }
    }
}
