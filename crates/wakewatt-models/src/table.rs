//! The idle states a governor chooses from, and which of them are switched off.
//!
//! A kernel has at most ten, numbered from shallow to deep; drivers usually list them so, but nothing enforces it, so a
//! model must do what the kernel does with latencies out of order as well. A governor keeps its own behind a pointer that its clones share,
//! so that a thousand CPUs of one machine read one table.

/// As many as the kernel has room for.
pub const MOST_STATES: usize = 10;

/// What the driver claims of one idle state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Exit latency, in nanoseconds.
    pub exit_latency_ns: i64,
    /// Target residency, in nanoseconds.
    pub target_residency_ns: i64,
    /// Does the CPU spin in it?
    pub is_polling: bool,
}

impl State {
    /// A state that sleeps, in the microseconds of sysfs.
    pub const fn sleeping_us(exit_latency_us: i64, target_residency_us: i64) -> State {
        State {
            exit_latency_ns: exit_latency_us.saturating_mul(1000),
            target_residency_ns: target_residency_us.saturating_mul(1000),
            is_polling: false,
        }
    }

    /// The polling state as every x86 driver has it.
    pub const POLL: State = State { exit_latency_ns: 0, target_residency_ns: 0, is_polling: true };
}

/// Why a table is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// More states than a kernel has.
    #[error("{0} idle states; a kernel has room for {MOST_STATES}")]
    TooMany(usize),
}

/// Idle states of one CPU, shallow first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    states: [State; MOST_STATES],
    n: u8,
}

impl Table {
    /// Of these states.
    pub fn new(states: &[State]) -> Result<Table, TableError> {
        let mut table = Table::default();
        let Some(room) = table.states.get_mut(..states.len()) else { return Err(TableError::TooMany(states.len())) };
        room.copy_from_slice(states);
        table.n = u8::try_from(states.len()).map_err(|_| TableError::TooMany(states.len()))?;
        Ok(table)
    }

    /// How many there are.
    #[inline]
    pub fn n(&self) -> usize {
        usize::from(self.n)
    }

    /// All of them.
    #[inline]
    pub fn states(&self) -> &[State] {
        &self.states[..usize::from(self.n).min(MOST_STATES)]
    }

    /// One of them; one that is not there costs nothing and fits everything.
    #[inline]
    pub fn at(&self, state: usize) -> State {
        self.states.get(state).copied().unwrap_or_default()
    }
}

/// Which states may not be chosen, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disabled(u16);

impl Disabled {
    /// None.
    pub const NONE: Disabled = Disabled(0);

    /// These; indices that no table has are ignored.
    pub fn of(states: impl IntoIterator<Item = usize>) -> Disabled {
        Disabled(states.into_iter().filter(|s| *s < MOST_STATES).fold(0, |bits, s| bits | 1 << s))
    }

    /// Is this one switched off?
    #[inline]
    pub fn has(self, state: usize) -> bool {
        state < MOST_STATES && self.0 >> state & 1 == 1
    }

    /// These and those.
    pub fn and(self, other: Disabled) -> Disabled {
        Disabled(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_holds_ten_states_and_refuses_eleven() {
        let ten = [State::sleeping_us(1, 2); 10];
        assert_eq!(Table::new(&ten).map(|t| t.n()), Ok(10));
        assert_eq!(Table::new(&[State::POLL; 11]), Err(TableError::TooMany(11)));
        assert_eq!(Table::new(&[]).map(|t| t.n()), Ok(0));
    }

    #[test]
    fn disabled_states_are_bits() {
        let off = Disabled::of([1, 3, 40]);
        assert_eq!((off.has(0), off.has(1), off.has(3), off.has(40)), (false, true, true, false));
        assert!(off.and(Disabled::of([0])).has(0));
    }
}
