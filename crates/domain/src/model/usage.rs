//! Tokens, and their cost.

use std::ops::{Add, AddAssign};

/// Tokens of one answer or of several. The four numbers do not overlap, even if the provider counts some of them
/// together.
///
/// ```
/// use toolstead_domain::model::usage::{TokenPrices, TokenUsage};
///
/// let usage = TokenUsage { input_tokens: 1_000_000, output_tokens: 500_000, ..TokenUsage::default() };
/// let prices = TokenPrices { input: 3.0, output: 15.0, ..TokenPrices::default() };
/// assert_eq!(usage.total(), 1_500_000);
/// assert_eq!(usage.cost(&prices), 10.5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct TokenUsage {
    /// Input tokens at the full price.
    pub input_tokens: u64,
    /// Input tokens from the cache of the provider.
    pub cache_read_tokens: u64,
    /// Input tokens that were written to the cache of the provider.
    pub cache_write_tokens: u64,
    /// Output tokens of the model, thinking included.
    pub output_tokens: u64,
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TokenPrices {
    /// Price of input.
    pub input: f64,
    /// Price of input from the cache.
    pub cache_read: f64,
    /// Price of input that is written to the cache.
    pub cache_write: f64,
    /// Price of output.
    pub output: f64,
}

impl TokenUsage {
    /// Returns the number of all tokens.
    pub fn total(self) -> u64 {
        self.context().saturating_add(self.output_tokens)
    }

    /// Returns the number of input tokens, cached ones included, which occupy the context window of the model.
    pub fn context(self) -> u64 {
        self.input_tokens.saturating_add(self.cache_read_tokens).saturating_add(self.cache_write_tokens)
    }

    /// Returns the cost in US dollars.
    pub fn cost(self, prices: &TokenPrices) -> f64 {
        let of = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        of(self.input_tokens, prices.input)
            + of(self.cache_read_tokens, prices.cache_read)
            + of(self.cache_write_tokens, prices.cache_write)
            + of(self.output_tokens, prices.output)
    }
}

impl Add for TokenUsage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
