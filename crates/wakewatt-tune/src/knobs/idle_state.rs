//! One idle state of one CPU on or off: `cpuN/cpuidle/stateM/disable`, named by the state (`idle.state.C6`).
//!
//! Indexes differ between CPUs and BIOS settings, so the name is what the user types and it is looked up on every CPU
//! (a script that disabled "state 3" hit the wrong one: docs/knobs/README.md). Traps: under the ladder governor a
//! disabled state (but the first that sleeps) hides the deeper ones; with all states disabled state 0 is still used; a driver reload resets
//! everything (admin-guide/pm/cpuidle.rst, ABI/testing/sysfs-devices-system-cpu). A latency limit is the gentler way.

use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::say;

/// `idle.state`.
pub struct IdleStateSwitch;

const ABOUT: About = About {
    id: "idle.state",
    title: "idle state on or off",
    unit: "on, off",
    scope: Scope::Cpu,
    io_scope: Scope::Cpu,
    stage: Stage::Idle,
    reversible: Reversible::Exactly,
    price: Price {
        up: "wake-ups may pay for this state again, idle CPUs draw less and leave more turbo headroom",
        down: "wake-ups no longer pay for this state, idle CPUs draw more and leave less turbo headroom",
    },
    risk: "under the ladder governor a disabled state hides the deeper ones, but for the first that sleeps; state 0 stays in use where no other is left",
    overlaps: &["idle states"],
    moves: &[],
    source: "Documentation/admin-guide/pm/cpuidle.rst; ABI/testing/sysfs-devices-system-cpu",
};

impl Knob for IdleStateSwitch {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let mut sites = Vec::new();
        for state in &host.facts.idle.states {
            for cpu in host.facts.cpus.running() {
                let Some(disabled) = state.is_disabled.of(cpu) else { continue };
                if !disabled.is_known() {
                    continue;
                }
                let name = format!("{}.{}", ABOUT.id, state.name_on(cpu));
                let path = format!("{ROOT}/cpu{cpu}/cpuidle/state{}/disable", state.index);
                let mut cpus = CpuSet::new();
                cpus.insert(cpu);
                sites.push(Site::at(host.source, &name, format!("cpu{cpu}"), cpus, path, Valid::one_is_off()));
            }
        }
        if sites.is_empty() {
            return Err(say!("{ROOT}/cpu*/cpuidle: no idle states (no cpuidle driver, or a kernel older than 3.10)"));
        }
        Ok(sites)
    }
}
