//! A container image as the Open Container Initiative describes it: three JSON documents and one layer, in a tar archive.
//!
//! Written here because that is all there is to it, so no daemon, no root and no registry is needed, and the same binary has the
//! same digest. `umoci`, `skopeo` and `podman load` read it. The layer holds the binary and the licences that have to go with
//! every copy; the user is nobody (65532), who can serve everything that any user may read. What needs root or capabilities is
//! said in packaging/Containerfile. Source: image-spec 1.0 (manifest, config, image layout).

use super::content::{PROGRAM, repository_file};
use super::tool::{gzip, sha256, tar};
use super::tree::Tree;
use super::{HOMEPAGE, Release, SUMMARY};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Who runs in it unless told otherwise; the number that images without a password file have agreed on.
const NOBODY: &str = "65532:65532";

/// Writes it; the file.
pub(super) fn write(release: &Release, common: &Tree, folder: &Path) -> Result<PathBuf> {
    let stage = tempfile::tempdir()?;
    let root = stage.path().join("root");
    layer(common)?.lay(&root, release.epoch_s)?;
    let plain = tar(&root, ".", release.epoch_s)?;
    let mut layout = Tree::default();
    let mut blob = |bytes: Vec<u8>, kind: &str| -> Result<Value> {
        let (digest, size) = (sha256(&bytes)?, bytes.len());
        layout.add(format!("blobs/sha256/{digest}"), bytes);
        Ok(
            json!({ "mediaType": format!("application/vnd.oci.image.{kind}"), "digest": format!("sha256:{digest}"), "size": size }),
        )
    };
    let packed = blob(gzip(&plain)?, "layer.v1.tar+gzip")?;
    let labels = json!({
        "org.opencontainers.image.title": "wakewatt",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.source": HOMEPAGE,
    });
    let config = json!({
        "created": release.time(),
        "architecture": release.arch.of_debian(),
        "os": "linux",
        "config": {
            "User": NOBODY, "Entrypoint": ["/wakewatt"], "Cmd": ["agent"], "WorkingDir": "/", "StopSignal": "SIGTERM", "Labels": labels,
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&plain)?)] },
        "history": [{ "created": release.time(), "created_by": "cargo xtask packages", "comment": "one static binary and its licences" }],
    });
    let config = blob(serde_json::to_vec(&config)?, "config.v1+json")?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [packed], "annotations": labels,
    });
    let mut entry = blob(serde_json::to_vec(&manifest)?, "manifest.v1+json")?;
    entry["platform"] = json!({ "architecture": release.arch.of_debian(), "os": "linux" });
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    layout.add("index.json", serde_json::to_vec(&json!({ "schemaVersion": 2, "manifests": [entry] }))?);
    layout.add("oci-layout", serde_json::to_vec(&json!({ "imageLayoutVersion": "1.0.0" }))?);
    let laid = stage.path().join("layout");
    layout.lay(&laid, release.epoch_s)?;
    let file = folder.join(format!("wakewatt-{}-{}.oci.tar", release.version, release.arch.of_debian()));
    std::fs::write(&file, tar(&laid, ".", release.epoch_s)?).with_context(|| format!("{}", file.display()))?;
    Ok(file)
}

/// The binary, and what its licences ask to go with it.
pub(super) fn layer(common: &Tree) -> Result<Tree> {
    let mut tree = Tree::default();
    let binary = &common.files.get(PROGRAM.trim_start_matches('/')).context("no binary")?.bytes;
    tree.add_program("wakewatt", binary.clone());
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree.add(format!("licences/{name}"), repository_file(name)?);
    }
    if let Some(file) = common.files.get("usr/share/doc/wakewatt/third-party.txt.gz") {
        tree.add("licences/third-party.txt.gz", file.bytes.clone());
    }
    Ok(tree)
}
