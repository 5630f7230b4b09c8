//! Which CPUs serve and which ask.
//!
//! Clients on the server's CPUs wake them, warm their caches and take their time, so that neither latency nor CPU time is
//! the server's alone. Where there are at least two cores the last quarter of them asks and the rest serves; whole cores,
//! because two CPUs of one core share its idle state. Where there is one core only, that is said.

use std::collections::BTreeMap;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::source::Source;

/// Who runs where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The server's.
    pub server: CpuSet,
    /// The clients'.
    pub clients: CpuSet,
    /// What to know about it; none where they are well apart.
    pub remark: Option<String>,
}

/// Divides these CPUs, keeping to what was named. A server elsewhere leaves all to the clients.
pub fn divide(
    src: &dyn Source,
    allowed: &CpuSet,
    server: Option<&CpuSet>,
    clients: Option<&CpuSet>,
    has_server: bool,
) -> Places {
    if !has_server {
        return Places { clients: clients.unwrap_or(allowed).clone(), ..Places::default() };
    }
    let cores = cores(src, allowed);
    let named = match (server, clients) {
        (Some(server), Some(clients)) => Some((server.clone(), clients.clone())),
        (Some(server), None) => Some((server.clone(), rest(allowed, server))),
        (None, Some(clients)) => Some((rest(allowed, clients), clients.clone())),
        (None, None) => None,
    };
    let (server, clients) = named.unwrap_or_else(|| {
        let n_asking = (cores.len() / 4).max(1);
        let asking = match cores.len() {
            0 | 1 => allowed.iter().last().into_iter().collect(),
            n => cores[n - n_asking..].iter().fold(CpuSet::new(), |all, core| all.union(core)),
        };
        (rest(allowed, &asking), asking)
    });
    let both = |core: &&CpuSet| !core.and(&server).is_empty() && !core.and(&clients).is_empty();
    let remark = match (server.and(&clients), cores.iter().find(both)) {
        (shared, _) if !shared.is_empty() => Some(format!(
            "clients and server share CPUs {shared}: latency and CPU time hold the clients' work too; give both more CPUs, or ask from another host with --url"
        )),
        (_, Some(core)) => Some(format!(
            "clients and server share a core (CPUs {core} are its threads): each slows the other and keeps it awake"
        )),
        _ => None,
    };
    Places { server, clients, remark }
}

/// What is left; all of it where nothing would be.
fn rest(allowed: &CpuSet, without: &CpuSet) -> CpuSet {
    let rest = allowed.minus(without);
    if rest.is_empty() { allowed.clone() } else { rest }
}

impl Places {
    /// Which of them are offline now, in words. Where the kernel does not say, nothing is.
    pub fn offline(&self, src: &dyn Source) -> Vec<String> {
        let Some(online) = online(src) else { return Vec::new() };
        let of = |whose: &str, cpus: &CpuSet| {
            let (n_off, n) = (cpus.minus(&online).len(), cpus.len());
            let (plural, are) = (if n == 1 { "" } else { "s" }, if n_off == 1 { "is" } else { "are" });
            (n_off > 0).then(|| format!("{n_off} of {n} {whose} CPU{plural} {are} offline"))
        };
        [of("server", &self.server), of("client", &self.clients)].into_iter().flatten().collect()
    }

    /// CPUs that the clients have now, at least the one they run on.
    pub fn n_client_cpus(&self, src: &dyn Source) -> usize {
        online(src).map_or(self.clients.len(), |online| self.clients.and(&online).len()).max(1)
    }
}

fn online(src: &dyn Source) -> Option<CpuSet> {
    let bytes = src.read("/sys/devices/system/cpu/online").ok()?;
    CpuSet::parse(String::from_utf8_lossy(&bytes).trim()).ok()
}

/// The CPUs of each core, by the first; a CPU that says nothing is a core of its own.
fn cores(src: &dyn Source, allowed: &CpuSet) -> Vec<CpuSet> {
    let mut cores: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cpu in allowed.iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = src.read(&path).ok().and_then(|text| CpuSet::parse(String::from_utf8_lossy(&text).trim()).ok());
        let siblings = siblings.filter(|s| s.contains(cpu)).unwrap_or_else(|| [cpu].into_iter().collect());
        cores.entry(siblings.first().unwrap_or(cpu)).or_default().insert(cpu);
    }
    cores.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn host(cores: &[&str]) -> (Tree, CpuSet) {
        let (mut text, mut all) = (String::new(), CpuSet::new());
        for core in cores {
            for cpu in CpuSet::parse(core).unwrap().iter() {
                all.insert(cpu);
                text += &format!("//- /sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list\n{core}\n");
            }
        }
        (Tree::from_text(&text), all)
    }

    #[test]
    fn cpus_that_are_offline_are_told() {
        let set = |text: &str| CpuSet::parse(text).unwrap();
        let places = Places { server: set("0-1"), clients: set("2"), remark: None };
        let host = |online: &str| Tree::from_text(&format!("//- /sys/devices/system/cpu/online\n{online}\n"));
        assert_eq!(places.offline(&host("0-3")), Vec::<String>::new());
        assert_eq!(places.offline(&host("0,3")), ["1 of 2 server CPUs is offline", "1 of 1 client CPU is offline"]);
        assert_eq!(places.offline(&host("2"))[0], "2 of 2 server CPUs are offline");
        assert_eq!((places.offline(&Tree::default()), places.n_client_cpus(&host("0"))), (Vec::new(), 1));
    }

    #[test]
    fn whole_cores_are_divided() {
        let set = |text: &str| CpuSet::parse(text).unwrap();
        let divided = |cores: &[&str]| {
            let (src, all) = host(cores);
            let p = divide(&src, &all, None, None, true);
            (p.server.to_string(), p.clients.to_string(), p.remark.unwrap_or_default())
        };
        assert_eq!(divided(&["0", "1"]), ("0".into(), "1".into(), String::new()));
        assert_eq!(divided(&["0,4", "1,5", "2,6", "3,7"]), ("0-2,4-6".into(), "3,7".into(), String::new()));
        let (server, clients, said) = divided(&["0-1"]);
        assert_eq!((server.as_str(), clients.as_str()), ("0", "1"));
        assert!(said.contains("share a core (CPUs 0-1"), "{said}");
        assert!(divided(&["0"]).2.contains("share CPUs 0"));
        let (src, all) = host(&["0", "1", "2"]);
        let named = divide(&src, &all, Some(&set("0-1")), Some(&set("1-2")), true);
        assert!(named.remark.unwrap().contains("share CPUs 1:"));
        assert_eq!(divide(&src, &all, None, Some(&set("0")), true).server, set("1-2"));
        let away = divide(&src, &all, None, None, false);
        assert_eq!((away.server, away.clients), (CpuSet::new(), all));
    }
}
