//! A reading as it is handed out: in each format written once, and those bytes shared by everybody who asks before the next reading.
//!
//! Who asks a thousand times a second then makes the agent copy pointers, not format numbers.

use super::Format;
use crate::metric::Page;
use axum::body::Bytes;
use std::sync::OnceLock;

/// A page with its bytes, as far as somebody asked for them.
#[derive(Debug, Default)]
pub(crate) struct Written {
    page: Page,
    bytes: [OnceLock<Bytes>; 3],
}

impl Written {
    pub(crate) fn new(page: Page) -> Written {
        Written { page, bytes: Default::default() }
    }

    /// What was read.
    pub(crate) fn page(&self) -> &Page {
        &self.page
    }

    /// In this format; the same bytes every time.
    pub(crate) fn bytes(&self, format: Format) -> Bytes {
        let at = match format {
            Format::Text => 0,
            Format::OpenMetrics => 1,
            Format::Protobuf => 2,
        };
        self.bytes[at].get_or_init(|| Bytes::from(format.write(&self.page))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::names;

    #[test]
    fn everybody_gets_the_same_bytes() {
        let mut page = Page::default();
        page.number(&names::INTERRUPTS, Vec::new(), 5.0);
        let written = Written::new(page.clone());
        for format in [Format::Text, Format::OpenMetrics, Format::Protobuf] {
            let (first, second) = (written.bytes(format), written.bytes(format));
            assert_eq!(first, format.write(&page));
            assert_eq!(first.as_ptr(), second.as_ptr(), "{format:?} was written twice");
        }
    }
}
