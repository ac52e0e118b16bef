//! Decodes bytes as UTF-8 piece by piece.

/// Turns bytes into text piece by piece, with the same result as all at once.
///
/// A sequence that a piece cuts in two is kept for the next; what is not UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a sequence.
    kept: Vec<u8>,
}

impl Decoder {
    /// Appends the text of these bytes, except for a sequence that is not complete yet.
    pub(crate) fn decode(&mut self, bytes: &[u8], text: &mut String) {
        let joined;
        let mut bytes = bytes;
        if !self.kept.is_empty() {
            self.kept.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.kept);
            bytes = &joined;
        }
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            let cut = chunks.peek().is_none()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if cut {
                self.kept.extend_from_slice(invalid);
            } else {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Appends what stands for a sequence that will never be complete.
    pub(crate) fn finish(&mut self, text: &mut String) {
        if !self.kept.is_empty() {
            self.kept.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_text(
            // Letters, and the bytes that begin, continue and spoil sequences.
            bytes in prop::collection::vec(prop::sample::select(&b"a\0\x80\xbf\xc3\xe2\x82\xac\xf0\x9f\x98\xff\xed\xa0"[..]), 0..60),
            sizes in prop::collection::vec(1..5usize, 60),
        ) {
            let (mut decoder, mut text, mut rest) = (Decoder::default(), String::new(), &bytes[..]);
            for size in sizes {
                let (piece, after) = rest.split_at(size.min(rest.len()));
                decoder.decode(piece, &mut text);
                rest = after;
            }
            decoder.finish(&mut text);
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }
}
