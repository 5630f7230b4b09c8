//! What a recording says about the machine, and the probe's records as the file knows them.

use super::RecordPlan;
use std::time::SystemTime;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::wtrace::{Header, StateTable, TableState};
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};
use wakewatt_host::{kernel_config, pseudonym};
use wakewatt_probes::wake::{IdleRecord, WakeProbe};

pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The probe's record as core knows it: relative to the idle loop's reference time.
pub(super) fn pair_of(record: &IdleRecord) -> IdlePair {
    let flags = record.flags;
    let from_reference = |at_ns: i64| at_ns.wrapping_sub(record.reference_at_ns.cast_signed());
    IdlePair {
        cpu: record.cpu,
        enter_at_ns: record.enter_at_ns,
        duration_ns: record.exit_at_ns.saturating_sub(record.enter_at_ns),
        state: record.state,
        sleep_length_ns: flags.has_sleep_length.then(|| from_reference(record.sleep_until_ns)),
        next_event_ns: flags.has_timers.then(|| from_reference(record.next_event_at_ns)),
        entry_lag_ns: flags.has_timers.then(|| record.enter_at_ns.saturating_sub(record.reference_at_ns)),
        is_tick_stopped: flags.has_timers.then_some(flags.is_stopped),
        is_first: flags.is_first,
        ended_by: WakeCause::of(record.cause),
        is_tick_fired: flags.has_timers.then_some(flags.is_tick_fired),
        n_iowait: flags.has_iowait.then_some(record.n_iowait),
    }
}

/// What the file says about this machine.
pub(super) fn header(facts: &Snapshot, n_cpus: u32, plan: &RecordPlan, window_ns: u64, probe: &WakeProbe) -> Header {
    let uname = rustix::system::uname();
    let header = Header {
        wakewatt: env!("CARGO_PKG_VERSION").into(),
        created_at_s: now_s(),
        boot: pseudonym::of_this_boot(),
        kernel: uname.release().to_string_lossy().into_owned(),
        kernel_build: Some(uname.version().to_string_lossy().into_owned()),
        arch: uname.machine().to_string_lossy().into_owned(),
        unit_ns: Some(wakewatt_core::record::wtrace::UNIT_NS),
        tick_ns: kernel_config::tick_hz().map(|hz| (1_000_000_000 + hz / 2) / hz),
        n_cpus,
        sources: [
            Some("stays: power:cpu_idle"),
            Some("next event, sleep length, tick: the tick's own structure at entry (struct tick_sched), tick_stop, hrtimer events"),
            Some("iowait: the run queue's own count at entry"),
            probe.exact(),
        ]
        .into_iter()
        .flatten()
        .map(String::from)
        .collect(),
        gaps: probe.gaps().to_vec(),
        window_ns,
        every_window: plan.every,
        ..Header::default()
    };
    settings_of(facts, header)
}

/// The same header with what governors look at as it is now.
pub(super) fn settings_of(facts: &Snapshot, header: Header) -> Header {
    let idle = &facts.idle;
    let tables = idle
        .tables()
        .into_iter()
        .map(|(cpus, rows)| StateTable { cpus: cpus.to_string(), states: rows.iter().map(TableState::from).collect() });
    let mut limits: Vec<(String, String)> = Vec::new();
    limits.extend(facts.qos.global.get().map(|l| ("all".to_string(), l.to_string())));
    limits.extend(facts.qos.per_cpu.known().map(|(cpus, l)| (cpus.to_string(), l.to_string())));
    Header {
        driver: idle.driver.get().cloned(),
        governor: idle.governor.get().cloned(),
        tables: tables.collect(),
        limits,
        ..header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_relative_and_unknown_stays_unknown() {
        let mut record = IdleRecord {
            cpu: 3,
            enter_at_ns: 1_000,
            exit_at_ns: 5_000,
            reference_at_ns: 900,
            next_event_at_ns: 850,
            sleep_until_ns: 4_900,
            n_iowait: 2,
            state: 1,
            flags: Default::default(),
            cause: 4,
        };
        let bare = pair_of(&record);
        assert_eq!(
            (bare.duration_ns, bare.next_event_ns, bare.sleep_length_ns, bare.n_iowait),
            (4_000, None, None, None)
        );
        assert_eq!((bare.is_tick_stopped, bare.ended_by), (None, WakeCause::RemoteWake));
        record.flags.has_timers = true;
        record.flags.has_sleep_length = true;
        let full = pair_of(&record);
        assert_eq!((full.next_event_ns, full.sleep_length_ns, full.entry_lag_ns), (Some(-50), Some(4_000), Some(100)));
    }
}
