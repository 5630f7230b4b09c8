//! Meters of a made-up server, with one that is dead.

use super::dice::window;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::energy::{Channel, ChannelSample, Covers, EnergySample, Kind, MeterSample, Sense, Witness};

/// Packages, memory, a supply and a dead counter; fans and temperatures beside them.
pub(super) fn energy() -> EnergySample {
    let channel = |name: &str, covers: Covers, is_part: bool, watts: u64| ChannelSample {
        channel: Channel { id: name.into(), name: name.into(), covers, is_part, kind: Kind::Power },
        label: if watts > 0 { Label::Measured } else { Label::PresentButDead },
        why: (watts == 0).then(|| "present but constant zero".into()),
        window: window(0, 60_000),
        covered_ns: 60_000_000_000,
        n: 60,
        n_gaps: 0,
        silences: Vec::new(),
        n_failed: 0,
        n_rejected: 0,
        n_resets: 0,
        mean_uw: (watts > 0).then_some(watts * 1_000_000),
        uncertainty_uw: (watts > 0).then_some(watts * 9_000),
        min_uw: (watts > 0).then_some(watts * 930_000),
        max_uw: (watts > 0).then_some(watts * 1_140_000),
        energy_uj: (watts > 0).then_some(watts * 60_000_000),
        doubts: Vec::new(),
    };
    let rapl = vec![
        channel("package-0", Covers::Package, false, 61),
        channel("package-1", Covers::Package, false, 57),
        channel("dram of package-0", Covers::Dram, false, 14),
        channel("dram of package-1", Covers::Dram, false, 13),
        channel("psys", Covers::Platform, false, 0),
    ];
    let supply = vec![channel("PSU1 input", Covers::Wall, false, 118), channel("PSU2 input", Covers::Wall, false, 121)];
    let witness = |name: &str, sense, first, last| Witness {
        name: name.into(),
        sense,
        first,
        last,
        min: first.min(last) - 100,
        max: first.max(last) + 150,
        n: 60,
    };
    EnergySample {
        window: window(0, 60_000),
        interval_ns: 1_000_000_000,
        chosen: Some("hwmon".into()),
        meters: vec![
            MeterSample::of("hwmon", "the management controller", Some(900_000), supply),
            MeterSample::of("powercap", "nothing", Some(21_000), rapl),
            MeterSample::unavailable("ipmi", "/dev/ipmi0: no such file"),
        ],
        witnesses: vec![
            witness("coretemp Package id 0", Sense::Temperature, 41_000, 52_000),
            witness("coretemp Package id 1", Sense::Temperature, 40_000, 49_000),
            witness("ipmi FAN1", Sense::Fan, 5_400, 6_900),
            witness("ipmi FAN2", Sense::Fan, 5_350, 6_850),
        ],
    }
}
