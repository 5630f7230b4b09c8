//! Do two machines have the same idle table? A number short enough for a label answers that without sending the table.

use super::Idle;
use std::fmt::Write as _;

impl Idle {
    /// Eight digits that change when a name, an exit latency or a target residency of the table does; none without a table.
    pub fn table_checksum(&self) -> Option<String> {
        let tables = self.tables();
        if tables.iter().all(|(_, rows)| rows.is_empty()) {
            return None;
        }
        let mut text = String::new();
        for row in tables.iter().flat_map(|(_, rows)| rows) {
            let _ =
                writeln!(text, "{} {} {:?} {:?}", row.index, row.name, row.exit_latency_ns, row.target_residency_ns);
        }
        Some(format!("{:08x}", crc32fast::hash(text.as_bytes())))
    }
}
