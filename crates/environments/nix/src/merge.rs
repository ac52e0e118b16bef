//! A session's variables and a dev shell's, put together as `nix develop` would.

use wharf_model::{Change, Environment, Text};

/// Lists of directories: the shell's come first, the session's stay.
const JOINED: [&[u8]; 2] = [b"PATH", b"XDG_DATA_DIRS"];

/// The session's variables under the shell's. What the user changed by hand is changed again on top.
pub(crate) fn merge(
    session: Vec<(Text, Text)>,
    shell: &[(Text, Text)],
    asked: &Environment,
) -> Vec<(Text, Text)> {
    let joined = |name: &Text| JOINED.contains(&name.as_bytes());
    let ours = |name: &Text| name.as_bytes().starts_with(b"WHARF_");
    let mut changes = Vec::new();
    for (name, value) in shell.iter().filter(|(name, _)| !ours(name)) {
        let old = session.iter().find(|(n, _)| n == name).map(|(_, old)| old.as_bytes()).unwrap_or_default();
        let value = if joined(name) && !old.is_empty() && !value.is_empty() {
            [value.as_bytes(), b":", old].concat().into()
        } else {
            value.clone()
        };
        changes.push(Change::Set(name.clone(), value));
    }
    let touched = |name: &Text| shell.iter().any(|(n, _)| n == name) && !joined(name);
    changes.extend(
        asked
            .changes
            .iter()
            .filter(|change| match change {
                Change::Set(name, _) | Change::Append(name, ..) | Change::Unset(name) => {
                    touched(name) && !ours(name)
                }
            })
            .cloned(),
    );
    Environment { changes, ..Environment::default() }.apply(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_is_over_the_session_and_the_users_word_over_both() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(Text, Text)> {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let session =
            pairs(&[("PATH", "/bin"), ("HOME", "/h"), ("A", "mine"), ("B", "b:x"), ("WHARF_TOKEN", "t")]);
        let shell = pairs(&[
            ("A", "theirs"),
            ("B", "theirs"),
            ("C", "c"),
            ("PATH", "/nix/bin"),
            ("WHARF_TOKEN", "no"),
        ]);
        let asked = Environment {
            changes: vec![
                Change::Set("A".into(), "mine".into()),
                Change::Append("B".into(), "x".into(), ":".into()),
                Change::Append("PATH".into(), "/bin".into(), ":".into()),
            ],
            ..Environment::default()
        };
        let expected = pairs(&[
            ("PATH", "/nix/bin:/bin"),
            ("HOME", "/h"),
            ("A", "mine"),
            ("B", "theirs:x"),
            ("WHARF_TOKEN", "t"),
            ("C", "c"),
        ]);
        assert_eq!(merge(session, &shell, &asked), expected);
    }
}
