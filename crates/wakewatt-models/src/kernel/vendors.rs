//! Whose kernel it is, by the way it is numbered, and what that number is worth.
//!
//! Three habits. Some ship a stable release under its own number (Arch, Fedora, Alpine, Amazon, newer Debian). Some number the
//! interface and leave the last number at zero, while following the stable series (Debian up to 12, Ubuntu): the release must then come
//! from `/proc/version`. And some keep a base release for years and carry what they want into it (Red Hat, SUSE): their number
//! says little about idle governors, and the base release is assumed.

/// What a vendor's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// The stable release.
    Release,
    /// The series only: the last number stands still.
    Series,
    /// A base release that much is carried into.
    Base,
}

/// A vendor's mark in `uname -r`, lower case, its name, and what the number is worth. The first mark found counts.
const VENDORS: &[(&str, &str, Numbers)] = &[
    ("uek", "Oracle", Numbers::Base),
    (".amzn", "Amazon", Numbers::Release),
    (".fc", "Fedora", Numbers::Release),
    (".el", "Red Hat or a rebuild of it", Numbers::Base),
    ("-arch", "Arch", Numbers::Release),
    ("-microsoft", "Microsoft", Numbers::Release),
    ("+rpt", "Raspberry Pi", Numbers::Release),
    ("-rpi-v", "Raspberry Pi", Numbers::Series),
    ("-pve", "Proxmox", Numbers::Base),
    ("-android", "Android", Numbers::Base),
    ("-flatcar", "Flatcar", Numbers::Release),
    ("-talos", "Talos", Numbers::Release),
    ("+deb", "Debian", Numbers::Release),
    ("-generic", "Ubuntu", Numbers::Series),
    ("-lowlatency", "Ubuntu", Numbers::Series),
    ("-aws", "Ubuntu", Numbers::Series),
    ("-azure", "Ubuntu", Numbers::Series),
    ("-gcp", "Ubuntu", Numbers::Series),
    ("-oracle", "Ubuntu", Numbers::Series),
    ("-kvm", "Ubuntu", Numbers::Series),
    ("-default", "SUSE", Numbers::Base),
    ("-preempt", "SUSE", Numbers::Base),
    ("-amd64", "Debian", Numbers::Series),
    ("-arm64", "Debian", Numbers::Series),
    ("-686", "Debian", Numbers::Series),
];

/// The vendor of what follows the three numbers; none for a kernel as released. `is_zero`: the third number is there and zero.
pub(super) fn vendor_of(rest: &str, is_zero: bool) -> Option<(&'static str, Numbers)> {
    let rest = rest.to_ascii_lowercase();
    let build = rest.strip_prefix('-').unwrap_or_default();
    let n_digits = build.bytes().take_while(u8::is_ascii_digit).count();
    // SLE's builds are numbered by product: 150500.33.54. Flavours are shared with others.
    if n_digits == 6 && build.as_bytes().get(6) == Some(&b'.') {
        return Some(("SUSE", Numbers::Base));
    }
    let known = by_mark(&rest);
    // Whoever numbers builds of a release that ends in zero numbers an interface: 6.1.0-49-s390x, 6.1.0-1036-oem.
    let is_interface = is_zero && n_digits > 0 && build.as_bytes().get(n_digits) == Some(&b'-');
    known.or_else(|| is_interface.then_some(("a distribution", Numbers::Series)))
}

fn by_mark(rest: &str) -> Option<(&'static str, Numbers)> {
    VENDORS.iter().find(|(mark, ..)| rest.contains(mark)).map(|(_, name, numbers)| (*name, *numbers))
}
