//! Collects measurements, and gives their median and percentiles.

/// Measurements of one thing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    values: Vec<f64>,
}

impl Samples {
    pub(crate) fn push(&mut self, value: f64) {
        let at = self.values.partition_point(|other| *other < value);
        self.values.insert(at, value);
    }

    /// The value that this share of all values does not exceed.
    pub(crate) fn percentile(&self, share: f64) -> Option<f64> {
        let last = self.values.len().checked_sub(1)?;
        self.values.get((last as f64 * share).round() as usize).copied()
    }

    pub(crate) fn count(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn median(&self) -> Option<f64> {
        self.percentile(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_any_order() {
        let mut samples = Samples::default();
        assert_eq!(samples.median(), None);
        for value in [5.0, 1.0, 4.0, 2.0, 3.0] {
            samples.push(value);
        }
        assert_eq!(samples.median(), Some(3.0));
        assert_eq!(samples.percentile(0.95), Some(5.0));
        assert_eq!(samples.percentile(0.0), Some(1.0));
    }
}
