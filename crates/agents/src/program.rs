use wharf_model::Text;

/// The names that a command line may be known by; none where it is a script's.
pub(crate) fn known_by(argv: &[Text]) -> Vec<String> {
    if is_script(argv) { Vec::new() } else { names(argv) }
}

/// The names that a command line may be known by, the most telling first: the program's, and what it runs.
///
/// `npx @openai/codex`, `node /x/bin/codex.js`, `env A=1 codex` and `/opt/codex` all say *codex*.
fn names(argv: &[Text]) -> Vec<String> {
    let words: Vec<String> = argv.iter().map(|word| word.lossy().into_owned()).collect();
    let mut names = Vec::new();
    let mut rest = words.as_slice();
    while let Some((program, arguments)) = rest.split_first() {
        let name = base(program);
        let skip = match name.as_str() {
            // A wrapper: what it runs is its first argument that is neither an option nor a variable.
            "env" | "nice" | "nohup" | "setsid" | "time" | "stdbuf" | "exec" | "command" => Some(false),
            "npx" | "bunx" | "pnpx" | "uvx" | "pipx" | "bun" | "deno" | "pnpm" | "yarn" | "npm" | "uv"
            | "node" | "nodejs" => Some(true),
            _ => None,
        };
        let runs_others = skip.is_some();
        let script = skip == Some(true);
        names.push((name, script));
        if !runs_others {
            break;
        }
        let after = arguments.iter().position(|word| {
            let variable = word.contains('=') && !word.contains('/') && !word.starts_with('@');
            let verb = script && matches!(word.as_str(), "exec" | "x" | "run" | "dlx" | "tool");
            !(word.starts_with('-') || variable || verb || word.parse::<f64>().is_ok())
        });
        match after {
            Some(index) => rest = &arguments[index..],
            None => break,
        }
        if script {
            // What an interpreter runs is a script or a package, and its words are not commands any more.
            names.push((base(&rest[0]), false));
            names.push((package(&rest[0]), false));
            break;
        }
    }
    // What is run tells more than what runs it.
    names.reverse();
    names.into_iter().map(|(name, _)| name).collect()
}

/// Whether a command line has a shell run something and end, in place of talking to somebody.
fn is_script(argv: &[Text]) -> bool {
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash"];
    const WITH_VALUE: [&str; 7] = ["--rcfile", "--init-file", "-o", "+o", "-O", "+O", "-C"];
    let Some((program, arguments)) = argv.split_first() else { return false };
    if !SHELLS.contains(&base(&program.lossy()).as_str()) {
        return false;
    }
    let mut is_value = false;
    arguments.iter().any(|word| {
        let word = word.lossy();
        if std::mem::replace(&mut is_value, WITH_VALUE.contains(&&*word)) {
            return false;
        }
        let (long, option) = (word.starts_with("--"), word.starts_with(['-', '+']));
        word == "--command" || !option || (!long && word.contains('c'))
    })
}

/// The last part of a path, without what marks a script or a Windows program: `/x/codex.js` is `codex`.
fn base(word: &str) -> String {
    let last = word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = [".js", ".mjs", ".cjs", ".exe", ".py", ".ts"].iter().find_map(|end| last.strip_suffix(end));
    let name = stem.unwrap_or(last).trim_start_matches('-');
    match name.split_once('@') {
        Some((before, _)) if !before.is_empty() => before.to_owned(),
        _ => name.to_owned(),
    }
}

/// A package as a registry has it, without its version: `@openai/codex@latest` is `@openai/codex`.
fn package(word: &str) -> String {
    let scope = usize::from(word.starts_with('@'));
    match word[scope..].find('@') {
        Some(at) => word[..scope + at].to_owned(),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_runs_a_script_talks_to_nobody() {
        let is = |line: &str| is_script(&line.split(' ').map(Text::from).collect::<Vec<_>>());
        for line in
            ["sh -c true", "bash -lc true", "/bin/bash x.sh", "bash -o pipefail -c true", "fish --command x"]
        {
            assert!(is(line), "{line}");
        }
        for line in ["sh", "-bash", "bash --norc", "bash -i", "bash --rcfile x", "bash -l -o vi", "claude -c"]
        {
            assert!(!is(line), "{line}");
        }
    }

    fn first(line: &str) -> Vec<String> {
        names(&line.split(' ').map(Text::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_program_is_known_by_its_last_part() {
        assert_eq!(first("/opt/x/codex --yolo"), ["codex"]);
        assert_eq!(first("-bash"), ["bash"], "a login shell");
        assert_eq!(first("claude.exe"), ["claude"]);
    }

    #[test]
    fn what_is_run_goes_before_what_runs_it() {
        assert_eq!(first("npx @openai/codex exec"), ["@openai/codex", "codex", "npx"]);
        assert_eq!(first("npx -y @openai/codex@0.166.0"), ["@openai/codex", "codex", "npx"]);
        assert_eq!(first("node --no-warnings /x/bin/gemini.js -p hi")[1], "gemini");
        assert_eq!(first("env FOO=1 BAR=2 codex"), ["codex", "env"]);
        assert_eq!(first("env -u A nice -n 5 aider").last().expect("one"), "env");
        assert_eq!(first("node"), ["node"]);
        assert_eq!(first("uvx aider-chat")[1], "aider-chat");
    }
}
