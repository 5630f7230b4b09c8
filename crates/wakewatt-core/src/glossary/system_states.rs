//! States of the whole machine in ACPI's letters: G, S, D and C, and how they lie inside each other.
//!
//! People ask why a server "sleeps": it is in G0 and S0 all the time, and only its CPUs are in some Cx. Source: ACPI 6.5
//! chapter 2.

use super::Family::SystemState;
use super::Term;

const SOURCE: &str = "ACPI 6.5 section 2.2 to 2.5";

pub(super) const TERMS: &[Term] = &[
    SystemState.term(
        "G0",
        &["G0/S0", "G0/S0/Cx", "S0", "working"],
        SOURCE,
        &["Cx", "S3", "Px"],
        "The machine works: software runs and everything answers. Inside G0 (which is S0) each CPU is in some Cx: C0 while it works, \
         with a performance state Px, or a sleeping C1 to Cn. All that wakewatt measures happens in here.",
    ),
    SystemState.term(
        "Cx",
        &["C-state", "C-states", "idle state", "idle states", "G0/S0/C1"],
        SOURCE,
        &["G0", "C6", "package state", "exit latency"],
        "A power state of one CPU while the machine works (G0/S0). The higher the number, the less power and the longer the way back; \
         the numbers of ACPI, of a driver and of the hardware are three different counts.",
    ),
    SystemState.term(
        "Px",
        &["P-state", "P-states"],
        SOURCE,
        &["G0", "HWP", "CPPC"],
        "A performance state of a CPU that works (C0): a pair of frequency and voltage. P0 is the fastest.",
    ),
    SystemState.term(
        "G1",
        &["sleeping"],
        SOURCE,
        &["S3", "G0"],
        "The machine sleeps as a whole (S1 to S4): no software runs until it is woken.",
    ),
    SystemState.term("S1", &[], SOURCE, &["S3"], "A light sleep of the whole machine that loses nothing; hardly any server has it."),
    SystemState.term(
        "S0ix",
        &["s2idle", "modern standby", "S0i3"],
        SOURCE,
        &["PC10", "S3"],
        "Suspend-to-idle: the machine stays in S0, every CPU rests in its deepest state and devices are switched off. For notebooks.",
    ),
    SystemState.term(
        "S3",
        &["suspend to RAM"],
        SOURCE,
        &["S4", "G0"],
        "The whole machine sleeps and only memory is kept. Not an idle state.",
    ),
    SystemState.term("S4", &["hibernate"], SOURCE, &["S3", "S5"], "Memory is written to disk and the machine is switched off."),
    SystemState.term("S5", &["G2", "soft off"], SOURCE, &["S4"], "Switched off by software; only what can switch it on again has power."),
    SystemState.term(
        "Dx",
        &["D0", "D3", "D3hot", "D3cold", "device states"],
        SOURCE,
        &["ASPM", "package state"],
        "Power states of a device, D0 (works) to D3 (off). A device in D0 may keep its package from resting deeply.",
    ),
];
