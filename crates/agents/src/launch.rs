//! Builds an agent's command line: a new conversation, an old one, or a copy of one.

use serde::Deserialize;
use wharf_model::{Code, Conversation, Failure, Text};

use crate::Profile;

/// How an agent is launched.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaunchRules {
    /// The program and what it always gets.
    pub argv: Vec<String>,
    /// Further arguments, which a user or a project adds.
    pub args: Vec<String>,
    /// Arguments that give a new conversation the id `{id}`.
    pub assign: Vec<String>,
    /// Arguments that go on with the conversation `{id}`.
    pub resume: Vec<String>,
    /// Arguments that go on with the directory's latest conversation.
    #[serde(rename = "continue")]
    pub latest: Vec<String>,
    /// Arguments that begin with a copy of the conversation `{id}`, as `{new}` where the agent can.
    pub fork: Vec<String>,
    /// Arguments by which the sender chose a conversation himself: none is assigned then.
    pub chosen: Vec<String>,
    /// First arguments that are commands of the program and not a conversation.
    pub commands: Vec<String>,
    /// What to do in order to get the program, for people.
    pub install: Option<String>,
    /// How a prompt that is kept in a file reaches it; not at all when absent.
    pub prompt: Option<PromptWay>,
}

/// How a prompt in a file reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptWay {
    /// It is the first message of the conversation, typed and receipted as any other.
    Message,
}

/// A command line that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<Text>,
    /// The conversation's id, where it is known before it begins.
    pub conversation: Option<String>,
}

impl Profile {
    /// The command line for a conversation. `fresh` is an id that nobody else has: a UUID.
    pub fn launch(
        &self,
        conversation: &Conversation,
        extra: &[Text],
        fresh: &str,
    ) -> Result<Launch, Failure> {
        let rules = &self.launch;
        let unable = |what: &str| {
            Failure::new(Code::Unsupported, format!("{} cannot {what} a conversation", self.title))
                .hint(format!("`wharf agents` shows what the profile {} can do", self.name))
        };
        if rules.argv.is_empty() {
            return Err(Failure::new(
                Code::Invalid,
                format!("the profile {} has no command to launch", self.name),
            )
            .hint("name the command: `wharf run -- COMMAND`"));
        }
        let (words, id) = match conversation {
            Conversation::New if rules.assign.is_empty() || self.chose(extra) => (Vec::new(), None),
            Conversation::New => (filled(&rules.assign, fresh), Some(fresh.to_owned())),
            Conversation::Continue if rules.latest.is_empty() => return Err(unable("continue")),
            Conversation::Continue => (rules.latest.clone(), None),
            Conversation::Resume(_) if rules.resume.is_empty() => return Err(unable("resume")),
            Conversation::Resume(id) => (filled(&rules.resume, checked(id)?), Some(id.clone())),
            Conversation::Fork(_) if rules.fork.is_empty() => return Err(unable("fork")),
            Conversation::Fork(id) => {
                // A copy has an id of its own; where it cannot be given, only the agent knows it.
                let given = rules.fork.iter().any(|word| word.contains("{new}"));
                let words = filled(&rules.fork, checked(id)?);
                let words = words.iter().map(|word| word.replace("{new}", fresh)).collect();
                (words, given.then(|| fresh.to_owned()))
            }
        };
        let own = rules.argv.iter().chain(&words).chain(&rules.args).map(|word| Text::from(word.as_str()));
        Ok(Launch { argv: own.chain(extra.iter().cloned()).collect(), conversation: id })
    }

    /// Whether the arguments already say which conversation, or that there is none.
    fn chose(&self, extra: &[Text]) -> bool {
        let first = extra.first().map(Text::lossy);
        first.is_some_and(|word| self.launch.commands.iter().any(|command| *command == word))
            || extra.iter().any(|word| {
                let word = word.lossy();
                let name = word.split_once('=').map_or(&*word, |(name, _)| name);
                self.launch.chosen.iter().any(|chosen| chosen == name)
            })
    }
}

fn filled(words: &[String], id: &str) -> Vec<String> {
    words.iter().map(|word| word.replace("{id}", id)).collect()
}

/// An id becomes an argument: it must not read as an option.
fn checked(id: &str) -> Result<&str, Failure> {
    if id.is_empty() || id.starts_with('-') || id.chars().any(char::is_control) {
        return Err(Failure::new(Code::Invalid, format!("{id:?} is no id of a conversation")));
    }
    Ok(id)
}
