//! Pages of nodes that were made up: whole, calling nobody, foreign text as text.

use super::maker;
use wakewatt_agent::Found;
use wakewatt_agent::history::Change;
use wakewatt_agent::node::past::{Heat, Line, Past};
use wakewatt_agent::node::{Node, PayingRow, Setting, State, Woken};
use wakewatt_core::rules::Weight;
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::samples::wakes::WakeClass;
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::{Reading, Why};

const EVIL: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";

/// A node of which everything is known, under this name for all that is foreign.
fn node(name: &str) -> Node {
    let state = |index: u32, share: f64| State {
        index,
        name: format!("{name}{index}"),
        exit_latency_ns: Some(170_000),
        target_residency_ns: Some(600_000),
        share_ratio: Reading::Known(share),
        wakeups_per_s: Reading::Known(1234.0),
        above_per_s: Reading::Known(3.0),
        below_per_s: Reading::Missing(Why::Denied),
        n_disabled: index,
    };
    let row = |class: WakeClass, p99_ns: u64| Woken {
        state: name.into(),
        index: 2,
        class,
        n: 5000,
        p50_ns: Some(40_000),
        p99_ns: Some(p99_ns),
    };
    let mut node = Node {
        hostname: Some(name.into()),
        wall_ms: 1_700_000_000_000,
        started_ms: 1_699_999_000_000,
        window_ns: Some(10_000_000_000),
        verdict: name.into(),
        n_online: 8,
        busy_ratio: Reading::Known(0.125),
        steal_ratio: Reading::Known(0.0),
        freq_khz: Reading::Known(2_400_000.0),
        states: vec![state(0, 0.1), state(2, 0.7)],
        power_uw: Reading::Known(123_400_000.0),
        power_source: Some(name.into()),
        limit: Reading::Known(LatencyLimit::AtMostNs(50_000)),
        limit_holders: vec![name.into()],
        settings: vec![Setting { what: "idle_governor".into(), is: name.into() }],
        ..Node::default()
    };
    node.latency.window_ns = 90_000_000_000;
    node.latency.rows = vec![row(WakeClass::Remote, 210_000), row(WakeClass::InterruptAfterExit, 900_000)];
    let pays = |payer: Option<&str>, total_ns| PayingRow {
        payer: payer.map(String::from),
        state: name.into(),
        index: 2,
        n: 4_500,
        total_ns,
    };
    node.payers.by = Some(PayerKind::Pod);
    node.payers.window_ns = 90_000_000_000;
    node.payers.rows = vec![pays(Some(name), 180_000_000), pays(None, 90_000_000)];
    node.findings = vec![Found {
        rule: "rule.x".into(),
        title: name.into(),
        weight: Weight::Problem,
        is_choice: false,
        cost: name.into(),
        remedy: name.into(),
    }];
    node
}

fn past(name: &str) -> Past {
    let line = |name: &str, value: f64| {
        let values = (0..60).map(|at| (at % 7 != 3).then_some(value * f64::from(at) / 60.0)).collect();
        Line { name: name.into(), values }
    };
    Past {
        none_because: None,
        from_ms: 1_699_978_400_000,
        step_ms: 360_000,
        n_steps: 60,
        shares: vec![line("busy", 0.3), line(name, 0.6)],
        watts: vec![line(name, 250.0)],
        p99_s: Line { name: "p99".into(), values: vec![Some(65.536e-6); 60] },
        latency: Heat { bounds_s: vec![32.768e-6, 65.536e-6], per_s: vec![vec![Some(1.0); 60]; 3] },
        changes: vec![Change {
            wall_ms: 1_699_990_000_000,
            was_ms: Some(1_699_980_000_000),
            what: if name == "C6" { "idle_governor".into() } else { name.into() },
            from: name.into(),
            to: name.into(),
            held_by: vec![name.into()],
            may_be_by: vec![name.into()],
        }],
        n_older_changes: 0,
    }
}

#[test]
fn a_page_says_everything_and_calls_nobody() {
    let page = maker().unwrap()(&node("C"), &past("C6")).unwrap();
    for forbidden in ["http://", "https://", "<script", "src=", "url(", "@import", "<link", "xmlns", "NaN", "undefined"]
    {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let page = page.replace('\u{a0}', " ");
    for part in [
        "123 W",
        "210 us",
        "50 us",
        "held by C",
        "12 %",
        "70 %",
        "off on 2",
        "denied",
        "http-equiv=\"refresh\"",
        "<svg",
        "2.4 GHz",
        ", since 19:26</dd>",
        ">1 since 19:26</text>",
        "held by C6; C6 ran and may have changed it; last seen as before at 2023-11-14 16:40:00 UTC",
        "by pod, of what was woken",
        "2.0 ms",
        "all others",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("class=\"big\">900 us"), "a wake-up after the exit holds no exit latency");
}

#[test]
fn foreign_text_never_becomes_markup() {
    let page = maker().unwrap()(&node(EVIL), &past(EVIL)).unwrap();
    assert!(!page.contains("<script") && !page.contains("<img") && page.contains("&lt;script"), "escaped");
}

#[test]
fn a_node_of_which_nothing_is_known_says_why() {
    let mut bare = Node::default();
    bare.latency.none_because = Some("the agent runs without --trace".into());
    bare.payers.none_because = Some("the agent runs without --by".into());
    let page = maker().unwrap()(&bare, &Past::none("the agent runs without --history")).unwrap().replace('\u{a0}', " ");
    for part in [
        "not measured: the agent runs without --trace",
        "no watts: this kernel or machine has no such file",
        "Nothing is known of the time before: the agent runs without --history",
        "tells no idle states",
        "Not measured: the agent runs without --by",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("NaN"));
}
