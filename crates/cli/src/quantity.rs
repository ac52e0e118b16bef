//! Amounts of memory and sizes of terminals as people write and read them.

use wharf_model::Size;

/// Reads `1048576`, `512m`, `64MiB`, `1.5g`. The units are powers of 1024.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no amount of bytes: write 1048576, 512m or 1.5g");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (count, unit) = text.split_at(digits);
    let power = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return Err(wrong()),
    };
    let scale = 1024_u64.pow(power);
    if let Ok(whole) = count.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(wrong);
    }
    let part: f64 = count.parse().map_err(|_| wrong())?;
    let bytes = part * scale as f64;
    if (0.0..1.8e19).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

/// Reads `0.5`, `2`.
pub(crate) fn parse_cpus(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(cpus) if cpus > 0.0 && cpus <= 65_536.0 => Ok(cpus),
        _ => Err(format!("{text:?} is no number of processors: write 0.5 or 2")),
    }
}

/// Reads `120x40`.
pub(crate) fn parse_size(text: &str) -> Result<Size, String> {
    let wrong = || format!("{text:?} is no size: write COLUMNSxROWS, 120x40");
    let (cols, rows) = text.split_once(['x', 'X', '×']).ok_or_else(wrong)?;
    let size = Size { cols: cols.parse().map_err(|_| wrong())?, rows: rows.parse().map_err(|_| wrong())? };
    if size == size.sane() {
        Ok(size)
    } else {
        Err(format!("{text:?} is no size: 1x1 to 4096x4096 is possible"))
    }
}

/// An amount with one digit after the point where it helps: `512B`, `1.5M`, `12G`.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];
    let (mut amount, mut unit) = (bytes as f64, 0);
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    if unit == 0 || amount >= 10.0 {
        format!("{amount:.0}{}", UNITS[unit])
    } else {
        format!("{amount:.1}{}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read() {
        for (text, bytes) in
            [("0", 0), ("7", 7), ("1k", 1024), ("512m", 512 << 20), ("64MiB", 64 << 20), ("1.5g", 3 << 29)]
        {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for bad in ["", "m", "-1", "1x", "1..5m", "99999999999999999999t", "18446744073709551615k"] {
            assert!(parse_bytes(bad).is_err(), "{bad:?} was taken");
        }
        assert_eq!([0, 1023, 1536, 20 << 20].map(human_bytes), ["0B", "1023B", "1.5K", "20M"]);
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("120x40"), Ok(Size { cols: 120, rows: 40 }));
        for bad in ["", "80", "x", "0x0", "80x", "65535x65535", "-1x5", "99999x1"] {
            assert!(parse_size(bad).is_err(), "{bad:?} was taken");
        }
        assert_eq!(parse_cpus("0.5"), Ok(0.5));
        for bad in ["0", "-1", "nan", "inf", "two"] {
            assert!(parse_cpus(bad).is_err(), "{bad:?} was taken");
        }
    }
}
