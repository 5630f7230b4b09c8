#!/usr/bin/env bash
# Proves the Ansible collection on three hosts: three network namespaces, each with an sshd of its own, keys of its own, a state
# folder of its own and a tree of plain files in the place of /sys/devices/system/cpu, because the three share one kernel and what
# a play sets on one must not be seen on the others (nor by this machine). Real: ssh, Ansible, wakewatt, its journals, its guards.
# Not real: the kernel behind the settings, which here takes every value.
#
# usage: scripts/prove-ansible.sh [short]     short leaves out the host that goes dark
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
is_short=${1:-}
target=${CARGO_TARGET_DIR:-$top/target}

skip() { echo "SKIPPED ansible [$1]: $2"; exit 0; }
[ "$(id -u)" = 0 ] || skip root "network and mount namespaces need root"
for program in ip sshd ssh-keygen unshare; do
  command -v "$program" >/dev/null || skip "program $program" "no hosts to play on"
done

venv=$target/ansible-venv
if ! [ -x "$venv/bin/ansible-playbook" ]; then
  { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check 'ansible-core>=2.15,<2.20'; } >/dev/null 2>&1 || {
    rm -rf "$venv"
    skip here "ansible-core cannot be had from PyPI"
  }
fi
"${CARGO:-cargo}" build --quiet --locked --workspace --bin wakewatt
wakewatt=$target/$(rustc -vV | sed -n 's/^host: //p')/debug/wakewatt
mkdir -p "$target/ansible/ansible_collections/wakewatt" /run/sshd /var/lib/wakewatt
ln -sfn "$top/packaging/ansible" "$target/ansible/ansible_collections/wakewatt/wakewatt"

work=$(mktemp -d)
chmod 755 "$work"
name=wwa$$
pids=()
end() {
  local code=$?
  for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
  # What they left running in their namespaces: sessions, guards, connections kept open.
  for space in "$name"0 "$name"1 "$name"2 "$name"3; do
    ip netns pids "$space" 2>/dev/null | xargs -r kill 2>/dev/null || true
    ip netns del "$space" 2>/dev/null || true
  done
  if [ "$code" != 0 ] && [ -s "$work/last" ]; then tail -n 60 "$work/last"; fi
  rm -rf "$work"
  exit "$code"
}
trap end EXIT

# --- three hosts ---
file() { mkdir -p "$(dirname "$1")" && printf '%s\n' "$2" >"$1"; }
tree() { # FOLDER IDLE_GOVERNOR
  local cpu state
  for list in online possible present; do file "$1/$list" 0-1; done
  file "$1/cpuidle/current_driver" intel_idle
  file "$1/cpuidle/current_governor" "$2"
  file "$1/cpuidle/current_governor_ro" "$2"
  file "$1/cpuidle/available_governors" "menu teo"
  for cpu in 0 1; do
    state=0
    while read -r word latency residency; do
      local at=$1/cpu$cpu/cpuidle/state$state
      file "$at/name" "$word"; file "$at/desc" "$word"; file "$at/latency" "$latency"; file "$at/residency" "$residency"
      for zero in disable usage time above below rejected; do file "$at/$zero" 0; done
      file "$at/default_status" enabled
      state=$((state + 1))
    done <<<$'POLL 0 0\nC1 2 2\nC1E 10 20\nC6 133 600'
    file "$1/cpu$cpu/power/pm_qos_resume_latency_us" 0
    local policy=$1/cpufreq/policy$cpu
    file "$policy/affected_cpus" $cpu; file "$policy/related_cpus" $cpu
    file "$policy/scaling_driver" acpi-cpufreq
    file "$policy/scaling_available_governors" "performance powersave ondemand"
    file "$policy/scaling_governor" ondemand
    for end in min max; do
      local khz=1000000; [ $end = max ] && khz=2800000
      file "$policy/cpuinfo_${end}_freq" $khz; file "$policy/scaling_${end}_freq" $khz
    done
    ln -s "../cpufreq/policy$cpu" "$1/cpu$cpu/cpufreq"
  done
}

ssh-keygen -q -t ed25519 -N '' -f "$work/key"
ip netns add "$name"0
ip -n "$name"0 link add br0 type bridge
ip -n "$name"0 addr add 10.77.0.100/24 dev br0
ip -n "$name"0 link set br0 up
for n in 1 2 3; do
  host=$work/h$n
  mkdir -p "$host"
  governor=menu; [ $n = 2 ] && governor=teo
  tree "$host/cpu" $governor
  cp -r "$host/cpu" "$host/before"
  ssh-keygen -q -t ed25519 -N '' -f "$host/hostkey"
  echo "10.77.0.$n $(cut -d' ' -f1,2 "$host/hostkey.pub")" >>"$work/known_hosts"
  ip netns add "$name$n"
  ip -n "$name"0 link add "v$n" type veth peer name eth0 netns "$name$n"
  ip -n "$name"0 link set "v$n" master br0 up
  ip -n "$name$n" addr add 10.77.0.$n/24 dev eth0
  ip -n "$name$n" link set eth0 up
  ip -n "$name$n" link set lo up
  cat >"$host/sshd_config" <<END
ListenAddress 10.77.0.$n
HostKey $host/hostkey
AuthorizedKeysFile $work/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
ClientAliveInterval 2
ClientAliveCountMax 2
Subsystem sftp internal-sftp
END
  # A session of its own, so that it ends with its group.
  setsid ip netns exec "$name$n" unshare -m sh -c "
    mount --make-rprivate / &&
    mount --bind '$host/cpu' /sys/devices/system/cpu &&
    mount -t tmpfs none /var/lib/wakewatt &&
    exec $(command -v sshd) -D -e -f '$host/sshd_config'" >"$host/sshd.log" 2>&1 &
  pids+=($!)
done
cat >"$work/inventory" <<END
[fleet]
h1 ansible_host=10.77.0.1
h2 ansible_host=10.77.0.2
h3 ansible_host=10.77.0.3
[fleet:vars]
ansible_user=root
ansible_ssh_private_key_file=$work/key
ansible_python_interpreter=$venv/bin/python3
wakewatt_path=$wakewatt
END
cat >"$work/ansible.cfg" <<END
[defaults]
inventory = $work/inventory
collections_path = $target/ansible
local_tmp = $work/local
remote_tmp = $work/remote
host_key_checking = true
forks = 3
timeout = 10
[ssh_connection]
pipelining = true
control_path_dir = $work/cp
ssh_args = -o ControlMaster=auto -o ControlPersist=30s -o ServerAliveInterval=2 -o ServerAliveCountMax=2 -o UserKnownHostsFile=$work/known_hosts
END
export ANSIBLE_CONFIG=$work/ansible.cfg ANSIBLE_HOME=$work/home ANSIBLE_NOCOLOR=1 ANSIBLE_DEPRECATION_WARNINGS=0 HOME=$work

cat >"$work/facts.yml" <<'END'
- hosts: all
  gather_facts: false
  tasks:
    - wakewatt.wakewatt.wakewatt_facts: {topics: [idle, freq], wakewatt_path: "{{ wakewatt_path }}"}
    - ansible.builtin.debug: {msg: "{{ inventory_hostname }} has {{ ansible_facts.wakewatt.idle.governor.value }}"}
END
cat >"$work/set.yml" <<'END'
- hosts: all
  gather_facts: false
  tasks:
    - wakewatt.wakewatt.wakewatt_profile:
        state: "{{ state | default('present') }}"
        set: ["freq.governor={{ governor | default('performance') }}", "idle.state.C6=off"]
        wakewatt_path: "{{ wakewatt_path }}"
END

# --- what is asked ---
passed=0
say() { awk -v what="$1" -v from="$2" -v to="$EPOCHREALTIME" 'BEGIN { printf "  %-76s %5.1f s\n", what, to - from }'; passed=$((passed + 1)); }
wrong() { echo "ansible: $1" >&2; exit 1; }
play() { # CODE ARGUMENTS…: plays and looks at the exit code
  local want=$1 code=0; shift
  timeout 180 ip netns exec "$name"0 "$venv/bin/ansible-playbook" "$@" >"$work/last" 2>&1 </dev/null || code=$?
  [ "$code" = "$want" ] || wrong "ansible-playbook $* ended with $code, not $want"
}
recap() { grep -Eq "^$1 +:.*$2" "$work/last" || wrong "no \"$2\" for $1"; }
told() { grep -qF -- "$1" "$work/last" || wrong "nothing says: $1"; }
holds() { # HOST FILE VALUE
  [ "$(cat "$work/$1/cpu/$2")" = "$3" ] || wrong "$1: $2 is $(cat "$work/$1/cpu/$2"), not $3"
}
# Plain files keep no line feed that nobody wrote; the kernel's always end with one.
values() { (cd "$1" && find . -type f | sort | while read -r f; do echo "$f = $(cat "$f")"; done); }
untouched() { diff <(values "$work/$1/before") <(values "$work/$1/cpu") >>"$work/last" || wrong "$1: not as it was"; }
governor=cpufreq/policy1/scaling_governor
c6=cpu0/cpuidle/state3/disable

t=$EPOCHREALTIME
for page in wakewatt_facts wakewatt_profile wakewatt_verify; do
  "$venv/bin/ansible-doc" "wakewatt.wakewatt.$page" >"$work/last" 2>&1 || wrong "ansible-doc $page"
  told "$page"
done
say "ansible-doc shows every module" "$t"

for n in 1 2 3; do
  for _ in $(seq 100); do grep -q 'Server listening' "$work/h$n/sshd.log" && break; sleep 0.1; done
done

t=$EPOCHREALTIME; play 0 "$work/facts.yml"
told "h1 has menu"; told "h2 has teo"; recap h3 "changed=0 .*failed=0"
say "facts: each host says its own" "$t"

t=$EPOCHREALTIME; play 0 --check --diff "$work/set.yml"
told "-freq.governor policy0: ondemand"; told "+freq.governor policy0: performance"; told "+idle.state.C6 cpu1: off"
for h in h1 h2 h3; do recap $h "changed=1"; untouched $h; done
say "check mode and diff: every setting before and after, nothing written" "$t"

t=$EPOCHREALTIME; play 0 "$work/set.yml"
for h in h1 h2 h3; do recap $h "changed=1"; holds $h $governor performance; holds $h $c6 1; done
say "apply" "$t"

t=$EPOCHREALTIME; play 0 "$work/set.yml"
for h in h1 h2 h3; do recap $h "changed=0"; done
say "apply again: no change" "$t"

if [ "$is_short" != short ]; then
  t=$EPOCHREALTIME; echo powersave >"$work/h2/cpu/$governor"
  play 2 -e "wakewatt_path=$wakewatt" "$top/packaging/ansible/tests/verify.yml"
  recap h2 "failed=1"; recap h1 "failed=0"; told "should be performance, is powersave"
  play 0 "$work/set.yml"; recap h2 "changed=1"; recap h1 "changed=0"; holds h2 $governor performance
  say "somebody changes a setting: verify fails there, apply mends it" "$t"

  t=$EPOCHREALTIME; play 0 -e governor=powersave "$work/set.yml"
  for h in h1 h2 h3; do recap $h "changed=1"; holds $h $governor powersave; done
  say "another value replaces the first" "$t"
  play 0 -e governor=powersave -e state=absent "$work/set.yml"
else
  play 0 -e state=absent "$work/set.yml"
fi
t=$EPOCHREALTIME
for h in h1 h2 h3; do recap $h "changed=1"; untouched $h; done
play 0 -e state=absent "$work/set.yml"
for h in h1 h2 h3; do recap $h "changed=0"; done
say "absent: as it was before; again: no change" "$t"

# One after the other, each behind a gate.
staged() { # CODE CONFIRM_WITHIN GATE
  play "$1" -e "{\"staged_set\": [\"freq.governor=performance\"], \"staged_confirm_within\": \"$2\", \"wakewatt_serial\": 1, \"staged_gate\": [\"sh\", \"-c\", \"$3\"]}" \
    wakewatt.wakewatt.staged
}
t=$EPOCHREALTIME; staged 2 60s "test ! -e $work/h2/cpu/cpuidle/current_governor || ! grep -q teo /sys/devices/system/cpu/cpuidle/current_governor"
recap h2 "failed=1.*rescued=1"; told "h2: The gate failed"; told "undone: tune-"
holds h1 $governor performance; untouched h2; untouched h3
grep -q '^h3 ' "$work/last" && wrong "h3 was played on although h2 had failed"
say "serial 1, the gate of h2 fails: undone there, h1 keeps, h3 is never asked" "$t"
play 0 -e "wakewatt_path=$wakewatt" wakewatt.wakewatt.back; untouched h1

if [ "$is_short" != short ]; then
  t=$EPOCHREALTIME
  staged 2 20s "grep -q menu /sys/devices/system/cpu/cpuidle/current_governor || ip link set eth0 down"
  recap h2 "failed=1"; told "h2: it cannot be reached any more and undoes by itself what was not confirmed within 20s"
  holds h1 $governor performance; untouched h3
  grep -q '^h3 ' "$work/last" && wrong "h3 was played on although h2 had gone dark"
  say "serial 1, h2 goes dark behind its gate: the batch stops, h3 is never asked" "$t"
  t=$EPOCHREALTIME
  for _ in $(seq 300); do [ "$(cat "$work/h2/cpu/$governor")" = ondemand ] && break; sleep 0.1; done
  untouched h2
  say "h2, which nobody can reach, has undone it by itself" "$t"
  ip -n "$name"2 link set eth0 up
  play 0 -e "wakewatt_path=$wakewatt" wakewatt.wakewatt.status; told "0 transactions"; told "1 transactions"
  play 0 -e "wakewatt_path=$wakewatt" wakewatt.wakewatt.back; for h in h1 h2 h3; do untouched $h; done
fi
# The makers' own tests of the collection, in virtual environments of theirs. pip in these comes from Python itself (ensurepip):
# what ansible-test would load instead is no package of a registry.
if [ "$is_short" != short ]; then
  t=$EPOCHREALTIME
  mkdir -p "$work/sanity/ansible_collections/wakewatt"
  cp -r packaging/ansible "$work/sanity/ansible_collections/wakewatt/wakewatt"
  find "$work/sanity" -name __pycache__ -prune -exec rm -rf {} +
  sanity() {
    (cd "$work/sanity/ansible_collections/wakewatt/wakewatt" && PATH=$venv/bin:$PATH timeout 900 "$venv/bin/ansible-test" sanity --local \
      --python "$("$venv/bin/python3" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" --skip-test pylint --skip-test shellcheck "$@") >"$work/last" 2>&1 </dev/null
  }
  export HOME=$target/ansible-home
  mkdir -p "$HOME"
  if ! sanity; then
    script=$(sed -n 's/.*manually downloaded and saved to: //p' "$work/last" | head -1)
    [ -n "$script" ] || wrong "ansible-test sanity"
    mkdir -p "$(dirname "$script")"
    printf 'import ensurepip\nensurepip.bootstrap(default_pip=True)\n' >"$script"
    sanity || wrong "ansible-test sanity"
  fi
  say "ansible-test sanity, but for pylint and shellcheck" "$t"
fi
echo "ansible: $passed passed, with $("$venv/bin/ansible-playbook" --version | sed -n 1p)"
