//! Lets through what a policy allows of terminal output, byte for byte, for a terminal that we do not know.

use wharf_sequences::{Osc, ScanRules, Scanner, Sink};

/// What a filter lets through.
pub(crate) trait Policy {
    /// A control character outside a string.
    fn control(&mut self, byte: u8, out: &mut Vec<u8>);
    /// One byte of text that is no control.
    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        out.push(byte);
    }
    /// `ESC`, intermediates, final: whether it passes.
    fn escape(&mut self, body: &[u8]) -> bool;
    /// The part after `CSI`, parameters to final byte: whether it passes.
    fn csi(&mut self, body: &[u8]) -> bool;
    /// The part between `OSC` and its end: whether it passes.
    fn osc(&mut self, body: &[u8]) -> bool;
    /// The part after `DCS` up to its final byte: whether the string passes.
    fn dcs(&mut self, head: &[u8]) -> bool;
}

/// A filter of output; `P` decides.
pub(crate) struct Filter<P> {
    policy: P,
    scanner: Scanner,
}

impl<P: Policy> Filter<P> {
    pub(crate) fn new(policy: P) -> Self {
        Self { policy, scanner: Scanner::default() }
    }

    pub(crate) fn policy(&mut self) -> &mut P {
        &mut self.policy
    }

    /// Whether a sequence is being dropped at this moment.
    pub(crate) fn drops(&self) -> bool {
        self.scanner.drops()
    }

    /// Filters a piece of output.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.scanner.feed(bytes, &mut Filtering { policy: &mut self.policy, out });
    }

    /// Gives back what is held for a decision, as it came. What is being dropped goes on being dropped.
    pub(crate) fn release(&mut self, out: &mut Vec<u8>) {
        if !self.drops() {
            out.append(&mut self.scanner.unfinished());
            self.scanner = Scanner::default();
        }
    }
}

struct Filtering<'a, P> {
    policy: &'a mut P,
    out: &'a mut Vec<u8>,
}

impl<P: Policy> Sink for Filtering<'_, P> {
    const RULES: ScanRules = ScanRules::ANY_TERMINAL;

    fn text(&mut self, bytes: &[u8], _: usize) {
        for &byte in bytes {
            if byte.is_ascii_control() {
                self.policy.control(byte, self.out);
            } else {
                self.policy.text(byte, self.out);
            }
        }
    }

    fn control(&mut self, byte: u8, _: usize) {
        self.policy.control(byte, self.out);
    }

    fn escape(&mut self, body: &[u8], _: usize) {
        if self.policy.escape(body) {
            self.out.push(0x1b);
            self.out.extend_from_slice(body);
        }
    }

    fn csi(&mut self, whole: &[u8], _: usize) {
        if self.policy.csi(&whole[2..]) {
            self.out.extend_from_slice(whole);
        }
    }

    fn osc(&mut self, osc: &Osc<'_>, _: usize) {
        if self.policy.osc(osc.body) {
            self.out.extend_from_slice(&osc.introducer);
            self.out.extend_from_slice(osc.body);
            self.out.extend_from_slice(osc.end.bytes());
        }
    }

    fn dcs(&mut self, _: &[u8], _: usize) {}

    fn passes(&mut self, head: &[u8]) -> bool {
        self.policy.dcs(head)
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }
}
