//! `cargo xtask site`: the documentation as a site that needs no network: our own pages, the guide, docs/ and what is made from code.
//!
//! `docs/` stays the only source, with links as they work in a checkout. mdBook wants one folder, so the pages that
//! `site/src/SUMMARY.md` names are copied to `target/site/src` and their links are turned on the way (`prepare`); what the
//! site does not hold becomes its path, in words. mdBook then builds `target/site/book`, and every link of the result is
//! followed again (`built`), because its anchors are mdBook's. `--check` builds nothing: links of all pages of the repository
//! (`links`), and that the table of contents names every page. That is also a test, so `make test` has it without mdBook.

mod built;
mod links;
mod markdown;
mod prepare;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `site`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build nothing; fail on a link that leads nowhere or a page that the table of contents lacks
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let top = crate::repository();
    let mut wrong = links::wrong(&top)?;
    let book = prepare::Book::of(&top)?;
    wrong.extend(book.missing()?);
    if !args.check && wrong.is_empty() {
        let out = folder(&top).join("site");
        book.write(&out.join("src"))?;
        mdbook(&top, &out)?;
        wrong = built::wrong(&out.join("book"))?;
        if wrong.is_empty() {
            println!("{}", out.join("book/index.html").display());
        }
    }
    for line in &wrong {
        println!("{line}");
    }
    if wrong.is_empty() && args.check {
        println!("every link of the repository's pages leads somewhere, and the table of contents names every page");
    }
    Ok(wrong.is_empty())
}

/// Where everything built lies.
fn folder(top: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(top.join("target"), |d| top.join(d))
}

fn mdbook(top: &Path, out: &Path) -> Result<()> {
    let program = folder(top).join("site-tools/bin/mdbook");
    if !program.is_file() {
        bail!("{} is missing; `make site` installs it", program.display());
    }
    // The settings lie beside the sources in both places; mdBook takes the folder it is given.
    for file in ["book.toml", "wide.css"] {
        std::fs::copy(top.join("site").join(file), out.join(file)).with_context(|| format!("site/{file}"))?;
    }
    let status = Command::new(&program).arg("build").arg(out).status().context("mdbook")?;
    if !status.success() {
        bail!("mdbook: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_link_leads_somewhere_and_every_page_is_in_the_table_of_contents() {
        assert!(
            super::run(&super::Args { check: true }).unwrap(),
            "see above; `cargo xtask site --check` says it again"
        );
    }
}
