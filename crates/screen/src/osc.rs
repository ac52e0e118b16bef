//! What operating system commands do.

use alacritty_terminal::vte::ansi::{Handler, Hyperlink};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::colour;
use crate::reading::Reading;
use crate::signal::{
    Clipboard, ProgressReport, ProgressState, PromptMark, Signal, StatusReport, StatusState,
};

/// The longest title, directory or message that is kept.
const MAX_TEXT_LEN: usize = 4096;
/// The longest link.
const MAX_LINK_LEN: usize = 2083;

impl Reading<'_> {
    pub(crate) fn command(&mut self, body: &[u8], bell: bool, at: usize) {
        let (number, rest) = match body.iter().position(|byte| *byte == b';') {
            Some(split) => (&body[..split], &body[split + 1..]),
            None => (body, &b""[..]),
        };
        match number {
            b"0" | b"2" => self.set_title(words(rest), at),
            b"4" => self.palette(rest, bell),
            b"7" => {
                if let Some(path) = path(rest) {
                    self.set_directory(path, at);
                }
            }
            b"8" => self.link(rest, at),
            b"9" => self.conemu(rest, at),
            b"10" | b"11" | b"12" => self.dynamic(number[1] - b'0', rest, bell),
            b"52" => self.clipboard(rest, at),
            b"99" => {
                let body =
                    rest.iter().position(|byte| *byte == b';').map_or(rest, |split| &rest[split + 1..]);
                self.notify(String::new(), words(body), at);
            }
            b"104" => self.reset_palette(rest),
            b"110" | b"111" | b"112" => {
                self.terminal.term.reset_color(colour::DYNAMIC + usize::from(number[2] - b'0'));
            }
            b"133" | b"633" => {
                if let Some(mark) = mark(rest) {
                    let row = self.terminal.cursor().line.0 as usize;
                    let number = self.terminal.number(row);
                    self.terminal.notes.mark(number, mark);
                    self.signal(at, Signal::Prompt(mark));
                }
            }
            b"777" => {
                if let Some(rest) = rest.strip_prefix(b"notify;") {
                    let split = rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len());
                    let body = rest.get(split + 1..).unwrap_or_default();
                    self.notify(words(&rest[..split]), words(body), at);
                }
            }
            b"7501" => self.status(rest, bell, at),
            _ => {}
        }
    }

    fn set_directory(&mut self, path: String, at: usize) {
        if self.terminal.notes.directory.as_ref() != Some(&path) {
            self.terminal.notes.directory = Some(path.clone());
            self.signal(at, Signal::Directory(path));
        }
    }

    fn notify(&mut self, title: String, body: String, at: usize) {
        if !title.is_empty() || !body.is_empty() {
            self.signal(at, Signal::Notification { title, body });
        }
    }

    fn palette(&mut self, rest: &[u8], bell: bool) {
        let mut parts = rest.split(|byte| *byte == b';');
        while let (Some(index), Some(value)) = (parts.next(), parts.next()) {
            let Some(index) = number(index).filter(|index| *index < 256) else { continue };
            if value == b"?" {
                self.answer_colour(&format!("4;{index}"), index, bell);
            } else if let Some(rgb) = colour::parse(value) {
                self.terminal.term.set_color(index, rgb);
            }
        }
    }

    fn reset_palette(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            for index in 0..256 {
                self.terminal.term.reset_color(index);
            }
        }
        for index in rest.split(|byte| *byte == b';').filter_map(number).filter(|index| *index < 256) {
            self.terminal.term.reset_color(index);
        }
    }

    /// Colours of text, background and cursor: one command may speak of all that follow.
    fn dynamic(&mut self, first: u8, rest: &[u8], bell: bool) {
        for (offset, value) in (usize::from(first)..3).zip(rest.split(|byte| *byte == b';')) {
            let index = colour::DYNAMIC + offset;
            if value == b"?" {
                self.answer_colour(&(10 + offset).to_string(), index, bell);
            } else if let Some(rgb) = colour::parse(value) {
                self.terminal.term.set_color(index, rgb);
            }
        }
    }

    fn link(&mut self, rest: &[u8], at: usize) {
        let Some(split) = rest.iter().position(|byte| *byte == b';') else { return };
        let (parameters, uri) = (&rest[..split], &rest[split + 1..]);
        let uri = str::from_utf8(uri)
            .ok()
            .filter(|uri| !uri.is_empty() && uri.len() <= MAX_LINK_LEN && !uri.chars().any(char::is_control));
        let Some(uri) = uri else { return self.terminal.term.set_hyperlink(None) };
        let id = parameters.split(|byte| *byte == b':').find_map(|pair| pair.strip_prefix(b"id="));
        let id = id
            .and_then(|id| str::from_utf8(id).ok())
            .filter(|id| id.len() <= 256 && !id.chars().any(char::is_control));
        // A link without an id is one with each other piece that points to the same place.
        let id = id.unwrap_or("");
        self.terminal.term.set_hyperlink(Some(Hyperlink { id: Some(id.to_owned()), uri: uri.to_owned() }));
        self.signal(at, Signal::Link(uri.to_owned()));
    }

    /// OSC 9: a message, unless it starts with the number of one of ConEmu's commands.
    fn conemu(&mut self, rest: &[u8], at: usize) {
        let mut parts = rest.split(|byte| *byte == b';');
        let first = parts.next().unwrap_or_default();
        match number(first) {
            Some(4) => {
                let state = parts.next().and_then(number).unwrap_or(0);
                let percent = parts.next().and_then(number).map(|percent| percent.min(100) as u8);
                let progress = |state, percent| Some(ProgressReport { state, percent });
                let progress = match state {
                    1 => progress(ProgressState::Normal, percent),
                    2 => progress(ProgressState::Error, percent),
                    3 => progress(ProgressState::Indeterminate, None),
                    4 => progress(ProgressState::Paused, percent),
                    _ => None,
                };
                if self.terminal.notes.progress != progress {
                    self.terminal.notes.progress = progress;
                    self.signal(at, Signal::Progress(progress));
                }
            }
            Some(9) => {
                let path = words(rest.get(2..).unwrap_or_default());
                if !path.is_empty() {
                    self.set_directory(path.trim_matches('"').to_owned(), at);
                }
            }
            Some(1..=12) => {}
            _ => self.notify(String::new(), words(rest), at),
        }
    }

    fn clipboard(&mut self, rest: &[u8], at: usize) {
        let Some(split) = rest.iter().position(|byte| *byte == b';') else { return };
        let data = &rest[split + 1..];
        let read = data == b"?";
        let payload = self.clipboard && !read;
        let payload = payload.then(|| String::from_utf8_lossy(data).into_owned());
        let size = if read { 0 } else { data.len() };
        self.signal(at, Signal::Clipboard(Clipboard { read, size, payload }));
    }

    fn status(&mut self, rest: &[u8], bell: bool, at: usize) {
        if rest == b"?" {
            return self.reply(if bell { "\x1b]7501;?\x07" } else { "\x1b]7501;?\x1b\\" });
        }
        let report = match report(rest) {
            Some(Report::Says(status)) => Some(status),
            Some(Report::Clears) => None,
            None => return,
        };
        // Parts of a program report for themselves; the screen's own status is the program's.
        let own = report.as_ref().is_none_or(|status| status.id.is_empty());
        if own {
            if self.terminal.notes.status == report {
                return;
            }
            self.terminal.notes.status.clone_from(&report);
        }
        self.signal(at, Signal::Status(report));
    }
}

/// A status report.
enum Report {
    Says(StatusReport),
    /// The last one is taken back.
    Clears,
}

fn report(body: &[u8]) -> Option<Report> {
    let body = str::from_utf8(body).ok().filter(|body| body.len() <= MAX_TEXT_LEN)?;
    let value = |key: &str| {
        let mut pairs = body.split(':').filter_map(|pair| pair.split_once('='));
        pairs.rfind(|(name, _)| *name == key).map(|(_, value)| value)
    };
    // The state alone is also seen, without its key.
    let bare = body.split(':').next().filter(|first| !first.contains('='));
    let id = value("id").unwrap_or_default().to_owned();
    let state = match value("state").or(bare)? {
        "idle" => StatusState::Idle,
        "working" => StatusState::Working,
        "blocked" => StatusState::Blocked,
        "done" => StatusState::Done,
        "error" => StatusState::Error,
        "clear" if id.is_empty() => return Some(Report::Clears),
        _ => return None,
    };
    let message = value("msg").and_then(|text| STANDARD.decode(text).ok());
    Some(Report::Says(StatusReport {
        state,
        id,
        kind: value("kind").map(str::to_owned),
        progress: value("progress").and_then(|text| text.parse().ok()).filter(|percent| *percent <= 100),
        app: value("app").map(str::to_owned),
        message: message.map(|bytes| words(&bytes)).filter(|text| !text.is_empty()),
    }))
}

fn mark(rest: &[u8]) -> Option<PromptMark> {
    let mut parts = rest.split(|byte| *byte == b';');
    Some(match parts.next()? {
        b"A" | b"P" | b"N" => PromptMark::PromptStart,
        b"B" | b"I" => PromptMark::InputStart,
        b"C" => PromptMark::OutputStart,
        b"D" => {
            let exit = parts.next().and_then(|code| str::from_utf8(code).ok()?.parse().ok());
            PromptMark::Done { exit }
        }
        _ => return None,
    })
}

/// The path in `file://host/path`, or a path as it is.
fn path(uri: &[u8]) -> Option<String> {
    let path = match uri.strip_prefix(b"file://") {
        Some(rest) => &rest[rest.iter().position(|byte| *byte == b'/')?..],
        None if uri.starts_with(b"/") => uri,
        None => return None,
    };
    let mut bytes = Vec::with_capacity(path.len());
    let mut at = 0;
    while at < path.len() {
        let digits = path.get(at + 1..at + 3).and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if path[at] == b'%' => {
                bytes.push(byte);
                at += 3;
            }
            _ => {
                bytes.push(path[at]);
                at += 1;
            }
        }
    }
    Some(words(&bytes))
}

/// Text from a program in one line, without control characters, and not without end.
fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut words: String = text.chars().filter(|c| !c.is_control()).collect();
    if words.len() > MAX_TEXT_LEN {
        let end = (0..=MAX_TEXT_LEN).rev().find(|at| words.is_char_boundary(*at)).unwrap_or(0);
        words.truncate(end);
    }
    words.trim().to_owned()
}

fn number(text: &[u8]) -> Option<usize> {
    let text = str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok()
}
