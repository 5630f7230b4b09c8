#!/usr/bin/env bash
# In the cluster: case K0 from end to end, with 26 simulated nodes and the real one. k0.sh DIR WAKEWATT
#
# Twenty-six nodes that are not there export over HTTP into a real Prometheus (k0-nodes.py). `fleet compare` names the odd ones and leaves the busy ones alone; a
# rollout in waves whose gate holds changed nodes against unchanged ones fails once and puts everything back, then passes; compared again, only those are odd that the
# change was not made for. The change is a real one on the real node only: on the others a script answers, and the exporter follows its files.
set -euo pipefail
dir=$1 wakewatt=$2
here=$(cd "$(dirname "$0")" && pwd)
run=$WAKEWATT_CLUSTER_RUN work=$WAKEWATT_CLUSTER_RUN/k0 state=$WAKEWATT_FAKE_STATE
governor=/sys/devices/system/cpu/cpuidle/current_governor
found=$(cat $governor) other=menu
[ "$found" != menu ] || other=ladder
mkdir -p "$work" && cd "$work"
rm -f "$state"/fake-* "$state/harm"
began=$(date +%s.%N)
say() { printf '%7.1f s  %s\n' "$(echo "$(date +%s.%N) - $began" | bc)" "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
is_free() { flock -n /var/lib/wakewatt/lock true; }
for _ in $(seq 1200); do is_free && break; sleep 0.5; done
python3 "$here/k0-nodes.py" 9800 26 "$state" > "$dir/logs/k0-nodes" 2>&1 &
targets=$(for n in $(seq 0 25); do printf '"fake-%03d",' "$n"; done)
cat > prometheus.yml <<Y
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: k0
    static_configs: [{targets: [${targets%,}]}]
    relabel_configs:
      - {source_labels: [__address__], target_label: instance}
      - {source_labels: [__address__], target_label: __metrics_path__, replacement: '/\$1'}
      - {target_label: __address__, replacement: '127.0.0.1:9800'}
Y
prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address=127.0.0.1:19091 > "$dir/logs/prometheus-k0" 2>&1 &
store=http://127.0.0.1:19091
work_query='sum by (instance) (rate(http_requests_total[$window]))'
compare() { "$wakewatt" fleet compare --prometheus $store --work "$work_query" --last 80s --windows 8 "$@"; }
odd() { compare --json | python3 -c 'import json,sys; print(" ".join(sorted(n["name"] for n in json.load(sys.stdin)["nodes"] if n["word"] == "dearer")))'; }
sleep 90
say "80 s of 26 nodes in Prometheus; odd: $(odd)"
[ "$(odd)" = "fake-002 fake-005 fake-009 fake-016 fake-021" ] || { compare; fail "others are called odd"; }
compare > compare.out
head -12 compare.out
"$wakewatt" tune plan --json --set "idle.governor=$other" > "$state/plan.json"
kubectl label nodes --all wakewatt.internal/proof- > /dev/null 2>&1 || true
kubectl label nodes $(for n in $(seq 0 25); do printf 'fake-%03d ' "$n"; done) node1 wakewatt.internal/proof=k0 > /dev/null
cat > plan.toml <<Y
format = 1
name = "k0"
on_failure = "undo-all"
parallel = 16
order_within = "120s"
[change]
set = ["idle.governor=$other"]
[targets]
labels = ["wakewatt.internal/proof=k0"]
[[stage]]
canary = 3
pause = "45s"
[[stage]]
name = "half"
percent = 40
pause = "45s"
[[stage]]
name = "the rest"
percent = 100
pause = "5s"
gates = ["requests"]
[[gate]]
name = "cost"
compare = "cpu_per_work_s"
work = '$work_query'
at_most_ratio = 1.05
before = "60s"
window = "10s"
hold = "60s"
[[gate]]
name = "requests"
promql = 'count(rate(http_requests_total[30s]) > 5)'
above = 25
hold = "60s"
Y
rollout() { "$wakewatt" fleet rollout "$@" --kubernetes --kubeconfig "$run/kubeconfig.operator" --image localhost/wakewatt:proof --prometheus $store; }
changed() { find "$state" -name 'fake-*' -size +0 | wc -l; }
touch "$state/harm"
code=0; rollout plan.toml > fails.out 2>&1 || code=$?
rm "$state/harm"
[ "$code" = 7 ] || { tail -20 fails.out; fail "the gate was to fail and it ended with $code"; }
[ "$(changed)" = 0 ] && [ "$(cat $governor)" = "$found" ] || fail "something is still changed"
say "$(grep -m1 'gate cost: FAILED' fails.out)"
say "all put back, code 7"
for _ in 1 2 3; do
  sleep 75
  for _ in $(seq 1200); do is_free && break; sleep 0.5; done
  code=0; rollout plan.toml -o "$dir/k0.html" > passes.out 2>&1 || code=$?
  # Somebody's tests of wakewatt are changing this machine: the real node is rightly left out, and everything is as before.
  grep -q "somebody else's change is under way there" passes.out || break
  say "$(grep -m1 "somebody else's change" passes.out)"
done
[ "$code" = 0 ] || { tail -30 passes.out; fail "ended with $code"; }
[ "$(cat $governor)" = "$other" ] && [ "$(changed)" = 26 ] || fail "not all were changed: $(changed)"
say "$(grep 'gate cost: passed' passes.out | tail -1)"
say "27 of 27 nodes changed in three stages, the real one among them"
sleep 85
[ "$(odd)" = "fake-005 fake-016" ] || { compare; fail "afterwards others are odd: $(odd)"; }
say "compared again: $(odd), the low clocks, which the change was not made for"
rollout --undo > undo.out 2>&1 || { tail -20 undo.out; fail "undo"; }
[ "$(changed)" = 0 ] && [ "$(cat $governor)" = "$found" ] || fail "not all put back: $(changed)"
say "all put back"
