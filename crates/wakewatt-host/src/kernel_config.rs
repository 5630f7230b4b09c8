//! What the running kernel was built with: CONFIG_HZ, the one number of it that a recording needs.
//!
//! Three places, none of them certain: `/proc/config.gz` (CONFIG_IKCONFIG_PROC), `/boot/config-RELEASE` (Debian, SUSE),
//! `/lib/modules/RELEASE/config` (Fedora). The tick may also be changed at boot on no kernel we know, so the first found
//! is taken.

use flate2::read::GzDecoder;
use std::io::Read;

/// Far above any kernel configuration (some 300 kB): a bound for what is unpacked.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Ticks a second; none where no configuration can be read.
pub fn tick_hz() -> Option<u64> {
    let packed = || {
        let file = std::fs::File::open("/proc/config.gz").ok()?;
        let mut text = String::new();
        GzDecoder::new(file).take(MAX_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let plain = |path: String| std::fs::read_to_string(path).ok();
    packed()
        .or_else(|| plain(format!("/boot/config-{release}")))
        .or_else(|| plain(format!("/lib/modules/{release}/config")))
        .and_then(|text| hz(&text))
}

fn hz(config: &str) -> Option<u64> {
    let value = config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ="))?;
    value.trim().parse().ok().filter(|hz| (1..=100_000).contains(hz))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_is_found_and_nonsense_is_not() {
        assert_eq!(super::hz("# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n"), Some(250));
        assert_eq!((super::hz("CONFIG_HZ=0"), super::hz("CONFIG_HZ=y"), super::hz("")), (None, None, None));
    }
}
