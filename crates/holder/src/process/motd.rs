//! The text that stands before a session's output.

/// A text as lines of their own before the output: a terminal needs the way back to the first column as well.
pub(super) fn lines_of(text: &[u8], tty: bool) -> Vec<u8> {
    let mut lines = Vec::with_capacity(text.len() + 2);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").filter(|_| tty).unwrap_or(line);
        lines.extend_from_slice(line);
        lines.extend_from_slice(if tty { b"\r\n" } else { b"\n" });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_whole_lines() {
        for (text, tty, pipes) in [
            ("", "", ""),
            ("a", "a\r\n", "a\n"),
            ("a\nb\n", "a\r\nb\r\n", "a\nb\n"),
            ("a\r\n\n", "a\r\n\r\n", "a\r\n\n"),
        ] {
            assert_eq!(lines_of(text.as_bytes(), true), tty.as_bytes(), "{text:?}");
            assert_eq!(lines_of(text.as_bytes(), false), pipes.as_bytes(), "{text:?}");
        }
    }
}
