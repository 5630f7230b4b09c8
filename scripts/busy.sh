#!/usr/bin/env bash
# The unit suites on a machine that has no time for them: three times beside twice as many busy loops as CPUs, and once
# under nice -n 19 (without the loops: beside them it would get a hundredth of a CPU). A test that fails here asserts luck
# with the clock. What was skipped is listed at the end.
#
# usage: scripts/busy.sh [ARGUMENT OF CARGO TEST…]
set -u -o pipefail
cargo="${CARGO:-cargo}"
loops=()
log="$(mktemp)"

# Only loops that this script started, by their number.
quiet() {
    local loop
    for loop in "${loops[@]}"; do kill "$loop" 2>/dev/null; done
    wait 2>/dev/null
    loops=()
}
clean() {
    quiet
    rm -f "$log"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Built before the machine is busy.
"$cargo" test --quiet --locked --workspace --no-run "$@" || exit 1

n=$((2 * $(nproc)))
for _ in $(seq "$n"); do
    # One that outlives its parent (kill -9) would be nobody's: it looks now and then.
    (while kill -0 $$ 2>/dev/null; do for _ in {1..200000}; do :; done; done) &
    loops+=($!)
done

failed=0
for run in 1 2 3 nice; do
    if [ "$run" = nice ]; then
        before=(nice -n 19)
        words="under nice -n 19"
        quiet
    else
        before=()
        words="beside $n busy loops, $run of 3"
    fi
    echo "make test-busy: $words"
    { "${before[@]}" "$cargo" test --quiet --locked --workspace --no-fail-fast "$@" 2>&1 1>&3 | tee -a "$log" >&2; } 3>&1
    code=$?
    if [ "$code" -ne 0 ]; then
        failed=1
        echo "make test-busy: FAILED $words (code $code)" >&2
    fi
done

if grep -q '^SKIPPED ' "$log"; then
    echo "make test-busy: skipped:"
    sed -n 's/^SKIPPED /  /p' "$log" | sort -u
fi
[ "$failed" -eq 0 ] && echo "make test-busy: all four runs passed"
exit "$failed"
