//! Interrupt coalescing of a network interface: `net.coalescing.rx-usecs@eth0`.
//!
//! A packet waits for its interrupt, on purpose: fewer wake-ups, later answers. Read and written by ioctl (SIOCETHTOOL),
//! all numbers at once ([`wakewatt_host::ethtool`]); names are ethtool's. Drivers refuse what they do not have, round (some
//! to 2us), and with an adaptive switch on change the number themselves. A change may reset the queues for a moment.
//! Source: networking/ethtool-netlink.rst (COALESCE).

use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::folder::Folder;
use wakewatt_words::say;

/// `net.coalescing`.
pub struct NetCoalescing;

const CLASS: &str = "/sys/class/net";
/// The fields the sink can write.
const FIELDS: [&str; 7] =
    ["rx-usecs", "rx-frames", "rx-usecs-irq", "tx-usecs", "tx-frames", "adaptive-rx", "adaptive-tx"];

const ABOUT: About = About {
    id: "net.coalescing",
    title: "interrupt coalescing of a network interface",
    unit: "microseconds, frames, or on and off, as each name tells",
    scope: Scope::Device,
    io_scope: Scope::Device,
    stage: Stage::Devices,
    reversible: Reversible::Exactly,
    price: Price {
        up: "fewer interrupts and wake-ups, fewer watts; packets wait longer",
        down: "more interrupts and wake-ups, so more watts and processor time; packets wait less",
    },
    risk: "the driver may round, refuse, or reset its queues for a moment; adaptive settings override numbers",
    overlaps: &[],
    moves: &["net.coalescing"],
    source: "Documentation/networking/ethtool-netlink.rst (COALESCE_GET, COALESCE_SET)",
};

impl Knob for NetCoalescing {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let mut sites = Vec::new();
        for interface in Folder::list(host.source, CLASS).names().iter().filter(|name| *name != "lo") {
            let Some(text) = host.text(&format!("ethtool:{interface}/coalesce")) else { continue };
            let pairs: Vec<(&str, &str)> = text.lines().filter_map(|line| line.trim().split_once(' ')).collect();
            for field in FIELDS {
                let Some((_, now)) = pairs.iter().find(|(name, _)| *name == field) else { continue };
                let is_switch = field.starts_with("adaptive");
                let valid = if is_switch { Valid::one_is_on() } else { Valid::Number { min: 0, max: u32::MAX.into() } };
                sites.push(Site {
                    name: format!("{}.{field}", ABOUT.id),
                    place: interface.clone(),
                    cpus: CpuSet::new(),
                    path: format!("ethtool:{interface}/{field}"),
                    now: Some((*now).to_string()),
                    unread: None,
                    valid,
                    refusal: None,
                    kind: None,
                });
            }
        }
        if sites.is_empty() { Err(say!("{CLASS}: no interface tells of interrupt coalescing")) } else { Ok(sites) }
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        match (requested.parse::<u64>(), read_back.parse::<u64>()) {
            _ if requested == read_back => Kept::Exactly,
            // A driver's step; a number far off was not taken.
            (Ok(asked), Ok(now)) if asked > 0 && now > 0 && now.abs_diff(asked) <= (asked / 8).max(2) => {
                Kept::Legally(say!("the driver made it {now}"))
            }
            _ => Kept::Not,
        }
    }
    fn effective(&self, host: &Host<'_>, site: &Site) -> Option<String> {
        let (_, field) = site.path.rsplit_once('/')?;
        let side = field.split('-').next()?;
        let text = host.text(&format!("ethtool:{}/coalesce", site.place))?;
        let is_adaptive = text.lines().any(|line| line.trim() == format!("adaptive-{side} 1"));
        (is_adaptive && !field.starts_with("adaptive")).then(|| say!("the driver changes it (adaptive-{side} is on)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn each_field_the_driver_tells() {
        let tree = Tree::from_text(&format!(
            "//- {CLASS}/eth0/mtu\n1500\n//- {CLASS}/lo/mtu\n1\n//- ethtool:eth0/coalesce\nrx-usecs 50\nadaptive-rx 1\njunk\n"
        ));
        let host = Host::read(&tree);
        let sites = NetCoalescing.sites(&host).unwrap();
        let shown: Vec<String> = sites.iter().map(|s| format!("{} {}", s.path, s.now.clone().unwrap())).collect();
        assert_eq!(shown, ["ethtool:eth0/rx-usecs 50", "ethtool:eth0/adaptive-rx 1"]);
        assert_eq!(NetCoalescing.encode(&host, &sites[1], "off").unwrap(), "0");
        assert!(NetCoalescing.effective(&host, &sites[0]).unwrap().contains("adaptive-rx"));
        assert!(matches!(NetCoalescing.kept("3", "2"), Kept::Legally(_)));
        assert_eq!((NetCoalescing.kept("100", "0"), NetCoalescing.kept("0", "2")), (Kept::Not, Kept::Not));
    }
}
