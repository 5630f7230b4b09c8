//! Who pays for idle states here: which processes, on which CPUs, how much?
//!
//! Answered by a trace of this machine's own work (no load of ours runs meanwhile): every wake-up is charged to the idle
//! state its CPU had requested and to the process that waited. Only wake-ups that contain the exit count: those by another
//! CPU or by an interrupt taken before the exit event. A state whose median wake-up stays under 10 us hurts nobody that
//! a network or a disk would not hurt more; few wake-ups (under 50) say nothing. The total is small on a quiet machine and
//! that is an answer too: idle states cost a share of the requests, so what counts is each wake-up and who waits for it.
//! Named is only who was there over the whole window: a job that passed (a backup, a package manager) does not come back
//! because a limit is set for it. Where the machine has pods, or else containers, these are who pays, with what each loses a second: all that
//! were there over the whole window, but the one wakewatt runs in, and only those that carry a hundredth of the state's time lost.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent};
use crate::arrange::Arrange as _;
use crate::budget;
use crate::evidence::Evidence;
use crate::samples::payers::{PayerKind, PayerRow, Payers};
use crate::samples::traced::{Presence, Traced, WakeRow};
use crate::units::{LatencyLimit, show_ns};
use wakewatt_words::{say, told, word};

const MIN_WAKES: u64 = 50;
const FELT_NS: u64 = 10_000;

pub(super) struct WhoPaysForIdle;

impl Rule for WhoPaysForIdle {
    fn id(&self) -> &'static str {
        "rule.who-pays-for-idle"
    }
    fn question(&self) -> &'static str {
        word!("who waits for CPUs to leave idle states, and how long?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Sleep]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let Some(traced) = &evidence.samples.trace else {
            return Answer::cannot_tell(
                word!("no wake-ups were traced"),
                word!("run wakewatt doctor as root, or wakewatt trace"),
            );
        };
        let counts = |r: &&WakeRow| r.state.is_some() && r.contains_exit && r.latency.n >= MIN_WAKES;
        let rows: Vec<&WakeRow> = traced.rows.iter().filter(counts).collect();
        let is_felt = |r: &&&WakeRow| r.latency.p50_ns().is_some_and(|p50| p50 >= FELT_NS);
        let window = show_ns(traced.window.length_ns());
        let Some(worst) = rows.iter().find(is_felt) else {
            return match rows.first() {
                None => Answer::cannot_tell(
                    say!("fewer than {MIN_WAKES} wake-ups out of one idle state in {window}"),
                    word!("wakewatt trace --for 60s while the machine does its work"),
                ),
                Some(_) => Answer::no(say!(
                    "no idle state's median wake-up reached {} in {window} of the machine's own work",
                    show_ns(FELT_NS)
                )),
            };
        };
        finding(self, evidence, traced, worst).yes()
    }
}

fn finding(rule: &dyn Rule, evidence: &Evidence, traced: &Traced, worst: &WakeRow) -> Finding {
    let state = worst.state.as_deref().unwrap_or("idle");
    let window = show_ns(traced.window.length_ns());
    let p50 = worst.latency.quantile(0.5);
    let median =
        p50.map_or("-".into(), |q| format!("{} [{}, {}]", show_ns(q.value_ns), show_ns(q.low_ns), show_ns(q.high_ns)));
    let of_state = || traced.processes.iter().filter(|p| p.state == state);
    let stayed = || of_state().filter(|p| p.presence == Presence::Throughout);
    let payers: Vec<String> = stayed()
        .take(3)
        .map(|p| say!("{} ({}) {} over {} wake-ups", p.name, p.tgid, show_ns(p.total_ns), p.n))
        .collect();
    // The kernel's table holds the most active only, so it may name nobody.
    let passing = of_state().filter(|p| p.presence == Presence::Passing).map(|p| (p.n, p.total_ns));
    let (n_passing, passing_ns) = passing.fold((0, 0), |sum: (u64, u64), p| (sum.0 + p.0, sum.1 + p.1));
    let stayed_ns: u64 = stayed().map(|p| p.total_ns).sum();
    let who = match stayed().next() {
        Some(first) if passing_ns > stayed_ns => {
            say!("passing jobs waited most, of those that stayed {}", first.name)
        }
        Some(first) => say!("{} waited most", first.name),
        None if n_passing > 0 => word!("only passing jobs waited").to_string(),
        None => word!("who waits cannot be told").to_string(),
    };
    let groups = traced.payers.as_ref().map(|payers| (payers, paying(payers, state)));
    let grouped = groups.as_ref().and_then(|(payers, rows)| sentence(payers, rows, traced.window.length_ns()));
    let who = grouped.unwrap_or(who);
    let title = say!(
        "{} of wake-ups found their CPU in {state} and waited {} at the median; {who}",
        percent(worst.share_ratio),
        p50.map_or("-".into(), |q| show_ns(q.value_ns))
    );
    let each_ns = worst.exit_cost.as_ref().map(|c| c.each_ns);
    let against = worst.exit_cost.as_ref().map_or(String::new(), |c| {
        say!("; {} of each is the state's, modelled against {}", show_ns(c.each_ns), c.against)
    });
    let text = say!(
        "{} wake-ups in {window} took {median} at the median, {} in all{against}",
        worst.latency.n,
        show_ns(worst.total_ns.unwrap_or(0))
    );
    let latency_ns = each_ns.or(p50.map(|q| q.value_ns)).unwrap_or(0) as f64;
    let mut finding = Finding::new(rule, Weight::Risk, Confidence::High, title, Cost::measured_ns(latency_ns, text))
        .on(
            word!("trace: sched_waking to sched_switch, by idle state"),
            say!("{state}, woken by {}", told(worst.class.words())),
        );
    for payer in payers {
        finding = finding.on(word!("trace: processes woken out of idle"), payer);
    }
    for (payers, rows) in groups.iter() {
        for row in rows {
            let text = say!("{} {} over {} wake-ups", row.name, a_second(row.total_ns, traced), row.n);
            finding =
                finding.on(say!("trace: {}s woken out of {state} in {window}, measured", told(payers.by.word())), text);
        }
    }
    if n_passing > 0 {
        let text = say!("passing jobs {} over {n_passing} wake-ups", show_ns(passing_ns));
        finding = finding.on(word!("trace: processes that came or went meanwhile"), text);
    }
    let mut by_cpu: Vec<&WakeRow> =
        traced.by_cpu.iter().filter(|r| r.state == worst.state && r.class == worst.class && r.latency.n > 0).collect();
    by_cpu.arrange_by_key(|r| std::cmp::Reverse(r.total_ns));
    for row in by_cpu.iter().take(3) {
        let share = row.total_ns.unwrap_or(0) as f64 / worst.total_ns.unwrap_or(0).max(1) as f64;
        let cpu = row.cpu.map_or("?".into(), |c| c.to_string());
        finding = finding.on(say!("trace: CPU {cpu}"), say!("{} of the time lost", percent(share)));
    }
    // The budget that keeps shallow sleep helps only if it excludes the state that was waited for.
    let idle = &evidence.facts.idle;
    let is_excluded = |limit: &LatencyLimit| {
        let resolutions = budget::resolve(*limit, idle);
        resolutions.iter().any(|r| r.excluded.iter().any(|c| c.name == state))
    };
    if let Some(limit) = budget::shallow(idle).filter(is_excluded) {
        finding = finding.budget(&evidence.facts, limit, say!("keep the CPUs out of {state}"));
    }
    let reach = finding.plan.as_ref().map(|plan| plan.reach(&evidence.facts.cpus));
    let what: String = match (idle.no_limit_acts_because(), reach) {
        (None, Some(cpus)) => say!(
            "If what waits here is what this machine is for: limit the latency its CPUs may take to wake. The line does so \
             on {cpus}, until it is undone; to limit only the CPUs of the work, name them: --cpus LIST. Prove the gain with \
             wakewatt doctor."
        ),
        (None, None) => word!(
            "If what waits here is what this machine is for: limit the latency its CPUs may take to wake \
         (/dev/cpu_dma_latency while it runs, or pm_qos_resume_latency_us of its CPUs), and prove the gain with \
         wakewatt doctor."
        )
        .into(),
        (Some(_), _) => word!(
            "If what waits here is what this machine is for: no latency limit keeps these CPUs awake, because none has an \
         idle driver (rule.no-idle-driver says how to get one). Without one there is idle=poll (x86) or nohlt (Arm), at boot and for all CPUs; \
         in a guest also halt polling on the host (kvm.halt_poll_ns)."
        )
        .into(),
    };
    finding.remedy(
        what,
        word!("CPUs that sleep less draw more power and leave less turbo to their neighbours."),
        word!("wakewatt doctor, and wakewatt trace before and after"),
    )
}

/// The heaviest three that pay for a state and carry a hundredth of it.
fn paying<'a>(payers: &'a Payers, state: &'a str) -> Vec<&'a PayerRow> {
    let all_ns: u64 = payers.rows.iter().filter(|row| row.state == state).map(|row| row.total_ns).sum();
    payers.named(state).filter(|row| row.total_ns > 0 && row.total_ns >= all_ns / 100).take(3).collect()
}

/// Pods and containers are whose services they are; a cgroup may be anything.
fn sentence(payers: &Payers, rows: &[&PayerRow], window_ns: u64) -> Option<String> {
    let first = rows.first().filter(|_| payers.by != PayerKind::Cgroup)?;
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let total_ns = rows.iter().map(|row| row.total_ns).sum();
    let (kind, names, each) = (told(payers.by.word()), names.join(", "), per_s(total_ns, window_ns));
    Some(match rows.len() {
        1 => say!("your {kind} {names} pays {each} a second for {}", first.state),
        _ => say!("your {kind}s {names} pay {each} a second for {}", first.state),
    })
}

fn per_s(total_ns: u64, window_ns: u64) -> String {
    let each = u128::from(total_ns) * 1_000_000_000 / u128::from(window_ns.max(1));
    show_ns(u64::try_from(each).unwrap_or(u64::MAX))
}

fn a_second(total_ns: u64, traced: &Traced) -> String {
    say!("{} a second", per_s(total_ns, traced.window.length_ns()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::line;
    use super::*;
    use crate::samples::Label;
    use crate::samples::Samples;
    use crate::samples::Window;
    use crate::samples::kernel_histogram::KernelHistogram;
    use crate::samples::traced_whose::TracedWhose;
    use crate::samples::wakes::{Counted, CpuCounters, ProcessCounters, WakeClass, WakeCounters};

    fn traced(n: u64, each_ns: u64) -> Evidence {
        let hist = |n: u64, ns: u64| {
            let mut hist = KernelHistogram::default();
            (0..n).for_each(|_| hist.add(ns));
            hist
        };
        let remote = |state| (Some(state), Counted::Wake(WakeClass::Remote));
        let cells = [(remote(0), hist(60, 2_000)), (remote(1), hist(n, each_ns))].into_iter().collect();
        let counters = WakeCounters {
            at_ns: 1,
            cpus: vec![CpuCounters { cpu: 3, cells, ..CpuCounters::default() }],
            processes: vec![ProcessCounters { tgid: 7, name: "db".into(), state: Some(1), n, sum_ns: n * each_ns }],
            ..WakeCounters::default()
        };
        let name = |_, state: u32| ["POLL", "C6"][state as usize].to_string();
        let window = Window { start_at_ns: 0, end_at_ns: 5_000_000_000 };
        let mut traced = Traced::of(&counters, &name, window, TracedWhose::Machine);
        traced.processes.iter_mut().for_each(|p| p.presence = Presence::Throughout);
        Evidence::of(Samples { trace: Some(traced), ..Samples::default() })
    }

    #[test]
    fn a_passing_job_is_not_the_payer() {
        let mut evidence = traced(100, 40_000);
        let set = |evidence: &mut Evidence, presence: &[(&str, u64, Presence)]| {
            let processes = &mut evidence.samples.trace.as_mut().unwrap().processes;
            let like = processes[0].clone();
            *processes = presence
                .iter()
                .map(|(name, total_ns, presence)| crate::samples::traced::ProcessRow {
                    name: (*name).into(),
                    total_ns: *total_ns,
                    presence: *presence,
                    ..like.clone()
                })
                .collect();
        };
        let (tar, db) = (("tar", 9_000_000, Presence::Passing), ("db", 2_000_000, Presence::Throughout));
        set(&mut evidence, &[tar, db]);
        let both = line(&WhoPaysForIdle, &evidence);
        assert!(both.ends_with("passing jobs waited most, of those that stayed db"), "{both}");
        assert!(!both.contains("tar"), "{both}");
        set(&mut evidence, &[("db", 10_000_000, Presence::Throughout), tar]);
        assert!(line(&WhoPaysForIdle, &evidence).ends_with("db waited most"));
        set(&mut evidence, &[tar]);
        assert!(line(&WhoPaysForIdle, &evidence).ends_with("only passing jobs waited"));
        set(&mut evidence, &[("tar", 1, Presence::Unknown)]);
        assert!(line(&WhoPaysForIdle, &evidence).ends_with("who waits cannot be told"));
    }

    #[test]
    fn pods_are_who_pays_where_there_are_any_and_ours_is_none() {
        let mut evidence = traced(100, 40_000);
        let row = |name: &str, total_ns: u64| PayerRow {
            name: name.into(),
            cgroup: Some(format!("/kubepods/{name}")),
            state: "C6".into(),
            n: 50,
            total_ns,
            label: Label::Measured,
            presence: Presence::Throughout,
            is_own: false,
        };
        let mut said = |by: PayerKind, rows: Vec<PayerRow>| {
            let payers = Payers { by, rows, n_more: 0, n_more_wakes: 0, more_total_ns: 0 };
            evidence.samples.trace.as_mut().unwrap().payers = Some(payers);
            let Answer::Yes(finding) = WhoPaysForIdle.check(&evidence) else { panic!("a finding") };
            let paths: Vec<String> = finding.evidence.iter().map(|b| format!("{}: {}", b.path, b.says)).collect();
            (finding.title, paths.join("\n"))
        };
        let ours = PayerRow { is_own: true, ..row("kube-system/wakewatt-x", 9_000_000) };
        let job = PayerRow { presence: Presence::Passing, ..row("batch/job-1", 3_000_000) };
        let light = row("shop/cron", 1);
        let rows = vec![ours.clone(), job, row("shop/web-0", 2_500_000), row("shop/db-0", 1_500_000), light];
        let (title, evidence) = said(PayerKind::Pod, rows.clone());
        assert!(title.ends_with("; your pods shop/web-0, shop/db-0 pay 800us a second for C6"), "{title}");
        assert!(
            evidence
                .contains("trace: pods woken out of C6 in 5s, measured: shop/web-0 500us a second over 50 wake-ups"),
            "{evidence}"
        );
        assert!(!evidence.contains("wakewatt-x") && !evidence.contains("job-1"), "{evidence}");
        let one = said(PayerKind::Container, vec![row("web", 5_000_000)]).0;
        assert!(one.ends_with("; your container web pays 1ms a second for C6"), "{one}");
        let (title, evidence) = said(PayerKind::Cgroup, rows);
        assert!(title.ends_with("; db waited most") && evidence.contains("trace: cgroups woken"), "{title} {evidence}");
        let (title, evidence) = said(PayerKind::Pod, vec![ours]);
        assert!(title.ends_with("; db waited most") && !evidence.contains("trace: pods"), "{title} {evidence}");
    }

    #[test]
    fn no_limit_is_sold_where_nobody_reads_one() {
        let mut traced = traced(100, 40_000);
        let remedy = |evidence: &Evidence| {
            let Answer::Yes(finding) = WhoPaysForIdle.check(evidence) else { panic!("a finding") };
            finding.remedy
        };
        assert!(remedy(&traced).contains("/dev/cpu_dma_latency"));
        let none =
            "//- /sys/devices/system/cpu/online\n0-3\n//- /sys/devices/system/cpu/cpuidle/current_driver\nnone\n";
        traced.facts = super::super::testing::evidence(none).facts;
        let said = remedy(&traced);
        assert!(said.contains("idle=poll") && !said.contains("/dev/cpu_dma_latency"), "{said}");
    }

    #[test]
    fn the_payer_is_named_and_a_shallow_machine_is_left_alone() {
        let said = line(&WhoPaysForIdle, &traced(100, 40_000));
        assert!(said.starts_with("yes risk measured: 62 % of wake-ups found their cpu in c6"), "{said}");
        assert!(said.ends_with("db waited most"), "{said}");
        assert!(line(&WhoPaysForIdle, &traced(100, 3_000)).starts_with("no: "));
        assert!(line(&WhoPaysForIdle, &traced(20, 40_000)).starts_with("no: "), "POLL alone counts");
        assert!(line(&WhoPaysForIdle, &Evidence::default()).starts_with("cannot tell"));
    }
}
