//! The options of a task: what its template says, changed by a file and by single settings.
//!
//! A template is a TOML text in which every option stands under a comment. An option without a
//! value of its own is written as `# key = value`; that is how it is known.

use super::renamed::renamed;
use super::requirement::Requirement;
use regard_data::{Error, Result, remark, remarked};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use toml::{Table, Value};

/// The options of a task.
///
/// ```
/// use regard_tasks::options::Options;
/// let template = "[model]\n# Width of the state.\nhidden = 64\n# Neighbors on each side.\n# window = 2\n";
/// let options = Options::new(template)?.set("hidden=32")?.set("model.window=1")?;
/// assert_eq!(options.get("model.hidden").unwrap().as_integer(), Some(32));
/// let error = Options::new(template)?.set("model.hiden=1").unwrap_err().to_string();
/// assert_eq!(error, "there is no option `model.hiden`; the nearest is `model.hidden`");
/// # Ok::<(), regard_tasks::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    template: Arc<str>,
    /// The names of all options, as `section.key`, in the template's order.
    names: Arc<[String]>,
    table: Table,
    /// The values that options have if nobody says otherwise.
    usual: Arc<Table>,
    /// The options that somebody set.
    set: BTreeSet<String>,
    /// Those of them that a configuration sets and that have an effect in it.
    of_file: BTreeSet<String>,
    /// What options need of others to have an effect.
    needs: Arc<[Requirement]>,
}

/// The same options with the same values, whoever set them.
impl PartialEq for Options {
    fn eq(&self, other: &Self) -> bool {
        self.template == other.template && self.table == other.table
    }
}

/// One option's line in a template.
pub(crate) struct Entry<'a> {
    section: &'a str,
    key: &'a str,
    /// What the template says its value is, or could be.
    pub(crate) value: &'a str,
}

impl Entry<'_> {
    pub(crate) fn name(&self) -> String {
        if self.section.is_empty() {
            self.key.to_string()
        } else {
            format!("{}.{}", self.section, self.key)
        }
    }
}

/// The option that a line of a template is about.
fn entry<'a>(section: &'a str, line: &'a str) -> Option<Entry<'a>> {
    let (key, value) = line.strip_prefix("# ").unwrap_or(line).split_once(" = ")?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    is_key.then_some(Entry { section, key, value })
}

/// Every line of a template, with its section and the option it is about.
pub(crate) fn entries(template: &str) -> impl Iterator<Item = (&str, Option<Entry<'_>>)> {
    let mut section = "";
    template.lines().map(move |line| {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
        }
        (line, entry(section, line))
    })
}

impl Options {
    /// What a template says.
    pub fn new(template: &str) -> Result<Self> {
        let table: Table =
            template.parse().map_err(|e| Error::invalid(format!("the template: {e}")))?;
        let names = entries(template).filter_map(|(_, entry)| Some(entry?.name())).collect();
        Ok(Self {
            template: template.into(),
            names,
            usual: Arc::new(table.clone()),
            table,
            set: BTreeSet::new(),
            of_file: BTreeSet::new(),
            needs: Arc::from([]),
        })
    }

    /// With what its options need of others to have an effect. The values that they have now are the usual
    /// ones, which nobody set.
    pub fn with_requirements(self, needs: Vec<Requirement>) -> Self {
        let usual = Arc::new(self.table.clone());
        Self { needs: needs.into(), usual, ..self }.set_by_nobody()
    }

    /// With the values that it has, none of which counts as set by somebody: a run's own, whoever trained it.
    pub fn set_by_nobody(self) -> Self {
        Self { set: BTreeSet::new(), of_file: BTreeSet::new(), ..self }
    }

    /// What its options need of others.
    pub(crate) fn needs(&self) -> &[Requirement] {
        &self.needs
    }

    /// Whether somebody set an option, and to another value than the usual one.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.set.contains(name) && !is_same(self.get(name), value_in(&self.usual, name))
    }

    /// Whether a configuration sets an option, which has an effect there.
    pub(crate) fn is_of_file(&self, name: &str) -> bool {
        self.of_file.contains(name)
    }

    /// An option as if nobody had set it, with the value that it has: what it is used for here is more
    /// than its task knows.
    pub fn unset(&mut self, name: &str) {
        self.set.remove(name);
    }

    /// The names of all options, as `section.key`, in the template's order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its template.
    pub(crate) fn template(&self) -> &str {
        &self.template
    }

    /// Whether there is an option of this name, or of this key in some section.
    ///
    /// ```
    /// use regard_tasks::options::Options;
    /// let options = Options::new("[model]\n# Width of the state.\nhidden = 64\n")?;
    /// assert!(options.knows("hidden") && options.knows("model.hidden") && !options.knows("hid"));
    /// # Ok::<(), regard_tasks::Error>(())
    /// ```
    pub fn knows(&self, name: &str) -> bool {
        let is_it = |known: &String| known == name || known.rsplit('.').next() == Some(name);
        self.names().iter().any(is_it) || renamed(&self.names, name).next().is_some()
    }

    /// The option whose name is most like this one; none where that would be chance.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        let likeness = |known: &str| {
            let key = known.rsplit('.').next().unwrap_or(known);
            strsim::jaro_winkler(known, name).max(strsim::jaro_winkler(key, name))
        };
        // Below this a likeness is chance, and the hint would mislead.
        let like = self.names.iter().filter(|known| likeness(known) >= 0.85);
        like.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).cloned()
    }

    /// Changed by a TOML file, to whose folder its paths are relative. Refuses an option that is not
    /// known, with the nearest that is, and a path that would be there from the current folder alone.
    pub fn file(self, path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        self.changed(path, &text, folder)
    }

    /// As [`Options::file`], of a file that a run keeps. One that does not say `data.held_out_seed` is
    /// of a version that drew what is held out by `training.seed`, and means that; one that does not say
    /// `model.query_gain` is of a version that had none.
    pub(crate) fn file_of_run(self, path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
        // What it calls options is not its owner's doing.
        let mut options = remarked(|| self.text(path, &text)).0?;
        // A run of a version that had no such gain has no number for it.
        if options.knows("model.query_gain")
            && !text.lines().any(|line| line.starts_with("query_gain ="))
        {
            options = options.set("model.query_gain=false")?;
        }
        match options.get("training.seed") {
            // A run's options are written by us, each in a line of its own.
            Some(seed)
                if options.has_held_out_seed()
                    && !text.lines().any(|line| line.starts_with("held_out_seed =")) =>
            {
                let setting = format!("data.held_out_seed={seed}");
                options = options.set(&setting)?;
            }
            _ => {}
        }
        // A version that ignored some of them without a word trained it.
        Ok(options.set_by_nobody())
    }

    /// Whether a file says by which seed examples are held out, or there is nothing to say.
    pub(crate) fn says_held_out_seed(&self, path: &Path) -> Result<bool> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
        let said: Table = text.parse().map_err(|e| Error::file(path, format!("{e}")))?;
        let said = said.get("data").and_then(|data| data.get("held_out_seed"));
        Ok(said.is_some() || !self.has_held_out_seed())
    }

    /// Whether the template says by which seed examples are held out. Where it leaves that open, there
    /// was never another meaning.
    fn has_held_out_seed(&self) -> bool {
        Self::new(&self.template).is_ok_and(|plain| plain.get("data.held_out_seed").is_some())
    }

    /// Changed by a TOML text that was read from a path, or stands for one; its paths stay as they are.
    /// Refuses an option that is not known, with the nearest that is.
    ///
    /// ```
    /// use regard_tasks::options::Options;
    /// let options = Options::new("[model]\nhidden = 64\n")?;
    /// let error = options.text("a.toml".as_ref(), "[model]\nhiden = 1\n").unwrap_err();
    /// assert!(error.to_string().starts_with("a.toml: there is no option `model.hiden`"));
    /// # Ok::<(), regard_tasks::Error>(())
    /// ```
    pub fn text(self, path: &Path, text: &str) -> Result<Self> {
        self.changed(path, text, None)
    }

    /// Changed by a TOML text whose paths are relative to a folder, where one is given.
    fn changed(mut self, path: &Path, text: &str, folder: Option<&Path>) -> Result<Self> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |s| 1 + text[..s.start].matches('\n').count());
            Error::line(path, line, error.message())
        })?;
        let mut given = Vec::new();
        flatten("", table, &mut given);
        let mut set = BTreeSet::new();
        for (called, mut value) in given {
            let name = self.resolve(&called).map_err(|e| Error::file(path, e))?;
            if !set.insert(name.clone()) {
                return Err(Error::file(
                    path,
                    format!("`{name}` is set twice, once as `{called}`"),
                ));
            }
            if let Some(folder) = folder.filter(|_| is_path(&name)) {
                each_text(&mut value, |written| relative_to(folder, &name, written))
                    .map_err(|e| Error::file(path, e))?;
            }
            self.put(&name, value)?;
        }
        let idle = self.without_effect();
        let has_effect = |name: &String| idle.iter().all(|(idle, _)| idle != name);
        self.of_file = set.into_iter().filter(has_effect).collect();
        Ok(self)
    }

    /// Changed by one setting, `key=value` or `section.key=value`. The value is TOML; what is not
    /// is taken as text.
    pub fn set(mut self, setting: &str) -> Result<Self> {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| Error::invalid(format!("`{setting}` is not of the form key=value")))?;
        let value = value.trim();
        let is_whole = !value.is_empty() && value.chars().all(|c| c.is_ascii_digit());
        if is_whole && value.parse::<i64>().is_err() {
            let (name, most) = (self.resolve(name.trim())?, i64::MAX);
            let what = format!("`{name}` cannot be {value}; whole numbers go up to {most}");
            return Err(Error::invalid(what));
        }
        self.put(name.trim(), parse(value))?;
        Ok(self)
    }

    /// An option's value, by its whole name; none where it has none.
    pub fn get(&self, name: &str) -> Option<&Value> {
        value_in(&self.table, name)
    }

    /// With its paths as whole paths, so that they mean the same from any folder.
    pub(crate) fn absolute_paths(mut self) -> Result<Self> {
        let names = self.names.clone();
        for name in names.iter().filter(|name| is_path(name)) {
            let Some((section, key)) = name.split_once('.') else { continue };
            let section = self.table.get_mut(section).and_then(|section| section.as_table_mut());
            let Some(value) = section.and_then(|section| section.get_mut(key)) else { continue };
            each_text(value, |path| {
                let whole = std::path::absolute(&*path).map_err(|e| Error::file(&*path, e))?;
                *path = whole.display().to_string();
                Ok(())
            })?;
        }
        Ok(self)
    }

    /// The whole name of an option given by its whole name, or by its key alone where only one
    /// section has it; of what it was once called, too, with a remark.
    fn resolve(&self, name: &str) -> Result<String> {
        let names = &self.names;
        if names.iter().any(|known| known == name) {
            return Ok(name.into());
        }
        let same = |known: &&String| known.rsplit('.').next() == Some(name);
        let mut matching: Vec<&String> = names.iter().filter(same).collect();
        if matching.is_empty() {
            matching = renamed(names, name).collect();
            if let [one] = matching[..] {
                remark(format!("`{name}` is called `{one}` now"));
            }
        }
        match matching[..] {
            [one] => Ok(one.clone()),
            [] => {
                let nearest = self.nearest(name);
                let nearest = nearest.map_or(String::new(), |n| format!("; the nearest is `{n}`"));
                Err(Error::invalid(format!("there is no option `{name}`{nearest}")))
            }
            _ => {
                let all: Vec<String> = matching.iter().map(|n| format!("`{n}`")).collect();
                Err(Error::invalid(format!("`{name}` may mean {}", all.join(" or "))))
            }
        }
    }

    fn put(&mut self, name: &str, value: Value) -> Result<()> {
        let name = self.resolve(name)?;
        self.set.insert(name.clone());
        self.of_file.remove(&name);
        match name.split_once('.') {
            None => self.table.insert(name, value),
            Some((section, key)) => {
                let section = self.table.entry(section).or_insert_with(|| Table::new().into());
                section.as_table_mut().and_then(|table| table.insert(key.into(), value))
            }
        };
        Ok(())
    }

    /// As a task's own struct; an error names the option.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(Value::Table(self.table.clone())).map_err(|error| {
            let text = error.to_string();
            let mut lines = text.lines().filter(|line| !line.trim().is_empty());
            let what = lines.next().unwrap_or_default();
            match self.culprit::<T>() {
                Some(name) => {
                    let value = self.get(&name).map(ToString::to_string).unwrap_or_default();
                    Error::invalid(in_words(&name, &value, what))
                }
                None => Error::invalid(format!("the options: {text}").replace('\n', " ")),
            }
        })
    }

    /// The option without whose value the others could be read: where sections are read in one go,
    /// the error does not name it.
    fn culprit<T: DeserializeOwned>(&self) -> Option<String> {
        let plain = Self::new(&self.template).ok()?;
        let culprit = self.names.iter().find(|name| {
            let mut other = self.clone();
            let Some(table) = other.section_mut(name) else { return false };
            let key = name.rsplit('.').next().unwrap_or(name);
            match plain.get(name) {
                _ if self.get(name) == plain.get(name) => return false,
                Some(value) => table.insert(key.into(), value.clone()),
                None => table.remove(key),
            };
            T::deserialize(Value::Table(other.table)).is_ok()
        });
        culprit.cloned()
    }

    /// The table that an option stands in.
    fn section_mut(&mut self, name: &str) -> Option<&mut Table> {
        match name.split_once('.') {
            None => Some(&mut self.table),
            Some((section, _)) => self.table.get_mut(section)?.as_table_mut(),
        }
    }

    /// An error of the library with the options that its words are about, as far as there are any:
    /// a layer does not know what its width is called here.
    pub fn explain(&self, error: Error) -> Error {
        const WORDS: [(&str, &str); 16] = [
            ("heads", "heads"),
            ("key width", "key_width"),
            ("value width", "value_width"),
            ("a window", "window"),
            ("width", "hidden"),
            ("hidden size", "hidden"),
            ("feed-forward", "feed_forward"),
            ("an additive score", "score_hidden"),
            ("embedding", "embedding"),
            ("dropout", "dropout"),
            ("layers", "layers"),
            ("kernel", "kernel_size"),
            ("patch", "patch_size"),
            ("channels", "channels"),
            ("a vocabulary of", "vocabulary_size"),
            ("mels", "mels"),
        ];
        let said = match &error {
            Error::Library(error) => error.to_string(),
            Error::Invalid(said) if !said.contains('`') => said.clone(),
            _ => return error,
        };
        let names = &self.names;
        let about = WORDS.iter().filter(|(word, _)| said.contains(word));
        let about = about.flat_map(|(_, key)| {
            names.iter().filter(move |name| name.rsplit('.').next() == Some(key))
        });
        let mut named: Vec<String> = Vec::new();
        for name in about.filter_map(|name| Some(format!("`{name}` = {}", self.get(name)?))) {
            if !named.contains(&name) {
                named.push(name);
            }
        }
        match named.is_empty() {
            true => error,
            false => Error::invalid(format!("{said} ({})", named.join(", "))),
        }
    }
}

/// What a task's options are read into.
pub(crate) trait Checked: DeserializeOwned {
    /// Refuses what cannot be meant, by name.
    fn check(&self) -> Result<()>;

    /// A task's options, as far as they can be meant and have an effect.
    fn of(options: &Options) -> Result<Self> {
        let config: Self = options.read()?;
        config.check()?;
        options.check_requirements()?;
        Ok(config)
    }
}

impl std::fmt::Display for Options {
    /// The template, comments and all, with the values as they are now.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (line, entry) in entries(&self.template) {
            let now = entry.as_ref().and_then(|e| Some((e, self.get(&e.name())?)));
            match now {
                Some((entry, value)) => writeln!(f, "{} = {value}", entry.key)?,
                None => writeln!(f, "{line}")?,
            }
        }
        Ok(())
    }
}

/// The value of a whole name in a table.
fn value_in<'a>(table: &'a Table, name: &str) -> Option<&'a Value> {
    name.split('.').try_fold(None, |at: Option<&Value>, key| match at {
        None => table.get(key).map(Some),
        Some(value) => value.get(key).map(Some),
    })?
}

/// Whether two values mean the same: 0 and 0.0 do.
fn is_same(one: Option<&Value>, other: Option<&Value>) -> bool {
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    match (one, other) {
        (Some(one), Some(other)) => {
            one == other || number(one).is_some() && number(one) == number(other)
        }
        (None, None) => true,
        _ => false,
    }
}

/// Whether an option names files: of `[data]` those that are called after a part (`train`,
/// `test_labels`, …) and `folder`, and what else training begins with.
fn is_path(name: &str) -> bool {
    const OTHERS: [&str; 4] =
        ["text.tokenizer_file", "text.vectors", "text.target_vectors", "training.init_from"];
    let part = |key: &str| key.split_once('_').map_or(key.to_string(), |(part, _)| part.into());
    let of_data = name.strip_prefix("data.").map(part);
    let is_part = |part: String| ["train", "validation", "test", "folder"].contains(&&part[..]);
    OTHERS.contains(&name) || of_data.is_some_and(is_part)
}

/// Does something to a text, or to each of a list of texts.
fn each_text(value: &mut Value, mut change: impl FnMut(&mut String) -> Result<()>) -> Result<()> {
    let all = match value {
        Value::Array(all) => all.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    all.iter_mut().try_for_each(|one| match one {
        Value::String(text) => change(text),
        _ => Ok(()),
    })
}

/// Makes a path that a configuration in a folder has written one from the current folder.
fn relative_to(folder: &Path, name: &str, written: &mut String) -> Result<()> {
    let path = folder.join(&*written);
    if !path.exists() && Path::new(&*written).exists() {
        return Err(Error::invalid(format!(
            "`{name}`: there is no {}; paths in a configuration are relative to its folder, and \
             `{written}` is there from the current one alone",
            path.display()
        )));
    }
    *written = path.display().to_string();
    Ok(())
}

/// Why an option cannot have its value, in words for whoever writes options.
fn in_words(name: &str, value: &str, what: &str) -> String {
    const EXPECTED: [(&str, &str); 8] = [
        ("expected usize", "it is a whole number from 0 on"),
        ("expected u64", "it is a whole number from 0 on"),
        ("expected u32", "it is a whole number from 0 on"),
        ("expected f64", "it is a number"),
        ("expected a boolean", "it is true or false"),
        ("expected a string", "it is a text"),
        ("expected a tuple of size 2", "it is a list of two, as [0.9, 0.98]"),
        ("expected a sequence", "it is a list, as [\"a\", \"b\"]"),
    ];
    if let Some((_, expected)) = EXPECTED.iter().find(|(theirs, _)| what.contains(theirs)) {
        return format!("`{name}` cannot be {value}; {expected}");
    }
    let one_of = what.split_once("expected one of ").or_else(|| what.split_once("expected "));
    match one_of.filter(|_| what.starts_with("unknown variant")) {
        Some((_, known)) => format!("`{name}` cannot be {value}; there are {known}"),
        None => format!("`{name}`: {what}"),
    }
}

/// A value written in TOML, or else a text.
fn parse(value: &str) -> Value {
    let table = format!("value = {value}").parse::<Table>();
    let value_of = |mut table: Table| table.remove("value");
    table.ok().and_then(value_of).unwrap_or_else(|| Value::String(value.into()))
}

/// All values of a table with their whole names.
fn flatten(before: &str, table: Table, into: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let name = if before.is_empty() { key } else { format!("{before}.{key}") };
        match value {
            Value::Table(table) if before.is_empty() => flatten(&name, table, into),
            value => into.push((name, value)),
        }
    }
}
