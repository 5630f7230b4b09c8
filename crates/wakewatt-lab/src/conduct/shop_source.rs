//! The online shop as a source of levels: the same server and clients as `load shop`, kept running through all blocks.

use crate::experiment::Calibrated;
use crate::meters::Meters;
use crate::shop::{Shop, ShopSpec};
use crate::workloads::level::LevelSource;
use std::sync::atomic::AtomicBool;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::load::{Ask, Level};
use wakewatt_core::source::Source;

/// Clients of a shop on this machine.
pub(super) struct ShopSource<'a> {
    src: &'a dyn Source,
    cpus: CpuSet,
    n_clients: u32,
    seed: u64,
    meters: Meters,
    shop: Option<Shop>,
}

impl<'a> ShopSource<'a> {
    /// With room for so many clients.
    pub(super) fn new(src: &'a dyn Source, cpus: CpuSet, n_clients: u32, seed: u64, meters: Meters) -> Self {
        ShopSource { src, cpus, n_clients, seed, meters, shop: None }
    }
}

impl LevelSource for ShopSource<'_> {
    fn id(&self) -> &'static str {
        "shop"
    }

    fn title(&self) -> String {
        "online shop".into()
    }

    fn cpus(&self) -> CpuSet {
        self.cpus.clone()
    }

    /// Clients do not refer to a maximum; the shop opens here.
    fn calibrate(&mut self, _: Option<&Calibrated>, stop: &AtomicBool) -> Result<Calibrated, String> {
        let spec = ShopSpec::own(self.n_clients, self.seed, self.meters.clone())?;
        self.shop = Some(Shop::start(spec, stop, self.src)?);
        Ok(Calibrated::default())
    }

    fn reseed(&mut self, seed: u64) {
        if let Some(shop) = &mut self.shop {
            shop.reseed(seed);
        }
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn level(&mut self, ask: Ask, phases_ns: [u64; 4], stop: &AtomicBool) -> Result<Level, String> {
        self.shop.as_mut().ok_or("not open")?.level(ask, phases_ns, stop, self.src)
    }
}
