//! What `doctor` finds on a recorded host: the id and the weight of each finding, from its JSON document.
//!
//! Values may agree with the raw files and the conclusions be false all the same, so the checker shows these too, for
//! people to read: a rule that speaks on a machine where it has no business is seen here first. The table of all rules
//! on all kept machines is `fixtures/golden/findings.md`.

use serde_json::Value;

/// `risk: governor, epp; note: c1-demotion`, in the order of the report; `nothing` where no rule speaks.
pub(crate) fn line(json: &Value) -> String {
    let mut by_weight: Vec<(&str, Vec<&str>)> = Vec::new();
    for ruling in json["rulings"].as_array().into_iter().flatten().filter(|ruling| ruling["answer"] == "yes") {
        let word = |key: &str| ruling[key].as_str().unwrap_or("?");
        let (weight, id) = (word("weight"), word("rule").trim_start_matches("rule."));
        match by_weight.iter_mut().find(|(w, _)| *w == weight) {
            Some((_, ids)) => ids.push(id),
            None => by_weight.push((weight, vec![id])),
        }
    }
    if by_weight.is_empty() {
        return "nothing".into();
    }
    by_weight.iter().map(|(weight, ids)| format!("{weight}: {}", ids.join(", "))).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn findings_by_weight_and_no_other_answer() {
        let ruling =
            |rule: &str, answer: &str, weight: &str| json!({ "rule": rule, "answer": answer, "weight": weight });
        let json = json!({ "rulings": [ruling("rule.a", "yes", "risk"), ruling("rule.b", "yes", "risk"),
            ruling("rule.c", "yes", "note"), ruling("rule.d", "no", "risk")] });
        assert_eq!(line(&json), "risk: a, b; note: c");
        assert_eq!(line(&json!({ "rulings": [] })), "nothing");
    }
}
