//! The models fed with what was recorded, sample by sample, beside the clock that the kernel set.

use super::Machine;
use super::events::{Sample, Update};
use std::collections::HashMap;
use wakewatt_models::frequency::load::{Elapsed, Loads};
use wakewatt_models::frequency::{Table, conservative, ondemand, schedutil};

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) n: usize,
    pub(super) n_same: usize,
    /// Samples at which the clock was changed.
    pub(super) n_changed: usize,
    pub(super) n_changed_same: usize,
    /// More to tell.
    pub(super) words: String,
}

impl Followed {
    fn add(&mut self, is_same: bool, is_changed: bool) {
        self.n += 1;
        self.n_same += usize::from(is_same);
        self.n_changed += usize::from(is_changed);
        self.n_changed_same += usize::from(is_changed && is_same);
    }
}

fn table(machine: &Machine) -> Option<Table> {
    Table::new(machine.clocks_khz.clone(), machine.range_khz[2], machine.range_khz[3])
}

/// A governor of one CPU.
enum Sampling {
    Ondemand(ondemand::Ondemand),
    Conservative(conservative::Conservative),
}

/// ondemand or conservative; none where nothing was recorded.
pub(super) fn sampled(
    governor: &str,
    samples: &[Sample],
    machine: &Machine,
    tunable: &dyn Fn(&str) -> Option<u32>,
) -> Option<Followed> {
    let table = table(machine)?;
    let rate_us = tunable("sampling_rate")?;
    let up_threshold = tunable("up_threshold")?;
    let factor = tunable("sampling_down_factor")?;
    let start = |cur_khz: u32| -> Option<Sampling> {
        Some(if governor == "ondemand" {
            let tunables = ondemand::Tunables {
                sampling_rate_us: rate_us,
                up_threshold,
                sampling_down_factor: factor,
                powersave_bias: tunable("powersave_bias")?,
            };
            let hardware = (machine.range_khz[0], machine.range_khz[1]);
            Sampling::Ondemand(ondemand::Ondemand::new(table.clone(), hardware, tunables, 1, cur_khz))
        } else {
            let tunables = conservative::Tunables {
                sampling_rate_us: rate_us,
                up_threshold,
                down_threshold: tunable("down_threshold")?,
                freq_step: tunable("freq_step")?,
                sampling_down_factor: factor,
            };
            let form = conservative::form_in(machine.release).form;
            Sampling::Conservative(conservative::Conservative::new(form, table.clone(), tunables, 1, cur_khz))
        })
    };
    let mut followed = Followed::default();
    let (mut n_loads, mut n_load_same) = (0, 0);
    let mut cpus: HashMap<u32, (Sampling, u32, Loads)> = HashMap::new();
    for sample in samples {
        // Each begins at the lowest clock, where powersave had left it.
        let begin = || Some((start(machine.range_khz[2])?, machine.range_khz[2], Loads::new(1)));
        let (model, cur_khz, loads) = match cpus.entry(sample.cpu) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(begin()?),
        };
        let wall_us = u32::try_from(sample.now.at_us.saturating_sub(sample.before.at_us)).unwrap_or(u32::MAX);
        let idle = |reading: u64| i64::try_from(reading).unwrap_or(i64::MAX);
        let elapsed = [Elapsed { wall_us, idle_us: idle(sample.now.idle_us) - idle(sample.before.idle_us) }];
        let khz = match model {
            Sampling::Ondemand(g) => g.sample(&elapsed).khz,
            Sampling::Conservative(g) => g.sample(&elapsed).khz,
        };
        n_loads += 1;
        n_load_same += usize::from(loads.sample(&elapsed, rate_us).percent.abs_diff(sample.load) <= 1);
        let set_khz = sample.set_khz.unwrap_or(*cur_khz);
        followed.add(khz == set_khz, set_khz != *cur_khz);
        *cur_khz = set_khz;
    }
    followed.words = format!("; load within a point of the kernel's in {n_load_same} of {n_loads}");
    (followed.n > 0).then_some(followed)
}

/// schedutil; none where nothing was recorded.
pub(super) fn schedutil(updates: &[Update], machine: &Machine) -> Option<Followed> {
    let table = table(machine)?;
    let form = schedutil::form_in(machine.release).form;
    let mut followed = Followed::default();
    let mut cpus: HashMap<u32, (schedutil::Schedutil, u32)> = HashMap::new();
    for (at_ns, update) in (1u64..).zip(updates) {
        let low = machine.range_khz[2];
        // The kernel holds the rate itself before it looks at the use.
        let begin = || schedutil::Schedutil::new(form, table.clone(), schedutil::Reference::Present, 0, false, low);
        let (model, cur_khz) = cpus.entry(update.cpu).or_insert_with(|| (begin(), low));
        let khz = model.update(at_ns, update.utilisation, update.was_idle);
        let set_khz = update.set_khz.unwrap_or(*cur_khz);
        followed.add(khz == set_khz, set_khz != *cur_khz);
        *cur_khz = set_khz;
    }
    (followed.n > 0).then_some(followed)
}
