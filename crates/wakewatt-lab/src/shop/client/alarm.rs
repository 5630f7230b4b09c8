//! Sleeping until a moment, to the microsecond, for many tasks of one thread.
//!
//! tokio's own timers count whole milliseconds, which is longer than a page of the shop takes on loopback: half of that
//! would be added to every latency. Here one timerfd per thread is set to the earliest moment; when it fires, the tasks
//! whose moment has come are woken. Nothing crosses threads.

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::io::unix::AsyncFd;
use wakewatt_host::clock::monotonic_ns;

/// The alarms of a thread.
#[derive(Debug)]
pub struct Alarm {
    timer: AsyncFd<OwnedFd>,
    /// By moment, then by number.
    sleepers: RefCell<BTreeMap<(u64, u64), Waker>>,
    /// What the timer is set to; `u64::MAX`: to nothing.
    set_to_ns: Cell<u64>,
    n_sleeps: Cell<u64>,
}

impl Alarm {
    /// Within the thread's runtime; [`Alarm::run`] must be polled beside the tasks.
    pub fn new() -> io::Result<Rc<Alarm>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Deprecated because a type might return another descriptor each time; OwnedFd never does. Its successor is unsafe.
        #[allow(deprecated)]
        let timer = AsyncFd::new(timer)?;
        Ok(Rc::new(Alarm {
            timer,
            sleepers: RefCell::default(),
            set_to_ns: Cell::new(u64::MAX),
            n_sleeps: Cell::new(0),
        }))
    }

    /// Wakes sleepers, for ever.
    pub async fn run(&self) -> io::Result<()> {
        loop {
            let mut ready = self.timer.readable().await?;
            // Reading clears it; nothing to read means somebody set it anew meanwhile.
            let _ = rustix::io::read(&self.timer, &mut [0u8; 8]);
            ready.clear_ready();
            let now_ns = monotonic_ns();
            let mut sleepers = self.sleepers.borrow_mut();
            let later = sleepers.split_off(&(now_ns + 1, 0));
            let due = std::mem::replace(&mut *sleepers, later);
            let next = sleepers.first_key_value().map(|((at_ns, _), _)| *at_ns);
            drop(sleepers);
            self.set_to_ns.set(u64::MAX);
            if let Some(next) = next {
                self.set(next)?;
            }
            due.into_values().for_each(Waker::wake);
        }
    }

    fn set(&self, at_ns: u64) -> io::Result<()> {
        let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let value = Timespec { tv_sec: part(at_ns / 1_000_000_000), tv_nsec: part(at_ns % 1_000_000_000) };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.set_to_ns.set(at_ns);
        Ok(())
    }

    /// Until then; at once when that has passed.
    pub fn until(self: &Rc<Alarm>, at_ns: u64) -> Sleep {
        let number = self.n_sleeps.get();
        self.n_sleeps.set(number + 1);
        Sleep { alarm: Rc::clone(self), key: (at_ns, number) }
    }
}

/// See [`Alarm::until`].
#[derive(Debug)]
pub struct Sleep {
    alarm: Rc<Alarm>,
    key: (u64, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if monotonic_ns() >= self.key.0 {
            return Poll::Ready(());
        }
        self.alarm.sleepers.borrow_mut().insert(self.key, cx.waker().clone());
        // A timer that cannot be set would be a sleep without end; polling again at once is only slow.
        if self.key.0 < self.alarm.set_to_ns.get() && self.alarm.set(self.key.0).is_err() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.alarm.sleepers.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_wake_in_the_order_of_their_moments() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let order = tokio::task::LocalSet::new().block_on(&runtime, async {
            let alarm = Alarm::new().unwrap();
            let order = Rc::new(RefCell::new(Vec::new()));
            let start_ns = monotonic_ns();
            let sleeps: Vec<_> = [30u64, 10, 20, 10, 0]
                .into_iter()
                .map(|ms| {
                    let (alarm, order) = (Rc::clone(&alarm), Rc::clone(&order));
                    tokio::task::spawn_local(async move {
                        let at_ns = start_ns + ms * 1_000_000;
                        alarm.until(at_ns).await;
                        assert!(monotonic_ns() >= at_ns, "never early");
                        order.borrow_mut().push(ms);
                    })
                })
                .collect();
            // One that is given up does not hold up the others.
            drop(alarm.until(start_ns + 5_000_000));
            let all = async {
                for sleep in sleeps {
                    sleep.await.unwrap();
                }
            };
            tokio::select! { () = all => (), end = alarm.run() => end.unwrap() }
            assert!(alarm.sleepers.borrow().is_empty());
            order.take()
        });
        assert_eq!(order, [0, 10, 10, 20, 30]);
    }
}
