#!/usr/bin/env bash
# Builds what the cluster of the proofs consists of into DIR/bin, once: API server, controllers, scheduler, kubelet and kubectl from
# Kubernetes' published modules, and our own fake nodes and pause. About 1,000 CPU seconds and 2 GB of memory the first time; Go's
# cache keeps what it compiled.
#
# usage: testbed/kubernetes/build.sh DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/bin" && out=$(cd "$1" && pwd)
version=v1.34.4
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -mod=readonly"
ld="-s -w -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34"
cd "$here"
for program in kubectl kube-apiserver kube-controller-manager kube-scheduler kubelet; do
  [ -x "$out/bin/$program" ] || nice -n 10 go build -p 2 -ldflags "$ld" -o "$out/bin/$program" "k8s.io/kubernetes/cmd/$program"
done
for program in fakenodes pause; do
  nice -n 10 go build -ldflags "-s -w" -o "$out/bin/$program" "./$program"
done
