//! The hands of this machine: its files, its disk, its programs.

use crate::hands::Hands;
use std::path::Path;
use wakewatt_host::exec::Programs;
use wakewatt_host::live::{Live, SysrootError};
use wakewatt_host::sink::LiveSink;
use wakewatt_host::store::Disk;

/// What [`Hands`] point to on a real machine.
pub(crate) struct ThisMachine {
    source: Live,
    sink: LiveSink,
}

impl ThisMachine {
    /// The machine this runs on.
    pub(crate) fn new() -> Self {
        ThisMachine { source: Live::this_machine(), sink: LiveSink::this_machine() }
    }
    /// Files under a root; `/` is the machine itself.
    pub(crate) fn at(root: &Path) -> Result<Self, SysrootError> {
        if root == Path::new("/") {
            return Ok(ThisMachine::new());
        }
        Ok(ThisMachine { source: Live::sysroot(root)?, sink: LiveSink::at(root) })
    }
    /// Them.
    pub(crate) fn hands(&self) -> Hands<'_> {
        Hands { source: &self.source, sink: &self.sink, store: &Disk, runner: &Programs }
    }
}
