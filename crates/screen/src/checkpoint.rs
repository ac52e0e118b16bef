//! A screen as bytes that survive a restart.

use serde::{Deserialize, Serialize};
use wharf_model::Size;
use wharf_sequences::Scanner;

use crate::Screen;
use crate::notes::Notes;
use crate::repaint::paint;

/// What the bytes begin with. The number changes with anything that an older version would misread: that is nothing but
/// margins at the sides, so without them it is the old one.
const MAGIC: &[u8] = b"wharf-screen 1\n";
const MAGIC_WITH_SIDES: &[u8] = b"wharf-screen 2\n";

/// All that is not painted.
#[derive(Serialize, Deserialize)]
struct Head {
    size: Size,
    scrollback: usize,
    generation: u64,
    scrolled: u64,
    notes: Notes,
    scanner: Scanner,
}

impl Screen {
    /// The screen as bytes. Output goes on with the byte after the last one fed: an unfinished sequence is part of it.
    pub fn checkpoint(&self) -> Vec<u8> {
        let head = Head {
            size: self.size,
            scrollback: self.terminal.scrollback(),
            generation: self.generation,
            scrolled: self.terminal.scrolled,
            notes: self.terminal.notes.clone(),
            scanner: self.scanner.clone(),
        };
        let head = serde_json::to_vec(&head).expect("strings, numbers and switches are JSON");
        let magic = if self.terminal.notes.sided { MAGIC_WITH_SIDES } else { MAGIC };
        [magic, &head, b"\n", &paint(&self.terminal, usize::MAX)].concat()
    }

    /// The screen that a checkpoint was made of; `None` where the bytes are none, or are another version's.
    pub fn restore(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC).or_else(|| bytes.strip_prefix(MAGIC_WITH_SIDES))?;
        let end = memchr::memchr(b'\n', rest)?;
        let head: Head = serde_json::from_slice(&rest[..end]).ok()?;
        let mut screen = Self::new(head.size, head.scrollback);
        let _ = screen.feed(&rest[end + 1..]);
        let terminal = &mut screen.terminal;
        let (said, painted) = (&head.notes, &terminal.notes);
        if said.tabs.len() != terminal.columns()
            || (said.margins, said.sided, said.sides) != (painted.margins, painted.sided, painted.sides)
            || said.turned.len() != painted.turned.len()
        {
            return None;
        }
        terminal.notes = head.notes;
        terminal.scrolled = head.scrolled;
        screen.scanner = head.scanner;
        screen.generation = head.generation;
        Some(screen)
    }
}
