//! A finding of weight, a note, a "no" and a "cannot tell".

use wakewatt_core::plan::{Plan, Step};
use wakewatt_core::rules::{Answer, Basis, Confidence, Cost, Finding, Ruling, Weight};

/// What the rules are made to say.
pub(super) fn rulings() -> Vec<Ruling> {
    let finding = Finding {
        id: "rule.deep-idle-vs-latency".into(),
        title: "Idle states add to every wake-up, and nothing limits them".into(),
        weight: Weight::Problem,
        cost: Cost::measured_ns(
            27_000.0,
            "27 us more per wake-up (interval 25–29 us, 95 % over all looks, covers this run), measured here over 10 rounds",
        ),
        confidence: Confidence::High,
        evidence: vec![
            Basis { says: "no latency limit is in force".into(), path: "/dev/cpu_dma_latency".into() },
            Basis {
                says: "the governor may choose every state".into(),
                path: "/sys/devices/system/cpu/cpu0/cpuidle/state1/disable".into(),
            },
        ],
        remedy: "Hold a latency limit of 5us while the service runs.".into(),
        plan: Some(Plan::of([Step {
            knob: "qos.global".into(),
            on: None,
            to: "5us".into(),
            path: "/dev/cpu_dma_latency".into(),
            reason: "no state slower than 5us may be chosen".into(),
        }])),
        price: "Idle CPUs draw more power; how much was not measured here: no power meter was found.".into(),
        verify: "wakewatt measure wakeup: the median should fall to about 6 us".into(),
    };
    let risk = Finding {
        id: "rule.fifo-refused".into(),
        title: "Measured without real-time priority: run-queue delay is in the numbers".into(),
        weight: Weight::Note,
        cost: Cost::unknown("unknown; affects how the other numbers read"),
        confidence: Confidence::Medium,
        evidence: vec![Basis { says: "Operation not permitted".into(), path: "sched_setscheduler(2)".into() }],
        remedy: "Run as root or with CAP_SYS_NICE.".into(),
        plan: None,
        price: "none".into(),
        verify: "the method section names SCHED_FIFO".into(),
    };
    let ruling = |rule: &str, question: &str, answer| Ruling { rule: rule.into(), question: question.into(), answer };
    vec![
        ruling("rule.deep-idle-vs-latency", "Do idle states cost wake-up latency?", Answer::Yes(Box::new(finding))),
        ruling("rule.fifo-refused", "Was the measurement itself delayed?", Answer::Yes(Box::new(risk))),
        ruling(
            "rule.cfs-quota",
            "Is a CPU quota throttling the work?",
            Answer::No { because: "no cgroup has been throttled since boot".into() },
        ),
        ruling(
            "rule.dimm-speed",
            "Do the DIMMs run below their rated speed?",
            Answer::CannotTell {
                because: "/sys/firmware/dmi/tables/DMI: permission denied".into(),
                try_this: "run as root".into(),
            },
        ),
    ]
}
