//! Kernel parameters as steps of a transaction: the boot loader's files, its commands, and their inverse.

use super::{OrderError, Steps};
use crate::apply::FileChange;
use crate::boot::{self, Argument, BootError, BootPlan, TryOnce};
use wakewatt_core::source::Source;

/// What the boot loader here would be given; none where no parameter is wanted.
pub(super) fn plan(
    arguments: &[Argument],
    source: &dyn Source,
    held: &[Argument],
) -> Option<Result<(BootPlan, String), BootError>> {
    if arguments.is_empty() {
        return None;
    }
    let is_overruled = |old: &&Argument| arguments.iter().any(|new| new.has_name(old.key()));
    let mut all: Vec<Argument> = held.iter().filter(|old| !is_overruled(old)).cloned().collect();
    all.extend(arguments.iter().cloned());
    Some(boot::choose(source).and_then(|(loader, because)| {
        let plan = loader.plan(source, &all)?;
        Ok((plan, format!("{} ({because})", loader.about().title)))
    }))
}

/// The plan's files and commands, for good or for one boot.
pub(super) fn add(plan: &BootPlan, loader: &str, is_trying: bool, to: &mut Steps) -> Result<(), OrderError> {
    to.notes.push(format!("{loader}: takes effect with the next boot; afterwards: wakewatt tune verify"));
    to.notes.extend(plan.notes.iter().cloned());
    let (edits, steps) = match (&plan.try_once, is_trying) {
        (Some(TryOnce::Offered { edits, commands, to_keep }), true) => {
            to.notes.push(format!("tried once: {to_keep}"));
            (edits, commands)
        }
        (Some(TryOnce::Refused { why }), true) => return Err(OrderError::Refused(format!("--try-once: {why}"))),
        _ => (&plan.edits, &plan.commands),
    };
    for edit in edits {
        let text = edit.after.clone().map(String::from_utf8).transpose();
        let text = text.map_err(|_| OrderError::Refused(format!("{}: holds bytes that are no text", edit.path)))?;
        to.files.push(FileChange { path: format!("file:{}", edit.path), to: text });
    }
    to.commands.extend(steps.iter().map(|c| (c.argv.clone(), c.undo.clone())));
    Ok(())
}
