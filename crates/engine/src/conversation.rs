//! What an agent's profile makes of a spec: its command line, its conversation and its variables.

use wharf_agents::Profile;
use wharf_model::{Change, Conversation, Event, Home, Spec, Text, Ticket};

use crate::Result;
use crate::attend::{profile_of, profiles};
use crate::shared::{Shared, random};

impl Shared {
    /// Makes the command line of a spec that names an agent.
    pub(crate) fn expand(&self, spec: &mut Spec) -> Result<()> {
        let Some(agent) = &mut spec.agent else { return Ok(()) };
        let profile = profiles(&self.home, spec.dir.as_path())?.named(&agent.name)?;
        let launch = profile.launch(&agent.conversation, &agent.arguments, &uuid()?)?;
        agent.id = launch.conversation;
        spec.argv = launch.argv;
        // A container does not have this host's programs.
        let command = if spec.container.is_some() { &self.inner_hook_command } else { &self.hook_command };
        if let Some(command) = command.as_ref().filter(|_| agent.hooks) {
            let hooks = profile.session_hooks(command, &agent.arguments);
            // Before the user's own arguments, the last of which may be a prompt.
            let place = spec.argv.len() - agent.arguments.len();
            spec.argv.splice(place..place, hooks.iter().map(|word| Text::from(word.as_str())));
        }
        Ok(())
    }

    /// The command line of another run: it goes on with the conversation, where there is one.
    pub(crate) fn expand_again(&self, ticket: &mut Ticket) -> Result<()> {
        let Some(agent) = &mut ticket.spec.agent else { return Ok(()) };
        let events = self.home.session(&ticket.id).join(Home::EVENTS);
        let begun =
            crate::attend::Journal::read::<Event>(&events)?.iter().any(|event| match event.kind.as_str() {
                "turn.started" => true,
                "message" => event.data.get("status").is_some_and(|status| status == "confirmed"),
                _ => false,
            });
        // One without a turn is not on the agent's disk, and cannot be resumed.
        let profile = profiles(&self.home, ticket.spec.dir.as_path())?.named(&agent.name)?;
        match &agent.id {
            Some(id) if begun && !profile.launch.resume.is_empty() => {
                agent.conversation = Conversation::Resume(id.clone());
            }
            _ => {}
        }
        self.expand(&mut ticket.spec)
    }

    /// Takes away variables that another agent around this one left, and sets what its profile says.
    pub(crate) fn agent_variables(&self, ticket: &Ticket, env: &mut Vec<(Text, Text)>) {
        if !self.shelf.attends(&self.home, ticket) {
            return;
        }
        let profile: &Profile = &profile_of(&self.home, ticket);
        let asked = |name: &Text| {
            ticket.spec.env.changes.iter().any(|change| matches!(change, Change::Set(set, _) if set == name))
        };
        env.retain(|(name, _)| asked(name) || !profile.env.strips(&name.lossy()));
        for (name, value) in &profile.env.set {
            if !env.iter().any(|(known, _)| known.as_bytes() == name.as_bytes()) {
                env.push((name.as_str().into(), value.as_str().into()));
            }
        }
    }
}

/// A random UUID, as agents name conversations.
fn uuid() -> Result<String> {
    let (high, low) = (random()?, random()?);
    let bits = (u128::from(high) << 64) | u128::from(low);
    let bits = bits & !(0xf << 76) | (4 << 76);
    let bits = bits & !(0x3 << 62) | (2 << 62);
    let hex = format!("{bits:032x}");
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_a_random_one() {
        let id = uuid().unwrap();
        assert_eq!(id.len(), 36);
        assert_eq!(id.as_bytes()[14], b'4', "{id}");
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
        assert_ne!(id, uuid().unwrap());
    }
}
