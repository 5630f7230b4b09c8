//! Files of the kernel by their paths: which of them move by themselves, which say the same, which fit a pattern of a rule.

/// Do two contents say the same, but for blanks?
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    let fold = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).split_whitespace().map(str::to_string).collect()
    };
    a == b || (a.len() < 4096 && b.len() < 4096 && fold(a) == fold(b))
}

/// Files that say something else each time they are read; and the table of firmware, which every tool prints a part of.
pub(crate) fn moves(path: &str) -> bool {
    const MOVING: &[&str] = &[
        "usage",
        "time",
        "above",
        "below",
        "rejected",
        "scaling_cur_freq",
        "cpuinfo_cur_freq",
        "cpuinfo_avg_freq",
        "numastat",
        "meminfo",
        "loadavg",
        "uptime",
        "interrupts",
        "stat",
        "cpuinfo",
        "DMI",
        "energy_uj",
        "softirqs",
    ];
    path.starts_with("/proc/pressure") || path.rsplit('/').next().is_some_and(|name| MOVING.contains(&name))
}

/// Does a path fit a pattern whose `*` stand for anything but a slash?
pub(crate) fn fits(pattern: &str, path: &str) -> bool {
    let (mut want, mut have) = (pattern.split('/'), path.split('/'));
    loop {
        match (want.next(), have.next()) {
            (None, None) => return true,
            (Some(w), Some(h)) if fits_name(w, h) => {}
            _ => return false,
        }
    }
}

fn fits_name(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((front, back)) => {
            name.len() >= front.len() + back.len()
                && name.starts_with(front)
                && name.ends_with(back.trim_start_matches('*'))
        }
    }
}
