//! Builds and opens small tar archives in memory for the cases that copy files.

use async_trait::async_trait;

use crate::{Archive, Result};

/// A tar archive in memory, of plain files with short names.
#[derive(Debug, Default)]
pub struct TestArchive {
    bytes: Vec<u8>,
    sent: usize,
}

/// The size of a header, and what files are filled up to.
const BLOCK_LEN: usize = 512;
/// How much is handed over at once: less than a header, so that nobody relies on whole ones.
const CHUNK_LEN: usize = 300;

impl TestArchive {
    /// With one more file in it, that belongs to this user and group.
    #[must_use]
    pub fn file(mut self, name: &str, data: &[u8], owner: (u32, u32)) -> Self {
        let mut header = [0; BLOCK_LEN];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, name);
        put(100, "0000640");
        put(108, &format!("{:07o}", owner.0));
        put(116, &format!("{:07o}", owner.1));
        put(124, &format!("{:011o}", data.len()));
        put(136, &format!("{:011o}", 1_000_000_000));
        // The sum counts itself as blanks.
        put(148, "        ");
        put(156, "0");
        put(257, "ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(data);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK_LEN), 0);
        self
    }

    /// Closed: nothing more goes in.
    #[must_use]
    pub fn closed(mut self) -> Box<dyn Archive> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK_LEN, 0);
        Box::new(self)
    }

    /// The first plain file in an archive: its name and what is in it.
    pub async fn opened(mut archive: Box<dyn Archive>) -> Result<(String, Vec<u8>)> {
        let mut bytes = Vec::new();
        while let Some(piece) = archive.next().await? {
            bytes.extend(piece);
        }
        let mut rest = &bytes[..];
        while rest.len() >= BLOCK_LEN {
            let (header, data) = rest.split_at(BLOCK_LEN);
            let text = |from: usize, to: usize| {
                let field = &header[from..to];
                let end = field.iter().position(|byte| matches!(byte, 0 | b' ')).unwrap_or(field.len());
                String::from_utf8_lossy(&field[..end]).into_owned()
            };
            let size = usize::from_str_radix(&text(124, 136), 8).expect("a size");
            if matches!(header[156], 0 | b'0') {
                return Ok((text(0, 100), data[..size].to_vec()));
            }
            rest = &data[size.next_multiple_of(BLOCK_LEN)..];
        }
        panic!("there is no file in the archive: {}", bytes.escape_ascii())
    }
}

#[async_trait]
impl Archive for TestArchive {
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let rest = &self.bytes[self.sent..];
        let piece = &rest[..rest.len().min(CHUNK_LEN)];
        self.sent += piece.len();
        Ok((!piece.is_empty()).then(|| piece.to_vec()))
    }
}
