//! `wakewatt import`: what other tools printed, understood as far as it can be, with every line named that was not.

mod text;

use crate::cli::import::ImportArgs;
use crate::exit::{Code, Failure};
use crate::importing;
use crate::output::{self, Colour, Outlet};
use crate::view::Style;
use anyhow::Result;
use std::time::SystemTime;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::{host_file, mask};
use wakewatt_import::Imported;
use wakewatt_words::{say, spoken, word};

pub fn run(args: &ImportArgs, colour: Colour) -> Result<Code> {
    let host = args.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    let wtrace = args.wtrace.as_deref().map(|file| Outlet::open(file, "--wtrace")).transpose()?;
    let mut imported = importing::read(&args.files, args.from_host.as_deref())?;
    if imported.document.files.is_empty() {
        return Err(Failure::error(
            Code::Usage,
            spoken(|| word!("that is a .host file already: wakewatt inspect --host reads it")),
        ));
    }
    // The first of these takes what the text shows, so the text comes last.
    let is_empty = imported.is_empty();
    let n_pairs = imported.recorded.n_pairs;
    if let Some(outlet) = wtrace.filter(|_| n_pairs > 0) {
        write_wtrace(&mut imported, &outlet)?;
    } else if args.wtrace.is_some() {
        output::remark(spoken(|| word!("no .wtrace: the texts hold no idle interval (power:cpu_idle events)")));
    }
    let shown = if args.json {
        output::json("import", &imported.document).and_then(|text| output::print(&text))
    } else {
        output::print(&spoken(|| text::text(&imported, args.all, Style { is_on: colour.is_on() })))
    };
    if let Some(outlet) = host.filter(|_| !is_empty) {
        write_host(imported, args.unmasked, &outlet)?;
    }
    if is_empty {
        output::complain(spoken(|| word!("nothing was understood; docs/import.md lists what is read")));
    }
    Ok(output::settled(shown, if is_empty { Code::BadFile } else { Code::Fine }))
}

fn write_wtrace(imported: &mut Imported, outlet: &Outlet) -> Result<()> {
    let recorded = std::mem::take(&mut imported.recorded);
    let facts = Snapshot::read(&imported.facts.tree, |topic| matches!(topic, "idle" | "kernel"));
    let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let n = recorded.n_pairs;
    if let Some(bytes) = recorded.wtrace(&facts, env!("CARGO_PKG_VERSION"), now_s) {
        outlet.write_bytes(&bytes)?;
        let name = outlet.path().display();
        output::remark(&spoken(|| say!("wrote {name} ({n} idle intervals); read it with: wakewatt replay {name}")));
    }
    Ok(())
}

fn write_host(imported: Imported, is_unmasked: bool, outlet: &Outlet) -> Result<()> {
    let mut comments = vec![format!("made by wakewatt {} import", env!("CARGO_PKG_VERSION"))];
    for file in imported.document.files.iter().take(1000) {
        let formats: Vec<String> =
            file.formats.iter().map(|f| format!("{} lines {}-{}", f.format, f.from_line, f.to_line)).collect();
        comments.push(format!(
            "from {}: {}",
            file.file,
            if formats.is_empty() { "nothing".into() } else { formats.join(", ") }
        ));
    }
    let mut tree = imported.facts.tree;
    if is_unmasked {
        comments.push("UNMASKED: holds addresses and names, do not share".into());
    } else {
        comments.push("serial numbers, addresses and names are masked".into());
        if let Some(said) = mask::tree(&mut tree).said() {
            output::remark(&spoken(|| say!("masked: {said}")));
        }
    }
    outlet.write_bytes(host_file::write(&tree, &comments).as_bytes())?;
    let name = outlet.path().display();
    output::remark(&spoken(|| say!("wrote {name}; read it with: wakewatt inspect --host {name}")));
    Ok(())
}
