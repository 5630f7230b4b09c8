//! Network interfaces: what stands between a packet and the CPU that handles it, besides the CPU's sleep.
//!
//! Interrupt coalescing (`rx-usecs`) delays a packet on purpose and looks like a slow wake-up. It is not in sysfs: the
//! source answers the pseudo-file `ethtool:<interface>/coalesce` with lines such as `rx-usecs 3`, from the read-only
//! ETHTOOL_GCOALESCE on a live machine, from stored text in a recording. Receive steering (RPS) moves work to other
//! CPUs, which must then wake; busy polling keeps the CPU awake instead. Hardware addresses and aliases are never read.

use super::pcie::PcieLink;
use super::{Cpus, Domain};
use crate::cpuset::CpuSet;
use crate::fact::{Fact, Gap, GapKind, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use serde::Serialize;
use wakewatt_words::word;

const ROOT: &str = "/sys/class/net";

/// Interfaces and the polling sysctls.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Network {
    /// All but the loopback.
    pub interfaces: Vec<Interface>,
    /// Why they could not be listed.
    pub unlisted_because: Option<Gap>,
    /// net.core.busy_poll: how long poll and select spin.
    pub busy_poll_ns: Fact<u64>,
    /// net.core.busy_read: how long a socket read spins.
    pub busy_read_ns: Fact<u64>,
}

/// A network interface.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interface {
    /// Name of the interface: eth0, ens1f0 …
    pub name: String,
    /// Has a device behind it: not a bridge, bond, tunnel or veth.
    pub is_physical: bool,
    /// Name of its kernel driver.
    pub driver: Fact<String>,
    /// up, down, dormant, unknown …
    pub state: Fact<String>,
    /// Megabits per second; a gap while the link is down.
    pub speed_mbit: Fact<u64>,
    /// Largest packet, in bytes.
    pub mtu_bytes: Fact<u64>,
    /// How many receive queues it has.
    pub n_rx_queues: Fact<u64>,
    /// How many transmit queues it has.
    pub n_tx_queues: Fact<u64>,
    /// CPUs that receive packet steering may wake, over all queues; empty = off.
    pub rps_cpus: Fact<CpuSet>,
    /// CPUs with a transmit queue of their own, over all queues.
    pub xps_cpus: Fact<CpuSet>,
    /// Rounds of polling before interrupts are enabled again.
    pub n_defer_hard_irqs: Fact<u64>,
    /// How long polling may hold packets back.
    pub gro_flush_timeout_ns: Fact<u64>,
    /// How long it holds interrupts back.
    pub coalesce: Fact<Coalesce>,
    /// Power management of its PCI Express link.
    pub pcie: PcieLink,
}

/// Interrupt coalescing; a setting the driver does not name is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coalesce {
    /// A received packet waits this long at most for its interrupt.
    pub rx_ns: Option<u64>,
    /// Or until so many have arrived.
    pub n_rx_frames: Option<u64>,
    /// The same for completed sends.
    pub tx_ns: Option<u64>,
    /// The same for completed sends.
    pub n_tx_frames: Option<u64>,
    /// The driver changes `rx_ns` by itself.
    pub is_adaptive_rx: Option<bool>,
    /// The driver changes `tx_ns` by itself.
    pub is_adaptive_tx: Option<bool>,
}

impl Coalesce {
    /// Reads `rx-usecs 3` and its like.
    pub fn parse(text: &str) -> Result<Coalesce, String> {
        let all = parse::counters(text)?;
        let n = |key: &str| all.get(key).copied();
        let ns = |key: &str| n(key).and_then(|us| us.checked_mul(1000));
        let flag = |key: &str| n(key).map(|v| v != 0);
        Ok(Coalesce {
            rx_ns: ns("rx-usecs"),
            n_rx_frames: n("rx-frames"),
            tx_ns: ns("tx-usecs"),
            n_tx_frames: n("tx-frames"),
            is_adaptive_rx: flag("adaptive-rx"),
            is_adaptive_tx: flag("adaptive-tx"),
        })
    }
}

impl Domain for Network {
    const TITLE: &'static str = "Network";
    const HELP: &'static str = "interfaces: driver, queues, steering, interrupt coalescing, link power states";

    fn read(src: &dyn Source, _: &Cpus) -> Network {
        let listing = src.list(ROOT);
        let unlisted_because = Gap::of_closed_folder(ROOT, &listing);
        let names = listing.unwrap_or_default();
        // bonding_masters and its like are files in the same folder.
        let is_folder = |name: &str| {
            let path = format!("{ROOT}/{name}");
            let listing = src.list(&path);
            listing.is_ok() || Gap::of_closed_folder(&path, &listing).is_some()
        };
        let is_interface = |name: &&String| *name != "lo" && is_folder(name);
        Network {
            interfaces: names.iter().filter(is_interface).map(|name| read_interface(src, name)).collect(),
            unlisted_because,
            busy_poll_ns: fact(src, "/proc/sys/net/core/busy_poll", parse::us_to_ns),
            busy_read_ns: fact(src, "/proc/sys/net/core/busy_read", parse::us_to_ns),
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("network.busy_poll", word!("busy poll"), &self.busy_poll_ns, |v| Cell::Ns(*v));
        sheet.fact("network.busy_read", word!("busy read"), &self.busy_read_ns, |v| Cell::Ns(*v));
        let virtuals = self.interfaces.iter().filter(|i| !i.is_physical).count();
        let virtuals = self.unlisted_because.clone().map_or(Fact::Known(virtuals as u64), Fact::Gap);
        sheet.fact("network.virtual", word!("virtual interfaces (not shown)"), &virtuals, |n| Cell::Count(*n));
        for i in self.interfaces.iter().filter(|i| i.is_physical) {
            let id = |what: &str| format!("network.{}.{what}", i.name);
            let label = |what: &str| format!("{} {what}", i.name);
            sheet.fact(id("driver"), label(word!("driver")), &i.driver, |v| Cell::text(v));
            sheet.fact(id("state"), label(word!("state")), &i.state, |v| Cell::text(v));
            sheet.fact(id("speed"), label(word!("speed")), &i.speed_mbit, |v| Cell::Text(format!("{v}Mbit/s")));
            sheet.fact(id("mtu"), label(word!("MTU")), &i.mtu_bytes, |v| Cell::Text(format!("{v}B")));
            sheet.fact(id("rx_queues"), label(word!("receive queues")), &i.n_rx_queues, |v| Cell::Count(*v));
            sheet.fact(id("tx_queues"), label(word!("transmit queues")), &i.n_tx_queues, |v| Cell::Count(*v));
            let cpus = |v: &CpuSet| Cell::Text(if v.is_empty() { "off".into() } else { v.to_string() });
            sheet.fact(id("rps"), label(word!("receive steering (RPS)")), &i.rps_cpus, cpus);
            sheet.fact(id("xps"), label(word!("transmit steering (XPS)")), &i.xps_cpus, cpus);
            sheet.fact(id("defer_hard_irqs"), label(word!("deferred interrupts")), &i.n_defer_hard_irqs, |v| {
                Cell::Count(*v)
            });
            sheet.fact(id("gro_flush"), label(word!("GRO flush timeout")), &i.gro_flush_timeout_ns, |v| Cell::Ns(*v));
            sheet.fact(id("coalesce"), label(word!("interrupt coalescing")), &i.coalesce, |v| {
                let rx = v.rx_ns.map_or("receive ?".into(), |ns| format!("receive {}", crate::units::show_ns(ns)));
                let adaptive = if v.is_adaptive_rx == Some(true) { ", adaptive" } else { "" };
                Cell::Text(format!("{rx}{adaptive}"))
            });
            i.pcie.show(sheet, &format!("network.{}", i.name), &i.name);
        }
    }
}

fn read_interface(src: &dyn Source, name: &str) -> Interface {
    let base = format!("{ROOT}/{name}");
    let path = |file: &str| format!("{base}/{file}");
    let number = |file: &str| fact(src, &path(file), parse::number);
    let driver_link = path("device/driver");
    let driver = match src.link(&driver_link) {
        Ok(target) => Fact::Known(target.rsplit('/').next().unwrap_or(&target).to_string()),
        Err(error) => Fact::Gap(Gap::from_read(&driver_link, &error)),
    };
    let queues = src.list(&path("queues"));
    let count = |kind: &str| match &queues {
        Ok(names) => Fact::Known(names.iter().filter(|n| n.starts_with(kind)).count() as u64),
        Err(error) => Fact::Gap(Gap::from_read(&path("queues"), error)),
    };
    let steering = |kind: &str, file: &str| {
        let names = queues.iter().flatten().filter(|n| n.starts_with(kind));
        let mut all: Fact<CpuSet> = Fact::Gap(Gap::malformed(&path("queues"), "no such queue"));
        for queue in names {
            match (fact(src, &path(&format!("queues/{queue}/{file}")), parse::mask), &mut all) {
                (Fact::Known(cpus), Fact::Known(sum)) => *sum = sum.union(&cpus),
                (known @ Fact::Known(_), _) => all = known,
                (gap, Fact::Gap(_)) => all = gap,
                _ => {}
            }
        }
        all
    };
    Interface {
        name: name.into(),
        is_physical: driver.is_known() || src.list(&path("device")).is_ok(),
        state: fact(src, &path("operstate"), parse::word),
        speed_mbit: speed(src, &path("speed")),
        mtu_bytes: number("mtu"),
        n_rx_queues: count("rx-"),
        n_tx_queues: count("tx-"),
        rps_cpus: steering("rx-", "rps_cpus"),
        xps_cpus: steering("tx-", "xps_cpus"),
        n_defer_hard_irqs: number("napi_defer_hard_irqs"),
        gro_flush_timeout_ns: number("gro_flush_timeout"),
        coalesce: fact(src, &format!("ethtool:{name}/coalesce"), Coalesce::parse),
        pcie: PcieLink::read(src, &path("device")),
        driver,
    }
}

/// The driver writes -1 (or 4294967295 before 5.x) when it does not know: absence, not a malformed file.
fn speed(src: &dyn Source, path: &str) -> Fact<u64> {
    match fact(src, path, parse::signed) {
        Fact::Known(mbit) if mbit > 0 && mbit != i64::from(u32::MAX) => Fact::Known(mbit.unsigned_abs()),
        Fact::Known(_) => Fact::Gap(Gap {
            kind: GapKind::Absent,
            path: path.into(),
            reason: "the driver does not know the speed".into(),
        }),
        Fact::Gap(gap) => Fact::Gap(gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn an_interface_with_coalescing() {
        let tree = Tree::from_text(
            "//- /sys/class/net/eth0/operstate\nup\n//- /sys/class/net/eth0/speed\n-1\n//- /sys/class/net/eth0/address\n02:00:00:00:00:01\n
             //- /sys/class/net/eth0/queues/rx-0/rps_cpus\n00000000,00000003\n//- /sys/class/net/eth0/queues/rx-1/rps_cpus\n4\n
             //- /sys/class/net/eth0/queues/tx-0/xps_cpus!failed\n//- link /sys/class/net/eth0/device/driver ../../bus/pci/drivers/i40e\n
             //- ethtool:eth0/coalesce\nrx-usecs 50\nadaptive-rx 1\nstats-block-usecs x\n
             //- /sys/class/net/lo/operstate\nunknown\n//- /sys/class/net/bonding_masters\nbond0\n//- /proc/sys/net/core/busy_poll\n50\n",
        );
        let network = Network::read(&tree, &Cpus::default());
        assert_eq!(network.interfaces.len(), 1);
        let eth = &network.interfaces[0];
        assert_eq!((eth.driver.get().unwrap().as_str(), eth.is_physical), ("i40e", true));
        assert_eq!(eth.rps_cpus.get().unwrap().to_string(), "0-2");
        assert!(eth.xps_cpus.gap().is_some() && eth.speed_mbit.gap().is_some());
        let coalesce = eth.coalesce.get().unwrap();
        assert_eq!((coalesce.rx_ns, coalesce.is_adaptive_rx, coalesce.tx_ns), (Some(50_000), Some(true), None));
        assert_eq!(network.busy_poll_ns.get(), Some(&50_000));
        assert!(!serde_json::to_string(&network).unwrap().contains("02:00"), "no hardware address");
    }
}
