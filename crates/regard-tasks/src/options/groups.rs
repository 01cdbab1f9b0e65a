//! The options of a task as they are told to people: names, values, and what the template says of them.

use crate::options::template::Options;
use crate::options::template::entries;
use regard_data::{Error, Result};
use serde::Serialize;

/// An option, and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedOption {
    /// Its whole name, as `section.key`.
    pub name: String,
    /// Its value, as TOML; none where it has none.
    pub value: Option<String>,
    /// A value it could have, as TOML, where it has none.
    pub example: Option<String>,
}

/// Options that stand under one comment of the template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OptionGroup {
    /// The options, in the template's order.
    pub options: Vec<ListedOption>,
    /// What is said of them.
    pub comment: String,
}

impl OptionGroup {
    /// Whether a word stands in it, in small or capital letters.
    fn has(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        let names = self.options.iter().map(|option| &option.name);
        names.chain([&self.comment]).any(|text| text.to_lowercase().contains(&word))
    }
}

impl Options {
    /// The options in groups, each with the comment it stands under.
    ///
    /// ```
    /// use regard_tasks::options::Options;
    /// let options = Options::new("[model]\n# Width of the state.\nhidden = 64\n")?.set("hidden=8")?;
    /// let groups = options.groups();
    /// assert_eq!(groups[0].comment, "Width of the state.");
    /// assert_eq!(groups[0].options[0].value.as_deref(), Some("8"));
    /// # Ok::<(), regard_tasks::Error>(())
    /// ```
    pub fn groups(&self) -> Vec<OptionGroup> {
        let mut groups: Vec<OptionGroup> = Vec::new();
        let mut comment: Vec<&str> = Vec::new();
        for (line, entry) in entries(self.template()) {
            let Some(entry) = entry else {
                match line.strip_prefix('#') {
                    Some(text) => comment.push(text.trim()),
                    // What stood above a blank line or a section is about neither.
                    None => comment.clear(),
                }
                continue;
            };
            let value = self.get(&entry.name()).map(ToString::to_string);
            let example = value.is_none().then(|| entry.value.to_string());
            let option = ListedOption { name: entry.name(), value, example };
            match groups.last_mut().filter(|_| comment.is_empty()) {
                Some(group) => group.options.push(option),
                None => {
                    groups.push(OptionGroup { options: vec![option], comment: comment.join(" ") })
                }
            }
            comment.clear();
        }
        groups
    }

    /// The groups in which a word stands. Refuses a word that is in none, with the nearest option
    /// where one is near.
    ///
    /// ```
    /// use regard_tasks::tasks::task_named;
    /// let options = task_named("translate")?.options()?;
    /// assert!(options.groups_with("beam")?.len() < options.groups().len());
    /// let told = options.groups_with("hiden").unwrap_err().to_string();
    /// assert_eq!(told, "`hiden` is in no option's name or comment; the nearest is `model.hidden`");
    /// # Ok::<(), regard_tasks::Error>(())
    /// ```
    pub fn groups_with(&self, word: &str) -> Result<Vec<OptionGroup>> {
        let mut groups = self.groups();
        groups.retain(|group| group.has(word));
        if groups.is_empty() {
            let nearest = self.nearest(word);
            let nearest =
                nearest.map_or(String::new(), |name| format!("; the nearest is `{name}`"));
            let what = format!("`{word}` is in no option's name or comment{nearest}");
            return Err(Error::invalid(what));
        }
        Ok(groups)
    }
}
