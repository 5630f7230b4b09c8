#!/usr/bin/env bash
# In the cluster: `fleet collect --kubernetes` from the real node and from all that are not there, as a reader with the chart's rights. collect.sh DIR WAKEWATT
#
# The real node is captured and traced by Jobs; for the others a script gives this machine's own capture. Then what came is compared.
set -euo pipefail
wakewatt=$2
run=$WAKEWATT_CLUSTER_RUN work=$WAKEWATT_CLUSTER_RUN/collect
mkdir -p "$work" && cd "$work"
began=$(date +%s.%N)
say() { printf '%7.1f s  %s\n' "$(echo "$(date +%s.%N) - $began" | bc)" "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
"$wakewatt" capture -o "$WAKEWATT_FAKE_STATE/capture.host" 2> /dev/null
n=$(kubectl get nodes -o name | wc -l)
collect() { "$wakewatt" fleet collect --kubernetes --kubeconfig "$run/kubeconfig.reader" --image localhost/wakewatt:proof -o captures --parallel 16 "$@"; }
code=0; collect --capture > capture.out 2>&1 || code=$?
[ "$code" = 0 ] || { tail -20 capture.out; fail "ended with $code"; }
[ "$(find captures -name '*.host' | wc -l)" = "$n" ] && [ -s captures/node1.host ] || fail "not every node gave a capture"
say "$(tail -2 capture.out | head -1)"
code=0; collect --trace 2s --resume > trace.out 2>&1 || code=$?
[ "$code" = 9 ] && [ -s captures/node1.wtrace ] || { tail -20 trace.out; fail "the real node gave no recording, or those that are not there did ($code)"; }
say "a recording of the real node beside them ($(stat -c %s captures/node1.wtrace) bytes), none of those that are not there, code 9"
"$wakewatt" fleet compare --files captures > compare.out || { tail -20 compare.out; fail "compare"; }
say "$(head -1 compare.out)"
