#!/usr/bin/env bash
# Proves what wakewatt does through Kubernetes in a real cluster on this machine: `make prove-fleet`. As root on Debian; the first time
# 20 CPU minutes, because Kubernetes is compiled (target/testbed/kubernetes keeps it), then about five minutes.
#
# It changes this machine's idle governor and puts it back, and says at the end whether the machine is as it was found.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$PWD/target/testbed/kubernetes nodes=${NODES:-200}
[ "$(id -u)" = 0 ] || { echo "prove-fleet needs root: it makes namespaces and a kubelet" >&2; exit 1; }
[ -w /sys/devices/system/cpu/cpuidle/current_governor ] || { echo "prove-fleet changes the idle governor, and this kernel has none to change" >&2; exit 1; }
scripts/ensure-packages.sh go=golang-go etcd=etcd-server containerd=containerd runc=runc ip=iproute2 openssl=openssl bc=bc prometheus=prometheus python3=python3
[ -e /usr/lib/cni/ptp ] || scripts/ensure-packages.sh cni-ptp=containernetworking-plugins || [ -e /usr/lib/cni/ptp ]
testbed/kubernetes/build.sh "$dir"
triple=$(rustc -vV | sed -n 's/^host: //p')
"${CARGO:-cargo}" build --quiet --locked --workspace --bin wakewatt
wakewatt=$dir/wakewatt
strip -o "$wakewatt" "${CARGO_TARGET_DIR:-target}/$triple/debug/wakewatt"
proof=$("${CARGO:-cargo}" test --quiet --locked --workspace --test cluster --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)
chart() { # VALUE…: the chart as helm makes it, where helm is; it is a Go program, so it can be built where Kubernetes was
  local helm
  helm=$(PATH="$dir/bin:$PATH" command -v helm) || { GOFLAGS=-buildvcs=false GOBIN="$dir/bin" nice -n 10 go install helm.sh/helm/v3/cmd/helm@v3.19.4 >&2; helm=$dir/bin/helm; }
  "$helm" template wakewatt packaging/helm/wakewatt --namespace wakewatt --kube-version 1.34.4 "$@"
}
{ echo "apiVersion: v1"; echo "kind: Namespace"; echo "metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: baseline}}"; } > "$dir/strict.yaml"
chart --set image.repository=localhost/wakewatt,image.tag=proof,namespace.create=true,reading.enabled=true,changes.enabled=true \
  --set 'changes.operators[0].kind=User,changes.operators[0].name=operator,reading.operators[0].kind=User,reading.operators[0].name=reader' \
  --set agent.nodeSelector.wakewatt\\.internal/real=yes > "$dir/chart.yaml"

# A node that is not there answers with its name; what `fleet rollout` asks is answered by scripts/fake-node.sh.
export WAKEWATT_FAKE_ANSWER=$PWD/testbed/kubernetes/fake-node.sh WAKEWATT_FAKE_STATE=$dir/fake
rm -rf "$WAKEWATT_FAKE_STATE" && mkdir -p "$WAKEWATT_FAKE_STATE"
found=$(cat /sys/devices/system/cpu/cpuidle/current_governor)
code=0
testbed/kubernetes/cluster.sh "$dir" "$nodes" "$wakewatt" testbed/kubernetes/proof.sh "$dir" "$proof" || code=$?
now=$(cat /sys/devices/system/cpu/cpuidle/current_governor)
if [ "$found" != "$now" ]; then echo "the idle governor was $found and is $now: wakewatt recover" >&2; code=5; fi
echo "prove-fleet: idle governor $now, as found; $([ "$code" = 0 ] && echo "all proved" || echo "FAILED ($code)")"
exit "$code"
