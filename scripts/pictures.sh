#!/usr/bin/env bash
# The pictures of pages in README and site, taken anew: pages of kept runs, drawn by today's program.
#
# usage: scripts/pictures.sh [WAKEWATT [FOLDER]]
#
# WAKEWATT is the program (the debug build when not given), FOLDER where they go (docs/images). Light scheme, 32 colours. A phone's page is looked at
# through a frame of 390 px, because a browser has no window as narrow. Not taken here: agent.png (a running agent) and fleet.png (a store of
# 26 nodes). Needs chromium and pngquant.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-target/$(rustc -vV | sed -n 's/^host: //p')/debug/wakewatt}")
folder=$(realpath "${2:-docs/images}")
scripts/ensure-packages.sh chromium=chromium pngquant=pngquant

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=bench/runs/2026-11-22-vm-2cpu-epyc/blocks

# picture PAGE NAME WIDTH HEIGHT
picture() {
  # An own profile, and no host to call.
  chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 --host-resolver-rules='MAP * ~NOTFOUND' \
    --user-data-dir="$work/profile" --blink-settings=preferredColorScheme=1 --window-size="$3,$4" --screenshot="$work/$2.png" "file://$1" >/dev/null 2>&1
  pngquant --force --output "$folder/$2.png" 32 "$work/$2.png"
  echo "$2.png $3x$4, $(($(stat -c %s "$folder/$2.png") / 1000)) kB"
}
report() {
  gunzip -c "$runs/$1.run.gz" > "$work/$1.run"
  "$program" report "$work/$1.run" -o "$work/$1.html" 2>/dev/null
}

gunzip -c bench/runs/2026-11-26-vm-2cpu-epyc-verdict/doctor.run.gz > "$work/doctor.run"
"$program" report "$work/doctor.run" -o "$work/doctor.html" 2>/dev/null
picture "$work/doctor.html" report 1280 1000
# A screen of a phone, and the one below it.
style='body{margin:0;background:#888;display:flex;gap:20px;padding:20px}div{width:390px;height:844px;overflow:hidden}iframe{border:0;width:390px;height:1688px}'
echo "<!doctype html><style>$style</style><div><iframe src=doctor.html></iframe></div>" \
  "<div><iframe src=doctor.html style=margin-top:-844px></iframe></div>" > "$work/phone.html"
picture "$work/phone.html" report-phone 840 884
"$program" doctor --from fixtures/stories/jonas/{dmidecode,numactl,lscpu}.txt -o "$work/jonas.html" >/dev/null
picture "$work/jonas.html" memory 820 1200
gunzip -c bench/runs/2026-11-24-vm-2cpu-epyc/network.run.gz > "$work/network.run"
"$program" report "$work/network.run" -o "$work/network.html" 2>/dev/null
picture "$work/network.html" network 820 1240
report k3-disk
picture "$work/k3-disk.html" disk 820 1560
report k0-shop-200
picture "$work/k0-shop-200.html" shop 820 1560
"$program" replay fixtures/traces/arm64-menu-exact-6.1.wtrace --recorded hz=250 --set max-latency=85us -o "$work/replay.html" >/dev/null
picture "$work/replay.html" replay 820 1700
"$program" simulate k4-governors --setting performance --setting powersave --setting ondemand --setting conservative --setting conservative-98-95 \
  -o "$work/governors.html" >/dev/null
picture "$work/governors.html" governors 820 1400
