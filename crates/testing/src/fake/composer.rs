//! Implements the fake agent's input box, with marks for large pastes.

/// The input box: the text, and how it looks.
#[derive(Default)]
pub(super) struct Composer {
    text: Vec<u8>,
    marks: Vec<(usize, usize, String)>,
    pastes: usize,
}

/// A paste of more bytes than this is shown as a mark where the agent does so.
const MAX_SHOWN_LEN: usize = 800;
/// So is a paste of more lines than this.
const MAX_SHOWN_LINES: usize = 10;

impl Composer {
    /// Adds typed text.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    /// Adds a paste, which may be shown as a mark.
    pub(super) fn paste(&mut self, bytes: &[u8], collapses: bool) {
        let lines = bytes.split(|byte| *byte == b'\n').count() - 1;
        if collapses && (bytes.len() > MAX_SHOWN_LEN || lines > MAX_SHOWN_LINES) {
            self.pastes += 1;
            let mark = format!("[Pasted text #{} +{lines} lines]", self.pastes);
            self.marks.push((self.text.len(), self.text.len() + bytes.len(), mark));
        }
        self.text.extend_from_slice(bytes);
    }

    /// Takes the last character away, or the mark that stands for many.
    pub(super) fn back(&mut self) {
        if let Some((start, end, _)) = self.marks.last().cloned()
            && end == self.text.len()
        {
            self.marks.pop();
            self.text.truncate(start);
            return;
        }
        while self.text.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
    }

    /// Whether nothing stands in it.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Empties it and gives the exact text.
    pub(super) fn take(&mut self) -> String {
        self.marks.clear();
        String::from_utf8_lossy(&std::mem::take(&mut self.text)).into_owned()
    }

    /// What it shows: the text with marks in place of large pastes and without control characters.
    pub(super) fn shown(&self) -> String {
        let mut shown = String::new();
        let mut at = 0;
        for (start, end, mark) in &self.marks {
            shown.push_str(&String::from_utf8_lossy(&self.text[at..*start]));
            shown.push_str(mark);
            at = *end;
        }
        shown.push_str(&String::from_utf8_lossy(&self.text[at..]));
        shown.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_paste_is_a_mark_and_the_text_is_whole() {
        let mut composer = Composer::default();
        composer.push("see ".as_bytes());
        let long = "x\n".repeat(20);
        composer.paste(long.as_bytes(), true);
        composer.push(b"!");
        assert_eq!(composer.shown(), "see [Pasted text #1 +20 lines]!");
        composer.back();
        composer.back();
        assert_eq!(composer.shown(), "see ");
        composer.paste(long.as_bytes(), false);
        assert_eq!(composer.take(), format!("see {long}"));
        assert!(composer.is_empty());
    }

    #[test]
    fn back_takes_a_whole_character() {
        let mut composer = Composer::default();
        composer.push("aä語".as_bytes());
        composer.back();
        assert_eq!(composer.shown(), "aä");
        composer.back();
        composer.back();
        composer.back();
        assert!(composer.is_empty());
    }
}
