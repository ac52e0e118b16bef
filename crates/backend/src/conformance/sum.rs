//! Computes the checksum that POSIX `cksum` prints, to compare what was copied.

/// What POSIX `cksum` prints for these bytes: checksum and length.
pub fn cksum(bytes: &[u8]) -> String {
    let mut length = bytes.len();
    let mut crc = bytes.iter().fold(0, |crc, byte| step(crc, *byte));
    while length > 0 {
        crc = step(crc, length as u8);
        length >>= 8;
    }
    format!("{} {}", !crc, bytes.len())
}

fn step(crc: u32, byte: u8) -> u32 {
    let mut crc = crc ^ (u32::from(byte) << 24);
    for _ in 0..8 {
        crc = if crc & 0x8000_0000 == 0 { crc << 1 } else { (crc << 1) ^ 0x04c1_1db7 };
    }
    crc
}

#[cfg(test)]
mod tests {
    #[test]
    fn agrees_with_the_program() {
        assert_eq!(super::cksum(b""), "4294967295 0");
        assert_eq!(super::cksum(b"123456789"), "930766865 9");
    }
}
