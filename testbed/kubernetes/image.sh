#!/usr/bin/env bash
# An image of one static program, as containerd imports it: image.sh PROGRAM PATH-INSIDE NAME OUT.tar. No tool for images is needed:
# a layer, a configuration and two lists are four files. Times and owners are fixed, so the same program gives the same digest.
set -euo pipefail
program=$1 inside=$2 name=$3 out=$4
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root$(dirname "$inside")" "$work/image/blobs/sha256"
install -m 755 "$program" "$work/root$inside"
tar -C "$work/root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer" .
keep() { # FILE: into the blobs; prints digest and size
  local sum; sum=$(sha256sum "$1" | cut -d' ' -f1)
  cp "$1" "$work/image/blobs/sha256/$sum"; echo "\"digest\":\"sha256:$sum\",\"size\":$(stat -c %s "$1")"
}
layer=$(keep "$work/layer")
echo "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Entrypoint\":[\"$inside\"]},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[$(sed 's/"digest":\(.*\),"size.*/\1/' <<<"$layer")]}}" > "$work/config"
config=$(keep "$work/config")
echo "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",$config},\"layers\":[{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\",$layer}]}" > "$work/manifest"
manifest=$(keep "$work/manifest")
echo '{"imageLayoutVersion":"1.0.0"}' > "$work/image/oci-layout"
echo "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",$manifest,\"annotations\":{\"io.containerd.image.name\":\"$name\",\"org.opencontainers.image.ref.name\":\"${name##*:}\"}}]}" > "$work/image/index.json"
tar -C "$work/image" -cf "$out" .
