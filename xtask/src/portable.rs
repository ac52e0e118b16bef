//! `cargo xtask portable`: checks the crates that claim other systems than Linux, by the compiler and by their sources.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step::{cargo, has, in_ci, output, root, step};

use crate::sources;

/// The crates that claim it: their directories below `crates`, which ARCHITECTURE.md lists too.
const CRATES: &[&str] =
    &["model", "sequences", "boundary", "log", "screen", "archive", "backend", "agents", "store", "engine"];

/// The system that they are checked for.
const TARGET: &str = "x86_64-apple-darwin";

/// How ARCHITECTURE.md begins the list.
const LIST_START: &str = "These crates compile for macOS: ";

/// What only Linux has. It stands in a module `linux`, whose twin does what other systems can.
const LINUX_ALONE: &[&str] = &["openat2", "pidfd", "inotify", "epoll", "splice(", "signalfd", "/proc/"];

/// The suite over real places reads the processes of sessions: it runs on Linux until somebody ports its probes.
const LINUX_SUITE: &str = "crates/backend/src/conformance";

/// `cargo xtask portable`
pub(crate) fn task(flags: Flags) -> Result<()> {
    flags.finish()?;
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let mut faults: Vec<String> = untrue(&page).into_iter().collect();
    for name in CRATES {
        let sources = sources::below(&root().join("crates").join(name).join("src"))?;
        faults.extend(sources.iter().flat_map(|(path, text)| linux_alone(path, text)));
    }
    if !faults.is_empty() {
        bail!("the portable crates are not as they should be:\n  {}", faults.join("\n  "));
    }
    if let Err(error) = std_for_target() {
        if in_ci() {
            return Err(error);
        }
        println!("left out: the check for {TARGET}: {error:#}");
        return Ok(());
    }
    let mut check = cargo();
    // The engine's backend of this host is Linux alone, and a feature.
    check.args(["check", "--locked", "--target", TARGET]);
    check.args(["--no-default-features", "--features", "wharf-backend/testing"]);
    check.args(CRATES.iter().flat_map(|name| ["--package".to_owned(), format!("wharf-{name}")]));
    // A check links nothing, so what C code would become is of no use: the compiler for it does nothing.
    check.envs([("CC_x86_64_apple_darwin", "true"), ("AR_x86_64_apple_darwin", "true"), ("SDKROOT", "/")]);
    check.env("CARGO_TARGET_X86_64_APPLE_DARWIN_RUSTFLAGS", "-D warnings");
    let status = check.status().context("cannot run cargo check")?;
    if !status.success() {
        bail!("the check for {TARGET}: {status}");
    }
    println!("{} crates compile for {TARGET}", CRATES.len());
    Ok(())
}

/// Looks for the target's standard library, and asks rustup for it where it is absent.
fn std_for_target() -> Result<()> {
    let is_here = || -> Result<bool> {
        let dir = output(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]))?;
        Ok(Path::new(dir.trim_end()).is_dir())
    };
    if is_here()? {
        return Ok(());
    }
    let hint = format!("the toolchain cannot compile for it: rustup target add {TARGET}");
    if has("rustup") {
        let mut add = Command::new("rustup");
        step("toolchain target", add.args(["target", "add", TARGET])).context(hint.clone())?;
    }
    if is_here()? { Ok(()) } else { bail!(hint) }
}

/// What ARCHITECTURE.md says of the list that is not so.
fn untrue(page: &str) -> Option<String> {
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let list = format!("{LIST_START}{}.", CRATES.join(", "));
    (!text.contains(&list)).then(|| format!("ARCHITECTURE.md does not say: {list}"))
}

/// The lines of code outside a module `linux` that name what only Linux has. Comments and tests do not count.
fn linux_alone(path: &Path, text: &str) -> Vec<String> {
    let path = path.strip_prefix(root()).unwrap_or(path);
    let of_linux = path.components().map(|part| PathBuf::from(part.as_os_str()));
    let mut of_linux = of_linux.filter_map(|part| part.file_stem().map(ToOwned::to_owned));
    if path.starts_with(LINUX_SUITE) || of_linux.any(|part| part == "linux") {
        return Vec::new();
    }
    let named = |line: &str| LINUX_ALONE.iter().copied().find(|word| names(line, word));
    sources::code_lines(text)
        .filter_map(|(at, line)| Some((at, named(line)?)))
        .map(|(at, word)| format!("{}:{at}: {word} stands outside a module `linux`", path.display()))
        .collect()
}

/// Whether a line has a word that is no part of a longer one, and no method of something else (`Vec::splice`) nor the
/// module's own function of that name.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].trim_end_matches("fn ").trim_end();
        let is_ours = line[..at].ends_with("fn ") || before.ends_with("platform::");
        !is_ours && !line[..at].ends_with(|c: char| c == '.' || c == '_' || c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> usize {
        linux_alone(&root().join(path), text).len()
    }

    #[test]
    fn what_only_linux_has_stands_in_its_module() {
        let uses = [
            "use rustix::fs::inotify::Watch;\n",
            "let fd = pidfd_open(pid)?;\n",
            "rustix::fs::openat2(dir)\n",
            "fs::read(\"/proc/self/stat\")\n",
            "splice(from, to)\n",
        ];
        for text in uses {
            assert_eq!(faults("crates/log/src/files.rs", text), 1, "{text}");
            assert_eq!(faults("crates/log/src/linux.rs", text), 0, "{text}");
            assert_eq!(faults("crates/engine/src/platform/linux/watches.rs", text), 0, "{text}");
        }
    }

    #[test]
    fn comments_tests_and_other_words_do_not_count() {
        let fine = [
            "// Asks for a pidfd.\n",
            "    /// As `/proc/PID/stat` has it.\n",
            "line.splice(1..2, [])\n",
            "platform::splice(pipe)\n",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { pidfd_open() }\n}\n",
        ];
        for text in fine {
            assert_eq!(faults("crates/log/src/files.rs", text), 0, "{text}");
        }
    }

    #[test]
    fn the_page_lists_the_same_crates() {
        assert_eq!(untrue(&format!("{LIST_START}\n{}.", CRATES.join(",\n"))), None);
        assert!(untrue(&format!("{LIST_START}model.")).is_some());
    }
}
