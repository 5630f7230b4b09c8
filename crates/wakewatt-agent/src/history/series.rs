//! A series' name taken apart: which metric it is of, and its labels.

/// A sample's name and its labels, as the texts of Prometheus write them in one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Series {
    /// `wakewatt_cpuidle_time_seconds_total`.
    pub name: String,
    labels: Vec<(String, String)>,
}

impl Series {
    /// What is no name of ours has no labels.
    pub(crate) fn parse(text: &str) -> Series {
        let (name, labels) = text.split_once('{').unwrap_or((text, ""));
        let pair = |pair: &str| {
            let (label, quoted) = pair.split_once("=\"")?;
            Some((label.to_string(), unescaped(quoted.strip_suffix('"')?)))
        };
        let labels = pairs(labels.strip_suffix('}').unwrap_or(labels)).filter_map(pair).collect();
        Series { name: name.into(), labels }
    }

    /// A label's value.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }

    /// A label that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.label(name)?.parse().ok()
    }

    /// All of them.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(label, value)| (label.as_str(), value.as_str()))
    }
}

/// The `name="value"` of a series; a comma inside quotes belongs to the value.
pub(crate) fn pairs(labels: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    labels.split(move |c| {
        let is_end = c == ',' && !is_quoted;
        if c == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })
}

/// A label's value as it was before the texts wrote it; a line break becomes a blank.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => out.push(' '),
                other => out.extend(other),
            },
            (letter, false) => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_apart_as_it_was_put_together() {
        let labels = vec![("state", "C1,\"x\\n\"".into()), ("index", "3".into())];
        let series = Series::parse(&crate::format::series_name("m_total", &labels));
        assert_eq!((series.name.as_str(), series.label("state")), ("m_total", Some("C1,\"x\\n\"")));
        assert_eq!((series.number("index"), series.number("state"), series.labels().count()), (Some(3), None, 2));
        for odd in ["", "{", "a{", "a{}", "a{b}", "a{b=\"}", "a{b=\"\\", "}{"] {
            assert_eq!(Series::parse(odd).label("b").unwrap_or_default(), "", "{odd}");
        }
    }
}
