//! Why no CPU has an idle state, where none has.
//!
//! Three things look alike in a list of files. The kernel says `none`: no driver took the CPUs, or `cpuidle.off=1`. There is
//! no `cpu/cpuidle` at all: the kernel was built without it. Or a recording has neither, and whoever recorded may have left
//! them out; that it holds other files of the same CPUs makes this less likely and no more. In the first two cases the kernel
//! runs the architecture's own idle routine, and latency limits, which only cpuidle governors read, act on nothing
//! (Documentation/admin-guide/pm/cpuidle.rst, "Idle CPUs in Linux"; power/pm_qos_interface.rst).

use super::Idle;
use crate::fact::GapKind;

/// Why there is no idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStates {
    /// `current_driver` says `none`.
    NoDriver,
    /// The kernel has no cpuidle folder.
    NoFolder,
    /// The recording has no idle file of any CPU: the kernel had none, or they were left out.
    NotRecorded,
}

impl NoStates {
    /// In words, after "a latency limit acts on nothing:".
    pub fn words(self) -> &'static str {
        match self {
            NoStates::NoDriver => "the kernel has no cpuidle driver (current_driver says none)",
            NoStates::NoFolder => "this kernel has no cpuidle",
            NoStates::NotRecorded => {
                "the recording holds no idle state of any CPU: the kernel has no cpuidle driver, or the recording left it out"
            }
        }
    }
}

impl Idle {
    /// Why no CPU has an idle state; none where one has, or where that could not be seen.
    pub fn no_states_because(&self) -> Option<NoStates> {
        if !self.states.is_empty() || self.unlisted_because.is_some() || self.cpus_without_states.is_empty() {
            return None;
        }
        match (self.driver.get().map(String::as_str), self.driver.gap().map(|gap| gap.kind)) {
            (Some("none"), _) => Some(NoStates::NoDriver),
            (None, Some(GapKind::Absent)) => Some(NoStates::NoFolder),
            (None, Some(GapKind::NotRecorded)) => Some(NoStates::NotRecorded),
            _ => None,
        }
    }

    /// Why a latency limit acts on nothing here: the kernel says that there is no driver, or has no cpuidle. A recording that holds no state of any
    /// CPU says neither.
    pub fn no_limit_acts_because(&self) -> Option<NoStates> {
        let said_none = self.driver.get().is_some_and(|driver| driver == "none").then_some(NoStates::NoDriver);
        self.no_states_because().or(said_none).filter(|why| *why != NoStates::NotRecorded)
    }
}
