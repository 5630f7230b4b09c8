#!/bin/bash
# Fuzzes every reader for FUZZ_SECONDS (60) each, or only the targets named: scripts/fuzz.sh [TARGET…]
# libFuzzer needs coverage only, which a stable compiler gives through LLVM's own pass; so neither a nightly compiler nor
# cargo-fuzz is needed (with which the same folder works: cargo +nightly fuzz run host). FUZZ_FEATURES=core builds the
# readers of the core crate alone, in a tenth of the time; FUZZ_FEATURES=fleet those of what other machines answer.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
features=()
targets=(host run wtrace replay vectors server watch meters series import rollout firmware report profile plan journal boot hosts replies bmc)
if [ "${FUZZ_FEATURES:-}" = core ]; then features=(--no-default-features); targets=(host run wtrace replay vectors server watch meters series import rollout firmware); fi
if [ "${FUZZ_FEATURES:-}" = fleet ]; then features=(--no-default-features --features fleet); targets=(rollout firmware hosts replies bmc); fi
if [ $# -gt 0 ]; then targets=("$@"); fi
command -v c++ >/dev/null || { echo "skipped: fuzzing needs a C++ compiler (Debian package g++)"; exit 0; }
out=$(pwd)/target/fuzz
mkdir -p "$out"
# Its target folder is not the program's: other flags, other files.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
  nice cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target-dir "$out/build" "${features[@]}" \
  $(printf -- '--bin %s ' "${targets[@]}")
programs=$out/build/$(rustc -vV | sed -n 's/^host: //p')/release
failed=0
for target in "${targets[@]}"; do
  # What is found new goes to a folder that git ignores; the kept corpus is read only.
  mkdir -p "$out/corpus/$target" "$out/crashes/$target" "fuzz/regressions/$target"
  # Bytes, time and memory of one input: a larger or slower one is a finding.
  if nice "$programs/$target" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
      -print_final_stats=1 -artifact_prefix="$out/crashes/$target/" \
      "$out/corpus/$target" "fuzz/corpus/$target" "fuzz/regressions/$target" >"$out/$target.log" 2>&1; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$target.log") executions, no finding"
  else
    echo "$target: a finding; input below $out/crashes/$target, words in $out/$target.log;"
    echo "  mend it and keep the input as fuzz/regressions/$target/NAME, which make test replays"
    failed=1
  fi
done
exit $failed
