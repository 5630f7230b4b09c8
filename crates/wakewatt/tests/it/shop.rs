//! `load shop` end to end, at a small size: what is said and counted, never how fast. The shop's server is a process of its
//! own, so its death, and its parent's, can be staged.

use crate::schemas::{assert_valid, validator};
use crate::tool::{PROGRAM, Said, run, said, wait_until, wakewatt};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SHORT: [&str; 8] = ["--products", "200", "--duration", "1s", "--ramp", "200ms", "--timeout", "60s"];

fn shop(more: &[&str]) -> Said {
    run(&[&["load", "shop"][..], &SHORT, more].concat())
}

/// Processes that this one has started, and those have started.
fn servers_of(parent: u32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    let is_server = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| String::from_utf8_lossy(&c).contains("shop-server"))
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_server).collect()
}

fn started(more: &[&str]) -> (Child, i32) {
    let mut command = wakewatt(&[&["load", "shop"][..], more].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut found = Vec::new();
    assert!(wait_until(Duration::from_secs(120), || {
        found = servers_of(child.id());
        !found.is_empty()
    }));
    (child, found[0])
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

fn is_there(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn two_clients_for_a_second() {
    let said = shop(&["--clients", "2", "--think", "50ms", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let document = assert_valid(&validator("load-shop"), "load shop", &said.out);
    assert_eq!((&document["schema"], &document["kind"]), (&"wakewatt/load-shop/v1".into(), &"shop".into()));
    let level = &document["levels"][0];
    let count = |name: &str| level[name].as_u64().unwrap();
    assert!(count("n_planned") > 0 && count("n_done") > 0 && count("cpu_ns") > 0, "{level}");
    assert_eq!(count("n_planned"), count("n_done") + count("n_failed"));
    assert_eq!(document["shop"]["cpu_of"], "server_process");
    let is_told = level["is_invalid"].to_string().contains("other processes used");
    assert_eq!(
        level["foreign_ratio"].as_f64().unwrap() > 0.02,
        is_told,
        "its own server and clients are known: {level}"
    );
    assert_eq!(document["shop"]["clients"][0]["late"]["n"], level["n_planned"]);
    assert!(document["shop"]["title"].as_str().unwrap().contains("SQLite in /var/tmp"), "{document}");
}

#[test]
fn rates_as_text() {
    let said = shop(&["--rate", "20,40", "--in-memory"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for words in
        ["20 requests/s", "40 requests/s", "SQLite in /dev/shm", "Every level: measured", "By kind of request", "meter"]
    {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
}

#[test]
fn nobody_there_is_3_and_wrong_words_are_2_or_4() {
    let nobody = shop(&["--url", "http://127.0.0.1:1/"]);
    assert_eq!((nobody.code, nobody.out.as_str()), (Some(3), ""));
    assert!(nobody.err.contains("127.0.0.1:1: nobody answers"), "{}", nobody.err);
    for (args, code, words) in [
        (&["--rate", "0"][..], 2, "requests per second"),
        (&["--clients", "0"], 2, "--clients"),
        (&["--mix", "x.toml"], 2, "--url"),
        (&["--database", "postgres://127.0.0.1:1/none"], 3, "database"),
        (&["--database", "mysql://secret@x/"], 3, "connection string"),
        (&["--database", "postgres://u:secret@127.0.0.1/x"], 2, "--database-password-file"),
        (&["--database", "host=127.0.0.1 user=u password=secret"], 2, "--database-password-file"),
        (&["--database", "postgres://u@127.0.0.1/x", "--database-password-file", "/etc/hosts"], 4, "chmod 600"),
        (&["--database", "postgres://u@127.0.0.1/x", "--database-password-file", "/dev/null"], 4, "no plain file"),
        (&["--in", "/proc"], 3, "--in"),
        (&["--cpus", "4000"], 3, "4000"),
        (&["--url", "http://127.0.0.1:1/", "--mix", "/no/such.toml"], 4, "cannot be read"),
    ] {
        let said = shop(args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.err.contains(words) && !said.err.contains("secret"), "{args:?}: {}", said.err);
    }
    let by_hand = said(wakewatt(&["shop-server"]).stdin(Stdio::null()));
    assert!(by_hand.out.contains("wakewatt load shop") || by_hand.err.contains("wakewatt load shop"), "{by_hand:?}");
}

#[test]
fn a_killed_server_ends_the_run_with_a_word() {
    let (child, server) = started(&["--clients", "5", "--think", "20ms", "--duration", "10min", "--products", "200"]);
    std::thread::sleep(Duration::from_millis(500));
    let start = Instant::now();
    kill(server);
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{out}{err}");
    let all = format!("{out}{err}");
    assert!(all.contains("the shop's server ended") && !all.contains("panicked"), "{all}");
}

#[test]
fn a_killed_parent_leaves_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let (mut child, server) = started(&["--clients", "5", "--duration", "60s", "--products", "200", "--in", data]);
    std::thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(wait_until(Duration::from_secs(120), || !is_there(server)), "the server outlived its parent");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left on the disk");
}

#[test]
fn a_parent_that_is_killed_while_the_shop_is_built_leaves_nothing_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let n_files = || std::fs::read_dir(folder.path()).unwrap().count();
    let (mut child, server) =
        started(&["--clients", "5", "--products", "20000", "--in", folder.path().to_str().unwrap()]);
    assert!(wait_until(Duration::from_secs(120), || n_files() > 0), "the shop was never built");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(wait_until(Duration::from_secs(120), || !is_there(server)), "the server outlived its parent");
    assert_eq!(n_files(), 0, "a half-made database is left");
}

#[test]
fn what_a_killed_shop_left_goes_with_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let names = || -> Vec<_> { std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect() };
    let (child, server) = started(&["--clients", "5", "--products", "200000", "--in", data]);
    assert!(wait_until(Duration::from_secs(60), || !names().is_empty()), "the shop was never built");
    kill(server);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(3));
    let left = names();
    assert_eq!(left.len(), 1, "a server that is killed while it builds leaves its folder");
    let (mut child, server) = started(&["--clients", "5", "--duration", "60s", "--products", "200", "--in", data]);
    let is_gone = wait_until(Duration::from_secs(60), || !names().contains(&left[0]));
    let now = names();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_gone, "{left:?} is still there: {now:?}");
    assert!(wait_until(Duration::from_secs(60), || !is_there(server)), "the server outlived its parent");
    assert!(names().is_empty(), "{:?}", names());
}

/// A server that says what it gets in the clear: the first eight bytes, then whether more comes.
#[test]
fn no_password_goes_to_another_host_that_cannot_seal_it() {
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0u8; 8];
        stream.read_exact(&mut asked).unwrap();
        stream.write_all(b"N").unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        (asked, rest)
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "hunter2\nmore\n").unwrap();
    std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o600)).unwrap();
    let url = format!("postgres://u@127.0.0.1:{port}/x?sslmode=require");
    let said = shop(&["--database", &url, "--database-password-file", file.path().to_str().unwrap()]);
    assert!(said.code == Some(3) && said.err.contains("does not support TLS"), "{said:?}");
    let (asked, rest) = heard.join().unwrap();
    assert_eq!(asked, [0, 0, 0, 8, 4, 210, 22, 47], "the request for TLS, and nothing before it");
    assert!(rest.is_empty(), "{rest:?}");
}

/// As after an arm that took the server's CPU offline and brought it back: the kernel has given its threads others.
#[test]
fn a_server_that_lost_its_cpus_has_them_again_at_the_next_level() {
    let cpus: Vec<u32> = wakewatt_host::affinity::allowed_cpus().unwrap().iter().take(2).collect();
    let [own, other] = cpus[..] else { return };
    let own_word = own.to_string();
    let (child, server) = started(
        &[&SHORT[..], &["--clients", "2,3", "--cpus", &own_word, "--client-cpus", &other.to_string()]].concat(),
    );
    let of_threads = || -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{server}/task")).into_iter().flatten().flatten();
        let status = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
        let list =
            |text: String| Some(text.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?.trim().to_string());
        status.filter_map(list).collect()
    };
    let elsewhere = [other].into_iter().collect();
    // Whatever it is doing by now, a level is still to begin.
    wakewatt_host::affinity::confine_process(u32::try_from(server).unwrap(), &elsewhere).unwrap();
    assert!(of_threads().iter().any(|list| *list == other.to_string()), "{:?}", of_threads());
    let is_back = || !of_threads().is_empty() && of_threads().iter().all(|list| *list == own_word);
    let has_come_back = wait_until(Duration::from_secs(120), is_back);
    let seen = of_threads();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert!(has_come_back, "{seen:?}");
}

#[test]
fn interrupted_it_shows_what_it_has() {
    // When the level begins is up to the machine: twice as long, until it had.
    let (out, server) = [9, 18, 36, 72]
        .into_iter()
        .find_map(|before_s| {
            let (child, server) = started(&[
                "--clients",
                "5",
                "--think",
                "20ms",
                "--duration",
                "10min",
                "--ramp",
                "100ms",
                "--products",
                "200",
            ]);
            std::thread::sleep(Duration::from_secs(before_s));
            let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
            let output = child.wait_with_output().unwrap();
            let out = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(130), "{out}");
            (out.contains("interrupted") || before_s == 72).then_some((out, server))
        })
        .unwrap();
    assert!(out.contains("interrupted") && out.contains("does not count"), "{out}");
    assert!(!is_there(server));
}

/// The shop on one side, clients and a mix of one's own on the other, as between two hosts.
#[test]
fn a_shop_that_listens_and_clients_that_were_told_where() {
    let mut command = Command::new(PROGRAM);
    command.args(["load", "shop", "--listen", "127.0.0.1:0", "--products", "50"]).stdin(Stdio::null());
    let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|l| l.starts_with("open at ")).unwrap();
    let url = line.split(' ').nth(2).unwrap();
    let own = shop(&["--url", url, "--clients", "2", "--think", "50ms", "--json"]);
    let document = assert_valid(&validator("load-shop"), "load shop --url", &own.out);
    assert_eq!((own.code, &document["shop"]["cpu_of"]), (Some(0), &"server_process".into()), "{}", own.err);
    let level = &document["levels"][0];
    assert!(level["foreign_ratio"].is_null(), "a server that others have started runs who knows where: {level}");
    assert!(!level["is_invalid"].to_string().contains("other processes"), "{level}");
    let mix = tempfile::NamedTempFile::new().unwrap();
    let pages = "[[page]]\nname = \"lamps\"\npath = \"/search?q=lamp\"\nweight = 3\n[[page]]\nname = \"gone\"\npath = \"/product/{number:51-60}\"\nweight = 1";
    std::fs::write(mix.path(), pages).unwrap();
    let mixed =
        shop(&["--url", url, "--mix", mix.path().to_str().unwrap(), "--clients", "4", "--think", "50ms", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&mixed.out).unwrap();
    let parts = &document["levels"][0]["parts"];
    assert_eq!((&parts[0]["n_failed"], &parts[1]["n_done"]), (&0.into(), &0.into()), "{parts}");
    assert!(parts[1]["n_failed"].as_u64().unwrap() > 0);
    assert_eq!(document["shop"]["clients"][0]["failures"][0][0], "status 404");
    assert!(document["levels"][0]["is_invalid"][0].as_str().unwrap().contains("requests failed"));
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(server.wait().unwrap().success());
    let _ = lines.by_ref().count();
}
