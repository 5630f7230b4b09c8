//! A clock that rings once: a timer of the kernel's as a file (timerfd_create(2)) beside the sockets that a thread waits for.
//!
//! The library's own timers go through wheels: one that is ten seconds away wakes the thread at the end of a wheel's turn, of a smaller one's, and when it rings.
//! This one wakes it when it rings.

use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// Rings by then whatever was asked for: whoever hears it looks at his own clock.
const LONGEST: Duration = Duration::from_secs(86_400);

/// One clock.
#[derive(Debug)]
pub(crate) struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    /// Within a runtime that waits for files.
    pub(crate) fn new() -> io::Result<Alarm> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        // Unsound for a type whose file may become another while it is waited for; this one's cannot, and `register` wants `unsafe`, which is elsewhere only.
        #[allow(deprecated)]
        Ok(Alarm(AsyncFd::new(timer)?))
    }

    /// Returns after `wait`, or a day. What was set before no longer holds.
    pub(crate) async fn ring_after(&self, wait: Duration) -> io::Result<()> {
        // Nothing at all would stop it.
        let wait = wait.clamp(Duration::from_nanos(1), LONGEST);
        // A day in seconds, and less than a second in nanoseconds, fit.
        #[allow(clippy::cast_possible_wrap)]
        let it_value = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            // What rings from here on is told again.
            self.0.readable().await?.clear_ready();
            match read(self.0.get_ref(), &mut [0; 8]) {
                Ok(_) => return Ok(()),
                // It had rung when it was set anew.
                Err(Errno::AGAIN) => {}
                Err(why) => return Err(why.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn it_rings_when_it_was_last_set_to() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (alarm, ms) = (Alarm::new().unwrap(), Duration::from_millis(1));
            let begun = Instant::now();
            alarm.ring_after(Duration::ZERO).await.unwrap();
            alarm.ring_after(20 * ms).await.unwrap();
            assert!(begun.elapsed() >= 20 * ms, "{:?}", begun.elapsed());
            // Set, not waited for, rung, and set anew.
            tokio::select! {
                biased;
                rung = alarm.ring_after(100 * ms) => panic!("{rung:?}"),
                () = std::future::ready(()) => {}
            }
            alarm.0.readable().await.unwrap().retain_ready();
            let begun = Instant::now();
            alarm.ring_after(30 * ms).await.unwrap();
            assert!(begun.elapsed() >= 30 * ms, "{:?}", begun.elapsed());
            assert!(tokio::time::timeout(5 * ms, alarm.ring_after(Duration::MAX)).await.is_err());
        });
    }
}
