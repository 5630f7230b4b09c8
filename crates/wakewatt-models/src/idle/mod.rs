//! The idle governors: which state a CPU should enter, and whether its tick may stop meanwhile.
//!
//! What the kernel asks of a governor is three things: choose (`select`), hear what came of it (`reflect`), and, between
//! the two, see the entry refused (`reject`: a task became runnable, or the driver said no; nothing is reflected then). A
//! CPU has one of each; none looks at another CPU. To add a governor: a file or folder here, a line in `Kind`, one in `Governor`.

pub mod haltpoll;
pub mod ladder;
pub mod menu;
mod moment;
pub mod teo;

pub use haltpoll::Haltpoll;
pub use ladder::Ladder;
pub use menu::Menu;
pub use moment::{Decision, Left, Moment};
pub use teo::Teo;

use crate::kernel::{Basis, Release};
use crate::table::Table;
use crate::tick::Tick;

/// Which governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Guesses from the next timer and from the last eight sleeps.
    Menu,
    /// Asks which state would have been right lately.
    Teo,
    /// Climbs and falls a step at a time.
    Ladder,
    /// Spins before it halts, in guests.
    Haltpoll,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Menu, Kind::Teo, Kind::Ladder, Kind::Haltpoll];

    /// As the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Menu => "menu",
            Kind::Teo => "teo",
            Kind::Ladder => "ladder",
            Kind::Haltpoll => "haltpoll",
        }
    }

    /// By the kernel's name.
    pub fn of_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Which form of it a release has, in words, and how that is known.
    pub fn form_in(self, release: Release) -> (&'static str, Basis) {
        match self {
            Kind::Menu => menu::form_in(release).told(),
            Kind::Teo => teo::form_in(release).told(),
            Kind::Ladder => ladder::form_in(release).told(),
            Kind::Haltpoll => haltpoll::form_in(release).told(),
        }
    }
}

/// A governor of one CPU, in the state it has come to.
#[derive(Clone, Debug)]
pub enum Governor {
    /// See [`Menu`].
    Menu(Menu),
    /// See [`Teo`].
    Teo(Teo),
    /// See [`Ladder`].
    Ladder(Ladder),
    /// See [`Haltpoll`].
    Haltpoll(Haltpoll),
}

impl Governor {
    /// As a release's kernel has it right after it was enabled on a CPU with these states. CPUs with the same states take clones of one.
    pub fn new(kind: Kind, release: Release, table: Table, tick: Tick) -> Governor {
        match kind {
            Kind::Menu => Governor::Menu(Menu::new(menu::form_in(release).form, table, tick)),
            Kind::Teo => Governor::Teo(Teo::new(teo::form_in(release).form, table, tick)),
            Kind::Ladder => Governor::Ladder(Ladder::new(ladder::form_in(release).form, table)),
            Kind::Haltpoll => Governor::Haltpoll(Haltpoll::new(haltpoll::form_in(release).form)),
        }
    }

    /// The same, where the module parameters of haltpoll are not as shipped.
    pub fn with_window(mut self, most_ns: Option<u64>) -> Governor {
        if let (Governor::Haltpoll(g), Some(most_ns)) = (&mut self, most_ns) {
            g.set_longest_window(most_ns);
        }
        self
    }

    /// The kernel's chose otherwise: what the choice itself changes in a governor's memory is brought to that.
    pub fn follow(&mut self, state: usize) {
        if let Governor::Ladder(g) = self {
            g.follow(state);
        }
    }

    /// It took over from another governor on a running CPU: the core remembers the last stay, the governor nothing.
    pub fn take_over(&mut self, state: usize, residency_ns: i64) {
        match self {
            Governor::Menu(g) => g.take_over(state, residency_ns),
            Governor::Ladder(g) => g.take_over(residency_ns),
            Governor::Teo(_) | Governor::Haltpoll(_) => {}
        }
    }

    /// Chooses.
    #[inline]
    pub fn select(&mut self, moment: &Moment) -> Decision {
        match self {
            Governor::Menu(g) => g.select(moment),
            Governor::Teo(g) => g.select(moment),
            Governor::Ladder(g) => g.select(moment),
            Governor::Haltpoll(g) => g.select(moment),
        }
    }

    /// Hears what came of it.
    #[inline]
    pub fn reflect(&mut self, left: &Left) {
        match self {
            Governor::Menu(g) => g.reflect(left),
            Governor::Teo(g) => g.reflect(left),
            Governor::Ladder(g) => g.reflect(left),
            Governor::Haltpoll(g) => g.reflect(left),
        }
    }

    /// The state was not entered: a task became runnable, or the driver refused.
    pub fn reject(&mut self) {
        match self {
            Governor::Menu(g) => g.reject(),
            Governor::Teo(g) => g.reject(),
            Governor::Ladder(g) => g.reject(),
            Governor::Haltpoll(_) => {}
        }
    }
}
