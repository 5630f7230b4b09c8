//! Writes the synthetic reports to a folder, to look at them: `cargo run -p wakewatt --example sample_report -- OUT`.

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let out = std::env::args().nth(1).context("give a folder to write to")?;
    std::fs::create_dir_all(&out)?;
    for (name, report) in wakewatt::report::sample::all() {
        std::fs::write(format!("{out}/{name}.html"), report.to_html()?)?;
        std::fs::write(format!("{out}/{name}.md"), report.to_markdown())?;
        std::fs::write(format!("{out}/{name}.txt"), report.to_text(Default::default()))?;
    }
    // A second folder, if named, gets every chart as SVG, PNG and CSV.
    if let Some(folder) = std::env::args().nth(2) {
        use wakewatt::report::export::{Format, Theme, write};
        write(&wakewatt::report::sample::everything(), folder.as_ref(), &Format::ALL, Theme::Light)?;
    }
    Ok(())
}
