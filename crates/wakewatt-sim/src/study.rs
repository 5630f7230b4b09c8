//! A whole file's worth: every setting, every level of a graduated load, every point of a sweep, and what was published beside it.
//!
//! The points of a sweep that no other beats in both, time at the 99th percentile and watts, are the frontier. Levels are percent of what
//! the first setting can do at most, measured in the model by a closed loop of four clients per CPU without thinking,
//! unless the file says it; so all settings get the same requests.

use crate::exits::Exits;
use crate::law::Law;
use crate::moved::Moved;
use crate::outcome::Outcome;
use crate::server::{Against, ArrivalKind, Arrivals, Published, Quantity, Server, ServerError, Setting};
use crate::span::Span;
use crate::{simulate, simulate_all};
use serde::{Deserialize, Serialize};

/// A field and the values it is to take.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The field: `machine.idle.max_latency`.
    pub field: String,
    /// Its values, as they would stand in the file.
    pub values: Vec<String>,
}

impl Sweep {
    /// From `FIELD=VALUE,VALUE,…`; of numbers also `FIELD=FROM..TO/STEP`.
    pub fn parse(text: &str) -> Result<Sweep, String> {
        let (field, values) =
            text.split_once('=').ok_or("write FIELD=VALUE,VALUE,... such as machine.idle.max_latency=0us,5us,200us")?;
        let values = match range(values) {
            Some(range) => range?,
            None => values.split(',').map(|v| v.trim().to_string()).filter(|v| !v.is_empty()).collect(),
        };
        match values.len() {
            0 => Err("no value in it".into()),
            n if n > MOST_POINTS => Err(format!("{n} values; {MOST_POINTS} at most")),
            _ => Ok(Sweep { field: field.trim().into(), values }),
        }
    }
}

/// More points than this are no picture.
const MOST_POINTS: usize = 2000;

fn range(text: &str) -> Option<Result<Vec<String>, String>> {
    let (from, rest) = text.split_once("..")?;
    let (to, step) = rest.split_once('/')?;
    let number = |t: &str| t.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    let (Some(from), Some(to), Some(step)) = (number(from), number(to), number(step)) else {
        return Some(Err("a range is FROM..TO/STEP, in numbers".into()));
    };
    if step <= 0.0 || to < from || (to - from) / step > MOST_POINTS as f64 {
        return Some(Err(format!("a range rises, in at most {MOST_POINTS} steps")));
    }
    let mut values = Vec::new();
    let mut i = 0.0;
    while from + i * step <= to + step * 1e-9 {
        values.push(format!("{}", from + i * step));
        i += 1.0;
    }
    Some(Ok(values))
}

/// A point: a setting, perhaps a level, perhaps values of swept fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// Name of the setting; `as written` where the file has none.
    pub setting: String,
    /// Level of a graduated load, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level_percent: Option<f64>,
    /// Swept fields with their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub swept: Vec<String>,
    /// Is no other point better in both, the 99th percentile and watts?
    pub is_frontier: bool,
    /// What it came to.
    pub outcome: Outcome,
}

/// A published figure beside the model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// The figure as published.
    pub published: Published,
    /// What the model gives, in the same unit; none where it has no such number.
    pub simulated: Option<f64>,
    /// Half the width of its 95 % interval, where it is a single number.
    pub half: Option<f64>,
    /// How far off, as a part of the published figure; none where that is 0.
    pub off_ratio: Option<f64>,
}

/// Everything a file came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Study {
    /// Name of the file's model.
    pub name: String,
    /// What it stands for, and what was assumed.
    pub about: String,
    /// Requests per second that 100 percent of a graduated load are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_per_s: Option<f64>,
    /// Where the exit latencies come from.
    #[serde(default)]
    pub exits: Exits,
    /// Point by point.
    pub points: Vec<Point>,
    /// Published figures beside the model's.
    pub held: Vec<Held>,
    /// Assumptions that move the result most, where that was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitivity: Vec<Moved>,
}

/// Runs all of it: of the settings those that are named, or all.
pub fn study(server: &Server, sweeps: &[Sweep], only: &[String], n_threads: usize) -> Result<Study, ServerError> {
    let as_written = [Setting { name: "as written".into(), ..Setting::default() }];
    let settings: Vec<&Setting> = match server.setting.is_empty() || server.change.is_some() {
        true => as_written.iter().collect(),
        false => server.setting.iter().filter(|s| only.is_empty() || only.contains(&s.name)).collect(),
    };
    let full_per_s = match server.workload.arrivals.kind {
        ArrivalKind::Steps => Some(full(server, n_threads)?),
        _ => None,
    };
    let (mut points, mut servers) = (Vec::new(), Vec::new());
    for setting in settings {
        for swept in combinations(sweeps) {
            let set: Vec<String> = setting.set.iter().chain(&swept).cloned().collect();
            let changed = server.with(&set)?;
            for (level_percent, leveled) in levels(&changed, full_per_s) {
                points.push((setting.name.clone(), level_percent, swept.clone()));
                servers.push(leveled);
            }
        }
    }
    if servers.len() > MOST_POINTS {
        return Err(ServerError::Value(format!("{} points in all; {MOST_POINTS} at most", servers.len())));
    }
    let outcomes = simulate_all(&servers, n_threads)?;
    let exits = Exits::of(servers.iter().zip(&outcomes));
    let point = |((setting, level_percent, swept), outcome)| Point {
        setting,
        level_percent,
        swept,
        is_frontier: false,
        outcome,
    };
    let mut points: Vec<Point> = points.into_iter().zip(outcomes).map(point).collect();
    mark_frontier(&mut points);
    let held = server.published.iter().map(|p| hold(p, server, &points)).collect();
    let (name, about) = (server.name.clone(), server.about.clone());
    Ok(Study { name, about, full_per_s, exits, points, held, sensitivity: Vec::new() })
}

fn combinations(sweeps: &[Sweep]) -> Vec<Vec<String>> {
    sweeps.iter().fold(vec![Vec::new()], |all, sweep| {
        let with = |before: Vec<String>| {
            let each = move |value: &String| [&before[..], &[format!("{}={value}", sweep.field)]].concat();
            sweep.values.iter().map(each).collect::<Vec<_>>()
        };
        all.into_iter().flat_map(with).take(MOST_POINTS + 1).collect()
    })
}

/// Requests per second that are 100 percent.
fn full(server: &Server, n_threads: usize) -> Result<f64, ServerError> {
    if let Some(per_s) = server.workload.arrivals.per_s {
        return Ok(per_s);
    }
    let first = server.setting.first().map_or_else(|| Ok(server.clone()), |s| server.under(s))?;
    let mut calibration = first;
    calibration.workload.arrivals = Arrivals::closed(4 * calibration.n_cpus(), Law::fixed(Span(0)));
    calibration.change = None;
    calibration.run.replications = calibration.run.replications.min(3);
    // A closed loop without thinking is steady at once.
    calibration.run.duration = Some(calibration.run.counted());
    Ok(simulate(&calibration, n_threads)?.done_per_s.value)
}

fn levels(server: &Server, full_per_s: Option<f64>) -> Vec<(Option<f64>, Server)> {
    let Some(full) = full_per_s else { return vec![(None, server.clone())] };
    let level = |percent: &f64| {
        let mut leveled = server.clone();
        leveled.workload.arrivals = Arrivals::poisson(full * percent / 100.0);
        (Some(*percent), leveled)
    };
    server.workload.arrivals.percent.iter().map(level).collect()
}

/// Marks who is beaten by nobody; of a graduated load each level by itself.
fn mark_frontier(points: &mut [Point]) {
    let worth = |p: &Point| {
        let p99 = p.outcome.quantiles.iter().find(|q| q.q > 0.985 && q.q < 0.995).map(|q| q.ns.value);
        p99.filter(|_| !p.outcome.is_saturated)
            .map(|ns| (p.level_percent.map(f64::to_bits), ns, p.outcome.wall_w.value))
    };
    let all: Vec<_> = points.iter().map(worth).collect();
    for (i, point) in points.iter_mut().enumerate() {
        let Some((level, ns, watts)) = all[i] else { continue };
        let is_beaten =
            all.iter().flatten().any(|(l, n, w)| *l == level && *n <= ns && *w <= watts && (*n < ns || *w < watts));
        point.is_frontier = !is_beaten;
    }
}

/// A number of an outcome and half its interval.
pub(crate) fn number(o: &Outcome, quantity: Quantity) -> Option<(f64, Option<f64>)> {
    let first = o.machines.first()?;
    let n_cpus = first.cpu_use.len() as f64;
    let per_package = (first.cpu_use.len() / usize::try_from(first.n_packages).unwrap_or(1).max(1)).max(1);
    let scaled = |e: crate::outcome::Estimate, by: f64| Some((e.value * by, e.half.map(|h| h * by)));
    let at = |q: f64| o.quantiles.iter().find(|x| (x.q - q).abs() < 1e-9).and_then(|x| scaled(x.ns, 1e-3));
    match quantity {
        Quantity::MeanUs => scaled(o.mean_ns, 1e-3),
        Quantity::P50Us => at(0.5),
        Quantity::P90Us => at(0.9),
        Quantity::P99Us => at(0.99),
        Quantity::DonePerS => scaled(o.done_per_s, 1.0),
        Quantity::UsePercent => scaled(first.use_ratio, 100.0),
        Quantity::SystemCpus => Some((first.use_ratio.value * first.system_ratio.value * n_cpus, None)),
        Quantity::CpuUs => scaled(first.cpu_per_request_ns, 1e-3),
        Quantity::Load => scaled(first.load, 1.0),
        Quantity::WallW => scaled(o.wall_w, 1.0),
        Quantity::DcW => scaled(first.dc_w, 1.0),
        Quantity::PerJoule => scaled(o.per_joule, 1.0),
        Quantity::DeepestPercent => scaled(first.states.last()?.time_ratio, 100.0),
        Quantity::PackageAsleepPercent => scaled(first.package_asleep_ratio, 100.0),
        Quantity::FirstPackagePercent => Some((mean_percent(first.cpu_use.chunks(per_package).next()?), None)),
        Quantity::LastPackagePercent => Some((mean_percent(first.cpu_use.chunks(per_package).last()?), None)),
    }
}

fn mean_percent(used: &[f64]) -> f64 {
    100.0 * used.iter().sum::<f64>() / used.len().max(1) as f64
}

fn hold(published: &Published, server: &Server, points: &[Point]) -> Held {
    let first = server.setting.first().map(|s| s.name.clone());
    let of = |setting: &Option<String>| {
        let name = setting.clone().or_else(|| first.clone());
        let is_it = |p: &&Point| name.as_ref().is_none_or(|n| p.setting == *n) && p.level_percent == published.level;
        points.iter().find(is_it).and_then(|p| number(&p.outcome, published.quantity))
    };
    let own = of(&published.setting);
    let (simulated, half) = match &published.than {
        None => (own.map(|o| o.0), own.and_then(|o| o.1)),
        Some(than) => {
            let pair = own.zip(of(&Some(than.clone())));
            let compared = pair.map(|((a, _), (b, _))| match published.against {
                Against::Difference => a - b,
                Against::Ratio => a / b,
            });
            (compared.filter(|c| c.is_finite()), None)
        }
    };
    let off_ratio = simulated.filter(|_| published.value != 0.0).map(|s| (s - published.value) / published.value.abs());
    Held { published: published.clone(), simulated, half, off_ratio }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_lists_or_ranges() {
        let said = |text| Sweep::parse(text).map(|s| s.values.join(" "));
        assert_eq!(said("a.b=1us, 5us").unwrap(), "1us 5us");
        assert_eq!(said("a=0.1..0.3/0.1").unwrap(), "0.1 0.2 0.30000000000000004");
        assert!(said("a=3..1/1").is_err() && said("a=1..9/0").is_err() && said("a=").is_err() && said("a").is_err());
        assert!(said("a=0..1e9/1").is_err() && said("a=NaN..1/1").is_err());
    }

    #[test]
    fn sweeps_are_combined() {
        let sweep = |text: &str| Sweep::parse(text).unwrap();
        let all = combinations(&[sweep("a=1,2"), sweep("b=x,y,z")]);
        assert_eq!((all.len(), all[4].join(" ")), (6, "a=2 b=y".to_string()));
        assert_eq!(combinations(&[]), [Vec::<String>::new()]);
    }
}
