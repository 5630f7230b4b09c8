//! Who woke whom, as the C side (waker.h) adds it up: the two maps, and the tracepoints that tell an interrupt from a task.

use super::{RawGroup, refused};
use crate::ProbeError;
use crate::load::Loaded;
use aya::maps::HashMap;
use std::collections::BTreeMap;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::wakes::{ChainCounters, ChainKey, WakerKind};

/// Chains that are kept; what comes later is in the sums alone.
pub(super) const MOST_CHAINS: u32 = 16_384;
/// Names of processes and interrupts that are kept, the most recent.
pub(super) const MOST_NAMES: u32 = 8_192;

/// Programs in pairs: without its end a beginning would never be over.
const CONTEXTS: [[(&str, &str); 2]; 3] = [
    [("on_timer_out", "hrtimer_expire_exit"), ("on_timer_in", "hrtimer_expire_entry")],
    [("on_irq_out", "irq_handler_exit"), ("on_irq_in", "irq_handler_entry")],
    [("on_softirq_out", "softirq_exit"), ("on_softirq_in", "softirq_entry")],
];

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct RawChainKey {
    waker: u64,
    cgroup: u64,
    kind: u32,
    tgid: u32,
    slot: u32,
    unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct RawWakerKey {
    waker: u64,
    kind: u32,
    unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawName {
    text: [u8; 32],
}

// SAFETY: plain integers without padding, valid for every bit pattern.
unsafe impl aya::Pod for RawChainKey {}
// SAFETY: as above.
unsafe impl aya::Pod for RawWakerKey {}
// SAFETY: as above.
unsafe impl aya::Pod for RawName {}

/// Attaches what tells wakers apart; what cannot be is said.
pub(super) fn attach(loaded: &mut Loaded) -> Vec<String> {
    let mut gaps = Vec::new();
    for pair in CONTEXTS {
        let done = pair.into_iter().try_for_each(|(program, tracepoint)| loaded.attach(program, tracepoint));
        gaps.extend(done.err().map(|why| format!("wakers that are interrupts or timers, in part: {why}")));
    }
    gaps
}

fn kind(number: u32) -> WakerKind {
    match number {
        1 => WakerKind::Task,
        2 => WakerKind::Timer,
        3 => WakerKind::Interrupt,
        4 => WakerKind::Softirq,
        _ => WakerKind::Unknown,
    }
}

/// All chains so far, by key ascending.
pub(super) fn read(loaded: &Loaded) -> Result<Vec<ChainCounters>, ProbeError> {
    let map = |name: &str| loaded.ebpf.map(name).ok_or(ProbeError::NotBuilt);
    let names: HashMap<_, RawWakerKey, RawName> =
        HashMap::try_from(map("names")?).map_err(|e| refused("map names", &e))?;
    // An entry evicted while we walk ends or restarts the walk: what was seen is kept.
    let names: BTreeMap<(u32, u64), String> = names
        .iter()
        .take(2 * MOST_NAMES as usize)
        .map_while(Result::ok)
        .map(|(key, name)| {
            let end = name.text.iter().position(|b| *b == 0).unwrap_or(name.text.len());
            ((key.kind, key.waker), String::from_utf8_lossy(&name.text[..end]).into_owned())
        })
        .collect();
    let name_of = |kind: u32, who: u64| names.get(&(kind, who)).cloned().unwrap_or_default();
    let chains: HashMap<_, RawChainKey, RawGroup> =
        HashMap::try_from(map("chains")?).map_err(|e| refused("map chains", &e))?;
    let mut all: Vec<ChainCounters> = chains
        .iter()
        .take(2 * MOST_CHAINS as usize)
        .map_while(Result::ok)
        .map(|(key, value)| ChainCounters {
            key: ChainKey {
                kind: kind(key.kind),
                waker: key.waker,
                cgroup: key.cgroup,
                tgid: key.tgid,
                state: key.slot.checked_sub(1),
            },
            waker_name: name_of(key.kind, key.waker),
            name: name_of(1, u64::from(key.tgid)),
            n: value.n,
            sum_ns: value.sum_ns,
        })
        .collect();
    all.arrange_by_key(|chain| chain.key);
    all.dedup_by_key(|chain| chain.key);
    Ok(all)
}
