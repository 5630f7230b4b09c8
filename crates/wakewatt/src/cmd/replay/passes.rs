//! Passes over a recording, each piece by piece: once for what is asked, once for every latency limit, once for an upgrade.

use crate::exit::{Code, Failure};
use crate::recording;
use crate::report::trace::clean;
use anyhow::Result;
use std::path::Path;
use wakewatt_core::record::wtrace::{Ending, Header, Item};
use wakewatt_core::samples::replayed::{Followed, Replayed};
use wakewatt_models::kernel::Kernel;
use wakewatt_models::replay::{Change, Replay, ReplayError, Upgrade, sweep};

/// What every pass has in common.
pub(super) struct Passes<'a> {
    pub(super) file: &'a Path,
    pub(super) changes: Vec<Change>,
    pub(super) corrections: Vec<Change>,
}

impl Passes<'_> {
    /// One pass; `more` is asked besides.
    pub(super) fn one(&self, more: &[Change]) -> Result<Replayed> {
        let asked = [&self.changes[..], more].concat();
        let mut stream = recording::stream(self.file)?;
        let header = stream.header.clone();
        let mut replay = Replay::new(&header, &asked, &self.corrections).map_err(|e| self.refused(&e))?;
        stream.by_ref().for_each(|item| feed(&mut replay, &item));
        let mut replayed = replay.finish();
        replayed.remarks.extend(recording::not_whole(stream.ending()));
        self.is_something(replayed.followed, stream.ending())?;
        Ok(replayed)
    }

    /// Nothing is concluded from nothing.
    fn is_something(&self, followed: Followed, ending: Option<&Ending>) -> Result<()> {
        if followed.n_followed > 0 {
            return Ok(());
        }
        let why = match followed.n_recorded {
            0 => "holds no idle interval; record one with: wakewatt trace --record FILE".to_string(),
            n => format!(
                "none of its {n} idle intervals can be followed: they lack what the governor was told, their CPUs lack an idle table, \
                 or settings changed before them; record again with: wakewatt trace --record FILE"
            ),
        };
        let ending = recording::not_whole(ending).map_or(String::new(), |words| format!(" {words}"));
        Err(Failure::error(Code::NoSample, format!("{}: {why}.{ending}", self.file.display())))
    }

    /// Under every limit that means something on the table, strictest first.
    pub(super) fn under_every_limit(&self) -> Result<Vec<(u64, Replayed)>> {
        let header = self.header()?;
        let limits = sweep::limits_ns(&header, &[&self.corrections[..], &self.changes[..]].concat());
        limits.into_iter().map(|limit_ns| Ok((limit_ns, self.one(&[sweep::asking(limit_ns)])?))).collect()
    }

    /// Under two kernels; none for the recorded one.
    pub(super) fn upgrade(&self, kernels: (Option<Kernel>, Kernel)) -> Result<(Upgrade, Replayed)> {
        let mut stream = recording::stream(self.file)?;
        let header = stream.header.clone();
        let replay = Replay::upgrade(&header, kernels, &self.changes, &self.corrections);
        let mut replay = replay.map_err(|e| self.refused(&e))?;
        stream.by_ref().for_each(|item| feed(&mut replay, &item));
        let (mut upgrade, mut replayed) = replay.finish_upgrade();
        upgrade.remarks.extend(recording::not_whole(stream.ending()));
        replayed.remarks.extend(recording::not_whole(stream.ending()));
        self.is_something(upgrade.followed, stream.ending())?;
        Ok((upgrade, replayed))
    }

    /// What the recording says of itself.
    pub(super) fn header(&self) -> Result<Header> {
        Ok(recording::stream(self.file)?.header)
    }

    fn refused(&self, why: &ReplayError) -> anyhow::Error {
        Failure::error(Code::BadFile, format!("{}: {}", self.file.display(), clean(&why.to_string())))
    }
}

fn feed(replay: &mut Replay<'_>, item: &Item) {
    match item {
        Item::Pairs(pairs) => replay.pairs(pairs),
        Item::Choices(choices) => replay.choices(choices),
        Item::Mark(mark) => replay.mark(mark),
    }
}
