//! BM25F: the relevance of definitions to a query, with a weight for each field.
//!
//! The occurrences of a word in the fields are normalized by the length of the field, weighted and added; the sum
//! saturates (S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework", 2009, 3.6).

use super::{
    definition_words::{DefinitionWords, FIELDS, LENGTH_INFLUENCES, WEIGHTS},
    search_query::SearchQuery,
    synonyms::Synonyms,
};
use std::{cmp::Ordering, sync::Arc};

/// Saturation of repeated words.
const K1: f64 = 1.2;
/// Weight of a synonym of a word in the query. A definition with the word itself is more likely to be the right one.
const SYNONYM: f64 = 0.5;

/// A definition with its relevance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ToolRank {
    /// Index of the definition.
    pub(super) index: usize,
    /// Relevance.
    pub(super) score: f64,
}

impl ToolRank {
    /// Orders by relevance, then by index.
    pub(super) fn best_first(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.index.cmp(&other.index))
    }
}

/// Returns the definitions that have a word of the query or a synonym, and all required words, best first.
///
/// A word and its synonyms are one term, which the best of them represents.
pub(super) fn rank(query: &SearchQuery, documents: &[Arc<DefinitionWords>], synonyms: &Synonyms) -> Vec<ToolRank> {
    let count = documents.len() as f64;
    let mean: [f64; FIELDS] = std::array::from_fn(|field| {
        let words: u64 = documents.iter().map(|words| u64::from(words.lengths[field])).sum();
        (words as f64 / count).max(1.0)
    });
    let rarity = |stem: &String| {
        let known = documents.iter().filter(|words| words.occurrences.contains_key(stem)).count() as f64;
        (1.0 + (count - known + 0.5) / (known + 0.5)).ln()
    };
    let terms = query.stems.iter().map(|stem| {
        let own = rarity(stem);
        let others = synonyms.of(stem).iter().map(|other| (other, SYNONYM * rarity(other).min(own)));
        std::iter::once((stem, own)).chain(others).collect()
    });
    let terms: Vec<Vec<(&String, f64)>> = terms.collect();
    let score = |words: &DefinitionWords| -> f64 {
        let of_stem = |(stem, weight): &(&String, f64)| {
            let Some(occurrences) = words.occurrences.get(*stem) else { return 0.0 };
            let frequency: f64 = (0..FIELDS)
                .map(|field| {
                    let length = f64::from(words.lengths[field]) / mean[field];
                    let b = LENGTH_INFLUENCES[field];
                    WEIGHTS[field] * f64::from(occurrences[field]) / (1.0 - b + b * length)
                })
                .sum();
            weight * frequency / (frequency + K1)
        };
        terms.iter().map(|term| term.iter().map(of_stem).fold(0.0, f64::max)).sum()
    };
    let fitting = documents.iter().enumerate().filter(|(_, words)| query.is_met_by(words));
    let ranked = fitting.map(|(index, words)| ToolRank { index, score: score(words) });
    let mut ranked: Vec<ToolRank> = ranked.filter(|one| one.score > 0.0).collect();
    ranked.sort_by(ToolRank::best_first);
    ranked
}
