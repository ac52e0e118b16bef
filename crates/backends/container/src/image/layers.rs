//! Adds up how far the layers of a pull are, in bounded memory: the engine that names them may be hostile.

use std::collections::HashMap;

/// How many layers are added up. An image has at most 127; further ones are left out of the sum.
const MAX_LAYERS: usize = 256;
/// The longest id of a layer that is added up, in bytes. Engines show 12 digits.
const MAX_LAYER_ID_LEN: usize = 128;
/// By how many hundredths the sum must grow before it is told again.
const TOLD_STEP: u64 = 5;

/// How far the layers of an image are.
#[derive(Debug, Default)]
pub(super) struct Layers {
    /// The bytes that are there of each layer, and how many it has.
    parts: HashMap<String, (u64, u64)>,
    /// The sums of these. They cannot overflow: there are few parts.
    have: u128,
    all: u128,
    told: u64,
}

impl Layers {
    /// Notes how far one layer is. Returns how many hundredths of all are there, each time that it is five more.
    pub(super) fn note(&mut self, layer: String, current: Option<i64>, total: Option<i64>) -> Option<u64> {
        let total = u64::try_from(total?).ok().filter(|total| *total > 0)?;
        let current = u64::try_from(current?).unwrap_or(0).min(total);
        let known = self.parts.contains_key(&layer);
        if !known && (self.parts.len() == MAX_LAYERS || layer.len() > MAX_LAYER_ID_LEN) {
            return None;
        }
        let (had, was) = self.parts.insert(layer, (current, total)).unwrap_or_default();
        self.have = self.have - u128::from(had) + u128::from(current);
        self.all = self.all - u128::from(was) + u128::from(total);
        let percent = (self.have * 100 / self.all) as u64;
        // Layers are heard of one by one, so it can go back; that is not told.
        (percent >= self.told + TOLD_STEP || (percent == 100 && self.told < 100)).then(|| {
            self.told = percent;
            percent
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_in_steps_and_only_forwards() {
        let mut layers = Layers::default();
        let mut note = |part: &str, current, total| layers.note(part.to_owned(), Some(current), Some(total));
        assert_eq!(note("a", 1, 100), None);
        assert_eq!(note("a", 50, 100), Some(50));
        assert_eq!(note("b", 0, 100), None);
        assert_eq!(note("a", 100, 100), None);
        assert_eq!(note("b", 60, 100), Some(80));
        assert_eq!(note("b", 100, 100), Some(100));
        assert_eq!(note("b", 100, 100), None);
        assert_eq!(layers.note("c".to_owned(), None, Some(5)), None);
        assert_eq!(layers.note("c".to_owned(), Some(1), Some(0)), None);
    }

    #[test]
    fn numbers_that_no_image_has_overflow_nothing() {
        let mut layers = Layers::default();
        for (number, current) in [i64::MIN, -1, 0, 1].into_iter().enumerate() {
            assert_eq!(layers.note(number.to_string(), Some(current), Some(i64::MAX)), None);
        }
        assert_eq!(layers.note("0".to_owned(), Some(i64::MIN), Some(i64::MIN)), None);
        for (number, percent) in [25, 50, 75, 100].into_iter().enumerate() {
            let told = layers.note(number.to_string(), Some(i64::MAX), Some(i64::MAX));
            assert_eq!(told, Some(percent), "{number}");
        }
    }

    #[test]
    fn layers_without_end_take_bounded_memory() {
        let mut layers = Layers::default();
        for number in 0..4 * MAX_LAYERS {
            layers.note(number.to_string(), Some(0), Some(1));
        }
        assert_eq!((layers.parts.len(), layers.all), (MAX_LAYERS, MAX_LAYERS as u128));
        let mut layers = Layers::default();
        layers.note("x".repeat(MAX_LAYER_ID_LEN + 1), Some(1), Some(1));
        assert!(layers.parts.is_empty());
    }
}
