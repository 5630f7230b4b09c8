//! `lscpu`, as lines or as the table of `lscpu -e`: which processor, how many CPUs, which node each is on.
//!
//! It becomes /proc/cpuinfo and the lists of CPUs and nodes. Which CPU lies in which socket it tells with `-e` only, or where there
//! is one socket. The keys are translated; those of German, French, Spanish, Chinese and Japanese are known as far as they matter
//! here. Numbers come with the locale's comma. What `lscpu` calls model is the number; the name is `Model name`.

use super::MAY_BE_CUT;
use super::flags::marked;
use crate::facts::{CPU, Facts, cpu_number};
use crate::plain::{is_same, pair, whole};
use crate::reading::{Format, Reading, likely};
use crate::section::Section;
use std::collections::BTreeMap;

/// The format.
pub(super) const FORMAT: Format = Format { id: "lscpu", title: "lscpu", detect, read };

const KEYS: &[(&str, &[&str])] = &[
    ("arch", &["Architecture", "Architektur", "Arquitectura", "架构", "アーキテクチャ"]),
    (
        "online",
        &[
            "On-line CPU(s) list",
            "Liste der Online-CPU(s)",
            "Liste de processeur(s) en ligne",
            "Lista de la(s) CPU(s) en línea",
            "在线 CPU 列表",
            "オンラインになっている CPU のリスト",
        ],
    ),
    (
        "vendor",
        &[
            "Vendor ID",
            "Anbieterkennung",
            "Prozessorhersteller",
            "Identifiant constructeur",
            "ID de fabricante",
            "厂商 ID",
            "ベンダー ID",
        ],
    ),
    ("name", &["Model name", "Modellname", "Nom de modèle", "Nombre del modelo", "型号名称", "モデル名"]),
    (
        "family",
        &["CPU family", "Prozessorfamilie", "Famille de processeur", "Familia de CPU", "CPU 系列", "CPU ファミリー"],
    ),
    ("model", &["Model", "Modell", "Modèle", "Modelo", "型号", "モデル"]),
    ("stepping", &["Stepping", "Révision", "Revisión", "步进", "ステッピング"]),
    ("flags", &["Flags", "Markierungen", "Drapaux", "Indicadores", "标记", "フラグ"]),
    ("sockets", &["Socket(s)", "Sockel", "“Socket(s)”", "座", "ソケット数"]),
    (
        "threads",
        &[
            "Thread(s) per core",
            "Thread(s) pro Kern",
            "Thread(s) par cœur",
            "Hilo(s) de procesamiento por núcleo",
            "每个核的线程数",
            "コアあたりのスレッド数",
        ],
    ),
    ("count", &["CPU(s)", "Processeur(s)", "CPU"]),
    (
        "hypervisor",
        &[
            "Hypervisor vendor",
            "Hypervisor-Anbieter",
            "Constructeur d'hyperviseur",
            "Fabricante del hipervisor",
            "超管理器厂商",
            "ハイパーバイザのベンダー",
        ],
    ),
];
/// Known, and nothing here needs them.
const UNUSED: &[&str] = &[
    "CPU op-mode(s)",
    "Byte Order",
    "Address sizes",
    "Core(s) per socket",
    "Core(s) per cluster",
    "Cluster(s)",
    "NUMA node(s)",
    "CPU MHz",
    "CPU max MHz",
    "CPU min MHz",
    "CPU(s) scaling MHz",
    "BogoMIPS",
    "Virtualization",
    "Virtualization type",
    "L1d cache",
    "L1i cache",
    "L2 cache",
    "L3 cache",
    "L1d",
    "L1i",
    "L2",
    "L3",
    "Off-line CPU(s) list",
    "Frequency boost",
    "NUMA",
    "Caches (sum of all)",
    "Virtualization features",
    "Vulnerabilities",
    "BIOS Model name",
    "BIOS Vendor ID",
    "BIOS CPU family",
    "CPU dynamic MHz",
    "CPU static MHz",
    "CPU 运行模式",
    "字节序",
    "每个座的核数",
    "NUMA 节点",
    "CPU 最大 MHz",
    "CPU 最小 MHz",
    "虚拟化",
    "虚拟化类型",
    "L1d 缓存",
    "L1i 缓存",
    "L2 缓存",
    "L3 缓存",
];

fn key_of(key: &str) -> Option<&'static str> {
    KEYS.iter().find(|(_, words)| words.iter().any(|word| is_same(key, word))).map(|(id, _)| *id)
}

/// `NUMA node0 CPU(s)`, `NUMA-Knoten0 CPU(s)`.
fn node_of(key: &str) -> Option<u32> {
    let rest = key.strip_prefix("NUMA")?;
    let start = rest.find(|c: char| c.is_ascii_digit())?;
    let digits = &rest[start..];
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    (digits[end..].contains("CPU")).then(|| cpu_number(&digits[..end])).flatten()
}

fn is_table(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.first() == Some(&"CPU") && words.contains(&"NODE") && words.contains(&"SOCKET")
}

fn detect(section: &Section<'_>) -> u32 {
    let is_own = |line: &str| {
        is_table(line)
            || pair(line)
                .is_some_and(|(key, _)| matches!(key_of(key), Some("online" | "threads" | "sockets" | "vendor")))
    };
    likely(section, "lscpu", is_own)
}

fn read(reading: &mut Reading<'_>) {
    let mut said: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    let mut nodes: BTreeMap<u32, (usize, String)> = BTreeMap::new();
    let mut packages: BTreeMap<u32, (usize, u32, u32)> = BTreeMap::new();
    let mut columns: Vec<&str> = Vec::new();
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if is_table(text) {
            columns = text.split_whitespace().collect();
            reading.take(at);
            continue;
        }
        if !columns.is_empty() && text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(": ") {
            let cells: Vec<&str> = text.split_whitespace().collect();
            let cell = |name: &str| {
                columns.iter().position(|c| *c == name).and_then(|i| cells.get(i)).and_then(|c| cpu_number(c))
            };
            match (cell("CPU"), cell("SOCKET"), cell("CORE")) {
                (Some(cpu), Some(socket), Some(core)) => drop(packages.insert(cpu, (at, socket, core))),
                _ => reading.refuse(at, "not a row of the table above it"),
            }
            continue;
        }
        let Some((key, value)) = pair(text) else { continue };
        if let Some(node) = node_of(key) {
            nodes.insert(node, (at, value.into()));
        } else if let Some(id) =
            key_of(key).filter(|id| !value.is_empty() && (*id != "count" || whole(value).is_some()))
        {
            // A hybrid machine or an emulated one says things twice; the first is the processor.
            said.entry(id).or_insert((at, value.into()));
            reading.unused(at);
        } else if UNUSED.iter().any(|word| is_same(key, word)) || key.starts_with("Vulnerability") {
            reading.unused(at);
        }
    }
    for (cpu, (at, socket, core)) in &packages {
        reading.put(*at, &format!("{CPU}/cpu{cpu}/topology/physical_package_id"), &socket.to_string());
        reading.put(*at, &format!("{CPU}/cpu{cpu}/topology/core_id"), &core.to_string());
    }
    if !nodes.is_empty() {
        let list: Vec<String> = nodes.keys().map(u32::to_string).collect();
        let first = nodes.values().next().map_or(0, |(at, _)| *at);
        reading.conclude(first, "/sys/devices/system/node/online", &list.join(","));
    }
    for (node, (at, list)) in &nodes {
        if reading.section.may_be_cut(*at) {
            reading.refuse(*at, MAY_BE_CUT);
            continue;
        }
        match Facts::cpus(list) {
            Some(set) => reading.put(*at, &format!("/sys/devices/system/node/node{node}/cpulist"), &set.to_string()),
            None if list.is_empty() => reading.put(*at, &format!("/sys/devices/system/node/node{node}/cpulist"), ""),
            None => reading.refuse(*at, "no list of CPUs that a machine has"),
        }
    }
    let online = said.get("online").map(|(at, list)| (*at, list.clone()));
    let count = said.get("count").and_then(|(at, n)| Some((*at, format!("0-{}", whole(n)?.checked_sub(1)?))));
    // The number is as good as a list that may be cut, where all CPUs are online.
    let section = reading.section;
    let is_cut = |at: usize| section.may_be_cut(at);
    if let Some((at, _)) = online.as_ref().filter(|(at, _)| is_cut(*at)) {
        reading.refuse(*at, MAY_BE_CUT);
    }
    let online = online.filter(|(at, _)| !is_cut(*at));
    let Some((at, list)) = online.or(count) else { return };
    let Some(set) = Facts::cpus(&list) else {
        reading.refuse(at, "no list of CPUs that a machine has");
        return;
    };
    reading.put(at, &format!("{CPU}/online"), &set.to_string());
    if let Some((at, n)) = said.get("threads").and_then(|(at, n)| Some((*at, whole(n)?))) {
        reading.conclude(at, &format!("{CPU}/smt/active"), if n > 1 { "1" } else { "0" });
    }
    cpuinfo(reading, &said, &set);
}

/// The blocks of /proc/cpuinfo that these lines stand for.
fn cpuinfo(reading: &mut Reading<'_>, said: &BTreeMap<&str, (usize, String)>, cpus: &wakewatt_core::cpuset::CpuSet) {
    let names = [
        ("vendor", "vendor_id"),
        ("family", "cpu family"),
        ("model", "model"),
        ("name", "model name"),
        ("stepping", "stepping"),
    ];
    let mut block = String::new();
    for (id, key) in names {
        let is_number = matches!(id, "family" | "model" | "stepping");
        if let Some((at, value)) =
            said.get(id).filter(|(_, v)| !v.is_empty() && v != "-" && (!is_number || whole(v).is_some()))
        {
            block.push_str(&format!("{key}\t: {value}\n"));
            reading.take(*at);
        }
    }
    if let Some((at, flags)) = said.get("flags") {
        let guest = said
            .get("hypervisor")
            .filter(|_| !flags.split(' ').any(|f| f == "hypervisor"))
            .map_or("", |_| " hypervisor");
        block.push_str(&format!("flags\t: {}\n", marked(&format!("{flags}{guest}"))));
        reading.take(*at);
    }
    let Some((at, _)) = said.get("name").or(said.get("vendor")) else { return };
    if said.get("sockets").is_some_and(|(_, n)| whole(n) == Some(1)) {
        block.push_str("physical id\t: 0\n");
    }
    if block.len() * cpus.len() > 16 << 20 {
        return reading.refuse(*at, "too many CPUs for such long lines");
    }
    let text: String = cpus.iter().map(|cpu| format!("processor\t: {cpu}\n{block}\n")).collect();
    reading.put(*at, "/proc/cpuinfo", text.trim_end());
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn the_processor_and_its_cpus() {
        let text = "Architecture:            x86_64\nCPU(s):                  4\n  On-line CPU(s) list:   0-3\nVendor ID:               GenuineIntel\n  \
            Model name:            Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz\n    CPU family:          6\n    Model:               85\n    Thread(s) per core:  2\n    \
            Socket(s):           1\n    Stepping:            7\n    Flags:               fpu monitor hwp\nNUMA:                    \n  NUMA node(s):          2\n  NUMA node0 CPU(s):     0,1\n  NUMA node1 CPU(s):     2,3\n";
        let found = read(text);
        assert_eq!(formats(&found), ["lscpu"]);
        let info = says(&found, "/proc/cpuinfo").unwrap();
        assert!(info.contains("model name\t: Intel(R) Xeon(R) Gold") && info.matches("processor").count() == 4);
        assert_eq!(says(&found, "/sys/devices/system/node/node1/cpulist").as_deref(), Some("2-3"));
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }

    #[test]
    fn german_and_the_table() {
        let text = "Architektur:  x86_64\nCPU(s):  2\nListe der Online-CPU(s):  0,1\nAnbieterkennung:  AuthenticAMD\nModellname:  AMD EPYC\nProzessorfamilie:  23\nModell:  49\n\
            Thread(s) pro Kern: 1\nSockel: 1\nCPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n  0    0      0    0 0:0:0:0         yes\n  1    0      1    1 1:1:1:0         yes\n";
        let found = read(text);
        assert!(says(&found, "/proc/cpuinfo").unwrap().contains("cpu family\t: 23"));
        assert_eq!(says(&found, "/sys/devices/system/cpu/cpu1/topology/physical_package_id").as_deref(), Some("1"));
    }

    #[test]
    fn every_line_of_a_chinese_one_is_known() {
        let text = "架构：                           x86_64\nCPU 运行模式：                   32-bit, 64-bit\n字节序：                         Little Endian\n\
            CPU:                             4\n在线 CPU 列表：                  0-3\n每个核的线程数：                 2\n每个座的核数：                   2\n\
            座：                             1\nNUMA 节点：                      1\n厂商 ID：                        GenuineIntel\nCPU 系列：                       6\n\
            型号：                           85\n型号名称：                       Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz\n步进：                           4\n\
            CPU 最大 MHz：                   3700.0000\nCPU 最小 MHz：                   1000.0000\nBogoMIPS：                       4200.00\n虚拟化：                         VT-x\n\
            L1d 缓存：                       64 KiB\nNUMA 节点0 CPU：                 0-3\n标记：                           fpu vme hwp monitor\n";
        let found = read(text);
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
        assert_eq!(says(&found, "/sys/devices/system/node/node0/cpulist").as_deref(), Some("0-3"));
        assert!(says(&found, "/proc/cpuinfo").unwrap().contains("flags\t: fpu vme hwp monitor"));
    }

    #[test]
    fn a_hundred_bytes_are_no_machine_of_65536_cpus() {
        let found =
            read("Vendor ID: GenuineIntel\nOn-line CPU(s) list: 0-65535\nModel name: x\nThread(s) per core: 2\n");
        assert_eq!(says(&found, "/sys/devices/system/cpu/online"), None);
        assert!(found.document.files[0].not_understood.iter().any(|l| l.why.contains("no list of CPUs")));
    }
}
