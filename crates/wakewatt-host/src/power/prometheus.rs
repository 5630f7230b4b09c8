//! Watts that Prometheus already has: an instant query per reading.
//!
//! For PDUs, plugs and other machines' exporters. What the query covers only its author knows: it is shown as the machine
//! ("system"), so a query that finds several series is taken to mean their sum. A stale value repeats for up to 5 min,
//! which shows as equal readings; watts scraped every 15 s say nothing about a window of 10 s.

use super::{Meter, MetersWanted, Say, stamped};
use crate::http::{Http, Trust, check_url};
use wakewatt_core::samples::energy::MeterGap;
use wakewatt_core::samples::energy::{Channel, Covers, Kind};
use wakewatt_core::samples::meters::prometheus::{Sampled, parse};

pub const NAME: &str = "prometheus";

/// What to ask.
#[derive(Clone, Debug)]
pub struct Query {
    /// The server: `https://prometheus.example:9090`
    pub url: String,
    /// PromQL that gives watts.
    pub query: String,
}

struct Prometheus {
    http: Http,
    url: String,
    names: Vec<String>,
}

/// Asks once, to learn which series there are.
pub fn find(wanted: &MetersWanted) -> Result<Box<dyn Meter>, MeterGap> {
    let asked = wanted.prometheus.as_ref().ok_or_else(|| MeterGap::NotAskedFor("--prometheus URL --query Q".into()))?;
    let base = check_url(&asked.url, "http://exporter.example:9100")?;
    let url = format!("{base}/api/v1/query?query={}", escaped(&asked.query));
    let mut meter = Prometheus { http: client(base, &wanted.trust)?, url, names: Vec::new() };
    meter.names = meter.ask()?.into_iter().map(|s| s.name).collect();
    Ok(Box::new(meter))
}

fn client(url: &str, trust: &Trust) -> Result<Http, String> {
    Http::new(url, trust)
}

/// Percent-encoding of all but the unreserved (RFC 3986).
fn escaped(text: &str) -> String {
    let of_byte = |b: u8| match b {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    text.bytes().map(of_byte).collect()
}

impl Prometheus {
    fn ask(&self) -> Result<Vec<Sampled>, String> {
        let answer = self.http.get(&self.url, &[]).map_err(|refused| refused.why)?;
        parse(&answer.text)
    }
}

impl Meter for Prometheus {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> &'static str {
        "one HTTP request over the network"
    }

    fn channels(&self) -> Vec<Channel> {
        let channel = |(at, name): (usize, &String)| Channel {
            id: at.to_string(),
            name: if name.is_empty() { "query".into() } else { name.clone() },
            covers: Covers::System,
            is_part: false,
            kind: Kind::Power,
        };
        self.names.iter().enumerate().map(channel).collect()
    }

    fn read(&mut self, say: &mut Say<'_>) {
        let (at_ns, answer) = stamped(|| self.ask());
        for (at, name) in self.names.iter().enumerate() {
            let value = match &answer {
                Ok(all) => match all.iter().find(|s| s.name == *name) {
                    Some(found) => found.power_uw.clone(),
                    None => Err("the series is gone".into()),
                },
                Err(why) => Err(why.clone()),
            };
            say(at, at_ns, value);
        }
    }
}
