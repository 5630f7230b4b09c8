//! The tick, and how long a CPU may sleep: what the idle loop computes when a governor asks.
//!
//! A governor asks for two times: to the next timer if the tick may stop (sleep length), and to the next programmed event with
//! the tick kept. Both count from when the loop was entered or its last interrupt ended, not from now. The first ends at the
//! earliest of the timer wheel, the high resolution timers other than the tick, and what the clock can count up to; where the
//! tick may not stop, or the next thing is within a tick anyway, both are the same.

use crate::units::FOREVER_NS;

/// Length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    // At most two seconds: every governor of every CPU has one.
    ns: u32,
    us: u32,
}

impl Tick {
    /// Of a kernel's CONFIG_HZ; none for zero, or for more than a tick per nanosecond.
    pub fn of_hz(hz: u32) -> Option<Tick> {
        let hz = i64::from(hz);
        let rounded = |per_s: i64| (hz > 0).then(|| (per_s + hz / 2) / hz);
        let (ns, us) = (rounded(1_000_000_000)?, rounded(1_000_000)?);
        (ns > 0).then_some(Tick { ns: u32::try_from(ns).ok()?, us: u32::try_from(us).ok()? })
    }

    /// Of a recorded length in nanoseconds; none for zero.
    pub fn of_ns(ns: u64) -> Option<Tick> {
        let hz = (ns > 0).then(|| (1_000_000_000 + ns / 2) / ns)?;
        let exact = Tick::of_hz(u32::try_from(hz).ok()?)?;
        // A recorder that is off by a nanosecond means the kernel's own length.
        if u64::from(exact.ns).abs_diff(ns) <= 1 {
            return Some(exact);
        }
        Some(Tick { ns: u32::try_from(ns).ok()?, us: u32::try_from(ns / 1000).ok()? })
    }

    /// In nanoseconds.
    #[inline]
    pub fn ns(self) -> i64 {
        i64::from(self.ns)
    }

    /// In whole microseconds, as 5.3 counted.
    #[inline]
    pub fn us(self) -> u32 {
        self.us
    }
}

/// What a CPU's timers look like when it goes idle. Instants are on the CPU's clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// When the idle loop was entered, or its last interrupt ended.
    pub now_ns: i64,
    /// Next programmed clock event: the tick, or a high resolution timer before it.
    pub next_event_ns: i64,
    /// Last update of the jiffies.
    pub jiffies_at_ns: i64,
    /// First timer of the wheel, in ticks after that; none without one.
    pub wheel_ticks: Option<i64>,
    /// First high resolution timer other than the tick's; none without one.
    pub first_hrtimer_ns: Option<i64>,
    /// RCU, irq_work, the architecture or the timer softirq wants the tick.
    pub needs_tick: bool,
    /// The tick may not stop: nohz off, softirq pending, a task is runnable, the timekeeper of nohz_full.
    pub may_not_stop: bool,
    /// Is the tick stopped already?
    pub is_tick_stopped: bool,
    /// What the clock source can count up to, if this CPU keeps the jiffies (or did last and nobody does).
    pub deferment_ns: Option<i64>,
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Time to the next timer if the tick may stop.
    pub sleep_ns: i64,
    /// Time to the next event with the tick kept.
    pub next_event_ns: i64,
    /// Where the tick's timer would be set if it stopped now; none where it will be kept whatever the governor says, forever
    /// where there is nothing to set it for.
    pub tick_at_ns: Option<i64>,
}

/// Sleep length and next event.
pub fn sleep_length(t: &Timers, tick: Tick) -> Sleep {
    let kept_ns = t.next_event_ns.saturating_sub(t.now_ns);
    let kept = Sleep { sleep_ns: kept_ns, next_event_ns: kept_ns, tick_at_ns: None };
    if t.may_not_stop {
        return kept;
    }
    let base = t.jiffies_at_ns;
    let mut next = if t.needs_tick {
        base.saturating_add(tick.ns())
    } else {
        let in_wheel = |ticks: i64| base.saturating_add(ticks.max(0).saturating_mul(tick.ns()));
        t.wheel_ticks.map_or(FOREVER_NS, in_wheel)
    };
    if next.saturating_sub(base) <= tick.ns() && !t.is_tick_stopped {
        return kept;
    }
    if let Some(deferment) = t.deferment_ns {
        next = next.min(base.saturating_add(deferment));
    }
    let first = t.first_hrtimer_ns.map_or(next, |hrtimer| next.min(hrtimer));
    // Without any timer it is forever less the uptime: menu's product wraps there, and the rest decides.
    Sleep { sleep_ns: first.saturating_sub(t.now_ns), next_event_ns: kept_ns, tick_at_ns: Some(next) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ250: Tick = Tick { ns: 4_000_000, us: 4000 };

    fn timers() -> Timers {
        Timers {
            now_ns: 101_000_000,
            next_event_ns: 104_000_000,
            jiffies_at_ns: 100_000_000,
            wheel_ticks: Some(10),
            first_hrtimer_ns: Some(120_000_000),
            needs_tick: false,
            may_not_stop: false,
            is_tick_stopped: false,
            deferment_ns: None,
        }
    }

    #[test]
    fn ticks_are_rounded_as_the_kernel_rounds_them() {
        let of = |hz| Tick::of_hz(hz).map(|t| (t.ns(), t.us()));
        assert_eq!(
            [of(100), of(250), of(300), of(1000)],
            [Some((10_000_000, 10_000)), Some((4_000_000, 4000)), Some((3_333_333, 3333)), Some((1_000_000, 1000))]
        );
        assert_eq!((of(0), of(u32::MAX)), (None, None));
        assert_eq!(Tick::of_ns(3_333_333), Tick::of_hz(300));
        assert_eq!(Tick::of_ns(0), None);
    }

    #[test]
    fn the_earliest_of_wheel_and_high_resolution_timers_ends_the_sleep() {
        let said = |t: Timers| sleep_length(&t, HZ250);
        let both = said(timers());
        assert_eq!((both.sleep_ns, both.next_event_ns, both.tick_at_ns), (19_000_000, 3_000_000, Some(140_000_000)));
        let wheel = said(Timers { first_hrtimer_ns: None, ..timers() });
        assert_eq!(wheel.sleep_ns, 39_000_000);
        let none = said(Timers { first_hrtimer_ns: None, wheel_ticks: None, ..timers() });
        assert_eq!((none.sleep_ns, none.tick_at_ns), (FOREVER_NS - 101_000_000, Some(FOREVER_NS)));
        let capped = Timers { first_hrtimer_ns: None, wheel_ticks: None, deferment_ns: Some(9_000_000), ..timers() };
        assert_eq!(said(capped).sleep_ns, 8_000_000);
    }

    #[test]
    fn a_tick_that_will_be_kept_ends_it_first() {
        let said = |t: Timers| sleep_length(&t, HZ250);
        for t in [
            Timers { may_not_stop: true, ..timers() },
            Timers { needs_tick: true, ..timers() },
            Timers { wheel_ticks: Some(1), ..timers() },
            Timers { wheel_ticks: Some(-3), ..timers() },
        ] {
            assert_eq!(said(t), Sleep { sleep_ns: 3_000_000, next_event_ns: 3_000_000, tick_at_ns: None });
        }
        // Once it is stopped, even an expired wheel is only the next thing: already due.
        let stopped = said(Timers { wheel_ticks: Some(-3), is_tick_stopped: true, ..timers() });
        assert_eq!((stopped.sleep_ns, stopped.tick_at_ns), (-1_000_000, Some(100_000_000)));
    }
}
