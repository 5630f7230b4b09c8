//! What a package holds: the static binary, man pages, completions.

use anyhow::{Context, Result, ensure};
use clap::CommandFactory;
use clap_complete::Shell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is promised of the binary (docs/goals.md). Above it, `nm -S --size-sort` of a build with `strip = "none"` says who takes it.
pub(crate) const MOST_BYTES: u64 = 20_000_000;

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
    let write = |folder: &Path, name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("{}: not writable", path.display()))
    };
    let to = folder("completions")?;
    for (shell, name) in [(Shell::Bash, "wakewatt.bash"), (Shell::Zsh, "_wakewatt"), (Shell::Fish, "wakewatt.fish")] {
        write(&to, name, &completions(shell))?;
    }
    let (to, pages) = (folder("man")?, man_pages()?);
    for (name, page) in &pages {
        write(&to, name, page)?;
    }
    let n_pages = pages.len();
    let n_bytes = std::fs::metadata(&bin)?.len();
    // One that was brought along may be of any kind.
    ensure!(
        args.bin.is_some() || n_bytes <= MOST_BYTES,
        "{}: {n_bytes} bytes, where {MOST_BYTES} are promised (everything was written)",
        bin.display()
    );
    let laid = crate::laid::laid(&std::fs::read(&bin)?);
    if args.bin.is_none() && crate::binary::lays_together()? {
        let expected = crate::laid::expected()?;
        ensure!(
            laid >= expected / 10 * 7,
            "{laid} bytes of what an agent runs lie together, {expected} did: make the list anew with cargo xtask together"
        );
    }
    println!(
        "{}: {n_bytes} bytes of binary ({laid} of what an agent runs together), {n_pages} man pages, completions for bash, zsh and fish",
        args.dir.display()
    );
    Ok(true)
}

/// What a shell completes.
pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut wakewatt::cli::Cli::command(), "wakewatt", &mut out);
    out
}

/// One page per command, by its file name: `wakewatt-measure-wakeup.1`.
pub(crate) fn man_pages() -> Result<BTreeMap<String, Vec<u8>>> {
    let mut root = wakewatt::cli::Cli::command();
    root.build();
    let mut pages = BTreeMap::new();
    man(&root, "wakewatt", &mut pages)?;
    Ok(pages)
}

fn man(command: &clap::Command, name: &str, pages: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    if command.is_hide_set() {
        return Ok(());
    }
    let mut page = Vec::new();
    // A man page's name is 'static in clap; a page per command is few enough to leak.
    let fixed: &'static str = Box::leak(name.to_string().into_boxed_str());
    clap_mangen::Man::new(command.clone().name(fixed)).render(&mut page)?;
    pages.insert(format!("{name}.1"), page);
    for inner in command.get_subcommands() {
        man(inner, &format!("{name}-{}", inner.get_name()), pages)?;
    }
    Ok(())
}
