//! One CPU whose tasks run, sleep and are woken: the idle loop around a governor's model, for lives that nobody recorded.
//!
//! A period of idle time ends at its timer, which the governor is told of, or at an event, which it is not. The tick comes at multiples of
//! its length while it is kept, polling gives up at its limit, and both begin a new stay of the same period, as in the
//! kernel. Leaving a state takes half of what its driver claims. What is counted is what the kernel counts (`accounting.rs`).

use crate::accounting::{Account, Counts};
use crate::frequency::pelt::Pelt;
use crate::idle::{Governor, Kind, Left, Moment};
use crate::kernel::{Kernel, Release};
use crate::poll;
use crate::table::{Disabled, State, Table};
use crate::tick::Tick;
use crate::units::FOREVER_NS;

/// Latency limit of a machine that nobody limited, in nanoseconds.
const NO_LIMIT_NS: i64 = 2_000_000_000_000;
/// A claim is a worst case: the usual exit is this part of it.
const USUAL_EXIT: i64 = 2;
/// From one stay to the next within a period: the interrupt, and the way back into the loop.
const BETWEEN_NS: i64 = 1_000;

/// A CPU, its governor, and what was counted.
#[derive(Clone, Debug)]
pub struct Cpu {
    release: Release,
    table: Table,
    tick: Tick,
    governor: Governor,
    account: Account,
    use_of_it: Pelt,
    now_ns: i64,
}

impl Cpu {
    /// A governor of a kernel on these states; none where the kernel has no name, the table no room or the tick no length.
    pub fn new(kind: Kind, kernel: &str, states: &[State], hz: u32) -> Option<Cpu> {
        let release = Kernel::parse(kernel).ok()?.release;
        let (table, tick) = (Table::new(states).ok()?, Tick::of_hz(hz)?);
        let governor = Governor::new(kind, release, table, tick);
        let account = Account::new(release);
        Some(Cpu { release, table, tick, governor, account, use_of_it: Pelt::default(), now_ns: 0 })
    }

    /// Time since the beginning, in nanoseconds.
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// A task runs for so long.
    pub fn run(&mut self, ns: i64) {
        self.use_of_it.pass(ns.max(0).cast_unsigned(), true);
        self.now_ns = self.now_ns.saturating_add(ns.max(0));
    }

    /// Counting begins: what was counted so far is forgotten, what the governor learned is not.
    pub fn count_from_here(&mut self) {
        self.account = Account::new(self.release);
    }

    /// What was counted of each state.
    pub fn counts(&self) -> Vec<Counts> {
        (0..self.table.n()).map(|i| self.account.of(i)).collect()
    }

    /// No task runs until a timer or an event, whichever is first. `n_iowait` tasks wait for a device.
    pub fn sleep(&mut self, timer_at_ns: i64, event_at_ns: Option<i64>, n_iowait: u32) {
        let end_ns = event_at_ns.map_or(timer_at_ns, |at| at.min(timer_at_ns)).max(self.now_ns);
        let mut is_stopped = false;
        loop {
            let now = self.now_ns;
            let tick_ns = self.tick.ns();
            let tick_at = (now / tick_ns + 1) * tick_ns;
            let due = if is_stopped { timer_at_ns } else { timer_at_ns.min(tick_at) };
            // A timer within the tick leaves the tick as it is, whatever the governor says.
            let may_stop = timer_at_ns > tick_at;
            let said = self.governor.select(&Moment {
                sleep_ns: until(timer_at_ns, now),
                next_event_ns: until(due, now),
                is_tick_stopped: is_stopped,
                latency_limit_ns: NO_LIMIT_NS,
                n_iowait,
                utilisation: self.use_of_it.utilisation(),
                disabled: Disabled::NONE,
                clock_ns: now,
            });
            is_stopped |= said.stop_tick && may_stop;
            let state = self.table.at(said.state);
            let (mut wake, mut is_tick, mut is_limit) = (end_ns, false, false);
            if !is_stopped && tick_at < wake {
                (wake, is_tick) = (tick_at, true);
            }
            if state.is_polling {
                let limit_at = now + poll::limit_ns(self.release, &self.table, Disabled::NONE, self.tick).max(1);
                if limit_at < wake {
                    (wake, is_tick, is_limit) = (limit_at, false, true);
                }
            }
            let exit_ns = if state.is_polling { 0 } else { state.exit_latency_ns / USUAL_EXIT };
            let left_at = wake.max(now) + exit_ns;
            let residency_ns = left_at - now;
            self.account.left(&self.table, Disabled::NONE, said.state, residency_ns);
            self.use_of_it.pass(residency_ns.cast_unsigned(), false);
            self.governor.reflect(&Left {
                state: said.state,
                residency_ns,
                is_tick_fired: is_tick,
                is_poll_limit_hit: is_limit,
                clock_ns: left_at,
            });
            self.now_ns = left_at;
            if wake >= end_ns || left_at >= end_ns {
                return;
            }
            self.now_ns += BETWEEN_NS;
        }
    }
}

fn until(at_ns: i64, now_ns: i64) -> i64 {
    if at_ns == FOREVER_NS { FOREVER_NS } else { at_ns - now_ns }
}
