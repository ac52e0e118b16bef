//! Which program a command line runs: profiles are found by its name.

use wharf_model::Text;

/// The names that a command line may be known by, the most telling first: what it runs, and the program itself. None
/// where an interpreter runs something that is known by no name of its own: that reads what it likes.
///
/// `npx @openai/codex`, `node /x/bin/codex.js`, `env A=1 codex`, `python3 -m codex` and `/opt/codex` all say *codex*.
pub(crate) fn known_by(argv: &[Text]) -> Vec<String> {
    let words: Vec<String> = argv.iter().map(|word| word.lossy().into_owned()).collect();
    let mut rest = words.as_slice();
    while let Some((program, arguments)) = rest.split_first() {
        let name = base(program);
        if let Some(wrapper) = Wrapper::named(&name) {
            let Some(at) = wrapper.runs(arguments) else { return vec![name] };
            rest = &arguments[at..];
            continue;
        }
        if LAUNCHERS.contains(&name.as_str()) {
            let mut names = arguments.iter().find(|word| is_package(word)).map(|word| of_run(word));
            names.get_or_insert_default().push(name);
            return names.unwrap_or_default();
        }
        return match Interpreter::named(&name).map(|interpreter| interpreter.runs(arguments)) {
            None | Some(Runs::Prompt) => vec![name],
            Some(Runs::File(word)) => of_run(word),
            Some(Runs::Words) => Vec::new(),
        };
    }
    Vec::new()
}

/// The names of what an interpreter or a launcher runs. A script that is called like an interpreter is none.
fn of_run(word: &str) -> Vec<String> {
    let is_other = |name: &String| Interpreter::named(name).is_none();
    [package(word), base(word)].into_iter().filter(is_other).collect()
}

/// Programs that run a package by its name.
const LAUNCHERS: [&str; 11] =
    ["npx", "bunx", "pnpx", "uvx", "pipx", "bun", "deno", "pnpm", "yarn", "npm", "uv"];

/// Whether a launcher's argument is what it runs.
fn is_package(word: &str) -> bool {
    let verb = matches!(word, "exec" | "x" | "run" | "dlx" | "tool");
    !(verb || word.starts_with('-') || is_variable(word) || word.parse::<f64>().is_ok())
}

fn is_variable(word: &str) -> bool {
    word.contains('=') && !word.contains('/') && !word.starts_with('@')
}

/// A program that runs another one: what stands behind its options is a command line again.
struct Wrapper {
    /// Its options that take the next word.
    valued: &'static [&'static str],
}

impl Wrapper {
    fn named(name: &str) -> Option<Self> {
        let valued: &[&str] = match name {
            "env" => &["-u", "--unset", "-C", "--chdir"],
            "nice" => &["-n", "--adjustment"],
            "stdbuf" => &["-i", "-o", "-e", "--input", "--output", "--error"],
            "time" => &["-f", "-o", "--format", "--output"],
            "nohup" | "setsid" | "exec" | "command" => &[],
            _ => return None,
        };
        Some(Self { valued })
    }

    /// Where the command line that it runs begins.
    fn runs(&self, arguments: &[String]) -> Option<usize> {
        let mut is_value = false;
        arguments.iter().position(|word| {
            let value = std::mem::replace(&mut is_value, self.valued.contains(&word.as_str()));
            let number = word.parse::<f64>().is_ok();
            !(value || word.starts_with('-') || is_variable(word) || number)
        })
    }
}

/// What an interpreter is asked to do.
#[derive(Debug, PartialEq, Eq)]
enum Runs<'a> {
    /// To talk to somebody at its own prompt.
    Prompt,
    /// To run a script or a module of this name.
    File(&'a str),
    /// To run the words of its command line.
    Words,
}

/// A program that has a prompt of its own where it is given nothing to run.
struct Interpreter {
    /// Its options that take the next word.
    valued: &'static [&'static str],
    /// Letters that take the words of the command line for a program.
    words: &'static [char],
    /// The same as long options.
    long_words: &'static [&'static str],
    /// The letter that takes the next word for a module's name.
    module: Option<char>,
    /// The letter with which the prompt comes in any case.
    prompt: Option<char>,
}

impl Interpreter {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "fish" | "ash" => Self {
                valued: &["--rcfile", "--init-file", "-o", "+o", "-O", "+O", "-C"],
                words: &['c'],
                long_words: &["--command"],
                module: None,
                prompt: Some('s'),
            },
            "node" | "nodejs" => Self {
                valued: &[
                    "-r",
                    "--require",
                    "--import",
                    "--loader",
                    "--experimental-loader",
                    "-C",
                    "--conditions",
                    "--env-file",
                    "--title",
                    "--input-type",
                ],
                words: &['e', 'p', 'c'],
                long_words: &["--eval", "--print", "--check", "--run", "--test"],
                module: None,
                prompt: Some('i'),
            },
            _ if is_python(name) => Self {
                valued: &["-W", "-X", "--check-hash-based-pycs", "--profile"],
                words: &['c'],
                long_words: &[],
                module: Some('m'),
                prompt: Some('i'),
            },
            _ => return None,
        })
    }

    /// What it is asked to do, by the arguments before the first that is no option.
    fn runs<'a>(&self, arguments: &'a [String]) -> Runs<'a> {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let word = word.as_str();
            if self.valued.contains(&word) {
                words.next();
            } else if word == "-" {
                // Standard input, which is the terminal.
                return Runs::Prompt;
            } else if word == "--" || !word.starts_with(['-', '+']) {
                let file = if word == "--" { words.next().map(String::as_str) } else { Some(word) };
                return file.map_or(Runs::Prompt, Runs::File);
            } else if let Some(long) = word.strip_prefix("--") {
                let name = long.split('=').next().unwrap_or_default();
                match name {
                    "interactive" => return Runs::Prompt,
                    _ if self.long_words.iter().any(|known| known[2..] == *name) => {
                        return Runs::Words;
                    }
                    _ => {}
                }
            } else if word.starts_with('-') {
                // Letters stand together, and the first that takes words ends them.
                for (at, letter) in word.char_indices().skip(1) {
                    if Some(letter) == self.prompt {
                        return Runs::Prompt;
                    }
                    if self.words.contains(&letter) {
                        return Runs::Words;
                    }
                    if Some(letter) == self.module {
                        let joined = &word[at + 1..];
                        let mut next = || words.next().map_or("", String::as_str);
                        return Runs::File(if joined.is_empty() { next() } else { joined });
                    }
                    if self
                        .valued
                        .iter()
                        .any(|known| known.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4])))
                    {
                        break;
                    }
                }
            }
        }
        Runs::Prompt
    }
}

fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("ipython").or_else(|| name.strip_prefix("python"));
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
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

    fn known(line: &str) -> Vec<String> {
        known_by(&line.split(' ').map(Text::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_shell_that_runs_a_script_talks_to_nobody() {
        for line in [
            "sh -c true",
            "bash -lc true",
            "bash -o pipefail -c true",
            "fish --command x",
            "env A=1 bash -c true",
            "nice -n 5 sh -c true",
        ] {
            assert_eq!(known(line), [""; 0], "{line}");
        }
        assert_eq!(known("/bin/bash x.sh"), ["x.sh", "x.sh"]);
        for line in ["bash", "bash --norc", "bash -i", "bash --rcfile x", "bash -l -o vi", "bash -s word"] {
            assert_eq!(known(line), ["bash"], "{line}");
        }
        assert_eq!(known("-bash"), ["bash"], "a login shell");
        assert_eq!(known("claude -c"), ["claude"]);
    }

    #[test]
    fn an_interpreter_is_its_prompt_only_where_it_has_nothing_to_run() {
        for line in [
            "python3",
            "/usr/bin/python3 -q -u",
            "python3 -X utf8 -W error",
            "python3 -i x.py",
            "python3 -ic pass",
            "python3 -",
            "env -u HOME python3",
            "nice -n 5 python3",
            "stdbuf -o L python3",
        ] {
            assert_eq!(known(line), ["python3"], "{line}");
        }
        for line in ["node", "node -i x.js", "node --require ./x.js", "node --no-warnings", "node -r ts-node"]
        {
            assert_eq!(known(line), ["node"], "{line}");
        }
        assert_eq!(known("python3.13 -m http.server")[1], "http.server");
        assert_eq!(known("python3 -uBm aider")[1], "aider");
        assert_eq!(known("python3 -u /x/tool.py node")[1], "tool");
        assert_eq!(known("env A=1 python3 x.py")[1], "x");
        assert_eq!(known("node server.js")[1], "server");
        for line in ["python3 -c pass", "python3 -Wignore -c pass", "node -e 1", "node --eval=1", "node -p 1"]
        {
            assert_eq!(known(line), [""; 0], "{line}");
        }
        for line in ["python3 node.py", "node bash.js", "bash python3"] {
            assert!(!known(line).iter().any(|name| Interpreter::named(name).is_some()), "{line}");
        }
    }

    #[test]
    fn a_program_is_known_by_its_last_part() {
        assert_eq!(known("/opt/x/codex --yolo"), ["codex"]);
        assert_eq!(known("claude.exe"), ["claude"]);
    }

    #[test]
    fn what_is_run_goes_before_what_runs_it() {
        assert_eq!(known("npx @openai/codex exec"), ["@openai/codex", "codex", "npx"]);
        assert_eq!(known("npx -y @openai/codex@0.166.0"), ["@openai/codex", "codex", "npx"]);
        assert_eq!(known("node --no-warnings /x/bin/gemini.js -p hi")[1], "gemini");
        assert_eq!(known("env FOO=1 BAR=2 codex"), ["codex"]);
        assert_eq!(known("env -u A nice -n 5 aider"), ["aider"]);
        assert_eq!(known("uvx aider-chat")[1], "aider-chat");
    }
}
