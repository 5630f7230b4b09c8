//! On-disk forms: what leaves the process and must be readable for years.

mod blocks;
pub mod cited;
pub mod host_file;
pub mod mask;
pub mod msr_text;
mod room;
pub mod run_file;
pub mod varint;
pub mod wtrace;
