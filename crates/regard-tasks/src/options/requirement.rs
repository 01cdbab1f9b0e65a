//! What an option needs of others to have an effect: an option that somebody set, and that would change
//! nothing, is refused with the others and the way out.

use super::template::Options;
use regard_data::{Error, Result, remark};
use std::collections::BTreeSet;
use toml::Value;

/// What an option needs of others to have an effect.
///
/// ```
/// use regard_tasks::options::{Condition, Options, Requirement};
/// let template = "[model]\n# Which.\nencoder = \"gru\"\n# Layers.\nlayers = 1\n";
/// let need = Requirement::new("model.layers", &[Condition::Is("model.encoder", &["gru", "lstm"])]);
/// let options = Options::new(template)?.with_requirements(vec![need]);
/// options.clone().set("layers=2")?.check_requirements()?;
/// let told = options.set("layers=2")?.set("encoder=none")?.check_requirements().unwrap_err();
/// assert_eq!(
///     told.to_string(),
///     "`model.layers=2` has no effect with `model.encoder=none`; it needs `model.encoder` to be gru or lstm"
/// );
/// # Ok::<(), regard_tasks::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Requirement {
    option: &'static str,
    /// Any of these, each with all of its conditions.
    ways: Vec<Vec<Condition>>,
    /// Why there is no way.
    why: &'static str,
}

/// What another option has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// One of these values.
    Is(&'static str, &'static [&'static str]),
    /// Another value than this.
    IsNot(&'static str, &'static str),
    /// Given.
    Given(&'static str),
    /// Not given.
    Absent(&'static str),
    /// A name, or a list of names, with one of these ends, before an end of `.gz`.
    Ends(&'static str, &'static [&'static str]),
}

impl Requirement {
    /// An option that has an effect where all conditions hold.
    pub fn new(option: &'static str, all: &[Condition]) -> Self {
        Self { option, ways: vec![all.to_vec()], why: "" }
    }

    /// The same where any of several lists of conditions holds.
    pub fn any(option: &'static str, ways: &[Vec<Condition>]) -> Self {
        Self { option, ways: ways.to_vec(), why: "" }
    }

    /// An option that every task has, and that has no effect in one of them.
    pub fn never(option: &'static str, why: &'static str) -> Self {
        Self { option, ways: Vec::new(), why }
    }

    /// Whether it is about this option.
    pub(crate) fn is_of(&self, option: &str) -> bool {
        self.option == option
    }

    /// Several options with the same needs.
    pub(crate) fn each(options: &[&'static str], ways: &[Vec<Condition>]) -> Vec<Self> {
        options.iter().map(|option| Self::any(option, ways)).collect()
    }

    /// The ways that these options have: a condition on an option that they have not is met where nothing
    /// is to be given, and cannot be met otherwise.
    fn ways_of(&self, options: &Options) -> Vec<Vec<Condition>> {
        let knows = |condition: &Condition| options.names().iter().any(|n| n == condition.option());
        let nothing = |condition: &Condition| matches!(condition, Condition::Absent(_));
        let ways = self.ways.iter().filter(|way| way.iter().all(|c| nothing(c) || knows(c)));
        ways.map(|way| way.iter().copied().filter(knows).collect()).collect()
    }

    /// What is missing for the option to have an effect; none where nothing is.
    fn missing(&self, options: &Options) -> Option<String> {
        if !self.why.is_empty() {
            return Some(format!("has no effect in this task: {}", self.why));
        }
        let ways = self.ways_of(options);
        if ways.is_empty() || ways.iter().any(|way| way.iter().all(|c| c.holds(options))) {
            return None;
        }
        let mut now: Vec<String> = Vec::new();
        for condition in ways.iter().flatten().filter(|condition| !condition.holds(options)) {
            let state = condition.state(options);
            if !now.contains(&state) {
                now.push(state);
            }
        }
        let way = |way: &Vec<Condition>| listed(way.iter().map(Condition::wanted), "and");
        let mut wanted: Vec<String> = Vec::new();
        for way in ways.iter().map(way) {
            if !wanted.contains(&way) {
                wanted.push(way);
            }
        }
        let now = listed(now, "and");
        Some(format!("has no effect {now}; it needs {}", wanted.join(", or ")))
    }
}

impl Condition {
    fn option(&self) -> &'static str {
        match *self {
            Self::Is(option, _)
            | Self::IsNot(option, _)
            | Self::Given(option)
            | Self::Absent(option)
            | Self::Ends(option, _) => option,
        }
    }

    fn holds(&self, options: &Options) -> bool {
        let value = options.get(self.option());
        match *self {
            Self::Is(_, values) => value.is_some_and(|v| values.contains(&&plain(v)[..])),
            Self::IsNot(_, other) => value.is_none_or(|v| plain(v) != other),
            Self::Given(_) => value.is_some(),
            Self::Absent(_) => value.is_none(),
            Self::Ends(_, ends) => value.is_some_and(|value| {
                let name = plain(value).to_lowercase();
                let name = name.strip_suffix(".gz").unwrap_or(&name);
                ends.iter().any(|end| name.ends_with(end))
            }),
        }
    }

    /// How it is now.
    fn state(&self, options: &Options) -> String {
        let option = self.option();
        match options.get(option) {
            Some(value) => format!("with `{option}={}`", plain(value)),
            None => format!("without `{option}`"),
        }
    }

    /// How it would have to be.
    fn wanted(&self) -> String {
        match *self {
            Self::Is(option, values) => {
                format!("`{option}` to be {}", listed(values.iter().map(ToString::to_string), "or"))
            }
            Self::IsNot(option, value) => format!("`{option}` to be other than {value}"),
            Self::Given(option) => format!("`{option}`"),
            Self::Absent(option) => format!("no `{option}`"),
            Self::Ends(option, ends) => {
                let ends = listed(ends.iter().map(ToString::to_string), "or");
                format!("`{option}` to end with {ends}")
            }
        }
    }
}

/// A value as it is typed.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// "a", "a and b", "a, b and c".
fn listed(all: impl IntoIterator<Item = String>, and: &str) -> String {
    let mut all: Vec<String> = all.into_iter().collect();
    match all.pop() {
        Some(last) if !all.is_empty() => format!("{} {and} {last}", all.join(", ")),
        last => last.unwrap_or_default(),
    }
}

impl Options {
    /// The options set by somebody to another value than is usual that have no effect, each with what is
    /// missing.
    pub(crate) fn without_effect(&self) -> Vec<(&'static str, String)> {
        let set = |need: &&Requirement| self.is_set(need.option);
        let missing = |need: &Requirement| Some((need.option, need.missing(self)?));
        self.needs().iter().filter(set).filter_map(missing).collect()
    }

    /// Refuses an option that somebody set and that would have no effect, with the others that it needs.
    /// One that has an effect in a configuration and none with the settings beside it is said.
    pub fn check_requirements(&self) -> Result<()> {
        for (option, missing) in self.without_effect() {
            let value = self.get(option).map(plain).unwrap_or_default();
            if !self.is_of_file(option) {
                return Err(Error::invalid(format!("`{option}={value}` {missing}")));
            }
            remark(format!("`{option}={value}` of the configuration {missing}"));
        }
        Ok(())
    }

    /// Several variants of these options, as they are compared: what somebody set for several of them is
    /// refused only where it has no effect in any, and said where it has none in some.
    pub(crate) fn check_variants(variants: &mut [Self]) -> Vec<String> {
        let idle: Vec<BTreeSet<&str>> = variants
            .iter()
            .map(|one| one.without_effect().into_iter().map(|(option, _)| option).collect())
            .collect();
        let all: BTreeSet<&str> = idle.iter().flatten().copied().collect();
        let mut remarks = Vec::new();
        for option in all {
            let set = variants.iter().filter(|one| one.is_set(option)).count();
            let without = idle.iter().filter(|idle| idle.contains(option)).count();
            if without < set {
                variants
                    .iter_mut()
                    .zip(&idle)
                    .filter(|(_, idle)| idle.contains(option))
                    .for_each(|(one, _)| one.unset(option));
                let count = variants.len();
                remarks.push(format!("`{option}` has no effect in {without} of {count} variants"));
            }
        }
        remarks
    }
}
