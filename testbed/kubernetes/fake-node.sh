#!/usr/bin/env bash
# What wakewatt would say on a node that is not there: fake-node.sh NODE ARGUMENT…
#
# A transaction is kept in a file for each node, so a rollout sees what it did. The plan is the one that wakewatt made on this machine for the
# same words; nothing is set anywhere.
set -euo pipefail
state=${WAKEWATT_FAKE_STATE:-/tmp}/$1 node=$1
shift
transaction() { # PHASE NOTE
  printf '{"id":"tune-1","purpose":"made up [%s]","phase":"%s","is_of_this_boot":true,"settings":[]}' "$2" "$1"
}
[ ! -e "$state" ] || read -r phase note < "$state"
case "$1 ${2:-}" in
  "tune plan") cat "$WAKEWATT_FAKE_STATE/plan.json" ;;
  "tune status")
    printf '{"schema":"wakewatt/tune-status/v1","transactions":[%s]}\n' "$([ ! -e "$state" ] || transaction "$phase" "$note")" ;;
  "tune apply")
    for word in "$@"; do case $word in --note=*) note=${word#--note=} ;; esac; done
    echo "unconfirmed ${note:-none}" > "$state"
    echo '{"schema":"wakewatt/tune-apply/v1","id":"tune-1","not_restored":[]}' ;;
  "tune confirm")
    [ ! -e "$state" ] || echo "applied $note" > "$state"
    printf '%s' "$node" ;;
  "tune undo") rm -f "$state" ;;
  "capture -o") cat "$WAKEWATT_FAKE_STATE/capture.host" ;;
  *) echo "fake node $node knows no answer to: $*" >&2; exit 3 ;;
esac
