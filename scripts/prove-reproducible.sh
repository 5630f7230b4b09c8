#!/usr/bin/env bash
# Do the same sources give the same bytes, wherever they are built?
#
# usage: scripts/prove-reproducible.sh [--arm64] [--jobs N] [--bin FILE]…
#
# Clones the last commit into two folders whose names differ in length, each with a target folder, a cargo home, a umask and a time zone of its own,
# builds the profile dist and every package in both, and compares SHA256SUMS. Then it looks for the name of either folder, of the cargo home and of the
# home folder in all that came out, unpacked. Two builds of profile dist: half an hour of two CPUs, 6 GB in TMPDIR. With --bin FILE nothing is compiled but the
# chores: packages of that binary, made twice. The first difference is named, and both sides stay for a look. Needs git, dpkg-deb, rpmbuild,
# tar, gzip, and cpio for rpm's content.
set -euo pipefail
cd "$(dirname "$0")/.."

args=() bins=() jobs=()
while [ $# -gt 0 ]; do
  case "$1" in
    --arm64) args+=(--arm64); shift ;;
    --jobs) jobs=(CARGO_BUILD_JOBS="$2"); shift 2 ;;
    --bin) bins+=(--bin "$(realpath "$2")"); shift 2 ;;
    *) sed -n '4p' "$0" >&2; exit 2 ;;
  esac
done
scripts/ensure-packages.sh dpkg-deb=dpkg rpmbuild=rpm cpio=cpio

work=$(mktemp -d -p "${TMPDIR:-/tmp}" wakewatt-same.XXXXXX)
keep=''
tidy() { [ -n "$keep" ] || rm -rf "$work"; }
trap tidy EXIT
say() { printf '%4d s  %s\n' $SECONDS "$*"; }
fail() { keep=1; echo "reproducible: $*; both sides lie in $work" >&2; exit 1; }

commit=$(git rev-parse HEAD)
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
git diff --quiet HEAD || echo "uncommitted changes are not part of it"
home=${CARGO_HOME:-$HOME/.cargo}
cargo=$(command -v "${CARGO:-cargo}")

# build NAME UMASK ZONE
build() (
  folder="$work/$1"
  umask "$2"
  git clone --quiet --no-hardlinks . "$folder"
  git -C "$folder" checkout --quiet "$commit"
  # What was fetched already, under another name.
  mkdir "$folder.home"
  for part in registry git config.toml; do
    [ ! -e "$home/$part" ] || cp -rl "$home/$part" "$folder.home/" 2>/dev/null || cp -r "$home/$part" "$folder.home/"
  done
  cd "$folder"
  # Flags of this shell would take the place of the project's own.
  env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CFLAGS "${jobs[@]}" TZ="$3" SOURCE_DATE_EPOCH="$epoch" CARGO_INCREMENTAL=0 \
    CARGO_HOME="$folder.home" CARGO_TARGET_DIR="$folder.target" "$cargo" xtask packages "$folder.out" "${args[@]}" "${bins[@]}"
  say "built in $folder"
)

build one 022 UTC
build the-other-folder 077 Asia/Tokyo

one="$work/one.out" other="$work/the-other-folder.out"
if ! cmp --silent "$one/SHA256SUMS" "$other/SHA256SUMS"; then
  diff "$one/SHA256SUMS" "$other/SHA256SUMS" >&2 || true
  fail "two builds differ"
fi
(cd "$one" && sha256sum --quiet --check SHA256SUMS) || fail "SHA256SUMS does not hold"
say "the same bytes from two folders: $(wc -l < "$one/SHA256SUMS") files"

# --- no name of this machine's folders in them ------------------------------------------------------------------------------------------
mkdir "$work/in"
for file in "$one"/*; do
  to="$work/in/$(basename "$file")"
  mkdir "$to"
  case "$file" in
    *.deb) dpkg-deb --raw-extract "$file" "$to" ;;
    *.rpm) rpm2cpio "$file" | (cd "$to" && cpio --quiet -idm) ; cp "$file" "$to/" ;;
    *.oci.tar) tar -C "$to" -xf "$file" && for blob in "$to"/blobs/sha256/*; do if gzip -t "$blob" 2>/dev/null; then mkdir "$blob.in" && tar -C "$blob.in" -xzf "$blob" && rm "$blob"; fi; done ;;
    *.tar.gz) tar -C "$to" -xzf "$file" ;;
    *) cp "$file" "$to/" ;;
  esac
done
find "$work/in" -type f -name '*.gz' -exec gunzip -f {} +
# A home folder of one part, such as /root, stands in documentation by right.
names=("$work" "$home" "$(pwd)")
case "$HOME" in /*/*) names+=("$HOME") ;; esac
for name in "${names[@]}"; do
  found=$(grep -rlF --text -- "$name" "$work/in" || true)
  [ -z "$found" ] || fail "$name stands in $found"
done
say "no name of a folder of this machine in them, unpacked"
