//! Words of a text, by their bytes alone: in code, comments and literals alike.

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// The words of a text, in order.
pub(super) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !is_of_word(*byte)).filter(|word| !word.is_empty())
}

/// Where a text has these letters first, in any case, within a word or as one.
pub(crate) fn place_of(text: &[u8], letters: &[u8]) -> Option<usize> {
    text.windows(letters.len()).position(|part| part.eq_ignore_ascii_case(letters))
}

/// Shows the words of a text whose first byte is one of those that are looked for, in order. Each statement's text comes by
/// here, so it takes few instructions a byte: those of a block are told apart without branches.
pub(super) fn see_words<'a>(text: &'a [u8], is_begin: impl Fn(u8) -> bool, mut see: impl FnMut(&'a [u8])) {
    let mut goes_on = false;
    let mut padded = [0; BLOCK];
    for (number, piece) in text.chunks(BLOCK).enumerate() {
        let block = match piece.first_chunk() {
            Some(block) => block,
            None => {
                padded[..piece.len()].copy_from_slice(piece);
                &padded
            }
        };
        let in_words = bits(block, is_of_word);
        let starts = in_words & !(in_words << 1 | u64::from(goes_on));
        goes_on = in_words >> (BLOCK - 1) == 1;
        let mut begins = starts & bits(block, &is_begin);
        while begins != 0 {
            let place = begins.trailing_zeros() as usize;
            begins &= begins - 1;
            let word = &text[number * BLOCK + place..];
            let mut length = (in_words >> place).trailing_ones() as usize;
            if place + length == BLOCK {
                length += word[length..].iter().take_while(|byte| is_of_word(**byte)).count();
            }
            see(&word[..length]);
        }
    }
}

/// Whether words are made of it: letters, digits, `_`, and all that is not ASCII.
fn is_of_word(byte: u8) -> bool {
    ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte == b'_') | (byte >= 0x80)
}

/// A bit for each byte, the first byte's lowest.
fn bits(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    // Puts the lowest bits of eight bytes beside each other, in the highest byte; no two sums meet.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut flags = [0; BLOCK];
    for (flag, byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(is(*byte));
    }
    let eights = flags.chunks_exact(8).filter_map(|eight| eight.first_chunk());
    eights.rev().fold(0, |bits, eight| bits << 8 | u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_those_between_other_bytes(
            text in prop::collection::vec(prop_oneof![Just(b' '), Just(b'c'), any::<u8>()], 0..300)
        ) {
            let mut seen = Vec::new();
            see_words(&text, |byte| byte | 0x20 == b'c', |word| seen.push(word));
            let begins = |word: &&[u8]| word[0] | 0x20 == b'c';
            prop_assert_eq!(seen, words(&text).filter(begins).collect::<Vec<_>>());
        }
    }

    #[test]
    fn bytes_of_words_are_those_of_names() {
        for byte in 0..=255 {
            let is_known = byte == b'_' || byte >= 0x80 || byte.is_ascii_alphanumeric();
            assert_eq!(is_of_word(byte), is_known, "{byte:#x}");
        }
    }
}
