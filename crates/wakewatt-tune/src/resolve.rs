//! From requests to changes: which file gets which text on this host, in which order, and what cannot be done.
//!
//! Nothing is written here, and a recorded host will do. A request whose files only appear once an earlier one has
//! taken effect (a governor's tunables, a CPU that is offline) is kept as *later* and resolved again by `apply`.

use crate::knob::{Host, Knob, Site, Stage};
use crate::knobs;
use crate::request::{Place, Request};
use crate::then::Then;
use serde::Serialize;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::numa;
use wakewatt_core::nearest::nearest;
use wakewatt_words::say;

/// One file that gets one text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Which one: `policy0`, `cpu3`, `eth0`.
    pub place: String,
    /// The CPUs it reaches.
    pub cpus: CpuSet,
    /// The file to be written.
    pub path: String,
    /// The text there now; none where it could not be read.
    pub before: Option<String>,
    /// The text to write.
    pub to: String,
    /// Both as people say it.
    pub before_shown: String,
    /// The same for the new one.
    pub to_shown: String,
}

impl Change {
    /// Is it so already?
    pub fn is_so(&self) -> bool {
        self.before.as_deref() == Some(self.to.as_str())
    }
}

/// What one request comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The setting as it was asked for.
    pub request: Request,
    /// Id of the knob.
    pub knob: String,
    /// Its place in the order.
    pub stage: Stage,
    /// The changes, in the order they are made.
    pub changes: Vec<Change>,
    /// Places that are left out (an optional request), and why.
    pub left_out: Vec<String>,
    /// Not resolved yet, and what it waits for.
    pub later: Option<String>,
    /// What it also reaches, and other things to know.
    pub notes: Vec<String>,
}

/// Requests resolved on a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resolved {
    /// In the order they are carried out.
    pub steps: Vec<Step>,
    /// What cannot be done here. With any of these, nothing is applied unless asked to go on.
    pub refused: Vec<String>,
}

/// Resolves all requests.
pub fn resolve(host: &Host<'_>, requests: &[Request]) -> Resolved {
    let mut resolved = Resolved::default();
    let then = together(host, requests);
    for request in requests {
        match step_then(host, request, requests, &then) {
            Ok(step) => resolved.steps.push(step),
            Err(why) if request.is_optional => resolved.steps.push(Step {
                request: request.clone(),
                knob: knobs::find(&request.name).map_or(String::new(), |k| k.about().id.into()),
                stage: Stage::Devices,
                changes: Vec::new(),
                left_out: vec![why],
                later: None,
                notes: Vec::new(),
            }),
            Err(why) => resolved.refused.push(why),
        }
    }
    resolved.steps.arrange_by_key(|s| (s.stage, limit_rank(s)));
    resolved
}

/// Of two limits the one that makes room goes first: a rising maximum before the minimum, a falling one after it.
fn limit_rank(step: &Step) -> u8 {
    let number = |text: &str| text.parse::<u64>().ok();
    let is_rising = step.changes.iter().any(|c| c.before.as_deref().and_then(number) < number(&c.to));
    match step.knob.rsplit('.').next() {
        Some("max") => {
            if is_rising {
                0
            } else {
                2
            }
        }
        _ => 1,
    }
}

/// The machine as it will be once the requests that others hang on are made.
fn together<'a>(host: &Host<'a>, requests: &[Request]) -> Then<'a> {
    let mut then = Then::now(host.source);
    let stage = |request: &&Request| knobs::find(&request.name).map(|knob| knob.about().stage);
    let mut deciding: Vec<&Request> =
        requests.iter().filter(|r| stage(r).is_some_and(|s| (Stage::Governor..=Stage::Uncore).contains(&s))).collect();
    deciding.arrange_by_key(|request| stage(request));
    if deciding.len() < 2 {
        // One alone hangs on nothing that the plan makes.
        return then;
    }
    // Twice, because of two limits that move together either may be asked for first.
    for request in deciding.iter().chain(&deciding) {
        let Some(knob) = knobs::find(&request.name) else { continue };
        for site in sites_of(host, knob, request).unwrap_or_default() {
            if let Ok(change) = change(host, knob, &site, request, &then) {
                then.write(&change.path, change.before.as_deref(), &change.to);
            }
        }
    }
    then
}

/// Resolves one request, in the company of the others.
pub fn step(host: &Host<'_>, request: &Request, all: &[Request]) -> Result<Step, String> {
    step_then(host, request, all, &together(host, all))
}

fn step_then(host: &Host<'_>, request: &Request, all: &[Request], then: &Then<'_>) -> Result<Step, String> {
    let knob = knobs::find(&request.name).ok_or_else(|| unknown(&request.name))?;
    let about = knob.about();
    let mut step = Step {
        request: request.clone(),
        knob: about.id.into(),
        stage: about.stage,
        changes: Vec::new(),
        left_out: Vec::new(),
        later: None,
        notes: Vec::new(),
    };
    let sites = match sites_of(host, knob, request) {
        Ok(sites) => sites,
        Err(why) => match waits_for(host, knob, request, all) {
            Some(other) => {
                step.later = Some(say!("appears once {other} is set"));
                return Ok(step);
            }
            None => return Err(format!("{request}: {why}")),
        },
    };
    let asked = asked_cpus(host, &request.place)?;
    for site in sites {
        match change(host, knob, &site, request, then) {
            Ok(change) => step.changes.push(change),
            Err(why) if request.is_optional => step.left_out.push(format!("{}: {why}", site.place)),
            Err(why) => return Err(format!("{request}: {}: {why}", site.place)),
        }
        if let Some(asked) = &asked {
            let also = site.cpus.minus(asked);
            if !also.is_empty() {
                step.notes.push(say!("{place} also reaches CPUs {also}", place = site.place));
            }
        }
    }
    Ok(step)
}

/// The sites a request names.
pub fn sites_of(host: &Host<'_>, knob: &dyn Knob, request: &Request) -> Result<Vec<Site>, String> {
    let all = knob.sites(host)?;
    let named: Vec<Site> = all.iter().filter(|s| s.name == request.name).cloned().collect();
    if named.is_empty() {
        let mut names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
        names.dedup();
        let hint = nearest(&request.name, names.iter().copied())
            .map_or_else(|| say!("there are {names}", names = names.join(", ")), |near| say!("did you mean {near}?"));
        return Err(say!("not on this host; {hint}"));
    }
    let asked = asked_cpus(host, &request.place)?;
    let here: Vec<Site> = named
        .iter()
        .filter(|site| match (&request.place, &asked) {
            (Place::Named(place), _) => site.is_called(place),
            (_, Some(asked)) => !site.cpus.and(asked).is_empty(),
            _ => true,
        })
        .cloned()
        .collect();
    if here.is_empty() {
        let mut places: Vec<&str> = named.iter().map(|s| s.place.as_str()).take(8).collect();
        places.dedup();
        let (places, more) = (places.join(", "), if named.len() > 8 { " …" } else { "" });
        return Err(say!("no such place; it is set at {places}{more}"));
    }
    Ok(here)
}

/// The first of the values asked for that this place takes, on a machine as it will be by then.
fn change(host: &Host<'_>, knob: &dyn Knob, site: &Site, request: &Request, then: &Then<'_>) -> Result<Change, String> {
    if let Some(why) = &site.refusal {
        return Err(why.clone());
    }
    let mut last = String::new();
    for word in &request.to {
        let taken = knob.encode(host, site, word).and_then(|to| match knob.refusal(host, then, site, &to) {
            Some(why) => Err(why),
            None => Ok(to),
        });
        match taken {
            Ok(to) => {
                let shown = |text: &Option<String>| {
                    text.as_ref().map_or_else(
                        || site.unread.clone().unwrap_or_else(|| "unknown".into()),
                        |t| knob.decode(site, t),
                    )
                };
                return Ok(Change {
                    place: site.place.clone(),
                    cpus: site.cpus.clone(),
                    path: site.path.clone(),
                    before: site.now.clone(),
                    before_shown: shown(&site.now),
                    to_shown: knob.decode(site, &to),
                    to,
                });
            }
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// The CPUs a place means; none where it is no matter of CPUs.
pub fn asked_cpus(host: &Host<'_>, place: &Place) -> Result<Option<CpuSet>, String> {
    match place {
        Place::Everywhere | Place::Named(_) => Ok(None),
        Place::Cpus(cpus) => {
            let mut known = CpuSet::new();
            host.facts.cpus.all().for_each(|cpu| known.insert(cpu));
            let strange = cpus.minus(&known);
            if strange.is_empty() {
                Ok(Some(cpus.clone()))
            } else {
                Err(say!("cpus:{cpus}: this host has no CPU {strange}"))
            }
        }
        Place::Package(n) => {
            let packages = host.facts.topology.packages();
            let found = packages.iter().find(|(id, _)| id == n).map(|(_, cpus)| cpus.clone());
            found.map(Some).ok_or_else(|| {
                say!("package:{n}: this host has {n_packages} packages, counted from 0", n_packages = packages.len())
            })
        }
        Place::Node(n) => {
            let node = host.facts.memory.nodes.iter().find(|node| node.id == *n);
            let cpus = node.and_then(|node| node.cpus.get()).cloned();
            cpus.map(Some).ok_or_else(|| say!("{folder}/node{n}: no such NUMA node on this host", folder = numa::ROOT))
        }
        Place::Cgroup(path) => {
            let files = ["cpuset.cpus.effective", "cpuset.effective_cpus"];
            let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpuset"];
            let mut tried = String::new();
            // A group without the cpuset controller uses what its parent may use.
            let mut folder = path.as_str();
            loop {
                for (root, file) in roots.iter().flat_map(|r| files.iter().map(move |f| (r, f))) {
                    let file = format!("{root}/{folder}/{file}").replace("//", "/");
                    match host.text(&file).and_then(|t| CpuSet::parse(t.trim()).ok()) {
                        Some(cpus) if !cpus.is_empty() => return Ok(Some(cpus)),
                        _ => tried = file,
                    }
                }
                let is_there = roots.iter().any(|r| host.source.list(&format!("{r}/{folder}")).is_ok());
                if !is_there || folder.is_empty() {
                    return Err(say!("cgroup:{path}: {tried}: cannot be read; the path is below /sys/fs/cgroup"));
                }
                folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
            }
        }
    }
}

/// The request that makes this one's files appear.
fn waits_for(host: &Host<'_>, knob: &dyn Knob, request: &Request, all: &[Request]) -> Option<String> {
    let stage_of = |r: &Request| knobs::find(&r.name).map(|k| k.about().stage);
    let own = knob.about().stage;
    let needed = knob.needs(&request.name);
    all.iter()
        .find(|other| match (&needed, stage_of(other)) {
            (Some((name, value)), _) => other.name == *name && other.to.iter().any(|t| t == value),
            // A driver or a CPU that comes may bring anything; one that is there already brings nothing.
            (None, Some(stage @ (Stage::Online | Stage::Driver))) => {
                stage < own && step(host, other, &[]).is_ok_and(|s| s.changes.iter().any(|c| !c.is_so()))
            }
            _ => false,
        })
        .map(ToString::to_string)
}

fn unknown(name: &str) -> String {
    let ids = knobs::KNOBS.iter().map(|k| k.about().id);
    match nearest(name, ids) {
        Some(near) => say!("{name}: no such knob; did you mean {near}? (wakewatt tune knobs lists them)"),
        None => say!("{name}: no such knob (wakewatt tune knobs lists them)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn host(tree: &Tree) -> Host<'_> {
        Host::read(tree)
    }

    fn machine() -> Tree {
        let mut text =
            String::from("//- /sys/devices/system/cpu/online\n0-3\n//- /sys/devices/system/cpu/present\n0-3\n");
        for policy in [0, 2] {
            let folder = format!("/sys/devices/system/cpu/cpufreq/policy{policy}");
            for (file, value) in [
                ("scaling_governor", "powersave".to_string()),
                ("scaling_available_governors", "performance powersave".into()),
                ("affected_cpus", format!("{policy} {}", policy + 1)),
                ("scaling_min_freq", "800000".into()),
                ("scaling_max_freq", "2000000".into()),
                ("cpuinfo_min_freq", "800000".into()),
                ("cpuinfo_max_freq", "3000000".into()),
            ] {
                text += &format!("//- {folder}/{file}\n{value}\n");
            }
        }
        Tree::from_text(&text)
    }

    fn requests(texts: &[&str]) -> Vec<Request> {
        texts.iter().map(|t| Request::parse(t).unwrap()).collect()
    }

    #[test]
    fn limits_come_in_the_order_that_makes_room_and_after_the_governor() {
        let tree = machine();
        let order = |texts: &[&str]| {
            let resolved = resolve(&host(&tree), &requests(texts));
            assert_eq!(resolved.refused, Vec::<String>::new());
            resolved.steps.iter().map(|s| s.knob.clone()).collect::<Vec<_>>()
        };
        assert_eq!(order(&["freq.min=2.5GHz", "freq.max=3GHz"]), ["freq.max", "freq.min"]);
        assert_eq!(
            order(&["freq.max=1GHz", "freq.min=min", "freq.governor=performance"]),
            ["freq.governor", "freq.min", "freq.max"]
        );
    }

    #[test]
    fn a_place_narrows_and_says_what_else_it_reaches() {
        let tree = machine();
        let resolved = resolve(&host(&tree), &requests(&["freq.governor@cpus:1=performance"]));
        let step = &resolved.steps[0];
        assert_eq!((step.changes.len(), step.notes[0].as_str()), (1, "policy0 also reaches CPUs 0"));
    }

    #[test]
    fn refusals_name_what_would_be_taken() {
        let tree = machine();
        let refuse = |text: &str| resolve(&host(&tree), &requests(&[text])).refused.join("\n");
        assert!(refuse("freq.governer=performance").contains("did you mean freq.governor?"));
        assert!(refuse("freq.governor=ondemand").contains("none of performance, powersave"));
        assert!(refuse("freq.governor@policy9=performance").contains("it is set at policy0, policy2"));
        assert!(refuse("freq.governor@cpus:9=performance").contains("no CPU 9"));
        assert!(refuse("freq.governor@cgroup:nope=performance").contains("cannot be read"));
        let mut either = requests(&["freq.governor=ondemand|performance"]);
        assert_eq!(resolve(&host(&tree), &either).steps[0].changes[0].to, "performance");
        either[0].to.pop();
        either[0].is_optional = true;
        let resolved = resolve(&host(&tree), &either);
        assert_eq!((resolved.refused.len(), resolved.steps[0].left_out.len()), (0, 2));
    }
}
