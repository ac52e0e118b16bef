//! A shell's `shellHook`, run in the session before its command.

use std::fmt::Write as _;

use wharf_model::Text;

use crate::dev_shell::{DevShell, Value, is_noise};

/// Reads the hook's file, then becomes the command.
const SCRIPT: &str = ". \"$1\"; shift; exec -- \"$@\"";

/// Variables that bash has of itself, some of which it lets nobody set.
const BASH: &[&str] = &[
    "BASH",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "GROUPS",
    "HOSTNAME",
    "HOSTTYPE",
    "IFS",
    "LINENO",
    "MACHTYPE",
    "OPTERR",
    "OPTIND",
    "OSTYPE",
    "PIPESTATUS",
    "PS4",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
];

/// The text of a file that bash reads: what the hook may count on, then the hook. None where the shell has none.
pub(crate) fn file(shell: &DevShell) -> Option<String> {
    let hook = shell.text("shellHook").filter(|hook| !hook.trim().is_empty())?;
    let mut text = String::new();
    for (name, variable) in shell.variables.iter().filter(|(name, _)| is_settable(name)) {
        let set = match &variable.value {
            Value::Text(value) if variable.kind == "var" => format!("{name}={}", quoted(value)),
            Value::List(list) => {
                let words: Vec<String> = list.iter().map(|word| quoted(word)).collect();
                format!("declare -a {name}=({})", words.join(" "))
            }
            Value::Map(map) => {
                let pairs: Vec<String> =
                    map.iter().map(|(key, value)| format!("[{}]={}", quoted(key), quoted(value))).collect();
                format!("declare -A {name}=({})", pairs.join(" "))
            }
            _ => continue,
        };
        let _ = writeln!(text, "{set}");
    }
    for (name, body) in &shell.bash_functions {
        let _ = writeln!(text, "{name} ()\n{{\n{body}\n}}");
    }
    let _ = writeln!(text, "eval {}", quoted(hook));
    Some(text)
}

/// The command, with the hook before it.
pub(crate) fn argv(bash: &str, file: Text, command: Vec<Text>) -> Vec<Text> {
    let mut argv = vec![bash.into(), "-c".into(), SCRIPT.into(), "bash".into(), file];
    argv.extend(command);
    argv
}

fn is_settable(name: &str) -> bool {
    let legal =
        |(at, c): (usize, char)| c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit());
    !is_noise(name)
        && !BASH.contains(&name)
        && !name.starts_with("BASH_")
        && name.chars().enumerate().all(legal)
}

/// One word for bash, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_by_bash_as_it_was_meant() {
        let json = r#"{"bashFunctions":{"greet":"    echo \"hi $1\""},"variables":{
            "quote":{"type":"var","value":"it's $(x)"}, "list":{"type":"array","value":["a b","c"]},
            "map":{"type":"associative","value":{"k k":"v"}}, "UID":{"type":"var","value":"5"},
            "shellHook":{"type":"exported","value":"greet you; echo \"$quote/${list[0]}/${map[k k]}\"; export HOOKED=yes"}}}"#;
        let shell: DevShell = serde_json::from_str(json).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hook");
        std::fs::write(&path, file(&shell).unwrap()).unwrap();
        let command = ["/bin/sh", "-c", "echo \"$HOOKED $1\"", "sh", "two words"];
        let argv = argv("/bin/bash", path.into(), command.into_iter().map(Text::from).collect());
        let run = std::process::Command::new(argv[0].as_os_str())
            .args(argv[1..].iter().map(Text::as_os_str))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&run.stderr), "");
        assert_eq!(String::from_utf8_lossy(&run.stdout), "hi you\nit's $(x)/a b/v\nyes two words\n");
    }
}
