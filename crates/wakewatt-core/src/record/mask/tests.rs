//! Whole trees: what leaked is gone, one name has one replacement, and masking twice changes nothing.

use super::*;
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::rules;

const TEXT: &str = "
    //- /proc/cmdline
    root=UUID=7a3b ro idle=poll BOOTIF=01-aa-bb-cc-dd-ee-ff user=geheim
    //- /proc/sys/kernel/hostname
    geheim
    //- /proc/interrupts
               CPU0       CPU1
     36:          0      89385 PCI-MSIX-0000:00:02.0   1-edge      i40e-enx001122334455-TxRx-0
     37:       7777       3711  PCI-MSI 524288-edge      geheimnet-rx-1
    //- /proc/self/cgroup
    0::/user.slice/user-1000.slice/geheim.scope
    //- /sys/class/net/enx001122334455/operstate
    up
    //- /sys/class/net/enx001122334455/ifalias
    geheim uplink
    //- link /sys/class/net/enx001122334455/device/driver ../../bus/pci/drivers/i40e
    //- ethtool:enx001122334455/coalesce
    rx-usecs 250
    //- /sys/class/net/geheimnet/mtu
    9000
    //- /sys/class/net/geheimnet/upper_geheim/mtu
    1
    //- /sys/block/geheimdisk/queue/scheduler
    [none] mq-deadline
    //- /sys/fs/cgroup/cgroup.controllers
    cpuset cpu io memory
    //- /sys/fs/cgroup/user.slice/user-1000.slice/geheim.scope/cpu.max
    50000 100000
    //- /sys/fs/cgroup/user.slice/user-1000.slice/geheim.scope/cpu.stat
    nr_periods 100
    nr_throttled 40
    throttled_usec 4000000
    //- /proc/77/comm
    geheimd
    //- link /proc/77/fd/3 /dev/cpu_dma_latency
    //- /sys/new/geheim/place
    geheim 12
    //- /sys/class/dmi/id/product_serial
    geheim
    //- /sys/class/dmi/id/product_name
    Model 9
    //- /sys/geheim/broken!failed
";

#[test]
fn a_program_is_known_by_its_whole_name() {
    let mut names = Names::default();
    for name in ["systemd", "swapper", "swapper/11", "kworker/0:1H", "wakewatt"] {
        assert_eq!(known_process(name, &mut names), name);
    }
    for name in ["systemd/geheim", "swapper/geheim", "wakewatt/geheim"] {
        assert!(!known_process(name, &mut names).contains("geheim"), "{name}");
    }
}

fn every_text(tree: &Tree) -> String {
    format!("{:?} {:?} {:?} {}", tree.folders, tree.links, tree.files.keys(), {
        let texts = tree.files.values().filter_map(|f| f.as_ref().ok());
        texts.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect::<Vec<_>>().join("\n")
    })
}

/// Answers of every rule without words: a name may be another, a judgement may not.
fn judged(tree: &Tree) -> Vec<String> {
    let evidence = Evidence { facts: Snapshot::read(tree, |_| true), ..Evidence::default() };
    let kind = |answer: &rules::Answer| match answer {
        rules::Answer::Yes(finding) => {
            format!("yes {:?} {:?} {}", finding.weight, finding.cost.basis, finding.evidence.len())
        }
        rules::Answer::No { .. } => "no".into(),
        rules::Answer::DoesNotApply { .. } => "does not apply".into(),
        rules::Answer::CannotTell { .. } => "cannot tell".into(),
    };
    rules::judge(&evidence).iter().map(|ruling| format!("{} {}", ruling.rule, kind(&ruling.answer))).collect()
}

#[test]
fn what_leaked_is_gone_and_the_machine_is_the_same() {
    let before = Tree::from_text(TEXT);
    assert!(every_text(&before).contains("geheim"));
    let mut after = before.clone();
    let names = tree(&mut after);
    let text = every_text(&after);
    for secret in ["geheim", "001122334455", "aa-bb", "7a3b", "1000.slice", "uplink"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    // The interface has one name in paths, pseudo-files and interrupts.
    let facts = Snapshot::read(&after, |_| true);
    let nets: Vec<(&str, bool)> =
        facts.network.interfaces.iter().map(|i| (i.name.as_str(), i.coalesce.is_known())).collect();
    assert_eq!(nets, [("maskednet1", true), ("maskednet2", false)]);
    assert!(text.contains("i40e-maskednet1-TxRx-0") && text.contains("maskednet2-rx-1"), "{text}");
    assert_eq!(facts.cgroup.limited[0].path, "/sys/fs/cgroup/user.slice/user-masked1.slice/masked2.scope");
    assert!(text.contains("0::/user.slice/user-masked1.slice/masked2.scope"), "{text}");
    assert_eq!(facts.holders.open[0].comm.as_deref(), Some("process-1"));
    assert_eq!(judged(&after), judged(&before));
    let said = names.said().unwrap();
    assert!(said.contains("3 boot arguments, 2 interfaces, 1 disk"), "{said}");

    let mut twice = after.clone();
    assert_eq!(tree(&mut twice).said(), None);
    assert_eq!(twice, after, "masking twice changes nothing");
}
