//! Bytes out of letters.

/// What base64 means (RFC 4648, with padding or without); none where it is something else.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
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
    use regard_picture::scene::base64;

    #[test]
    fn what_was_written_is_read_again_whatever_its_length() {
        for length in 0..70u8 {
            let bytes: Vec<u8> = (0..length).map(|at| at.wrapping_mul(37)).collect();
            assert_eq!(decode(&base64(&bytes)), Some(bytes));
        }
    }

    #[test]
    fn other_letters_and_a_single_one_are_refused() {
        assert_eq!([decode("a"), decode("ab-d"), decode("ab\ncd")], [None, None, None]);
    }
}
