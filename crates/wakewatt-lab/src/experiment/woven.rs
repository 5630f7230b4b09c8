//! A round whose arms are swapped every half second or so: the block of each is put together from its slices.
//!
//! What moves a machine (temperature, a neighbour, its own timers) moves it within seconds, and blocks of seconds one after
//! the other meet different machines. Slices of all arms within the same seconds meet the same one, so the ratio of a round
//! scatters less and fewer rounds decide. It takes arms between which switching is instant and moves nothing else (a
//! latency limit, switches of idle states): a governor that must first settle would be measured while it does.
//!
//! The order of the first slices is drawn, that of the next is its reverse, and so on: every arm comes as often before the
//! baseline as after it, a steady drift cancels within the round, and what an arm leaves to the next shows as a difference of
//! the two orders (see `carry_over`). Each slice settles before it counts. The unit of every test stays the round.

use super::*;

/// How long a slice measures, unless a plan says otherwise.
pub const SLICE_NS: u64 = 750_000_000;
/// Thrown away at the start of each slice, at most.
const SETTLE_NS: u64 = 50_000_000;

/// The slices of one arm in a round.
struct Strand {
    slot: usize,
    yields: Vec<Yield>,
    noise: Vec<(Noise, u64)>,
    slices: Vec<Slice>,
    /// Mean clocks of the slices and how long each was measured; none where it cannot be read.
    clocks: Option<Vec<(u64, u64)>>,
    temperature_mc: Option<i64>,
    is_noise_known: bool,
    refused: Option<String>,
}

impl Strand {
    fn new(slot: usize) -> Strand {
        Strand {
            slot,
            yields: Vec::new(),
            noise: Vec::new(),
            slices: Vec::new(),
            clocks: Some(Vec::new()),
            temperature_mc: None,
            is_noise_known: true,
            refused: None,
        }
    }

    /// Over all slices, each by its length.
    fn frequency_khz(&self) -> Option<u64> {
        let clocks = self.clocks.as_ref()?;
        let sum: u128 = clocks.iter().map(|(khz, ns)| u128::from(*khz) * u128::from(*ns)).sum();
        let all_ns: u128 = clocks.iter().map(|(_, ns)| u128::from(*ns)).sum();
        u64::try_from(sum.checked_div(all_ns)?).ok()
    }
}

impl Runner<'_> {
    /// Into how many slices blocks are divided: an even number, so that both orders are as frequent. None where they stay whole.
    pub(super) fn n_slices(&self, arms: &dyn Arms, workload: &mut dyn Workload) -> Option<usize> {
        let slice_ns = self.design.interleave_ns.filter(|ns| *ns > 0 && arms.is_instant())?;
        let n_pairs = workload.sliced()?.block_ns() / slice_ns / 2;
        usize::try_from(n_pairs.max(1)).ok()?.checked_mul(2)
    }

    pub(super) fn woven(
        &mut self,
        arms: &mut dyn Arms,
        workload: &mut dyn Workload,
        (round, n): (usize, usize),
        random: &mut Random,
    ) -> Result<(), String> {
        let orders = self.orders(random, round, n);
        let mut strands: Vec<Strand> = orders[0].iter().map(|slot| Strand::new(*slot)).collect();
        self.take_kept(round, &mut strands)?;
        workload.begin_round(round);
        'slices: for (at, order) in orders.iter().enumerate() {
            for slot in order {
                let Some(strand) = strands.iter_mut().find(|s| s.slot == *slot && s.refused.is_none()) else {
                    continue;
                };
                self.slice(arms, workload, (round, at, n), strand)?;
                if self.around.stop.load(Ordering::Relaxed) {
                    break 'slices;
                }
            }
        }
        for strand in strands {
            self.close(arms, workload, round, strand)?;
        }
        Ok(())
    }

    /// Drawn in pairs: one order, and its reverse.
    fn orders(&self, random: &mut Random, round: usize, n: usize) -> Vec<Vec<usize>> {
        let pair = |_| {
            let order = self.order(random, round);
            let reverse: Vec<usize> = order.iter().rev().copied().collect();
            [order, reverse]
        };
        (0..n / 2).map(pair).collect::<Vec<_>>().into_iter().flatten().collect()
    }

    /// Blocks of this round that an earlier part of the run has kept need no strand.
    fn take_kept(&mut self, round: usize, strands: &mut Vec<Strand>) -> Result<(), String> {
        while self.done.front().is_some_and(|kept| kept.block.round == round) {
            let Some(kept) = self.done.pop_front() else { break };
            let place = strands.iter().position(|s| self.arm_of(s.slot).1 == kept.block.arm);
            let place =
                place.ok_or_else(|| format!("a kept block of round {} is of no arm: {}", round + 1, kept.block.arm))?;
            strands.remove(place);
            self.take(kept);
        }
        match self.done.front() {
            Some(kept) if !strands.is_empty() => Err(format!(
                "the kept blocks go on with round {} where round {} is not whole",
                kept.block.round.saturating_add(1),
                round + 1
            )),
            _ => Ok(()),
        }
    }

    fn slice(
        &mut self,
        arms: &mut dyn Arms,
        workload: &mut dyn Workload,
        (round, at, n): (usize, usize, usize),
        strand: &mut Strand,
    ) -> Result<(), String> {
        let Around { src, clock, stop, .. } = self.around;
        let (index, id) = self.arm_of(strand.slot);
        let title = if id == AGAIN { AGAIN } else { &self.run.arms[index].title };
        self.tell(format!("round {}, part {} of {n}, {title}", round + 1, at + 1));
        if let Err(why) = enter(arms, index) {
            self.n_refused += 1;
            strand.refused = Some(why.clone());
            return if self.n_refused >= REFUSED_IN_A_ROW { Err(why) } else { Ok(()) };
        }
        self.n_refused = 0;
        workload.warm_up(self.design.warmup_ns.min(SETTLE_NS), stop);
        let cpus = workload.cpus();
        let before = NoiseCounters::read(src, &cpus, clock.own_cpu_ns());
        let running = self.surroundings.clock(src, &cpus, clock.now_ns());
        let start_at_ns = clock.now_ns();
        let Some(sliced) = workload.sliced() else { return Err("the workload cannot be sliced any more".into()) };
        let measured = sliced.slice(at, n, stop)?;
        let value = sliced.whole(vec![measured.clone()]).values.first().copied().flatten();
        let end_at_ns = clock.now_ns();
        let length_ns = end_at_ns.saturating_sub(start_at_ns);
        let noise = NoiseCounters::read(src, &cpus, clock.own_cpu_ns()).since(&before, length_ns);
        let khz = running.and_then(|then| then.mean_khz(&self.surroundings.clock(src, &cpus, end_at_ns)?));
        match (khz, &mut strand.clocks) {
            (Some(khz), Some(clocks)) => clocks.push((khz, length_ns)),
            _ => strand.clocks = None,
        }
        strand.temperature_mc = strand.temperature_mc.max(self.surroundings.temperature_mc(src));
        strand.is_noise_known &= before.is_known();
        strand.noise.push((noise, length_ns));
        strand.slices.push(Slice { window: Window { start_at_ns, end_at_ns }, value });
        strand.yields.push(measured);
        Ok(())
    }

    /// The block of an arm's slices.
    fn close(
        &mut self,
        arms: &dyn Arms,
        workload: &mut dyn Workload,
        round: usize,
        strand: Strand,
    ) -> Result<(), String> {
        let (index, id) = self.arm_of(strand.slot);
        let words = format!("round {}, {id}", round + 1);
        let (n_metrics, is_busy) = (workload.metrics().len(), workload.is_busy());
        let at_ns = self.around.clock.now_ns();
        if let Some(why) = strand.refused {
            return self.finish(refused(round, &id, at_ns, n_metrics, &why), Samples::default(), words);
        }
        // None at all: it was told to end before this arm's first.
        let edges = strand.slices.first().zip(strand.slices.last());
        let window = edges.map_or(Window { start_at_ns: at_ns, end_at_ns: at_ns }, |(first, last)| Window {
            start_at_ns: first.window.start_at_ns,
            end_at_ns: last.window.end_at_ns,
        });
        let frequency_khz = strand.frequency_khz();
        let Some(sliced) = workload.sliced() else { return Err("the workload cannot be sliced any more".into()) };
        let mut measured = sliced.whole(strand.yields);
        measured.values.resize(n_metrics, None);
        let noise = Noise::together(&strand.noise);
        let held = Held {
            window,
            frequency_khz,
            temperature_mc: strand.temperature_mc,
            noise,
            is_noise_known: strand.is_noise_known,
            is_busy,
            slices: strand.slices,
        };
        let (block, samples) = self.block_of(arms, round, (index, &id), measured, held);
        self.finish(block, samples, words)
    }
}
