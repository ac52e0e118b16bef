//! A pane of a server that is not ours: it is watched and typed at, and let go where another session would be ended.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio::process::Command;
use wharf_backend::Result;
use wharf_holder::linux;
use wharf_model::{Code, Failure, Size, Text};

use crate::pane_socket::PaneSocket;
use crate::server;
use crate::target::Target;

/// What is asked of every pane. The session's name comes last: it alone may have spaces.
const FORMAT: &str = "#{pane_id} #{window_index} #{pane_index} #{window_active} #{pane_active} #{pane_dead} \
    #{pane_pipe} #{pane_pid} #{pane_width} #{pane_height} #{pane_tty} #{session_name}";

/// What is asked of a pane's screen. Cursors of the screen that is shown, and of the main one where the alternate one is.
const SCREEN_FORMAT: &str = "#{pane_height} #{cursor_x} #{cursor_y} #{cursor_flag} #{alternate_on} \
    #{alternate_saved_x} #{alternate_saved_y}";

/// The user's own server.
pub(crate) struct Foreign {
    program: PathBuf,
    socket: PathBuf,
}

/// A pane of it.
#[expect(clippy::struct_excessive_bools, reason = "this is how tmux tells it")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pane {
    /// The name that no other pane ever has.
    pub(crate) id: String,
    pub(crate) window: u32,
    pub(crate) index: u32,
    /// Whether its session shows its window.
    pub(crate) window_shown: bool,
    /// Whether its window has it in front.
    pub(crate) shown: bool,
    dead: bool,
    /// Whether somebody reads along already.
    piped: bool,
    /// Its command.
    pub(crate) pid: i32,
    pub(crate) size: Size,
    tty: PathBuf,
    pub(crate) session: String,
}

impl Foreign {
    /// The server that a caller with these variables means.
    pub(crate) fn of(program: PathBuf, env: &[(Text, Text)]) -> Result<Self> {
        let var = |wanted: &str| {
            let found = env.iter().find(|(name, _)| name.as_bytes() == wanted.as_bytes());
            found.map(|(_, value)| value.as_bytes()).filter(|value| !value.is_empty())
        };
        let inside = var("TMUX").and_then(|inside| inside.split(|byte| *byte == b',').next());
        let socket = if let Some(socket) = inside {
            PathBuf::from(OsStr::from_bytes(socket))
        } else {
            let own = std::fs::metadata("/proc/self")
                .map_err(|error| Failure::system("cannot tell who we are", &error))?;
            let base = var("TMUX_TMPDIR").unwrap_or(b"/tmp");
            Path::new(OsStr::from_bytes(base)).join(format!("tmux-{}/default", own.uid()))
        };
        Ok(Self { program, socket })
    }

    async fn ask(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.arg("-S").arg(&self.socket).args(args).env_clear().current_dir("/");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        server::output(&mut command).await
    }

    /// Finds a pane. Names are compared here: tmux would take the beginning of one for the whole.
    pub(crate) async fn find(&self, target: &Target) -> Result<Pane> {
        let listed = self.ask(&["list-panes", "-a", "-F", FORMAT]).await?;
        let mut panes = listed.lines().filter_map(Pane::parse);
        let found = panes.find(|pane| target.means(pane));
        let pane = found.ok_or_else(|| {
            Failure::new(Code::NotFound, format!("tmux has no pane {target}"))
                .hint("`tmux list-panes -a` shows what there is")
        })?;
        if pane.dead {
            return Err(Failure::new(Code::Ended, format!("the command in pane {target} has ended")));
        }
        if pane.piped {
            return Err(Failure::new(Code::Busy, format!("somebody reads pane {target} along already"))
                .hint("tmux has one reader for each pane: `tmux pipe-pane` without a command ends it"));
        }
        Ok(pane)
    }

    /// What a person types to join its session.
    pub(crate) fn join_command(&self, pane: &Pane) -> Vec<Text> {
        let target = format!("={}", pane.session);
        vec![
            self.program.as_path().into(),
            "-S".into(),
            self.socket.as_path().into(),
            "attach-session".into(),
            "-t".into(),
            target.into(),
        ]
    }

    /// What stands on a pane's screen, as output that would draw it.
    pub(crate) async fn screen(&self, pane: &Pane) -> Result<Text> {
        let capture = ["capture-pane", "-p", "-e", "-t", &pane.id];
        // In one go, so that no output of the pane comes between the cursor and the rows.
        let args = [
            &["display-message", "-p", "-t", &pane.id, SCREEN_FORMAT, ";"][..],
            &capture,
            &[";"],
            &capture,
            // The rows of the main screen, while the alternate one is shown; nothing else.
            &["-a", "-q"],
        ];
        let told = self.ask(&args.concat()).await?;
        let output = drawn(&told).ok_or_else(|| {
            Failure::new(
                Code::Unreachable,
                format!("tmux does not tell where pane {} has its cursor", pane.id),
            )
        })?;
        Ok(output.into())
    }

    /// Has tmux bring a pane's output and input to a door.
    pub(crate) async fn tap(&self, pane: &Pane, holder: &Path, door: &PaneSocket) -> Result<OwnedFd> {
        let tap = format!("exec {} tap {}", spelled(holder), spelled(door.path()));
        self.ask(&["pipe-pane", "-I", "-O", "-t", &pane.id, &tap]).await?;
        door.link().await
    }
}

impl Pane {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(12, ' ');
        let mut word = || words.next();
        let id = word()?.to_owned();
        let (window, index) = (word()?.parse().ok()?, word()?.parse().ok()?);
        let (window_shown, shown) = (word()? == "1", word()? == "1");
        let (dead, piped) = (word()? == "1", word()? == "1");
        let pid = word()?.parse().ok()?;
        let size = Size { cols: word()?.parse().ok()?, rows: word()?.parse().ok()? };
        let tty = PathBuf::from(word()?);
        let session = word()?.to_owned();
        Some(Self { id, window, index, window_shown, shown, dead, piped, pid, size, tty, session })
    }

    /// Its terminal, from the command's side.
    pub(crate) fn terminal(&self) -> Result<OwnedFd> {
        linux::open_terminal(&self.tty)
            .map_err(|error| Failure::system(format!("cannot open {}", self.tty.display()), &error))
    }
}

/// The output that draws what tmux told of a screen: the line of `SCREEN_FORMAT`, the rows that are shown, and those of the main
/// screen.
fn drawn(told: &str) -> Option<String> {
    let (first, rows) = told.split_once('\n')?;
    let numbers: Vec<u32> = first.split(' ').map(str::parse).collect::<std::result::Result<_, _>>().ok()?;
    let [height, x, y, visible, alternate, main_x, main_y] = numbers[..] else { return None };
    let rows: Vec<&str> = rows.lines().collect();
    let (shown, main) = rows.split_at_checked(height as usize)?;
    let mut output = String::new();
    if alternate == 1 {
        output.push_str(&page(main, main_x, main_y));
        // Which keeps that cursor for the way back, and shows an empty screen.
        output.push_str("\x1b[?1049h\x1b[H");
    }
    output.push_str(&page(shown, x, y));
    if visible == 0 {
        output.push_str("\x1b[?25l");
    }
    Some(output)
}

/// The output that draws rows from the top of an empty screen, and leaves the cursor at this column and row, from 0.
fn page(rows: &[&str], x: u32, y: u32) -> String {
    let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    // In column and row from 1. The last row's colours are none of what comes after it.
    let place = format!("\x1b[m\x1b[{};{}H", y.saturating_add(1), x.saturating_add(1));
    rows[..used].join("\r\n") + &place
}

/// A path as a word that neither tmux nor the shell it runs finds anything in but digits.
fn spelled(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let digits: Vec<String> = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("\"$(printf '{}')\"", digits.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_is_read_from_its_line() {
        let pane = Pane::parse("%7 2 1 1 1 0 0 4711 120 40 /dev/pts/3 a name with spaces").expect("a pane");
        assert_eq!((pane.id.as_str(), pane.window, pane.index, pane.pid), ("%7", 2, 1, 4711));
        assert_eq!((pane.shown, pane.dead, pane.piped), (true, false, false));
        assert_eq!((pane.size, pane.session.as_str()), (Size { cols: 120, rows: 40 }, "a name with spaces"));
        assert_eq!(Pane::parse("%7 2 1 1 1 0"), None);
        assert_eq!(Pane::parse(""), None);
    }

    #[test]
    fn a_screen_is_drawn_with_its_cursor() {
        let nothing_saved = u32::MAX;
        for (told, output) in [
            ("3 2 0 1 0 X X\n$\n\n\n\n", "$\x1b[m\x1b[1;3H"),
            // Rows above the last one stay where they are, and so does a cursor below it.
            ("4 0 3 1 0 X X\n\na\n\n\n\n", "\r\na\x1b[m\x1b[4;1H"),
            ("2 0 0 0 0 X X\n\n\n\n", "\x1b[m\x1b[1;1H\x1b[?25l"),
            ("2 1 1 1 1 2 0\nA\nB\n$ x\n\n", "$ x\x1b[m\x1b[1;3H\x1b[?1049h\x1b[HA\r\nB\x1b[m\x1b[2;2H"),
        ] {
            let told = told.replace('X', &nothing_saved.to_string());
            assert_eq!(drawn(&told).as_deref(), Some(output), "{told:?}");
        }
        for odd in ["", "2 0 0 1 0 0 0\n\n", "2 0 0 1\n\n\n", "   \n"] {
            assert_eq!(drawn(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn a_path_is_only_digits() {
        assert_eq!(spelled(Path::new("/#(")), "\"$(printf '\\057\\043\\050')\"");
    }

    #[test]
    fn the_server_is_the_callers() {
        let of = |env: &[(&str, &str)]| {
            let env: Vec<(Text, Text)> =
                env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            Foreign::of("tmux".into(), &env).expect("a server").socket
        };
        assert_eq!(of(&[("TMUX", "/x/y,12,0"), ("TMUX_TMPDIR", "/t")]), Path::new("/x/y"));
        assert!(of(&[("TMUX_TMPDIR", "/t")]).starts_with("/t"));
        assert!(of(&[("TMUX", "")]).starts_with("/tmp"));
    }
}
