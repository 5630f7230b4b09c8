//! `agent` where somebody means it harm, or takes it over: what it gave up, who gets in by which door, what slow and many clients can do to it.

use crate::agent::{Agent, reached, soon, tree, value};
use crate::tool::{run, wakewatt};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

/// Lines of `/proc/PID/task/*/status` that begin so, of every thread.
fn of_every_thread(pid: u32, name: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let lines = statuses.filter_map(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim().to_string())
    });
    lines.collect()
}

/// Names of the families of a page.
fn families(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
}

/// On this machine, as whoever runs the tests; as root it has everything to give up.
#[test]
fn it_gives_up_what_it_needs_no_more_and_still_reads_keeps_and_answers() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("history");
    let history = history.to_str().unwrap();
    let args = ["--interval", "1s", "--sources", "package", "--history", history];
    let agent = Agent::start(&args);
    let page = agent.text();
    let held = |guard: &str| value(&page, &format!("wakewatt_agent_confined{{guard=\"{guard}\"}}")) == Some(1.0);
    assert!(held("capabilities") && held("new_privileges"), "{page}");
    // The past is read by a thread that is made for it, and ends when it has had nothing to do for ten seconds.
    assert!(agent.get("/api/v1/past", "").0.starts_with("HTTP/1.1 200"));
    let pid = agent.pid();
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        let kept = of_every_thread(pid, set);
        assert!(kept.len() >= 2, "threads that serve and wait, and one that looked back: {kept:?}");
        for kept in kept {
            let kept = u64::from_str_radix(&kept, 16).unwrap();
            // CAP_DAC_READ_SEARCH for a user other than root, CAP_SYS_RAWIO where registers are read.
            assert_eq!(kept & !(1 << 2 | 1 << 17), 0, "{set} {kept:x}");
        }
    }
    // Quiet sources read no register.
    let quiet = Agent::start(&[]);
    let kept = of_every_thread(quiet.pid(), "CapEff");
    let is_root = rustix::process::geteuid().is_root();
    let least = if is_root { 0 } else { 1 << 2 };
    assert!(kept.iter().all(|kept| u64::from_str_radix(kept, 16).unwrap() & !least == 0), "{kept:?}");
    assert_eq!(quiet.end(), Some(130));
    assert!(of_every_thread(pid, "NoNewPrivs").iter().all(|is| is == "1"));
    if held("system_calls") {
        assert!(of_every_thread(pid, "Seccomp").iter().all(|mode| mode == "2"));
    } else {
        skipped("agent_safe::seccomp", Lacks::Here, "the kernel takes no filter");
    }
    if !held("files") {
        skipped("agent_safe::landlock", Lacks::Here, "the kernel has no Landlock");
    }
    let node: Value = serde_json::from_slice(&agent.get("/api/v1/node", "").1).unwrap();
    let guards = node["confined"].as_array().unwrap();
    assert_eq!(guards.len(), 5, "{node}");
    assert!(guards.iter().all(|one| one["kept"].is_string() != one["not_because"].is_string()), "{node}");
    // As an agent that keeps all it has: the same families, and a past that goes on.
    let free = Agent::start(&[&args[..4], &["--confine", "none"]].concat());
    let other = free.text();
    assert_eq!(
        value(&other, "wakewatt_agent_confined{guard=\"files\",why=\"--confine none was asked for\"}"),
        Some(0.0)
    );
    let but_holders = |page: &str| -> Vec<String> {
        families(page).into_iter().filter(|name| !name.contains("latency_limit_holder")).map(str::to_string).collect()
    };
    assert_eq!(but_holders(&page), but_holders(&other));
    let settings =
        |page: &str| page.lines().find(|line| line.starts_with("wakewatt_settings_info{")).map(str::to_string);
    assert_eq!(settings(&page), settings(&other));
    let n_moments = || {
        let said = run(&["agent", "query", "wakewatt_agent_wakeups_total", "--history", history, "--json"]);
        serde_json::from_str::<Value>(&said.out).ok()?["n_moments"].as_u64()
    };
    soon("three moments are kept", || n_moments() >= Some(3));
    let page = agent.text();
    assert_eq!(value(&page, "wakewatt_agent_source_up{source=\"history\"}"), Some(1.0), "{page}");
    assert_eq!((agent.end(), free.end()), (Some(130), Some(130)));
}

/// An agent at a socket in a folder; killed when it is dropped.
struct Near(Child);

impl Near {
    fn start(listen: &str, more: &[&str]) -> Near {
        let mut child = wakewatt(&["agent", "--listen", listen])
            .args(more)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let told = lines.by_ref().map_while(Result::ok).find(|line| line.contains("curl --unix-socket"));
        assert!(told.is_some(), "the agent says how it is asked");
        std::thread::spawn(move || lines.for_each(drop));
        Near(child)
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_socket_in_the_file_system_answers_whom_its_mode_lets() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("agent.sock");
    let listen = format!("unix:{}", at.display());
    let tree_at = dir.path().join("tree");
    tree(&tree_at, 4, 1000);
    let more = ["--sysroot", tree_at.to_str().unwrap(), "--socket-mode", "660"];
    let agent = Near::start(&listen, &more);
    let found = fs::symlink_metadata(&at).unwrap();
    assert!(found.file_type().is_socket() && found.mode() & 0o777 == 0o660);
    let ask = |host: &str| {
        let mut stream = UnixStream::connect(&at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    assert!(ask("localhost").starts_with("HTTP/1.1 200") && ask("localhost").contains("wakewatt_build_info"));
    assert!(ask("evil.example").starts_with("HTTP/1.1 421"));
    let second = run(&["agent", "--listen", &listen]);
    assert!(second.code == Some(7) && second.err.contains("another process answers there"), "{}", second.err);
    // What a killed one leaves behind is in nobody's way.
    drop(agent);
    assert!(fs::symlink_metadata(&at).unwrap().file_type().is_socket());
    let agent = Near::start(&listen, &more);
    assert!(ask("localhost").starts_with("HTTP/1.1 200"));
    drop(agent);
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let said = run(&["agent", "--listen", &format!("unix:{}/s", open.display())]);
    assert!(said.code == Some(7) && said.err.contains("may be written by everybody"), "{}", said.err);
    for wrong in ["unix:agent.sock", "unix:", "agent.sock", "127.0.0.1"] {
        assert_eq!(run(&["agent", "--listen", wrong]).code, Some(2), "{wrong}");
    }
    assert_eq!(run(&["agent", "--listen", &listen, "--socket-mode", "999"]).code, Some(2));
    // What would change nothing is refused.
    let said = run(&["agent", "--listen", "127.0.0.1:0", "--socket-mode", "660"]);
    assert!(said.code == Some(2) && said.err.contains("a socket in the file system"), "{}", said.err);
    assert_eq!(run(&["agent", "--socket-mode", "660"]).code, Some(2));
    assert_eq!(run(&["agent", "--once", "--listen", &listen]).code, Some(2));
}

/// Authority, and a certificate of it, each with its key: paths; none where nobody can make them.
fn issued(folder: &Path, name: &str, authority: Option<&str>) -> Option<(String, String)> {
    let at = |name: &str, end: &str| folder.join(format!("{name}.{end}")).to_str().unwrap().to_string();
    let (chain, key) = (at(name, "crt"), at(name, "key"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    command.args(["-keyout", &key, "-out", &chain, "-subj", &format!("/CN={name}")]);
    command.args(["-addext", "subjectAltName=IP:127.0.0.1"]);
    if let Some(authority) = authority {
        command.args(["-CA", &at(authority, "crt"), "-CAkey", &at(authority, "key")]);
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    }
    command.output().is_ok_and(|made| made.status.success()).then_some((chain, key))
}

/// What a client hears that shows this certificate, or none.
fn heard(address: SocketAddr, shown: Option<&(String, String)>, header: &str) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-connect", &address.to_string()]);
    if let Some((chain, key)) = shown {
        command.args(["-cert", chain, "-key", key]);
    }
    let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: db7.example\r\n{header}Connection: close\r\n\r\n");
    let _ = client.stdin.take().unwrap().write_all(request.as_bytes());
    String::from_utf8_lossy(&client.wait_with_output().unwrap().stdout).into_owned()
}

#[test]
fn a_certificate_of_a_named_authority_lets_in() {
    let dir = tempfile::tempdir().unwrap();
    let made = |name: &str, authority: Option<&str>| issued(dir.path(), name, authority);
    let (Some(server), Some(authority), Some(client), Some(stranger)) =
        (made("server", None), made("authority", None), made("client", Some("authority")), made("stranger", None))
    else {
        skipped("agent_safe::clients", Lacks::Program("openssl"), "no certificate to be had");
        return;
    };
    let tls = ["--tls-cert", &server.0, "--tls-key", &server.1, "--client-ca", &authority.0];
    let mut agent = Agent::start_at("0.0.0.0:0", &tls, &[]);
    agent.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    let answer = heard(agent.address, Some(&client), "");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("wakewatt_build_info"), "{answer}");
    assert_eq!(heard(agent.address, None, ""), "", "who shows none");
    assert_eq!(heard(agent.address, Some(&stranger), ""), "", "who shows another's");
    assert_eq!(agent.end(), Some(130));
    // With a token beside it, one of both is enough.
    let token = dir.path().join("token");
    fs::write(&token, "0123456789abcdef0123456789abcdef\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let both = [&tls[..], &["--token-file", token.to_str().unwrap()]].concat();
    let mut agent = Agent::start_at("0.0.0.0:0", &both, &[]);
    agent.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    let known = "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n";
    assert!(heard(agent.address, Some(&client), "").starts_with("HTTP/1.1 200"));
    assert!(heard(agent.address, None, known).starts_with("HTTP/1.1 200"));
    assert!(heard(agent.address, None, "").starts_with("HTTP/1.1 401"));
    assert_eq!(heard(agent.address, Some(&stranger), known), "", "a certificate that is shown must be a good one");
    assert_eq!(agent.end(), Some(130));
    let rubbish = dir.path().join("rubbish");
    fs::write(&rubbish, "rubbish").unwrap();
    let said =
        run(&["agent", "--tls-cert", &server.0, "--tls-key", &server.1, "--client-ca", rubbish.to_str().unwrap()]);
    assert!(said.code == Some(4) && said.err.contains("rubbish"), "{}", said.err);
}

/// Whoever sends his head a byte at a time has as long for it as everybody else.
#[test]
fn who_never_comes_to_the_end_is_cut_off() {
    let agent = Agent::start(&[]);
    let mut slow = reached(agent.address).unwrap();
    slow.set_nonblocking(true).unwrap();
    let _ = slow.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ");
    soon("the slow one is cut off", || {
        // Once the other end is closed, one of these says so.
        let is_gone = |result: std::io::Result<usize>| match result {
            Ok(n) => n == 0,
            Err(why) => why.kind() != std::io::ErrorKind::WouldBlock,
        };
        is_gone(slow.write(b"a")) || is_gone(slow.read(&mut [0; 4096]))
    });
    let lines: String = (0..40).map(|n| format!("X-{n}: a\r\n")).collect();
    let (head, _) = agent.ask(&format!("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n"));
    assert!(head.starts_with("HTTP/1.1 431"), "{head}");
    assert!(agent.text().contains("wakewatt_build_info"));
    assert_eq!(agent.end(), Some(130));
}

/// As Prometheus asks: one connection for many scrapes. The token is looked at each time, and who shows none is not waited for.
#[test]
fn a_kept_connection_is_asked_for_the_token_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    fs::write(&token, "0123456789abcdef\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let agent = Agent::start(&["--token-file", token.to_str().unwrap()]);
    let mut stream = BufReader::new(TcpStream::connect_timeout(&agent.address, Duration::from_secs(10)).unwrap());
    stream.get_ref().set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut ask = |shown: &str| {
        write!(stream.get_mut(), "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {shown}\r\n\r\n")
            .unwrap();
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            let lower = line.to_ascii_lowercase();
            length = lower.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap());
            head.push_str(&lower);
        }
        stream.read_exact(&mut vec![0; length]).unwrap();
        head
    };
    for _ in 0..2 {
        let head = ask("0123456789abcdef");
        assert!(head.starts_with("http/1.1 200") && !head.contains("connection: close"), "{head}");
    }
    let head = ask("0123456789abcdeg");
    assert!(head.starts_with("http/1.1 401") && head.contains("connection: close"), "{head}");
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "it is closed");
    assert_eq!(agent.end(), Some(130));
}

/// A thousand at once: no more are let in than there is room for and one at the door, and who waits is answered in the end.
#[test]
fn a_thousand_connections_take_no_more_than_their_room() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let _ = rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum },
    );
    let agent = Agent::start(&[]);
    let address = agent.address;
    let before = agent.n_sockets();
    // Those that find no place in the queue give up soon; that they tried is what counts.
    let tried = (0..20).map(|_| {
        std::thread::spawn(move || {
            let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
            let mut held: Vec<TcpStream> = (0..50).filter_map(|_| connect()).collect();
            for stream in &mut held {
                let _ = stream.write_all(b"GET /metr");
            }
            held
        })
    });
    let tried: Vec<_> = tried.collect();
    let held: Vec<TcpStream> = tried.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert!(held.len() >= 64, "{} connections: too few to fill it", held.len());
    let n_sockets = agent.n_sockets().saturating_sub(before);
    // Their room, and one at the door for whom a place is made.
    assert!(n_sockets <= 64 + 1, "{n_sockets} of {} are let in", held.len());
    soon("somebody who asks is answered", || {
        let (head, _) = agent.get("/healthz", "");
        head.starts_with("HTTP/1.1 200")
    });
    let resident = value(&agent.text(), "wakewatt_agent_resident_memory_bytes").unwrap();
    assert!(resident < 200e6, "{resident} bytes");
    drop(held);
    assert_eq!(agent.end(), Some(130));
}
