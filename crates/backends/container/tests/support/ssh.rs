//! A host to log in at: an `sshd` of the test's own on the loopback, with keys that are nobody else's.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use wharf_backend::conformance::until;

/// An `sshd`, for as long as somebody has one of these.
pub(crate) struct Server {
    dir: tempfile::TempDir,
    port: u16,
    sshd: Child,
}

impl Server {
    /// Starts one. The system's own, if there is one, is left alone.
    pub(crate) async fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(dir.path().join(name))
                .stdin(Stdio::null())
                .status();
            assert!(made.expect("ssh-keygen is here").success());
        }
        fs::copy(dir.path().join("user.pub"), dir.path().join("allowed")).expect("a file");
        // Where it puts those who have not said who they are; the system makes it at boot, if it has one to start.
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all("/run/sshd").expect("a directory");
        }
        let port =
            TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it is bound").port();
        let at = dir.path().display();
        // With a HOME of its own: a shell that reads the user's files may do anything there, or wait for something.
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {at}/host\nAuthorizedKeysFile {at}/allowed\n\
             PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n\
             MaxStartups 100\nSetEnv HOME={at}\n"
        );
        fs::write(dir.path().join("sshd_config"), config).expect("a file");
        let host = fs::read_to_string(dir.path().join("host.pub")).expect("a key");
        fs::write(dir.path().join("known"), format!("[127.0.0.1]:{port} {host}")).expect("a file");
        // As a user's own configuration would have it.
        let script = format!(
            "#!/bin/sh\nexec ssh -F none -i '{at}/user' -o IdentitiesOnly=yes -o UserKnownHostsFile='{at}/known' \
             -o StrictHostKeyChecking=yes \"$@\"\n"
        );
        let program = dir.path().join("ssh");
        fs::write(&program, script).expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let log = fs::File::create(dir.path().join("log")).expect("a file");
        let sshd = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(dir.path().join("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("sshd is here: openssh-server has it");
        until("sshd listens", async || TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
        Self { dir, port, sshd }
    }

    /// The program that logs in there.
    pub(crate) fn program(&self) -> PathBuf {
        self.dir.path().join("ssh")
    }

    /// The address of an engine whose socket is over there.
    pub(crate) fn address(&self, socket: &Path) -> String {
        let me = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        format!("ssh://{me}@127.0.0.1:{}{}", self.port, socket.display())
    }

    /// Lets nobody in any more.
    pub(crate) fn forget(&self) {
        fs::write(self.dir.path().join("allowed"), "").expect("it is ours");
    }

    /// What it said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}
