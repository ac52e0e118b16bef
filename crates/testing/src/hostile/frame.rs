//! A holder's frames, as somebody writes them who means no good. Nothing of the product is used here: it would refuse to.

/// Kinds of what a holder says.
pub(super) const WELCOME: u8 = 128;
pub(super) const ACK: u8 = 129;
pub(super) const OUTPUT: u8 = 131;
pub(super) const EXIT: u8 = 133;
pub(super) const NEWS: u8 = 134;
pub(super) const RECALL: u8 = 135;

/// Everything that a holder may say that it can do.
const WELCOME_TEXT: &str = r#"{"role":"holder","features":["input-ack","cancel","pending","resize","tree-signal","read","duplicates","resume","exec","daemon","usage","borrow"],"version":"\u001b]0;owned\u0007","status":{"attached":4294967295,"pid":1,"size":{"cols":65535,"rows":65535}},"log_start":0,"log_end":18446744073709551615}"#;

/// A frame with the length that it has.
pub(super) fn frame(kind: u8, seq: u32, payload: &[u8]) -> Vec<u8> {
    [header(kind, seq, payload.len() as u32).as_slice(), payload].concat()
}

/// A header with any length.
pub(super) fn header(kind: u8, seq: u32, length: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[0] = kind;
    bytes[4..8].copy_from_slice(&seq.to_le_bytes());
    bytes[8..].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// A hello that promises all.
pub(super) fn welcome(seq: u32) -> Vec<u8> {
    frame(WELCOME, seq, WELCOME_TEXT.as_bytes())
}

/// Output at an offset.
pub(super) fn output(offset: u64, bytes: &[u8]) -> Vec<u8> {
    let payload = [&offset.to_le_bytes()[..], &[0], bytes].concat();
    frame(OUTPUT, 0, &payload)
}
