//! Pretrained vectors of words, as word2vec, GloVe and fastText write them in text.

use crate::files::opened;
use crate::{Error, Result, sample};
use regard::Tensor;
use regard::tensor::Parameter;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Sets the rows of a table `[tokens, width]` to the vectors that a file has for them, plain or
/// gzipped: a word and its numbers in each line, below a line with two counts or not. A word that is
/// not there as it is written is looked for in small letters. Gives what is worth saying.
///
/// Refuses vectors of another width than the table's, numbers that are none, and a file that has
/// no token of the table, by line.
///
/// ```
/// use regard::prelude::*;
/// use regard_data::text::set_vectors;
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("glove.txt");
/// std::fs::write(&file, "the 1 2\ncat 3 4\n").unwrap();
/// let table = Parameters::new(DType::F32, 1).parameter("input.weight", &[2, 2], Init::Zeros)?;
/// let said = set_vectors(&table, &["Cat".into(), "dog".into()], &file)?;
/// assert!(said.starts_with("1 of 2 tokens have a vector of"), "{said}");
/// assert_eq!(table.tensor().to_vec::<f32>()?, [3.0, 4.0, 0.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_vectors(table: &Parameter, tokens: &[String], file: &Path) -> Result<String> {
    let shape = table.tensor().shape().to_vec();
    let &[rows, width] = &shape[..] else {
        return Err(Error::invalid(format!("a table of shape {shape:?} has no rows for tokens")));
    };
    let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, token) in tokens.iter().enumerate().take(rows) {
        wanted.entry(token.clone()).or_default().push(at);
        let small = token.to_lowercase();
        if small != *token {
            wanted.entry(small).or_default().push(at);
        }
    }
    let mut numbers = table.tensor().to_dtype(regard::DType::F32)?.contiguous()?.to_vec::<f32>()?;
    // Whether a row was found, and as it is written.
    let mut found: Vec<Option<bool>> = vec![None; rows];
    let mut read = BufReader::new(opened(file)?);
    let (mut line, mut at, mut is_cut) = (Vec::new(), 0, false);
    while read.read_until(b'\n', &mut line).map_err(|e| Error::file(file, e))? > 0 {
        at += 1;
        // Where only beginnings are read, the first vectors will do.
        if sample::most_lines().is_some_and(|most| at > most) {
            is_cut = true;
            break;
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        if text.is_empty() || (at == 1 && is_header(&text)) {
            continue;
        }
        let (word, vector) = split(&text, width).ok_or_else(|| {
            let there = text.split(' ').count().saturating_sub(1);
            let what =
                format!("a word and {there} numbers; the vectors of this model have {width}");
            Error::line(file, at, what)
        })?;
        for &row in wanted.get(word).into_iter().flatten() {
            let as_written = tokens[row] == word;
            if found[row].is_none_or(|before| as_written && !before) {
                for (to, text) in numbers[row * width..][..width].iter_mut().zip(&vector) {
                    let number = text.parse::<f32>().ok().filter(|number| number.is_finite());
                    let refuse = || Error::line(file, at, format!("`{text}` is not a number"));
                    *to = number.ok_or_else(refuse)?;
                }
                found[row] = Some(as_written);
            }
        }
    }
    let count = found.iter().flatten().count();
    if count == 0 && !is_cut {
        return Err(Error::file(file, "it has a vector for none of the tokens"));
    }
    table.set(&Tensor::from_vec(numbers, &shape)?.to_dtype(table.tensor().dtype())?)?;
    let within = if is_cut { format!(" in the first {} lines", at - 1) } else { String::new() };
    Ok(format!("{count} of {rows} tokens have a vector{within} of {}", file.display()))
}

/// "400000 300": how many words, and how wide.
fn is_header(text: &str) -> bool {
    let parts: Vec<&str> = text.split(' ').collect();
    parts.len() == 2 && parts.iter().all(|part| part.parse::<usize>().is_ok())
}

/// A word, in which spaces may be, and so many numbers.
fn split(text: &str, width: usize) -> Option<(&str, Vec<&str>)> {
    let mut parts: Vec<&str> = text.rsplitn(width + 1, [' ', '\t']).collect();
    let word = if parts.len() == width + 1 { parts.pop() } else { None }?;
    parts.reverse();
    // More numbers than the width would be taken for a word with spaces.
    let is_longer = word.split(' ').skip(1).any(|part| part.parse::<f32>().is_ok());
    (!is_longer).then_some((word, parts))
}
