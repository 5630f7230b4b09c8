#!/usr/bin/env bash
# DuckDB from PyPI in a virtual environment under target/, for the test of docs/fleet-queries.md. Where it cannot be had, nothing is
# made, and the test says that it was skipped.
set -u
cd "$(dirname "$0")/.."
venv=${CARGO_TARGET_DIR:-target}/duckdb-venv
[ -x "$venv/bin/python3" ] && "$venv/bin/python3" -c 'import duckdb' 2>/dev/null && exit 0
python3 -m venv "$venv" >/dev/null 2>&1 && "$venv/bin/pip" install --quiet --disable-pip-version-check duckdb >/dev/null 2>&1 && exit 0
rm -rf "$venv"
echo "DuckDB cannot be had from PyPI: the queries of docs/fleet-queries.md are not run" >&2
