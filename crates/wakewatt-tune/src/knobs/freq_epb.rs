//! The energy-performance bias (EPB): `cpuN/power/energy_perf_bias`, 0 (performance) to 15 (power).
//!
//! The older hint, beside EPP; where hardware manages clocks it still sways the uncore and some power decisions. The
//! kernel changes a firmware value of 0 to 6 at boot ("ENERGY_PERF_BIAS: Set to 'normal'"), so that a BIOS set to
//! maximum performance is undone. The register behind it may be shared by siblings or the whole package: the last write
//! wins. It takes five words too and always reads back as a number. Source: admin-guide/pm/intel_epb.rst.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::words::encode;
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::word;

/// `freq.epb`.
pub struct FreqEpb;

const ABOUT: About = About {
    id: "freq.epb",
    title: "energy-performance bias",
    unit: "0 (performance) to 15 (power), or performance, balance-performance, normal, balance-power, power",
    scope: Scope::Cpu,
    io_scope: Scope::Package,
    stage: Stage::Bias,
    reversible: Reversible::Exactly,
    price: Price {
        up: "fewer watts, slower reaction of the uncore, and of clocks where the hardware takes no preference (EPP)",
        down: "more watts, faster reaction of the uncore, and of clocks where the hardware takes no preference (EPP)",
    },
    risk: "siblings or the package may share it; firmware may take no notice",
    overlaps: &["EPB"],
    moves: &[],
    source: "Documentation/admin-guide/pm/intel_epb.rst; SDM volume 3, IA32_ENERGY_PERF_BIAS",
};

/// The kernel's words and what they write.
const WORDS: [(&str, &str); 5] =
    [("performance", "0"), ("balance-performance", "4"), ("normal", "6"), ("balance-power", "8"), ("power", "15")];

impl Knob for FreqEpb {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let path = |cpu: u32| format!("{ROOT}/cpu{cpu}/power/energy_perf_bias");
        let site = |cpu| {
            let valid = Valid::Number { min: 0, max: 15 };
            one_file::find(host, ABOUT.id, format!("cpu{cpu}"), one_file::only(cpu), path(cpu), valid)
        };
        let sites: Vec<Site> = host.facts.cpus.running().filter_map(site).collect();
        if sites.is_empty() {
            Err(one_file::missing(host, &path(0), word!("Intel only, kernel 5.2 and later")))
        } else {
            Ok(sites)
        }
    }
    fn encode(&self, _: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let named = WORDS.iter().find(|(name, _)| *name == word.trim());
        named.map_or_else(|| encode(site, word), |(_, number)| Ok((*number).to_string()))
    }
    fn decode(&self, _: &Site, text: &str) -> String {
        WORDS.iter().find(|(_, number)| *number == text).map_or_else(|| text.into(), |(name, _)| (*name).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn words_are_numbers() {
        let tree = Tree::from_text(&format!("//- {ROOT}/online\n0-1\n//- {ROOT}/cpu1/power/energy_perf_bias\n7\n"));
        let host = Host::read(&tree);
        let sites = FreqEpb.sites(&host).unwrap();
        assert_eq!((sites.len(), sites[0].place.as_str()), (1, "cpu1"));
        let said =
            ["power", "normal", "7", "16", "min"].map(|w| FreqEpb.encode(&host, &sites[0], w).unwrap_or_default());
        assert_eq!(said, ["15", "6", "7", "", "0"]);
        assert_eq!(["6", "7"].map(|t| FreqEpb.decode(&sites[0], t)), ["normal", "7"]);
    }
}
