//! NVIDIA cards, by asking `nvidia-smi`.
//!
//! The library (libnvidia-ml) belongs to the driver and has to be loaded at run time, which a static binary cannot do
//! safely: so its own tool is run for every reading (10 to 500 ms, and it keeps the driver awake meanwhile, so watts of an
//! idle card are a little high). Decoding: `core/src/samples/meters/nvidia.rs`. Cards are never the machine's watts.

use super::subprocess::{Next, Program};
use super::{Meter, MetersWanted, Say, stamped};
use crate::clock::monotonic_ns;
use wakewatt_core::samples::energy::{Averaging, Channel, Covers, Kind, MeterGap};
use wakewatt_core::samples::meters::nvidia::{Card, FIELDS, parse};

pub const NAME: &str = "nvml";

/// A driver that hangs must not hang us.
const PATIENCE_NS: u64 = 10_000_000_000;

struct Nvml {
    program: String,
    cards: Vec<Card>,
}

pub fn find(wanted: &MetersWanted) -> Result<Box<dyn Meter>, MeterGap> {
    let program = wanted.nvidia_smi.clone().unwrap_or_else(|| "nvidia-smi".into());
    let cards = ask(&program)?;
    if cards.is_empty() { Err("nvidia-smi lists no card".into()) } else { Ok(Box::new(Nvml { program, cards })) }
}

fn ask(program: &str) -> Result<Vec<Card>, String> {
    let query = format!("--query-gpu={FIELDS}");
    let running = Program::start(program, &[&query, "--format=csv,noheader,nounits"])?;
    let end_at_ns = monotonic_ns() + PATIENCE_NS;
    let mut text = String::new();
    loop {
        match running.next(end_at_ns.saturating_sub(monotonic_ns()).max(1)) {
            Next::Line(_, line) => text.push_str(&line),
            Next::End => break,
            Next::Nothing => return Err("nvidia-smi gave no answer in 10 s".into()),
        }
    }
    let cards = parse(&text);
    running.end()?;
    cards
}

impl Meter for Nvml {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> &'static str {
        "runs nvidia-smi, which uses a CPU and keeps the cards' driver awake"
    }

    /// One second from Ampere on, except GA100; what is older says the moment (NVML reference, nvmlDeviceGetPowerUsage).
    fn averaging(&self) -> Averaging {
        Averaging::Over { ns: 1_000_000_000 }
    }

    fn channels(&self) -> Vec<Channel> {
        let channel = |card: &Card| Channel {
            id: card.index.to_string(),
            name: format!("{} {}", card.index, card.name),
            covers: Covers::Gpu,
            is_part: false,
            kind: Kind::Power,
        };
        self.cards.iter().map(channel).collect()
    }

    fn read(&mut self, say: &mut Say<'_>) {
        let (at_ns, answer) = stamped(|| ask(&self.program));
        for (at, card) in self.cards.iter().enumerate() {
            let found = answer.as_ref().map(|cards| cards.iter().find(|c| c.index == card.index));
            let value = match found {
                Ok(Some(card)) => card.power_uw.clone(),
                Ok(None) => Err("the card is gone".into()),
                Err(why) => Err(why.clone()),
            };
            say(at, at_ns, value);
        }
    }
}
