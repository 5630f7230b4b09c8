//! Feeds `firmware`; see crates/wakewatt-readers/src/lib.rs.
#![no_main]

use wakewatt_readers::target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target("firmware").expect("a target of this build")(bytes));
