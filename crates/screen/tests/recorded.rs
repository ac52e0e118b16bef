//! What real programs printed, and what was on their screens then.
//!
//! Each recording is three files in `tests/recorded`: `NAME.bytes`, the output; `NAME.size`, as `80x24`; `NAME.screen`,
//! the screen as plain text. A new one needs the first two; `UPDATE_SCREENS=1` writes the third, to be read
//! before it is kept. `NAME.all`, where it is there, is the same for all lines.

use std::fs;
use std::path::{Path, PathBuf};

use wharf_model::Size;
use wharf_screen::{Format, Screen, What};
use wharf_sequences::Queries;

fn recordings() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let entries = fs::read_dir(dir).expect("recordings").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "bytes")).collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> (Size, Vec<u8>) {
    let size = fs::read_to_string(path.with_extension("size")).expect("a size beside the bytes");
    let (cols, rows) = size.trim().split_once('x').expect("a size such as 80x24");
    let number = |text: &str| text.parse().expect("a number in the size");
    (Size { cols: number(cols), rows: number(rows) }, fs::read(path).expect("the bytes"))
}

fn shown(size: Size, bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(size, 1000);
    let _ = screen.feed(bytes);
    screen
}

#[test]
fn recordings_show_what_they_showed() {
    let update = std::env::var_os("UPDATE_SCREENS").is_some();
    let paths = recordings();
    assert!(paths.len() >= 5, "{} recordings", paths.len());
    let mut wrong = Vec::new();
    for path in paths {
        let (size, bytes) = read(&path);
        let screen = shown(size, &bytes);
        for (what, extension) in [(What::Screen, "screen"), (What::All, "all")] {
            let expected = path.with_extension(extension);
            let text = screen.capture(what, Format::Plain);
            if update && (extension == "screen" || expected.exists()) {
                fs::write(&expected, &text).expect("the screen is written");
            } else if extension == "screen" || expected.exists() {
                let kept = fs::read_to_string(&expected).unwrap_or_default();
                if kept != text {
                    wrong.push(format!("{}\n{text}\ninstead of\n{kept}", expected.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "UPDATE_SCREENS=1 accepts:\n{}", wrong.join("\n"));
}

#[test]
fn recordings_survive_cuts_repaints_and_checkpoints() {
    for path in recordings() {
        let (size, bytes) = read(&path);
        let whole = shown(size, &bytes);
        let mut cut = Screen::new(size, 1000);
        let mut asked = false;
        let mut queries = Queries::new();
        let mut replies = Vec::new();
        for piece in bytes.chunks(7) {
            replies.extend(cut.feed(piece).replies);
            asked |= queries.scan(piece);
        }
        let all = |screen: &Screen| screen.capture(What::All, Format::Json);
        assert_eq!(all(&cut), all(&whole), "{}", path.display());
        assert_eq!(asked, !replies.is_empty(), "{}", path.display());
        // At many points of it, not only where it ends.
        for end in (0..=bytes.len()).step_by(bytes.len() / 40 + 1) {
            let screen = shown(size, &bytes[..end]);
            let mut painted = Screen::new(size, 1000);
            let heard = painted.feed(&screen.repaint());
            assert!(heard.replies.is_empty(), "{} at {end}", path.display());
            let look = |screen: &Screen| screen.capture(What::All, Format::Ansi);
            assert_eq!(look(&painted), look(&screen), "{} at {end}", path.display());
            let mut restored = Screen::restore(&screen.checkpoint()).expect("a checkpoint");
            let _ = restored.feed(&bytes[end..]);
            assert_eq!(all(&restored), all(&whole), "{} from {end}", path.display());
        }
    }
}

#[test]
fn no_size_loses_what_a_shell_printed() {
    for path in recordings() {
        let (size, bytes) = read(&path);
        let mut screen = shown(size, &bytes);
        let letters = |screen: &Screen| screen.all().concat().replace(' ', "");
        let before = letters(&screen);
        for (cols, rows) in [(40, 10), (20, 24), (133, 50), (7, 3), (size.cols, size.rows)] {
            screen.resize(Size { cols, rows });
            assert_eq!(letters(&screen), before, "{} at {cols}×{rows}", path.display());
        }
    }
}
