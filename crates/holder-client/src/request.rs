//! The payloads of requests that are no JSON.

use wharf_model::Size;

/// That of [`Kind::Resize`](wharf_holder::frame::Kind::Resize).
pub(crate) fn resize(size: Size) -> [u8; 4] {
    let [c0, c1] = size.cols.to_le_bytes();
    let [r0, r1] = size.rows.to_le_bytes();
    [c0, c1, r0, r1]
}

/// That of [`Kind::Signal`](wharf_holder::frame::Kind::Signal): to the command, or to the whole tree.
pub(crate) fn signal(signal: i32, tree: bool) -> [u8; 5] {
    let mut payload = [u8::from(tree); 5];
    payload[..4].copy_from_slice(&signal.to_le_bytes());
    payload
}
