//! The paths that a sandbox is given, as they were understood at the session's first start.

use wharf_backend::{Launch, Pins};
use wharf_model::{Code, Expected, Failure, Name, Pin, PinKind, Sandbox, Text};

use crate::Result;

/// What a sandbox may read and change, without links.
#[derive(Debug, Default)]
pub(crate) struct Pinned {
    pub(crate) read: Vec<Text>,
    pub(crate) write: Vec<Text>,
    /// What the step must find at each of them.
    pub(crate) expected: Vec<Expected>,
}

/// The paths that a launch asks for. It has nothing of the launch itself, so that another thread can look at them.
pub(crate) struct Asked {
    name: Name,
    dir: Text,
    sandbox: Sandbox,
    pins: Vec<Pin>,
}

impl Asked {
    pub(crate) fn of(launch: &Launch) -> Self {
        let spec = &launch.spec;
        Self {
            name: launch.name.clone(),
            dir: spec.dir.clone(),
            sandbox: spec.sandbox.as_deref().cloned().unwrap_or_default(),
            pins: spec.pins.clone(),
        }
    }

    /// Decides or checks the paths: the session's directory, and those that were named. The pins are those of the launch
    /// from now on.
    pub(crate) fn settle(mut self) -> Result<(Pinned, Vec<Pin>)> {
        let dir = self.dir.as_path();
        if !dir.is_dir() {
            let message = format!("cannot run in {:?}: it is no directory", dir.display().to_string());
            return Err(Failure::new(Code::NoDirectory, message).hint("give a directory that exists with -w"));
        }
        let mut pins = Pins::new(&self.name, &mut self.pins);
        let mut pinned = Pinned::default();
        let mut settle = |path: &Text| -> Result<Text> {
            if pins.of(PinKind::Sandbox, path).is_none() {
                there(path)?;
            }
            let sure = pins.settle(PinKind::Sandbox, path)?;
            let (found, look) = (Text::from(sure.path.as_path()), sure.look);
            let expected = Expected { path: found.clone(), device: look.device, inode: look.inode };
            if !pinned.expected.contains(&expected) {
                pinned.expected.push(expected);
            }
            Ok(found)
        };
        let mut write = vec![settle(&self.dir)?];
        for path in &self.sandbox.write {
            let path = settle(path)?;
            if !write.contains(&path) {
                write.push(path);
            }
        }
        let read = self.sandbox.read.iter().map(settle).collect::<Result<_>>()?;
        (pinned.read, pinned.write) = (read, write);
        Ok((pinned, self.pins))
    }
}

fn there(path: &Text) -> Result<()> {
    if path.as_path().is_absolute() && path.as_path().exists() {
        return Ok(());
    }
    let message = format!("the sandbox cannot have {}: there is no such path", path.lossy());
    Err(Failure::new(Code::Invalid, message)
        .hint("name files and directories that are there, from the root on"))
}
