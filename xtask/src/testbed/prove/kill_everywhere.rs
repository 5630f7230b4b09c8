//! `kill -9` of `tune apply` and `tune undo` at points spread over their whole run leaves before or planned.
//!
//! Three kinds: the process group is killed and the guard undoes; the guard is killed with it and `wakewatt recover`
//! undoes; `tune undo` is killed and run again. Points are delays in equal steps from 0 to a little over the time one
//! run takes, so that some fall before the first write and some after the last. The memory tests of wakewatt-tune try
//! every operation, and the loss of power, which cannot be had here: the root file system is memory.

use super::dump;
use super::{Inside, Proof, ProofResult, as_filed, no_words};
use anyhow::Result;

pub(super) const PROOF: Proof = Proof {
    name: "kill-everywhere",
    machine: "governors",
    words: no_words,
    shape: as_filed,
    script,
    judge,
    boots: super::once,
};

const WORDS: &str = "--max-latency 2us --set qos.cpu@cpus:0=40us --set idle.state.C3=off --set idle.governor=ladder \
    --set freq.governor=conservative --set freq.tunable.conservative.up_threshold=98 \
    --set freq.tunable.conservative.down_threshold=95 --set freq.max=2GHz --set freq.min=1.6GHz";
/// Points of each kind.
const N_KILLED: usize = 14;
const N_BOTH: usize = 14;
const N_UNDO: usize = 6;

/// `point KIND I N` prints one line: kind, delay, state right after, state at the end, code of recovery.
const SHELL: &str = r#"
ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }
guards() { for p in /proc/[0-9]*; do tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q '^[^ ]*wakewatt guard ' && echo "${p#/proc/}"; done; }
settled() { tries=0; while [ -n "$(guards)" ] && [ $tries -lt 200 ]; do usleep 50000; tries=$((tries + 1)); done; [ $tries -lt 200 ]; }
state() {
  dump_cpu now
  if cmp -s now.dump before.dump && cmp -s now.list before.list; then echo before
  elif cmp -s now.dump planned.dump && cmp -s now.list planned.list; then echo planned
  else echo between; fi
}
journals() { ls /var/lib/wakewatt/open 2>/dev/null | grep -c json; }
point() {
  kind=$1 delay=$(( $4 * $2 / $3 ))
  case $kind in
    undo) wakewatt tune apply $WORDS >/dev/null 2>&1; setsid wakewatt tune undo >/dev/null 2>&1 & ;;
    *) setsid wakewatt tune apply $WORDS >/dev/null 2>&1 & ;;
  esac
  pid=$!
  usleep $((delay * 1000))
  if [ $kind = both ]; then
    kill -STOP -$pid 2>/dev/null
    for g in $(guards); do kill -9 "$g" 2>/dev/null; done
  fi
  kill -9 -$pid 2>/dev/null
  wait $pid 2>/dev/null
  settled || echo "point $kind $delay GUARD DOES NOT END"
  right=$(state) left=$(journals)
  case $kind in
    undo) wakewatt tune undo >point.said 2>&1 ;;
    *) wakewatt recover >point.said 2>&1 ;;
  esac
  code=$?
  end=$(state)
  kept=$(journals)
  echo "point $kind $delay $right $left $end $kept $code"
  if [ $end = between ] || [ $code != 0 ]; then cat point.said; diff -a before.dump now.dump; diff -a planned.dump now.dump; fi
  [ $end = before ] && [ "$kept" = 0 ] || wakewatt tune undo --all --force >/dev/null 2>&1
  rest=$(state)
  [ "$rest" = before ] || echo "rest $kind $delay $rest"
}
"#;

fn script() -> String {
    let mut script = format!("{}{SHELL}\nWORDS='{WORDS}'\n", dump::SHELL);
    // Once for nothing: what the first run reads from disk and resets for good is not the proof's matter.
    script += "run first wakewatt tune apply $WORDS\nwakewatt tune undo >/dev/null 2>&1\ndump_cpu before\n";
    script += "a=$(ms); run apply wakewatt tune apply $WORDS; b=$(ms); dump_cpu planned\n";
    script += "c=$(ms); run undo wakewatt tune undo; d=$(ms)\n";
    script += "apply=$(( (b - a) * 11 / 10 )) undo=$(( (d - c) * 11 / 10 ))\n";
    script += "{ echo \"took $((b - a)) $((d - c))\"; echo \"start $(state)\"\n";
    for (kind, n, span) in [("guard", N_KILLED, "$apply"), ("both", N_BOTH, "$apply"), ("undo", N_UNDO, "$undo")] {
        script += &format!("i=0; while [ $i -lt {n} ]; do point {kind} $i {n} {span}; i=$((i+1)); done\n");
    }
    script + "} >points 2>&1\n"
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    for step in ["first", "apply", "undo"] {
        verdict.step(inside, step, 0, &[]);
    }
    let points = inside.text("points");
    verdict.expect(points.contains("start before\n"), || "before is not found again after an undo".into());
    let lines =
        |word: &str| points.lines().map(|l| l.split(' ').collect::<Vec<_>>()).filter(|l| l[0] == word).collect();
    let all: Vec<Vec<&str>> = lines("point");
    for (kind, expected) in [("guard", N_KILLED), ("both", N_BOTH), ("undo", N_UNDO)] {
        let mut n = [0; 3];
        let mut ends = [0; 2];
        for point in all.iter().filter(|p| p[1] == kind) {
            let [_, _, delay, right, _, end, kept, code] = point[..] else {
                verdict.wrong.push(point.join(" "));
                continue;
            };
            n[["before", "between", "planned"].iter().position(|s| *s == right).unwrap_or(1)] += 1;
            ends[usize::from(end == "planned")] += 1;
            // Planned is for good only with a complete journal; before, only without one.
            let is_sound = matches!((end, kept), ("before", "0") | ("planned", "1")) && code == "0";
            verdict.expect(is_sound, || {
                format!("{kind} after {delay} ms: {right}, then {end} with {kept} journals, recovery ended with {code}")
            });
            verdict.expect(kind != "guard" || right != "between", || {
                format!("{kind} after {delay} ms: the guard has ended and the state is in between")
            });
        }
        let tried: usize = n.iter().sum();
        verdict.expect(tried == expected, || format!("{kind}: {tried} points of {expected}"));
        let what = match kind {
            "guard" => "apply killed, guard alive",
            "both" => "apply and guard killed, then recover",
            _ => "undo killed, then undo again",
        };
        verdict.counted.push(format!(
            "{what}: {tried} points; found as before {}, in between {}, as planned {}; in the end before {}, planned {}",
            n[0], n[1], n[2], ends[0], ends[1]
        ));
    }
    let rest: Vec<Vec<&str>> = lines("rest");
    verdict.wrong.extend(rest.iter().map(|line| format!("the last undo leaves it {}", line[1..].join(" "))));
    let took = points.lines().find_map(|l| l.strip_prefix("took ")).unwrap_or_default();
    verdict.counted.push(format!("apply and undo took {took} ms inside; the loss of power is tried in memory only"));
    Ok(verdict)
}
