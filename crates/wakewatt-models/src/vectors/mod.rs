//! Golden decisions: what kernels' own governor code answered, and whether a model answers the same.
//!
//! A file is JSON lines. `config` starts a fresh governor; `select`, `reflect` and `reject` are an idle governor's life, `sample` a
//! frequency governor's; `want_…` is the kernel's answer. The core does not ask about the tick where it is stopped already,
//! so that answer counts only where it is not.

mod line;

use crate::frequency::Step;
use crate::frequency::conservative::{self, Conservative};
use crate::frequency::load::Elapsed;
use crate::frequency::ondemand::{self, Ondemand};
use crate::idle::{Governor, Kind, Left, Moment};
use crate::kernel::Kernel;
use crate::table::{Disabled, State, Table};
use crate::tick::Tick;
use line::{IdleConfig, Line, SamplingConfig};

/// Why a line cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    /// Not a line of this format.
    #[error("it is not a vector: {0}")]
    NotAVector(String),
    /// A step before any configuration, or of the other family.
    #[error("`{0}` fits no governor configured before it")]
    OutOfPlace(&'static str),
    /// A configuration that no model has.
    #[error("no model for it: {0}")]
    NoModel(String),
}

/// What a line came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to compare.
    Followed,
    /// The model decided as the kernel did.
    Same,
    /// It did not: in words.
    Different(String),
}

/// A governor on its way through a file.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    running: Option<Running>,
}

#[derive(Clone, Debug)]
enum Running {
    Idle(Box<Governor>),
    Ondemand(Box<Ondemand>),
    Conservative(Box<Conservative>),
}

impl Replay {
    /// Follows one line.
    pub fn line(&mut self, text: &str) -> Result<Verdict, VectorError> {
        let line: Line = serde_json::from_str(text).map_err(|e| VectorError::NotAVector(e.to_string()))?;
        match line {
            Line::Config(config) => {
                self.running = None;
                self.running = Some(Replay::start(&config)?);
                Ok(Verdict::Followed)
            }
            Line::Select(select) => {
                let Some(Running::Idle(governor)) = &mut self.running else {
                    return Err(VectorError::OutOfPlace("select"));
                };
                let said = governor.select(&Moment {
                    sleep_ns: select.sleep_ns,
                    next_event_ns: select.delta_tick_ns,
                    is_tick_stopped: select.tick_stopped,
                    latency_limit_ns: select.latency_req_ns,
                    n_iowait: select.iowait,
                    utilisation: select.util,
                    disabled: Disabled::of(select.disabled),
                    clock_ns: select.clock_ns,
                });
                // Where the kernel's answer came without the timers, the model must not have needed them either.
                let is_asked = select.sleep_length_queried.is_none_or(|want| said.asked_timers == want);
                let is_same = is_asked
                    && said.state == select.want_idx
                    && (select.tick_stopped || select.want_stop_tick.is_none_or(|want| said.stop_tick == want));
                Ok(if is_same {
                    Verdict::Same
                } else {
                    Verdict::Different(format!(
                        "the kernel chose state {} (stop tick: {:?}), the model state {} (stop tick: {})",
                        select.want_idx, select.want_stop_tick, said.state, said.stop_tick
                    ))
                })
            }
            Line::Reflect(reflect) => {
                let Some(Running::Idle(governor)) = &mut self.running else {
                    return Err(VectorError::OutOfPlace("reflect"));
                };
                governor.reflect(&Left {
                    state: reflect.idx,
                    residency_ns: reflect.residency_ns,
                    is_tick_fired: reflect.got_tick,
                    is_poll_limit_hit: reflect.poll_time_limit,
                    clock_ns: reflect.clock_ns,
                });
                Ok(Verdict::Followed)
            }
            Line::Reject => {
                let Some(Running::Idle(governor)) = &mut self.running else {
                    return Err(VectorError::OutOfPlace("reject"));
                };
                governor.reject();
                Ok(Verdict::Followed)
            }
            Line::Sample(sample) => {
                let cpus: Vec<Elapsed> =
                    sample.idle_us.iter().map(|idle| Elapsed { wall_us: sample.elapsed_us, idle_us: *idle }).collect();
                let said = match &mut self.running {
                    Some(Running::Ondemand(governor)) => governor.sample(&cpus),
                    Some(Running::Conservative(governor)) => governor.sample(&cpus),
                    _ => return Err(VectorError::OutOfPlace("sample")),
                };
                let want = Step { khz: sample.want_khz, next_delay_us: sample.want_next_delay_us };
                Ok(if said == want {
                    Verdict::Same
                } else {
                    Verdict::Different(format!(
                        "the kernel chose {} kHz for {} us, the model {} kHz for {} us",
                        want.khz, want.next_delay_us, said.khz, said.next_delay_us
                    ))
                })
            }
        }
    }

    fn start(config: &serde_json::Value) -> Result<Running, VectorError> {
        let name = config.get("governor").and_then(serde_json::Value::as_str).unwrap_or_default();
        let bad = |e: serde_json::Error| VectorError::NotAVector(e.to_string());
        if let Some(kind) = Kind::of_name(name) {
            let config: IdleConfig = serde_json::from_value(config.clone()).map_err(bad)?;
            return idle(kind, &config);
        }
        match name {
            "ondemand" | "conservative" => {
                let read: SamplingConfig = serde_json::from_value(config.clone()).map_err(bad)?;
                sampling(name, read)
            }
            _ => Err(VectorError::NoModel(format!("governor `{name}`"))),
        }
    }
}

fn no_model(why: impl ToString) -> VectorError {
    VectorError::NoModel(why.to_string())
}

fn idle(kind: Kind, config: &IdleConfig) -> Result<Running, VectorError> {
    let kernel = Kernel::parse(&config.kernel).map_err(no_model)?;
    let states: Vec<State> =
        config.states.iter().map(|s| State { is_polling: s.poll, ..State::sleeping_us(s.lat_us, s.res_us) }).collect();
    let table = Table::new(&states).map_err(no_model)?;
    let tick = Tick::of_hz(config.hz).ok_or_else(|| no_model(format!("{} ticks a second", config.hz)))?;
    Ok(Running::Idle(Box::new(Governor::new(kind, kernel.release, table, tick))))
}

fn sampling(name: &str, c: SamplingConfig) -> Result<Running, VectorError> {
    use crate::frequency::Table;
    let kernel = Kernel::parse(&c.kernel).map_err(no_model)?;
    let table = Table::new(c.freq_table_khz, c.min, c.max).ok_or_else(|| no_model("a table without a clock"))?;
    if name == "ondemand" {
        let tunables = ondemand::Tunables {
            sampling_rate_us: c.sampling_rate_us,
            up_threshold: c.up_threshold,
            sampling_down_factor: c.sampling_down_factor,
            powersave_bias: c.powersave_bias,
        };
        return Ok(Running::Ondemand(Box::new(Ondemand::new(table, (c.min, c.max), tunables, c.cpus, c.cur))));
    }
    let tunables = conservative::Tunables {
        sampling_rate_us: c.sampling_rate_us,
        up_threshold: c.up_threshold,
        down_threshold: c.down_threshold,
        freq_step: c.freq_step,
        sampling_down_factor: c.sampling_down_factor,
    };
    let form = conservative::form_in(kernel.release).form;
    Ok(Running::Conservative(Box::new(Conservative::new(form, table, tunables, c.cpus, c.cur))))
}

#[cfg(test)]
mod tests;
