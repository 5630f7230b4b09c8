//! How many decisions of a recording the model makes as the kernel did, from exact inputs and from rebuilt ones.

use super::ProofResult;
use anyhow::{Context, Result, anyhow};
use wakewatt_core::record::wtrace::{Item, Reader};
use wakewatt_models::replay::{Change, Replay, Replayed};

const EXACT_RATIO: f64 = 0.999;
const REBUILT_RATIO: f64 = 0.95;
/// Fewer prove nothing.
const LEAST: u64 = 200;

/// One pass over a recording. `known` is what it does not say of its machine.
pub(super) fn replay(bytes: &[u8], changes: &[Change], known: &[Change]) -> Result<Replayed> {
    let mut reader = Reader::new(bytes)?;
    let header = reader.header.clone();
    // The kernel's configuration does not lie inside; Debian's says 250.
    let tick = header.tick_ns.is_none().then_some(Change::Hz(250));
    let known: Vec<Change> = known.iter().cloned().chain(tick).collect();
    let mut replay = Replay::new(&header, changes, &known).map_err(|e| anyhow!("{e}"))?;
    for item in reader.by_ref() {
        match item {
            Item::Pairs(pairs) => replay.pairs(&pairs),
            Item::Choices(choices) => replay.choices(&choices),
            Item::Mark(mark) => replay.mark(&mark),
        }
    }
    Ok(replay.finish())
}

/// Both shares of a recording, told and judged.
pub(super) fn decisions(name: &str, bytes: &[u8], verdict: &mut ProofResult) -> Result<()> {
    let replayed = replay(bytes, &[], &[]).with_context(|| name.to_string())?;
    let model = replayed.policies.first().map_or(String::new(), |p| p[0].model.clone() + ", kernel " + &p[0].kernel);
    let Some(rebuilt) = replayed.rebuilt else {
        verdict.wrong.push(format!("{name}: no exact inputs to speak of: {}", replayed.trust));
        return Ok(());
    };
    let percent = |n: u64, of: u64| 100.0 * n as f64 / of.max(1) as f64;
    verdict.counted.push(format!(
        "{name}: {} of {} identical from exact inputs ({:.2} %), {} of {} from rebuilt ones ({:.2} %); {model}",
        replayed.n_identical,
        replayed.n_compared,
        percent(replayed.n_identical, replayed.n_compared),
        rebuilt.n_identical,
        rebuilt.n_compared,
        percent(rebuilt.n_identical, rebuilt.n_compared),
    ));
    verdict.expect(replayed.n_compared >= LEAST, || format!("{name}: only {} decisions", replayed.n_compared));
    // One of a few hundred is no share of a thousand: it is told above, and judged where there are enough.
    let n_different = replayed.n_compared - replayed.n_identical.min(replayed.n_compared);
    verdict.expect(n_different <= 1 || replayed.identical_ratio >= Some(EXACT_RATIO), || {
        format!("{name}: below {:.1} % from exact inputs", 100.0 * EXACT_RATIO)
    });
    verdict.expect(rebuilt.identical_ratio >= Some(REBUILT_RATIO), || {
        format!("{name}: below {:.0} % from rebuilt inputs", 100.0 * REBUILT_RATIO)
    });
    Ok(())
}
