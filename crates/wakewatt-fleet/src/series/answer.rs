//! An answer of the API, read as it arrives: series by series, each given away before the next is read.
//!
//! An answer is foreign and may be without end. Whoever opens the door limits its bytes ([`MOST_BYTES`]); here no more than
//! one series is held, with so many labels and points at most, and text is borrowed where JSON lets it be. Values are text
//! (`"0.25"`, `"NaN"`); what is no finite number is left out, as a gap is.

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

/// Longest answer that is read.
pub const MOST_BYTES: u64 = 16 << 20;
/// More labels, or longer ones, are no series of a node.
const MOST_LABELS: usize = 256;
/// Of all labels of a series.
const MOST_LABEL_BYTES: usize = 64 << 10;

/// Labels of a series.
pub(super) type Labels = BTreeMap<String, String>;
/// What takes a series: its labels and its points (seconds since 1970, value).
pub(super) type Take<'a> = dyn FnMut(&Labels, &[(f64, f64)]) + 'a;

/// What came, apart from the series.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) is_success: bool,
    pub(super) error: Option<String>,
    pub(super) n_series: usize,
}

/// Reads an answer for nothing but its form: the number of its series, or why it is none.
pub fn read_answer(bytes: &[u8]) -> Result<usize, String> {
    read(bytes, &mut |_, _| {}).map(|a| a.n_series).map_err(|e| e.to_string())
}

pub(super) fn read(from: impl Read, take: &mut Take<'_>) -> serde_json::Result<Answer> {
    let mut reader = serde_json::Deserializer::from_reader(std::io::BufReader::new(from));
    let answer = Whole(take).deserialize(&mut reader)?;
    reader.end()?;
    Ok(answer)
}

struct Whole<'a, 'b>(&'a mut Take<'b>);

impl<'de> DeserializeSeed<'de> for Whole<'_, '_> {
    type Value = Answer;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Answer, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_, '_> {
    type Value = Answer;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer of Prometheus")
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Answer, M::Error> {
        let mut answer = Answer::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "status" => answer.is_success = map.next_value::<String>()? == "success",
                "error" => answer.error = map.next_value()?,
                "data" => answer.n_series += map.next_value_seed(Data(&mut *self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(answer)
    }
}

struct Data<'a, 'b>(&'a mut Take<'b>);

impl<'de> DeserializeSeed<'de> for Data<'_, '_> {
    type Value = usize;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<usize, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Data<'_, '_> {
    type Value = usize;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the data of an answer")
    }
    fn visit_unit<E: de::Error>(self) -> Result<usize, E> {
        Ok(0)
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<usize, M::Error> {
        let mut n = 0;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "result" => n += map.next_value_seed(Result_(&mut *self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(n)
    }
}

/// The list of series.
struct Result_<'a, 'b>(&'a mut Take<'b>);

impl<'de> DeserializeSeed<'de> for Result_<'_, '_> {
    type Value = usize;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<usize, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Result_<'_, '_> {
    type Value = usize;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of series (the query must give a vector, not a number)")
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<usize, S::Error> {
        let mut n = 0;
        while let Some(series) = seq.next_element::<Series>()? {
            (self.0)(&series.metric.0, &series.values.0);
            n += 1;
        }
        Ok(n)
    }
}

#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    metric: Few,
    /// Of a range.
    #[serde(default)]
    values: Points,
}

/// Labels, and not without end.
#[derive(Default)]
struct Few(Labels);

impl<'de> Deserialize<'de> for Few {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Few, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Few;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Few, M::Error> {
                let (mut labels, mut n_bytes) = (Labels::new(), 0);
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    n_bytes += key.len() + value.len();
                    if n_bytes > MOST_LABEL_BYTES {
                        return Err(de::Error::custom(format!("labels of more than {MOST_LABEL_BYTES} bytes")));
                    }
                    if labels.len() >= MOST_LABELS {
                        return Err(de::Error::custom(format!("a series with more than {MOST_LABELS} labels")));
                    }
                    labels.insert(key, value);
                }
                Ok(Few(labels))
            }
        }
        d.deserialize_map(Map)
    }
}

/// Points without those that are no number.
#[derive(Default)]
struct Points(Vec<(f64, f64)>);

/// `[1700000000.1, "0.25"]`
#[derive(Deserialize)]
struct Pair(f64, Number);

struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Number, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number as text")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
                text.parse().map(Number).map_err(|_| E::custom("a value that is no number"))
            }
        }
        d.deserialize_str(Text)
    }
}

impl<'de> Deserialize<'de> for Points {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Points, D::Error> {
        struct Seq;
        impl<'de> Visitor<'de> for Seq {
            type Value = Points;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of points")
            }
            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Points, S::Error> {
                let mut points = Vec::new();
                while let Some(Pair(at, Number(value))) = seq.next_element()? {
                    if points.len() >= super::window::MOST_POINTS {
                        return Err(de::Error::custom("a series with more points than were asked for"));
                    }
                    if value.is_finite() {
                        points.push((at, value));
                    }
                }
                Ok(Points(points))
            }
        }
        d.deserialize_seq(Seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = Vec<(Labels, Vec<(f64, f64)>)>;

    fn told(text: &str) -> Result<(Answer, Told), String> {
        let mut all = Vec::new();
        let answer = read(text.as_bytes(), &mut |labels, points| all.push((labels.clone(), points.to_vec())));
        answer.map(|a| (a, all)).map_err(|e| e.to_string())
    }

    #[test]
    fn series_are_given_away_one_by_one() {
        let (answer, all) = told(
            r#"{"status":"success","isPartial":false,"data":{"resultType":"matrix","result":[
            {"metric":{"instance":"a:9100"},"values":[[1,"0.5"],[2.5,"NaN"],[3,"+Inf"],[4,"-1e3"]]},{"metric":{}}]},"warnings":["x"]}"#,
        )
        .unwrap();
        assert!(answer.is_success && answer.n_series == 2);
        assert_eq!(all[0].1, [(1.0, 0.5), (4.0, -1000.0)]);
        assert_eq!(all[0].0["instance"], "a:9100");
    }

    #[test]
    fn refusals_and_garbage() {
        let (answer, _) =
            told(r#"{"status":"error","errorType":"bad_data","error":"parse error","data":null}"#).unwrap();
        assert_eq!((answer.is_success, answer.error.as_deref()), (false, Some("parse error")));
        for text in [
            "",
            "[]",
            "<html>",
            r#"{"data":{"result":[1,"2"]}}"#,
            r#"{"data":{"result":[{"values":[[1,2]]}]}}"#,
            r#"{"data":{"result":[{"metric":{"a":1}}]}}"#,
            r#"{"status":"success"} more"#,
            "{\"data\":{\"result\":[",
        ] {
            assert!(told(text).is_err(), "{text}");
        }
    }

    #[test]
    fn labels_end() {
        let labels: Vec<String> = (0..300).map(|n| format!("\"l{n}\":\"x\"")).collect();
        let text = format!("{{\"data\":{{\"result\":[{{\"metric\":{{{}}}}}]}}}}", labels.join(","));
        assert!(told(&text).unwrap_err().contains("more than 256 labels"));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_break_it(bytes: Vec<u8>) {
            let _ = read_answer(&bytes);
        }
    }
}
