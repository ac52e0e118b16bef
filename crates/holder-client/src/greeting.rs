//! The first frame of a client, and how long its answer may take.

use std::io;
use std::time::Duration;

use wharf_holder::wire::{FEATURES, Hello};

/// How long a holder may take from the first knock to who it is.
pub(crate) const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// What a client of this role says first: what it can do, and its version for people, where it has one to tell.
pub(crate) fn hello(role: &str, version: &str) -> io::Result<Vec<u8>> {
    let features = FEATURES.iter().map(|feature| (*feature).to_owned()).collect();
    let hello = Hello { role: role.to_owned(), features, version: version.to_owned(), ..Hello::default() };
    Ok(serde_json::to_vec(&hello)?)
}
