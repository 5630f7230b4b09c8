//! Replays as one flat table: a row for each recording, CPU, setting and idle state, with what names the machine, so that the tables of a fleet
//! can be put under each other.
//!
//! A column is defined once, here: its name (with the unit), its type and its value. CSV and Parquet are made from this list. A value that
//! is not known is empty, never zero: a state that only one of the tables has is empty on the other side.

use wakewatt_core::samples::replayed::{CpuReplay, PolicyTold, Replayed, Side, StateTold};

/// Of what type a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// True or false.
    Flag,
}

/// A value; none where it is not known.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(Option<String>),
    /// A whole number.
    Whole(Option<u64>),
    /// A number.
    Number(Option<f64>),
    /// True or false.
    Flag(Option<bool>),
}

/// A row: a state of a CPU under a setting.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    trace: &'a str,
    replayed: &'a Replayed,
    cpu: &'a CpuReplay,
    state: &'a str,
}

/// A column.
pub struct Column {
    /// Its name, with the unit.
    pub name: &'static str,
    /// Its type.
    pub of: Type,
    /// The value of a row.
    pub value: fn(&Row<'_>) -> Value,
}

impl Row<'_> {
    fn policy(&self, at: usize) -> Option<&PolicyTold> {
        self.replayed.policies.get(self.cpu.table).map(|both| &both[at])
    }

    fn recorded(&self) -> Option<&StateTold> {
        self.cpu.recorded.state(self.state)
    }

    fn predicted(&self) -> Option<&StateTold> {
        self.cpu.predicted.state(self.state)
    }
}

fn text(value: Option<impl Into<String>>) -> Value {
    Value::Text(value.map(Into::into))
}

fn whole(value: Option<u64>) -> Value {
    Value::Whole(value)
}

macro_rules! columns {
    ($($name:literal $type:ident $value:expr,)*) => {
        /// All columns, in their order.
        pub const COLUMNS: &[Column] = &[$(Column { name: $name, of: Type::$type, value: $value }),*];
    };
}

columns! {
    "trace" Text |r| text(Some(r.trace)),
    "boot" Text |r| text(r.replayed.recording.boot.as_deref()),
    "recorded_kernel" Text |r| text(Some(r.replayed.recording.kernel.as_str())),
    "arch" Text |r| text(Some(r.replayed.recording.arch.as_str())),
    "driver" Text |r| text(r.replayed.recording.driver.as_deref()),
    "n_cpus" Whole |r| whole(Some(r.replayed.recording.n_cpus.into())),
    "created_at_s" Whole |r| whole(Some(r.replayed.recording.created_at_s)),
    "window_ns" Whole |r| whole(r.replayed.window_ns),
    "label" Text |_| text(Some("modelled")),
    "is_trusted" Flag |r| Value::Flag(r.replayed.is_trusted),
    "identical_ratio" Number |r| Value::Number(r.replayed.identical_ratio),
    "cpu_identical_ratio" Number |r| Value::Number(r.cpu.identical_ratio),
    "setting" Text |r| text(Some(r.replayed.setting_words())),
    "recorded_governor" Text |r| text(r.policy(0).map(|p| p.governor.as_str())),
    "recorded_latency_limit_ns" Whole |r| whole(r.policy(0).and_then(|p| p.latency_limit_ns)),
    "governor" Text |r| text(r.policy(1).map(|p| p.governor.as_str())),
    "kernel" Text |r| text(r.policy(1).map(|p| p.kernel.as_str())),
    "model" Text |r| text(r.policy(1).map(|p| p.model.as_str())),
    "model_basis" Text |r| text(r.policy(1).map(|p| p.basis.as_str())),
    "latency_limit_ns" Whole |r| whole(r.policy(1).and_then(|p| p.latency_limit_ns)),
    "cpu" Whole |r| whole(Some(r.cpu.cpu.into())),
    "state" Text |r| text(Some(r.state)),
    "exit_ns" Whole |r| whole(r.predicted().or(r.recorded()).map(|s| s.exit_ns)),
    "worst_exit_ns" Whole |r| whole(r.predicted().or(r.recorded()).map(|s| s.worst_exit_ns)),
    "exit_basis" Text |r| text(r.predicted().or(r.recorded()).map(|s| s.exit_basis.to_string())),
    "recorded_stays" Whole |r| whole(r.recorded().map(|s| s.n)),
    "recorded_time_ns" Whole |r| whole(r.recorded().map(|s| s.time_ns)),
    "recorded_wakes" Whole |r| whole(r.recorded().map(|s| s.n_wakes)),
    "recorded_above" Whole |r| whole(r.recorded().map(|s| s.n_above)),
    "recorded_below" Whole |r| whole(r.recorded().map(|s| s.n_below)),
    "predicted_stays" Whole |r| whole(r.predicted().map(|s| s.n)),
    "predicted_time_ns" Whole |r| whole(r.predicted().map(|s| s.time_ns)),
    "predicted_wakes" Whole |r| whole(r.predicted().map(|s| s.n_wakes)),
    "predicted_above" Whole |r| whole(r.predicted().map(|s| s.n_above)),
    "predicted_below" Whole |r| whole(r.predicted().map(|s| s.n_below)),
    "cpu_recorded_mean_wake_cost_ns" Number |r| Value::Number(mean(&r.cpu.recorded)),
    "cpu_predicted_mean_wake_cost_ns" Number |r| Value::Number(mean(&r.cpu.predicted)),
    "cpu_recorded_energy_uj" Number |r| Value::Number(Some(r.cpu.recorded.modelled_energy_uj)),
    "cpu_predicted_energy_uj" Number |r| Value::Number(Some(r.cpu.predicted.modelled_energy_uj)),
}

fn mean(side: &Side) -> Option<f64> {
    (side.wake_cost.n > 0).then_some(side.wake_cost.mean_ns)
}

/// All rows of these replays of one recording, which is called `trace`.
pub fn rows<'a>(trace: &'a str, replays: &'a [Replayed]) -> impl Iterator<Item = Row<'a>> {
    replays.iter().flat_map(move |replayed| {
        replayed.cpus.iter().flat_map(move |cpu| {
            let names = cpu.recorded.names(&cpu.predicted);
            names.into_iter().map(move |state| Row { trace, replayed, cpu, state })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: &str, n: u64) -> StateTold {
        StateTold {
            state: name.into(),
            n,
            time_ns: n * 1000,
            time_ratio: 1.0,
            n_above: 0,
            n_below: 0,
            n_wakes: n,
            exit_ns: 5,
            worst_exit_ns: 10,
            exit_basis: super::super::ExitBasis::Measured,
        }
    }

    #[test]
    fn a_state_of_one_side_only_is_empty_on_the_other() {
        let side = |states| Side { states, ..Side::default() };
        let cpu = CpuReplay {
            cpu: 3,
            identical_ratio: Some(0.5),
            table: 0,
            recorded: side(vec![state("POLL", 4), state("C1", 7)]),
            predicted: side(vec![state("POLL", 1), state("C6", 9)]),
        };
        let replays = [Replayed { cpus: vec![cpu.clone(), CpuReplay { cpu: 4, ..cpu }], ..Replayed::default() }];
        let all: Vec<Row<'_>> = rows("a.wtrace", &replays).collect();
        assert_eq!(all.len(), 6);
        let value = |row: &Row<'_>, name: &str| {
            let column = COLUMNS.iter().find(|c| c.name == name).unwrap();
            (column.value)(row)
        };
        assert_eq!(value(&all[1], "state"), Value::Text(Some("C1".into())));
        assert_eq!(
            (value(&all[1], "recorded_stays"), value(&all[1], "predicted_stays")),
            (Value::Whole(Some(7)), Value::Whole(None))
        );
        assert_eq!(
            (value(&all[2], "recorded_stays"), value(&all[2], "predicted_stays")),
            (Value::Whole(None), Value::Whole(Some(9)))
        );
        assert_eq!(value(&all[5], "cpu"), Value::Whole(Some(4)));
        assert_eq!(value(&all[0], "exit_basis"), Value::Text(Some("measured".into())));
        assert_eq!(value(&all[0], "cpu_recorded_mean_wake_cost_ns"), Value::Number(None), "no wake-up, no mean");
        for column in COLUMNS {
            let fits = |v: &Value| {
                matches!(
                    (column.of, v),
                    (Type::Text, Value::Text(_))
                        | (Type::Whole, Value::Whole(_))
                        | (Type::Number, Value::Number(_))
                        | (Type::Flag, Value::Flag(_))
                )
            };
            assert!(all.iter().all(|row| fits(&(column.value)(row))), "{}", column.name);
        }
    }
}
