//! Requests to the cluster for tests.

use super::{Fault, State};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One request of one connection.
pub(crate) fn serve(stream: UnixStream, shared: &Arc<Mutex<State>>) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let Ok(mut from) = stream.try_clone().map(BufReader::new) else { return };
    let mut to = stream;
    let Some((method, target, body)) = request(&mut from) else { return };
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let document: Value = serde_json::from_slice(&body).unwrap_or_default();
    state.asked.push((method.clone(), target.clone(), document.clone()));
    let wanted = format!("{method} {path}");
    if state.forbidden.iter().any(|prefix| wanted.starts_with(prefix)) {
        let said = json!({"kind": "Status", "reason": "Forbidden", "code": 403, "message": format!("cannot {wanted}")});
        drop(state);
        return answer(&mut to, 403, &said);
    }
    if let Some(job) = path.strip_suffix("/log") {
        let log = state.objects.get(job).unwrap_or_default();
        drop(state);
        return send_log(&mut to, &log);
    }
    let fault = if method == "GET" { None } else { state.faults.pop_front() };
    if fault == Some(Fault::Away) {
        drop(state);
        return answer(&mut to, 503, &json!({"kind": "Status", "message": "away", "code": 503}));
    }
    if fault == Some(Fault::NotYet) {
        drop(state);
        return answer(
            &mut to,
            403,
            &json!({"kind": "Status", "reason": "Forbidden", "message": "no rules yet", "code": 403}),
        );
    }
    let (code, done) = match method.as_str() {
        "GET" => state.objects.read(path, query),
        "POST" => state.objects.create(path, document.clone()),
        "PUT" => state.objects.update(path, document, false),
        "PATCH" => state.objects.update(path, document, true),
        _ => state.objects.delete(path),
    };
    if method == "POST" && code == 201 && path.ends_with("/jobs") {
        let (status, log) = (state.kubelet)(&done);
        let name = done["metadata"]["name"].as_str().unwrap_or_default();
        let pods = path.replace("/apis/batch/v1", "/api/v1").replace("/jobs", "/pods");
        let pod = json!({"metadata": {"name": format!("{name}-x"), "labels": {"job-name": name}}, "status": status, "log": log});
        state.objects.put(&format!("{pods}/{name}-x"), pod);
    }
    drop(state);
    if fault != Some(Fault::Lost) {
        answer(&mut to, code, &done);
    }
}

fn request(from: &mut impl BufRead) -> Option<(String, String, Vec<u8>)> {
    let mut line = String::new();
    from.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let mut length = 0u64;
    loop {
        let mut header = String::new();
        from.read_line(&mut header).ok()?;
        let Some((name, value)) = header.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = Vec::new();
    from.take(length).read_to_end(&mut body).ok()?;
    Some((method, target, body))
}

fn answer(to: &mut UnixStream, code: u16, document: &Value) {
    let body = document.to_string();
    let _ = write!(
        to,
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

/// In chunks, as the real one; kept open while the pod runs.
fn send_log(to: &mut UnixStream, pod: &Value) {
    let log = pod["log"].as_str().unwrap_or_default();
    let _ = to.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for part in log.as_bytes().chunks(1000) {
        let _ = write!(to, "{:x}\r\n", part.len());
        let _ = to.write_all(part).and_then(|()| to.write_all(b"\r\n"));
    }
    if pod["status"]["phase"] == "Running" {
        // Until the other side has gone, or a test has waited in vain.
        let _ = to.read(&mut [0u8; 1]);
        return;
    }
    let _ = to.write_all(b"0\r\n\r\n");
}
