//! Bytes that the kernel moves.

use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;

use wharf_log::Writer;
use wharf_model::Offset;

use crate::support::{files, keep_all, pattern, place, read_all};

#[test]
fn what_is_in_the_pipe_gets_into_the_log() {
    let (_home, dir) = place();
    let (pipe, mut end) = std::io::pipe().unwrap();
    let mut writer = Writer::open(&dir, keep_all(1000)).unwrap();
    assert_eq!(writer.splice_from(pipe.as_fd(), 100).unwrap_err().kind(), ErrorKind::WouldBlock);

    let all: Vec<u8> = (0..20_000).map(pattern).collect();
    for (n, chunk) in all.chunks(700).enumerate() {
        end.write_all(chunk).unwrap();
        if n % 5 == 0 {
            // Both ways mix.
            let mut rest = vec![0; 100];
            std::io::Read::read_exact(&mut &pipe, &mut rest).unwrap();
            writer.append(&rest).unwrap();
        }
        let before = writer.end();
        let mut moved = 0;
        loop {
            match writer.splice_from(pipe.as_fd(), 300) {
                Ok(len) => moved += len as u64,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        assert_eq!(writer.end() - before, moved);
    }
    drop(end);
    assert_eq!(writer.splice_from(pipe.as_fd(), 100).unwrap(), 0);
    assert_eq!(writer.end(), Offset(20_000));
    assert_eq!(read_all(&dir, 0), (all, vec![]));
    assert!(files(&dir).len() > 20);
}

#[test]
fn what_is_not_a_pipe_is_copied() {
    let (_home, dir) = place();
    let (socket, mut end) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(10).unwrap();
    let mut writer = Writer::open(&dir, keep_all(1000)).unwrap();
    assert_eq!(writer.splice_from(socket.as_fd(), 100).unwrap_err().kind(), ErrorKind::WouldBlock);
    end.write_all(b"hello").unwrap();
    assert_eq!(writer.splice_from(socket.as_fd(), 100).unwrap(), 5);
    drop(end);
    assert_eq!(writer.splice_from(socket.as_fd(), 100).unwrap(), 0);
    assert_eq!(writer.splice_from(file.as_fd(), 8).unwrap(), 8);
    assert_eq!(read_all(&dir, 0).0, b"hello\0\0\0\0\0\0\0\0");
}
