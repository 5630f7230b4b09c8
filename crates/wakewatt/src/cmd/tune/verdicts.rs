//! Whether settings hold, as lines: equal verdicts of one setting stand on one line.

use std::collections::BTreeMap;
use wakewatt_tune::status::{SettingState, SettingVerdict};
use wakewatt_words::{say, word};

/// What a line is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    /// A file of wakewatt's, by its path.
    File(String),
    /// A setting, by its name; empty where it has none.
    Setting(String),
}

/// Equal verdicts of one setting on one line.
pub(super) fn lines(settings: &[SettingState]) -> Vec<(String, bool)> {
    let mut groups: BTreeMap<(Named, String), Vec<&SettingState>> = BTreeMap::new();
    let mut order = Vec::new();
    for setting in settings {
        if let Some(file) = setting.path.strip_prefix("file:") {
            let now = if setting.now.is_some() { word!("changed since") } else { word!("gone") };
            let words = if setting.verdict.is_good() { word!("as written") } else { now };
            let key = (Named::File(file.to_string()), words.to_string());
            groups.entry(key.clone()).or_default().push(setting);
            order.push(key);
            continue;
        }
        let wanted = setting.requested_shown.as_deref().unwrap_or(word!("(no such file)"));
        let now = setting.now_shown.as_deref().unwrap_or(word!("nothing"));
        let verdict = match &setting.verdict {
            SettingVerdict::Holds => format!("= {wanted}"),
            SettingVerdict::Clamped(how) => format!("= {wanted}: {how}"),
            SettingVerdict::Drifted { by } if by.is_empty() => {
                say!("should be {wanted}, is {now}; nobody known turns this")
            }
            SettingVerdict::Drifted { by } => {
                say!("should be {wanted}, is {now}; possibly {who}", who = by.join(word!("; or ")))
            }
            SettingVerdict::Unknown(why) => say!("should be {wanted}; cannot tell: {why}"),
            SettingVerdict::Gone(why) => say!("should be {wanted}, cannot be read: {why}"),
            SettingVerdict::ResetByReboot => {
                say!("should be {wanted}, is {now}: a reboot reset it (--persist keeps it)")
            }
            SettingVerdict::LeftChanged { before } => {
                say!("is {now}, was {before} before", before = before.as_deref().unwrap_or(word!("not there")))
            }
            SettingVerdict::NeverSet => say!("should be {wanted}, is {now}: came online later and was never set"),
        };
        let force = setting.effective.as_ref().map_or(String::new(), |e| say!("; in force: {e}"));
        let key = (Named::Setting(setting.name.clone()), verdict + &force);
        if !groups.contains_key(&key) {
            order.push(key.clone());
        }
        groups.entry(key).or_default().push(setting);
    }
    let line = |key: &(Named, String)| {
        let group = &groups[key];
        let name = match &key.0 {
            Named::File(file) => return (say!("file {file}: {words}", words = key.1), group[0].verdict.is_good()),
            Named::Setting(name) if name.is_empty() => word!("setting"),
            Named::Setting(name) => name,
        };
        let more = if group.len() > 1 { say!(" and {n} more", n = group.len() - 1) } else { String::new() };
        (format!("{name} {} [{}{more}]", key.1, group[0].path), group[0].verdict.is_good())
    };
    order.iter().map(line).collect()
}
