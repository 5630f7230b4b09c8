#!/usr/bin/env bash
# Do the packages work? Judged by the distributions' own tools, and lived through on a Debian that is booted for it.
#
# usage: scripts/prove-packages.sh [--bin FILE]… [--packages DIR] [--minutes N]
#
# Makes everything twice and compares (not where DIR holds finished packages, which are then taken); asks lintian, rpmlint, rpm, skopeo, umoci and a CycloneDX validator; runs the image as nobody; then boots
# Debian 12 under systemd-nspawn, installs the .deb, starts the agent, lets Prometheus scrape it for N minutes (3), kills and freezes it, upgrades,
# refuses to remove while a journal is there, removes and purges. Root on Debian; what is missing is installed. Without --bin the
# binary of profile dist is built (minutes). A line per step; the first that does not hold ends it. Long, so not in make test.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s nullglob

bins=() made='' minutes=3
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bins+=(--bin "$2"); shift 2 ;;
    --packages) made=$(realpath "$2"); shift 2 ;;
    --minutes) minutes=$2; shift 2 ;;
    *) sed -n '4p' "$0" >&2; exit 2 ;;
  esac
done
[ "$(id -u)" = 0 ] || { echo "skipped: the packages were not installed anywhere (root)"; exit 0; }
scripts/ensure-packages.sh dpkg-deb=dpkg lintian=lintian rpmbuild=rpm rpmlint=rpmlint umoci=umoci skopeo=skopeo runc=runc mmdebstrap=mmdebstrap \
  systemd-nspawn=systemd-container prometheus=prometheus promtool=prometheus jq=jq

work=$(mktemp -d -p "${TMPDIR:-/tmp}" wakewatt-packages.XXXXXX)
rootfs=target/packages/debian-12
group=/sys/fs/cgroup/systemd/wakewatt-packages
nspawn='' leader='' prometheus=''
tidy() {
  set +e
  [ -n "$prometheus" ] && kill "$prometheus" 2>/dev/null
  [ -n "$leader" ] && kill -s RTMIN+4 "$leader" 2>/dev/null && for _ in $(seq 50); do kill -0 "$nspawn" 2>/dev/null || break; sleep 0.2; done
  [ -n "$nspawn" ] && kill -9 "$nspawn" 2>/dev/null
  wait 2>/dev/null
  for place in rpm merged; do mountpoint -q "$work/$place" && umount "$work/$place"; done
  # nspawn leaves its group in the other hierarchy, too, where there are two.
  for left in "$group" /sys/fs/cgroup/unified/payload; do find "$left" -depth -type d -exec rmdir {} + 2>/dev/null; done
  rm -rf "$work"
}
trap tidy EXIT

say() { printf '%4d s  %s\n' $SECONDS "$*"; }
fail() { echo "packages: $*" >&2; exit 1; }
first() { echo "${1:-}"; }
# Waits for a command to succeed, up to a minute.
until_true() { for _ in $(seq 300); do if "$@" >/dev/null 2>&1; then return 0; fi; sleep 0.2; done; fail "waited in vain for: $*"; }

# --- made twice -----------------------------------------------------------------------------------------------------------------
if [ -n "$made" ]; then
  mkdir "$work/one" && cp "$made"/* "$work/one/"
else
  ${CARGO:-cargo} xtask packages "$work/one" "${bins[@]}"
  if [ ${#bins[@]} -eq 0 ]; then
    tar -xOf "$work"/one/*-x86_64-linux.tar.gz --wildcards '*/bin/wakewatt' > "$work/wakewatt"
    bins=(--bin "$work/wakewatt")
  fi
  (umask 077; TZ=Asia/Tokyo ${CARGO:-cargo} xtask packages "$work/two" "${bins[@]}" >/dev/null)
  cmp "$work/one/SHA256SUMS" "$work/two/SHA256SUMS" || fail "two builds differ"
  rm -rf "$work/two"
  say "made twice from one binary, the same bytes: $(wc -l < "$work/one/SHA256SUMS") files"
fi
(cd "$work/one" && sha256sum --quiet --check SHA256SUMS) || fail "SHA256SUMS does not hold"

# --- judged ----------------------------------------------------------------------------------------------------------------------
for deb in "$work"/one/*.deb; do
  tags=$(lintian --allow-root --display-info --pedantic --fail-on none "$deb" 2>&1 | grep -E '^[EWIPX]:' || true)
  [ -z "$tags" ] || fail "lintian: $tags"
  say "lintian: nothing to say of $(basename "$deb") beyond what is explained"
done
for rpm in "$work"/one/*.rpm; do
  judged=$(rpmlint --strict -c packaging/rpm/rpmlint.toml "$rpm" 2>&1) || fail "rpmlint: $judged"
  say "rpmlint: nothing to say of $(basename "$rpm") beyond what is explained"
done
if python3 -m venv "$work/venv" >/dev/null 2>&1 && "$work/venv/bin/pip" -q install 'cyclonedx-python-lib[json-validation]==11.*' 2>/dev/null; then
  for bill in "$work"/one/*.cdx.json; do
    "$work/venv/bin/python" - "$bill" <<'P' || fail "$bill: not CycloneDX 1.5"
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(str(wrong) if wrong else 0)
P
    say "CycloneDX 1.5, strictly: $(jq '.components | length' "$bill") components in $(basename "$bill")"
  done
else
  echo "skipped: the bill of materials was not validated (PyPI package cyclonedx-python-lib)"
fi

# --- the image ---------------------------------------------------------------------------------------------------------------------
image=$(first "$work"/one/*-amd64.oci.tar)
if [ -n "$image" ]; then
  skopeo inspect "oci-archive:$image" >/dev/null || fail "skopeo cannot read the image"
  mkdir "$work/layout" && tar -C "$work/layout" -xf "$image"
  umoci unpack --image "$work/layout:$(jq -r '.manifests[0].annotations["org.opencontainers.image.ref.name"]' "$work/layout/index.json")" "$work/bundle"
  [ "$(jq -c .process.user "$work/bundle/config.json" | grep -o '"uid":[0-9]*')" = '"uid":65532' ] || fail "the image does not run as nobody"
  # Nothing but itself, to be read only, without a capability, in namespaces of its own.
  jq '.process.args = ["/wakewatt", "agent", "--once"] | .process.terminal = false | .process.capabilities = {} | .process.noNewPrivileges = true
      | .root.readonly = true | del(.linux.resources)' "$work/bundle/config.json" > "$work/config.json"
  mv "$work/config.json" "$work/bundle/config.json"
  runc --root "$work/runc" run --bundle "$work/bundle" wakewatt-packages > "$work/once" || fail "the image's program does not run as nobody"
  promtool check metrics < "$work/once" || fail "the image's agent serves no metrics"
  say "image: $(($(stat -c %s "$image") / 1000)) kB; runs under runc as user 65532 without a capability, beside nothing but itself; $(grep -vc '^#' "$work/once") samples"
fi

# --- rpm -----------------------------------------------------------------------------------------------------------------------------
if [ ! -e "$rootfs/usr/bin/systemctl" ]; then
  mkdir -p "$(dirname "$rootfs")"
  mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus,udev,curl,init-system-helpers,procps bookworm "$rootfs"
  say "Debian 12: $(du -sm "$rootfs" | cut -f1) MB"
fi
# A root of its own over it, at $work/NAME.
root() {
  mkdir "$work/$1" "$work/$1.upper" "$work/$1.work"
  mount -t overlay wakewatt-packages -o "lowerdir=$PWD/$rootfs,upperdir=$work/$1.upper,workdir=$work/$1.work" "$work/$1"
}
rpm=$(first "$work"/one/*.x86_64.rpm)
if [ -n "$rpm" ]; then
  root rpm
  # Scripts run by the shell of that root; what they do with a running systemd is not seen here.
  # Debian's rpm says each time that it is not dpkg.
  in_rpm() {
    local code=0
    rpm --root "$work/rpm" "$@" >"$work/rpm.said" 2>&1 || code=$?
    grep -vE '^rpm: (RPM should|However)' "$work/rpm.said" || true
    return $code
  }
  in_rpm --initdb
  in_rpm --install --nodeps "$rpm" || fail "rpm does not install it"
  chroot "$work/rpm" /usr/bin/wakewatt --version >/dev/null || fail "what rpm installed does not run"
  in_rpm --verify --nodeps wakewatt || fail "rpm --verify"
  mkdir -p "$work/rpm/var/lib/wakewatt/open" && echo "{}" > "$work/rpm/var/lib/wakewatt/open/tune-1.json"
  if in_rpm --erase wakewatt >"$work/refused" 2>&1; then fail "erased although a journal was there"; fi
  grep -q 'wakewatt tune undo --all' "$work/refused" || fail "the refusal does not say what to do: $(cat "$work/refused")"
  chroot "$work/rpm" /usr/bin/wakewatt --version >/dev/null || fail "a refused erasure took something"
  rm -r "$work/rpm/var/lib/wakewatt"
  in_rpm --erase wakewatt || fail "rpm does not erase it"
  left=$(find "$work/rpm" -xdev -name '*wakewatt*' -not -path '*/rpm/*/rpm/*' | head)
  [ -z "$left" ] || fail "rpm --erase leaves $left"
  umount "$work/rpm"
  say "rpm: installed, verified, not erased while a journal is there, erased; nothing left"
fi

# --- a Debian that is booted -----------------------------------------------------------------------------------------------------------
deb=$(first "$work"/one/*_amd64.deb)
[ -n "$deb" ] || { echo "skipped: no .deb for this machine to install"; exit 0; }
[ "$(dpkg --print-architecture)" = amd64 ] || { echo "skipped: the .deb was not installed (this machine is $(dpkg --print-architecture))"; exit 0; }
root merged
cp "$deb" "$work/merged/root/wakewatt.deb"
# systemd in the container takes the control group that it finds itself in for its own: one of its own, then.
if [ -d /sys/fs/cgroup/systemd ]; then mkdir -p "$group"; fi
( if [ -d "$group" ]; then echo "$BASHPID" > "$group/cgroup.procs"; fi
  exec env -i PATH="$PATH" systemd-nspawn --quiet --boot --directory "$work/merged" --machine wakewatt-packages --private-network --register=no \
    --keep-unit --link-journal=no --capability=CAP_BPF,CAP_PERFMON --system-call-filter='bpf perf_event_open' ) </dev/null >"$work/console" 2>&1 &
nspawn=$!
until_true pgrep -P "$nspawn"
leader=$(pgrep -P "$nspawn" | head -1)
inside() { nsenter -t "$leader" -m -u -i -n -p -C env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
until_true inside systemctl is-system-running --wait
inside systemctl is-system-running >/dev/null || { inside systemctl --failed; fail "the Debian did not come up"; }
say "Debian 12 runs, systemd $(inside systemctl --version | head -1 | cut -d' ' -f2)"

inside dpkg --install /root/wakewatt.deb >/dev/null
[ "$(inside systemctl is-enabled wakewatt-agent || true)/$(inside systemctl is-active wakewatt-agent || true)" = disabled/inactive ] || fail "installing starts something"
say "installed; nothing is enabled or started"
inside sh -c 'mkdir -p /var/lib/wakewatt/open && chmod 700 /var/lib/wakewatt/open'
inside systemctl enable --quiet --now wakewatt-agent
page() { inside curl -sf 127.0.0.1:9742/metrics; }
until_true page
page > "$work/page"
promtool check metrics < "$work/page" || fail "promtool does not like its page"
[ "$(inside stat -c %U /var/lib/wakewatt /var/lib/wakewatt/open | sort -u)" = root ] || fail "journals of settings were given to the agent's user"
say "the agent is ready (Type=notify), $(grep -vc '^#' "$work/page") samples; $(inside systemd-analyze security wakewatt-agent --no-pager | grep -o 'Overall.*: [0-9.]*' | cut -c1-80)"
inside journalctl -u wakewatt-agent --no-pager -o cat | grep -E 'given up|traced' | sed 's/^/        /'

pid() { inside systemctl show -P MainPID wakewatt-agent; }
restarts() { inside systemctl show -P NRestarts wakewatt-agent; }
is_new() { [ "$(pid)" != "$1" ] && [ "$(pid)" != 0 ] && page; }
before=$(pid); inside kill -9 "$before"; until_true is_new "$before"
say "killed with signal 9: started anew ($(restarts) restart)"
before=$(pid); inside kill -STOP "$before"
started=$SECONDS
for _ in $(seq 120); do [ "$(pid)" = "$before" ] || break; sleep 1; done
until_true is_new "$before"
inside journalctl -u wakewatt-agent --no-pager | grep -q 'Watchdog timeout' || fail "no watchdog"
say "frozen: the watchdog ended it, $((SECONDS - started)) s until the new one answered ($(restarts) restarts)"

# --- scraped ------------------------------------------------------------------------------------------------------------------------------
printf 'global: {scrape_interval: 5s}\nscrape_configs: [{job_name: wakewatt, static_configs: [{targets: ["127.0.0.1:9742"]}]}]\n' > "$work/prometheus.yml"
nsenter -t "$leader" -n prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address=127.0.0.1:9090 \
  --enable-feature=native-histograms >"$work/prometheus.log" 2>&1 &
prometheus=$!
ask() { inside curl -sfG 127.0.0.1:9090/api/v1/query --data-urlencode "query=$1" | jq -r '.data.result[0].value[1] // "none"'; }
is_up() { [ "$(ask 'up{job="wakewatt"}')" = 1 ]; }
until_true is_up
# Of the one process: its start, its memory, its CPU time in ticks.
cpu_ticks() { inside awk '{print $14 + $15}' "/proc/$(pid)/stat"; }
begin_ticks=$(cpu_ticks) begin=$SECONDS
sleep $((minutes * 60))
percent=$(awk -v t=$(($(cpu_ticks) - begin_ticks)) -v s=$((SECONDS - begin)) -v hz="$(getconf CLK_TCK)" 'BEGIN{printf "%.2f", 100 * t / hz / s}')
[ "$(ask "min_over_time(up{job=\"wakewatt\"}[${minutes}m])")" = 1 ] || fail "a scrape failed"
say "Prometheus, $minutes min: $(ask "count_over_time(up{job=\"wakewatt\"}[${minutes}m])") scrapes, none failed, $(ask 'scrape_samples_scraped') samples each in \
$(ask "avg_over_time(scrape_duration_seconds[${minutes}m]) * 1000" | cut -c1-4) ms; the agent took $percent % of a CPU and $(inside awk '/VmRSS/{print $2}' "/proc/$(pid)/status") kB"
kill "$prometheus"; wait "$prometheus" 2>/dev/null || true; prometheus=''
inside wakewatt agent query wakewatt_cpuidle_time_seconds_total --last 5min --step 1min --history /var/lib/wakewatt/history >"$work/past" || fail "its history cannot be asked"
say "its history lies in /var/lib/wakewatt/history and answers: $(wc -l < "$work/past") lines"

# --- upgraded, removed, purged ---------------------------------------------------------------------------------------------------------------
before=$(pid); inside dpkg --install /root/wakewatt.deb >/dev/null; until_true is_new "$before"
say "installed over itself: the agent was started anew"
inside sh -c 'echo "{}" > /var/lib/wakewatt/open/tune-1.json'
if inside dpkg --remove wakewatt >"$work/refused" 2>&1; then fail "removed although a journal was there"; fi
grep -q 'wakewatt tune undo --all' "$work/refused" || fail "the refusal does not say what to do: $(cat "$work/refused")"
inside sh -c 'test -x /usr/bin/wakewatt && systemctl is-active --quiet wakewatt-agent' || fail "a refused removal broke something"
say "a journal is there: removal refused, the agent still runs"
inside env WAKEWATT_REMOVE_ANYWAY=1 dpkg --purge wakewatt >"$work/kept" 2>&1
inside test -e /var/lib/wakewatt/open/tune-1.json || fail "purging took a journal of what is still set"
say "purged all the same: the journal was kept"
inside rm /var/lib/wakewatt/open/tune-1.json
inside dpkg --install /root/wakewatt.deb >/dev/null
inside systemctl enable --quiet --now wakewatt-agent
until_true page
inside dpkg --remove wakewatt >/dev/null
[ "$(inside pgrep -c wakewatt || true)" = 0 ] || fail "something of it still runs"
inside test -d /var/lib/wakewatt/history || fail "removing (not purging) took the history"
inside dpkg --purge wakewatt >/dev/null
left=$(inside find / -xdev -iname '*wakewatt*' -not -name wakewatt.deb -not -path '/proc/*' -not -path '/var/log/*' | head)
[ -z "$left" ] || fail "purging leaves $left"
inside systemctl is-system-running >/dev/null || { inside systemctl --failed; fail "systemd has something to complain about"; }
say "removed and purged: nothing of it is left, systemd is content"
say "packages: all holds"
