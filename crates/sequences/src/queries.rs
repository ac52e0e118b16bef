//! Detects questions to the terminal in output without modelling a screen.

use crate::csi::Csi;
use crate::question::{TerminalQuestion, csi_question, dcs_question, escape_question, osc_question};
use crate::rules::ScanRules;
use crate::scanner::{Osc, Scanner, Sink};

/// Finds the questions that programs ask their terminal, without a model of it.
///
/// It is for sessions that nobody looks at: as long as nothing is asked, nothing has to be painted. Which answer is
/// due only a screen can say.
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

impl Asked {
    fn note(&mut self, question: Option<TerminalQuestion>) {
        self.0 |= question == Some(TerminalQuestion::Answered);
    }
}

impl Sink for Asked {
    const RULES: ScanRules = ScanRules::MODEL;

    fn text(&mut self, _: &[u8], _: usize) {}

    fn control(&mut self, _: u8, _: usize) {}

    fn escape(&mut self, body: &[u8], _: usize) {
        self.note(escape_question(body));
    }

    fn csi(&mut self, whole: &[u8], _: usize) {
        self.note(whole.get(2..).and_then(Csi::parse).and_then(|csi| csi_question(&csi)));
    }

    fn osc(&mut self, osc: &Osc<'_>, _: usize) {
        self.note(osc_question(osc.body));
    }

    fn dcs(&mut self, body: &[u8], _: usize) {
        self.note(dcs_question(body));
    }
}
