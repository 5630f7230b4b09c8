//! The answer of Prometheus' instant query (`GET /api/v1/query`), a PDU or plug exporter's watts behind it.
//!
//! Source: <https://prometheus.io/docs/prometheus/latest/querying/api/>. Values are text (`"212.5"`, `"NaN"`). A vector may
//! hold several series; each is a channel, named by its labels, and the user's query decides whether they may be added.
//! Traps: the time in an answer is that of the evaluation, not of the sample, which may be as old as the scrape interval
//! and the lookback (5 min): a target that is gone repeats its last value for that long.

use super::{quoted, uw_of_watts};
use serde_json::Value;

/// One series: its labels, and its watts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// `node_power_watts{instance="db7"}`; empty for a scalar.
    pub name: String,
    /// Microwatts, or why not.
    pub power_uw: Result<i64, String>,
}

/// Decodes an answer.
pub fn parse(text: &str) -> Result<Vec<Sampled>, String> {
    let answer: Value =
        serde_json::from_str(text).map_err(|_| format!("this is no answer of Prometheus: {}", quoted(text)))?;
    let word = |key: &str| answer[key].as_str().unwrap_or_default();
    if word("status") != "success" {
        return Err(match answer["error"].as_str() {
            Some(error) => format!("Prometheus refused the query: {}", quoted(error)),
            None => format!("this is no answer of Prometheus: {}", quoted(text)),
        });
    }
    let data = &answer["data"];
    match data["resultType"].as_str().unwrap_or_default() {
        "scalar" => Ok(vec![Sampled { name: String::new(), power_uw: watts(&data["result"]) }]),
        "vector" => {
            let found: Vec<Sampled> = data["result"].as_array().into_iter().flatten().map(series).collect();
            if found.is_empty() { Err("the query finds no series".into()) } else { Ok(found) }
        }
        other => Err(format!("the query gives a {}; it must give a scalar or an instant vector", quoted(other))),
    }
}

fn series(item: &Value) -> Sampled {
    let labels = item["metric"].as_object();
    let name = labels.and_then(|l| l.get("__name__")).and_then(Value::as_str).unwrap_or_default();
    let others = labels.into_iter().flatten().filter(|(key, _)| *key != "__name__");
    let others: Vec<String> = others.map(|(key, value)| format!("{key}={value}")).collect();
    let name = if others.is_empty() { name.to_string() } else { format!("{name}{{{}}}", others.join(",")) };
    Sampled { name, power_uw: watts(&item["value"]) }
}

fn watts(pair: &Value) -> Result<i64, String> {
    let text = pair[1].as_str().ok_or("the answer holds no value")?;
    text.parse().map_err(|_| format!("{} is not a number of watts", quoted(text))).and_then(uw_of_watts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_scalars() {
        let vector = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"__name__":"pdu_watts","outlet":"7"},"value":[1700000000.1,"212.5"]},
            {"metric":{},"value":[1700000000.1,"NaN"]}]}}"#;
        let found = parse(vector).unwrap();
        assert_eq!(found[0].name, "pdu_watts{outlet=\"7\"}");
        assert_eq!(found[0].power_uw, Ok(212_500_000));
        assert!(found[1].power_uw.clone().unwrap_err().contains("NaN"));
        let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[1700000000.1,"3"]}}"#;
        assert_eq!(parse(scalar).unwrap()[0].power_uw, Ok(3_000_000));
    }

    #[test]
    fn refusals_and_garbage() {
        for (text, word) in [
            (r#"{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}"#, "refused the query"),
            (r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#, "no series"),
            (r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#, "matrix"),
            (r#"{"status":"success","data":{"resultType":"scalar","result":[]}}"#, ""),
            ("<html>404</html>", "no answer of Prometheus"),
            ("", "no answer"),
            ("[]", "no answer"),
        ] {
            match parse(text) {
                Err(why) => assert!(why.contains(word), "{text}: {why}"),
                Ok(found) => assert!(found.iter().all(|s| s.power_uw.is_err()), "{text}"),
            }
        }
    }
}
