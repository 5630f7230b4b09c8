//! The user's own meter: a command that prints watts, one number per line or one per call.
//!
//! Started through `sh -c`. If it goes on running, each of its lines counts at the moment it came; if it ends well after
//! its lines, it is started again for every reading. Units and refusals: `core/src/samples/meters/line.rs`. What it
//! covers only the user knows, so it is shown as the machine ("system") and the output names the command.

use super::subprocess::{MAX_LINES, Next, Program};
use super::{Meter, MetersWanted, Say};
use crate::clock::monotonic_ns;
use wakewatt_core::samples::energy::MeterGap;
use wakewatt_core::samples::energy::{Channel, Covers, Kind};
use wakewatt_core::samples::meters::line;

pub const NAME: &str = "command";

/// A first line may take this long.
const PATIENCE_NS: u64 = 5_000_000_000;

struct UserCommand {
    text: String,
    program: Option<Program>,
}

/// Takes the command; whether it works its first reading tells.
pub fn find(wanted: &MetersWanted) -> Result<Box<dyn Meter>, MeterGap> {
    let text = wanted.command.clone().ok_or_else(|| MeterGap::NotAskedFor("--meter-cmd CMD".into()))?;
    Ok(Box::new(UserCommand { text, program: None }))
}

impl Meter for UserCommand {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> &'static str {
        "whatever the command does"
    }

    fn channels(&self) -> Vec<Channel> {
        let name = self.text.clone();
        vec![Channel { id: NAME.into(), name, covers: Covers::System, is_part: false, kind: Kind::Power }]
    }

    fn read(&mut self, say: &mut Say<'_>) {
        let is_new = self.program.is_none();
        let program = match self.program.take().map_or_else(|| Program::start("sh", &["-c", &self.text]), Ok) {
            Ok(program) => program,
            Err(why) => return say(0, monotonic_ns(), Err(why)),
        };
        let mut n = 0;
        // What a flood would add meanwhile is left for the next reading.
        for _ in 0..=MAX_LINES {
            // Only the first line of a new program is worth waiting for.
            let wait_ns = if is_new && n == 0 { PATIENCE_NS } else { 0 };
            match program.next(wait_ns) {
                Next::Line(at_ns, text) => {
                    if let Some(value) = line::parse(&text) {
                        n += 1;
                        say(0, at_ns, value);
                    }
                }
                Next::Nothing if wait_ns > 0 => {
                    return say(0, monotonic_ns(), Err("the command printed nothing for 5 s".into()));
                }
                Next::Nothing => {
                    self.program = Some(program);
                    return;
                }
                Next::End => {
                    match program.end() {
                        Err(why) => say(0, monotonic_ns(), Err(why)),
                        Ok(()) if is_new && n == 0 => {
                            say(0, monotonic_ns(), Err("the command ended without printing a number".into()));
                        }
                        Ok(()) => {}
                    }
                    return;
                }
            }
        }
        self.program = Some(program);
    }
}
