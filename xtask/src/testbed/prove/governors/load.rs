//! What the machine does meanwhile: wakewatt's own measurements as loads, each for a while, with seeds, so that two recordings of the
//! same load are alike.
//!
//! Timers: random sleeps of 0.7 ms on one CPU and of 4 ms on the other, 40 ms in a shell. Network: round trips over loopback from CPU to
//! CPU. Disk: reads of a device that answers after 0.3 ms (QEMU's null device, so no host's disk is in it), which leaves tasks in iowait.

use crate::testbed::machine::Machine;

/// By the name of their shell function.
pub(super) const ALL: [&str; 4] = ["timers", "network", "disk", "mixed"];

/// Each runs a little longer than the recording. `D` is made of `S`, the recorded seconds.
pub(super) const SHELL: &str = r#"
D=$((S+6))
quietly() { "$@" >/dev/null 2>&1; }
often() { quietly timeout $D wakewatt measure wakeup --kind timer --policy other --duration ${D}s --seed 1 --cpu "$1" --gap "$2"; }
naps() { end=$(($(date +%s)+D)); while [ $(date +%s) -lt $end ]; do usleep 40000; usleep 7000; done; }
timers() { often 0 700us & often 1 4ms & naps; wait; }
network() { quietly timeout $D wakewatt measure network --transport tcp --gap 2ms --duration ${D}s --cpu 0 --responder-cpu 1; }
reads() { quietly timeout $D wakewatt measure disk /dev/vda --engine psync --size 64M --rate "$2" --seed "$3" --cpu "$1" --duration ${D}s; }
disk() { reads 0 150 1 & reads 1 60 2 & wait; }
mixed() { often 0 3ms & reads 1 60 3 & quietly timeout $D wakewatt measure network --transport udp --gap 7ms --duration ${D}s --cpu 1 --responder-cpu 0 & naps; wait; }
"#;

/// Gives the machine the device that `reads` reads.
pub(super) fn with_disk(machine: &mut Machine) {
    machine.modules.push("virtio_blk".into());
    let device = "driver=null-co,node-name=slow,size=134217728,latency-ns=300000,read-zeroes=on";
    machine.qemu_args.extend(["-blockdev", device, "-device", "virtio-blk-pci,drive=slow"].map(String::from));
}
