//! The embedded stories: what they say is what the rules make of it.

use regard_data::toy::{Story, StoryLanguage, stories};
use regard_tasks::Result;
use std::collections::HashMap;

/// The place that a reader of the English sentences would name, and the sentences it took.
fn found(story: &Story) -> (String, Vec<usize>) {
    let (mut at, mut holder, mut inside) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (number, sentence) in story.sentences.iter().enumerate() {
        let words: Vec<&str> = sentence.trim_end_matches('.').split(' ').collect();
        match words[..] {
            [who, "went" | "moved" | "walked", "to", "the", place] => {
                at.insert(who, (place, number));
            }
            [who, "took", "the", what] | [who, "picked", "up", "the", what] => {
                holder.insert(what, (who, number));
            }
            [from, "gave", "the", what, "to", who] => {
                assert_eq!(holder[what].0, from, "{story:?}");
                holder.insert(what, (who, number));
            }
            [_, "put", "the", what, "into", "the", r#box] => {
                inside.insert(what, (r#box, number));
            }
            _ => panic!("{sentence}"),
        }
    }
    let mut name = story.question.trim_end_matches('?').rsplit(' ').next().unwrap();
    let mut told = Vec::new();
    for step in [&inside, &holder, &at] {
        if let Some(&(next, number)) = step.get(name) {
            told.push(number);
            name = next;
        }
    }
    (name.to_string(), told)
}

#[test]
fn every_english_story_has_the_answer_and_the_facts_that_its_sentences_tell() -> Result<()> {
    for facts in 1..=3 {
        for story in stories(300, 7, facts, StoryLanguage::English)? {
            let (place, told) = found(&story);
            assert_eq!((&place, &told), (&story.answer, &story.supporting), "{story:?}");
            assert_eq!(told.len(), facts);
        }
    }
    Ok(())
}

#[test]
fn a_chinese_story_is_the_english_one_in_other_words() -> Result<()> {
    for facts in 1..=3 {
        let both =
            [StoryLanguage::English, StoryLanguage::Chinese].map(|l| stories(50, 3, facts, l));
        let [english, chinese] = both.map(|all| all.unwrap());
        for (english, chinese) in english.iter().zip(&chinese) {
            assert_eq!(english.supporting, chinese.supporting);
            assert_eq!(english.sentences.len(), chinese.sentences.len());
            let last = &chinese.sentences[*chinese.supporting.last().unwrap()];
            assert!(last.contains(&chinese.answer), "{chinese:?}");
            assert!(chinese.question.ends_with("在哪里？"));
        }
    }
    Ok(())
}

#[test]
fn no_story_is_told_twice_and_no_place_is_right_too_often() -> Result<()> {
    let all = stories(2000, 1, 2, StoryLanguage::English)?;
    let mut texts: Vec<String> = all.iter().map(|s| s.sentences.join(" ") + &s.question).collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 2000);
    let kitchen = all.iter().filter(|s| s.answer == "kitchen").count();
    assert!((150..350).contains(&kitchen), "{kitchen} of 2000, one place of eight");
    let told = stories(1, 1, 4, StoryLanguage::English).unwrap_err().to_string();
    assert_eq!(told, "stories with 4 supporting facts; there are 1 to 3");
    Ok(())
}
