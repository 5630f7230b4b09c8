//! Gates asked: a query, changed nodes beside unchanged ones, a command here, an experiment on a node. No answer is never a pass.

use super::{now_ms, store};
use crate::cli::rollout::RolloutArgs;
use std::io::Read;
use std::time::{Duration, Instant};
use wakewatt_carry::child::{self, Input, Trouble};
use wakewatt_carry::rollout::Judge;
use wakewatt_carry::{Carrier, NodeName, Order, Privilege};
use wakewatt_core::visible;
use wakewatt_fleet::rollout::did::{self, Group};
use wakewatt_fleet::rollout::gate::{Verdict, Word, of_difference, of_ratio, of_values};
use wakewatt_fleet::rollout::plan::{Compare, Gate, GateKind};
use wakewatt_fleet::rollout::state::{Is, Rollout};
use wakewatt_fleet::series::window::windows;
use wakewatt_fleet::series::{Door, Nothing, Refusal, Wanted, gather, places, values_at};
use wakewatt_host::environment;

/// More windows than this are no gate.
const MOST_WINDOWS: u64 = 5_000;
/// As long as Linux takes for one variable, with room.
const MOST_NAMES: usize = 100_000;

/// All kinds.
pub(super) struct Gates<'a> {
    pub(super) args: &'a RolloutArgs,
    pub(super) carrier: &'a dyn Carrier,
}

impl Judge for Gates<'_> {
    fn judge(&self, gate: &Gate, r: &Rollout) -> Verdict {
        let within = Duration::from_millis(gate.within_ms);
        let verdict = match &gate.kind {
            GateKind::Promql { query, below, above } => self.door(within).and_then(|door| {
                let answer = values_at(&door, &with_nodes(query, r), now_ms());
                answer.map(|values| of_values(&values, *below, *above)).map_err(|why| no_answer(&why.to_string()))
            }),
            GateKind::Compare(compare) => self.door(within).and_then(|door| beside(&door, compare, r)),
            GateKind::Command { argv } => command(argv, within, r),
            GateKind::Experiment { plan, arm, metric, at_most_ratio } => {
                self.experiment((plan, arm, metric), *at_most_ratio, within, r)
            }
        };
        let verdict = verdict.unwrap_or_else(|verdict| verdict);
        Verdict { why: visible::line(&verdict.why).into_owned(), ..verdict }
    }
}

fn no_answer(why: &str) -> Verdict {
    Verdict::new(Word::NoAnswer, why)
}

fn cannot_tell(why: impl Into<String>) -> Verdict {
    Verdict::new(Word::CannotTell, why)
}

/// A store that is asked nothing more once the gate's time is up.
struct InTime {
    store: store::Store,
    until: Instant,
}

impl Door for InTime {
    fn ask(&self, path: &str) -> Result<Box<dyn Read + '_>, Refusal> {
        if Instant::now() > self.until {
            return Err(Refusal::Final("the gate's time is up (within)".into()));
        }
        self.store.ask(path)
    }
}

impl Gates<'_> {
    fn door(&self, within: Duration) -> Result<InTime, Verdict> {
        let url = self.args.prometheus.as_deref().ok_or_else(|| no_answer("no store is named (--prometheus)"))?;
        let store = store::open(&self.args.store, url).map_err(|why| no_answer(&why.to_string()))?;
        Ok(InTime { store, until: Instant::now() + within })
    }

    fn experiment(
        &self,
        (plan, arm, metric): (&str, &str, &str),
        at_most_ratio: f64,
        within: Duration,
        r: &Rollout,
    ) -> Result<Verdict, Verdict> {
        let changed = r.of_stage(r.stage).find(|(_, n)| n.is == Is::Applied).map(|(_, n)| n.name.clone());
        let node =
            changed.and_then(|name| NodeName::new(name).ok()).ok_or_else(|| cannot_tell("no node was changed"))?;
        let order = Order {
            arguments: ["experiment", plan, "--json"].map(String::from).to_vec(),
            input: Vec::new(),
            privilege: Privilege::Changes,
            within,
            at_most: 64 << 20,
            lives_on: Duration::ZERO,
        };
        let reply = self.carrier.run(&node, &order).map_err(|why| no_answer(&why.to_string()))?;
        let ended = || cannot_tell(format!("{node}: the experiment ended with {}: {}", reply.code, reply.said));
        let told: serde_json::Value = serde_json::from_slice(&reply.output).map_err(|_| ended())?;
        let effects = told.get("comparisons").and_then(serde_json::Value::as_array).ok_or_else(ended)?;
        let is_it = |e: &&serde_json::Value| e["effect"]["arm"] == *arm && e["effect"]["metric"] == *metric;
        let found = effects.iter().find(is_it);
        let found = found.ok_or_else(|| cannot_tell(format!("{node}: it compared no {metric} of {arm}")))?;
        let number = |key: &str| found["effect"][key].as_f64().filter(|n| n.is_finite());
        match (number("ratio"), number("ratio_low"), number("ratio_high")) {
            (Some(ratio), Some(low), Some(high)) => {
                Ok(of_ratio(&format!("{node}: {metric} of {arm}"), (ratio, low, high), at_most_ratio))
            }
            _ => Err(cannot_tell(format!("{node}: {metric} of {arm} has no interval"))),
        }
    }
}

/// Names of changed and of unchanged nodes.
fn names(r: &Rollout) -> (Vec<&str>, Vec<&str>) {
    let of =
        |is_wanted: &dyn Fn(Is) -> bool| r.nodes.iter().filter(|n| is_wanted(n.is)).map(|n| n.name.as_str()).collect();
    (of(&|is| matches!(is, Is::Applied | Is::Confirming | Is::Confirmed)), of(&|is| is == Is::Waiting))
}

/// `$changed` and `$unchanged` as regular expressions; a store may know nodes with domain and port. Names hold no character but
/// the dot that an expression would read as another.
fn with_nodes(query: &str, r: &Rollout) -> String {
    let one_of = |names: &[&str]| match names.is_empty() {
        true => "no-node".to_string(),
        false => {
            let all: Vec<String> = names.iter().map(|n| n.replace('.', "[.]")).collect();
            format!("(?:{})(?:[.][^:]*)?(?::[0-9]+)?", all.join("|"))
        }
    };
    let (changed, unchanged) = names(r);
    query.replace("$changed", &one_of(&changed)).replace("$unchanged", &one_of(&unchanged))
}

/// This stage's nodes beside those that no stage has reached.
fn beside(door: &dyn Door, compare: &Compare, r: &Rollout) -> Result<Verdict, Verdict> {
    let stage = r.stages.get(r.stage).ok_or_else(|| cannot_tell("there is no such stage"))?;
    let (Some(from_ms), Some(to_ms)) = (stage.began_ms, stage.changed_ms) else {
        return Err(cannot_tell("the stage was not changed"));
    };
    let until_ms = now_ms();
    let length_ms = until_ms.saturating_sub(from_ms.saturating_sub(compare.before_ms));
    let n_windows = (length_ms / compare.window_ms).min(MOST_WINDOWS);
    let wanted = Wanted {
        label: compare.node_label.clone(),
        matchers: compare.select.clone(),
        windows: windows(until_ms, compare.window_ms / 1000, usize::try_from(n_windows).unwrap_or(0)),
        work: compare.work.clone(),
        latency: compare.latency.clone(),
        cpu: compare.cpu.clone(),
        power: compare.power.clone(),
        peers_by: Vec::new(),
    };
    let found = gather(door, &wanted).map_err(|why| match why {
        Nothing::Refused(why) => no_answer(&why.to_string()),
        other => cannot_tell(other.to_string()),
    })?;
    let mut groups = vec![Group::Aside; found.table.nodes.len()];
    let mut put = |names: &[&str], group: Group| {
        let all = places(&found.table.nodes, names);
        all.iter().flatten().for_each(|at| groups[*at] = group);
        all.iter().flatten().count()
    };
    let changed: Vec<&str> =
        r.of_stage(r.stage).filter(|(_, n)| n.is == Is::Applied).map(|(_, n)| n.name.as_str()).collect();
    put(&names(r).1, Group::Unchanged);
    if put(&changed, Group::Changed) == 0 {
        return Err(cannot_tell("the store knows none of the changed nodes by the names they have here (node_label)"));
    }
    let difference = did::of(&found.table, compare.measure, &groups, from_ms, to_ms).map_err(cannot_tell)?;
    Ok(of_difference(compare.measure.title(), &difference, compare.at_most_ratio))
}

/// A command of the operator's, here. It is told the changed nodes in `WAKEWATT_CHANGED`, with blanks between.
fn command(argv: &[String], within: Duration, r: &Rollout) -> Result<Verdict, Verdict> {
    let failed = |why: String| Verdict::new(Word::Failed, why);
    let (program, arguments) = argv.split_first().ok_or_else(|| failed("no command".into()))?;
    let mut command = environment::users(program).map_err(|why| failed(why.to_string()))?;
    let names = names(r).0.join(" ");
    if names.len() >= MOST_NAMES {
        return Err(cannot_tell("more changed nodes than a command can be told in WAKEWATT_CHANGED"));
    }
    command.args(arguments).env("WAKEWATT_CHANGED", names);
    match child::run(command, Input::Bytes(Vec::new()), within, 1 << 20) {
        Ok(ended) => Ok(match ended.code {
            Some(0) => Verdict::new(Word::Passed, format!("{program} ended with 0")),
            Some(3) => cannot_tell(format!("{program} ended with 3: {}", ended.said)),
            Some(code) => failed(format!("{program} ended with {code}: {}", ended.said)),
            None => failed(format!("{program} was ended by a signal")),
        }),
        // It was to say in time that all is well.
        Err(why @ (Trouble::NotStarted(_) | Trouble::TimedOut(_) | Trouble::TooLong(_))) => {
            Err(failed(format!("{program} {why}")))
        }
    }
}

#[cfg(test)]
mod tests;
