//! One CPU by its events: its last stays, what it waits for, what woke it.

use std::collections::BTreeMap;
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};
use wakewatt_core::samples::kernel_histogram::KernelHistogram;
use wakewatt_core::samples::wakes::WakeClass;

#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub(super) state: u8,
    pub(super) enter_at_ns: u64,
    pub(super) exit_at_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Wake {
    pub(super) at_ns: u64,
    pub(super) waker: u32,
    pub(super) task: u32,
    pub(super) state: Option<u8>,
    pub(super) class: WakeClass,
}

#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub(super) idle: Option<(u8, u64)>,
    pub(super) past: [Option<Stay>; 4],
    pub(super) waiting: Vec<Wake>,
    pub(super) pair: Option<IdlePair>,
    pub(super) cause: WakeCause,
    pub(super) is_tick_fired: bool,
    pub(super) last_task_at_ns: u64,
    pub(super) has_run: bool,
    pub(super) lengths: BTreeMap<u8, KernelHistogram>,
}

/// Which cause says more.
fn weight(cause: WakeCause) -> u8 {
    match cause {
        WakeCause::Unknown => 0,
        WakeCause::Interrupt => 1,
        WakeCause::RemoteWake | WakeCause::PolledWake => 2,
        WakeCause::Timer => 3,
        WakeCause::Tick => 4,
    }
}

impl Cpu {
    pub(super) fn because(&mut self, cause: WakeCause) {
        if self.idle.is_some() || self.pair.is_some() {
            if weight(cause) > weight(self.cause) {
                self.cause = cause;
            }
            self.is_tick_fired |= cause == WakeCause::Tick;
        }
    }

    /// The state it was in then; and the stay that it had left then and not yet worked since.
    fn state_at(&self, at_ns: u64) -> (Option<u8>, Option<u8>) {
        if let Some((state, _)) = self.idle.filter(|(_, enter)| *enter <= at_ns) {
            return (Some(state), None);
        }
        let stays = || self.past.iter().flatten();
        if let Some(stay) = stays().find(|s| s.enter_at_ns <= at_ns && at_ns < s.exit_at_ns) {
            return (Some(stay.state), None);
        }
        let before = stays().filter(|s| s.exit_at_ns <= at_ns).max_by_key(|s| s.exit_at_ns);
        (None, before.filter(|s| self.last_task_at_ns < s.exit_at_ns).map(|s| s.state))
    }

    pub(super) fn class_at(&self, at_ns: u64, is_remote: bool, has_switches: bool) -> (Option<u8>, WakeClass) {
        match (self.state_at(at_ns), is_remote) {
            ((Some(state), _), true) => (Some(state), WakeClass::Remote),
            ((Some(state), _), false) => (Some(state), WakeClass::InterruptBeforeExit),
            // Without switches nobody knows whether a task ran in between.
            ((None, Some(state)), false) if has_switches => (Some(state), WakeClass::InterruptAfterExit),
            _ => (None, WakeClass::Busy),
        }
    }
}
