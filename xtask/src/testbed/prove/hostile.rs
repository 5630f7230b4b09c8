//! `wakewatt tune` where the disk is full, the kernel refuses, CPUs come and go, clocks jump, journals are damaged, a
//! second instance runs, or the user is not root: nothing stays changed that was not promised, and the exit code and
//! the words say what happened. The script, `hostile.sh`, has one block per kind.

use super::dump;
use super::{Inside, Proof, ProofResult, as_filed, no_words};
use anyhow::Result;

pub(super) const PROOF: Proof = Proof {
    name: "hostile",
    machine: "governors",
    words: no_words,
    shape: as_filed,
    script,
    judge,
    boots: super::once,
};

const FINE: u8 = 0;
const BAD_FILE: u8 = 4;
const NOT_RESTORED: u8 = 5;
const DRIFT: u8 = 6;
const REFUSED: u8 = 7;
const BUSY: u8 = 8;

fn script() -> String {
    format!("{}\n{}", dump::SHELL, include_str!("hostile.sh"))
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    disk(inside, &mut verdict);
    refusals(inside, &mut verdict);
    foreign(inside, &mut verdict);
    toggling(inside, &mut verdict);
    clocks(inside, &mut verdict);
    instances_and_users(inside, &mut verdict);
    journals(inside, &mut verdict);
    Ok(verdict)
}

fn same(inside: &Inside, verdict: &mut ProofResult, step: &str) {
    let text = inside.text(&format!("{step}.same"));
    verdict.expect(text == "same\n", || format!("{step}: not as before: {}", text.trim().replace('\n', " | ")));
}

fn disk(inside: &Inside, verdict: &mut ProofResult) {
    let mut n = [0; 2];
    for pages in 0..12 {
        let step = format!("full.{pages}");
        let is_applied = inside.code(&step) == Some(FINE);
        n[usize::from(is_applied)] += 1;
        if is_applied {
            verdict.step(inside, &format!("{step}.undo"), FINE, &[]);
        } else {
            let code = inside.code(&step);
            let is_told = code == Some(BAD_FILE) || code == Some(REFUSED);
            verdict.expect(is_told, || format!("{step}: ended with {code:?}: {}", inside.said(&step)));
            verdict.expect(inside.said(&step).contains("No space left"), || {
                format!("{step}: does not say why: {}", inside.said(&step))
            });
        }
        let kept = inside.text(&format!("{step}.journals"));
        verdict.expect(kept == "0\n", || format!("{step}: {} journals are left", kept.trim()));
        same(inside, verdict, &step);
    }
    verdict.expect(n[0] > 0 && n[1] > 0, || format!("a full disk: {} refused, {} applied: no edge", n[0], n[1]));
    verdict.step(inside, "rostate", REFUSED, &["Read-only file system", "nothing is changed"]);
    same(inside, verdict, "rostate");
    verdict.counted.push(format!(
        "a full disk at 12 fillings: {} refused with nothing changed, {} applied and undone; a read-only state folder",
        n[0], n[1]
    ));
}

fn refusals(inside: &Inside, verdict: &mut ProofResult) {
    for (step, words) in [
        ("rosys", "Read-only file system"),
        ("rocpu", "Read-only file system"),
        ("nonsense", "none of"),
        ("einval", "Invalid argument"),
        ("nosmt", "cpu.smt"),
        ("lastcpu", "cpu.online"),
        ("offline", "freq.governor"),
    ] {
        verdict.step(inside, step, REFUSED, &[words]);
    }
    for step in ["others", "others.undo"] {
        verdict.step(inside, step, FINE, &[]);
    }
    for step in ["rosys", "rocpu", "no", "offline"] {
        same(inside, verdict, step);
    }
    verdict.counted.push(
        "8 refusals end with 7 and nothing changed: /sys read-only in whole and for one CPU, the state folder, no such \
         governor, EINVAL, no SMT, the last CPU, a CPU that is offline"
            .into(),
    );
}

fn foreign(inside: &Inside, verdict: &mut ProofResult) {
    verdict.step(inside, "foreign.status", DRIFT, &["2.6GHz", "ondemand"]);
    verdict.step(inside, "foreign.undo", NOT_RESTORED, &["left alone"]);
    let left = inside.text("foreign.left");
    verdict.expect(left == "2600000\nondemand\n0\n", || format!("foreign: after the undo {left:?}"));
    verdict.step(inside, "foreign.force", FINE, &[]);
    same(inside, verdict, "foreign");
    verdict
        .counted
        .push("two settings changed by somebody else are drift (6), left alone by undo (5), not with --force".into());
}

fn toggling(inside: &Inside, verdict: &mut ProofResult) {
    let mut n = std::collections::BTreeMap::new();
    for at in 0..8 {
        let step = format!("toggle.{at}");
        let code = inside.code(&step);
        *n.entry(format!("{}", code.unwrap_or(255))).or_insert(0) += 1;
        let is_known = matches!(code, Some(FINE | REFUSED | NOT_RESTORED));
        verdict.expect(is_known, || format!("{step}: ended with {code:?}: {}", inside.said(&step)));
        for step in [step.clone(), format!("{step}.status"), format!("{step}.undo")] {
            verdict.expect(!inside.said(&step).contains("panicked at"), || format!("{step}: {}", inside.said(&step)));
        }
    }
    verdict.step(inside, "toggle.recover", FINE, &[]);
    verdict.step(inside, "toggle.all", FINE, &[]);
    verdict.expect(inside.text("toggle.journals") == "0\n", || "journals are left after the toggling".into());
    same(inside, verdict, "toggle");
    let n: Vec<String> = n.iter().map(|(code, n)| format!("{n} with {code}")).collect();
    verdict.counted.push(format!(
        "apply while CPU 1 goes and comes every 0.3 s: 8 runs, ended {}; {} journals left, all as before once it stays",
        n.join(", "),
        inside.text("toggle.left").trim()
    ));
}

fn clocks(inside: &Inside, verdict: &mut ProofResult) {
    for way in ["forwards", "backwards"] {
        let step = format!("clock.{way}");
        verdict.step(inside, &step, FINE, &["tune confirm"]);
        verdict.step(inside, &format!("{step}.recover"), FINE, &["still waits"]);
        let seen = ["early", "late", "journals"].map(|f| inside.text(&format!("{step}.{f}")));
        verdict.expect(seen == ["1\n", "0\n", "0\n"], || format!("{step}: early, late, journals: {seen:?}"));
        same(inside, verdict, &step);
    }
    verdict.step(inside, "kept.confirm", FINE, &["kept"]);
    verdict.expect(inside.text("kept.late") == "1\n", || "a confirmed setting went".into());
    verdict.step(inside, "orphan.recover", FINE, &["not confirmed in time"]);
    for step in ["kept", "orphan"] {
        same(inside, verdict, step);
    }
    verdict.counted.push(
        "--confirm-within with the wall clock set 10 years on and 20 back: undone by the boot clock both times; \
         confirmed: kept; its watch killed: undone by recover"
            .into(),
    );
}

fn instances_and_users(inside: &Inside, verdict: &mut ProofResult) {
    verdict.step(inside, "first", FINE, &["applied"]);
    for step in ["second", "second.undo"] {
        verdict.step(inside, step, BUSY, &["another wakewatt"]);
    }
    verdict.step(inside, "second.recover", FINE, &[]);
    verdict.step(inside, "first.undo", FINE, &[]);
    same(inside, verdict, "second");
    for step in ["user.apply", "user.undo"] {
        verdict.step(inside, step, REFUSED, &["needs root"]);
    }
    verdict.step(inside, "user.status", FINE, &["idle.state.C3"]);
    for step in ["user.plan", "user.knobs"] {
        verdict.step(inside, step, FINE, &[]);
    }
    same(inside, verdict, "user");
    verdict.counted.push("a second instance ends with 8; a user who is not root gets 7 and is told why".into());
}

fn journals(inside: &Inside, verdict: &mut ProofResult) {
    for (kind, word) in
        [("truncated", "not a journal"), ("empty", "not a journal"), ("format", "99"), ("binary", "not a journal")]
    {
        verdict.step(inside, &format!("bad.{kind}.status"), BAD_FILE, &["tune-1.json", word]);
        verdict.step(inside, &format!("bad.{kind}.verify"), BAD_FILE, &["tune-1.json", word]);
        verdict.step(inside, &format!("bad.{kind}.undo"), NOT_RESTORED, &["tune-1.json", word]);
        verdict.step(inside, &format!("bad.{kind}.recover"), NOT_RESTORED, &["tune-1.json", word]);
        verdict.step(inside, &format!("bad.{kind}.apply"), FINE, &[]);
        let said = inside.said(&format!("bad.{kind}.status"));
        verdict.expect(!said.contains("Nothing is applied"), || format!("bad.{kind}.status: calls that nothing"));
    }
    verdict.step(inside, "mended.undo", FINE, &[]);
    same(inside, verdict, "bad");
    verdict
        .counted
        .push("4 damaged journals (truncated, empty, format 99, binary) are named, by 5 commands each".into());
}
