#!/usr/bin/env bash
# A cluster of one real node and some that are not there, and a command in it; everything goes with the command.
#
# usage: testbed/kubernetes/cluster.sh DIR NODES WAKEWATT COMMAND…      (root; DIR as build.sh left it)
#
# All of it lives in namespaces of its own (processes, mounts, network): when the command ends, the first process of its process
# namespace does, and the kernel ends the rest. What is left are control groups, which are removed here. The machine's sysctls
# stay as they are: the kubelet insists on some, and is shown files that hold what it wants. /sys and /var/lib/wakewatt are the
# machine's own, so a change that is proved is a change of this machine, journaled where wakewatt looks for it.
set -euo pipefail
if [ "${1:-}" != --inside ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  group=wakewatt-proof-$$
  code=0
  unshare --mount --net --pid --fork --kill-child --propagation private "$here/cluster.sh" --inside "$group" "$@" || code=$?
  for _ in $(seq 50); do
    find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null || true
    left=$(find /sys/fs/cgroup -type d -name "$group" 2>/dev/null | head -1)
    [ -z "$left" ] && break
    sleep 0.2
  done
  if [ -n "${left:-}" ]; then echo "left behind: $left" >&2; fi
  exit "$code"
fi
group=$2 dir=$(cd "$3" && pwd) nodes=$4 wakewatt=$(realpath "$5")
shift 5
here=$(cd "$(dirname "$0")" && pwd)
run=$(mktemp -d "$dir/run.XXXXXX")
logs=$dir/logs && rm -rf "$logs" && mkdir -p "$logs"
trap 'rm -rf "$run" 2>/dev/null || true' EXIT
export PATH="$dir/bin:$PATH" KUBECONFIG="$run/kubeconfig" GOMAXPROCS=2
since() { printf '%7.1f s  %s\n' "$(echo "$(date +%s.%N) - $began" | bc)" "$1"; }
began=$(date +%s.%N)

# A world of its own.
mount -t proc proc /proc
mount --make-rslave /
mount --make-shared /
mount -t tmpfs tmpfs /run
ip link set lo up
ip link add d0 type veth peer name d1
ip link set d1 up
ip addr add 10.89.0.1/24 dev d0
ip link set d0 up
ip route add default via 10.89.0.254
mkdir -p /run/containerd /var/lib/kubelet "$run"/{varlib,cni,podlogs,sysctl,images}
mount --bind "$run/varlib" /var/lib/kubelet
mount --make-rshared /var/lib/kubelet
mount --make-rshared /run
n=0
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  n=$((n + 1))
  echo "${setting#*=}" > "$run/sysctl/$n"
  mount --bind "$run/sysctl/$n" "/proc/sys/${setting%=*}"
done
for controller in /sys/fs/cgroup/*/; do
  case $controller in */unified/) ;; *) mkdir -p "$controller$group" ;; esac
done
if [ -d "/sys/fs/cgroup/cpuset/$group" ]; then
  for file in cpuset.cpus cpuset.mems; do cat "/sys/fs/cgroup/cpuset/$file" > "/sys/fs/cgroup/cpuset/$group/$file"; done
fi

# Who may what. The operator's rights are the chart's, nobody gives them here.
openssl genrsa -out "$run/sa.key" 2048 2>/dev/null
cat > "$run/tokens.csv" <<'X'
admintoken,admin,admin,system:masters
operatortoken,operator,operator
readertoken,reader,reader
strangertoken,stranger,stranger
kubelettoken,system:node:node1,node1,system:nodes
X
config() { # FILE TOKEN
  cat > "$1" <<X
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:16443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: $2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
X
}
config "$run/kubeconfig" admintoken
config "$run/kubeconfig.operator" operatortoken
config "$run/kubeconfig.kubelet" kubelettoken
echo '{"cniVersion":"0.4.0","name":"proof","plugins":[{"type":"ptp","ipam":{"type":"host-local","subnet":"10.90.0.0/24"}}]}' > "$run/cni/10-proof.conflist"
cat > "$run/containerd.toml" <<X
version = 2
root = "$run/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$run/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
X
cat > "$run/kubelet.yaml" <<X
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 10.89.0.1
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$group
failSwapOn: false
failCgroupV1: false
protectKernelDefaults: true
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
clusterDNS: [10.88.0.10]
enableControllerAttachDetach: false
podLogsDir: $run/podlogs
oomScoreAdj: 0
X

# Started again in the middle of a proof: by this same file.
cat > "$run/apiserver" <<X
#!/bin/sh
exec nice -n 5 kube-apiserver --etcd-servers=http://127.0.0.1:12379 --bind-address=127.0.0.1 --secure-port=16443 \\
  --cert-dir=$run/certs --service-account-key-file=$run/sa.key --service-account-signing-key-file=$run/sa.key \\
  --service-account-issuer=https://kubernetes.test --token-auth-file=$run/tokens.csv --authorization-mode=Node,RBAC \\
  --service-cluster-ip-range=10.88.0.0/24 --allow-privileged=true --kubelet-preferred-address-types=InternalIP \\
  --max-requests-inflight=800 >>$logs/apiserver 2>&1
X
chmod +x "$run/apiserver"
nice -n 5 etcd --data-dir "$run/etcd" --listen-client-urls http://127.0.0.1:12379 --advertise-client-urls http://127.0.0.1:12379 \
  --listen-peer-urls http://127.0.0.1:12380 --initial-advertise-peer-urls http://127.0.0.1:12380 \
  --initial-cluster default=http://127.0.0.1:12380 --unsafe-no-fsync > "$logs/etcd" 2>&1 &
"$run/apiserver" & echo $! > "$run/apiserver.pid"
is_up() { kubectl get --raw /readyz >/dev/null 2>&1; }
wait_for() { # SECONDS WHAT COMMAND…
  local left=$(($1 * 2)) what=$2; shift 2
  until "$@"; do
    left=$((left - 1))
    if ! kill -0 "$(cat "$run/apiserver.pid")" 2>/dev/null; then echo "the API server has ended; see $logs/apiserver" >&2; exit 1; fi
    if [ "$left" -le 0 ]; then echo "$what: not within its time; see $logs" >&2; exit 1; fi
    sleep 0.5
  done
}
wait_for 120 "API server" is_up
since "etcd and API server ready"
nice -n 5 containerd -c "$run/containerd.toml" > "$logs/containerd" 2>&1 &
nice -n 5 kube-controller-manager --kubeconfig="$run/kubeconfig" --service-account-private-key-file="$run/sa.key" \
  --leader-elect=false --bind-address=127.0.0.1 --cert-dir="$run/certs-controllers" > "$logs/controllers" 2>&1 &
nice -n 5 kube-scheduler --kubeconfig="$run/kubeconfig" --leader-elect=false --bind-address=127.0.0.1 \
  --cert-dir="$run/certs-scheduler" > "$logs/scheduler" 2>&1 &
"$here/image.sh" "$dir/bin/pause" /pause localhost/pause:1 "$run/images/pause.tar"
"$here/image.sh" "$wakewatt" /wakewatt localhost/wakewatt:proof "$run/images/wakewatt.tar"
wait_for 60 containerd test -S /run/containerd/containerd.sock
for image in pause wakewatt; do
  wait_for 60 "import of $image" ctr -a /run/containerd/containerd.sock -n k8s.io images import "$run/images/$image.tar" > /dev/null
done
nice -n 5 kubelet --config="$run/kubelet.yaml" --kubeconfig="$run/kubeconfig.kubelet" --hostname-override=node1 \
  --node-ip=10.89.0.1 --root-dir=/var/lib/kubelet --cert-dir="$run/certs-kubelet" > "$logs/kubelet" 2>&1 &
is_ready() { kubectl get node node1 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null | grep -q True; }
wait_for 120 "node" is_ready
since "a real node ready"
if [ "$nodes" -gt 0 ]; then
  nice -n 5 fakenodes -nodes "$nodes" -answer "${WAKEWATT_FAKE_ANSWER:-/bin/false}" > "$logs/fakenodes" 2>&1 &
  all_there() { [ "$(kubectl get nodes -l pool=fake -o name 2>/dev/null | wc -l)" -ge "$nodes" ]; }
  wait_for 120 "fake nodes" all_there
  since "$nodes nodes that are not there"
fi
export WAKEWATT_CLUSTER_RUN="$run"
"$@"
