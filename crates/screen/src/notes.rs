//! What the grid does not keep, or keeps to itself.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::signal::{ProgressReport, PromptMark, ShellPhase, StatusReport, StatusState};

/// How many titles a program may put aside.
const MAX_TITLES: usize = 32;
/// How many marks are remembered.
const MAX_MARKS: usize = 512;

/// Modes that only matter to whoever types: they are remembered, and restored by a repaint.
pub(crate) const REMEMBERED: [u16; 9] = [5, 9, 45, 1015, 1016, 1034, 1036, 1039, 2031];

/// The terminal's state beside its cells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notes {
    pub(crate) title: String,
    titles: Vec<String>,
    pub(crate) directory: Option<String>,
    pub(crate) progress: Option<ProgressReport>,
    pub(crate) status: Option<StatusReport>,
    pub(crate) phase: Option<ShellPhase>,
    /// Of the primary screen, and of the alternate one.
    pub(crate) keyboards: [Keyboard; 2],
    pub(crate) modify_other_keys: u8,
    /// One bit for each of `REMEMBERED`.
    switches: u16,
    pub(crate) synchronized: bool,
    /// What `CSI b` repeats.
    pub(crate) last: Option<char>,
    /// The first row of the scrolling region, and the one after its last.
    pub(crate) margins: (usize, usize),
    /// Margins at the sides may be set (DECLRMM).
    #[serde(default)]
    pub(crate) sided: bool,
    /// The first column between the margins at the sides, and the one after the last; `None` where that is all columns.
    #[serde(default)]
    pub(crate) sides: Option<(usize, usize)>,
    /// While there are such margins: whether the text of each row ran on at the right one.
    #[serde(default)]
    pub(crate) turned: Vec<bool>,
    pub(crate) tabs: Vec<bool>,
    /// The second character set is in use.
    pub(crate) shifted: bool,
    /// Whether the saved cursor of each screen counts from the margins.
    pub(crate) saved_origin: [bool; 2],
    /// Where the cursor was that was saved on the alternate screen: the next visit finds it again.
    #[serde(default)]
    pub(crate) alternate_saved: (usize, usize),
    /// Marks of the shell, by the number of the row since the screen began.
    marks: VecDeque<(u64, PromptMark)>,
}

impl Notes {
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        Self { margins: (0, rows), tabs: default_tabs(columns), ..Self::default() }
    }

    /// After a full reset. What the program said about the world outside of its terminal stays.
    pub(crate) fn reset(&mut self, rows: usize, columns: usize) {
        let directory = self.directory.take();
        *self = Self { directory, ..Self::new(rows, columns) };
    }

    pub(crate) fn switch(&mut self, mode: u16, on: bool) -> bool {
        let Some(bit) = REMEMBERED.iter().position(|known| *known == mode) else { return false };
        self.switches = if on { self.switches | 1 << bit } else { self.switches & !(1 << bit) };
        true
    }

    /// Whether a remembered mode is on; `None` where it is not one of them.
    pub(crate) fn switched(&self, mode: u16) -> Option<bool> {
        let bit = REMEMBERED.iter().position(|known| *known == mode)?;
        Some(self.switches & 1 << bit != 0)
    }

    pub(crate) fn push_title(&mut self) {
        if self.titles.len() == MAX_TITLES {
            self.titles.remove(0);
        }
        self.titles.push(self.title.clone());
    }

    pub(crate) fn pop_title(&mut self) -> Option<String> {
        self.titles.pop()
    }

    /// A mark of the shell at a row.
    pub(crate) fn mark(&mut self, row: u64, mark: PromptMark) {
        self.phase = Some(mark.into());
        if mark == PromptMark::PromptStart
            && self
                .status
                .as_ref()
                .is_some_and(|status| matches!(status.state, StatusState::Working | StatusState::Blocked))
        {
            // The shell has its terminal back, so whoever reported that has gone.
            self.status = None;
        }
        if self.marks.len() == MAX_MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back((row, mark));
    }

    /// The first mark of a row.
    pub(crate) fn mark_at(&self, row: u64) -> Option<PromptMark> {
        self.marks.iter().find(|(at, _)| *at == row).map(|(_, mark)| *mark)
    }

    /// Rows have moved in ways that nobody counts.
    pub(crate) fn forget_marks(&mut self) {
        self.marks.clear();
    }

    pub(crate) fn resize(&mut self, rows: usize, columns: usize) {
        self.margins = (0, rows);
        (self.sides, self.turned) = (None, Vec::new());
        let mut at = self.tabs.len();
        self.tabs.resize_with(columns, || {
            at += 1;
            (at - 1).is_multiple_of(8)
        });
        self.forget_marks();
    }
}

/// A stop at every eighth column.
pub(crate) fn default_tabs(columns: usize) -> Vec<bool> {
    (0..columns).map(|at| at.is_multiple_of(8)).collect()
}

/// The kitty keyboard protocol's flags on one screen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keyboard {
    pub(crate) base: u8,
    pub(crate) stack: Vec<u8>,
}

impl Keyboard {
    /// How many a program may push; the oldest go.
    const MAX_DEPTH: usize = 32;
    /// The flags that exist.
    const ALL_FLAGS: u16 = 0b1_1111;

    pub(crate) fn flags(&self) -> u8 {
        self.stack.last().copied().unwrap_or(self.base)
    }

    pub(crate) fn push(&mut self, flags: u16) {
        if self.stack.len() == Self::MAX_DEPTH {
            self.stack.remove(0);
        }
        self.stack.push((flags & Self::ALL_FLAGS) as u8);
    }

    pub(crate) fn pop(&mut self, count: u16) {
        let left = self.stack.len().checked_sub(count.into());
        if left.is_none() {
            self.base = 0;
        }
        self.stack.truncate(left.unwrap_or(0));
    }

    /// Sets, adds (2) or takes away (3).
    pub(crate) fn set(&mut self, flags: u16, how: u16) {
        let flags = (flags & Self::ALL_FLAGS) as u8;
        let now = self.stack.last_mut().unwrap_or(&mut self.base);
        *now = match how {
            2 => *now | flags,
            3 => *now & !flags,
            _ => flags,
        };
    }
}
