//! What a package holds: the static binary, man pages, completions.

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Arguments of `dist`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to write: bin/, man/, completions/
    dir: PathBuf,
    /// The binary to pack; built in release when not given
    #[arg(long)]
    bin: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let binary = match &args.bin {
        Some(binary) => binary.clone(),
        None => crate::binary::build(crate::binary::Profile::Dist)?,
    };
    let folder = |name: &str| -> Result<PathBuf> {
        let folder = args.dir.join(name);
        std::fs::create_dir_all(&folder).with_context(|| format!("{}: not writable", folder.display()))?;
        Ok(folder)
    };
    let bin = folder("bin")?.join("wakewatt");
    std::fs::copy(&binary, &bin).with_context(|| format!("{}: not writable", bin.display()))?;
    let completions = folder("completions")?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut wakewatt::cli::Cli::command(), "wakewatt", &completions)?;
    }
    let mut root = wakewatt::cli::Cli::command();
    root.build();
    let n_pages = man(&root, "wakewatt", &folder("man")?)?;
    println!("{}: binary, {n_pages} man pages, completions for bash, zsh and fish", args.dir.display());
    Ok(true)
}

/// One page per command, `wakewatt-measure-wakeup.1`; says how many.
fn man(command: &clap::Command, name: &str, folder: &Path) -> Result<usize> {
    if command.is_hide_set() {
        return Ok(0);
    }
    let mut page = Vec::new();
    // A man page's name is 'static in clap; a page per command is few enough to leak.
    let fixed: &'static str = Box::leak(name.to_string().into_boxed_str());
    clap_mangen::Man::new(command.clone().name(fixed)).render(&mut page)?;
    std::fs::write(folder.join(format!("{name}.1")), page)?;
    let mut n_pages = 1;
    for inner in command.get_subcommands() {
        n_pages += man(inner, &format!("{name}-{}", inner.get_name()), folder)?;
    }
    Ok(n_pages)
}
