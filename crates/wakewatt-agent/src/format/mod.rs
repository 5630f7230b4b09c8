//! How a page is written: what the asker accepts decides.
//!
//! Prometheus asks for protobuf first where it keeps native histograms, else for OpenMetrics, else for its own text. Who says nothing, a person
//! with curl, gets the text of Prometheus.

mod protobuf;
mod text;
mod written;

pub(crate) use written::Written;

use crate::metric::{Labels, Page};

/// A sample's name with its labels, as the texts write it.
pub(crate) fn series_name(name: &str, labels: &Labels) -> String {
    text::series(name, labels)
}

/// A label's value as the texts write it.
pub(crate) fn escaped_label(value: &str) -> String {
    let mut out = String::new();
    text::escaped(&mut out, value);
    out
}

/// A way to write a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text of Prometheus, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// Delimited messages of `io.prometheus.client`, the only one with native histograms.
    Protobuf,
}

impl Format {
    /// The best of those that an `Accept` header names: by its weights, and between equals the one named first.
    pub fn accepted(accept: &str) -> Format {
        let mut best = (0.0, Format::Text);
        for part in accept.split(',') {
            let mut words = part.split(';').map(str::trim);
            let kind = words.next().unwrap_or_default();
            let parameter =
                |name: &str| part.split(';').map(str::trim).find_map(|w| w.strip_prefix(name)?.strip_prefix('='));
            let weight = parameter("q").and_then(|q| q.parse::<f64>().ok()).unwrap_or(1.0);
            let is_delimited = parameter("encoding").is_none_or(|e| e == "delimited");
            let is_family = parameter("proto").is_none_or(|p| p == "io.prometheus.client.MetricFamily");
            let format = match kind {
                "application/vnd.google.protobuf" if is_delimited && is_family => Format::Protobuf,
                "application/openmetrics-text" => Format::OpenMetrics,
                "text/plain" | "*/*" | "text/*" => Format::Text,
                _ => continue,
            };
            if weight > best.0 {
                best = (weight, format);
            }
        }
        best.1
    }

    /// What the answer says it is.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// Writes a page.
    pub fn write(self, page: &Page) -> Vec<u8> {
        match self {
            Format::Text => text::write(page, text::Flavour::Prometheus).into_bytes(),
            Format::OpenMetrics => text::write(page, text::Flavour::OpenMetrics).into_bytes(),
            Format::Protobuf => protobuf::write(page),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_asker_decides() {
        let of = Format::accepted;
        assert_eq!((of(""), of("*/*"), of("text/html,*/*;q=0.1")), (Format::Text, Format::Text, Format::Text));
        assert_eq!(
            of(
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
            ),
            Format::OpenMetrics
        );
        let native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5";
        assert_eq!(of(native), Format::Protobuf);
        assert_eq!(of("application/vnd.google.protobuf;encoding=text,text/plain;q=0.1"), Format::Text);
        assert_eq!(of("application/json;q=nonsense;;;,,,"), Format::Text);
    }
}
