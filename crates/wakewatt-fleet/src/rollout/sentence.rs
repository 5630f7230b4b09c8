//! How a rollout stands, in a sentence.

use super::state::{End, FIRMWARE, Is, NodeState, Phase, Rollout};

impl Rollout {
    /// How it stands, in a sentence; why is apart.
    pub fn sentence(&self) -> String {
        let n = |is: &[Is]| self.nodes.iter().filter(|n| is.contains(&n.is)).count();
        let (n_all, n_changed) = (self.nodes.len(), n(&[Is::Confirmed, Is::Unchanged]));
        match self.end {
            Some(End::Done) => format!("Done: {n_changed} of {n_all} nodes have the change{}.", self.at_next_boot()),
            Some(End::AllUndone) => match n(&[Is::UndoWaits]) {
                0 => "All nodes are as before.".into(),
                n => format!("Everything is taken back; the old values of {} come back at their next boot.", nodes(n)),
            },
            Some(End::StageUndone) => match n(&[Is::UndoWaits]) {
                0 => format!("The stage's nodes are as before, {n_changed} of earlier ones keep it."),
                n => format!(
                    "The stage is taken back; the old values of {} come back at their next boot, {n_changed} of earlier ones keep it.",
                    nodes(n)
                ),
            },
            Some(End::Stopped) if self.is_firmware() => {
                "Stopped; what is staged stays staged until somebody takes it back (--undo).".into()
            }
            Some(End::Stopped) => "Stopped; what is not confirmed undoes itself.".into(),
            Some(End::NotUndone) => {
                // Those of earlier stages that keep it were not tried.
                let is_left = |n: &&NodeState| n.may_be_changed() && (n.is != Is::Confirmed || n.n_tries > 0);
                let left = self.nodes.iter().filter(is_left).count();
                format!("{} could NOT be put back, or nobody knows.", nodes(left))
            }
            None => {
                let stage = self.stages.get(self.stage).map_or("", |s| s.name.as_str());
                let doing = match self.phase {
                    Phase::Checking => "its nodes are asked",
                    Phase::Changing => "its nodes are changed",
                    Phase::Pausing { .. } => "waiting before its gates",
                    Phase::Looking => "its nodes are looked at",
                    Phase::Gating { .. } => "its gates are asked",
                    Phase::Confirming => "its nodes are confirmed",
                    Phase::Undoing { .. } => "nodes are put back",
                    Phase::Ended => "nothing more is done",
                };
                format!("Under way, stage {stage}: {doing}; {n_changed} of {n_all} nodes keep the change.")
            }
        }
    }
}

impl Rollout {
    /// Does it change what firmware holds?
    pub fn is_firmware(&self) -> bool {
        self.carrier == FIRMWARE
    }

    fn at_next_boot(&self) -> String {
        let waits = |n: &&NodeState| n.waits_for_boot && matches!(n.is, Is::Applied | Is::Confirming | Is::Confirmed);
        match self.nodes.iter().filter(waits).count() {
            0 => String::new(),
            n => format!("; {} at the next boot, nobody was restarted", nodes(n)),
        }
    }
}

fn nodes(n: usize) -> String {
    if n == 1 { "1 node".into() } else { format!("{n} nodes") }
}
