//! What two predictions differ in.

use regard_tasks::task::Prediction;
use serde_json::{Value, json};

/// More words than this are compared as a whole: the comparison takes the square of them.
const MOST_WORDS: usize = 2000;

/// What changed from one prediction to another: words that are the same, removed and added, and
/// numbers before and after.
pub(crate) fn difference(before: &Prediction, after: &Prediction) -> Value {
    let words = words(&tokens(before), &tokens(after));
    json!({ "text": words, "numbers": numbers(before, after) })
}

/// The tokens of an output: as the model wrote them, or its words.
fn tokens(prediction: &Prediction) -> Vec<String> {
    let own = prediction.details.get("tokens").and_then(Value::as_array);
    let own = own.map(|all| all.iter().filter_map(Value::as_str).map(str::to_string).collect());
    own.unwrap_or_else(|| prediction.output.split_whitespace().map(str::to_string).collect())
}

/// The longest common subsequence, and what stands around it.
fn words(before: &[String], after: &[String]) -> Vec<Value> {
    let one = |kind: &str, text: &String| json!({ "kind": kind, "text": text });
    if before.len() > MOST_WORDS || after.len() > MOST_WORDS {
        let (removed, added) = (before.join(" "), after.join(" "));
        return vec![one("removed", &removed), one("added", &added)];
    }
    let (n, m) = (before.len(), after.len());
    // common[i][j]: of before[i..] and after[j..]
    let mut common = vec![vec![0u16; m + 1]; n + 1];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            common[i][j] = match before[i] == after[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut all) = (0, 0, Vec::new());
    while i < n || j < m {
        if i < n && j < m && before[i] == after[j] {
            all.push(one("same", &before[i]));
            (i, j) = (i + 1, j + 1);
        } else if j >= m || (i < n && common[i + 1][j] >= common[i][j + 1]) {
            all.push(one("removed", &before[i]));
            i += 1;
        } else {
            all.push(one("added", &after[j]));
            j += 1;
        }
    }
    all
}

/// Numbers by name that both have, as they were and as they are.
fn numbers(before: &Prediction, after: &Prediction) -> Vec<Value> {
    let of = |prediction: &Prediction| {
        let mut all: Vec<(String, f64)> = Vec::new();
        if let Ok(output) = prediction.output.trim().parse::<f64>() {
            all.push(("output".into(), output));
        }
        if let Some(each) = prediction.details.get("probabilities").and_then(Value::as_object) {
            let each = each.iter().filter_map(|(name, p)| Some((name.clone(), p.as_f64()?)));
            all.extend(each);
        }
        for name in ["score", "log_probability", "probability"] {
            let number = prediction.details.get(name).and_then(Value::as_f64);
            all.extend(number.map(|number| (name.to_string(), number)));
        }
        all
    };
    let after = of(after);
    let both = |(name, before): (String, f64)| {
        let after = after.iter().find(|(other, _)| *other == name).map(|(_, number)| *number)?;
        Some(json!({ "name": name, "before": before, "after": after }))
    };
    of(before).into_iter().filter_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(output: &str, details: Value) -> Prediction {
        Prediction { input: String::new(), output: output.into(), details }
    }

    fn told(before: &str, after: &str) -> String {
        let value = difference(&prediction(before, Value::Null), &prediction(after, Value::Null));
        let mark = |one: &Value| {
            let sign = match one["kind"].as_str() {
                Some("removed") => "-",
                Some("added") => "+",
                _ => "",
            };
            format!("{sign}{}", one["text"].as_str().unwrap_or_default())
        };
        let all = value["text"].as_array().cloned().unwrap_or_default();
        all.iter().map(mark).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_stayed_is_kept_in_order_and_the_rest_is_marked() {
        assert_eq!(told("a b c", "a x c"), "a -b +x c");
        assert_eq!(told("a b", "a b"), "a b");
        assert_eq!(told("", "a"), "+a");
        assert_eq!(told("a", ""), "-a");
    }

    #[test]
    fn probabilities_are_told_before_and_after() {
        let of = |p: f64| prediction("x", json!({ "probabilities": { "pos": p } }));
        let numbers = &difference(&of(0.9), &of(0.2))["numbers"];
        assert_eq!(*numbers, json!([{ "name": "pos", "before": 0.9, "after": 0.2 }]));
    }
}
