//! Attaching the programs that watch the governor itself (exact.h): by fentry where the kernel has it, else by kprobes.
//!
//! Which governor functions there are is the kernel's business: those found in its BTF, or in its symbols, are watched. An input
//! whose function cannot be watched (inlined, or not there) is left to what is rebuilt, and that is said. Without the
//! functions that choose there is nothing exact, and that is an error.

use super::{Switch, switch};
use crate::ProbeError;
use crate::load::Loaded;

/// A function that tells the governor something.
struct Told {
    function: &'static str,
    /// Programs by fexit, by kprobe (none: not needed), by kretprobe.
    programs: (&'static str, Option<&'static str>, &'static str),
    what: &'static str,
    /// What takes its place.
    instead: &'static str,
}

/// Function that tells the sleep length.
const SLEEP: &str = "tick_nohz_get_sleep_length";

const TOLD: [Told; 5] = [
    Told {
        function: SLEEP,
        programs: ("sleep_out", Some("k_sleep_in"), "k_sleep_out"),
        what: "sleep length and next event",
        instead: "the tick's structure at entry",
    },
    Told {
        function: "nr_iowait_cpu",
        programs: ("iowait_out", None, "k_iowait_out"),
        what: "tasks in iowait",
        instead: "the run queue's count",
    },
    Told {
        function: "tick_nohz_tick_stopped",
        programs: ("stopped_out", None, "k_stopped_out"),
        what: "tick stopped",
        instead: "the events of the tick",
    },
    Told {
        function: "cpuidle_governor_latency_req",
        programs: ("limit_out", None, "k_limit_out"),
        what: "latency limit",
        instead: "the limit in the recording's header",
    },
    Told {
        function: "tick_nohz_idle_got_tick",
        programs: ("fired_out", None, "k_fired_out"),
        what: "tick fired",
        instead: "the tick's timer",
    },
];

/// A governor's two functions, its program by kprobe, and those by fentry and fexit.
struct Governor {
    select: &'static str,
    reflect: &'static str,
    kprobe: &'static str,
    programs: [&'static str; 4],
}

const GOVERNORS: [Governor; 4] = [
    Governor {
        select: "menu_select",
        reflect: "menu_reflect",
        kprobe: "k_menu_select_in",
        programs: ["menu_select_in", "menu_select_out", "menu_reflect_in", "menu_reflect_out"],
    },
    Governor {
        select: "teo_select",
        reflect: "teo_reflect",
        kprobe: "k_teo_select_in",
        programs: ["teo_select_in", "teo_select_out", "teo_reflect_in", "teo_reflect_out"],
    },
    Governor {
        select: "ladder_select_state",
        reflect: "ladder_reflect",
        kprobe: "k_ladder_select_in",
        programs: ["ladder_select_in", "ladder_select_out", "ladder_reflect_in", "ladder_reflect_out"],
    },
    Governor {
        select: "haltpoll_select",
        reflect: "haltpoll_reflect",
        kprobe: "k_haltpoll_select_in",
        programs: ["haltpoll_select_in", "haltpoll_select_out", "haltpoll_reflect_in", "haltpoll_reflect_out"],
    },
];

/// How a function is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Fentry,
    Kprobe,
}

impl Way {
    fn words(self) -> &'static str {
        match self {
            Way::Fentry => "fentry",
            Way::Kprobe => "kprobes",
        }
    }
}

/// Attaches what can be; in words how the inputs are had, and which are not.
pub(super) fn attach(loaded: &mut Loaded) -> Result<(String, Vec<String>), ProbeError> {
    let mut refusals = Vec::new();
    for way in [Way::Fentry, Way::Kprobe] {
        match attach_by(loaded, way) {
            Ok(done) => return Ok(done),
            Err(why) => refusals.push(format!("by {}: {why}", way.words())),
        }
    }
    Err(ProbeError::NoExact(refusals.join("; ")))
}

fn attach_by(loaded: &mut Loaded, way: Way) -> Result<(String, Vec<String>), ProbeError> {
    let mut gaps = Vec::new();
    // What it is told first: a choice that is seen has its inputs.
    for told in &TOLD {
        let (fexit, entry, kretprobe) = told.programs;
        let done = match way {
            Way::Fentry => loaded.watch(fexit, told.function),
            Way::Kprobe => entry
                .map_or(Ok(()), |program| loaded.watch(program, told.function))
                .and_then(|()| loaded.watch(kretprobe, told.function)),
        };
        if told.function == SLEEP {
            // Without it the C side takes what is rebuilt.
            switch(loaded, Switch::SleepWatched, done.is_ok())?;
        }
        if let Err(why) = done {
            gaps.push(format!("{} exactly, taken from {} instead: {why}", told.what, told.instead));
        }
    }
    let (mut seen, mut last) = (Vec::new(), None);
    for governor in &GOVERNORS {
        let [select_in, select_out, reflect_in, reflect_out] = match way {
            Way::Fentry => governor.programs,
            Way::Kprobe => [governor.kprobe, "k_select_out", "k_reflect_in", "k_reflect_out"],
        };
        // Backwards: nothing is begun that is not ended.
        let all = [
            (reflect_out, governor.reflect),
            (reflect_in, governor.reflect),
            (select_out, governor.select),
            (select_in, governor.select),
        ];
        match all.into_iter().try_for_each(|(program, function)| loaded.watch(program, function)) {
            Ok(()) => seen.push(governor.select),
            Err(why) => last = Some(why),
        }
    }
    match (seen.is_empty(), last) {
        (true, Some(why)) => Err(why),
        _ => Ok((format!("choices: {} on {}", way.words(), seen.join(", ")), gaps)),
    }
}
