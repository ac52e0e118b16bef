//! Reads a session's events from the daemon, and follows them until its end.

use wharf_model::Event;

use crate::Client;
use crate::client::Answer;
use crate::line_reader::LineReader;
use crate::query::Query;
use crate::target::of;

/// A session's events as they come.
#[derive(Debug)]
pub struct EventReader(LineReader);

impl Client {
    /// A session's events after a number: those that there are, and with `follow` those that come until its end.
    pub async fn events(&self, key: &str, after: u64, follow: bool) -> Answer<EventReader> {
        let query = Query::default().push("after", after.to_string()).push("follow", follow.to_string());
        let body = self.stream(query.after(&of(key, "/events")?)).await?;
        Ok(EventReader(LineReader::new(body, "ask again after the last event that came")))
    }
}

impl EventReader {
    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Answer<Option<Event>> {
        self.0.next().await
    }
}
