//! IPMI in band: DCMI Get Power Reading through the kernel's `/dev/ipmi0`.
//!
//! Source: include/uapi/linux/ipmi.h, Documentation/driver-api/ipmi.rst. A request goes out with one ioctl and its answer,
//! matched by message id, comes back with another after a poll. Nothing is loaded: without the device file the module
//! `ipmi_devintf` may be missing, and that is said. A KCS interface is polled by a kernel thread for milliseconds per
//! request, so readings cost CPU time; BMCs average over seconds. Bytes: `core/src/samples/meters/dcmi.rs`.

use super::{Meter, MetersWanted, Say, stamped};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::io;
use wakewatt_core::samples::energy::{Averaging, Channel, Covers, Kind, MeterGap};
use wakewatt_core::samples::meters::dcmi;

pub const NAME: &str = "ipmi";

const DEVICES: [&str; 3] = ["/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"];
const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
/// The largest message of the interface (IPMI_MAX_MSG_LENGTH).
const MAX_MESSAGE: usize = 272;
/// IPMI_SYSTEM_INTERFACE_ADDR_TYPE and IPMI_BMC_CHANNEL.
const TO_BMC: Address = Address { kind: 0x0c, channel: 0xf, lun: 0, rest: [0; 29] };

/// struct ipmi_system_interface_addr, padded to the largest address the kernel may write back (struct ipmi_addr).
#[repr(C)]
#[derive(Clone, Copy)]
struct Address {
    kind: i32,
    channel: i16,
    lun: u8,
    rest: [u8; 29],
}

/// struct ipmi_msg.
#[repr(C)]
struct Message {
    net_function: u8,
    command: u8,
    length: u16,
    data: *mut u8,
}

/// struct ipmi_req.
#[repr(C)]
struct Request {
    address: *mut Address,
    address_length: u32,
    id: libc::c_long,
    message: Message,
}

/// struct ipmi_recv.
#[repr(C)]
struct Received {
    kind: i32,
    address: *mut Address,
    address_length: u32,
    id: libc::c_long,
    message: Message,
}

/// _IOR('i', 13, struct ipmi_req) and _IOWR('i', 11, struct ipmi_recv), as asm-generic/ioctl.h makes them (x86 and arm64).
const SEND: u32 = 2 << 30 | 40 << 16 | (b'i' as u32) << 8 | 13;
const RECEIVE_TRUNCATED: u32 = 3 << 30 | 48 << 16 | (b'i' as u32) << 8 | 11;

/// Of [`Address`].
const ADDRESS_LENGTH: u32 = 36;

struct Ipmi {
    device: OwnedFd,
    next_id: libc::c_long,
    /// What the BMC calls the time of its statistics, in nanoseconds; 0 where it says none.
    period_ns: u64,
}

/// Opens the device and asks once: a BMC without DCMI is no meter.
pub fn find(wanted: &MetersWanted) -> Result<Box<dyn Meter>, MeterGap> {
    if !wanted.has_devices {
        return Err(MeterGap::NotAskedFor(String::new()));
    }
    let mut why = "/dev/ipmi0: no such file: no BMC, or the module ipmi_devintf is not loaded".to_string();
    for path in DEVICES {
        match rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(device) => {
                let mut ipmi = Ipmi { device, next_id: 1, period_ns: 0 };
                ipmi.period_ns = ipmi.power()?.period_ns;
                return Ok(Box::new(ipmi));
            }
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => why = format!("{path}: {error}"),
        }
    }
    Err(why.into())
}

impl Ipmi {
    fn power(&mut self) -> Result<dcmi::PowerReading, String> {
        let answer = self.ask(dcmi::NET_FUNCTION, dcmi::COMMAND, &dcmi::REQUEST);
        dcmi::decode(&answer.map_err(|e| format!("the BMC could not be asked: {e}"))?)
    }

    /// One request and its answer, completion code first.
    fn ask(&mut self, net_function: u8, command: u8, data: &[u8]) -> io::Result<Vec<u8>> {
        self.next_id += 1;
        let (mut address, mut data) = (TO_BMC, data.to_vec());
        let length = u16::try_from(data.len()).map_err(io::Error::other)?;
        let message = Message { net_function, command, length, data: data.as_mut_ptr() };
        // The kernel wants the length of the address it knows: 8 bytes with padding.
        let mut request = Request { address: &raw mut address, address_length: 8, id: self.next_id, message };
        // SAFETY: the request and what it points to (32 bytes of address, `length` bytes of data) live on this stack and
        // in `data` during the call; the kernel only reads them. The number encodes the size of Request.
        let sent = unsafe { libc::ioctl(self.device.as_raw_fd(), u64::from(SEND) as _, &raw mut request) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        // An answer to a request that timed out before may come first.
        for _ in 0..8 {
            if poll(&mut [PollFd::new(&self.device, PollFlags::IN)], Some(&PATIENCE))? == 0 {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in 5 s"));
            }
            let (id, answer) = self.receive()?;
            if id == self.next_id {
                return Ok(answer);
            }
        }
        Err(io::Error::other("answers to other requests only"))
    }

    fn receive(&self) -> io::Result<(libc::c_long, Vec<u8>)> {
        let (mut address, mut data) = (TO_BMC, vec![0u8; MAX_MESSAGE]);
        let message = Message { net_function: 0, command: 0, length: 272, data: data.as_mut_ptr() };
        let address_length = ADDRESS_LENGTH;
        let mut received = Received { kind: 0, address: &raw mut address, address_length, id: 0, message };
        // SAFETY: the kernel writes at most `address_length` bytes to the address and `length` bytes (272, the size of
        // `data`) to the data, and the structure itself; all live during the call. The number encodes its size.
        let got = unsafe { libc::ioctl(self.device.as_raw_fd(), u64::from(RECEIVE_TRUNCATED) as _, &raw mut received) };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        data.truncate(usize::from(received.message.length));
        Ok((received.id, data))
    }
}

impl Meter for Ipmi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> &'static str {
        "a kernel thread polls the BMC's interface for milliseconds"
    }

    /// The period of the BMC's statistics: the watts of the moment come from it, and nobody says how.
    fn averaging(&self) -> Averaging {
        match self.period_ns {
            0 => Averaging::Unknown,
            ns => Averaging::Over { ns },
        }
    }

    fn channels(&self) -> Vec<Channel> {
        let name = "DCMI power reading".to_string();
        vec![Channel { id: "dcmi".into(), name, covers: Covers::System, is_part: false, kind: Kind::Power }]
    }

    fn read(&mut self, say: &mut Say<'_>) {
        let (at_ns, answer) = stamped(|| self.power());
        say(0, at_ns, answer.map(|reading| i64::from(reading.now_w) * 1_000_000));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_the_kernels() {
        // On 64-bit Linux, from include/uapi/linux/ipmi.h.
        assert_eq!((size_of::<Request>(), size_of::<Received>(), size_of::<Message>()), (40, 48, 16));
        assert_eq!(size_of::<Address>(), 36);
        assert_eq!((SEND, RECEIVE_TRUNCATED), (0x8028_690d, 0xc030_690b));
    }
}
