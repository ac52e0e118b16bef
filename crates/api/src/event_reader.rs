use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use wharf_model::{Code, Event, Failure};

use crate::client::{Answer, decode, of};
use crate::query::Query;
use crate::{Client, PROBLEM_TRAILER, Problem};

/// A session's events as they come.
#[derive(Debug)]
pub struct EventReader {
    body: Incoming,
    /// The part of a line that has come.
    part: BytesMut,
    /// How much of it has no line feed.
    looked: usize,
}

/// The most that one event may have: more than the daemon takes from anybody.
const LARGEST: usize = 64 << 20;

impl Client {
    /// A session's events after a number: those that there are, and with `follow` those that come until its end.
    pub async fn events(&self, key: &str, after: u64, follow: bool) -> Answer<EventReader> {
        let query = Query::default().push("after", after.to_string()).push("follow", follow.to_string());
        let body = self.stream(query.after(&of(key, "/events")?)).await?;
        Ok(EventReader { body, part: BytesMut::new(), looked: 0 })
    }
}

impl EventReader {
    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Answer<Option<Event>> {
        loop {
            if let Some(at) = self.part[self.looked..].iter().position(|byte| *byte == b'\n') {
                let line = self.part.split_to(self.looked + at + 1);
                self.looked = 0;
                // An empty one only says that the daemon is there.
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return decode(&line).map(Some);
            }
            self.looked = self.part.len();
            if self.looked > LARGEST {
                return Err(Failure::new(Code::Internal, "the daemon sends an event without an end"));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| {
                Failure::new(Code::Unreachable, format!("the daemon's stream broke off: {error}"))
                    .hint("ask again after the last event that came")
            })?;
            match frame.into_data() {
                Ok(bytes) => self.part.extend_from_slice(&bytes),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    if let Some(problem) = trailers.get(PROBLEM_TRAILER) {
                        return Err(decode::<Problem>(problem.as_bytes())?.into());
                    }
                }
            }
        }
    }
}
