//! Files of text are read whole or refused by file and line.

use flate2::{Compression, write::GzEncoder};
use regard_data::files::{
    ConllColumn, conll, labeled, labeled_files, labels_of_files, lines, parallel, parallel_tsv,
    table,
};
use regard_tasks::Result;
use std::{fs, io::Write, path::PathBuf};
use tempfile::{TempDir, tempdir};

/// A folder of files, gone after the test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// The sentence of an error, with the folder left out.
    fn refusal<T: std::fmt::Debug>(&self, result: Result<T>) -> String {
        let folder = format!("{}/", self.0.path().display());
        result.unwrap_err().to_string().replace(&folder, "")
    }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

mod lines_of_a_file {
    use super::*;

    #[test]
    fn end_in_lf_or_crlf_or_not_at_all() {
        let folder = Folder::new();
        let path = folder.file("a.txt", "eins\r\nzwei\n\ndrei");
        assert_eq!(lines(path, None).unwrap(), ["eins", "zwei", "", "drei"]);
        assert!(lines(folder.file("b.txt", ""), None).unwrap().is_empty());
    }

    #[test]
    fn are_read_from_gzip_whatever_the_name_and_from_several_parts() {
        let folder = Folder::new();
        let parts = [gzip(b"eins\nzw"), gzip(b"ei\n")].concat();
        assert_eq!(lines(folder.file("a.txt", parts), None).unwrap(), ["eins", "zwei"]);
        assert_eq!(lines(folder.file("b.gz", "plain\n"), None).unwrap(), ["plain"]);
    }

    #[test]
    fn are_read_in_the_encoding_named_or_marked() {
        let folder = Folder::new();
        let path = folder.file("marked.txt", b"\xef\xbb\xbfgr\xc3\xbcn\n");
        assert_eq!(lines(path, None).unwrap(), ["grün"]);
        let path = folder.file("latin.txt", b"gr\xfcn\n");
        assert_eq!(lines(path, Some("latin1")).unwrap(), ["grün"]);
        let path = folder.file("gbk.txt", b"\xb9\xb7\n");
        assert_eq!(lines(path, Some("gbk")).unwrap(), ["狗"]);
        let path = folder.file("wide.txt", b"\xff\xfea\0\n\0b\0");
        assert_eq!(lines(path, None).unwrap(), ["a", "b"]);
    }

    #[test]
    fn that_are_not_utf_8_are_refused_with_a_way_out() {
        let folder = Folder::new();
        let gbk = "a\n\n\u{6211}\u{4eec}\u{5728}\u{82b1}\u{56ed}\u{91cc}\u{770b}\u{89c1}\u{4e86}\u{4e24}\u{53ea}\u{9e1f}";
        let (gbk, ..) = encoding_rs::GBK.encode(gbk);
        let latin =
            b"a\n\nDie gr\xfcnen B\xe4ume stehen sch\xf6n am Flu\xdf, und die K\xfche h\xf6ren zu.";
        for (content, encoding) in [(&latin[..], "latin1"), (&gbk, "gbk")] {
            let told = format!(
                "a.txt, line 3: these bytes are not UTF-8; they look like {encoding}: `--encoding \
                 {encoding}` reads such files"
            );
            assert_eq!(folder.refusal(lines(folder.file("a.txt", content), None)), told);
            assert_eq!(folder.refusal(lines(folder.file("a.txt", gzip(content)), None)), told);
        }
        let path = folder.file("a.txt", b"a\n\xff\xff\n");
        assert_eq!(
            folder.refusal(lines(path, Some("gbk"))),
            "a.txt, line 2: these bytes are not GBK"
        );
    }

    #[test]
    fn in_an_unknown_encoding_are_refused_by_its_name() {
        let folder = Folder::new();
        let path = folder.file("a.txt", "a");
        let told = "`klingon` is no known encoding; utf-8, latin1 and gbk are some";
        assert_eq!(folder.refusal(lines(path, Some("klingon"))), told);
    }

    #[test]
    fn that_cannot_be_read_are_refused_by_the_file_s_name() {
        let folder = Folder::new();
        let missing = folder.0.path().join("missing.txt");
        assert_eq!(folder.refusal(lines(missing, None)), "missing.txt: there is no such file");
        fs::create_dir(folder.0.path().join("inner")).unwrap();
        let told = "inner: this is a folder; a file was expected";
        assert_eq!(folder.refusal(lines(folder.0.path().join("inner"), None)), told);
    }

    #[test]
    fn of_a_damaged_gzip_are_refused_and_never_read_in_part() {
        let folder = Folder::new();
        let whole = gzip("eine Zeile\n".repeat(1000).as_bytes());
        for cut in [2, 9, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
            let told = folder.refusal(lines(folder.file("a.gz", &whole[..cut]), None));
            assert!(told.starts_with("a.gz: the gzip data are cut short or bad"), "{cut}: {told}");
        }
        let mut flipped = whole;
        let sum = flipped.len() - 6;
        flipped[sum] ^= 1;
        let told = folder.refusal(lines(folder.file("a.gz", flipped), None));
        assert!(told.starts_with("a.gz: the gzip data are cut short or bad"), "{told}");
    }
}

mod parallel_sentences {
    use super::*;

    #[test]
    fn are_read_from_two_files_and_half_pairs_counted() {
        let folder = Folder::new();
        let de = folder.file("a.de", gzip("ein Hund\n\neine Katze \n ".as_bytes()));
        let en = folder.file("a.en", "a dog\nnothing\na cat\nnothing\n");
        let read = parallel(de, en, None).unwrap();
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(read.pairs, [pair("ein Hund", "a dog"), pair("eine Katze", "a cat")]);
        assert_eq!(read.skipped, 2);
    }

    #[test]
    fn of_files_of_different_length_are_refused_with_both_counts() {
        let folder = Folder::new();
        let de = folder.file("a.de", "eins\nzwei\ndrei\n");
        let en = folder.file("a.en", "one\ntwo\n");
        let told = "a.de: 3 lines, but a.en has 2; each line should have its translation";
        assert_eq!(folder.refusal(parallel(de, en, None)), told);
    }

    #[test]
    fn are_read_from_two_columns_or_the_first_two_of_a_table() {
        let folder = Folder::new();
        let read = parallel_tsv(folder.file("a.tsv", "eins\tone\n\nzwei\t\ndrei\tthree"), None);
        let read = read.unwrap();
        assert_eq!((read.pairs.len(), read.skipped), (2, 2));
        assert_eq!(read.pairs[1].1, "three");
        let told = |content| folder.refusal(parallel_tsv(folder.file("a.tsv", content), None));
        assert_eq!(
            told("eins\tone\nzwei two\n"),
            "a.tsv, line 2: source and target with a tab between were expected, 1 column is there"
        );
        assert_eq!(
            told("eins\tone\nzwei\ttwo\tdos\n"),
            "a.tsv, line 2: source and target with a tab between were expected, 3 columns are there"
        );
        // Of a table the first two columns are read.
        let read = parallel_tsv(folder.file("a.tsv", "eins\tone\tuno\n"), None).unwrap();
        assert_eq!(read.pairs, [("eins".to_string(), "one".to_string())]);
    }

    #[test]
    fn without_a_pair_are_refused() {
        let folder = Folder::new();
        let told = "a.tsv: no line has both a source and a target";
        for content in ["", "\n", "eins\t \n"] {
            assert_eq!(folder.refusal(parallel_tsv(folder.file("a.tsv", content), None)), told);
        }
    }
}

mod tagged_sentences {
    use super::*;

    const UNIVERSAL: &str = "# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tV\tMood=Imp\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_
2.1\ten\t_\t_\t_\t_\t_\t_\t_\t_
3\t3 000\t3000\tNUM\t_\t_\t1\tobl\t_\t_


# the second
1\t#\t#\tSYM\tS\t_\t0\troot\t_\t_
";

    #[test]
    fn are_read_from_any_column_of_conll_u() {
        let folder = Folder::new();
        let path = folder.file("a.conllu", UNIVERSAL);
        let read = conll(&path, ConllColumn::Upos, None).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].words, ["vamos", "nos", "3 000"]);
        assert_eq!(read[0].labels, ["VERB", "PRON", "NUM"]);
        assert_eq!((&read[0].lines[..], &read[1].lines[..]), (&[3, 4, 6][..], &[10][..]));
        assert_eq!(read[1].words, ["#"]);
        let first = |column| conll(&path, column, None).unwrap()[0].labels[0].clone();
        assert_eq!(first(ConllColumn::Lemma), "ir");
        assert_eq!(first(ConllColumn::Feats), "Mood=Imp");
        assert_eq!(first(ConllColumn::Deprel), "root");
        assert_eq!(first(ConllColumn::Misc), "_");
    }

    #[test]
    fn are_read_from_words_and_labels_with_tabs_or_spaces_between() {
        let folder = Folder::new();
        for content in [
            "I PRON\r\nsaw VERB\r\n\r\n# PUNCT\r\n",
            "I\tPRON\nsaw\tVERB\n\n#\tPUNCT",
            "-DOCSTART- -X- O\n\nI a PRON\nsaw b VERB\n\n\n# c PUNCT\n\n",
        ] {
            let read = conll(folder.file("a.txt", content), ConllColumn::Upos, None).unwrap();
            let words: Vec<_> = read.iter().map(|sentence| sentence.words.join(" ")).collect();
            let labels: Vec<_> = read.iter().map(|sentence| sentence.labels.join(" ")).collect();
            assert_eq!(words, ["I saw", "#"]);
            assert_eq!(labels, ["PRON VERB", "PUNCT"]);
        }
    }

    #[test]
    fn with_something_wrong_are_refused_by_line() {
        let folder = Folder::new();
        let told = |content: &str| {
            folder.refusal(conll(folder.file("a.txt", content), ConllColumn::Upos, None))
        };
        let cases = [
            ("I PRON\nsaw\n", "a.txt, line 2: 2 columns were expected, 1 column is there"),
            ("I PRON\nsaw a VERB\n", "a.txt, line 2: 2 columns were expected, 3 columns are there"),
            ("only\nwords\n", "a.txt, line 1: 2 columns were expected, 1 column is there"),
            ("I\tPRON\nsaw\t\n", "a.txt, line 2: the label is empty"),
            ("I\tPRON\n\tVERB\n", "a.txt, line 2: the word is empty"),
            ("", "a.txt: there is no sentence"),
            ("\n \n", "a.txt: there is no sentence"),
        ];
        for (content, sentence) in cases {
            assert_eq!(told(content), sentence);
        }
        let cases = [
            (
                "\tobl\t_\t_",
                "\tobl\t_",
                "a.txt, line 6: 10 columns were expected, 9 columns are there",
            ),
            ("\tPRON\t", "\t\t", "a.txt, line 4: the label is empty"),
            (
                "\n2\tnos",
                "\nx\tnos",
                "a.txt, line 4: word 2 of a sentence was expected, `x` is there",
            ),
            (
                "\n\n\n# the",
                "\n# the",
                "a.txt, line 8: word 4 of a sentence was expected, `1` is there",
            ),
        ];
        for (right, wrong, sentence) in cases {
            assert!(UNIVERSAL.contains(right));
            assert_eq!(told(&UNIVERSAL.replacen(right, wrong, 1)), sentence);
        }
        let narrow = folder.file("b.conllu.gz", gzip(b"1\tI\tPRON\n"));
        let told = "b.conllu.gz, line 1: 10 columns were expected, 3 columns are there";
        assert_eq!(folder.refusal(conll(narrow, ConllColumn::Upos, None)), told);
    }
}

mod labeled_texts {
    use super::*;

    #[test]
    fn are_read_from_label_and_text() {
        let folder = Folder::new();
        let read = labeled(folder.file("a.tsv", "good\ta fine\tfilm \nbad\tno\n\n \n"), None);
        let read = read.unwrap();
        let both: Vec<_> =
            read.iter().map(|x| (x.label.as_str(), x.text.as_str(), x.line)).collect();
        assert_eq!(both, [("good", "a fine\tfilm", 1), ("bad", "no", 2)]);
    }

    #[test]
    fn with_something_missing_are_refused_by_line() {
        let folder = Folder::new();
        let cases = [
            ("good\ta\n\nbad\tb\n", "line 2: a label and a text with a tab between were expected"),
            ("good film\n", "line 1: a label and a text with a tab between were expected"),
            ("good\ta\n\tb\n", "line 2: the label is empty"),
            ("good\ta\nbad\t \n", "line 2: the text is empty"),
        ];
        for (content, sentence) in cases {
            let told = folder.refusal(labeled(folder.file("a.tsv", content), None));
            assert_eq!(told, format!("a.tsv, {sentence}"));
        }
        let told = folder.refusal(labeled(folder.file("a.tsv", "\n\n"), None));
        assert_eq!(told, "a.tsv: there are no texts");
    }

    #[test]
    fn are_read_from_a_file_for_each_label() {
        let folder = Folder::new();
        let files = vec![
            ("good".to_string(), folder.file("a.pos", "fine\nnice\n")),
            ("bad".to_string(), folder.file("a.neg", "clich\u{e9}d\n\n")),
        ];
        let read = labeled_files(&files, None).unwrap();
        let both: Vec<_> =
            read.iter().map(|x| (x.label.as_str(), x.text.as_str(), x.line)).collect();
        assert_eq!(both, [("good", "fine", 1), ("good", "nice", 2), ("bad", "clichéd", 1)]);
        folder.file("a.neg", "poor\n\nworse\n");
        let told = "a.neg, line 2: the text is empty";
        assert_eq!(folder.refusal(labeled_files(&files, None)), told);
    }

    #[test]
    fn have_the_labels_of_their_files_names() {
        let of = |paths: &[&str]| labels_of_files(paths).map_err(|error| error.to_string());
        assert_eq!(of(&["x/rt-polarity.pos", "x/rt-polarity.neg"]).unwrap(), ["pos", "neg"]);
        assert_eq!(of(&["a.b.txt", "a.c.txt.gz", "a.txt"]).unwrap(), ["a.b", "a.c", "a"]);
        assert_eq!(of(&["good.txt"]).unwrap(), ["good"]);
        assert_eq!(of(&[]).unwrap(), [""; 0]);
        let told = "y/good.txt: another file would have the same label";
        assert_eq!(of(&["x/good.txt", "y/good.txt"]).unwrap_err(), told);
    }
}

mod tables {
    use super::*;

    #[test]
    fn are_read_with_a_header_or_without() {
        let folder = Folder::new();
        let read = table(folder.file("a.csv", "x, y\r\n1,2.5\n\n-3e2 , 4\n"), None).unwrap();
        assert_eq!(read.names, ["x", "y"]);
        assert_eq!(read.columns, [[1.0, -300.0], [2.5, 4.0]]);
        let read = table(folder.file("a.csv", "1,2,3\n4,5,\"6\"\n"), None).unwrap();
        assert_eq!(read.names, ["1", "2", "3"]);
        assert_eq!(read.columns, [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]);
    }

    #[test]
    fn with_something_wrong_are_refused_by_line_and_column() {
        let folder = Folder::new();
        let cases = [
            ("x,y\n1,2\n3\n", "a.csv, line 3: 2 columns were expected, 1 column is there"),
            ("x,y\n1,2,3\n", "a.csv, line 2: 2 columns were expected, 3 columns are there"),
            ("x,y\n1,2\n\n3,four\n", "a.csv, line 4: column y: `four` is not a finite number"),
            (
                "x,y\r\n1,2\r\n\r\n3,four\r\n",
                "a.csv, line 4: column y: `four` is not a finite number",
            ),
            ("x,y\n1,\n", "a.csv, line 2: column y: `` is not a finite number"),
            ("1,2\nNaN,2\n", "a.csv, line 2: column 1: `NaN` is not a finite number"),
            ("1,2\n1,-inf\n", "a.csv, line 2: column 2: `-inf` is not a finite number"),
            ("1,two\n3,4\n", "a.csv, line 1: column 2: `two` is not a finite number"),
            ("1\n2\n", "a.csv, line 1: 2 columns or more were expected, 1 is there"),
            ("x,y\n", "a.csv: there are no rows under the header"),
            ("", "a.csv: there are no rows"),
        ];
        for (content, sentence) in cases {
            assert_eq!(folder.refusal(table(folder.file("a.csv", content), None)), sentence);
        }
    }
}

#[test]
fn utf_16_is_read_without_a_mark_of_its_byte_order_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    let texts = [
        "good\ta fine film\nbad\ta long one\n",
        "gut\tein schöner Film\n",
        "好\t一部好电影\n坏\t一部坏电影\n",
        "ā\tĀā Āā\n",
        "one line",
        "a😀\tb\n",
    ];
    let mut read = 0;
    for text in texts {
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(order).collect();
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(regard_data::files::text(&path, None).unwrap(), text);
            read += 1;
        }
        std::fs::write(&path, text).unwrap();
        assert_eq!(regard_data::files::text(&path, None).unwrap(), text, "UTF-8 stays what it is");
    }
    assert_eq!(read, 12);
}
