//! Registers as a two-package Xeon and an AMD host record them.

use super::*;
use crate::source::{ErrorKind, Read, ReadError, Tree};
use std::cell::RefCell;

const XEON: &str = "//- /sys/devices/system/cpu/online\n0-3\n
    //- msr 0xe2 cpu0 8403\n//- msr 0xe2 cpu1 8403\n//- msr 0xe2 cpu2 14000402\n//- msr 0xe2 cpu3 8403\n
    //- msr 0x1fc cpu0 29240059\n//- msr 0x1fc cpu1 2924005b\n
    //- msr 0x606 cpu0 a0e03\n//- msr 0x610 cpu0 8078000000158af0\n//- msr 0x610 cpu1 8078000000158af0\n
    //- msr 0x774 cpu0 80002308\n//- msr 0xce cpu0 804043df0811200\n";

fn msr(text: &str) -> Msr {
    let tree = Tree::from_text(text);
    Msr::read(&tree, &Cpus::read(&tree))
}

#[test]
fn fields_are_cut_and_grouped() {
    let msr = msr(XEON);
    let limit = msr.field("pkg_cst_config", "limit").unwrap();
    assert_eq!(limit.0.iter().map(|g| g.cpus.to_string()).collect::<Vec<_>>(), ["0-1,3", "2"]);
    assert_eq!(msr.is_set("pkg_cst_config", "lock"), None, "CPU 2 is not locked");
    assert_eq!(msr.field("pkg_cst_config", "c1_demotion").unwrap().cpus_where(|v| *v == 1).to_string(), "2");
    assert_eq!(msr.field("power_ctl", "c1e").unwrap().of(1).unwrap().get(), Some(&1));
    assert_eq!(msr.is_set("rapl_unit", "nonsense"), None);
    assert_eq!(msr.field("hwp_request", "epp").unwrap().of(0).unwrap().get(), Some(&0x80));
    assert_eq!(msr.field("hwp_request", "epp").unwrap().of(1).unwrap().gap().unwrap().kind, GapKind::NotRecorded);
    let limits = msr.power_limits().unwrap();
    let pl = limits.of(0).unwrap().get().unwrap();
    assert_eq!((pl.pl1_uw, pl.is_pl1_on, pl.is_locked), (0xaf0 * 1_000_000 / 8, true, true));
    assert!(msr.package_limit.is_unknown(), "which model it is nobody says");
    let mut sheet = Sheet::default();
    msr.show(&mut sheet);
    let base = sheet.rows.iter().find(|row| row.id == "msr.platform_info.base" && row.cell.is_ok()).unwrap();
    assert_eq!(base.cell.as_ref().unwrap().to_string(), "1.8GHz");
}

#[test]
fn the_package_limit_is_said_in_the_words_of_the_model() {
    let model = |model: &str| {
        let modalias = format!("//- {ROOT}/modalias\ncpu:type:x86,ven0000fam0006mod{model}:feature:,0000\n");
        let mut sheet = Sheet::default();
        msr(&(XEON.to_string() + "\n" + &modalias)).show(&mut sheet);
        let rows = sheet.rows.iter().filter(|row| row.id == "msr.package_limit");
        rows.map(|r| r.cell.as_ref().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(model("0055"), ["PC6R", "PC6"]);
    assert_eq!(model("004F"), ["PC6", "PC3"]);
    assert!(model("0086").is_empty(), "a model without package C-states");
    let info = "//- /proc/cpuinfo\nprocessor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\n";
    assert_eq!(msr(&(XEON.to_string() + "\n" + info)).package_limit.of(2).unwrap().get(), Some(&PackageLimit::Pc6));
}

/// A live machine that counts the CPUs it is asked on.
struct Live(Tree, RefCell<BTreeSet<Cpu>>);

impl Source for Live {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        self.0.read(path)
    }
    fn list(&self, path: &str) -> Read<Vec<String>> {
        self.0.list(path)
    }
    fn link(&self, path: &str) -> Read<String> {
        self.0.link(path)
    }
    fn msr(&self, cpu: Cpu, _: u32) -> Read<u64> {
        self.1.borrow_mut().insert(cpu);
        Err(ReadError::new(ErrorKind::Denied, "Permission denied"))
    }
    fn is_live(&self) -> bool {
        true
    }
    fn origin(&self) -> String {
        self.0.origin()
    }
}

#[test]
fn a_live_machine_is_asked_once_per_package_and_a_refusal_is_one_row() {
    let tree = Tree::from_text(&format!(
        "//- {ROOT}/online\n0-3\n//- {ROOT}/modalias\ncpu:type:x86,ven0002fam0019mod0011:feature:,0000\n
         //- {ROOT}/cpu0/topology/physical_package_id\n0\n//- {ROOT}/cpu1/topology/physical_package_id\n0\n
         //- {ROOT}/cpu2/topology/physical_package_id\n1\n//- {ROOT}/cpu3/topology/physical_package_id\n1\n"
    ));
    let cpus = Cpus::read(&tree);
    let live = Live(tree, RefCell::default());
    let msr = Msr::read(&live, &cpus);
    assert!(msr.is_sample);
    assert!(live.1.borrow().contains(&0) && live.1.borrow().contains(&2) && !live.1.borrow().contains(&1));
    assert!(msr.registers.iter().all(|reading| reading.id.starts_with("amd")), "Intel's are not asked for");
    let mut sheet = Sheet::default();
    msr.show(&mut sheet);
    assert_eq!(sheet.rows.len(), 1);
}

#[test]
fn the_table_is_sound() {
    let ids: BTreeSet<&str> = REGISTERS.iter().map(|r| r.id).collect();
    assert_eq!(ids.len(), REGISTERS.len());
    for field in REGISTERS.iter().flat_map(|r| r.fields) {
        assert!(field.low <= field.high && field.high < 64, "{}", field.id);
        assert!(field.form != Form::Flag || field.low == field.high, "{}", field.id);
    }
}
