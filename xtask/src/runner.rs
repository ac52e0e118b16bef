//! The tests where cargo-nextest is not: as there, each in a process of its own, with a deadline.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use wharf_tool_support::process;
use wharf_tool_support::step::{cargo, search_path};

/// What makes a test or its program a heavy one: it loads the machine on purpose, and two of them would make each other
/// late. The same words stand in `.config/nextest.toml`.
const HEAVY: &[&str] = &["chaos", "flood", "storm", "load", "hostile", "gigabyte", "fork_bomb"];
/// How long a test may take, a heavy one, and real agents, which are installed first.
const TEST_TIMEOUT: Duration = Duration::from_secs(240);
const HEAVY_TEST_TIMEOUT: Duration = Duration::from_secs(360);
const AGENTS_TEST_TIMEOUT: Duration = Duration::from_secs(960);

/// Programs of tests, built.
pub(crate) struct Runner {
    programs: Vec<Program>,
}

struct Program {
    /// As people call it: the package and the target.
    name: String,
    path: PathBuf,
    package: PathBuf,
}

/// Which targets to build: the ones that the words name, else whatever has tests. (`--all-targets` would also make a test
/// program of the product itself, which cannot be one; and `--tests` beside `--test NAME` means all of them.)
fn targets(words: &[&str]) -> &'static [&'static str] {
    if words.contains(&"--test") { &[] } else { &["--tests"] }
}

struct Test<'a> {
    program: &'a Program,
    name: String,
    heavy: bool,
}

impl Runner {
    /// Builds what these words of `cargo test` choose. `settle` gives each command its environment.
    pub(crate) fn build(words: &[&str], settle: &dyn Fn(&mut Command)) -> Result<Self> {
        let mut build = cargo();
        build.args(["test", "--locked", "--no-run", "--message-format=json-render-diagnostics"]);
        settle(build.args(targets(words)).args(words).stderr(Stdio::inherit()));
        let output = build.output().context("cannot run cargo")?;
        if !output.status.success() {
            bail!("the tests do not build");
        }
        let text = String::from_utf8(output.stdout).context("cargo's messages")?;
        let programs = text.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?));
        Ok(Self { programs: programs.collect() })
    }

    /// Runs every test with this text in its name. Fails with the names of those that failed.
    pub(crate) fn run(&self, filter: &str, settle: &(dyn Fn(&mut Command) + Sync)) -> Result<()> {
        let mut heavy = VecDeque::new();
        let mut light = VecDeque::new();
        for program in &self.programs {
            for test in program.tests(settle)?.into_iter().filter(|test| test.name.contains(filter)) {
                if test.heavy { heavy.push_back(test) } else { light.push_back(test) }
            }
        }
        let all = heavy.len() + light.len();
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        println!("{all} tests, {threads} at a time");
        let (heavy, light) = (Mutex::new(heavy), Mutex::new(light));
        let (done, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for worker in 0..threads {
                let (heavy, light, done, failed) = (&heavy, &light, &done, &failed);
                scope.spawn(move || {
                    // One takes the heavy ones first, so that no two of them ever meet.
                    let next = || {
                        let from_heavy = if worker == 0 { lock(heavy).pop_front() } else { None };
                        from_heavy.or_else(|| lock(light).pop_front())
                    };
                    while let Some(test) = next() {
                        if let Err(error) = test.run(settle) {
                            let name = format!("{} {}", test.program.name, test.name);
                            println!("FAILED {name}: {error:#}");
                            lock(failed).push(name);
                        }
                        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                        if done.is_multiple_of(250) {
                            println!("{done} of {all}");
                        }
                    }
                });
            }
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !failed.is_empty() {
            bail!("{} of {all} tests failed: {}", failed.len(), failed.join(", "));
        }
        println!("{all} tests passed");
        Ok(())
    }
}

/// A message of cargo's about a program of tests.
fn program(message: &Value) -> Option<Program> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let id = message["package_id"]
        .as_str()?
        .rsplit(['/', '#'])
        .find(|part| !part.starts_with(|c: char| c.is_ascii_digit()))?;
    let package_name = id.split('@').next()?;
    Some(Program { name: format!("{package_name}::{}", message["target"]["name"].as_str()?), path, package })
}

impl Program {
    fn command(&self, settle: &dyn Fn(&mut Command)) -> Command {
        // A shell that starts us in the background has us ignore these, and with us all that we start. Some tests send them.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,QUIT,HUP").arg(&self.path);
        command
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package)
            .env("PATH", search_path());
        command.env("CARGO", cargo().get_program()).env("WHARF_TEST_ALONE", "1").stdin(Stdio::null());
        settle(&mut command);
        command
    }

    fn tests(&self, settle: &dyn Fn(&mut Command)) -> Result<Vec<Test<'_>>> {
        let list =
            wharf_tool_support::step::output(self.command(settle).args(["--list", "--format", "terse"]))?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let heavy = |name: &str| {
            let program = self.name.rsplit("::").next().unwrap_or_default();
            program == "agents" || HEAVY.iter().any(|word| program.contains(word) || name.contains(word))
        };
        Ok(names.map(|name| Test { program: self, name: name.to_owned(), heavy: heavy(name) }).collect())
    }
}

impl Test<'_> {
    fn deadline(&self) -> Duration {
        match self.heavy {
            true if self.program.name.ends_with("::agents") => AGENTS_TEST_TIMEOUT,
            true => HEAVY_TEST_TIMEOUT,
            false => TEST_TIMEOUT,
        }
    }

    /// Runs it. The error is what it said.
    fn run(&self, settle: &dyn Fn(&mut Command)) -> Result<()> {
        // A file, not a pipe: what a test leaves running cannot hold it open.
        let mut said = tempfile::tempfile()?;
        let mut command = self.program.command(settle);
        command.args(["--exact", &self.name, "--nocapture"]);
        let mut child = command.stdout(said.try_clone()?).stderr(said.try_clone()?).spawn()?;
        let ended = ends_within(child.id(), self.deadline())?;
        if !ended {
            let pid = child.id() as i32;
            for pid in process::descendants(pid).into_iter().chain([pid]).filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let status = child.wait()?;
        if !ended {
            bail!("it did not end within {:?}\n{}", self.deadline(), read(&mut said));
        }
        if !status.success() {
            bail!("{status}\n{}", read(&mut said));
        }
        Ok(())
    }
}

/// Waits for the end of a child, which its parent then takes note of.
fn ends_within(pid: u32, limit: Duration) -> Result<bool> {
    let pid = Pid::from_raw(pid as i32).context("a child has a pid")?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).context("a handle of the test")?;
    let deadline = Instant::now() + limit;
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()))?;
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn read(said: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = said.rewind().and_then(|()| said.read_to_end(&mut bytes));
    read.map_or_else(|error| error.to_string(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_built_alone() {
        assert!(targets(&["--package", "wharf", "--test", "cli"]).is_empty());
        assert_eq!(targets(&["--workspace"]), ["--tests"]);
    }

    /// A test program of shell.
    fn written(dir: &Path, script: &str) -> Runner {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Runner { programs: vec![Program { name: "p::t".into(), path, package: dir.to_owned() }] }
    }

    #[test]
    fn each_test_is_run_alone_and_the_one_that_fails_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let script = r#"case $1 in
            --list) printf 'good: test\nbad: test\nother: test\nquick: benchmark\n';;
            --exact) echo "$2 $WHARF_TEST_ALONE" >>ran; [ "$2" != bad ];;
        esac"#;
        let runner = written(dir.path(), script);
        let error = runner.run("", &|_| {}).unwrap_err().to_string();
        assert_eq!(error, "1 of 3 tests failed: p::t bad");
        let ran = std::fs::read_to_string(dir.path().join("ran")).unwrap();
        let mut ran: Vec<&str> = ran.lines().collect();
        ran.sort_unstable();
        assert_eq!(ran, ["bad 1", "good 1", "other 1"]);
        runner.run("goo", &|_| {}).unwrap();
    }

    #[test]
    fn a_test_that_does_not_end_is_told_from_one_that_does() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(!ends_within(child.id(), Duration::from_millis(50)).unwrap());
        child.kill().unwrap();
        assert!(ends_within(child.id(), Duration::from_secs(30)).unwrap());
        child.wait().unwrap();
    }

    #[test]
    fn a_program_is_read_from_what_cargo_says() {
        let message = serde_json::json!({
            "reason": "compiler-artifact", "executable": "/t/deps/gate-1", "profile": {"test": true},
            "package_id": "path+file:///r/crates/server#wharf-server@0.1.0", "manifest_path": "/r/crates/server/Cargo.toml",
            "target": {"name": "gate"},
        });
        let found = program(&message).unwrap();
        assert_eq!(
            (found.name.as_str(), found.package.as_path()),
            ("wharf-server::gate", Path::new("/r/crates/server"))
        );
        let mut library = message.clone();
        library["profile"]["test"] = false.into();
        assert!(program(&library).is_none());
        let mut unnamed = message;
        unnamed["package_id"] = "path+file:///r/xtask#0.1.0".into();
        assert_eq!(program(&unnamed).unwrap().name, "xtask::gate");
    }
}
