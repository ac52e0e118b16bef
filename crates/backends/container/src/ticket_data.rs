//! What a ticket says about the session's container.

use serde::{Deserialize, Serialize};
use wharf_holder::wire::Through;
use wharf_model::Ticket;

use crate::engine::endpoint::Endpoint;

/// Where the container is. The engine is named because today's default may not be tomorrow's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TicketData {
    /// The engine's address.
    pub(crate) endpoint: Option<String>,
    /// The engine's id of the container.
    pub(crate) container: Option<String>,
    /// The fingerprint of a container that several sessions share. The name on disk is older.
    #[serde(rename = "berth", skip_serializing_if = "Option::is_none")]
    pub(crate) shared: Option<String>,
    /// What the holder knows about a container that somebody else started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) through: Option<Through>,
}

/// Whether the container of a session stays after its end.
pub(crate) fn is_kept(ticket: &Ticket) -> bool {
    ticket.spec.container.as_ref().is_some_and(|container| container.keep)
}

impl TicketData {
    /// Reads a ticket's data. A ticket without any has the default.
    pub(crate) fn of(ticket: &Ticket) -> Self {
        let text = ticket.private.as_deref().unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The data of a container that is about to be made (without an id), or was made.
    pub(crate) fn at(endpoint: &Endpoint, container: Option<String>) -> Self {
        Self { endpoint: Some(endpoint.address.clone()), container, shared: None, through: None }
    }

    /// Whether the container is on another host.
    pub(crate) fn is_remote(&self) -> bool {
        self.endpoint.as_deref().is_some_and(|address| Endpoint::named(address, "").is_remote())
    }

    /// The text for a ticket.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A ticket for tests, of a session in a directory.
#[cfg(test)]
pub(crate) fn test_ticket(home: &std::path::Path) -> Ticket {
    Ticket {
        id: wharf_model::SessionId::new(wharf_model::Millis(1), 7),
        name: "n".parse().unwrap(),
        run: 1,
        backend: "docker".to_owned(),
        dir: home.into(),
        token: "t".to_owned(),
        created: wharf_model::Millis(1),
        started: wharf_model::Millis(1),
        holder: None,
        command: None,
        scope: wharf_model::Scope::default(),
        spec: wharf_model::Spec::new(["x"], std::path::Path::new("/")),
        private: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_keep_the_names_that_they_have_on_disk() {
        let json = r#"{"endpoint":"unix:///x","container":"c","berth":"f"}"#;
        let data: TicketData = serde_json::from_str(json).unwrap();
        assert_eq!(data.shared.as_deref(), Some("f"));
        assert_eq!(data.text(), json);
    }
}
