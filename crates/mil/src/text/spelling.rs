//! What a misspelt word most likely means.

/// The known word that a misspelt one most likely means: at most two letters away, of several the first in order.
pub(super) fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let close = known.filter(|k| k.len().abs_diff(word.len()) <= 2 && word.len() <= 64);
    close.map(|k| (distance(word, k), k)).filter(|(d, k)| *d <= 2 && *d < k.len()).min().map(|(_, k)| k)
}

/// Letters to insert, delete or replace to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}
