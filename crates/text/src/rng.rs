//! Random numbers that are a pure function of what they are for: no state is carried from one draw site to the next.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// One independent stream of random numbers, named by its purpose and up to three numbers (seed, step, …).
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// The stream of `purpose` and `key`. Equal arguments give equal streams, different ones unrelated streams.
    pub(crate) fn new(purpose: [u8; 8], key: [u64; 3]) -> Self {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&purpose);
        for (place, word) in seed[8..].chunks_exact_mut(8).zip(key) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(seed))
    }

    /// A number in `0..n`, every one equally likely. `n` of zero counts as one.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let n = n.max(1);
        // Lemire's method: the high half of a 64 × 64 product, rejecting the few low halves that would favour some results.
        let reject = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(n);
            if product as u64 >= reject {
                return (product >> 64) as u64;
            }
        }
    }

    /// One element of a list, every one equally likely. An empty list has none.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len() as u64) as usize)
    }

    /// One element of a list, the first ones more often: a word list then has common and rare words, as language has.
    pub(crate) fn pick_early<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let n = list.len() as u64;
        list.get(self.below(n).min(self.below(n)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn streams_are_named_by_all_of_their_key() {
        let draw = |purpose, key| Dice::new(purpose, key).below(u64::MAX);
        let first = draw(*b"purpose1", [1, 2, 3]);
        assert_eq!(first, draw(*b"purpose1", [1, 2, 3]));
        for other in
            [draw(*b"purpose2", [1, 2, 3]), draw(*b"purpose1", [0, 2, 3]), draw(*b"purpose1", [1, 0, 3]), draw(*b"purpose1", [1, 2, 0])]
        {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn every_number_below_n_turns_up_about_equally_often() {
        let mut dice = Dice::new(*b"evenness", [0; 3]);
        let mut seen = [0; 7];
        for _ in 0..70_000 {
            seen[dice.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.pick(&[] as &[u8]), None);
    }
}
