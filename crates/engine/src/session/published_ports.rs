//! Answers where a session's ports are reached from the host.

use wharf_model::{Code, Failure, Published};

use crate::Result;
use crate::session::session_handle::SessionHandle;

impl SessionHandle {
    /// The ports of a session, and where each is reached from the host.
    pub async fn published(&self) -> Result<Vec<Published>> {
        let handle = self.entry().await?;
        let (session, ticket) = (handle.session(), handle.ticket());
        if session.state.is_over() {
            let message = format!("session {} has ended, and its ports are free again", session.name);
            return Err(Failure::new(Code::Ended, message)
                .hint(format!("`wharf restart {}` starts it again", session.name)));
        }
        let reserved = session.ports.iter().filter(|port| port.number != 0);
        let Some(publisher) = self.engine.shared.backend(&ticket.backend)?.publisher() else {
            // A session of this host has this host's ports.
            return Ok(reserved
                .map(|port| Published {
                    inside: port.number,
                    protocol: "tcp".to_owned(),
                    address: "127.0.0.1".to_owned(),
                    port: port.number,
                    variable: Some(port.variable.clone()),
                })
                .collect());
        };
        let mut published = self.within(publisher.published(&ticket)).await?;
        for port in reserved {
            for found in published.iter_mut().filter(|found| found.inside == port.number) {
                found.variable = Some(port.variable.clone());
            }
        }
        published.sort();
        Ok(published)
    }
}
