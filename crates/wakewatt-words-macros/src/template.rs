//! Which arguments does a template ask for?
//!
//! The syntax is that of `std::fmt`: `{}` the next, `{2}` by place, `{name}` by name, `{…:.1}` with a format; `{{` is a brace.
//! A format that names an argument of its own (`{:width$}`) is left to English: no sentence for people needs one.

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// As it stands, braces doubled.
    Text(String),
    /// An argument, and how it is formatted (with the colon, or nothing).
    Place(Which, String),
}

/// Which argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Which {
    /// By place among those behind the template; `{}` counts on.
    At(usize),
    /// By name.
    Named(String),
}

/// A template taken apart.
pub(crate) fn parts(template: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut text, mut next) = (Vec::new(), String::new(), 0);
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' if chars.peek() == Some(&c) => {
                chars.next();
                text.extend([c, c]);
            }
            '{' => {
                let inside: String = chars.by_ref().take_while(|c| *c != '}').collect();
                let (which, spec) = match inside.split_once(':') {
                    Some((which, spec)) => (which.trim(), format!(":{spec}")),
                    None => (inside.trim(), String::new()),
                };
                let which = if which.is_empty() {
                    next += 1;
                    Which::At(next - 1)
                } else if let Ok(at) = which.parse() {
                    Which::At(at)
                } else {
                    Which::Named(which.to_string())
                };
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(Part::Place(which, spec));
            }
            '}' => return Err("a } that nothing opens".into()),
            c => text.push(c),
        }
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// How the English formats each argument.
pub(crate) fn specs(parts: &[Part]) -> Vec<(Which, String)> {
    let places = parts.iter().filter_map(|part| match part {
        Part::Place(which, spec) => Some((which.clone(), spec.clone())),
        Part::Text(_) => None,
    });
    places.collect()
}

/// A translation with every argument by a name, and the names it uses. Where it does not say how, an argument is formatted as in English.
pub(crate) fn by_name(
    parts: &[Part],
    english: &[(Which, String)],
    n_arguments: usize,
) -> Result<(String, Vec<String>), String> {
    let (mut text, mut used) = (String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(words) => text.push_str(words),
            Part::Place(which, spec) => {
                let Some((_, own)) = english.iter().find(|(known, _)| known == which) else {
                    return Err(format!("the English has no argument {which:?}"));
                };
                let name = match which {
                    Which::At(at) if *at < n_arguments => format!("a{at}_"),
                    Which::At(at) => return Err(format!("there is no argument {at}")),
                    Which::Named(name) => name.clone(),
                };
                let spec = if spec.is_empty() { own } else { spec };
                text.push_str(&format!("{{{name}{spec}}}"));
                used.push(name);
            }
        }
    }
    Ok((text, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_translation_may_turn_the_order_and_leave_a_plural_out() {
        let english = specs(&parts("{n:.1} CPU{} of {cpus}").unwrap());
        let (text, used) = by_name(&parts("{cpus} 中的 {n} 个 CPU").unwrap(), &english, 1).unwrap();
        assert_eq!((&*text, used), ("{cpus} 中的 {n:.1} 个 CPU", vec!["cpus".to_string(), "n".into()]));
        let english = specs(&parts("{} of {}").unwrap());
        assert_eq!(by_name(&parts("{1}/{0}").unwrap(), &english, 2).unwrap().0, "{a1_}/{a0_}");
    }

    #[test]
    fn an_argument_that_the_english_lacks_is_refused() {
        let english = specs(&parts("{n} CPUs").unwrap());
        assert!(by_name(&parts("{m}").unwrap(), &english, 0).is_err());
        assert!(parts("a } b").is_err());
        assert_eq!(parts("{{x}}").unwrap(), vec![Part::Text("{{x}}".into())]);
    }
}
