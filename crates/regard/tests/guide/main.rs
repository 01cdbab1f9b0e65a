//! The guide's two languages say the same, and what they show is there. That its commands print what
//! it quotes is seen to by `docs/guide/check.py`, which `.ci/run` calls.

#![allow(clippy::unwrap_used)]

mod page;
mod programs;

use page::{Block, Page};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn guide() -> PathBuf {
    checkout().join("docs/guide")
}

/// The names of a folder's files that have an ending, in order.
fn files(folder: &Path, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

/// The names of the numbered pages.
fn names() -> Vec<String> {
    let numbered = |name: &String| name.starts_with(|c: char| c.is_ascii_digit());
    files(&guide().join("en"), ".md").into_iter().filter(numbered).collect()
}

/// Every numbered page, in English and in Chinese.
fn pages() -> Vec<(Page, Page)> {
    let read = |language, name: &str| Page::read(&guide().join(language).join(name));
    names().iter().map(|name| (read("en", name), read("zh", name))).collect()
}

/// Every numbered page, in either language.
fn all_pages() -> Vec<Page> {
    pages().into_iter().flat_map(|(english, chinese)| [english, chinese]).collect()
}

#[test]
fn pages_are_numbered_without_a_gap_and_are_the_same_in_both_languages() {
    let english = names();
    assert!(!english.is_empty());
    for (at, name) in english.iter().enumerate() {
        assert!(name.starts_with(&format!("{:02}-", at + 1)), "{name}");
    }
    assert_eq!(files(&guide().join("en"), ".md"), files(&guide().join("zh"), ".md"));
}

#[test]
fn the_index_lists_every_page_in_order_and_the_glossary() {
    for language in ["en", "zh"] {
        let index = Page::read(&guide().join(language).join("README.md"));
        let inside = |link: &String| !link.contains('/');
        let listed: Vec<String> = index.links(false).into_iter().filter(inside).collect();
        let mut expected = names();
        expected.push("glossary.md".into());
        assert_eq!(listed, expected, "{}", index.path.display());
    }
}

#[test]
fn both_glossaries_have_the_same_terms_in_the_same_order() {
    let rows = |language: &str| -> Vec<Vec<String>> {
        let page = Page::read(&guide().join(language).join("glossary.md"));
        let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect();
        page.prose.lines().filter(|line| line.starts_with('|')).map(cells).collect()
    };
    let (english, chinese) = (rows("en"), rows("zh"));
    assert!(english.len() > 10 && english.len() == chinese.len());
    for (en, zh) in english.iter().zip(&chinese) {
        assert_eq!((&en[1], &en[2]), (&zh[2], &zh[1]));
        assert!(en[3..=4].iter().chain(&zh[3..=4]).all(|cell| !cell.is_empty()), "{en:?}");
    }
}

#[test]
fn both_languages_have_the_same_commands_outputs_calculations_and_programs() {
    for (english, chinese) in pages() {
        assert_eq!(english.blocks, chinese.blocks, "{}", chinese.path.display());
    }
}

#[test]
fn both_languages_have_the_same_formulas() {
    for (english, chinese) in pages() {
        assert_eq!(english.formulas(), chinese.formulas(), "{}", chinese.path.display());
        assert!(!english.code("math").is_empty(), "{} has no formula", english.path.display());
    }
}

#[test]
fn formulas_in_running_text_are_such_as_a_code_host_renders() {
    for page in all_pages() {
        let raw = page.unrendered_formulas();
        assert!(raw.is_empty(), "{}: {raw:?}", page.path.display());
    }
}

#[test]
fn both_languages_have_the_same_outline() {
    let levels = |page: &Page| page.headings().iter().map(|(level, _)| *level).collect::<Vec<_>>();
    for (english, chinese) in pages() {
        assert_eq!(levels(&english), levels(&chinese), "{}", chinese.path.display());
        for (page, last) in [
            (&english, ["Change one thing and see", "Exercises", "Sources"]),
            (&chinese, ["改一处，看一看", "练习", "来源"]),
        ] {
            let headings: Vec<&str> = page.headings().iter().map(|(_, text)| *text).collect();
            assert!(headings.ends_with(&last), "{}: {headings:?}", page.path.display());
        }
    }
}

#[test]
fn every_page_has_a_command_a_calculation_a_picture_and_two_exercises_with_folded_answers() {
    for page in all_pages() {
        let path = page.path.display();
        let by_hand = |block: &Block| block.language == "text" && block.comment == "by hand";
        assert!(!page.code("sh").is_empty(), "{path}: no command");
        assert!(page.blocks.iter().any(by_hand), "{path}: no calculation");
        assert!(!page.links(true).is_empty(), "{path}: no picture");
        for tag in ["<details>", "<summary>", "</summary>", "</details>"] {
            assert_eq!(page.prose.matches(tag).count(), 2, "{path}: {tag}");
        }
    }
}

#[test]
fn every_block_is_of_a_kind_that_is_checked() {
    for page in all_pages() {
        for block in &page.blocks {
            let comment = &block.comment[..];
            let known = match &block.language[..] {
                "text" => comment == "by hand" || comment.starts_with("output"),
                "sh" | "rust" | "python" | "math" => comment.is_empty(),
                _ => false,
            };
            assert!(known, "{}: {block:?}", page.path.display());
        }
    }
}

#[test]
fn a_program_on_a_page_is_one_that_is_run_here_and_every_one_is_shown() {
    let programs = programs::all();
    let mut shown = BTreeSet::new();
    for page in all_pages() {
        for code in page.code("rust") {
            let found = programs.iter().find(|(_, text)| *text == code);
            let (name, _) = found.unwrap_or_else(|| {
                panic!("{}: no file of docs/guide/rust is\n{code}", page.path.display())
            });
            shown.insert(format!("{name}.rs"));
        }
    }
    let there: BTreeSet<String> = files(&guide().join("rust"), ".rs").into_iter().collect();
    assert_eq!(shown, there);
}

#[test]
fn pictures_are_there_small_and_drawn_by_a_command_of_their_page() {
    const MOST_BYTES: u64 = 100_000;
    let mut shown = BTreeSet::new();
    for (english, chinese) in pages() {
        assert_eq!(english.links(true), chinese.links(true), "{}", chinese.path.display());
        for link in english.links(true) {
            let name = link.strip_prefix("../pictures/").expect("a picture of the guide");
            let bytes = fs::metadata(guide().join("pictures").join(name)).unwrap().len();
            assert!(bytes > 0 && bytes < MOST_BYTES, "{name} has {bytes} bytes");
            // A comparison's picture lies in its folder.
            let drawn = [format!("--out {name}"), format!("/comparison.svg {name}")];
            let draws = |code: &str| drawn.iter().any(|drawn| code.contains(drawn));
            assert!(english.code("sh").iter().any(|code| draws(code)), "{name}");
            shown.insert(name.to_owned());
        }
    }
    let there = [".png", ".svg"].iter().flat_map(|ending| files(&guide().join("pictures"), ending));
    assert_eq!(shown, there.collect());
}

#[test]
fn every_link_leads_somewhere() {
    let mut paths = vec![checkout().join("README.md"), checkout().join("README.zh.md")];
    for language in ["en", "zh"] {
        let folder = guide().join(language);
        paths.extend(files(&folder, ".md").iter().map(|name| folder.join(name)));
    }
    for path in paths {
        for link in Page::read(&path).links(false) {
            let file = link.split('#').next().unwrap();
            let there = file.is_empty() || path.parent().unwrap().join(file).exists();
            assert!(link.starts_with("https://") || there, "{}: {link}", path.display());
        }
    }
}

#[test]
fn a_number_in_running_text_is_one_that_a_run_or_a_calculation_of_the_page_gives() {
    for page in all_pages() {
        let checked = page.checked_numbers();
        for quoted in page.quoted_numbers() {
            let digits = quoted.split('.').nth(1).unwrap().len();
            let value: f64 = quoted.parse().unwrap();
            let rounded =
                |number: &f64| (number - value).abs() <= 0.500_001 * 0.1f64.powi(digits as i32);
            assert!(
                checked.iter().any(rounded),
                "{}: {quoted} is in no block that is checked",
                page.path.display()
            );
        }
    }
}

#[test]
fn the_readme_and_the_chinese_one_link_each_other_and_the_guide() {
    for (from, to, guide) in [
        ("README.md", "README.zh.md", "docs/guide/en/README.md"),
        ("README.zh.md", "README.md", "docs/guide/zh/README.md"),
    ] {
        let links = Page::read(&checkout().join(from)).links(false);
        for link in [to, guide] {
            assert!(links.iter().any(|found| found == link), "{from} does not link {link}");
        }
    }
}

#[test]
fn both_readmes_show_the_same_program() {
    let [english, chinese] =
        ["README.md", "README.zh.md"].map(|name| Page::read(&checkout().join(name)));
    for language in ["toml", "rust"] {
        assert!(!english.code(language).is_empty(), "{language}");
        assert_eq!(english.code(language), chinese.code(language), "{language}");
    }
}
