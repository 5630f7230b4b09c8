//! Programs that stand behind prompts and in the names of files of support archives: one list for both.
//!
//! A text is told by its content, so this list decides little: where one output ends and the next begins, which files of an archive are
//! opened, and what is said of lines that nobody took. `$`, `#` and `>` begin other things than commands, so without a name and a
//! place before them only programs of this list count.

/// A program.
struct Program {
    name: &'static str,
    /// What the names of files with its output hold; nothing where archives have none.
    in_files: &'static [&'static str],
    /// Is its output read?
    is_read: bool,
}

const fn read(name: &'static str, in_files: &'static [&'static str]) -> Program {
    Program { name, in_files, is_read: true }
}

const fn other(name: &'static str) -> Program {
    Program { name, in_files: &[], is_read: false }
}

const PROGRAMS: &[Program] = &[
    read("cpupower", &["cpupower"]),
    read("turbostat", &["turbostat"]),
    read("dmidecode", &["dmidecode"]),
    read("lscpu", &["lscpu"]),
    read("numactl", &["numactl"]),
    read("numastat", &["numastat"]),
    read("dmesg", &["dmesg"]),
    read("journalctl", &["journalctl"]),
    read("corefreq-cli", &["corefreq"]),
    read("perf", &["perf_script", "perf-script", "perf_sched", "perf-sched"]),
    read("trace-cmd", &["trace-cmd", "trace_cmd"]),
    read("tuned-adm", &["tuned-adm"]),
    read("x86_energy_perf_policy", &["x86_energy_perf_policy"]),
    read("pepc", &["pepc"]),
    read("sysctl", &["sysctl"]),
    read("uname", &["uname"]),
    read("uptime", &["uptime"]),
    read("curl", &["metrics"]),
    read("cat", &[]),
    read("zcat", &[]),
    read("head", &[]),
    read("tail", &[]),
    read("grep", &[]),
    other("wakewatt"),
    other("ls"),
    other("echo"),
    other("watch"),
    other("ping"),
    other("rdmsr"),
    other("fio"),
    other("mpstat"),
    other("vmstat"),
    other("top"),
    other("free"),
    other("date"),
    other("hostname"),
];

/// Is it a program of the list?
pub(crate) fn is_known(name: &str) -> bool {
    PROGRAMS.iter().any(|program| program.name == name)
}

/// Is something of what it prints read here?
pub(crate) fn is_read(name: &str) -> bool {
    PROGRAMS.iter().any(|program| program.name == name && program.is_read)
}

/// Is this a command of a program that is read, with arguments that make it print something else?
pub(crate) fn is_other_output(command: &str) -> bool {
    let mut words = command.split(['|', ';', '>', '&']).next().unwrap_or_default().split_whitespace();
    let program = words.next().map_or("", of);
    let words: Vec<&str> = words.collect();
    let has = |long: &str, short: char| {
        words.iter().any(|w| w.starts_with(long) || (w.starts_with('-') && !w.starts_with("--") && w.contains(short)))
    };
    let verb = |known: &[&str]| words.iter().any(|w| !w.starts_with('-')) && !words.iter().any(|w| known.contains(w));
    match program {
        "numastat" => words.iter().any(|w| w.starts_with('-')),
        "lscpu" => has("--json", 'J') || has("--parse", 'p') || has("--caches", 'C'),
        "numactl" => has("--show", 's'),
        "perf" => verb(&["script", "latency", "lat", "timehist"]),
        "tuned-adm" => verb(&["active", "list", "verify"]),
        "cpupower" => verb(&["idle-info", "frequency-info", "monitor"]),
        _ => false,
    }
}

/// Does a file of an archive hold an output that is read, by its name in small letters?
pub(crate) fn is_output(file: &str) -> bool {
    PROGRAMS.iter().flat_map(|program| program.in_files).any(|word| file.contains(word))
}

/// The program of a command line.
pub(crate) fn of(command: &str) -> &str {
    let word = command.split_whitespace().next().unwrap_or_default();
    word.rsplit('/').next().unwrap_or(word)
}
