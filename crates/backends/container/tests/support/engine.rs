//! Real engines of the tests' own: started by the first test that needs one, shared by the others, ended after the last.

#![allow(dead_code, reason = "each test uses its own part of it")]

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bollard::query_parameters::CreateImageOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, Docker, body_full};
use futures_util::StreamExt;
use wharf_backend::conformance::left_out;
use wharf_container::{Endpoint, Flavour};

// Podman gives whatever it imports the tag `latest`.
/// The image of the suite: a shell and the usual programs of this host, with their libraries.
pub(crate) const IMAGE: &str = "localhost/wharf-test-host:latest";
/// One static program and nothing else.
pub(crate) const BUSYBOX: &str = "localhost/wharf-test-busybox:latest";
/// How long an engine may take to come up.
const ENGINE_START_TIMEOUT: Duration = Duration::from_secs(90);

/// An engine that lives for as long as somebody has one of these.
pub(crate) struct TestEngine {
    dir: PathBuf,
    _users: File,
}

impl TestEngine {
    /// The engine, started where it is not there yet.
    pub(crate) async fn get(flavour: Flavour) -> Self {
        install(flavour);
        // A path of an engine's sockets must be short, so it is not below the target directory but named by it.
        let mut hasher = DefaultHasher::new();
        env!("CARGO_TARGET_TMPDIR").hash(&mut hasher);
        let name = format!("wharf-{}-{:08x}", flavour.name(), hasher.finish() as u32);
        let dir = std::env::temp_dir().join(name);
        let deadline = Instant::now() + ENGINE_START_TIMEOUT;
        loop {
            assert!(Instant::now() < deadline, "no engine: {}", tail(&dir.join("log")));
            let Some(users) = locked(&dir, "users", File::lock_shared) else { continue };
            let engine = Self { dir: dir.clone(), _users: users };
            let Some(_turn) = locked(&dir, "turn", File::lock) else { continue };
            if !dir.join("ready").exists() {
                engine.start(flavour);
                engine.wait_until(deadline).await;
                engine.import().await;
                fs::write(dir.join("ready"), "").expect("the directory is ours");
            }
            if engine.answers().await {
                return engine;
            }
            // One that died with its keeper, as when the machine was switched off.
            let _ = fs::remove_dir_all(&dir);
        }
    }

    /// A Docker of the caller's own, which lets containers run when it is killed; see [`TestEngine::kill`].
    pub(crate) async fn alone() -> Self {
        install(Flavour::Docker);
        // Its maker and the moment are enough to tell it from others.
        let now = std::time::UNIX_EPOCH.elapsed().expect("a clock that is set").as_millis() as u32;
        let dir = std::env::temp_dir().join(format!("wharf-alone-{:x}-{now:x}", std::process::id()));
        let users = locked(&dir, "users", File::lock_shared).expect("nobody else has it");
        let engine = Self { dir, _users: users };
        engine.keep("alone");
        engine.wait_until(Instant::now() + ENGINE_START_TIMEOUT).await;
        engine.import().await;
        engine
    }

    /// Kills one that is the caller's own, and keeps it down.
    pub(crate) fn kill(&self) {
        fs::write(self.dir.join("hold"), "").expect("the directory is ours");
        fs::write(self.dir.join("kill"), "").expect("the directory is ours");
    }

    /// Lets it be started again.
    pub(crate) async fn again(&self) {
        fs::remove_file(self.dir.join("hold")).expect("it was killed");
        self.wait_until(Instant::now() + ENGINE_START_TIMEOUT).await;
    }

    /// Where it listens.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::named(format!("unix://{}", self.socket().display()), "the tests")
    }

    /// A client of the engine, for what a user might do by hand.
    pub(crate) fn client(&self) -> Option<Docker> {
        Docker::connect_with_unix(self.socket().to_str()?, 60, API_DEFAULT_VERSION).ok()
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("sock")
    }

    fn start(&self, flavour: Flavour) {
        self.keep(flavour.name());
    }

    fn keep(&self, kind: &str) {
        let mut keeper = Command::new("sh");
        keeper.args(["-c", include_str!("engine.sh"), "wharf-test-engine"]).arg(kind).arg(&self.dir);
        // It outlives this test: its own group, and nothing of ours is open in it.
        keeper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let keeper = keeper.spawn().expect("a shell");
        // It is nobody's to wait for: whoever runs last is not who started it.
        std::mem::forget(keeper);
    }

    async fn answers(&self) -> bool {
        let Some(client) = self.client() else { return false };
        let ping = tokio::time::timeout(Duration::from_secs(5), client.ping()).await;
        ping.is_ok_and(|answer| answer.is_ok())
    }

    async fn wait_until(&self, deadline: Instant) {
        while !self.answers().await {
            assert!(Instant::now() < deadline, "no engine: {}", tail(&self.dir.join("log")));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Makes the images without a registry.
    async fn import(&self) {
        let client =
            self.client().expect("it has just answered").negotiate_version().await.expect("a version");
        for (image, script) in [(IMAGE, HOST_ROOT), (BUSYBOX, BUSYBOX_ROOT)] {
            let (repository, tag) = image.split_once(':').expect("a tag");
            let root = self.dir.join(repository.rsplit('/').next().expect("a name"));
            let tar = Command::new("sh").args(["-ec", script, "sh"]).arg(&root).output().expect("a shell");
            assert!(tar.status.success(), "{}", String::from_utf8_lossy(&tar.stderr));
            let options =
                CreateImageOptionsBuilder::default().from_src("-").repo(repository).tag(tag).build();
            let body = body_full(tar.stdout.into());
            let mut progress = Box::pin(client.create_image(Some(options), Some(body), None));
            while let Some(step) = progress.next().await {
                step.expect("an image can be imported");
            }
        }
    }
}

const HOST_ROOT: &str = r#"
    mkdir -p "$1/usr/bin" "$1/usr/lib" "$1/usr/lib64" "$1/tmp" "$1/etc" "$1/root"
    chmod 1777 "$1/tmp"
    for dir in bin lib lib64; do ln -s "usr/$dir" "$1/$dir"; done
    for name in sh cat head tr yes tail printf sleep env cksum setsid stty test touch id ls ln cp mkdir mkfifo mv rm truncate git bash; do
        path=$(PATH=/usr/bin:/bin command -v "$name" || true)
        [ -x "/usr/bin/$name" ] && path=/usr/bin/$name
        [ -x "$path" ] || continue
        cp -L "$path" "$1/usr/bin/$name"
        for library in $(ldd "$path" 2>/dev/null | grep -o '/[^ ]*'); do
            mkdir -p "$1$(dirname "$library")"
            cp -Ln "$library" "$1$library"
        done
    done
    printf 'root:x:0:0::/root:/bin/sh\nother:x:1234:1234::/tmp:/bin/sh\n' >"$1/etc/passwd"
    printf 'root:x:0:\nother:x:1234:\n' >"$1/etc/group"
    tar -C "$1" -c ."#;

const BUSYBOX_ROOT: &str = r#"
    mkdir -p "$1/bin"
    cp "$(command -v busybox)" "$1/bin/busybox"
    tar -C "$1" -c ."#;

/// A lock on a file of the directory, unless the directory was taken away meanwhile.
fn locked(dir: &Path, name: &str, lock: fn(&File) -> std::io::Result<()>) -> Option<File> {
    fs::create_dir_all(dir).expect("a directory");
    let path = dir.join(name);
    let file = File::options().create(true).append(true).open(&path).ok()?;
    lock(&file).expect("a lock");
    let same = fs::metadata(&path).is_ok_and(|meta| file.metadata().is_ok_and(|own| own.ino() == meta.ino()));
    same.then_some(file)
}

/// Installs an engine where it is absent and can be installed. An engine of the tests' own needs root.
fn install(flavour: Flavour) {
    if !rustix::process::geteuid().is_root() {
        left_out("an engine of the tests' own needs root");
    }
    let (program, packages): (_, &[&str]) = match flavour {
        Flavour::Docker => ("dockerd", &["docker.io", "iptables", "busybox-static", "iproute2"]),
        Flavour::Podman => {
            ("podman", &["podman", "runc", "netavark", "aardvark-dns", "busybox-static", "iproute2"])
        }
    };
    let there = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| dir.join(name).exists())
    };
    if there(program) && there("busybox") {
        return;
    }
    // Whoever comes second waits, and finds it there. The lock is a directory that is there anyway: nothing is left of it.
    let lock = File::open("/var/lib/dpkg").unwrap_or_else(|_| left_out(&format!("{program} is not here")));
    lock.lock().expect("a lock");
    if there(program) && there("busybox") {
        return;
    }
    // What was fetched is not kept: it is installed once.
    let install =
        ["install", "-y", "-q", "--no-install-recommends", "-o", "APT::Keep-Downloaded-Packages=false"];
    for arguments in [&["update", "-q"][..], &[&install[..], packages].concat()] {
        let ran = Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").output();
        if !ran.as_ref().is_ok_and(|ran| ran.status.success()) {
            eprintln!("apt-get {arguments:?}: {ran:?}");
            left_out(&format!("{program} is not here, and cannot be installed"));
        }
    }
}

fn tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
}
