//! What the machine does meanwhile: wakewatt's own measurements as loads, each for a while, with seeds, so that two recordings of the
//! same load are alike.
//!
//! Timers: random sleeps of 0.7 ms on one CPU and of 4 ms on the other, 40 ms in a shell. Network: round trips over loopback from CPU to
//! CPU. Disk: reads of a device that answers after 0.3 ms (the kernel's own null device, whose answers are timers: one of QEMU's would answer by the
//! host's clock), which leaves tasks in iowait.

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
reads() { quietly timeout $D wakewatt measure disk /dev/nullb0 --engine psync --size 64M --rate "$2" --seed "$3" --cpu "$1" --duration ${D}s; }
disk() { reads 0 150 1 & reads 1 60 2 & wait; }
mixed() { often 0 3ms & reads 1 60 3 & quietly timeout $D wakewatt measure network --transport udp --gap 7ms --duration ${D}s --cpu 1 --responder-cpu 0 & naps; wait; }
"#;

/// Takes the machine's time from its instructions, and gives it the kernel's null device, whose answers are timers of that time.
pub(super) fn repeatable(machine: &mut Machine) {
    machine.instruction_shift = Some(2);
    machine.modules.push("null_blk irqmode=2 completion_nsec=300000 gb=1".into());
}
