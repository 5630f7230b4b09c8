//! The idle governors of a machine's CPUs, side by side: all of one kind, so each takes no more room than that kind needs.
//!
//! What they read of their machine (table, rules) is shared by clones of one; what is a CPU's own is two lines of cache for menu. A
//! thousand CPUs then stay near the processor, which is most of what a simulated request costs.

use super::plan::IdlePlan;
use wakewatt_models::idle::{Decision, Governor, Left, Menu, Moment};
use wakewatt_models::tick::Tick;

/// The governors of one machine, by the CPU's number in it.
pub(super) enum Minds {
    /// Nobody is asked.
    None,
    /// Of menu.
    Menu(Vec<Lines<Menu>>),
    /// Of any other.
    Other(Vec<Governor>),
}

/// Begins at a line of cache.
#[repr(align(64))]
#[derive(Clone)]
pub(super) struct Lines<T>(T);

impl Minds {
    /// For so many CPUs.
    pub(super) fn of(idle: &IdlePlan, tick: Option<Tick>, n_cpus: usize) -> Minds {
        let (Some(kind), Some(tick)) = (idle.kind, tick) else { return Minds::None };
        match Governor::new(kind, idle.release, idle.table, tick).with_window(idle.halt_poll_ns) {
            Governor::Menu(menu) => Minds::Menu(vec![Lines(menu); n_cpus]),
            other => Minds::Other(vec![other; n_cpus]),
        }
    }

    /// Is somebody asked?
    pub(super) fn is_asked(&self) -> bool {
        !matches!(self, Minds::None)
    }

    /// What a CPU's governor says.
    #[inline]
    pub(super) fn select(&mut self, cpu: usize, moment: &Moment) -> Option<Decision> {
        match self {
            Minds::None => None,
            Minds::Menu(all) => Some(all[cpu].0.select(moment)),
            Minds::Other(all) => Some(all[cpu].select(moment)),
        }
    }

    /// How long a CPU may spin now, where its governor has a say in that: an open window of haltpoll.
    pub(super) fn window_ns(&self, cpu: usize) -> Option<u64> {
        match self {
            Minds::Other(all) => match &all[cpu] {
                Governor::Haltpoll(haltpoll) => Some(haltpoll.window_ns()).filter(|ns| *ns > 0),
                _ => None,
            },
            Minds::None | Minds::Menu(_) => None,
        }
    }

    /// What came of it.
    #[inline]
    pub(super) fn reflect(&mut self, cpu: usize, left: &Left) {
        match self {
            Minds::None => {}
            Minds::Menu(all) => all[cpu].0.reflect(left),
            Minds::Other(all) => all[cpu].reflect(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_of_menu_is_two_lines_and_all_of_a_cpu_is_less_than_half_a_kilobyte() {
        let line = 64;
        assert_eq!(size_of::<Lines<Menu>>(), 2 * line);
        assert_eq!((size_of::<crate::engine::Cpu>(), size_of::<crate::engine::Share>()), (2 * line, line));
        assert!(size_of::<crate::engine::Core>() <= line / 2);
    }
}
