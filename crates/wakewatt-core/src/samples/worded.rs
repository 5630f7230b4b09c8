//! Reasons are types in the program and sentences in documents: this is the door between the two.
//!
//! Documents have always said reasons as plain text, and people read them there. So a reason writes itself as its sentence
//! (`Display`) and is read back by `read`, which knows the sentences that something decides on and keeps every other as
//! it stands. Nothing else in the program looks at the wording. What people see may be another language; documents are English.

/// Makes a type with `Display` and `read(&str) -> Self` a plain string in documents and in their schema.
macro_rules! worded {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&$crate::samples::worded::in_english(self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer).map(|text| <$type>::read(&text))
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                String::schema_name()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}

pub(crate) use worded;

/// As documents say it, whatever the language in force: they are read back by these words.
pub(crate) fn in_english(reason: &impl std::fmt::Display) -> String {
    wakewatt_words::within(wakewatt_words::Language::English, || reason.to_string())
}

/// What stands between two fixed parts of a sentence.
pub(crate) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.strip_suffix(after)
}

#[cfg(test)]
mod tests {
    use crate::samples::broken_rule::BrokenRule;
    use crate::samples::rejection::Rejection;
    use wakewatt_words::{Language, within};

    #[test]
    fn documents_are_english_and_read_whatever_the_language_in_force() {
        let busy = Rejection::Busy { percent: 40 };
        let (shown, written) = within(Language::Chinese, || (busy.to_string(), serde_json::to_string(&busy).unwrap()));
        assert_eq!(shown, "其他进程使 CPU 有 40 % 的时间在忙，CPU 几乎没有睡眠");
        assert_eq!(written, "\"other processes kept the CPUs 40 % busy, so they hardly slept\"");
        assert_eq!(within(Language::Chinese, || serde_json::from_str::<Rejection>(&written).unwrap()), busy);
        let silent =
            within(Language::Chinese, || BrokenRule::read("the meter (ipmi) was silent for 1.5 % of the window"));
        assert_eq!(silent, BrokenRule::MeterSilent { meter: "ipmi".into(), permille: 15 });
    }
}
