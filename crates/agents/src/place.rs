//! Expands variables and `~` in the paths that a profile names.

use std::path::PathBuf;

/// The value of a variable, as the session's command has it.
pub type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A path with variables in it: `${CODEX_HOME:-~/.codex}/config.toml`. Nothing, where a variable without a default is
/// not set.
pub(crate) fn expanded(template: &str, lookup: &Lookup<'_>) -> Option<String> {
    let mut path = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, after) = after.split_once('}')?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        path.push_str(before);
        match (lookup(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => path.push_str(&value),
            (None, Some(default)) => path.push_str(default),
            (None, None) => return None,
        }
        rest = after;
    }
    path.push_str(rest);
    match path.strip_prefix("~/") {
        Some(inside) => Some(format!("{}/{inside}", lookup("HOME").filter(|home| !home.is_empty())?)),
        None => Some(path),
    }
}

/// A pattern of files in two parts: the agent's directory, which the user may have put behind links, and the rest, in
/// which nothing but names and patterns stands. Nothing, where a variable is missing or the rest would lead elsewhere.
pub(crate) fn below(template: &str, lookup: &Lookup<'_>) -> Option<(PathBuf, Vec<String>)> {
    let after_variable =
        template.strip_prefix("${").and_then(|rest| rest.split_once('}')).map(|(_, rest)| rest);
    let (head, rest) = match after_variable {
        // `${CODEX_HOME:-~/.codex}` is the agent's directory, if it is a whole part of the path.
        Some(rest) if rest.starts_with('/') => template.split_at(template.len() - rest.len()),
        // So is all that stands before the first pattern, or the name of the file: `~/.gemini`.
        _ => {
            let special = template.find(['*', '{']).unwrap_or(template.len());
            let own = template.strip_prefix("~/").and_then(|below| below.find('/')).map(|end| end + 2);
            let end = own.filter(|end| *end < special);
            template.split_at(end.or_else(|| template[..special].rfind('/'))?)
        }
    };
    let dir = match head {
        "" => PathBuf::from("/"),
        "~" => path("~/", lookup)?,
        head => path(head, lookup)?,
    };
    let rest = expanded(rest, lookup)?;
    let parts: Vec<String> =
        rest.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect();
    // A directory of the daemon's is not meant, and nothing leads up.
    (dir.is_absolute() && !parts.is_empty() && !parts.iter().any(|part| part == "..")).then_some((dir, parts))
}

/// The same as [`expanded`], as a path.
pub(crate) fn path(template: &str, lookup: &Lookup<'_>) -> Option<PathBuf> {
    expanded(template, lookup).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/x".to_owned()),
            "CODEX_HOME" => Some("/elsewhere".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn variables_defaults_and_the_home_directory() {
        let at = |template| expanded(template, &lookup);
        assert_eq!(at("${CODEX_HOME:-~/.codex}/a").as_deref(), Some("/elsewhere/a"));
        assert_eq!(at("${OTHER:-~/.other}/a").as_deref(), Some("/home/x/.other/a"));
        assert_eq!(at("${OTHER}/a"), None);
        assert_eq!(at("/a/b").as_deref(), Some("/a/b"));
        assert_eq!(expanded("~/a", &|_| None), None, "no home");
    }

    #[test]
    fn the_agents_directory_is_told_from_what_is_below() {
        let at = |template| {
            let (dir, parts) = below(template, &lookup)?;
            Some(format!("{} {}", dir.display(), parts.join(" ")))
        };
        for (template, expected) in [
            ("${CODEX_HOME:-~/.codex}/sessions/**/r-*{id}.jsonl", "/elsewhere sessions ** r-*{id}.jsonl"),
            ("${OTHER:-~/.other}/a.jsonl", "/home/x/.other a.jsonl"),
            ("~/.gemini/tmp/*/a.jsonl", "/home/x/.gemini tmp * a.jsonl"),
            ("~/a.jsonl", "/home/x a.jsonl"),
            ("~/.a*/b", "/home/x .a* b"),
            ("/var/agent/log/{id}.jsonl", "/var/agent/log {id}.jsonl"),
            ("/*.jsonl", "/ *.jsonl"),
        ] {
            assert_eq!(at(template).map(|at| at.replace("/home/x/ ", "/home/x ")).as_deref(), Some(expected));
        }
        for template in ["a.jsonl", "./a/b.jsonl", "~/.a/../b", "${OTHER}/a", "${CODEX_HOME}"] {
            assert_eq!(at(template), None, "{template}");
        }
    }
}
