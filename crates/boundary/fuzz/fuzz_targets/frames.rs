//! Any bytes from a holder: in any pieces the same frames, and a client takes them in without a panic and without waiting.
#![no_main]

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{LazyLock, Mutex};

use libfuzzer_sys::fuzz_target;
use wharf_holder_client::client::Client;
use wharf_holder::frame::{self, Decoder, Kind};
use wharf_holder::wire::{Hello, split_sections};

/// A session's directory with somebody at its socket who says what the fuzzer wants.
static HOLDER: LazyLock<(tempfile::TempDir, Mutex<SyncSender<Vec<u8>>>)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a directory");
    let listener = UnixListener::bind(dir.path().join("sock")).expect("a socket");
    let (send, receive) = sync_channel::<Vec<u8>>(1);
    std::thread::spawn(move || {
        for bytes in receive {
            let (stream, _) = listener.accept().expect("a caller");
            let _ = answer(stream, &bytes);
        }
    });
    (dir, Mutex::new(send))
});

/// A proper hello, then these bytes, then the end.
fn answer(mut stream: UnixStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut head = [0; frame::HEADER_LEN];
    stream.read_exact(&mut head)?;
    let header = frame::Header::decode(&head)?;
    let mut hello = vec![0; header.length as usize];
    stream.read_exact(&mut hello)?;
    let welcome = Hello { features: vec!["borrow".to_owned()], ..Hello::default() };
    stream.write_all(&frame::encode(Kind::Welcome, header.seq, &serde_json::to_vec(&welcome)?))?;
    stream.write_all(bytes)
}

fn decoded(pieces: &[&[u8]]) -> (Vec<(u8, u32, Vec<u8>)>, bool) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Some((header, payload))) => frames.push((header.kind, header.seq, payload.to_vec())),
                Ok(None) => break,
                Err(_) => return (frames, false),
            }
        }
        decoder.rest();
    }
    (frames, true)
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, bytes)) = data.split_first() else { return };
    let middle = usize::from(*cut).min(bytes.len());
    let whole = decoded(&[bytes]);
    assert_eq!(decoded(&[&bytes[..middle], &bytes[middle..]]), whole, "pieces make a difference");
    for (_, _, payload) in &whole.0 {
        let _ = (split_sections::<4>(payload), split_sections::<2>(payload));
    }
    let (dir, said) = &*HOLDER;
    said.lock().expect("no panic").send(bytes.to_vec()).expect("the holder's thread");
    let Ok(mut client) = Client::connect(dir.path(), "attach") else { return };
    while let Ok(Some(_)) = client.next_event() {}
});
