//! Lines that are none are refused in a sentence, and mismatches are told.

use super::*;

const CONFIG: &str = r#"{"op":"config","governor":"menu","kernel":"6.1.100","hz":250,"states":[
    {"lat_us":0,"res_us":0,"poll":true},{"lat_us":1,"res_us":2,"poll":false}]}"#;
const SELECT: &str = r#"{"op":"select","sleep_ns":10000000,"delta_tick_ns":2000000,"tick_stopped":false,
    "latency_req_ns":2000000000000,"iowait":0,"disabled":[],"clock_ns":1,"want_idx":0,"want_stop_tick":false}"#;

#[test]
fn decisions_are_compared() {
    let mut replay = Replay::default();
    assert_eq!(replay.line(CONFIG), Ok(Verdict::Followed));
    assert_eq!(replay.line(SELECT), Ok(Verdict::Same));
    replay.line(CONFIG).unwrap();
    let other = SELECT.replace("\"want_idx\":0", "\"want_idx\":1");
    assert!(matches!(replay.line(&other), Ok(Verdict::Different(words)) if words.contains("the kernel chose state 1")));
    // A stopped tick is not asked about.
    let stopped = SELECT.replace("\"tick_stopped\":false", "\"tick_stopped\":true");
    let shallow = stopped.replace("\"sleep_ns\":10000000", "\"sleep_ns\":0");
    replay.line(CONFIG).unwrap();
    assert_eq!(replay.line(&shallow), Ok(Verdict::Same));
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let said = |lines: &[&str]| {
        let mut replay = Replay::default();
        let last = lines.iter().map(|line| replay.line(line)).last();
        last.and_then(Result::err).map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(said(&["not json"]).starts_with("it is not a vector"));
    assert!(said(&[r#"{"op":"dance"}"#]).contains("dance"));
    assert_eq!(said(&[SELECT]), "`select` fits no governor configured before it");
    assert!(said(&[r#"{"op":"config","governor":"fifo"}"#]).contains("governor `fifo`"));
    assert!(said(&[&CONFIG.replace("6.1.100", "elm")]).contains("`elm` is no kernel version"));
    assert!(said(&[&CONFIG.replace("250", "0")]).contains("0 ticks a second"));
    assert!(
        said(&[CONFIG, r#"{"op":"sample","elapsed_us":1,"want_khz":1,"want_next_delay_us":1}"#]).contains("`sample`")
    );
}
