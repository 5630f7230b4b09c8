#!/usr/bin/env bash
# In the cluster: the chart as the real API server takes it, then the proofs. proof.sh DIR PROGRAM
set -euo pipefail
dir=$1 program=$2
run=$WAKEWATT_CLUSTER_RUN
sed 's/operatortoken/strangertoken/' "$run/kubeconfig.operator" > "$run/kubeconfig.stranger"
sed 's/operatortoken/readertoken/' "$run/kubeconfig.operator" > "$run/kubeconfig.reader"
kubectl apply -f "$dir/strict.yaml"
kubectl label node node1 wakewatt.internal/real=yes
# The namespace first: helm's order is by kind, kubectl's by file.
kubectl apply --validate=strict -f "$dir/chart.yaml" || kubectl apply --validate=strict -f "$dir/chart.yaml"
kubectl create serviceaccount default -n strict 2>/dev/null || true
kubectl create serviceaccount wakewatt-changer -n strict
kubectl rollout status -n wakewatt daemonset/wakewatt-agent --timeout=120s
kubectl logs -n wakewatt daemonset/wakewatt-agent | head -20
for _ in $(seq 60); do curl -fs http://127.0.0.1:9742/metrics > "$dir/agent.metrics" && break; sleep 0.5; done
grep -c '^wakewatt_' "$dir/agent.metrics" | sed 's/$/ series of the agent as a DaemonSet/'
true
for part in k0; do
  echo "--- $part"
  "$(dirname "$0")/$part.sh" "$dir" "$dir/wakewatt"
done
