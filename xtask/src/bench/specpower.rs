//! `cargo xtask bench specpower --table FILE`: the power model beside published SPECpower_ssj2008 results.
//!
//! The table of docs/methods/simulate-watts.md. The results are SPEC's, in the columns of its summary as
//! CSV, and not in this repository.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use wakewatt_sim::server::Power;
use wakewatt_sim::specpower::{Published, modelled, results};

/// Larger machines of the table are left out: they would take most of the time.
const MOST_CPUS: u32 = 64;
/// Values beside the one in use, to show what they would come to.
const SHARES: [f64; 3] = [1.0, 0.75, 0.25];

type Group = (&'static str, fn(&Published) -> bool);
/// Results that the page shows by themselves.
const GROUPS: [Group; 4] = [
    ("without SMT", |r| r.shape[2] == 1),
    ("with SMT", |r| r.shape[2] == 2),
    ("Xeon X5675", |r| r.cpu.contains("X5675")),
    ("Xeon E5-2670", |r| r.cpu.contains("E5-2670")),
];

/// Prints the table.
pub(crate) fn run(table: Option<&Path>) -> Result<bool> {
    let path = table.context("give --table FILE, a CSV of SPECpower_ssj2008 results")?;
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let all: Vec<Published> = results(&text);
    let small: Vec<&Published> = all.iter().filter(|r| r.shape.iter().product::<u32>() <= MOST_CPUS).collect();
    ensure!(!small.is_empty(), "{}: no result in it", path.display());
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "| one_thread_share | servers | results | middle, modelled | middle, published | watts off: median | 10 % to 90 % |"
    );
    println!("|---|---|---|---|---|---|---|");
    let own = Power::default().one_thread_share;
    for share in SHARES.into_iter().chain([own]) {
        let modelled = modelled(small.iter().map(|r| r.shape), share, n_threads)?;
        for (name, is_in) in GROUPS {
            let of: Vec<&&Published> = small.iter().filter(|r| is_in(r)).collect();
            let at = |q: f64, value: &dyn Fn(&Published) -> f64| quantile(of.iter().map(|r| value(r)).collect(), q);
            let middle = |r: &Published| modelled.get(&r.shape).map_or(f64::NAN, |curve| curve.middle_ratio(r));
            let off = |r: &Published| r.off_ratio(middle(r)) * 100.0;
            println!(
                "| {share}{} | {name} | {} | {:.2} | {:.2} | {:+.1} % | {:+.1} to {:+.1} % |",
                if share == own { " (default)" } else { "" },
                of.len(),
                at(0.5, &middle),
                at(0.5, &Published::middle_ratio),
                at(0.5, &off),
                at(0.1, &off),
                at(0.9, &off)
            );
        }
    }
    Ok(true)
}

fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // An index.
    let at = (values.len() as f64 * q) as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}
