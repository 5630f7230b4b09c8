#!/usr/bin/env bash
# Makes sure that programs are there: ensure-packages.sh [--optional] PROGRAM=PACKAGE ...
#
# Looks for each program first, so a complete machine is left alone. What is missing is installed when this is root on
# a Debian system; otherwise the exact line to type is printed. A missing optional program is said and forgiven (exit
# 0); a missing needed one is an error (exit 1). PROGRAM may hold alternatives: chromium|google-chrome=chromium.
set -euo pipefail

is_optional=no
if [ "${1:-}" = --optional ]; then
  is_optional=yes
  shift
fi

missing_programs=()
missing_packages=()
look() {
  missing_programs=()
  missing_packages=()
  local pair program found
  for pair in "$@"; do
    found=no
    # shellcheck disable=SC2086 # the alternatives are separate words on purpose
    for program in $(tr '|' ' ' <<<"${pair%%=*}"); do
      if command -v "$program" >/dev/null 2>&1; then found=yes; fi
    done
    if [ "$found" = no ]; then
      missing_programs+=("${pair%%=*}")
      missing_packages+=("${pair#*=}")
    fi
  done
}

look "$@"
if [ ${#missing_packages[@]} -eq 0 ]; then exit 0; fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing ${missing_packages[*]} (for ${missing_programs[*]})" >&2
  install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing_packages[@]}" >/dev/null; }
  # The package lists may be old or empty on a fresh machine: try, refresh, try again.
  install 2>/dev/null || { apt-get update -qq >/dev/null && install; } || true
  look "$@"
  if [ ${#missing_packages[@]} -eq 0 ]; then exit 0; fi
  why="could not be installed"
elif command -v apt-get >/dev/null 2>&1; then
  why="missing, and only root can install them"
else
  why="missing, and this is no Debian system; install what holds these programs"
fi
echo "${missing_programs[*]}: $why. On Debian: sudo apt-get install ${missing_packages[*]}" >&2
if [ "$is_optional" = yes ]; then exit 0; fi
exit 1
