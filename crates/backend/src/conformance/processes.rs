//! Finds processes by their mark, and runs a bystander process that no backend may end.

use std::fs;
use std::process::{Child, Command, Stdio};

/// The processes that carry a mark in their variables or arguments. One that has ended carries nothing.
///
/// The arguments count because a command may have emptied its variables.
pub fn carrying(mark: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let own = std::process::id() as i32;
    pids.filter(|pid| *pid != own && (holds(*pid, "environ", mark) || holds(*pid, "cmdline", mark))).collect()
}

fn holds(pid: i32, file: &str, mark: &str) -> bool {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    bytes.windows(mark.len()).any(|window| window == mark.as_bytes())
}

/// Asserts that no process carries a mark.
///
/// # Panics
/// Where one does, with what it runs.
pub fn none_carry(mark: &str) {
    let left: Vec<String> = carrying(mark)
        .into_iter()
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid}: {}", String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect();
    assert!(left.is_empty(), "processes were left:\n{}", left.join("\n"));
}

/// A process that has nothing to do with any session, and that must live on.
pub struct Bystander(Child);

impl Bystander {
    /// Starts one.
    ///
    /// # Panics
    /// Where `sleep` cannot be run.
    pub fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("sleep is there"))
    }

    /// Its pid.
    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// When it started, as the kernel counts it.
    pub fn start_time(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        let after = stat.rsplit(") ").next().unwrap_or_default();
        // Field 22, and the name is the second.
        after.split(' ').nth(19).and_then(|field| field.parse().ok()).unwrap_or_default()
    }

    /// Asserts that nobody ended it.
    pub fn must_live(&mut self) {
        let ended = self.0.try_wait().expect("our own child can be asked");
        assert!(ended.is_none(), "a bystander was ended: {ended:?}");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        // It may have been ended by what the test is about; there is nothing more to do then.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
