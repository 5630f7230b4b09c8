//! `wakewatt capture`: what the parsers read, as one text file that is safe to share.

use crate::cli::CaptureArgs;
use crate::exit::Code;
use crate::output;
use anyhow::Result;
use wakewatt_lab::capture::{Captured, captured};

pub fn run(args: &CaptureArgs) -> Result<Code> {
    let source = super::open(&args.from)?;
    let Captured { text, names, .. } = captured(&*source, args.unmasked);
    output::write_bytes(&args.output, text.as_bytes())?;
    if let Some(said) = names.said() {
        output::remark(&format!("masked: {said}"));
    }
    if args.output.as_os_str() != "-" {
        output::remark(&format!(
            "wrote {} ({} KiB); read it with: wakewatt inspect --host {0}",
            args.output.display(),
            text.len() / 1024
        ));
    }
    Ok(Code::Fine)
}
