//! Variants of a model, from lists of values.

use crate::task::Variant;
use regard_data::{Error, Result};

/// All combinations of settings, `key=a,b,c` each; of a key that comes twice, all its values. Commas
/// within brackets and quotes belong to a value.
///
/// ```
/// use regard_tasks::compare::variants;
/// let names = |over: &[&str]| -> Vec<String> {
///     let over: Vec<String> = over.iter().map(|o| o.to_string()).collect();
///     variants(&over).unwrap().into_iter().map(|v| v.name).collect()
/// };
/// let all = ["dot, 1", "dot, 2", "additive, 1", "additive, 2"];
/// assert_eq!(names(&["score=dot,additive", "layers=1,2"]), all);
/// assert_eq!(names(&["layers=1,2", "layers=3"]), ["1", "2", "3"]);
/// assert_eq!(names(&["betas=[0.9, 0.98],[0.9, 0.999]"]), ["[0.9, 0.98]", "[0.9, 0.999]"]);
/// ```
pub fn variants(over: &[String]) -> Result<Vec<Variant>> {
    let mut choices: Vec<(&str, Vec<&str>)> = Vec::new();
    for choice in over {
        let wrong = || Error::invalid(format!("`{choice}` is not of the form key=a,b,c"));
        let (key, values) = choice.split_once('=').ok_or_else(wrong)?;
        let values = list(values).ok_or_else(wrong)?;
        match choices.iter_mut().find(|(known, _)| *known == key.trim()) {
            Some((_, known)) => known.extend(values),
            None => choices.push((key.trim(), values)),
        }
    }
    let mut all = vec![Variant { name: String::new(), settings: Vec::new() }];
    for (key, values) in choices {
        let with = |variant: &Variant, value: &str| {
            let parts = [&variant.name[..], value];
            let name: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let settings = [&variant.settings[..], &[format!("{key}={value}")]].concat();
            Variant { name: name.join(", "), settings }
        };
        all = all.iter().flat_map(|v| values.iter().map(|value| with(v, value))).collect();
    }
    Ok(all)
}

/// What stands between commas that are not within brackets or quotes; none where a bracket or a
/// quote has no end, or a value is empty.
fn list(text: &str) -> Option<Vec<&str>> {
    let (mut depth, mut quote, mut start) = (0usize, None, 0);
    let mut all = Vec::new();
    for (at, c) in text.char_indices() {
        match (c, quote) {
            (c, Some(end)) if c == end => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth = depth.checked_sub(1)?,
            (',', None) if depth == 0 => {
                all.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(text[start..].trim());
    let whole = depth == 0 && quote.is_none() && all.iter().all(|value| !value.is_empty());
    whole.then_some(all)
}
