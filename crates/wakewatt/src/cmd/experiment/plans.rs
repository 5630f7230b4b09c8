//! Plans by name or file, and the profiles they name.

use crate::exit::{Code, Failure, code_of};
use crate::trusted::{self, Use};
use anyhow::Result;
use std::cell::Cell;
use wakewatt_host::input;
use wakewatt_lab::plan::{self, Plan};
use wakewatt_tune::profile::{self, Profile};

/// A shipped plan, or a file, with the program it asks about. What holds a slash or ends in .toml is a file.
pub(super) fn read(name: &str, agent: &[String], used: Use) -> Result<(Plan, String)> {
    let is_file = name.contains('/') || name.ends_with(".toml");
    let text = if is_file {
        trusted::text(name, input::PLAN, used)?
    } else {
        plan::shipped(name).map_err(|why| Failure::error(Code::Usage, why))?.to_string()
    };
    let code = if is_file { Code::BadFile } else { Code::Usage };
    let text = plan::with_agent(&text, agent).map_err(|why| Failure::error(Code::Usage, format!("{name}: {why}")))?;
    Ok((parse(name, &text, code, used)?, text))
}

pub(super) fn parse(name: &str, text: &str, code: Code, used: Use) -> Result<Plan> {
    // What kind of error a profile has is lost in the parser's words; a file not to be believed must not be.
    let distrusted = Cell::new(false);
    let profile = |name: &str| {
        profile(name, used).map_err(|error| {
            distrusted.set(code_of(&error) == Code::Refused);
            format!("profile {error:#}")
        })
    };
    plan::parse(text, &profile).map_err(|why| {
        let code = if distrusted.get() { Code::Refused } else { code };
        Failure::error(code, format!("{name}: {why}"))
    })
}

fn profile(name: &str, used: Use) -> Result<Profile> {
    let is_file = name.contains('/') || name.ends_with(".toml");
    let text = if is_file {
        trusted::text(name, input::PROFILE, used)?
    } else {
        profile::shipped(name).map_err(anyhow::Error::msg)?.to_string()
    };
    Profile::parse(&text).map_err(|why| anyhow::anyhow!("{name}: {why}"))
}
