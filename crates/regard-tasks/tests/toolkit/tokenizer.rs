//! Text becomes tokens and text again.

use regard_data::text::{
    END, Labels, PADDING, START, Tokenizer, TokenizerConfig, TokenizerKind, UNKNOWN, Vocabulary,
};

const TEXT: [&str; 6] = [
    "Ein Mann läuft über die Straße.",
    "Zwei Männer laufen über saftig-grünes Gras, sagt er.",
    "A man's dog (a brown one) isn't running.",
    "\"Look!\" he said: \"it costs 3.50!\"",
    "我看见了一只狗。",
    "我看见了两只猫，一只狗。",
];

const KINDS: [TokenizerKind; 4] = [
    TokenizerKind::Whitespace,
    TokenizerKind::Words,
    TokenizerKind::Characters,
    TokenizerKind::Bpe,
];

fn learned(kind: TokenizerKind) -> Tokenizer {
    Tokenizer::learn(&TEXT, &TokenizerConfig { kind, ..Default::default() }).unwrap()
}

fn json(tokenizer: &Tokenizer) -> String {
    serde_json::to_string(tokenizer).unwrap()
}

/// Words and names that many pairs of equally many occurrences can be joined from.
fn many_lines() -> Vec<String> {
    let random = regard::tensor::Random::new(5);
    let word = || (0..1 + random.below(8)).map(|_| ["a", "b", "c", "ü", "狗"][random.below(5)]);
    let line = |_| (0..6).map(|_| word().collect::<String>()).collect::<Vec<_>>().join(" ");
    (0..300).map(line).collect()
}

#[test]
fn every_kind_gives_back_the_text_it_learned_from() {
    for kind in KINDS {
        let tokenizer = learned(kind);
        for text in TEXT {
            let ids = tokenizer.encode(text);
            assert!(ids.iter().all(|&id| id > UNKNOWN && id < tokenizer.len()), "{kind:?}");
            assert_eq!(tokenizer.decode(&ids), text, "{kind:?}");
        }
    }
}

#[test]
fn byte_pairs_give_back_new_texts_of_known_characters_up_to_their_spaces() {
    let tokenizer = learned(TokenizerKind::Bpe);
    for text in ["Straßenmann (läuft) ,und ! \" Gras-狗猫 dog只", "一 只狗"] {
        assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
    }
    assert_eq!(tokenizer.decode(&tokenizer.encode("  Ein\t Mann\u{3000}läuft ")), "Ein Mann läuft");
}

#[test]
fn words_part_from_punctuation_and_chinese_characters_from_each_other() {
    let tokenizer = learned(TokenizerKind::Words);
    let tokens = |text| tokenizer.tokens(text);
    assert_eq!(tokens("isn't it (3.5)?"), ["isn't", "it", "(", "3.5", ")", "?"]);
    assert_eq!(tokens("我看Rust。"), ["我", "看", "Rust", "。"]);
    assert_eq!(tokens("हिन्दी में"), ["हिन्दी", "में"], "marks belong to their letters");
    assert_eq!(tokens(" ... "), [".", ".", "."]);
}

#[test]
fn words_are_put_together_with_punctuation_where_it_belongs() {
    let lines = [
        "Er sagt: „Ja!“ (laut) und “yes” oder \"no\", für $5.",
        "Haupt- und Nebensatz - im farmers' market heißt 'ein Satz'.",
    ];
    let tokenizer = Tokenizer::learn(&lines, &TokenizerConfig::default()).unwrap();
    for line in lines {
        assert_eq!(tokenizer.decode(&tokenizer.encode(line)), line);
    }
}

#[test]
fn tokens_are_as_many_as_ids_and_show_text_only() {
    for kind in KINDS {
        let tokenizer = learned(kind);
        for text in TEXT.iter().chain(&["未知 Ωmega ▁x", "", "  "]) {
            let tokens = tokenizer.tokens(text);
            assert_eq!(tokens.len(), tokenizer.encode(text).len(), "{kind:?}");
            let written: String = tokens.concat().split_whitespace().collect();
            let kept = |c: &char| !c.is_whitespace() && (kind != TokenizerKind::Bpe || *c != '▁');
            assert_eq!(written, text.chars().filter(kept).collect::<String>(), "{kind:?}");
        }
        let ids = tokenizer.encode(TEXT[0]);
        let shown: Vec<&str> = ids.iter().map(|&id| tokenizer.token(id)).collect();
        assert_eq!(shown, tokenizer.tokens(TEXT[0]), "{kind:?}");
    }
}

#[test]
fn byte_pairs_join_what_occurs_twice_together() {
    let tokenizer = learned(TokenizerKind::Bpe);
    assert_eq!(tokenizer.tokens("über Mast."), ["über", "M", "a", "s", "t", "."]);
    assert_eq!(tokenizer.tokens("狗"), [" ", "狗"], "never seen after a space");
}

#[test]
fn what_was_not_learned_is_unknown_and_shown_as_it_is_written() {
    let cases = [
        (TokenizerKind::Whitespace, "Ein Ωmega", "Ein <unk>"),
        (TokenizerKind::Words, "Ein Ωmega", "Ein <unk>"),
        (TokenizerKind::Characters, "Ein Ω", "Ein <unk>"),
        (TokenizerKind::Bpe, "Ein Ω", "Ein <unk>"),
    ];
    for (kind, text, decoded) in cases {
        let tokenizer = learned(kind);
        let ids = tokenizer.encode(text);
        assert_eq!(ids.last(), Some(&UNKNOWN), "{kind:?}");
        assert_eq!(tokenizer.decode(&ids), decoded, "{kind:?}");
        assert!(text.ends_with(tokenizer.tokens(text).last().unwrap()), "{kind:?}");
        assert_eq!(tokenizer.token(999_999), "<unk>", "{kind:?}");
    }
}

#[test]
fn special_tokens_have_fixed_ids_and_no_text_makes_them() {
    for kind in KINDS {
        let lines = ["<pad> <s> </s> <unk> <pad> <s> </s> <unk>"; 20];
        let config = TokenizerConfig { kind, ..Default::default() };
        let tokenizer = Tokenizer::learn(&lines, &config).unwrap();
        let names = [PADDING, START, END, UNKNOWN].map(|id| tokenizer.token(id));
        assert_eq!(names, ["<pad>", "<s>", "</s>", "<unk>"]);
        let ids = tokenizer.encode(lines[0]);
        assert!(ids.iter().all(|&id| id > UNKNOWN), "{kind:?}");
        let framed: Vec<usize> = [START].into_iter().chain(ids).chain([END, PADDING]).collect();
        let decoded = tokenizer.decode(&framed).replace(' ', "");
        assert_eq!(decoded, lines[0].replace(' ', ""), "{kind:?}");
    }
}

#[test]
fn lower_case_is_the_same_token() {
    for kind in KINDS {
        let config = TokenizerConfig { kind, lowercase: true, ..Default::default() };
        let tokenizer = Tokenizer::learn(&TEXT, &config).unwrap();
        assert_eq!(tokenizer.encode("EIN MANN LÄUFT"), tokenizer.encode("ein mann läuft"));
        assert_eq!(tokenizer.decode(&tokenizer.encode("EIN MANN")), "ein mann");
    }
}

#[test]
fn a_vocabulary_is_no_larger_than_asked_and_keeps_the_commonest() {
    for kind in KINDS {
        for size in [5, 6, 12, 30, usize::MAX] {
            let config = TokenizerConfig { kind, size, ..Default::default() };
            let tokenizer = Tokenizer::learn(&TEXT, &config).unwrap();
            assert!(tokenizer.len() <= size, "{kind:?}");
            tokenizer.decode(&tokenizer.encode(TEXT[5]));
        }
    }
    let lines = ["b a b c a b"];
    let of = |size, minimum_count| {
        let config = TokenizerConfig { size, minimum_count, ..Default::default() };
        Tokenizer::learn(&lines, &config).unwrap().encode("a b c")
    };
    assert_eq!(of(100, 1), [5, 4, 6]);
    assert_eq!(of(100, 2), [5, 4, UNKNOWN]);
    assert_eq!(of(5, 1), [UNKNOWN, 4, UNKNOWN]);
}

#[test]
fn a_rare_character_is_unknown_to_byte_pairs_and_nothing_is_joined_across_it() {
    let config =
        TokenizerConfig { kind: TokenizerKind::Bpe, minimum_count: 2, ..Default::default() };
    let tokenizer = Tokenizer::learn(&["axb", "ayb", "azb"], &config).unwrap();
    assert_eq!(tokenizer.tokens("axb"), ["a", "x", "b"]);
    assert_eq!(tokenizer.encode("axb")[1], UNKNOWN);
    assert_eq!(tokenizer.tokens("ab"), ["a", "b"]);
}

#[test]
fn what_leaves_nothing_to_learn_is_refused() {
    for kind in KINDS {
        let refused = |lines: &[&str], size, minimum_count| {
            let config = TokenizerConfig { kind, size, minimum_count, ..Default::default() };
            Tokenizer::learn(lines, &config).unwrap_err().to_string()
        };
        assert_eq!(refused(&[""], 10, 1), "there is no text to learn a vocabulary from");
        assert_eq!(refused(&["a"], 4, 1), "a vocabulary of 4 has no room: 4 are special tokens");
        assert_eq!(
            refused(&["a"], 10, 2),
            "no token occurs 2 times: the commonest, `a`, occurs 1 times"
        );
    }
}

#[test]
fn learning_twice_gives_the_same_tokenizer() {
    let lines = many_lines();
    for kind in KINDS {
        let config = TokenizerConfig { kind, size: 400, ..Default::default() };
        let first = json(&Tokenizer::learn(&lines, &config).unwrap());
        for _ in 0..20 {
            let again = json(&Tokenizer::learn(&lines, &config).unwrap());
            assert!(first == again, "{kind:?} is learned in another way each time");
        }
    }
}

#[test]
fn a_tokenizer_is_the_same_after_it_was_written_and_read() {
    for kind in KINDS {
        let tokenizer = learned(kind);
        let read: Tokenizer = serde_json::from_str(&json(&tokenizer)).unwrap();
        let value = serde_json::to_value(&tokenizer).unwrap();
        let from_value: Tokenizer = serde_json::from_value(value).unwrap();
        for text in TEXT {
            assert_eq!(read.encode(text), tokenizer.encode(text));
            assert_eq!(from_value.encode(text), tokenizer.encode(text));
            assert_eq!(read.decode(&read.encode(text)), text);
        }
        assert_eq!(json(&read), json(&tokenizer));
    }
}

#[test]
fn a_damaged_tokenizer_is_refused() {
    let pairs = json(&learned(TokenizerKind::Bpe));
    let words = json(&learned(TokenizerKind::Words));
    let cases = [
        (pairs.replacen("\"<s> \":1", "\"<s> \":99999", 1), "not learned by this program"),
        (pairs.replacen("\"unk_token\":\"<unk> \"", "\"unk_token\":null", 1), "not learned by"),
        (pairs.replacen("\"über\":", "\"x\":", 1), "über"),
        (words.replacen("<s>", "<x>", 1), "a vocabulary begins with <pad> <s> </s> <unk>"),
        (words.replacen("Mann", "Ein", 1), "a vocabulary holds a word twice"),
        (words[..words.len() / 2].to_string(), "EOF"),
    ];
    for (damaged, message) in cases {
        let error = serde_json::from_str::<Tokenizer>(&damaged).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn words_are_spelled_by_their_characters() {
    let letters = Vocabulary::characters(["Straße", "Gras"], 1).unwrap();
    let spelled = letters.spell("Graß!");
    assert_eq!(spelled.len(), 5);
    assert_eq!(spelled[4], UNKNOWN);
    assert!(spelled[..4].iter().all(|&id| id > UNKNOWN && id < letters.len()));
    assert!(letters.spell("").is_empty());
}

#[test]
fn labels_are_numbered_by_count_and_an_unseen_one_is_refused_by_name() {
    let labels = Labels::learn(["B", "A", "C", "A"]);
    assert_eq!(labels.names(), ["A", "B", "C"]);
    let read: Labels = serde_json::from_str(&serde_json::to_string(&labels).unwrap()).unwrap();
    assert_eq!(read, labels);
    assert!(serde_json::from_str::<Labels>(r#"["A", "A"]"#).is_err());
    let error = labels.id_at("D", "test.tsv", 3).unwrap_err().to_string();
    assert_eq!(error, "test.tsv, line 3: label `D` is not among the 3 seen in training");
}
