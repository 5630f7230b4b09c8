//! The frequency governors' models against the kernel: recorded loads in, the clocks that the kernel really set beside the model's.
//!
//! acpi-cpufreq on an emulated PC with five clocks. Recorded by the kernel's own event log: what ondemand and conservative read (idle time of
//! a CPU, by a probe on get_cpu_idle_time), the load they made of it (dbs_update), the use that schedutil saw (effective_cpu_util) and whether the
//! idle loop tried to stop the tick meanwhile, and every clock that was set (power:cpu_frequency). The loads themselves are steps of random arrivals on both CPUs. Of each governor's samples
//! 95 % must end at the clock that the model says.

mod events;
mod follow;

use super::{Inside, Proof, ProofResult, no_words};
use anyhow::Result;
use events::{Sample, Update};

pub(super) const PROOF: Proof =
    Proof { name: "frequency", machine: "governors", words: no_words, shape: roomy, script, judge, boots: super::once };
/// On the kernel of Debian's backports, or of its next release.
pub(super) const PROOF_NEWER: Proof = Proof {
    name: "frequency-newer",
    machine: "governors",
    words: no_words,
    shape: |machine| {
        machine.kernel = "6.12".into();
        roomy(machine);
    },
    script,
    judge,
    boots: super::once,
};

/// Three logs of 40 MB lie in memory.
fn roomy(machine: &mut crate::testbed::machine::Machine) {
    machine.memory_mib = 1536;
}

const SAME_RATIO: f64 = 0.95;
/// Fewer prove nothing.
const LEAST: usize = 200;
const GOVERNORS: [&str; 3] = ["ondemand", "conservative", "schedutil"];

/// A probe of a function that is not there is refused by itself; the judge then says what is missing.
const SHELL: &str = r#"
cat /proc/version >version
P=/sys/devices/system/cpu/cpufreq
T=/sys/kernel/tracing
echo mono >$T/trace_clock; echo 40000 >$T/buffer_size_kb
probe() { echo "$1" >>$T/kprobe_events || echo "$1" >>refused; }
probe 'p:w/sample dbs_update policy=$arg1:x64'
probe 'r:w/load dbs_update load=$retval:u32'
probe 'p:w/reads get_cpu_idle_time cpu=$arg1:u32'
probe 'r:w/idle get_cpu_idle_time us=$retval:u64'
probe 'p:w/uses effective_cpu_util cpu=$arg1:u32'
probe 'r:w/use effective_cpu_util use=$retval:u64'
probe 'p:w/stops tick_nohz_idle_stop_tick'
# Once: each switching rewrites the running kernel, which an emulator of several CPUs does not always survive.
echo 0 >$T/tracing_on; echo 1 >$T/events/w/enable; echo 1 >$T/events/power/cpu_frequency/enable
cat $P/policy0/scaling_available_frequencies >table
cat $P/policy0/cpuinfo_min_freq $P/policy0/cpuinfo_max_freq $P/policy0/scaling_min_freq $P/policy0/scaling_max_freq >range
step() {
  for p in $P/policy*; do echo powersave >$p/scaling_governor; done
  echo >$T/trace; echo 1 >$T/tracing_on
  for p in $P/policy*; do echo $1 >$p/scaling_governor; done
  for f in $P/$1/* $P/policy0/$1/*; do [ -e $f ] && echo "${f##*/} $(cat $f)"; done >$1.tunables
  run $1 wakewatt load steps --service 4ms --levels 20/s,160/s,60/s,200/s,100/s,10/s,180/s --interval 3s --seed 7
  echo 0 >$T/tracing_on
  cat $T/trace >$1.events; cat $T/per_cpu/cpu*/stats >$1.stats
}
"#;

fn script() -> String {
    GOVERNORS.iter().fold(SHELL.to_string(), |script, governor| script + &format!("step {governor}\n"))
}

/// What the machine is, beside its events.
struct Machine {
    release: wakewatt_models::kernel::Release,
    clocks_khz: Vec<u32>,
    /// Of the hardware, then of the policy.
    range_khz: [u32; 4],
}

impl Machine {
    fn of(inside: &Inside) -> Result<Machine> {
        let numbers = |name: &str| -> Vec<u32> {
            inside.text(name).split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let range: [u32; 4] =
            numbers("range").try_into().map_err(|_| anyhow::anyhow!("the range of clocks is not there"))?;
        let kernel = wakewatt_models::kernel::Kernel::parse(&inside.text("version"))?;
        Ok(Machine { release: kernel.release, clocks_khz: numbers("table"), range_khz: range })
    }
}

/// A file of sysfs that was noted.
fn tunable(inside: &Inside, governor: &str, name: &str) -> Option<u32> {
    let text = inside.text(&format!("{governor}.tunables"));
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    let machine = Machine::of(inside)?;
    for governor in GOVERNORS {
        verdict.step(inside, governor, 0, &[]);
        let is_lossy = |line: &str| line.starts_with("overrun: ") && line != "overrun: 0";
        let stats = inside.text(&format!("{governor}.stats"));
        verdict.expect(!stats.lines().any(is_lossy), || format!("{governor}: the kernel's log ran over"));
        let log = inside.text(&format!("{governor}.events"));
        let followed = match governor {
            "schedutil" => follow::schedutil(&Update::all(&log), &machine),
            _ => follow::sampled(governor, &Sample::all(&log), &machine, &|name| tunable(inside, governor, name)),
        };
        let Some(followed) = followed else {
            verdict
                .wrong
                .push(format!("{governor}: its inputs were not recorded; refused probes: {}", inside.text("refused")));
            continue;
        };
        let share = followed.n_same as f64 / followed.n.max(1) as f64;
        verdict.counted.push(format!(
            "{governor}, kernel {}: {} of {} samples end at the model's clock ({:.2} %), of {} that changed it {}{}",
            machine.release,
            followed.n_same,
            followed.n,
            100.0 * share,
            followed.n_changed,
            followed.n_changed_same,
            followed.words
        ));
        verdict.expect(followed.n >= LEAST, || format!("{governor}: only {} samples", followed.n));
        verdict.expect(share >= SAME_RATIO, || format!("{governor}: below {:.0} %", 100.0 * SAME_RATIO));
    }
    Ok(verdict)
}
