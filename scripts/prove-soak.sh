#!/usr/bin/env bash
# The agent with traced wake-ups by cgroup, for half an hour (SOAK_S): twelve cgroups with work in them, of which every 20 seconds
# three go and three come. No counter falls, the number of series stays bounded, and the agent's memory does not grow after the
# first third. Needs root, BTF and a kernel that mounts cgroup2; everything happens in a mount namespace of its own.
set -euo pipefail
BIN=${BIN:-target/$(rustc -vV | sed -n 's/^host: //p')/release/wakewatt}
SOAK_S=${SOAK_S:-1800}
PORT=${PORT:-9187}
if [ "${SOAK_INSIDE:-}" != 1 ]; then
  if [ "$(id -u)" != 0 ]; then echo "prove-soak needs root" >&2; exit 77; fi
  export SOAK_INSIDE=1 BIN SOAK_S PORT
  exec unshare --mount --propagation private bash "$0"
fi
mount -t cgroup2 cgroup2 /sys/fs/cgroup
root=/sys/fs/cgroup/soak.$$
work=$(mktemp -d)
mkdir "$root"
agent=0
# Run by the trap.
# shellcheck disable=SC2317,SC2329
end() {
  [ "$agent" = 0 ] || kill "$agent" 2>/dev/null || true
  for group in "$root"/*/; do [ ! -e "$group/cgroup.kill" ] || echo 1 >"$group/cgroup.kill"; done
  sleep 0.5
  for group in "$root"/*/; do rmdir "$group" 2>/dev/null || true; done
  rmdir "$root" 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT

start() { # a cgroup with a process that sleeps and wakes
  mkdir "$root/$1"
  # The script is another shell's.
  # shellcheck disable=SC2016
  sh -c 'echo $$ >"$1/cgroup.procs"; while :; do sleep 0.02; done' sh "$root/$1" &
  disown
}
stop() {
  echo 1 >"$root/$1/cgroup.kill"
  for _ in $(seq 50); do rmdir "$root/$1" 2>/dev/null && return; sleep 0.1; done
  echo "$root/$1 does not go"; return 1
}

for n in $(seq 0 11); do start "pay$n"; done
"$BIN" agent --listen "127.0.0.1:$PORT" --trace --by cgroup --top 5 --interval 5s >"$work/said" 2>&1 &
agent=$!
sleep 4
first=0 next=12 began=$SECONDS turn=0
: >"$work/memory"
: >"$work/fell"
while [ $((SECONDS - began)) -lt "$SOAK_S" ]; do
  curl -sf "http://127.0.0.1:$PORT/metrics" >"$work/page" || { echo "no answer; the agent said: $(tail -1 "$work/said")"; exit 1; }
  grep -v '^#' "$work/page" | awk '$1 ~ /_total(\{|$)/ {print $0}' | sort >"$work/now"
  if [ -e "$work/before" ]; then
    # A series is everything before its value.
    awk 'NR == FNR { v = $NF; sub(/ [^ ]*$/, ""); old[$0] = v; next }
         { v = $NF; sub(/ [^ ]*$/, ""); if (($0 in old) && v + 0 < old[$0] + 0) print $0, old[$0], v }' \
      "$work/before" "$work/now" >>"$work/fell"
  fi
  mv "$work/now" "$work/before"
  echo "$((SECONDS - began)) $(awk '/VmRSS/ {print $2}' /proc/$agent/status) $(grep -vc '^#' "$work/page")" >>"$work/memory"
  turn=$((turn + 1))
  if [ $((turn % 4)) = 0 ]; then
    for _ in 1 2 3; do stop "pay$first"; start "pay$next"; first=$((first + 1)); next=$((next + 1)); done
  fi
  sleep 5
done
kill -0 "$agent" || { echo "the agent is gone: $(tail -1 "$work/said")"; exit 1; }
payers=$(grep -c 'payer="[^"]*soak' "$work/page" || true)
awk -v s="$SOAK_S" -v fell="$(wc -l <"$work/fell")" -v groups="$next" -v payers="$payers" '
  { if ($1 < s / 3) { if ($2 > a) a = $2 } else { if ($2 > b) b = $2; if ($3 > series) series = $3 } n++ }
  END {
    printf "%d s, %d scrapes, %d cgroups: memory at most %d KiB in the first third and %d KiB after, at most %d series, %d of cgroups, %d counters fell\n", s, n, groups, a, b, series, payers, fell
    if (b > a * 1.1 + 512 || fell > 0 || series > 2000 || payers == 0) exit 1
  }' "$work/memory" || { sort -u "$work/fell" 2>/dev/null | head -5; exit 1; }
