//! Suggestions for misspelled names.

/// Returns the name in `known` that is nearest to `name`, if one is near enough to be intended.
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = name.to_lowercase();
    let near = known
        .into_iter()
        .map(|other| (distance(&folded, &other.to_lowercase()), other))
        .min_by_key(|(distance, _)| *distance);
    near.filter(|(distance, _)| *distance <= 1 + name.chars().count() / 3).map(|(_, other)| other)
}

/// Returns the Levenshtein distance, of at most the first 64 characters of each.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().take(64).enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let replaced = corner + usize::from(a != *b);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
