//! Does memory deliver much less than its modules could?
//!
//! The peak is arithmetic: populated channels times configured transfers per second times 8 bytes (a DDR5 channel is two
//! halves of 4 bytes, together the same). No machine reaches it; reading with all CPUs usually gets 70 to 90 % (McCalpin's
//! STREAM results and the "sustained" column of vendors' tuning guides). Below 60 % something else holds it back: too few
//! CPUs measured, a slow uncore, a channel that the firmware turned off, interleaving, a neighbour. That is a hint, so this
//! is a note. Channels are guessed from the slots' names in SMBIOS; a guest's modules are the hypervisor's invention.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent};
use crate::evidence::Evidence;
use crate::facts::dmi::{Dmi, TABLE};
use crate::samples::memory::{Bandwidth, Traffic};
use crate::units::show_bytes;
use wakewatt_words::{say, word};

/// Below this share of the peak it is worth a look.
const LOW_RATIO: f64 = 0.6;
/// Bytes that a channel moves per transfer.
const CHANNEL_BYTES: f64 = 8.0;

pub(super) struct MemoryBelowModules;

/// Populated channels, the slowest module's transfers per second, and the peak in bytes per second.
fn peak(dmi: &Dmi) -> Option<(usize, u64, f64)> {
    let n_channels = dmi.channels().iter().filter(|c| c.n_populated > 0).count();
    let all: Option<Vec<u64>> = dmi.populated().map(|d| d.configured_mts.filter(|mts| *mts > 0)).collect();
    let slowest = all?.into_iter().min()?;
    (n_channels > 0).then_some((n_channels, slowest, n_channels as f64 * slowest as f64 * 1e6 * CHANNEL_BYTES))
}

/// The best reading bandwidth of every running CPU together.
fn best(evidence: &Evidence) -> Option<&Bandwidth> {
    let running = evidence.facts.cpus.running().count();
    let all = evidence.samples.memory.iter().flat_map(|m| &m.bandwidth);
    all.filter(|b| b.traffic == Traffic::Load && running > 0 && b.cpus.len() >= running)
        .max_by(|a, b| a.best_bytes_per_s.total_cmp(&b.best_bytes_per_s))
}

impl Rule for MemoryBelowModules {
    fn id(&self) -> &'static str {
        "rule.memory-below-modules"
    }
    fn question(&self) -> &'static str {
        word!("does memory deliver much less than its modules could?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        if let Some(gap) = facts.dimms.dimms.gap() {
            return Answer::gap(gap);
        }
        let Some((n_channels, mts, peak)) = peak(&facts.dimms) else {
            return Answer::cannot_tell(
                word!("the firmware does not tell the channels and the configured speed of every module"),
                word!("dmidecode -t memory, or the BMC"),
            );
        };
        let Some(best) = best(evidence) else {
            return Answer::cannot_tell(
                word!("the bandwidth of all running CPUs together was not measured"),
                word!("wakewatt measure memory --part bandwidth, or wakewatt doctor"),
            );
        };
        let share = best.best_bytes_per_s / peak;
        let rate = |bytes_per_s: f64| format!("{:.1} GB/s", bytes_per_s / 1e9);
        let computed = say!("{n_channels} channels x {mts} MT/s x 8 bytes");
        if share >= LOW_RATIO {
            return Answer::no(say!(
                "reading with {} CPUs got {}, {} of the {} that {computed} come to",
                best.cpus.len(),
                rate(best.best_bytes_per_s),
                percent(share),
                rate(peak)
            ));
        }
        let title = say!(
            "Memory delivers {} of what its modules could: {} measured, {} computed",
            percent(share),
            rate(best.best_bytes_per_s),
            rate(peak)
        );
        let cost = Cost::unknown(say!(
            "programs that wait for memory bandwidth get {} where 70 to 90 % of {} is usual; which of the causes it is, \
             is not known",
            rate(best.best_bytes_per_s),
            rate(peak)
        ));
        let node = best.node.map_or(String::new(), |n| say!(", memory of node {n}"));
        let measured = say!(
            "{} by {} CPUs, {} pages, {} arrays{node}",
            rate(best.best_bytes_per_s),
            best.cpus.len(),
            best.pages.word(),
            show_bytes(best.array_bytes)
        );
        Finding::new(self, Weight::Note, Confidence::Low, title, cost)
            .on("measure memory, load, all CPUs", measured)
            .on(format!("{TABLE} type 17"), computed)
            .remedy(
                word!("Look at the machine's other findings about memory first (uneven channels, nodes, uncore). Then compare \
                 with a machine of the same model, and look in the BIOS for interleaving, a memory power-saving mode and \
                 channels that training disabled."),
                word!("Time; a reboot where the BIOS is changed."),
                word!("wakewatt measure memory --part bandwidth with nothing else running; wakewatt compare with a run of a good \
                 machine"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::line;
    use super::*;
    use crate::cpuset::CpuSet;
    use crate::fact::Fact;
    use crate::facts::Snapshot;
    use crate::facts::dmi::Dimm;
    use crate::record::host_file;
    use crate::samples::Samples;
    use crate::samples::memory::{MemorySample, PageWish};

    fn measured(cpus: &CpuSet, gigabytes_per_s: f64) -> Option<MemorySample> {
        let bandwidth = Bandwidth {
            traffic: Traffic::Load,
            simd: "avx2".into(),
            pages: PageWish::Huge,
            cpus: cpus.clone(),
            node: None,
            array_bytes: 1 << 30,
            best_bytes_per_s: gigabytes_per_s * 1e9,
            median_bytes_per_s: gigabytes_per_s * 1e9,
            cv_ratio: 0.01,
            n_passes: 5,
            huge_ratio: None,
        };
        Some(MemorySample { bandwidth: vec![bandwidth], ..MemorySample::default() })
    }

    /// A server that was recorded, with memory modules that were not.
    fn server(n_channels: u8, configured_mts: Option<u64>) -> Evidence {
        let text = include_str!("../../../../fixtures/hosts/icx2s0.host");
        let mut facts = Snapshot::read(&host_file::read(text, "icx2s0").unwrap(), |_| true);
        let dimm = |channel: u8| Dimm {
            socket: Some("1".into()),
            channel: Some(char::from(b'A' + channel).to_string()),
            size_bytes: Some(1 << 34),
            configured_mts,
            ..Dimm::default()
        };
        facts.dimms.dimms = Fact::Known((0..n_channels).map(dimm).collect());
        Evidence { facts, ..Evidence::default() }
    }

    #[test]
    fn a_recorded_server_with_known_modules() {
        let with = |gigabytes_per_s| {
            let mut host = server(16, Some(3200));
            let running: CpuSet = host.facts.cpus.running().collect();
            host.samples.memory = measured(&running, gigabytes_per_s);
            line(&MemoryBelowModules, &host)
        };
        // 16 x 3200 x 8 = 409.6 GB/s.
        assert!(with(330.0).starts_with("no: reading with"), "{}", with(330.0));
        assert_eq!(
            with(160.0),
            "yes note unknown: memory delivers 39 % of what its modules could: 160.0 gb/s measured, 409.6 gb/s computed"
        );
    }

    #[test]
    fn it_is_silent_where_a_number_is_missing() {
        let mut few = server(16, Some(3200));
        assert!(line(&MemoryBelowModules, &few).starts_with("cannot tell: the bandwidth"));
        few.samples.memory = measured(&CpuSet::parse("0-1").unwrap(), 9.0);
        assert!(line(&MemoryBelowModules, &few).starts_with("cannot tell: the bandwidth"), "two of many CPUs");
        assert!(line(&MemoryBelowModules, &server(16, None)).starts_with("cannot tell: the firmware"));
        assert!(line(&MemoryBelowModules, &server(0, None)).starts_with("cannot tell: the firmware"));
        for text in [
            include_str!("../../../../fixtures/hosts/sklep0.host"),
            include_str!("../../../../fixtures/hosts/genoa0.host"),
        ] {
            let facts = Snapshot::read(&host_file::read(text, "x").unwrap(), |_| true);
            let host = Evidence {
                facts,
                samples: Samples { memory: measured(&CpuSet::parse("0-999").unwrap(), 1.0), ..Samples::default() },
                ..Evidence::default()
            };
            assert!(line(&MemoryBelowModules, &host).starts_with("cannot tell"));
        }
    }
}
