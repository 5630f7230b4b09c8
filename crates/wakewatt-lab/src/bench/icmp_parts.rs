//! From the stamps of single echoes to the parts of a ping.
//!
//! Each echo is divided completely: the stretches of one echo add up to its round trip, or it is not counted. So means
//! add up too; medians need not.

use std::collections::BTreeMap;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::fact::Fact;
use wakewatt_core::facts::{Cpus, Domain, idle::Idle};
use wakewatt_core::samples::Label;
use wakewatt_core::samples::icmp::{HiddenExit, IcmpPart, StatePart, Stretch};
use wakewatt_core::samples::kernel_histogram::KernelHistogram;
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::{Distribution, Recorder};
use wakewatt_core::units::Cpu;
use wakewatt_probes::icmp::{EchoStamps, Stamp};

/// What the responder's half needs when it is another host.
pub(crate) const ASK_THERE: &str =
    "the peer's kernel is another: run `wakewatt respond --icmp --for 30s` there meanwhile";
/// What the wire then contains.
const WITH_RESPONDER: &str = "contains the responder";

/// Names and claims of the idle states.
pub(crate) struct States(Idle);

impl States {
    pub(crate) fn read(src: &dyn Source) -> States {
        States(Idle::read(src, &Cpus::read(src)))
    }

    /// States of the CPU that has most.
    pub(crate) fn n(&self) -> u32 {
        self.0.states.iter().map(|s| s.index + 1).max().unwrap_or(1)
    }

    pub(crate) fn name(&self, cpu: Cpu, index: u32) -> String {
        let state = self.0.states.iter().find(|s| s.index == index);
        state.map_or_else(|| format!("state{index}"), |s| s.name_on(cpu))
    }

    fn claimed_ns(&self, cpu: Cpu, index: u32) -> Option<u64> {
        let state = self.0.states.iter().find(|s| s.index == index)?;
        state.exit_latency_ns.of(cpu).and_then(Fact::get).copied()
    }

    pub(crate) fn hidden(&self, side: &str, cpu: Cpu, index: u32, n: u64) -> HiddenExit {
        let claimed_ns = self.claimed_ns(cpu, index);
        HiddenExit { side: side.into(), cpu, state: self.name(cpu, index), n, claimed_ns, label: Label::Modelled }
    }

    /// Cells of one stretch as rows, most frequent first.
    pub(crate) fn rows(&self, cells: impl IntoIterator<Item = (Cpu, Option<u32>, KernelHistogram)>) -> Vec<StatePart> {
        let row = |(cpu, state, hist): (Cpu, Option<u32>, KernelHistogram)| StatePart {
            cpu,
            state: state.map(|index| self.name(cpu, index)),
            time: hist.distribution(),
        };
        let mut rows: Vec<StatePart> = cells.into_iter().map(row).filter(|r| r.time.n > 0).collect();
        rows.arrange_by_key(|r| (std::cmp::Reverse(r.time.n), r.cpu));
        rows
    }
}

/// CPU and state of a stretch that waits for a CPU.
type Waited = Option<(Cpu, Option<u32>)>;

/// One echo, divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divided {
    /// In the order of [`Stretch::ALL`]; the responder's are none when it is another host.
    ns: [Option<u64>; 7],
    waited: [Waited; 7],
}

/// Divides one round trip; none where a stamp is missing or out of order.
pub(crate) fn divide(sent_at_ns: u64, at_ns: u64, own: &EchoStamps, far: Option<&EchoStamps>) -> Option<Divided> {
    let at = |stamp: Option<Stamp>| stamp.map(|s| s.at_ns);
    let by = |stamp: Option<Stamp>| stamp.map(|s| (s.cpu, s.state));
    let (out, arrival, processing) = (at(own.sent)?, at(own.arrival)?, at(own.processing)?);
    let running = match (own.waking, own.running) {
        (Some(_), running) => running?,
        // It had not gone to sleep when the reply came.
        (None, _) => Stamp { at_ns, state: None, ..own.processing? },
    };
    let mut ns = [None; 7];
    let mut waited = [None; 7];
    ns[0] = Some(out.checked_sub(sent_at_ns)?);
    match far {
        Some(far) => {
            let (there, begun, back) = (at(far.arrival)?, at(far.processing)?, at(far.sent)?);
            ns[1] = Some(there.checked_sub(out)? + arrival.checked_sub(back)?);
            ns[2] = Some(begun.checked_sub(there)?);
            ns[3] = Some(back.checked_sub(begun)?);
            waited[2] = by(far.processing);
        }
        None => ns[1] = Some(arrival.checked_sub(out)?),
    }
    ns[4] = Some(processing.checked_sub(arrival)?);
    waited[4] = by(own.processing);
    ns[5] = Some(running.at_ns.checked_sub(processing)?);
    waited[5] = Some((running.cpu, running.state));
    ns[6] = Some(at_ns.checked_sub(running.at_ns)?);
    Some(Divided { ns, waited })
}

/// Adds echoes up. Allocates only for a CPU and state not seen before.
pub(crate) struct Parts {
    hists: [Recorder; 7],
    cells: BTreeMap<(usize, Cpu, Option<u32>), KernelHistogram>,
    hidden: BTreeMap<(bool, Cpu, u32), u64>,
    n_local: u64,
    n: u64,
}

impl Parts {
    pub(crate) fn new() -> Parts {
        let hists = std::array::from_fn(|_| Recorder::default());
        Parts { hists, cells: BTreeMap::new(), hidden: BTreeMap::new(), n_local: 0, n: 0 }
    }

    pub(crate) fn add(&mut self, echo: &Divided, own: &EchoStamps, far: Option<&EchoStamps>) {
        self.n += 1;
        self.n_local += u64::from(far.is_some());
        for (at, ns) in echo.ns.iter().enumerate() {
            let Some(ns) = *ns else { continue };
            self.hists[at].saturating_record(ns.max(1));
            if let Some((cpu, state)) = echo.waited[at] {
                self.cells.entry((at, cpu, state)).or_default().add(ns);
            }
        }
        // With both ends here the interrupt is a software one, and no card's hides anything.
        if far.is_none() {
            if let Some(Stamp { cpu, state: Some(state), .. }) = own.arrival.filter(|_| own.is_polled) {
                *self.hidden.entry((false, cpu, state)).or_default() += 1;
            }
        }
    }

    /// Is the peer on this kernel?
    pub(crate) fn is_peer_local(&self) -> bool {
        self.n_local * 2 > self.n
    }

    /// All stretches. Without any echo each says why.
    pub(crate) fn finish(&self, states: &States, why: Option<&str>) -> (Vec<IcmpPart>, Vec<HiddenExit>) {
        let total_ns: f64 = self.hists.iter().map(|h| h.mean() * h.len() as f64).sum();
        let is_local = self.is_peer_local();
        let part = |(at, stretch): (usize, Stretch)| {
            if self.n == 0 {
                return IcmpPart::unavailable(stretch, why.unwrap_or("no echo was seen whole"));
            }
            let hist = &self.hists[at];
            if hist.is_empty() {
                return IcmpPart::unavailable(stretch, ASK_THERE);
            }
            let cells = self.cells.iter().filter(|((of, _, _), _)| *of == at);
            IcmpPart {
                stretch,
                label: Label::Measured,
                remark: (stretch == Stretch::Wire && !is_local).then(|| WITH_RESPONDER.into()),
                time: Distribution::recorded(hist),
                share_ratio: (total_ns > 0.0).then(|| hist.mean() * hist.len() as f64 / total_ns),
                by_state: states.rows(cells.map(|((_, cpu, state), hist)| (*cpu, *state, hist.clone()))),
            }
        };
        let parts = Stretch::ALL.into_iter().enumerate().map(part).collect();
        let hidden = self.hidden.iter().map(|((_, cpu, state), n)| states.hidden("requester", *cpu, *state, *n));
        (parts, hidden.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn at(at_ns: u64, cpu: u32, state: Option<u32>) -> Option<Stamp> {
        Some(Stamp { at_ns, cpu, state })
    }

    fn own() -> EchoStamps {
        EchoStamps {
            sent: at(103, 0, None),
            arrival: at(145, 1, Some(1)),
            processing: at(150, 0, Some(0)),
            waking: at(151, 0, None),
            running: at(155, 0, None),
            is_polled: true,
        }
    }

    fn far() -> EchoStamps {
        let (arrival, processing) = (at(104, 0, None), at(140, 1, Some(1)));
        EchoStamps { sent: at(144, 1, None), arrival, processing, ..EchoStamps::default() }
    }

    #[test]
    fn stretches_add_up_to_the_round_trip() {
        let both = divide(100, 157, &own(), Some(&far())).unwrap();
        assert_eq!(both.ns.map(Option::unwrap), [3, 2, 36, 4, 5, 5, 2]);
        assert_eq!(both.ns.iter().flatten().sum::<u64>(), 57);
        assert_eq!((both.waited[2], both.waited[4]), (Some((1, Some(1))), Some((0, Some(0)))));
        let remote = divide(100, 157, &own(), None).unwrap();
        assert_eq!(remote.ns, [Some(3), Some(42), None, None, Some(5), Some(5), Some(2)]);
        let awake = EchoStamps { waking: None, running: None, ..own() };
        assert_eq!(divide(100, 157, &awake, None).unwrap().ns[5..], [Some(7), Some(0)]);
        assert_eq!(divide(100, 157, &EchoStamps { running: None, ..own() }, None), None);
        assert_eq!(divide(104, 157, &own(), None), None, "sent before it was sent");
    }

    #[test]
    fn a_remote_peer_leaves_its_parts_unavailable_and_the_interrupt_hidden() {
        let host = "//- /sys/devices/system/cpu/present\n0-1\n//- /sys/devices/system/cpu/cpu1/cpuidle/state1/name\nC6\n\
                    //- /sys/devices/system/cpu/cpu1/cpuidle/state1/latency\n133\n";
        let states = States::read(&Tree::from_text(host));
        let mut parts = Parts::new();
        for _ in 0..20 {
            parts.add(&divide(100, 157, &own(), None).unwrap(), &own(), None);
        }
        let (rows, hidden) = parts.finish(&states, None);
        assert_eq!(rows.len(), 7);
        assert_eq!(rows[2].label, Label::Unavailable);
        assert!(rows[2].remark.as_ref().unwrap().contains("respond --icmp"));
        assert!(rows[1].remark.is_some() && !parts.is_peer_local());
        let shares: f64 = rows.iter().filter_map(|r| r.share_ratio).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{shares}");
        assert_eq!((hidden.len(), hidden[0].n, hidden[0].cpu), (1, 20, 1));
        let none = Parts::new().finish(&states, Some("no BTF")).0;
        assert!(none.iter().all(|p| p.remark.as_deref() == Some("no BTF")));
    }
}
