//! What is heard of an agent: from its terminal, its stream, its record and itself.

use std::sync::Arc;
use std::time::Instant;

use wharf_agents::StreamJson;
use wharf_model::{Offset, Source, State};
use wharf_screen::Signal;

use crate::deliver::proof::transcript;
use crate::observe::agent_record::{self, Record};
use crate::observe::judge::Saying;
use crate::observe::observed::lock;
use crate::observe::observer::Attendant;
use crate::observe::signals;
use crate::observe::view::News;

impl Attendant {
    /// Begins to follow what the agent says by itself: in a stream of JSON, or in the record that it keeps.
    pub(super) async fn listen(&mut self) {
        let (profile, ticket) = (&self.attention.profile(), self.handle.ticket());
        if !self.tty && profile.streams(&ticket.spec.argv) {
            self.stream = Some(StreamJson::new(Arc::clone(profile)));
        }
        let since = agent_record::since(if ticket.started.0 > 0 { ticket.started } else { ticket.created });
        let found = transcript(&self.shared, &self.handle, &self.attention, since).await;
        self.record = found.map(Record::new);
    }

    pub(super) async fn read_record(&mut self) {
        let Some(record) = &mut self.record else { return };
        let Some(conversation) = record.poll(&self.attention).await else { return };
        self.shared.update(&self.handle, |session| {
            session.conversation.get_or_insert(conversation);
        });
    }

    /// Takes what the agent printed as JSON.
    pub(super) fn streamed(&mut self, offset: Offset, bytes: &[u8]) {
        let told = self.stream.as_mut().map(|stream| stream.feed(bytes)).unwrap_or_default();
        self.told(offset, told);
    }

    /// A last line may have no end.
    pub(super) fn stream_ended(&mut self, offset: Offset) {
        let told = self.stream.as_mut().filter(|_| self.handle.is_over()).map(StreamJson::finish);
        self.told(offset, told.unwrap_or_default());
    }

    /// What the agent wrote down last, before it ended.
    pub(super) async fn record_ended(&mut self) {
        if self.handle.is_over()
            && let Some(record) = &mut self.record
            && let Some(conversation) = record.finish(&self.attention).await
        {
            self.shared.update(&self.handle, |session| {
                session.conversation.get_or_insert(conversation);
            });
        }
    }

    fn told(&mut self, offset: Offset, told: Vec<wharf_agents::Told>) {
        for told in told {
            if let Err(failure) = self.attention.events.add(offset, "stream", &told.kind, told.data) {
                tracing::warn!(%failure, "an event is lost");
            }
            if let Some(state) = told.state {
                if state == State::Idle {
                    self.attention.turn_over(false);
                }
                let evidence = format!("the stream told {}", told.kind);
                let movement = format!("{evidence} at {offset:?}");
                let saying = Saying { state, rule: told.kind, evidence, movement, firm: false };
                self.judge.hear(Source::Agent, Some(saying), Instant::now());
            }
        }
    }

    pub(super) fn heard(&mut self, news: News) {
        self.owe(&news);
        for (offset, signal) in news.signals {
            let Some((kind, data)) = self.event(&signal) else { continue };
            if let Err(failure) = self.attention.events.add(offset, "terminal", kind, data) {
                tracing::warn!(%failure, kind, "an event is lost");
            }
        }
    }

    /// What an event says of a signal; nothing where it says nothing new.
    fn event(&mut self, signal: &Signal) -> Option<(&'static str, serde_json::Value)> {
        if let Signal::Title(title) = signal {
            let look = wharf_agents::Look { title, ..Default::default() };
            let (profile, budget) = (self.attention.profile(), self.attention.budget());
            let findings = budget.look(|| profile.recognise(&look));
            self.turned |= findings.iter().any(|found| found.state == State::Working);
            // A spinner in the title turns many times a second.
            let words: String = title.chars().filter(|c| c.is_alphanumeric() || *c == ' ').collect();
            let words = words.trim().to_owned();
            if words == self.title {
                return None;
            }
            self.title = words;
        }
        signals::event(signal)
    }

    /// Takes what the agent itself said.
    pub(super) fn tidings(&mut self) {
        for told in std::mem::take(&mut *lock(&self.attention.told)) {
            if let Some(saying) = told.saying() {
                self.turned |= saying.state == State::Working;
                if saying.state == State::Idle {
                    self.attention.turn_over(false);
                }
                self.judge.hear(Source::Agent, Some(saying), Instant::now());
            }
        }
    }
}
