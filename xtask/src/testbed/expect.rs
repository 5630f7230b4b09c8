//! What `wakewatt inspect --json` has to say on a machine, as far as its file says it: a list of differences.
//!
//! Pure: file and document in, sentences out. Compared is what the file gives by number or name; what it leaves out is the
//! kernel's choice. Memory per node is not compared, since the kernel keeps some for itself.

use super::boards;
use super::machine::Machine;
use serde_json::{Value, json};

/// Every fact that is not as the file says.
pub(super) fn differences(machine: &Machine, inspect: &Value) -> Vec<String> {
    let all_cpus = match machine.n_cpus() {
        1 => "0".to_string(),
        n => format!("0-{}", n - 1),
    };
    let mut check = Check { inspect, all_cpus, found: Vec::new() };
    check.topology(machine);
    check.idle(machine);
    check.clocks(machine);
    check.nodes(machine);
    check.modules(machine);
    check.found
}

struct Check<'a> {
    inspect: &'a Value,
    all_cpus: String,
    found: Vec<String>,
}

impl Check<'_> {
    fn same(&mut self, what: &str, said: &Value, expected: &Value) {
        if said != expected {
            self.found.push(format!("{what}: the machine file makes it {expected}, wakewatt says {said}"));
        }
    }

    /// A value told per CPU, which has to be the same for all of them.
    fn same_everywhere(&mut self, what: &str, said: &Value, expected: &Value) {
        let expected = json!([{ "cpus": self.all_cpus, "value": expected }]);
        self.same(what, said, &expected);
    }

    fn topology(&mut self, machine: &Machine) {
        self.same("CPUs online", &self.inspect["cpus"]["online"]["value"], &json!(self.all_cpus));
        let packages: Vec<Value> = list(&self.inspect["topology"]["package_id"]).map(|g| g["value"].clone()).collect();
        self.same("packages", &json!(packages), &json!((0..machine.cpus.sockets).collect::<Vec<_>>()));
        let threads = list(&self.inspect["topology"]["siblings"]);
        let widths: Vec<usize> = threads.map(|g| width(g["value"].as_str().unwrap_or_default())).collect();
        let threads = usize::try_from(machine.cpus.threads).unwrap_or(usize::MAX);
        let cores = usize::try_from(machine.cpus.sockets * machine.cpus.cores).unwrap_or(usize::MAX);
        self.same("cores, as CPUs in each", &json!(widths), &json!(vec![threads; cores]));
    }

    fn idle(&mut self, machine: &Machine) {
        if machine.idle.is_empty() {
            return;
        }
        let board = boards::of(machine.arch);
        let idle = &self.inspect["idle"];
        if let Some(driver) = board.idle_driver() {
            self.same("idle driver", &idle["driver"]["value"], &json!(driver));
        }
        // The kernel's own first state, POLL or WFI, comes before those of the file.
        let states: Vec<&Value> = list(&idle["states"]).collect();
        self.same(
            "number of idle states, the kernel's own included",
            &json!(states.len()),
            &json!(machine.idle.len() + 1),
        );
        for (expected, said) in machine.idle.iter().zip(states.iter().skip(1)) {
            let name = &expected.name;
            self.same_everywhere(&format!("idle state {name}: name"), &said["name"], &json!(name));
            let latency_ns = u64::from(expected.exit_latency_us) * 1000;
            self.same_everywhere(
                &format!("idle state {name}: exit latency"),
                &said["exit_latency_ns"],
                &json!(latency_ns),
            );
            if let Some(us) = board.target_residency_us(expected) {
                let said = &said["target_residency_ns"];
                self.same_everywhere(
                    &format!("idle state {name}: target residency"),
                    said,
                    &json!(u64::from(us) * 1000),
                );
            }
        }
    }

    fn clocks(&mut self, machine: &Machine) {
        let policies = &self.inspect["freq"]["policies"];
        let Some(fastest) = machine.pstate.first() else {
            if list(&policies["driver"]).next().is_some() {
                self.found
                    .push(format!("cpufreq: the machine file has no pstate, wakewatt says {}", policies["driver"]));
            }
            return;
        };
        if let Some(driver) = boards::of(machine.arch).cpufreq_driver() {
            self.same_everywhere("cpufreq driver", &policies["driver"], &json!(driver));
        }
        let khz: Vec<u64> = machine.pstate.iter().map(|state| u64::from(state.mhz) * 1000).collect();
        self.same_everywhere("clocks", &policies["available_khz"], &json!(khz));
        self.same_everywhere("lowest clock", &policies["hardware_min_khz"], &json!(khz.last()));
        self.same_everywhere("highest clock", &policies["hardware_max_khz"], &json!(khz.first()));
        let latency_us = machine.pstate.iter().map(|state| state.latency_us).max().unwrap_or(fastest.latency_us);
        let said = &policies["transition_latency_ns"];
        self.same_everywhere("transition latency", said, &json!(u64::from(latency_us) * 1000));
        // These two are in Debian's kernel, the others are modules. Their order is that of loading: nothing to compare.
        let modules = machine.modules.iter().filter_map(|name| name.strip_prefix("cpufreq_"));
        let mut expected: Vec<&str> = ["performance", "schedutil"].into_iter().chain(modules).collect();
        expected.sort_unstable();
        let groups = list(&policies["governors_available"]);
        let sorted: Vec<Value> = groups
            .map(|group| {
                let mut names: Vec<&str> = list(&group["value"]).filter_map(Value::as_str).collect();
                names.sort_unstable();
                json!({ "cpus": group["cpus"], "value": names })
            })
            .collect();
        self.same_everywhere("cpufreq governors", &json!(sorted), &json!(expected));
    }

    fn nodes(&mut self, machine: &Machine) {
        if machine.numa.is_empty() {
            return;
        }
        let nodes: Vec<Value> = list(&self.inspect["memory"]["nodes"])
            .map(|node| json!({ "cpus": node["cpus"]["value"], "distances": node["distances"]["value"] }))
            .collect();
        let expected: Vec<Value> =
            machine.numa.iter().map(|node| json!({ "cpus": node.cpus, "distances": node.distances })).collect();
        self.same("NUMA nodes", &json!(nodes), &json!(expected));
    }

    fn modules(&mut self, machine: &Machine) {
        if machine.dimm.is_empty() {
            return;
        }
        self.same("damage of the SMBIOS table", &self.inspect["dimms"]["damage"], &Value::Null);
        let said: Vec<&Value> = list(&self.inspect["dimms"]["dimms"]["value"]).collect();
        self.same("memory slots", &json!(said.len()), &json!(machine.dimm.len()));
        let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
        let speed = |mt_s: u16| if mt_s == 0 { Value::Null } else { json!(mt_s) };
        for (expected, said) in machine.dimm.iter().zip(said) {
            let facts = [
                ("slot", text(&expected.locator)),
                ("bank", text(&expected.bank)),
                ("size_bytes", json!(u64::from(expected.size_mib) << 20)),
                ("rated_mts", speed(expected.rated_mt_s)),
                ("configured_mts", speed(expected.configured_mt_s)),
                ("manufacturer", text(&expected.manufacturer)),
                ("part_number", text(&expected.part_number)),
            ];
            for (key, value) in facts {
                self.same(&format!("memory module {}: {key}", expected.locator), &said[key], &value);
            }
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// How many CPUs a list like `0-1,4` names.
fn width(text: &str) -> usize {
    wakewatt_core::cpuset::CpuSet::parse(text).map_or(0, |set| set.iter().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(value: Value) -> Value {
        json!([{ "cpus": "0-1", "value": value }])
    }

    fn right() -> (Machine, Value) {
        let text = "summary='x'\narch='x86_64'\nmodules=['acpi-cpufreq','cpufreq_ondemand']\n\
            [[idle]]\nname='C1'\nexit_latency_us=2\n[[pstate]]\nmhz=2000\nmw=1\nlatency_us=10\n\
            [[dimm]]\nlocator='A1'\nsize_mib=1\nrated_mt_s=2933\nconfigured_mt_s=2100\n";
        let inspect = json!({
            "cpus": { "online": { "value": "0-1" } },
            "topology": { "package_id": all(json!(0)), "siblings": [{ "cpus": "0", "value": "0" }, { "cpus": "1", "value": "1" }] },
            "idle": { "driver": { "value": "acpi_idle" }, "states": [{}, {
                "name": all(json!("C1")), "exit_latency_ns": all(json!(2000)), "target_residency_ns": all(json!(4000)) }] },
            "freq": { "policies": { "driver": all(json!("acpi-cpufreq")), "available_khz": all(json!([2_000_000])),
                "hardware_min_khz": all(json!(2_000_000)), "hardware_max_khz": all(json!(2_000_000)),
                "transition_latency_ns": all(json!(10_000)),
                "governors_available": all(json!(["ondemand", "performance", "schedutil"])) } },
            "dimms": { "damage": null, "dimms": { "value": [{ "slot": "A1", "bank": null, "size_bytes": 1 << 20,
                "rated_mts": 2933, "configured_mts": 2100, "manufacturer": null, "part_number": null }] } },
        });
        (Machine::parse("m", text).unwrap(), inspect)
    }

    #[test]
    fn a_true_document_has_no_differences() {
        let (machine, inspect) = right();
        assert_eq!(differences(&machine, &inspect), Vec::<String>::new());
    }

    #[test]
    fn each_untruth_is_named() {
        let untruths = [
            ("/cpus/online/value", json!("0-3"), "CPUs online"),
            ("/topology/package_id/0/value", json!(1), "packages"),
            ("/topology/siblings/0/value", json!("0-1"), "cores"),
            ("/idle/states/1/exit_latency_ns/0/value", json!(2), "C1: exit latency"),
            ("/idle/states/1/target_residency_ns/0/cpus", json!("0"), "C1: target residency"),
            ("/freq/policies/available_khz/0/value/0", json!(1), "clocks"),
            ("/freq/policies/governors_available/0/value/0", json!("userspace"), "governors"),
            ("/dimms/dimms/value/0/configured_mts", json!(2933), "A1: configured_mts"),
        ];
        for (pointer, value, named) in untruths {
            let (machine, mut inspect) = right();
            *inspect.pointer_mut(pointer).unwrap() = value;
            let found = differences(&machine, &inspect);
            assert!(found.len() == 1 && found[0].contains(named), "{pointer}: {found:?}");
        }
    }
}
