//! Pressure (PSI): how long tasks waited for a resource. Read with every reading: what is read more seldom than it is told makes rates that cannot be.

use crate::metric::{Page, names};
use crate::totals::Running;
use wakewatt_core::facts::load::parse_pressure;
use wakewatt_core::source::Read;
use wakewatt_core::watch::{Reading, Why};

/// Where it is told, and of which resource.
pub(crate) const FILES: [(&str, &str); 3] =
    [("/proc/pressure/cpu", "cpu"), ("/proc/pressure/memory", "memory"), ("/proc/pressure/io", "io")];

/// Of each of [`FILES`]: some, full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pressures([[Running; 2]; FILES.len()]);

impl Pressures {
    /// Takes what a file says now.
    pub(crate) fn advance(&mut self, file: usize, text: Read<&[u8]>) {
        let Some(lines) = self.0.get_mut(file) else { return };
        let pressure = text.ok().and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(|t| parse_pressure(t).ok());
        let some = pressure.as_ref().map(|pressure| pressure.some.total_ns);
        let full = pressure.as_ref().and_then(|pressure| Some(pressure.full.as_ref()?.total_ns));
        for (line, total_ns) in lines.iter_mut().zip([some, full]) {
            line.advance(total_ns.map_or(Reading::Missing(Why::Absent), Reading::Known));
        }
    }
}

pub(super) fn add(page: &mut Page, pressures: &Pressures) {
    for ((_, resource), lines) in FILES.iter().zip(&pressures.0) {
        for (share, total_ns) in ["some", "full"].into_iter().zip(lines) {
            let labels = vec![("resource", (*resource).into()), ("share", share.into())];
            page.known(&names::PRESSURE, labels, total_ns.so_far().map(|ns| ns as f64 / 1e9));
        }
    }
}
