//! Runs the fake agent: a terminal program whose misbehaviour its arguments choose.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::json;

use super::composer::Composer;
use super::face::{Face, Scene};
use super::input::{Decoder, Input};
use super::journal::Journal;
use super::manner::Manner;
use super::options::Options;
use super::terminal::{Found, Terminal};

/// An Escape with nothing after it for this long is the key.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(30);

/// How often a turn is drawn.
const FRAME_INTERVAL: Duration = Duration::from_millis(80);

/// Characters closer together than this are not typed by a person.
const MIN_KEY_INTERVAL: Duration = Duration::from_millis(8);

const SPINNER: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"];

/// Runs the agent that the words describe until it ends; its exit code.
pub fn run(words: impl Iterator<Item = String>) -> Result<u8, String> {
    let options = Options::read(words)?;
    let mut journal = Journal::open(options.log.as_deref())?;
    let _terminal = Terminal::take(options.manner.cooked)?;
    if options.manner.cooked {
        return Ok(cooked(&options.manner, &mut journal));
    }
    let mut agent = Agent::new(options.manner, journal);
    let code = agent.live();
    agent.face.close(agent.manner.paste);
    Ok(code)
}

enum Phase {
    Idle,
    Working { until: Instant, poured: usize },
    Asking { about: String, selected: usize },
}

struct Agent {
    manner: Manner,
    journal: Journal,
    face: Face,
    composer: Composer,
    decoder: Decoder,
    phase: Phase,
    turns: VecDeque<String>,
    lines: Vec<String>,
    burst: Burst,
    dropped_enter: bool,
    frame: usize,
    ended: Option<u8>,
}

impl Agent {
    fn new(manner: Manner, journal: Journal) -> Self {
        Self {
            face: Face::new(manner.full_screen, manner.silent),
            manner,
            journal,
            composer: Composer::default(),
            decoder: Decoder::default(),
            phase: Phase::Idle,
            turns: VecDeque::new(),
            lines: Vec::new(),
            burst: Burst::default(),
            dropped_enter: false,
            frame: 0,
            ended: None,
        }
    }

    fn live(&mut self) -> u8 {
        self.be_deaf();
        if self.ended.is_none() && self.manner.queries {
            self.ask_the_terminal();
        }
        self.face.open(self.manner.paste);
        self.lines.push(format!("fake agent, pid {}", std::process::id()));
        self.draw();
        while self.ended.is_none() {
            let changed = self.listen();
            let working = matches!(self.phase, Phase::Working { .. });
            if working {
                self.work();
            }
            if changed || working {
                self.draw();
            }
        }
        self.ended.unwrap_or_default()
    }

    /// Drops everything until its time has come.
    fn be_deaf(&mut self) {
        let until = Instant::now() + self.manner.deaf_for;
        while self.ended.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            match Terminal::read(4096, left) {
                Found::Bytes(bytes) => self.journal.event("dropped", &String::from_utf8_lossy(&bytes)),
                Found::Nothing => {}
                Found::End => self.ended = Some(0),
            }
        }
    }

    /// Asks for the cursor's position, the terminal's kind and its background, and waits for all three.
    fn ask_the_terminal(&mut self) {
        Terminal::write("\x1b[6n\x1b[c\x1b]11;?\x1b\\");
        let (mut position, mut kind, mut colour) = (false, false, false);
        while self.ended.is_none() && !(position && kind && colour) {
            match Terminal::read(4096, Duration::from_secs(1)) {
                Found::Bytes(bytes) => {
                    for input in self.decoder.feed(&bytes) {
                        match input {
                            Input::Reply(reply) if reply.ends_with(b"R") => position = true,
                            Input::Reply(reply) if reply.ends_with(b"c") => kind = true,
                            Input::Reply(reply) if reply.starts_with(b"\x1b]11;") => colour = true,
                            other => self.journal.event("dropped", &format!("{other:?}")),
                        }
                    }
                }
                Found::Nothing => {}
                Found::End => self.ended = Some(0),
            }
        }
        self.journal.event("answered", "");
    }

    /// Waits for input no longer than this moment allows; whether there was any.
    fn listen(&mut self) -> bool {
        let waits = self.decoder.waits_on_escape();
        let within = match &self.phase {
            _ if waits => ESCAPE_TIMEOUT,
            Phase::Working { until, .. } if self.manner.flood == 0 => {
                FRAME_INTERVAL.min(until.saturating_duration_since(Instant::now()))
            }
            Phase::Working { .. } => Duration::ZERO,
            _ => Duration::from_secs(1),
        };
        let most = self.manner.sips.map_or(4096, |(most, _)| most);
        match Terminal::read(most, within) {
            Found::Bytes(bytes) => {
                for input in self.decoder.feed(&bytes) {
                    self.take(input);
                }
                if let Some((_, pause)) = self.manner.sips {
                    std::thread::sleep(pause);
                }
                true
            }
            Found::Nothing if waits => {
                let key = self.decoder.escape();
                self.take(key);
                true
            }
            Found::Nothing => false,
            Found::End => {
                self.ended = Some(0);
                false
            }
        }
    }

    fn take(&mut self, input: Input) {
        if self.manner.dies && matches!(input, Input::Text(_) | Input::Paste(_)) {
            self.journal.event("died", "");
            self.ended = Some(3);
            return;
        }
        if matches!(self.phase, Phase::Asking { .. }) {
            self.answer(&input);
            return;
        }
        match input {
            Input::Text(bytes) => {
                self.burst.typed(bytes.len());
                self.composer.push(&bytes);
            }
            Input::Paste(bytes) => {
                self.burst.pasted();
                self.composer.paste(&bytes, self.manner.collapses);
                if std::mem::take(&mut self.manner.asks_at_paste) {
                    self.phase = Phase::Asking { about: "may I?".to_owned(), selected: 0 };
                }
            }
            Input::Newline => self.composer.push(b"\n"),
            Input::Enter => self.enter(),
            Input::Back => self.composer.back(),
            Input::Escape | Input::Interrupt if matches!(self.phase, Phase::Working { .. }) => {
                self.stop_turn();
            }
            Input::Escape => self.journal.event("escape", ""),
            Input::Interrupt if self.composer.is_empty() => {
                self.journal.event("ended", "C-c");
                self.ended = Some(130);
            }
            Input::Interrupt => self.journal.event("cleared", &self.composer.take()),
            Input::End if self.composer.is_empty() => self.ended = Some(0),
            Input::End | Input::Up | Input::Down | Input::Reply(_) => {}
        }
    }

    fn enter(&mut self) {
        if self.composer.is_empty() {
            return;
        }
        if self.manner.swallow.is_some_and(|window| self.burst.within(window)) {
            self.journal.event("swallowed", "");
            self.composer.push(b"\n");
            return;
        }
        if self.manner.drops_enter && !self.dropped_enter {
            self.journal.event("swallowed", "");
            self.dropped_enter = true;
            return;
        }
        self.dropped_enter = false;
        let text = self.composer.take();
        let number = self.journal.message(&text);
        self.lines.push(format!("GOT {number}: {}", json!(text)));
        if matches!(self.phase, Phase::Idle) {
            self.start(&text);
        } else {
            self.turns.push_back(text);
        }
    }

    /// Begins the turn that a message asks for.
    fn start(&mut self, text: &str) {
        if self.manner.asks || text.contains("[[ask]]") {
            self.phase =
                Phase::Asking { about: text.lines().next().unwrap_or_default().to_owned(), selected: 0 };
        } else {
            self.begin_work(text);
        }
    }

    fn begin_work(&mut self, text: &str) {
        let slow =
            text.split("[[slow ").nth(1).and_then(|rest| rest.split("]]").next()?.trim().parse::<f64>().ok());
        let work =
            slow.map_or(self.manner.work, |seconds| Duration::from_secs_f64(seconds.clamp(0.0, 600.0)));
        self.phase = Phase::Working { until: Instant::now() + work, poured: 0 };
    }

    fn work(&mut self) {
        let Phase::Working { until, poured } = &mut self.phase else { return };
        if *poured < self.manner.flood {
            let mut text = String::new();
            while text.len() < 65_536.min(self.manner.flood - *poured) {
                text.push_str("flood: the quick brown fox jumps over the lazy dog, again and again\r\n");
            }
            *poured += text.len();
            self.face.pour(&text);
        } else if Instant::now() >= *until {
            self.lines.push("done".to_owned());
            self.end_turn();
        }
        self.frame += 1;
    }

    fn stop_turn(&mut self) {
        self.journal.event("interrupt", "");
        self.lines.push("interrupted".to_owned());
        self.end_turn();
    }

    fn end_turn(&mut self) {
        self.phase = Phase::Idle;
        if let Some(text) = self.turns.pop_front() {
            self.start(&text);
        }
    }

    /// At a question every key counts, and the letters of a message are keys.
    fn answer(&mut self, input: &Input) {
        let Phase::Asking { selected, about } = &mut self.phase else { return };
        let granted = match input {
            Input::Text(bytes) | Input::Paste(bytes) => {
                self.journal.event("typed at the menu", &String::from_utf8_lossy(bytes));
                bytes.iter().find_map(|byte| match byte {
                    b'1' | b'y' | b'Y' => Some(true),
                    b'2' | b'n' | b'N' => Some(false),
                    _ => None,
                })
            }
            Input::Enter => Some(*selected == 0),
            Input::Escape | Input::Interrupt => Some(false),
            Input::Up => {
                *selected = 0;
                None
            }
            Input::Down => {
                *selected = 1;
                None
            }
            _ => None,
        };
        let Some(granted) = granted else { return };
        let about = about.clone();
        self.journal.event(if granted { "granted" } else { "denied" }, &about);
        self.lines.push(if granted { "GRANTED" } else { "DENIED" }.to_owned());
        if !self.composer.is_empty() {
            // The question came while a message was still being written.
            self.phase = Phase::Idle;
        } else if granted {
            self.begin_work(&about);
        } else {
            self.end_turn();
        }
    }

    fn draw(&mut self) {
        let spinner = SPINNER[self.frame % SPINNER.len()];
        let (status, question, title) = match &self.phase {
            Phase::Idle => (None, None, "fake".to_owned()),
            Phase::Working { .. } => {
                (Some(format!("{spinner} working… (esc to interrupt)")), None, format!("{spinner} fake"))
            }
            Phase::Asking { about, selected } => {
                let mark = |at: usize| if *selected == at { "❯" } else { " " };
                let rows = vec![
                    "Do you want to proceed?".to_owned(),
                    format!("  {about}"),
                    format!("{} 1. Yes", mark(0)),
                    format!("{} 2. No", mark(1)),
                ];
                (None, Some(rows), "fake".to_owned())
            }
        };
        let draft = self.composer.shown();
        let lines = std::mem::take(&mut self.lines);
        self.face.draw(&lines, &Scene { status, question, draft: &draft, title });
    }
}

/// When text last came faster than a person types.
#[derive(Default)]
struct Burst {
    fast: Option<Instant>,
    last: Option<Instant>,
    run: usize,
}

impl Burst {
    fn typed(&mut self, count: usize) {
        let now = Instant::now();
        let close = self.last.is_some_and(|last| now.duration_since(last) < MIN_KEY_INTERVAL);
        self.run = if close { self.run + count } else { count };
        self.last = Some(now);
        if self.run >= 3 {
            self.fast = Some(now);
        }
    }

    fn pasted(&mut self) {
        self.fast = Some(Instant::now());
    }

    fn within(&self, window: Duration) -> bool {
        self.fast.is_some_and(|fast| fast.elapsed() < window)
    }
}

/// A program that reads lines and leaves the terminal as it is.
fn cooked(manner: &Manner, journal: &mut Journal) -> u8 {
    let mut held = Vec::new();
    Terminal::write("> ");
    loop {
        match Terminal::read(65_536, Duration::from_secs(1)) {
            Found::Bytes(bytes) => held.extend(bytes),
            Found::Nothing => {}
            Found::End => return 0,
        }
        while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = held.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line[..end]).into_owned();
            let number = journal.message(&text);
            Terminal::write(&format!("GOT {number}: {}\nworking…\n", json!(text)));
            std::thread::sleep(manner.work);
            Terminal::write("done\n> ");
        }
    }
}
