//! The kernel's own part of an ICMP echo: stamps of one echo at a time, or counts of all that are answered here.
//!
//! Two uses of one program. A requester ([`IcmpProbe::request`]) sends echoes of one identifier and takes the stamps of
//! each after its reply came: a look-up, while nothing is awaited. If the peer lives on this kernel too (another network
//! namespace, or loopback), its half comes with them. A responder ([`IcmpProbe::respond`]) counts what its namespace
//! answers, whoever asked, in histograms per CPU, idle state and part; nothing leaves the kernel until it is read.
//!
//! What it costs: on each packet two or three programs look at the protocol (one read of 40 bytes for IP packets).
//! What it cannot see: the time from a network card's interrupt to the first stamp. The CPU that takes the interrupt
//! leaves its idle state before that. [`EchoStamps::is_polled`] with an idle state says that this happened.

mod stamps;

pub use stamps::{EchoName, EchoStamps, Stamp};

use crate::histogram::RawHistogram;
use crate::load::{Global, Loaded};
use crate::{Probe, ProbeError};
use aya::maps::{HashMap, PerCpuArray};
use stamps::{RawEcho, RawKey, SIDE_REQUESTER, SIDE_RESPONDER};
use std::os::linux::fs::MetadataExt;
use wakewatt_core::samples::kernel_histogram::KernelHistogram;

/// `icmp.bpf.c`, compiled.
pub const PROBE: Probe =
    Probe { id: "icmp", object: aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/icmp.bpf.o")) };

/// Parts counted per idle state, in the order of the C enumeration.
const N_PARTS: u32 = 3;

/// One cell of what a responder counted, since the probe was attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The CPU that processed the request.
    pub cpu: u32,
    /// The idle state it was woken from; none when it was awake.
    pub state: Option<u32>,
    /// Arrival to processing.
    pub to_processing: KernelHistogram,
    /// Processing to reply handed to the device.
    pub to_reply: KernelHistogram,
    /// Requests whose interrupt woke the CPU from `state` before the first stamp.
    pub n_woken_by_interrupt: u64,
}

/// Attached; dropping it detaches.
#[derive(Debug)]
pub struct IcmpProbe {
    loaded: Loaded,
    n_slots: u32,
    gaps: Vec<String>,
}

impl IcmpProbe {
    /// Follows the echoes of this identifier that this process sends from its network namespace.
    pub fn request(id: u16, n_states: u32) -> Result<IcmpProbe, ProbeError> {
        IcmpProbe::attach(Some(id), n_states)
    }

    /// Counts the echoes that this network namespace answers.
    pub fn respond(n_states: u32) -> Result<IcmpProbe, ProbeError> {
        IcmpProbe::attach(None, n_states)
    }

    fn attach(id: Option<u16>, n_states: u32) -> Result<IcmpProbe, ProbeError> {
        let n_slots = n_states.clamp(1, 16) + 1;
        if id.is_some() && !crate::namespace::has_kernel_process_ids() {
            return Err(ProbeError::Refused {
                what: "/proc/self/ns/pid".into(),
                detail: "inside a PID namespace this process cannot be told from others".into(),
            });
        }
        let netns = std::fs::metadata("/proc/self/ns/net")
            .map_err(|e| ProbeError::Refused { what: "/proc/self/ns/net".into(), detail: e.to_string() })?;
        let globals = [
            Global::U8("is_requester", u8::from(id.is_some())),
            Global::U32("own_tgid", std::process::id()),
            Global::U32("own_netns", u32::try_from(netns.st_ino()).unwrap_or(0)),
            Global::U32("own_id", u32::from(id.unwrap_or(0).to_be())),
            Global::U32("n_slots", n_slots),
        ];
        let mut loaded = Loaded::new(&PROBE, &globals, &[("hists", n_slots * N_PARTS)])?;
        let mut gaps = Vec::new();
        for (program, tracepoint) in [
            ("on_cpu_idle", "cpu_idle"),
            ("on_xmit", "net_dev_start_xmit"),
            ("on_processing", "netif_receive_skb"),
            ("on_netif_rx", "netif_rx"),
        ] {
            loaded.attach(program, tracepoint)?;
        }
        for (program, tracepoint) in
            [("on_gro_receive", "napi_gro_receive_entry"), ("on_receive_entry", "netif_receive_skb_entry")]
        {
            if let Err(why) = loaded.attach(program, tracepoint) {
                gaps.push(format!("packets of network cards: {why}"));
            }
        }
        if id.is_some() {
            for (program, tracepoint) in [("on_waking", "sched_waking"), ("on_switch", "sched_switch")] {
                loaded.attach(program, tracepoint)?;
            }
        }
        Ok(IcmpProbe { loaded, n_slots, gaps })
    }

    /// What could not be attached, and what is missing for it.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// Takes the stamps of one echo: the requester's side, and the responder's if it was seen on this kernel.
    pub fn take(&mut self, name: &EchoName) -> Result<(Option<EchoStamps>, Option<EchoStamps>), ProbeError> {
        let map = self.loaded.ebpf.map_mut("echoes").ok_or(ProbeError::NotBuilt)?;
        let mut map: HashMap<_, RawKey, RawEcho> = HashMap::try_from(map).map_err(|e| refused("map echoes", &e))?;
        let mut side = |side| {
            let key = RawKey::new(name, side);
            let echo = map.get(&key, 0).ok();
            if echo.is_some() {
                let _ = map.remove(&key);
            }
            echo.map(|raw| raw.stamps())
        };
        Ok((side(SIDE_REQUESTER), side(SIDE_RESPONDER)))
    }

    /// Reads what was answered since the probe was attached: cells that are not empty.
    pub fn answered(&self) -> Result<Vec<Answered>, ProbeError> {
        let map = self.loaded.ebpf.map("hists").ok_or(ProbeError::NotBuilt)?;
        let map: PerCpuArray<_, RawHistogram> = PerCpuArray::try_from(map).map_err(|e| refused("map hists", &e))?;
        let mut all = Vec::new();
        for slot in 0..self.n_slots {
            let read = |part: u32| map.get(&(slot * N_PARTS + part), 0).map_err(|e| refused("map hists", &e));
            let (processing, reply, interrupt) = (read(0)?, read(1)?, read(2)?);
            for (cpu, ((processing, reply), interrupt)) in
                processing.iter().zip(reply.iter()).zip(interrupt.iter()).enumerate()
            {
                if processing.n + interrupt.n > 0 {
                    all.push(Answered {
                        cpu: u32::try_from(cpu).unwrap_or(u32::MAX),
                        state: slot.checked_sub(1),
                        to_processing: processing.histogram(),
                        to_reply: reply.histogram(),
                        n_woken_by_interrupt: interrupt.n,
                    });
                }
            }
        }
        Ok(all)
    }

    /// Program runs that were skipped because one was already running on that CPU; none where the kernel does not say.
    pub fn n_recursion(&self) -> Option<u64> {
        self.loaded.statistics().map(|s| s.n_recursion)
    }
}

fn refused(what: &str, error: &dyn std::error::Error) -> ProbeError {
    ProbeError::Refused { what: what.into(), detail: crate::error::chain(error) }
}
