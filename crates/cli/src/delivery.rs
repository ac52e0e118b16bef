//! A message from the command line: its text, and how it is to be delivered.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf_api::SendRequest;
use wharf_model::{Failure, Manner, Millis, When, key_bytes};

use crate::duration::now;
use crate::trouble::invalid;

/// The text, and how it is to be delivered.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, clap::Args)]
pub(crate) struct DeliveryArgs {
    /// The text; several words are joined by spaces, `-` reads standard input
    #[arg(value_name = "TEXT")]
    text: Vec<OsString>,
    /// Read the text from a file, `-` for standard input; a line feed at its very end is left out
    #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    /// When it may be typed: idle waits for the agent, now means at once or not at all
    #[arg(long, value_name = "idle|now", default_value = "idle", value_parser = when)]
    when: When,
    /// Do not wait for a draft in the composer, for somebody who types, or for the end of a block that was begun: add to it
    #[arg(long)]
    now: bool,
    /// Delete a draft that stands at the prompt first; without this, or --now, the message waits until it is gone
    #[arg(long, conflicts_with = "now")]
    clear: bool,
    /// Stop the agent's turn first
    #[arg(long)]
    interrupt: bool,
    /// The text is meant as it is, though the agent would take it for a command
    #[arg(long)]
    raw: bool,
    /// The key that submits it: Enter, C-j; else what the agent's profile says
    #[arg(long, value_name = "KEY")]
    submit: Option<String>,
    /// A name for this message: sent again with the same, it is not typed again
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// More than this is no message.
const MAX_TEXT_LEN: u64 = 16 << 20;

fn when(text: &str) -> Result<When, String> {
    match text {
        "idle" => Ok(When::Idle),
        "now" => Ok(When::Now),
        _ => Err(format!("{text:?} is none of idle, now")),
    }
}

impl DeliveryArgs {
    /// The request. It expires with the timeout: what was not typed in time is never typed later.
    pub(crate) fn request(
        self,
        name: &str,
        timeout: Duration,
        no_submit: bool,
    ) -> Result<SendRequest, Failure> {
        if let Some(key) = &self.submit {
            key_bytes(key).map_err(|error| {
                invalid(error.to_string()).hint("keys are Enter, Escape, Tab, C-j, M-Enter and the like")
            })?;
        }
        let from_stdin = matches!(self.text.as_slice(), [only] if only == "-");
        let text = match (&self.file, self.text.as_slice()) {
            (Some(file), _) => read(file, name)?,
            (None, _) if from_stdin => read(Path::new("-"), name)?,
            (None, []) => {
                return Err(invalid("there is nothing to send")
                    .hint("give TEXT, -f FILE, or - to read standard input"));
            }
            (None, words) => utf8(words.join(&OsString::from(" ")).into_encoded_bytes(), name)?,
        };
        if text.is_empty() {
            return Err(
                invalid("the text is empty").hint(format!("`wharf keys {name} Enter` presses the key alone"))
            );
        }
        let expires = now().0.saturating_add(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        let manner = Manner {
            // Without one, a request whose answer was lost could not be made again.
            key: Some(self.key.map_or_else(fresh_key, Ok)?),
            when: self.when,
            submit: self.submit,
            no_submit,
            interrupt: self.interrupt,
            raw: self.raw,
            over_draft: self.now,
            clear_draft: self.clear,
            expires: Some(Millis(expires)),
        };
        Ok(SendRequest { text, manner })
    }
}

fn fresh_key() -> Result<String, Failure> {
    let (a, b) = (getrandom::u64(), getrandom::u64());
    match (a, b) {
        (Ok(a), Ok(b)) => Ok(format!("{a:016x}{b:016x}")),
        (Err(error), _) | (_, Err(error)) => Err(Failure::new(
            wharf_model::Code::Internal,
            format!("the system gives no random numbers: {error}"),
        )),
    }
}

fn read(file: &Path, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let from_stdin = file.as_os_str() == "-";
    if from_stdin && io::stdin().is_terminal() {
        crate::output::note("reading the text from this terminal; ctrl-d ends it");
    }
    let read = if from_stdin {
        io::stdin().lock().take(MAX_TEXT_LEN + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(MAX_TEXT_LEN + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| invalid(format!("cannot read {}: {error}", file.display())))?;
    if bytes.len() as u64 > MAX_TEXT_LEN {
        return Err(invalid(format!("{} is larger than 16 MiB", file.display()))
            .hint("write it to a file, and send its name"));
    }
    // The end of its last line, as a shell's $(…) has it: typed, it would be a line of its own.
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    utf8(bytes, name)
}

fn utf8(bytes: Vec<u8>, name: &str) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        invalid(format!("the text is not UTF-8: byte {at} begins no character"))
            .hint(format!("`wharf write {name}` types bytes as they are"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &[&str]) -> DeliveryArgs {
        DeliveryArgs {
            text: text.iter().map(OsString::from).collect(),
            file: None,
            when: When::Idle,
            now: false,
            interrupt: false,
            clear: false,
            raw: false,
            submit: None,
            key: None,
        }
    }

    fn of_file(bytes: &[u8]) -> Result<SendRequest, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let args = DeliveryArgs { file: Some(file.path().to_owned()), ..args(&[]) };
        args.request("a", Duration::from_secs(1), false)
    }

    #[test]
    fn every_message_has_a_key_of_its_own_and_an_end() {
        let one = args(&["two", " words "]).request("a", Duration::from_secs(60), true).unwrap();
        let two = args(&["x"]).request("a", Duration::from_secs(60), false).unwrap();
        assert_eq!(one.text, "two  words ");
        assert!(one.manner.no_submit && one.manner.key != two.manner.key);
        assert!(one.manner.expires.unwrap().0 > now().0 + 50_000);
        let named = DeliveryArgs { key: Some("k".into()), ..args(&["x"]) };
        assert_eq!(named.request("a", Duration::ZERO, false).unwrap().manner.key.as_deref(), Some("k"));
    }

    #[test]
    fn one_line_feed_at_the_end_of_a_file_is_left_out() {
        for (bytes, text) in
            [(&b"a\nb\n"[..], "a\nb"), (b"a\r\n", "a"), (b"a\n\n", "a\n"), (b" a\t ", " a\t ")]
        {
            assert_eq!(of_file(bytes).unwrap().text, text);
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let failure = of_file(b"ab\xff").unwrap_err();
        assert!(failure.message.contains("byte 2"), "{failure}");
        assert!(failure.hint.unwrap().contains("wharf write a"));
        assert!(of_file(b"\n").is_err());
        assert!(args(&[]).request("a", Duration::ZERO, false).is_err());
        let keyed = DeliveryArgs { submit: Some("Nonsense".into()), ..args(&["x"]) };
        assert!(keyed.request("a", Duration::ZERO, false).is_err());
    }
}
