//! Delivers one notification: runs a program or posts to a server, within a deadline.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use wharf_model::{Session, State, clean, escape_json};

use super::rule::{Rule, Target};

/// How long a command or a server may take.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// One change that somebody is to be told of.
pub(super) struct Delivery {
    rule: Arc<Rule>,
    session: Arc<Session>,
    from: Option<State>,
}

impl Delivery {
    pub(super) fn new(rule: Arc<Rule>, session: Arc<Session>, from: Option<State>) -> Self {
        Self { rule, session, from }
    }

    /// What it is, for the log: no argument and no address, for they may be secrets.
    pub(super) fn name(&self) -> String {
        let whom = match &self.rule.target {
            Target::Command(argv) => argv.first().map_or("", String::as_str),
            Target::Webhook(hook) => hook.host(),
        };
        format!("{} of session \"{}\" to {whom}", self.session.state.as_str(), self.session.name)
    }

    /// Tells it, within a deadline.
    pub(super) async fn deliver(self) -> (String, Result<(), String>) {
        let (name, body) = (self.name(), self.body());
        let told = async {
            match &self.rule.target {
                Target::Command(argv) => run(argv.iter().map(|word| self.filled(word)).collect(), body).await,
                Target::Webhook(hook) => hook.post(body).await,
            }
        };
        let late = |_| Err(format!("it took longer than {} s", DELIVERY_TIMEOUT.as_secs()));
        let told = tokio::time::timeout(DELIVERY_TIMEOUT, told).await.unwrap_or_else(late);
        (name, told)
    }

    fn body(&self) -> Bytes {
        let session = &self.session;
        let event = json!({
            "kind": "state",
            "at": session.since,
            "state": session.state,
            "from": self.from,
            "source": session.source,
            "evidence": session.evidence,
        });
        let body = json!({ "v": 1, "session": **session, "event": event });
        escape_json(&body.to_string()).into_owned().into()
    }

    /// A word with the values in its places. A value is put in once, whatever stands in it.
    fn filled(&self, word: &str) -> String {
        let session = &self.session;
        let (mut filled, mut rest) = (String::new(), word);
        while let Some(at) = rest.find('{') {
            let (before, place) = rest.split_at(at);
            filled.push_str(before);
            let name = place.find('}').map(|end| &place[1..end]);
            let value = match name {
                Some("name") => Some(session.name.to_string()),
                Some("id") => Some(session.id.to_string()),
                Some("state") => Some(session.state.as_str().to_owned()),
                Some("from") => Some(self.from.map_or("", State::as_str).to_owned()),
                Some("agent") => Some(session.agent.clone().unwrap_or_default()),
                Some("group") => Some(session.group.as_ref().map(ToString::to_string).unwrap_or_default()),
                Some("dir") => Some(session.dir.lossy().into_owned()),
                Some("evidence") => Some(session.evidence.clone().unwrap_or_default()),
                _ => None,
            };
            if let (Some(value), Some(name)) = (value, name) {
                // A program shows it to somebody, and its arguments have no room for a NUL.
                filled.push_str(&clean(&value));
                rest = &place[name.len() + 2..];
            } else {
                filled.push('{');
                rest = &place[1..];
            }
        }
        filled + rest
    }
}

/// Runs a program with this on its standard input. It ends with the deadline.
async fn run(argv: Vec<String>, body: Bytes) -> Result<(), String> {
    let (program, arguments) = argv.split_first().ok_or("it names no program")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("it cannot be run: {error}"))?;
    let stdin = child.stdin.take();
    let tell = async {
        if let Some(mut stdin) = stdin {
            // One that does not want to know closes it.
            let _ = stdin.write_all(&body).await;
        }
    };
    let ((), ended) = tokio::join!(tell, child.wait());
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("it failed: {status}")),
        Err(error) => Err(format!("it cannot be waited for: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(rule: &str, name: &str) -> Delivery {
        let session = json!({
            "id": "0000000000000000", "name": name, "group": "g", "backend": "x", "state": "asking", "pid": null,
            "dir": "/d", "created": 0, "attached": 0, "exit": null, "argv": [], "tty": true, "run": 1,
            "state_since": 7, "state_evidence": "{name} $(x)", "path": "/", "isolation": "none",
        });
        let written: wharf_api::NotifyRule = toml::from_str(rule).unwrap();
        let rule = Rule::try_from(written).unwrap();
        Delivery::new(
            Arc::new(rule),
            Arc::new(serde_json::from_value(session).unwrap()),
            Some(State::Working),
        )
    }

    #[test]
    fn values_are_put_in_once_and_nothing_else_is_touched() {
        let delivery = delivery("on = ['asking']\ncommand = ['x']", "one");
        for (word, filled) in [
            ("{name} is {state}, was {from}", "one is asking, was working"),
            ("{evidence}", "{name} $(x)"),
            ("{}{unknown}{ {name", "{}{unknown}{ {name"),
            ("{agent}|{group}|{dir}|{id}", "|g|/d|0000000000000000"),
        ] {
            assert_eq!(delivery.filled(word), filled);
        }
    }

    #[tokio::test]
    async fn a_program_gets_json_and_no_shell() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        let script = "cat > \"$1\"; printf ' %s' \"$2\" >> \"$1\"";
        let rule = format!(
            "on = ['asking']\ncommand = ['sh', '-c', '''{script}''', 'sh', '{}', '{{evidence}}']",
            out.display()
        );
        let (name, told) = delivery(&rule, "one").deliver().await;
        assert_eq!((name.as_str(), told), ("asking of session \"one\" to sh", Ok(())));
        let text = std::fs::read_to_string(out).unwrap();
        let body = text.strip_suffix(" {name} $(x)").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(
            (body["session"]["name"].as_str(), body["event"]["state"].as_str()),
            (Some("one"), Some("asking"))
        );
        assert_eq!(
            (body["event"]["from"].as_str(), body["event"]["at"].as_u64()),
            (Some("working"), Some(7))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_long_is_ended() {
        let rule = "on = ['asking']\ncommand = ['sleep', '1000']";
        let (_, told) = delivery(rule, "one").deliver().await;
        assert!(told.unwrap_err().contains("10 s"));
        let (_, told) = delivery("on = ['asking']\ncommand = ['/nonexistent']", "one").deliver().await;
        assert!(told.unwrap_err().contains("cannot be run"));
    }
}
