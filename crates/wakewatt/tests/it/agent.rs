//! `agent`: what a scrape gets, in three formats and by a real Prometheus; what strangers cannot do to it; how it ends.

use crate::tool::{hosts, run, wait_until, wakewatt};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

pub(crate) fn reached(address: SocketAddr) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, Duration::from_secs(60))
}

/// A running agent; killed when it is dropped.
pub(crate) struct Agent {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Agent {
    pub(crate) fn start(args: &[&str]) -> Agent {
        Agent::start_with(args, &[])
    }

    fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Agent {
        Agent::start_at("127.0.0.1:0", args, variables)
    }

    pub(crate) fn start_at(listen: &str, args: &[&str], variables: &[(&str, &str)]) -> Agent {
        let mut command = wakewatt(&["agent", "--listen", listen]);
        if args.contains(&"--history") {
            // However full the disk of whoever runs the tests is.
            command.args(["--history-free", "0"]);
        }
        Agent::of(command.args(args).envs(variables.iter().copied()))
    }

    /// A command that becomes an agent.
    pub(crate) fn of(command: &mut Command) -> Agent {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let told = lines.by_ref().map_while(Result::ok).find(|line| line.contains("/metrics"));
        let told = told.expect("the agent says where it listens");
        let address = told.rsplit("://").next().unwrap().split('/').next().unwrap().parse().unwrap();
        // Whatever else it says: nobody shall wait for a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Agent { child, address }
    }

    /// Status line and headers, body.
    pub(crate) fn ask(&self, request: &str) -> (String, Vec<u8>) {
        let mut stream = reached(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A connection that is cut is an answer too.
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(answer.len());
        let body = answer.get(end + 4..).unwrap_or_default().to_vec();
        (String::from_utf8_lossy(&answer[..end]).into_owned(), body)
    }

    pub(crate) fn get(&self, path: &str, accept: &str) -> (String, Vec<u8>) {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
        self.ask(&request)
    }

    pub(crate) fn text(&self) -> String {
        let (head, body) = self.get("/metrics", "");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
        String::from_utf8(body).unwrap()
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sockets that it has open.
    pub(crate) fn n_sockets(&self) -> usize {
        let files = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().flatten();
        let is_socket = |link: &Path| link.to_str().is_some_and(|text| text.starts_with("socket:"));
        files.filter(|file| fs::read_link(file.path()).is_ok_and(|link| is_socket(&link))).count()
    }

    /// SIGTERM; its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    // As sysfs does: whoever reads meanwhile sees the old text or the new, never none.
    let beside = file.with_extension("new");
    fs::write(&beside, format!("{text}\n")).unwrap();
    fs::rename(beside, file).unwrap();
}

/// A tree of CPUs with two idle states, on two nodes.
pub(crate) fn tree(root: &Path, n_cpus: usize, usage: u64) {
    const CPU: &str = "sys/devices/system/cpu";
    write(root, &format!("{CPU}/present"), &format!("0-{}", n_cpus - 1));
    write(root, &format!("{CPU}/online"), &format!("0-{}", n_cpus - 1));
    write(root, &format!("{CPU}/cpuidle/current_driver"), "intel_idle");
    write(root, "sys/devices/system/node/node0/cpulist", &format!("0-{}", n_cpus / 2 - 1));
    write(root, "sys/devices/system/node/node1/cpulist", &format!("{}-{}", n_cpus / 2, n_cpus - 1));
    let mut stat = format!("cpu  {0} 0 0 900\n", usage / 10);
    for cpu in 0..n_cpus {
        for (index, name, latency_us) in [(0, "C1", 2), (1, "C6", 133)] {
            let at = format!("{CPU}/cpu{cpu}/cpuidle/state{index}");
            write(root, &format!("{at}/name"), name);
            write(root, &format!("{at}/latency"), &latency_us.to_string());
            for (file, n) in [("usage", usage), ("time", usage * 100), ("above", 0), ("below", 0), ("rejected", 0)] {
                write(root, &format!("{at}/{file}"), &n.to_string());
            }
        }
        stat += &format!("cpu{cpu} {} 0 0 450\n", usage / 10);
    }
    write(root, "proc/stat", &format!("{stat}intr 5\nctxt 9"));
}

/// On a machine that has no time for us, too.
pub(crate) fn soon(what: &str, is_so: impl FnMut() -> bool) {
    assert!(wait_until(Duration::from_secs(120), is_so), "not seen in two minutes: {what}");
}

pub(crate) fn value(page: &str, sample: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.strip_prefix(sample).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn counters_count_from_the_start_and_sum_over_nodes() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), 4, 1000);
    let agent = Agent::start(&["--sysroot", dir.path().to_str().unwrap(), "--interval", "1s"]);
    let entries = "wakewatt_cpuidle_entries_total{state=\"C6\",index=\"1\",node=\"1\"}";
    let page = agent.text();
    assert_eq!(value(&page, entries), Some(0.0), "{page}");
    assert_eq!(
        value(&page, "wakewatt_cpuidle_exit_latency_seconds{state=\"C6\",index=\"1\",source=\"claimed\"}"),
        Some(133e-6)
    );
    tree(dir.path(), 4, 1500);
    soon("the agent has seen the new counters", || value(&agent.text(), entries) == Some(1000.0));
    let page = agent.text();
    let time = "wakewatt_cpuidle_time_seconds_total{state=\"C1\",index=\"0\",node=\"0\"}";
    assert_eq!(value(&page, time), Some(0.1), "{page}");
    assert_eq!(agent.end(), Some(130));
}

/// A run says what leaving a state took; on which machine, it must say too.
#[test]
fn a_run_tells_what_was_measured_here_and_nothing_of_elsewhere() {
    const CPU: &str = "sys/devices/system/cpu";
    let dir = tempfile::tempdir().unwrap();
    let tree_at = dir.path().join("tree");
    tree(&tree_at, 2, 1000);
    for (cpu, file, text) in [(0, "name", "POLL"), (0, "latency", "0"), (1, "name", "POLL"), (1, "latency", "0")] {
        write(&tree_at, &format!("{CPU}/cpu{cpu}/cpuidle/state0/{file}"), text);
    }
    let run_file = crate::replay::measured(dir.path(), 133_000);
    let once = || run(&["agent", "--once", "--sysroot", tree_at.to_str().unwrap(), "--measured", &run_file]);
    let said = once();
    assert!(said.code == Some(4) && said.err.contains("does not say which idle driver"), "{said:?}");
    let mut document: Value = serde_json::from_str(&fs::read_to_string(&run_file).unwrap()).unwrap();
    document["idle_states"][0]["driver"] = "intel_idle".into();
    fs::write(&run_file, document.to_string()).unwrap();
    let page = once().out;
    let exit = |source: &str| {
        value(&page, &format!("wakewatt_cpuidle_exit_latency_seconds{{state=\"C6\",index=\"1\",source=\"{source}\"}}"))
    };
    assert_eq!((exit("claimed"), exit("measured")), (Some(133e-6), Some(31e-6)), "{page}");
    assert_eq!(value(&page, "wakewatt_agent_source_up{source=\"measured\"}"), Some(1.0));
    write(&tree_at, &format!("{CPU}/cpuidle/current_driver"), "acpi_idle");
    let said = once();
    assert!(said.code == Some(4) && said.err.contains("acpi_idle") && said.err.contains("intel_idle"), "{said:?}");
}

#[test]
fn as_many_series_with_512_cpus_as_with_2() {
    let n_series = |n_cpus: usize| {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path(), n_cpus, 1000);
        let said = run(&["agent", "--once", "--sysroot", dir.path().to_str().unwrap()]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.out.lines().filter(|line| line.starts_with("wakewatt_cpu")).count()
    };
    assert_eq!(n_series(4), n_series(512));
}

#[test]
fn a_page_of_every_recorded_host_passes_promtool() {
    let has_promtool = Command::new("promtool").arg("--version").output().is_ok();
    if !has_promtool {
        skipped("agent::promtool", Lacks::Program("promtool"), "no judge of the format");
    }
    for (name, host) in hosts() {
        let said = run(&["agent", "--once", "--host", host.to_str().unwrap()]);
        assert_eq!(said.code, Some(0), "{name}: {}", said.err);
        assert!(said.out.contains("wakewatt_cpus_online"), "{name}");
        let n_series = said.out.lines().filter(|line| !line.starts_with('#')).count();
        assert!(n_series < 700, "{name}: {n_series} series");
        if has_promtool {
            let mut child = Command::new("promtool")
                .args(["check", "metrics"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(said.out.as_bytes()).unwrap();
            let judged = child.wait_with_output().unwrap();
            assert!(judged.status.success(), "{name}: {}", String::from_utf8_lossy(&judged.stderr));
        }
    }
}

#[test]
fn formats_are_negotiated_and_other_pages_answer() {
    let agent = Agent::start(&[]);
    let (head, body) = agent.get("/metrics", "application/openmetrics-text; version=1.0.0");
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with(b"# EOF\n"));
    let (head, body) = agent
        .get("/metrics", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited");
    assert!(head.contains("application/vnd.google.protobuf"), "{head}");
    assert!(body.windows(22).any(|w| w == b"wakewatt_cpu_seconds_t"), "no family in it");
    assert!(agent.get("/healthz", "").0.starts_with("HTTP/1.1 200"));
    assert!(agent.get("/nothing", "").0.starts_with("HTTP/1.1 404"));
    soon("rates after a second reading", || agent.get("/api/v1/now", "").0.starts_with("HTTP/1.1 200"));
    let now: Value = serde_json::from_slice(&agent.get("/api/v1/now", "").1).unwrap();
    assert!(now["cpus"].as_array().is_some_and(|cpus| !cpus.is_empty()), "{now}");
    let page = agent.text();
    assert_eq!(value(&page, "wakewatt_agent_remote_interrupts_total"), Some(0.0), "the default wakes no other CPU");
    assert_eq!(agent.end(), Some(130));
}

/// The page of a tree whose names are markup: whole, without a request of its own, and the same numbers as its documents.
#[test]
fn the_page_shows_this_node_and_calls_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (tree_at, history) = (dir.path().join("tree"), dir.path().join("history"));
    tree(&tree_at, 4, 1000);
    write(&tree_at, "sys/devices/system/cpu/cpuidle/current_governor", "<script>alert(1)</script>");
    for cpu in 0..4 {
        write(&tree_at, &format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state1/name"), "<img src=x>");
    }
    let (tree_at, history) = (tree_at.to_str().unwrap(), history.to_str().unwrap());
    let agent = Agent::start(&["--sysroot", tree_at, "--interval", "1s", "--history", history]);
    let page = || String::from_utf8(agent.get("/", "text/html").1).unwrap();
    soon("two readings", || agent.get("/api/v1/now", "").0.starts_with("HTTP/1.1 200"));
    soon("two readings on the page", || page().contains("Shares and rates are of the last"));
    let (head, _) = agent.get("/", "text/html");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-security-policy: default-src 'none'"), "{head}");
    let page = page();
    for forbidden in ["http://", "https://", "<script", "<img", "src=", "url(", "@import", "<link"] {
        assert!(!page.replace("&lt;img src=x&gt;", "").contains(forbidden), "{forbidden}");
    }
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;&#x2f;script&gt;") && page.contains("&lt;img src=x&gt;"),
        "{page}"
    );
    for (path, schema) in [("node", "agent-node"), ("past", "agent-past"), ("now", "watch")] {
        let (head, body) = agent.get(&format!("/api/v1/{path}"), "");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/json"), "{path}: {head}");
        let validator = crate::schemas::validator(schema);
        let document = crate::schemas::assert_valid(&validator, path, &String::from_utf8(body).unwrap());
        assert_eq!(document["schema"], format!("wakewatt/{schema}/v1"));
    }
    let node: Value = serde_json::from_slice(&agent.get("/api/v1/node", "").1).unwrap();
    assert_eq!(node["states"][1]["name"], "<img src=x>");
    assert_eq!(node["n_online"], 4);
    assert_eq!(agent.end(), Some(130));
}

#[test]
fn strangers_cannot_stop_it() {
    let agent = Agent::start(&[]);
    // Slow heads, more than there is room for, held open.
    let slow: Vec<TcpStream> = (0..200)
        .filter_map(|_| {
            let mut stream = reached(agent.address).ok()?;
            stream.write_all(b"GET /metr").ok()?;
            Some(stream)
        })
        .collect();
    assert!(slow.len() > 100);
    for bad in [
        "",
        "\r\n\r\n",
        "GET\r\n\r\n",
        "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n",
        "\u{0}\u{1}\u{2}\r\n\r\n",
    ] {
        let mut stream = reached(agent.address).unwrap();
        let _ = stream.write_all(bad.as_bytes());
    }
    let (head, _) =
        agent.ask(&format!("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {}\r\n\r\n", "a".repeat(64 * 1024)));
    assert!(!head.starts_with("HTTP/1.1 200"), "{head}");
    // The slow ones are cut off in time, and whoever waits is answered.
    assert!(agent.text().contains("wakewatt_build_info"));
    drop(slow);
    assert_eq!(agent.end(), Some(130));
}

/// What a page in a browser could do whose name points here by now.
#[test]
fn a_page_elsewhere_gets_nothing() {
    let agent = Agent::start(&[]);
    let asked_as =
        |host: &str| agent.ask(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    for host in ["evil.example", "evil.example:9742", "localhost.evil.example", ""] {
        let (head, body) = asked_as(host);
        assert!(head.starts_with("HTTP/1.1 421"), "{host}: {head}");
        assert!(!String::from_utf8_lossy(&body).contains("wakewatt_"), "{host}");
    }
    for host in ["127.0.0.1:9742", "[::1]", "localhost"] {
        assert!(asked_as(host).0.starts_with("HTTP/1.1 200"), "{host}");
    }
    assert_eq!(agent.end(), Some(130));
}

/// As systemd would hear it: ready once it answers, alive while it reads, about to end.
#[test]
fn the_service_manager_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let heard = || {
        let mut text = [0; 64];
        let n = manager.recv(&mut text).expect("a word within a minute");
        String::from_utf8_lossy(&text[..n]).into_owned()
    };
    let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "400000")];
    // Signs of life come without readings, too.
    let agent = Agent::start_with(&["--interval", "60min"], &variables);
    assert_eq!(heard(), "READY=1");
    assert!(agent.get("/healthz", "").0.starts_with("HTTP/1.1 200"), "ready is who answers");
    for _ in 0..3 {
        assert_eq!(heard(), "WATCHDOG=1");
    }
    assert_eq!(agent.end(), Some(130));
    soon("the end is told", || heard() == "STOPPING=1");
}

/// Energy that is told often says what a neighbour computes; nobody here has shown who he is, so nobody gets more than a value a second, on whichever page.
#[test]
fn energy_is_told_at_most_once_a_second() {
    use std::os::unix::fs::FileExt;
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), 2, 1000);
    const ZONE: &str = "sys/class/powercap/intel-rapl:0";
    write(dir.path(), &format!("{ZONE}/name"), "package-0");
    write(dir.path(), &format!("{ZONE}/max_energy_range_uj"), "262143328850");
    write(dir.path(), &format!("{ZONE}/energy_uj"), "1000000000");
    let agent = Agent::start(&["--sysroot", dir.path().to_str().unwrap(), "--interval", "1s", "--sources", "package"]);
    let energy = fs::File::options().write(true).open(dir.path().join(format!("{ZONE}/energy_uj"))).unwrap();
    let (begun, mut told, mut n_asked) = (std::time::Instant::now(), Vec::new(), 0u64);
    while begun.elapsed() < Duration::from_secs(5) {
        n_asked += 1;
        energy.write_all_at((1_000_000_000 + n_asked * 1_000).to_string().as_bytes(), 0).unwrap();
        // Whatever page is asked for makes no new reading for the others.
        let _ = agent.get("/api/v1/node", "");
        let page = agent.text();
        told.extend(page.lines().find(|line| line.starts_with("wakewatt_energy_joules_total{")).map(str::to_string));
    }
    let n_seconds = begun.elapsed().as_secs() + 1;
    told.dedup();
    assert!(n_asked > 2 * n_seconds, "asked only {n_asked} times: nothing is shown");
    assert!(
        (2..=n_seconds + 1).contains(&(told.len() as u64)),
        "{n_asked} questions, {n_seconds} s, {} values",
        told.len()
    );
    assert_eq!(agent.end(), Some(130));
}

/// A certificate for this machine and its key; none where nobody can make one.
fn pair(folder: &Path, name: &str) -> Option<(String, String)> {
    let at = |end: &str| folder.join(format!("{name}.{end}")).to_str().unwrap().to_string();
    let (chain, key) = (at("crt"), at("key"));
    let args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    let made = Command::new("openssl")
        .args(args)
        .args(["-keyout", &key, "-out", &chain, "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .output();
    made.is_ok_and(|made| made.status.success()).then_some((chain, key))
}

/// What a client hears that believes this certificate only; nothing where it hangs up.
fn sealed(address: SocketAddr, ca: &str, header: &str) -> String {
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-verify_ip", "127.0.0.1", "-CAfile", ca])
        .args(["-connect", &address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: db7.example\r\n{header}Connection: close\r\n\r\n");
    // A client that does not believe is gone before it is asked.
    let _ = client.stdin.take().unwrap().write_all(request.as_bytes());
    String::from_utf8_lossy(&client.wait_with_output().unwrap().stdout).into_owned()
}

/// Others are answered when they know the token and the way is encrypted; a renewed certificate is taken up.
#[test]
fn others_need_a_token_and_get_an_encrypted_answer() {
    use std::os::unix::fs::PermissionsExt;
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let token = token.to_str().unwrap();
    let open = run(&["agent", "--listen", "0.0.0.0:0", "--token-file", token]);
    assert!(open.code == Some(4) && open.err.contains("chmod 600"), "others may read the token: {}", open.err);
    fs::set_permissions(token, fs::Permissions::from_mode(0o600)).unwrap();
    let open = run(&["agent", "--listen", "0.0.0.0:0", "--token-file", token]);
    assert!(open.code == Some(7) && open.err.contains("for all to read: give --tls-cert"), "{}", open.err);
    let (Some((chain, key)), Some((next_chain, next_key))) = (pair(dir.path(), "first"), pair(dir.path(), "next"))
    else {
        skipped("agent::tls", Lacks::Program("openssl"), "no certificate to be had");
        return;
    };
    let open = run(&["agent", "--listen", "0.0.0.0:0", "--tls-cert", &chain, "--tls-key", &key]);
    assert!(open.code == Some(7) && open.err.contains("give --token-file or --client-ca"), "{}", open.err);
    let wrong = run(&["agent", "--tls-cert", &chain, "--tls-key", &next_key, "--token-file", token]);
    assert!(wrong.code == Some(4) && wrong.err.contains("cannot be used with"), "{}", wrong.err);
    // What is in force, and may be replaced.
    let (own_chain, own_key) = (dir.path().join("own.crt"), dir.path().join("own.key"));
    fs::copy(&chain, &own_chain).unwrap();
    fs::copy(&key, &own_key).unwrap();
    let (own_chain, own_key) = (own_chain.to_str().unwrap(), own_key.to_str().unwrap());
    let more = ["--tls-cert", own_chain, "--tls-key", own_key, "--token-file", token];
    let mut everywhere = Agent::start_at("0.0.0.0:0", &more, &[]);
    everywhere.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    let known = format!("Authorization: Bearer {TOKEN}\r\n");
    let answer = sealed(everywhere.address, &chain, &known);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("wakewatt_build_info"), "{answer}");
    for unknown in ["", "Authorization: Bearer 0123456789abcdef\r\n", "Authorization: Basic eDp5\r\n"] {
        let answer = sealed(everywhere.address, &chain, unknown);
        assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("wakewatt_"), "{unknown}: {answer}");
    }
    let plain = everywhere.get("/metrics", "").0;
    assert!(!plain.contains("200"), "in the clear: {plain}");
    // Half of the pair is there first: what was in force stays so.
    fs::copy(&next_chain, own_chain).unwrap();
    soon("it is told that they do not fit", || {
        let answer = sealed(everywhere.address, &chain, &known);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.contains("wakewatt_agent_source_up{source=\"certificate\",why=\"not renewed")
    });
    fs::copy(&next_key, own_key).unwrap();
    soon("the new certificate is shown", || {
        sealed(everywhere.address, &next_chain, &known).starts_with("HTTP/1.1 200")
    });
    assert_eq!(sealed(everywhere.address, &chain, &known), "", "nobody who believes the old one only is answered");
    assert_eq!(everywhere.end(), Some(130));
}

#[test]
fn where_it_may_not_or_cannot_listen() {
    let open = run(&["agent", "--listen", "0.0.0.0:0"]);
    assert_eq!(open.code, Some(7), "{}", open.err);
    assert!(
        open.err.contains("0.0.0.0:0") && open.err.contains("neither encrypted nor behind a password"),
        "{}",
        open.err
    );
    assert_eq!(run(&["agent", "--host", "x.host"]).code, Some(2), "a recorded host has one moment: --once");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = run(&["agent", "--listen", &address]);
    assert!(said.code != Some(0) && said.err.contains(&address) && said.err.contains("--listen"), "{}", said.err);
    assert_eq!(run(&["agent", "--interval", "1ms"]).code, Some(2));
}

/// Prometheus scrapes the agent; the agent is killed and started again, and nothing is counted twice.
#[test]
fn prometheus_scrapes_it_and_a_killed_agent_counts_nothing_twice() {
    if Command::new("prometheus").arg("--version").output().is_err() {
        skipped("agent::prometheus", Lacks::Program("prometheus"), "nobody to scrape");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let tree_at = dir.path().join("tree");
    tree(&tree_at, 4, 1000);
    let port = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port() };
    let listen = format!("127.0.0.1:{port}");
    let start = || {
        let args = ["agent", "--listen", &listen, "--sysroot", tree_at.to_str().unwrap(), "--interval", "1s"];
        wakewatt(&args).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    };
    let mut agent = start();
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: wakewatt, static_configs: [{{targets: ['{listen}']}}]}}]\n"
    );
    fs::write(dir.path().join("prometheus.yml"), config).unwrap();
    let own = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let mut store = Command::new("prometheus")
        .arg(format!("--config.file={}", dir.path().join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
        .arg(format!("--web.listen-address={own}"))
        .arg("--enable-feature=native-histograms")
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let query = |promql: &str| -> Option<f64> {
        let mut stream = reached(own).ok()?;
        let encoded: String = promql.bytes().map(|b| format!("%{b:02X}")).collect();
        write!(stream, "GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let document: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1)?).ok()?;
        document["data"]["result"].get(0)?["value"].get(1)?.as_str()?.parse().ok()
    };
    soon("Prometheus has scraped the agent", || query("up{job=\"wakewatt\"}") == Some(1.0));
    let all = "sum(increase(wakewatt_cpuidle_entries_total{state=\"C6\"}[1h]))";
    soon("the first zero is stored", || query("sum(wakewatt_cpuidle_entries_total{state=\"C6\"})") == Some(0.0));
    tree(&tree_at, 4, 2000);
    soon("the growth is stored", || query("sum(wakewatt_cpuidle_entries_total{state=\"C6\"})") == Some(4000.0));
    agent.kill().unwrap();
    agent.wait().unwrap();
    let mut agent = start();
    soon("a new agent counts from 0", || query("sum(wakewatt_cpuidle_entries_total{state=\"C6\"})") == Some(0.0));
    tree(&tree_at, 4, 2500);
    soon("its growth is stored", || query("sum(wakewatt_cpuidle_entries_total{state=\"C6\"})") == Some(2000.0));
    let increase = query(all).unwrap();
    // Extrapolated to the hour by Prometheus from what it saw, so a little more or less; a boot counted again would be 8000 more.
    assert!((4000.0..9000.0).contains(&increase), "{increase}");
    let resets = query("sum(resets(wakewatt_cpuidle_entries_total{state=\"C6\"}[1h]))").unwrap();
    assert_eq!(resets, 2.0, "one for each node");
    agent.kill().unwrap();
    agent.wait().unwrap();
    store.kill().unwrap();
    store.wait().unwrap();
}
