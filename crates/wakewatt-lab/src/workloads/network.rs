//! Round trips as a workload: to a responder on another host, or over loopback between two CPUs of this one.
//!
//! The primary metric is the median, secondary the 99th percentile. Only this host's settings are turned; the far end pays
//! for its own sleep in every arm alike.

use crate::bench::{IdleBaseline, NetworkSpec, RespondSpec, Responder, round_trip};
use crate::experiment::{ShortMeasurement, Workload, Yield};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::experiment::Metric;
use wakewatt_core::samples::network::Transport;
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;

/// The workload.
pub struct NetworkWorkload<'a> {
    src: &'a dyn Source,
    spec: NetworkSpec,
    /// Lives as long as it is asked.
    _responder: Option<Responder>,
}

impl<'a> NetworkWorkload<'a> {
    /// From this CPU; without a peer a responder is started on the other one.
    pub fn new(
        src: &'a dyn Source,
        peer: Option<SocketAddr>,
        transport: Transport,
        (cpu, responder_cpu): (Cpu, Option<Cpu>),
        duration_ns: u64,
    ) -> Result<NetworkWorkload<'a>, String> {
        let responder = match peer {
            Some(_) => None,
            None => Some(Responder::start(&RespondSpec::loopback(responder_cpu)).map_err(|e| e.to_string())?),
        };
        let local_responder_cpu = responder.as_ref().and(responder_cpu);
        let address = peer.or(responder.as_ref().map(Responder::address)).ok_or("no peer")?;
        let spec = NetworkSpec { local_responder_cpu, ..NetworkSpec::to(transport, address, cpu, duration_ns) };
        Ok(NetworkWorkload { src, spec, _responder: responder })
    }

    fn id(&self) -> String {
        id(self.spec.transport)
    }

    fn title(&self) -> String {
        title(self.spec.transport)
    }
}

fn id(transport: Transport) -> String {
    format!("network.{}", transport.word())
}

fn title(transport: Transport) -> String {
    format!("{} round trip", transport.word().to_uppercase())
}

/// Its metrics, known before anything is started.
pub fn metrics_of(transport: Transport) -> Vec<Metric> {
    let (id, title) = (id(transport), title(transport));
    [("p50", "median"), ("p99", "99th percentile")]
        .map(|(q, words)| Metric::latency(format!("{id}.{q}"), format!("{title}, {words}")))
        .to_vec()
}

impl Workload for NetworkWorkload<'_> {
    fn metrics(&self) -> Vec<Metric> {
        metrics_of(self.spec.transport)
    }

    fn cpus(&self) -> CpuSet {
        self.spec.local_responder_cpu.into_iter().chain([self.spec.cpu]).collect()
    }

    fn warm_up(&mut self, duration_ns: u64, stop: &AtomicBool) {
        let spec = NetworkSpec { duration_ns, warmup_ns: 0, ..self.spec.clone() };
        // What fails here fails again in the block, and is told there.
        let _ = round_trip(&spec, stop, self.src);
    }

    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String> {
        self.measure_for(self.spec.duration_ns, stop)
    }

    fn short(&mut self) -> Option<&mut dyn ShortMeasurement> {
        Some(self)
    }
}

impl ShortMeasurement for NetworkWorkload<'_> {
    fn measure_for(&mut self, duration_ns: u64, stop: &AtomicBool) -> Result<Yield, String> {
        let cpus: Vec<Cpu> = self.cpus().iter().collect();
        let baseline = IdleBaseline::read(self.src, &cpus);
        let spec = NetworkSpec { duration_ns, ..self.spec.clone() };
        match round_trip(&spec, stop, self.src) {
            Ok(slice) => {
                let latency = Distribution::recorded(&slice.hists.round_trip);
                let at = |q: f64| latency.quantile(q).map(|v| v.value_ns as f64);
                let values = vec![at(0.5), at(0.99)];
                let latencies = vec![(self.id(), self.title(), Some(slice.hists.round_trip.into_histogram()))];
                Ok(Yield { values, latencies, idle: baseline.since(self.src), ..Yield::default() })
            }
            // An interrupt cuts a block short; it is then rejected, not an error.
            Err(_) if stop.load(Ordering::Relaxed) => Ok(Yield::default()),
            Err(why) => Err(why.to_string()),
        }
    }
}
