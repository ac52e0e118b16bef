//! A control sequence in its parts.

/// A control sequence in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Csi<'a> {
    /// One of `<`, `=`, `>`, `?`, or 0.
    pub marker: u8,
    /// The bytes before the intermediates: digits, colons and semicolons.
    pub parameters: &'a [u8],
    /// Bytes between the parameters and the end.
    pub intermediates: &'a [u8],
    /// The final byte.
    pub action: u8,
}

impl<'a> Csi<'a> {
    /// Takes the part after the introducer, parameters to final byte.
    #[inline]
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let (&action, mut rest) = body.split_last()?;
        let mut marker = 0;
        if let Some((&first @ 0x3c..=0x3f, more)) = rest.split_first() {
            (marker, rest) = (first, more);
        }
        let split = rest.iter().position(|byte| (0x20..=0x2f).contains(byte)).unwrap_or(rest.len());
        let (parameters, intermediates) = rest.split_at(split);
        Some(Self { marker, parameters, intermediates, action })
    }

    /// The numbers, without what follows a colon. A missing one is 0.
    #[inline]
    pub fn numbers(&self) -> impl Iterator<Item = u16> {
        self.parameters.split(|byte| *byte == b';').map(|text| {
            text.iter()
                .take_while(|byte| byte.is_ascii_digit())
                .fold(0_u16, |number, digit| number.saturating_mul(10).saturating_add((digit - b'0').into()))
        })
    }

    /// The number at an index; 0 where there is none.
    #[inline]
    pub fn number(&self, index: usize) -> u16 {
        self.numbers().nth(index).unwrap_or(0)
    }

    /// The first number, where 0 means 1.
    #[inline]
    pub fn count(&self) -> u16 {
        self.number(0).max(1)
    }
}
