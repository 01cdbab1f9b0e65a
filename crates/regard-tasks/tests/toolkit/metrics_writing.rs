//! Metrics of written texts held against jiwer's, rouge-score's and sacreBLEU's results, written by
//! `bench/fixtures/writing.py`.

use regard_tasks::metric::{Bleu, ErrorRate, Overlap, Rouge, RougeTokenization, Tokenization};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    errors: Vec<Errors>,
    rouge: KnownRouge,
    bleu: Vec<KnownBleu>,
}

#[derive(Deserialize)]
struct Errors {
    /// What was written, what is true, and both rates.
    lines: Vec<(String, String, f64, f64)>,
    wer: f64,
    cer: f64,
}

#[derive(Deserialize)]
struct KnownRouge {
    words: Vec<RougeLine>,
    characters: Vec<RougeLine>,
}

/// What was written, what is true; precision, recall and F1 of ROUGE-1, -2 and -L.
type RougeLine = (String, String, [[f64; 3]; 3]);

#[derive(Deserialize)]
struct KnownBleu {
    tokenization: String,
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    score: f64,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../../../../fixtures/writing.json")).expect("known scores")
}

#[track_caller]
fn near(ours: f64, known: f64, what: &str) {
    assert!((ours - known).abs() < 1e-9, "{what}: {ours} is not {known}");
}

#[test]
fn word_and_character_error_rates_are_jiwers() {
    let mut held = 0;
    for Errors { lines, wer, cer } in fixture().errors {
        for (written, truth, wer, cer) in &lines {
            let what = format!("{written:?} for {truth:?}");
            near(ErrorRate::words(&[written], &[truth]).unwrap().rate(), *wer, &what);
            near(ErrorRate::characters(&[written], &[truth]).unwrap().rate(), *cer, &what);
            held += 1;
        }
        let (written, truth): (Vec<_>, Vec<_>) =
            lines.into_iter().map(|(written, truth, _, _)| (written, truth)).unzip();
        near(ErrorRate::words(&written, &truth).unwrap().rate(), wer, "all words");
        near(ErrorRate::characters(&written, &truth).unwrap().rate(), cer, "all characters");
    }
    assert!(held > 60, "{held} lines");
}

#[test]
fn rouge_is_rouge_scores() {
    let KnownRouge { words, characters } = fixture().rouge;
    assert!(words.len() > 80 && characters.len() == words.len());
    for (lines, tokenization) in
        [(words, RougeTokenization::Words), (characters, RougeTokenization::Characters)]
    {
        let mut means = [0.0; 3];
        for (written, truth, known) in &lines {
            let Rouge { one, two, l } = Rouge::new(written, truth, tokenization);
            for (at, (Overlap { precision, recall, f1 }, known)) in
                [one, two, l].into_iter().zip(known).enumerate()
            {
                let what = format!("{tokenization:?} of {written:?} for {truth:?}, {at}");
                near(precision, known[0], &what);
                near(recall, known[1], &what);
                near(f1, known[2], &what);
                means[at] += known[2] / lines.len() as f64;
            }
        }
        let (written, truth): (Vec<_>, Vec<_>) =
            lines.into_iter().map(|(written, truth, _)| (written, truth)).unzip();
        let mean = Rouge::corpus(&written, &truth, tokenization).unwrap();
        near(mean.one.f1, means[0], "mean of ROUGE-1");
        near(mean.two.f1, means[1], "mean of ROUGE-2");
        near(mean.l.f1, means[2], "mean of ROUGE-L");
    }
}

#[test]
fn bleu_with_another_number_of_references_for_each_sentence_is_sacrebleus() {
    for known in fixture().bleu {
        assert!(known.references.iter().any(|some| some.len() == 1));
        assert!(known.references.iter().any(|some| some.len() == 4));
        let tokenization = Tokenization::named(&known.tokenization).unwrap();
        let bleu = Bleu::corpus(&known.hypotheses, &known.references, tokenization).unwrap();
        near(bleu.score, known.score, &known.tokenization);
    }
}

#[test]
fn lists_of_different_lengths_are_refused() {
    let error = ErrorRate::words(&["a", "b"], &["a"]).unwrap_err().to_string();
    assert_eq!(error, "there are 2 texts for 1 truths");
    let error = Rouge::corpus(&["a"], &["a", "b"], RougeTokenization::Words).unwrap_err();
    assert_eq!(error.to_string(), "there are 1 texts for 2 references");
    assert_eq!(ErrorRate::words(&[""], &[""]).unwrap().rate(), 0.0);
}

#[test]
fn rouge_sees_the_words_of_every_script() {
    use RougeTokenization::{Characters, Unicode, Words};
    // Two of three words of each reference, and what suits it.
    for (reference, written, by) in [
        ("the red cat", "the cat", Words),
        ("le café fermé", "le fermé", Words),
        ("القطة الحمراء هنا", "القطة هنا", Unicode),
        ("החתול האדום כאן", "החתול כאן", Unicode),
        ("красный кот здесь", "красный здесь", Unicode),
        ("η κόκκινη γάτα", "η γάτα", Unicode),
        ("लाल बिल्ली यहाँ", "लाल यहाँ", Unicode),
        ("빨간 고양이 여기", "빨간 여기", Unicode),
        ("կարմիր կատու այստեղ", "կարմիր այստեղ", Unicode),
        ("ቀይ ድመት እዚህ", "ቀይ እዚህ", Unicode),
    ] {
        assert_eq!(RougeTokenization::suiting(&[reference]), by, "{reference}");
        if by == Unicode {
            let rouge = Rouge::new(written, reference, by);
            near(rouge.one.recall, 2.0 / 3.0, reference);
            near(rouge.one.precision, 1.0, reference);
            near(rouge.l.recall, 2.0 / 3.0, reference);
        }
    }
    for (reference, written) in
        [("红猫在这里", "红猫在"), ("あかいねこ", "あかい"), ("กขฃคฅ", "กขฃ"), ("កខគឃង", "កខគ")]
    {
        assert_eq!(RougeTokenization::suiting(&[reference]), Characters, "{reference}");
        near(Rouge::new(written, reference, Characters).l.recall, 0.6, reference);
    }
    // English words among Chinese ones are still words; a name in another script changes nothing.
    assert_eq!(RougeTokenization::suiting(&["在 GitHub 上查看代码"]), Characters);
    assert_eq!(RougeTokenization::suiting(&["The poet 李白 was born far away"]), Words);
    assert_eq!(RougeTokenization::suiting(&["", "123"]), Words);
}
