//! The daemon's log: a file of ours, begun anew where it has grown long or where something else stands in its place.

use std::fs::File;
use std::io::{self, Write};

use wharf_boundary::{Dir, Kind};
use wharf_model::Home;

/// The log is moved aside beyond this, when a daemon starts.
pub(crate) const MAX_LOG_LEN: u64 = 1 << 20;

const NAME: &str = "daemon.log";
const OLD: &str = "daemon.log.1";

/// Opens the log to append to.
pub(crate) fn open(home: &Home) -> io::Result<File> {
    let state = Dir::open(home.state())?;
    let (mut file, mut aside) = state.append_own(NAME, 0o600)?;
    if file.metadata()?.len() > MAX_LOG_LEN {
        // A directory is not replaced by a file; anything else is, itself and not what it points to.
        if state.kind(OLD)? == Some(Kind::Directory) {
            state.put_aside(OLD)?;
        }
        state.rename(NAME, &state, OLD)?;
        (file, aside) = state.append_own(NAME, 0o600)?;
    }
    if let Some(aside) = aside {
        writeln!(file, "{aside}")?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_stands_in_the_place_of_the_log_is_put_aside_and_said() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        fs::create_dir(home.state()).unwrap();
        let precious = root.path().join("precious");
        fs::write(&precious, "p").unwrap();
        symlink(&precious, home.daemon_log()).unwrap();
        open(&home).unwrap();
        let said = fs::read_to_string(home.daemon_log()).unwrap();
        assert!(said.starts_with("daemon.log was put aside as daemon.log.aside.0"), "{said}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "p");
    }

    #[test]
    fn a_long_log_is_moved_aside_whatever_stands_there() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        fs::create_dir(home.state()).unwrap();
        fs::create_dir(home.state().join(OLD)).unwrap();
        fs::write(home.daemon_log(), vec![b'x'; MAX_LOG_LEN as usize + 1]).unwrap();
        open(&home).unwrap();
        assert_eq!(fs::metadata(home.daemon_log()).unwrap().len(), 0);
        assert_eq!(fs::metadata(home.state().join(OLD)).unwrap().len(), MAX_LOG_LEN + 1);
        assert!(home.state().join(format!("{OLD}.aside.0")).is_dir());
    }
}
