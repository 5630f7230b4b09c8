#!/usr/bin/env bash
# In the cluster: rollouts over the real node and those that are not there, as an operator with the chart's rights. rollout.sh DIR WAKEWATT
#
# A gate fails once and everything is put back; it passes, and the API server is killed in the middle; Prometheus is gone during a gate; a second
# operator is refused. The real node's governor is looked at in this machine's own file each time.
set -euo pipefail
dir=$1 wakewatt=$2
run=$WAKEWATT_CLUSTER_RUN work=$WAKEWATT_CLUSTER_RUN/rollout
governor=/sys/devices/system/cpu/cpuidle/current_governor
found=$(cat $governor)
other=menu; [ "$found" != menu ] || other=ladder
mkdir -p "$work" && cd "$work"
began=$(date +%s.%N)
# Somebody's tests of wakewatt may be changing this machine's settings; a rollout would rightly leave this node out.
is_free() { flock -n /var/lib/wakewatt/lock true; }
for _ in $(seq 600); do is_free && break; sleep 0.5; done
say() { printf '%7.1f s  %s\n' "$(echo "$(date +%s.%N) - $began" | bc)" "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
cat > prometheus.yml <<'X'
global: {scrape_interval: 1s}
scrape_configs: [{job_name: wakewatt, static_configs: [{targets: ["127.0.0.1:9742"]}]}]
X
start_prometheus() { prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address=127.0.0.1:19090 > "$dir/logs/prometheus" 2>&1 & prometheus=$!; }
start_prometheus
for _ in $(seq 60); do curl -fs 'http://127.0.0.1:19090/api/v1/query?query=wakewatt_cpus_online' | grep -q '"value"' && break; sleep 0.5; done
"$wakewatt" tune plan --json --set "idle.governor=$other" > "$WAKEWATT_FAKE_STATE/plan.json"
plan() { # BELOW PAUSE FILE
  cat > "$3" <<X
format = 1
name = "k0"
on_failure = "undo-all"
parallel = 16
order_within = "120s"
[change]
set = ["idle.governor=$other"]
[targets]
labels = ["wakewatt.internal/proof"]
[[stage]]
canary = 1
pause = "$2"
[[stage]]
name = "a tenth"
percent = 10
pause = "$2"
[[stage]]
name = "the rest"
percent = 100
pause = "$2"
[[gate]]
name = "online"
promql = 'wakewatt_cpus_online'
below = $1
cannot_tell = "hold"
hold = "20s"
X
}
kubectl label node node1 -l kubernetes.io/hostname=node1 wakewatt.internal/proof=1 >/dev/null 2>&1 || kubectl label node node1 wakewatt.internal/proof=1 >/dev/null
kubectl label nodes -l pool=fake wakewatt.internal/proof=1 > /dev/null
rollout() { "$wakewatt" fleet rollout "$@" --kubernetes --kubeconfig "$run/kubeconfig.operator" --image localhost/wakewatt:proof --prometheus http://127.0.0.1:19090; }
changed() { grep -l . "$WAKEWATT_FAKE_STATE"/fake-* 2>/dev/null | wc -l; }
n=$(kubectl get nodes -l wakewatt.internal/proof -o name | wc -l)

plan 1 1s fails.toml
code=0; rollout fails.toml > fails.out 2>&1 || code=$?
[ "$code" = 7 ] || { tail -20 fails.out; fail "a gate that fails ends with $code"; }
[ "$(changed)" = 0 ] && [ "$(cat $governor)" = "$found" ] || fail "something is still changed: $(changed) nodes"
say "a gate that fails: the canary is undone, code 7"

plan 1000 2s passes.toml
rollout passes.toml > passes.out 2>&1 & going=$!
for _ in $(seq 600); do [ "$(changed)" -ge 5 ] && break; kill -0 $going || break; sleep 0.2; done
say "$(changed) nodes changed: the API server is killed"
kill -9 "$(cat "$run/apiserver.pid")"
sleep 6
"$run/apiserver" & echo $! > "$run/apiserver.pid"
until kubectl get --raw /readyz >/dev/null 2>&1; do sleep 0.3; done
say "the API server is back"
code=0; rollout passes.toml > second.out 2>&1 || code=$?
[ "$code" = 8 ] || { tail -5 second.out; fail "a second operator was not refused but ended with $code"; }
say "a second operator: $(tail -1 second.out)"
code=0; wait $going || code=$?
[ "$code" = 0 ] || { tail -30 passes.out; fail "ended with $code"; }
[ "$(cat $governor)" = "$other" ] || fail "the real node was not changed"
[ "$(grep -l applied "$WAKEWATT_FAKE_STATE"/fake-* | wc -l)" = "$((n - 1))" ] || fail "not all are confirmed"
say "$n nodes changed and confirmed in three stages, the real one among them"
kubectl get configmaps,leases -n wakewatt -l app.kubernetes.io/part-of=wakewatt-rollout -o custom-columns=KIND:.kind,NAME:.metadata.name
kubectl get configmap -n wakewatt wakewatt-rollout -o jsonpath='{.data.state}' | wc -c | sed 's/$/ bytes of state/'
kubectl get configmaps -n wakewatt -o json | grep -c '\\n' | sed 's/$/ objects with lines/' || true
rollout --status | head -12
rollout --undo > undo.out 2>&1 || { tail -20 undo.out; fail "undo"; }
[ "$(changed)" = 0 ] && [ "$(cat $governor)" = "$found" ] || fail "not all put back: $(changed)"
say "all put back"

plan 1000 3s away.toml
rollout away.toml > away.out 2>&1 & going=$!
for _ in $(seq 600); do [ "$(changed)" -ge 1 ] && break; sleep 0.1; done
kill -9 $prometheus
code=0; wait $going || code=$?
[ "$code" = 7 ] || { tail -20 away.out; fail "without Prometheus it ended with $code"; }
[ "$(changed)" = 0 ] || fail "still changed"
say "Prometheus gone during a gate: $(grep -m1 'no answer' away.out || echo 'no answer')"
kubectl get jobs -n wakewatt --no-headers 2>/dev/null | wc -l | sed 's/$/ Jobs left for now; they go by themselves/'
