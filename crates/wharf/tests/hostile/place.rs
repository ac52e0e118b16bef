//! A place with a hostile session in it, and everything around it that must not notice.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wharf_container::Flavour;

use crate::engine::{IMAGE, TestEngine};
use crate::support::{Ran, Wharf, until};
use crate::wire::Wire;

/// What nobody may ever read.
pub(crate) const SECRET: &str = "CANARY-0b9d1c-no-session-may-see-this";
/// What nobody may ever change.
pub(crate) const UNTOUCHED: &str = "as it was\n";
/// Somebody who has no account here, and nothing.
const STRANGER_UID: u32 = 61_234;
/// Where a container finds the program.
const INSIDE: &str = "/hostile";
/// How long a command about a hostile session may take before it gives up.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(40);

/// Where the hostile session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Local,
    Sandbox,
    Container(Flavour),
    Shared(Flavour),
    Far(Flavour),
}

pub(crate) struct Place {
    pub(crate) wharf: Wharf,
    pub(crate) kind: Kind,
    /// Where on this host the hostile session runs, seen from the home.
    pub(crate) dir: &'static str,
    engine: Option<TestEngine>,
    wire: Option<Wire>,
}

impl Place {
    /// With the whole home as the session's directory.
    pub(crate) fn in_the_home(mut self) -> Self {
        self.dir = ".";
        self
    }

    /// With a directory below the one that the test makes as the session's.
    pub(crate) fn in_a_directory_below(mut self) -> Self {
        self.dir = "work/sub";
        self.make_dir(self.dir);
        self
    }

    pub(crate) fn new(kind: Kind) -> Self {
        Self::of(kind, Wharf::on_this_host())
    }

    /// The same for a user who is not root. Podman is left out there: its engine for a user is another program with subordinate ids, which
    /// the machine that tests this does not have.
    pub(crate) fn of_user(kind: Kind) -> Self {
        Self::of(kind, Wharf::of_user(STRANGER_UID))
    }

    fn of(kind: Kind, wharf: Wharf) -> Self {
        let flavour = match kind {
            Kind::Local | Kind::Sandbox => None,
            Kind::Container(flavour) | Kind::Shared(flavour) | Kind::Far(flavour) => Some(flavour),
        };
        let engine = flavour.map(|flavour| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(TestEngine::get(flavour))
        });
        let socket = engine.as_ref().map(|engine| engine.endpoint().socket().expect("a socket").to_owned());
        let mut place = Self { wharf, kind, dir: "work", engine, wire: None };
        place.wire = match (&socket, kind) {
            (Some(socket), Kind::Far(_)) => Some(Wire::to(socket)),
            // The engine is shared with tests that run meanwhile, and its socket is root's: a user has one of his own.
            (Some(socket), _) if place.is_user() => {
                let own = place.path("engine.sock");
                let wire = Wire::beside(socket, &own);
                place.give(&own);
                Some(wire)
            }
            _ => None,
        };
        for dir in ["reports", "work", "private"] {
            place.make_dir(dir);
        }
        place.write("private/secret", SECRET);
        place.write("private/untouched", UNTOUCHED);
        place
    }

    fn is_user(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(self.wharf.home()).is_ok_and(|meta| meta.uid() == STRANGER_UID)
    }

    fn give(&self, path: &Path) {
        if self.is_user() {
            chown(path, Some(STRANGER_UID), Some(STRANGER_UID)).expect("the tests run as root");
        }
    }

    /// A directory in the user's home.
    pub(crate) fn make_dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("a directory of the user's");
        self.give(&path);
        path
    }

    /// A file in the user's home.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file of the user's");
        self.give(&path);
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.wharf.home().join(name)
    }

    /// The same as text: what a hostile session knows of this host.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.wharf.command(args);
        if let (Kind::Container(flavour) | Kind::Shared(flavour) | Kind::Far(flavour), Some(engine)) =
            (self.kind, &self.engine)
        {
            let variable = match flavour {
                Flavour::Docker => "DOCKER_HOST",
                Flavour::Podman => "CONTAINER_HOST",
            };
            let endpoint = self.wire.as_ref().map_or_else(|| engine.endpoint(), Wire::endpoint);
            command.env(variable, endpoint.address);
        }
        command
    }

    /// Runs a command that must end by itself in this time, however it ends.
    #[track_caller]
    pub(crate) fn within(&self, limit: Duration, args: &[&str]) -> Ran {
        self.finish(limit, self.command(args), args)
    }

    #[track_caller]
    pub(crate) fn finish(&self, limit: Duration, mut command: Command, args: &[&str]) -> Ran {
        let began = Instant::now();
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("wharf runs");
        let pid = child.id() as i32;
        let reader = std::thread::spawn(move || child.wait_with_output());
        while !reader.is_finished() {
            if began.elapsed() > limit {
                crate::support::kill(pid);
                panic!("{:?}: wharf {args:?} took longer than {limit:?}", self.kind);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let ran: Ran = reader.join().expect("no panic").expect("its output").into();
        assert!(
            !ran.out.contains(SECRET) && !ran.err.contains(SECRET),
            "wharf {args:?} shows the secret: {ran:#?}"
        );
        ran
    }

    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.within(COMMAND_TIMEOUT, args);
        assert_eq!(ran.code, 0, "{:?}: wharf {args:?} failed: {ran:#?}", self.kind);
        ran.out
    }

    /// What decides where a session runs, with what a hostile one needs.
    pub(crate) fn options(&self) -> Vec<String> {
        let program = self.hostile();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let reports = self.text("reports");
        match self.kind {
            Kind::Local => words(&["-w", &self.text(self.dir), "-e", &format!("HOSTILE_REPORTS={reports}")]),
            Kind::Sandbox => words(&[
                "-w",
                &self.text(self.dir),
                "--sandbox",
                "--sandbox-read",
                &program.display().to_string(),
                "--sandbox-write",
                &reports,
                "-e",
                &format!("HOSTILE_REPORTS={reports}"),
            ]),
            Kind::Container(flavour) | Kind::Shared(flavour) => {
                let mut options = words(&["-b", flavour.name(), "--image", IMAGE, "--network", "none"]);
                options.extend(words(&["-v", &format!("{}:{INSIDE}:ro", program.display())]));
                options.extend(words(&[
                    "-v",
                    &format!("{reports}:/reports"),
                    "-e",
                    "HOSTILE_REPORTS=/reports",
                ]));
                if matches!(self.kind, Kind::Shared(_)) {
                    options.push("--reuse".to_owned());
                }
                options
            }
            Kind::Far(flavour) => words(&["-b", flavour.name(), "--image", IMAGE, "--network", "none"]),
        }
    }

    /// Starts an attack, and gives what it says of itself.
    #[track_caller]
    pub(crate) fn attack(&self, name: &str, options: &[&str], words: &[&str]) -> Vec<Value> {
        self.start(name, options, words);
        self.report(name, words.iter().filter(|word| **word == "+").count() + 1)
    }

    /// Starts an attack.
    #[track_caller]
    pub(crate) fn start(&self, name: &str, options: &[&str], words: &[&str]) {
        let (place, mark) = (self.options(), self.mark());
        let mut args = vec!["run", "-d", "--name", name, "-e", &mark];
        args.extend(place.iter().map(String::as_str));
        args.extend(options);
        args.push("--");
        let program = self.program();
        if matches!(self.kind, Kind::Far(_)) {
            // Nothing of this host can be mounted there: the program is brought once the container runs.
            let script = "while ! test -e /tmp/go; do sleep 0.05; done; exec /tmp/hostile \"$@\"";
            args.extend(["sh", "-c", script, "sh"]);
            args.extend(words);
            self.ok(&args);
            self.ok(&["cp", "-q", &self.hostile().display().to_string(), &format!("{name}:/tmp/hostile")]);
            self.ok(&["cp", "-q", &self.text("work/."), &format!("{name}:/tmp/go")]);
            return;
        }
        args.push(&program);
        args.extend(words);
        self.ok(&args);
    }

    /// The program that attacks, where the user can reach it.
    fn hostile(&self) -> PathBuf {
        let built = Path::new(env!("CARGO_BIN_EXE_wharf")).with_file_name("wharf-hostile");
        assert!(built.is_file(), "cargo build -p wharf-testing makes {}", built.display());
        self.wharf.reachable(&built)
    }

    /// What the program is called where it runs.
    pub(crate) fn program(&self) -> String {
        match self.kind {
            Kind::Local | Kind::Sandbox => self.hostile().display().to_string(),
            Kind::Container(_) | Kind::Shared(_) => INSIDE.to_owned(),
            Kind::Far(_) => "/tmp/hostile".to_owned(),
        }
    }

    /// What an attack said of itself, once it has.
    #[track_caller]
    pub(crate) fn report(&self, name: &str, lines: usize) -> Vec<Value> {
        let path = self.path("reports").join(name);
        let far = matches!(self.kind, Kind::Far(_));
        let read =
            || if far { self.ok(&["logs", name]) } else { fs::read_to_string(&path).unwrap_or_default() };
        let told = || -> Vec<Value> {
            read().lines().filter_map(|line| serde_json::from_str(line.trim()).ok()).collect()
        };
        assert!(until(|| told().len() >= lines), "{:?}: {name} never told: {:?}", self.kind, read());
        told()
    }

    /// A session of this host that has nothing to do with any of it, and repeats what is typed at it.
    #[track_caller]
    pub(crate) fn healthy(&self, name: &str) {
        self.ok(&["run", "-d", "--name", name, "-b", "local", "--", "cat"]);
    }

    /// Nobody has read or changed what is the user's alone.
    #[track_caller]
    pub(crate) fn must_be_untouched(&self) {
        let text = fs::read_to_string(self.path("private/untouched")).expect("it is still there");
        assert_eq!(text, UNTOUCHED, "{:?}: a file of the host was changed", self.kind);
        assert_eq!(fs::read_to_string(self.path("private/secret")).expect("it is still there"), SECRET);
        let names: Vec<_> =
            fs::read_dir(self.path("private")).expect("a directory").filter_map(Result::ok).collect();
        assert_eq!(names.len(), 2, "{:?}: something was made on the host: {names:?}", self.kind);
    }

    /// A session that nobody has typed at or ended.
    #[track_caller]
    pub(crate) fn must_be_well(&self, name: &str) {
        let log = String::from_utf8_lossy(&self.wharf.log(name)).into_owned();
        assert!(!log.contains("owned"), "{:?}: {name} was typed at: {log:?}", self.kind);
        let ran = self.within(COMMAND_TIMEOUT, &["show", name, "--json"]);
        let shown: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:#?}"));
        assert!(crate::support::is_live(&shown), "{:?}: {name} was ended: {shown}", self.kind);
    }

    /// What every process of a hostile session has among its variables.
    fn mark(&self) -> String {
        format!("HOSTILE_HOME={}", self.wharf.home().display())
    }

    /// Ends the processes of hostile sessions from outside, as the machine's owner can.
    pub(crate) fn end_by_force(&self) {
        kill_all_with(self.mark().as_bytes());
    }

    /// Takes everything away; what is hostile is asked for nothing.
    pub(crate) fn clear(&self) {
        self.within(COMMAND_TIMEOUT, &["kill", "--all"]);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.wharf.state().join("daemon.log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(15).collect();
            eprintln!("the daemon's last words: {tail:#?}");
            // A daemon that hangs would keep whoever clears up after it: all that runs with this home is the test's own.
            kill_all_with(&[b"HOME=", self.wharf.home().as_os_str().as_encoded_bytes()].concat());
        }
        self.end_by_force();
        // A tree may be deeper than what removes temporary directories can walk.
        let _ = Command::new("rm").arg("-rf").arg(self.wharf.state().join("sessions")).status();
    }
}

/// Kills the processes that have a variable, which are the test's own.
fn kill_all_with(variable: &[u8]) {
    for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let variables = fs::read(entry.path().join("environ")).unwrap_or_default();
        if variables.split(|byte| *byte == 0).any(|one| one == variable) {
            crate::support::kill(pid);
        }
    }
}

/// Makes a test of a case for each place.
macro_rules! at {
    ($case:ident: $($name:ident = $place:expr),* $(,)?) => {
        mod $case {
            #[allow(unused_imports, reason = "not every case is in a container")]
            use wharf_container::Flavour::{Docker, Podman};
            #[allow(unused_imports, reason = "each case has its own places")]
            use crate::place::{Kind::{Container, Far, Local, Sandbox, Shared}, Place};
            $( #[test] fn $name() { super::$case(&$place); } )*
        }
    };
}

pub(crate) use at;
