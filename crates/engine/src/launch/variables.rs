//! Builds the variables of a session's command.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wharf_model::{Change, Environment, EnvironmentBase, Home, Text, Ticket};

use crate::Result;
use crate::instance::shared::Shared;
use crate::launch::login_shell;

impl Shared {
    /// The variables of a session's command: base, changes, then what Wharf tells it.
    pub(crate) async fn variables(&self, ticket: &Ticket) -> Result<Vec<(Text, Text)>> {
        let environment = &ticket.spec.env;
        let mut base = match environment.base {
            EnvironmentBase::Caller => environment.caller.clone(),
            EnvironmentBase::Empty => Vec::new(),
            EnvironmentBase::Login => {
                let shell = login_shell::shell(&environment.caller);
                Arc::unwrap_or_clone(self.login.variables(&shell, self.timeouts.login).await?)
            }
        };
        // Whoever asks for nothing at all gets nothing at all.
        if ticket.spec.tty && environment.base != EnvironmentBase::Empty {
            let term = base.iter_mut().find(|(name, _)| name.as_bytes() == b"TERM");
            match term {
                Some((_, value)) if value.is_empty() || value.as_bytes() == b"dumb" => *value = TERM.into(),
                Some(_) => {}
                None => base.push(("TERM".into(), TERM.into())),
            }
        }
        let mut vars = environment.apply(base);
        let set = |name: &str, value: Text| Change::Set(name.into(), value);
        let mut ours = vec![
            set("WHARF_SESSION", ticket.name.as_str().into()),
            set("WHARF_SESSION_ID", ticket.id.as_str().into()),
            set("WHARF_TOKEN", ticket.token.as_str().into()),
            set("WHARF_STATE", self.home.state().into()),
            // One that came with the caller's variables is another instance's.
            if self.events_served.load(Ordering::Acquire) {
                set("WHARF_EVENTS", self.home.events_socket().into())
            } else {
                Change::Unset("WHARF_EVENTS".into())
            },
        ];
        ours.extend(ticket.spec.ports.iter().map(|port| set(&port.variable, port.number.to_string().into())));
        // One that came with the caller's variables is another session's.
        ours.push(match ticket.spec.prompt {
            Some(_) => set("WHARF_PROMPT_FILE", self.home.session(&ticket.id).join(Home::PROMPT).into()),
            None => Change::Unset("WHARF_PROMPT_FILE".into()),
        });
        ours.push(
            match crate::launch::secrets::dir_for_command(&self.home.session(&ticket.id), &ticket.spec) {
                Some(dir) => set("WHARF_SECRETS", dir),
                None => Change::Unset("WHARF_SECRETS".into()),
            },
        );
        vars = Environment { changes: ours, ..Environment::default() }.apply(vars);
        Ok(vars)
    }
}

/// What a terminal is when the caller's own is missing or says that it can do nothing.
const TERM: &str = "xterm-256color";
