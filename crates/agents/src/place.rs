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

/// The same, as a path.
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
}
