//! Redfish and Prometheus against a tiny server on loopback that answers, refuses, is slow, and talks nonsense.

use super::*;
use crate::power::prometheus::Query;
use crate::power::redfish::Account;
use crate::secret::Secret;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;

/// Answers "METHOD path" with a status and a body; headers of the answer may follow the status.
fn serve(answer: impl Fn(&str, &str) -> (String, String) + Send + 'static) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&log);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            while reader.read_line(&mut head).is_ok_and(|n| n > 2) {
                let last = head.lines().last().unwrap_or_default().to_ascii_lowercase();
                length = last.strip_prefix("content-length: ").and_then(|n| n.parse().ok()).unwrap_or(length);
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let request = head.split(" HTTP/").next().unwrap_or_default().to_string();
            let (status, text) = answer(&request, &head.to_ascii_lowercase());
            seen.lock().unwrap().push(request);
            let _ = write!(
                reader.get_mut(),
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
        }
    });
    (url, log)
}

fn ok(text: &str) -> (String, String) {
    ("200 OK".into(), text.into())
}

fn prometheus(url: &str) -> MetersWanted {
    let query = Query { url: url.into(), query: "sum(pdu_watts{a=\"b\"})".into() };
    MetersWanted { prometheus: Some(query), ..MetersWanted::default() }
}

#[test]
fn prometheus_answers_and_then_fails() {
    let n = std::sync::atomic::AtomicU32::new(0);
    let (url, log) = serve(move |_, _| match n.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0..8 => {
            ok(r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"230.5"]}]}}"#)
        }
        _ => ("500 Internal Server Error".into(), String::new()),
    });
    let sample = recorded(&prometheus(&url), &["prometheus"], 400, |_| {});
    let found = meter(&sample, "prometheus");
    assert_eq!(found.total.as_ref().map(|t| t.mean_uw), Some(230_500_000), "{found:?}");
    assert!(found.channels[0].doubts.iter().any(|d| d.contains("HTTP status 500")), "{found:?}");
    assert!(log.lock().unwrap()[0].ends_with("/api/v1/query?query=sum%28pdu_watts%7Ba%3D%22b%22%7D%29"));
}

#[test]
fn prometheus_that_does_not_answer_says_why() {
    for (status, text, word) in [
        ("401 Unauthorized", "", "user or password"),
        ("302 Found\r\nLocation: http://127.0.0.1:1/", "", "302"),
        ("200 OK", "<html>", "no answer of Prometheus"),
    ] {
        let (url, _) = serve(move |_, _| (status.into(), text.into()));
        let why = found(&prometheus(&url), "prometheus").err().unwrap();
        assert!(why.to_string().contains(word), "{status}: {why}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(found(&prometheus(&format!("http://{closed}")), "prometheus").is_err());
    let start = std::time::Instant::now();
    let (url, _) = serve(|_, _| {
        std::thread::sleep(Duration::from_secs(100));
        ok("")
    });
    let why = found(&prometheus(&url), "prometheus").err().unwrap();
    assert!(why.to_string().contains("timeout") && start.elapsed() < Duration::from_secs(90), "{why}");
}

fn bmc(request: &str) -> (String, String) {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let link = |p: &str| format!(r#"{{"@odata.id":"/redfish/v1/{p}"}}"#);
    let supply = |n: u32| link(&format!("Chassis/1/PowerSubsystem/PowerSupplies/{n}"));
    match path.strip_prefix("/redfish/v1/").unwrap_or_default() {
        "Chassis" => ok(&format!(r#"{{"Members":[{},{}]}}"#, link("Chassis/1"), link("Chassis/2"))),
        "Chassis/1" => ok(&format!(
            r#"{{"EnvironmentMetrics":{},"Power":{},"PowerSubsystem":{}}}"#,
            link("Chassis/1/EnvironmentMetrics"),
            link("Chassis/1/Power"),
            link("Chassis/1/PowerSubsystem")
        )),
        "Chassis/1/EnvironmentMetrics" => ok(r#"{"Name":"metrics","PowerWatts":{"Reading":null}}"#),
        "Chassis/1/Power" => ok(r#"{"PowerControl":[{"Name":"System","PowerConsumedWatts":344}]}"#),
        "Chassis/1/PowerSubsystem" => ok(&format!(r#"{{"PowerSupplies":{}}}"#, link("Chassis/1/Supplies"))),
        "Chassis/1/Supplies" => ok(&format!(r#"{{"Members":[{},{}]}}"#, supply(0), supply(1))),
        p if p.ends_with("/Metrics") => ok(r#"{"Name":"PSU","InputPowerWatts":{"Reading":187}}"#),
        p if p.contains("PowerSupplies/") => ok(&format!(r#"{{"Metrics":{}}}"#, link(&format!("{p}/Metrics")))),
        "Chassis/2" => ok("garbage"),
        _ => ("404 Not Found".into(), String::new()),
    }
}

fn redfish(url: &str) -> MetersWanted {
    let password = Secret::first_line("secret").ok();
    let account = Account { urls: vec![url.into()], user: Some("u".into()), password, is_plain_allowed: false };
    MetersWanted { redfish: account, ..MetersWanted::default() }
}

#[test]
fn redfish_walks_old_and_new_and_prefers_the_wall() {
    let (url, log) = serve(|request, head| match head.contains("authorization: basic dtpzzwnyzxq=") {
        true => bmc(request),
        false => ("401 Unauthorized".into(), String::new()),
    });
    let sample = recorded(&redfish(&url), &["redfish"], 100, |_| {});
    let found = meter(&sample, "redfish");
    let names: Vec<(&str, Covers)> =
        found.channels.iter().map(|c| (c.channel.name.as_str(), c.channel.covers)).collect();
    assert_eq!(names, [("1 System", Covers::System), ("1 PSU", Covers::Wall), ("1 PSU", Covers::Wall)]);
    assert_eq!(found.total.as_ref().map(|t| (t.mean_uw, t.covers.as_str())), Some((374_000_000, "wall")));
    assert!(!format!("{sample:?}{log:?}").contains("secret"));
}

#[test]
fn redfish_opens_a_session_where_basic_is_refused_and_closes_it() {
    let (url, log) = serve(|request, head| match (request.starts_with("POST"), head.contains("x-auth-token: t0k")) {
        (true, _) => {
            ("201 Created\r\nX-Auth-Token: t0k\r\nLocation: /redfish/v1/SessionService/Sessions/7".into(), "{}".into())
        }
        (_, true) => bmc(request),
        _ => ("401 Unauthorized".into(), String::new()),
    });
    drop(found(&redfish(&url), "redfish").unwrap());
    assert_eq!(log.lock().unwrap().last().map(String::as_str), Some("DELETE /redfish/v1/SessionService/Sessions/7"));
}

#[test]
fn redfish_that_refuses_says_so_without_the_password() {
    for (status, text, word) in [
        ("401 Unauthorized", "", "user or password"),
        ("403 Forbidden", "", "may not"),
        ("200 OK", "<html>", "no JSON"),
        ("200 OK", "{}", "no chassis"),
    ] {
        let (url, _) = serve(move |_, _| (status.into(), text.into()));
        let why = found(&redfish(&url), "redfish").err().unwrap();
        assert!(why.to_string().contains(word) && !why.to_string().contains("secret"), "{status}: {why}");
    }
    assert!(
        found(&redfish("https://u:x@localhost"), "redfish").err().unwrap().to_string().contains("no user or password")
    );
}

#[test]
fn a_redirect_takes_no_password_elsewhere() {
    let (elsewhere, seen) = serve(|_, _| ok("{}"));
    let (url, log) =
        serve(move |_, _| (format!("302 Found\r\nLocation: {elsewhere}/redfish/v1/Chassis"), String::new()));
    let why = found(&redfish(&url), "redfish").err().unwrap();
    assert!(why.to_string().contains("302") && why.to_string().contains("not followed"), "{why}");
    assert_eq!((log.lock().unwrap().len(), seen.lock().unwrap().len()), (1, 0));
}

#[test]
fn a_password_is_not_sent_in_the_clear_unless_told_to() {
    // Nothing is sent, and no name looked up: it ends before.
    let why = found(&redfish("http://bmc.invalid"), "redfish").err().unwrap();
    assert!(why.to_string().contains("unencrypted") && why.to_string().contains("--plain-http-password"), "{why}");
    let mut account = redfish("http://bmc.invalid").redfish;
    assert!(account.check().is_err() && !format!("{account:?}").contains("secret"));
    account.is_plain_allowed = true;
    assert_eq!(account.check(), Ok(()));
    assert_eq!(Account { user: None, is_plain_allowed: false, ..account }.check(), Ok(()), "nothing to protect");
}
