//! Detects questions to the terminal in output without modelling a screen.

use crate::csi::Csi;
use crate::report::is_question;
use crate::scanner::{Scanner, Sink};

/// Finds the questions that programs ask their terminal, without a model of it.
///
/// It is for sessions that nobody looks at: as long as nothing is asked, nothing has to be painted. Which answer is
/// due only a [`Screen`](crate::Screen) can say.
#[derive(Debug, Clone, Default)]
pub struct Queries {
    scanner: Scanner,
}

impl Queries {
    /// A scanner at the start of output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at the next piece of output. Whether a question was completed in it.
    #[must_use]
    pub fn scan(&mut self, bytes: &[u8]) -> bool {
        let mut asked = Asked(false);
        self.scanner.feed(bytes, &mut asked);
        asked.0
    }
}

struct Asked(bool);

impl Sink for Asked {
    fn text(&mut self, _: &[u8], _: usize) {}

    fn escape(&mut self, body: &[u8], _: usize) {
        self.0 |= body == b"Z";
    }

    fn csi(&mut self, whole: &[u8], _: usize) {
        self.0 |= Csi::parse(whole).is_some_and(|csi| is_question(&csi));
    }

    fn osc(&mut self, body: &[u8], _: bool, _: usize) {
        let mut parts = body.split(|byte| *byte == b';');
        let number = parts.next().unwrap_or_default();
        self.0 |= matches!(number, b"4" | b"10" | b"11" | b"12" | b"7501") && parts.any(|part| part == b"?");
    }

    fn dcs(&mut self, body: &[u8], _: usize) {
        self.0 |= body.starts_with(b"$q") || body.starts_with(b"+q");
    }
}
