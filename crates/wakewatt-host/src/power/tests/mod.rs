//! Meters on trees of files and on commands that behave and that do not.

use super::*;
use crate::live::Live;
use std::path::Path;
use std::time::Duration;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::energy::MeterGap;
use wakewatt_core::samples::energy::{Covers, EnergySample, MeterSample, Sense};
use wakewatt_core::source::Tree;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn on(root: &Path) -> MetersWanted {
    MetersWanted { machine: Some(Arc::new(Live::sysroot(root).unwrap())), ..MetersWanted::default() }
}

fn found(wanted: &MetersWanted, name: &str) -> Result<Box<dyn Meter>, MeterGap> {
    find(wanted, &[name.to_string()]).pop().unwrap().1
}

fn recorded(wanted: &MetersWanted, only: &[&str], ms: u64, mut each_ms: impl FnMut(u64)) -> EnergySample {
    let only: Vec<String> = only.iter().map(ToString::to_string).collect();
    let recorder = Recorder::start(find(wanted, &only), wanted.machine.clone(), 20_000_000, &[]);
    for at in 0..ms {
        each_ms(at);
        std::thread::sleep(Duration::from_millis(1));
    }
    recorder.stop()
}

fn meter<'a>(sample: &'a EnergySample, name: &str) -> &'a MeterSample {
    sample.meters.iter().find(|m| m.meter == name).unwrap()
}

const ZONE: &str = "/sys/class/powercap/intel-rapl:0";

fn rapl(root: &Path) {
    for (zone, name) in [(ZONE, "package-0"), (&format!("{ZONE}:0") as &str, "core"), (&format!("{ZONE}:1"), "dram")] {
        write(root, &format!("{zone}/name"), name);
        write(root, &format!("{zone}/energy_uj"), "262143000000\n");
        write(root, &format!("{zone}/max_energy_range_uj"), "262143328850\n");
    }
    write(root, "/sys/class/powercap/intel-rapl:1/name", "psys");
    write(root, "/sys/class/powercap/intel-rapl:1/energy_uj", "0\n");
    write(root, "/sys/class/powercap/intel-rapl-mmio:0/name", "package-0");
    write(root, "/sys/class/powercap/intel-rapl-mmio:0/energy_uj", "5\n");
}

#[test]
fn powercap_wraps_adds_no_part_and_finds_the_dead() {
    let root = tempfile::tempdir().unwrap();
    rapl(root.path());
    let channels = found(&on(root.path()), "powercap").unwrap().channels();
    let names: Vec<&str> = channels.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["package-0", "core of package-0", "dram of package-0", "psys"], "the mmio twin is left out");
    let (start, mut energy) = (monotonic_ns(), 0);
    let mut record = |ms| {
        recorded(&on(root.path()), &["powercap"], ms, |_| {
            // 100 W in package and 10 W in dram, past the end of the range: a file is replaced whole, as sysfs gives it.
            energy = (monotonic_ns() - start) / 10;
            for (zone, uj) in
                [(ZONE.to_string(), energy), (format!("{ZONE}:0"), energy / 2), (format!("{ZONE}:1"), energy / 10)]
            {
                let beside = root.path().join("new");
                std::fs::write(&beside, format!("{}\n", (262_143_000_000 + uj) % 262_143_328_850)).unwrap();
                std::fs::rename(&beside, root.path().join(zone.trim_start_matches('/')).join("energy_uj")).unwrap();
            }
        })
    };
    // Who writes the counters may be late on a busy machine; in a longer window that is a smaller part.
    let watts_of = |sample: &EnergySample| meter(sample, "powercap").total.as_ref().map(|t| t.mean_uw as f64 / 1e6);
    let is_near = |sample: &EnergySample| watts_of(sample).is_some_and(|watts| (80.0..140.0).contains(&watts));
    let sample = record(300);
    let sample = if is_near(&sample) { sample } else { record(10_000) };
    let powercap = meter(&sample, "powercap");
    let total = powercap.total.as_ref().unwrap();
    assert_eq!((total.covers.as_str(), total.of.len()), ("package + dram", 2));
    let watts = total.mean_uw as f64 / 1e6;
    assert!((80.0..140.0).contains(&watts), "{watts} W of 110 W, on a shared machine");
    assert_eq!(sample.chosen.as_deref(), Some("powercap"));
    let psys = powercap.channels.iter().find(|c| c.channel.name == "psys").unwrap();
    assert_eq!((psys.label, psys.why.as_deref()), (Label::PresentButDead, Some("present but constant zero")));
}

#[test]
fn powercap_says_why_not() {
    let denied = Tree::from_text(&format!("//- {ZONE}/name\npackage-0\n//- {ZONE}/energy_uj!denied\n"));
    let wanted = MetersWanted { machine: Some(Arc::new(denied)), ..MetersWanted::default() };
    assert!(found(&wanted, "powercap").err().unwrap().to_string().contains("only root"));
    let none = MetersWanted { machine: Some(Arc::new(Tree::default())), ..MetersWanted::default() };
    assert!(found(&none, "powercap").err().unwrap().to_string().contains("/sys/class/powercap"));
    let mut masked = Tree::default();
    masked.folders.insert("/sys/class/powercap".into(), Ok(vec!["intel-rapl:0".into()]));
    let masked = MetersWanted { machine: Some(Arc::new(masked)), ..MetersWanted::default() };
    assert!(found(&masked, "powercap").err().unwrap().to_string().contains("container"));
}

#[test]
fn hwmon_knows_a_supply_from_a_regulator() {
    let root = tempfile::tempdir().unwrap();
    for (n, name, files) in [
        (0, "power_meter", &[("power1_average", "212000000")][..]),
        (
            1,
            "cffps1",
            &[
                ("power1_input", "120000000"),
                ("power1_label", "pin"),
                ("power2_input", "110000000"),
                ("power2_label", "pout1"),
                ("fan1_input", "5400"),
            ],
        ),
        (2, "xdpe12284", &[("power1_input", "60000000"), ("power1_label", "pin")]),
        (
            3,
            "coretemp",
            &[
                ("temp1_input", "41000"),
                ("temp1_label", "Package id 0"),
                ("temp2_input", "40000"),
                ("temp2_label", "Core 0"),
            ],
        ),
    ] {
        write(root.path(), &format!("/sys/class/hwmon/hwmon{n}/name"), name);
        files.iter().for_each(|(file, text)| write(root.path(), &format!("/sys/class/hwmon/hwmon{n}/{file}"), text));
    }
    let sample = recorded(&on(root.path()), &["hwmon"], 100, |_| {});
    let hwmon = meter(&sample, "hwmon");
    let of: Vec<(&str, Covers, bool)> =
        hwmon.channels.iter().map(|c| (c.channel.name.as_str(), c.channel.covers, c.channel.is_part)).collect();
    assert_eq!(
        of,
        [
            ("power_meter power1", Covers::System, false),
            ("cffps1 pin", Covers::Wall, false),
            ("cffps1 pout1", Covers::Other, true),
            ("xdpe12284 pin", Covers::Other, true)
        ]
    );
    assert_eq!(hwmon.total.as_ref().map(|t| (t.mean_uw, t.covers.as_str())), Some((120_000_000, "wall")));
    let witnesses: Vec<(&str, Sense, i64)> =
        sample.witnesses.iter().map(|w| (w.name.as_str(), w.sense, w.last)).collect();
    assert_eq!(witnesses, [("cffps1 fan1", Sense::Fan, 5400), ("coretemp Package id 0", Sense::Temperature, 41_000)]);
}

#[test]
fn a_sensor_that_goes_away_is_told() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "/sys/class/hwmon/hwmon0/name", "power_meter");
    write(root.path(), "/sys/class/hwmon/hwmon0/power1_average", "212000000");
    let file = root.path().join("sys/class/hwmon/hwmon0/power1_average");
    let sample = recorded(&on(root.path()), &["hwmon"], 300, |at| {
        if at == 100 {
            std::fs::remove_file(&file).unwrap();
        }
    });
    let channel = &meter(&sample, "hwmon").channels[0];
    assert!(channel.n_failed > 0 && channel.mean_uw == Some(212_000_000), "{channel:?}");
    assert!(channel.doubts.iter().any(|d| d.contains("gave nothing in the last")), "{channel:?}");
}

fn of_command(text: &str, ms: u64) -> EnergySample {
    let wanted = MetersWanted { command: Some(text.into()), ..MetersWanted::default() };
    recorded(&wanted, &["command"], ms, |_| {})
}

#[test]
fn a_command_may_print_once_per_call_or_go_on() {
    for text in ["echo 150", "while :; do echo 150 W; sleep 0.02; done"] {
        let sample = of_command(text, 400);
        let is_enough = meter(&sample, "command").channels.first().is_some_and(|channel| channel.n >= 3);
        let sample = if is_enough { sample } else { of_command(text, 20_000) };
        let command = meter(&sample, "command");
        assert_eq!(command.total.as_ref().map(|t| t.mean_uw), Some(150_000_000), "{text}: {command:?}");
        assert!(command.channels[0].n >= 3, "{text}: {command:?}");
    }
}

#[test]
fn a_command_that_fails_is_no_zero() {
    for (text, word) in [
        ("echo no meter here", "not a number of watts"),
        ("exit 3", "exit status: 3"),
        ("true", "without printing"),
        ("/no/such/program", "exit status: 127"),
    ] {
        let sample = of_command(text, 50);
        let command = meter(&sample, "command");
        assert_eq!((command.label, sample.chosen.as_ref()), (Label::Unavailable, None), "{text}");
        assert!(command.why.as_ref().unwrap().to_string().contains(word), "{text}: {command:?}");
    }
    let dead = of_command("echo 0", 100);
    assert_eq!(meter(&dead, "command").label, Label::PresentButDead);
}

mod network;

#[test]
fn a_kind_that_is_not_there_names_the_file_or_the_option() {
    let bare = MetersWanted {
        machine: Some(Arc::new(Tree::default())),
        nvidia_smi: Some("/nowhere/nvidia-smi".into()),
        ..MetersWanted::default()
    };
    // In the order in which they are chosen.
    let expected = [
        ("powercap", "/sys/class/powercap"),
        ("perf", "/sys/bus/event_source/devices/power"),
        ("hwmon", "/sys/class/hwmon"),
        ("ipmi", "not asked for"),
        ("redfish", "--redfish"),
        ("nvml", "/nowhere/nvidia-smi"),
        ("prometheus", "--prometheus"),
        ("command", "--meter-cmd"),
    ];
    let found = find(&bare, &[]);
    assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), expected.map(|(name, _)| name));
    for ((name, found), (_, word)) in found.into_iter().zip(expected) {
        let why = found.err().unwrap_or_else(|| panic!("{name} was found on a bare machine"));
        assert!(why.to_string().contains(word), "{name}: {why}");
    }
}

#[test]
fn cards_are_asked_through_their_tool_and_never_quoted_for_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let tool = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join("smi");
        let beside = folder.path().join("new");
        std::fs::write(&beside, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&beside, &path).unwrap();
        MetersWanted { nvidia_smi: Some(path.to_string_lossy().into_owned()), ..MetersWanted::default() }
    };
    let sample = recorded(&tool("echo 0, 118.5, NVIDIA H200; echo 1, [N/A], Tesla K80"), &["nvml"], 100, |_| {});
    let nvml = meter(&sample, "nvml");
    assert_eq!(nvml.total.as_ref().map(|t| (t.mean_uw, t.covers.as_str())), Some((118_500_000, "gpu")));
    assert_eq!(nvml.channels[1].label, Label::Unavailable);
    assert_eq!(sample.chosen, None);
    for (text, word) in
        [("echo No devices were found", "No devices"), ("echo broken >&2; exit 9", "exit status: 9"), (":", "no card")]
    {
        let why = found(&tool(text), "nvml").err().unwrap();
        assert!(why.to_string().contains(word), "{text}: {why}");
    }
}
