//! `wakewatt capture`: what the parsers read, as one text file that is safe to share.

use crate::cli::CaptureArgs;
use crate::exit::Code;
use crate::output;
use anyhow::Result;
use wakewatt_lab::capture::{Captured, captured};
use wakewatt_words::{say, spoken};

pub fn run(args: &CaptureArgs) -> Result<Code> {
    let source = super::open(&args.from)?;
    let Captured { text, names, .. } = captured(&*source, args.unmasked);
    output::write_bytes(&args.output, text.as_bytes())?;
    if let Some(said) = names.said() {
        output::remark(&spoken(|| say!("masked: {said}")));
    }
    if args.output.as_os_str() != "-" {
        let (name, n_kib) = (args.output.display(), text.len() / 1024);
        output::remark(&spoken(|| say!("wrote {name} ({n_kib} KiB); read it with: wakewatt inspect --host {name}")));
    }
    Ok(Code::Fine)
}
