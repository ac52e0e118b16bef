//! How fast output is read: `cargo run --release -p wharf-screen --example speed [FILE]`.

use std::time::Instant;

use wharf_model::Size;
use wharf_screen::Screen;
use wharf_sequences::Queries;

/// Seconds on the processor, so that a busy machine does not count; where that is not known, seconds.
fn now(start: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stat.and_then(|stat| stat.split(' ').next()?.parse::<f64>().ok());
    nanos.map_or_else(|| start.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}

fn main() {
    let clock = Instant::now();
    let size = Size { cols: 120, rows: 40 };
    let mut samples = vec![
        (
            "lines of text",
            b"the quick brown fox jumps over the lazy dog, and then some more of it\r\n".repeat(1 << 18),
        ),
        (
            "coloured lines",
            b"\x1b[32mok\x1b[0m \x1b[1;34mname\x1b[0m some text \x1b[38;5;200mend\x1b[m\x1b[K\r\n"
                .repeat(1 << 18),
        ),
        ("cursor moves", b"\x1b[12;40Hab\x1b[5;1H\x1b[Kcd\x1b[31mef\x1b[m".repeat(1 << 19)),
        ("unicode", "漢字 – ✓ ❤\u{fe0f} e\u{301} ┌──────┐ │ … │\r\n".as_bytes().repeat(1 << 18)),
    ];
    if let Some(path) = std::env::args().nth(1) {
        let bytes = std::fs::read(path).expect("a file to read");
        let times = (16 << 20) / bytes.len().max(1) + 1;
        samples.push(("file", bytes.repeat(times)));
    }
    for (name, sample) in samples {
        let megabytes = sample.len() as f64 / 1e6;
        let mut screen = Screen::new(size, 5000);
        let start = now(clock);
        for piece in sample.chunks(64 << 10) {
            let _ = screen.feed(piece);
        }
        let fed = now(clock) - start;
        let mut queries = Queries::new();
        let start = now(clock);
        let asked = sample.chunks(64 << 10).filter(|piece| queries.scan(piece)).count();
        let scanned = (now(clock) - start).max(1e-9);
        println!(
            "{name}: {:.0} MB/s, scanned at {:.0} MB/s, {asked} asked",
            megabytes / fed,
            megabytes / scanned
        );
    }
}
