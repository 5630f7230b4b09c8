//! wakewatt, the binary's library part: everything that needs no process of its own to be tested.

pub mod report;
