//! Bytes as letters: what a picture inside an SVG, or weights inside a page, are written as.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with padding, as RFC 4648 has it.
///
/// ```
/// assert_eq!(regard_picture::scene::base64(b"Man"), "TWFu");
/// ```
pub fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            match place <= three.len() {
                true => out.push(LETTERS[(bits >> (18 - 6 * place)) as usize & 63] as char),
                false => out.push('='),
            }
        }
    }
    out
}

/// What base64 means (RFC 4648, with padding or without); none where it is something else.
///
/// ```
/// assert_eq!(regard_picture::scene::base64_decoded("TWFu"), Some(b"Man".to_vec()));
/// ```
pub fn base64_decoded(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    if text.len() % 4 == 1 {
        return None;
    }
    let value = |letter: &u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for four in text.chunks(4) {
        let mut bits = 0u32;
        for place in 0..4 {
            bits = bits << 6 | u32::from(four.get(place).map_or(Some(0), value)?);
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_4648_come_out() {
        for (text, letters) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("fooba", "Zm9vYmE=")]
        {
            assert_eq!(base64(text.as_bytes()), letters);
        }
    }

    #[test]
    fn what_was_written_is_read_again_whatever_its_length() {
        for length in 0..70u8 {
            let bytes: Vec<u8> = (0..length).map(|at| at.wrapping_mul(37)).collect();
            assert_eq!(base64_decoded(&base64(&bytes)), Some(bytes));
        }
    }

    #[test]
    fn other_letters_and_a_single_one_are_refused() {
        assert_eq!(
            [base64_decoded("a"), base64_decoded("ab-d"), base64_decoded("ab\ncd")],
            [None, None, None]
        );
    }
}
