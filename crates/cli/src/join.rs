//! How a person joins a session with a program of its backend, such as tmux.

use serde::Deserialize;
use wharf_model::{Text, Ticket};

/// What a backend that has such a program keeps in its sessions' tickets.
#[derive(Deserialize)]
struct Private {
    join: Vec<Text>,
}

/// The command as a line that a shell reads; none where the backend has none.
pub(crate) fn command(ticket: &Ticket) -> Option<Vec<u8>> {
    let private: Private = serde_json::from_str(ticket.private.as_deref()?).ok()?;
    let words: Vec<Vec<u8>> = private.join.iter().map(|word| quoted(word.as_bytes())).collect();
    let mut line = words.join(&b' ');
    line.push(b'\n');
    Some(line)
}

/// One word, whatever is in it.
fn quoted(word: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,".contains(byte);
    if !word.is_empty() && word.iter().all(plain) {
        return word.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word() {
        assert_eq!(quoted(b"/run/a-b.c"), b"/run/a-b.c");
        // A leading = means something to some shells.
        assert_eq!(quoted(b"=abc"), b"'=abc'");
        assert_eq!(quoted(b""), b"''");
        assert_eq!(quoted(b"it's $(x)"), b"'it'\\''s $(x)'");
    }
}
