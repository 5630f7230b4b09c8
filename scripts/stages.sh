#!/usr/bin/env bash
# Runs stages of the Makefile one after the other; the first that fails ends it. At the end: what each stage took, what was
# skipped and why. What was skipped although this machine could have run it fails.
#
# usage: scripts/stages.sh STAGE…
set -u -o pipefail
cd "$(dirname "$0")/.."
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
took=()

cat <<EOF
$# stages: $*. The first that fails ends it.
It says at the end what each took, and what was skipped and why. No setting of this machine is changed; as root on Debian, programs that are missing are installed.
The first time is compiling, mostly: half an hour on two CPUs that do nothing else, 10 GB of disk.
EOF
n=0
for stage in "$@"; do
    n=$((n + 1))
    echo "make $stage ($n of $#)"
    start=$SECONDS
    "${MAKE:-make}" --no-print-directory "$stage" 2>&1 | tee -a "$log"
    code=${PIPESTATUS[0]}
    took+=("$(printf '  %-10s %4d s' "$stage" $((SECONDS - start)))")
    if [ "$code" -ne 0 ]; then
        printf '%s\n' "time of each stage:" "${took[@]}"
        echo "make test: $stage failed (code $code)" >&2
        exit "$code"
    fi
done

printf '%s\n' "time of each stage:" "${took[@]}" "  in all     $(printf '%4d' $SECONDS) s"
"${CARGO:-cargo}" --quiet xtask skips "$log" || { echo "make test: what was skipped could have run" >&2; exit 1; }
echo "make test: all passed"
