//! Tokens, and what they cost.

use std::ops::{Add, AddAssign};

/// Tokens of one answer or of several. The four inputs and outputs do not overlap, whatever the provider counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Usage {
    /// Read by the model for the full price.
    pub input_tokens: u64,
    /// Read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Written into the provider's cache.
    pub cache_write_tokens: u64,
    /// Written by the model, its thinking among them.
    pub output_tokens: u64,
}

/// Prices in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prices {
    /// Of input.
    pub input: f64,
    /// Of input from the cache.
    pub cache_read: f64,
    /// Of input into the cache.
    pub cache_write: f64,
    /// Of output.
    pub output: f64,
}

impl Usage {
    /// All tokens.
    pub fn total(self) -> u64 {
        self.context().saturating_add(self.output_tokens)
    }

    /// The tokens of the request: how full the model's window is.
    pub fn context(self) -> u64 {
        self.input_tokens.saturating_add(self.cache_read_tokens).saturating_add(self.cache_write_tokens)
    }

    /// The cost in US dollars.
    pub fn cost(self, prices: &Prices) -> f64 {
        let of = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        of(self.input_tokens, prices.input)
            + of(self.cache_read_tokens, prices.cache_read)
            + of(self.cache_write_tokens, prices.cache_write)
            + of(self.output_tokens, prices.output)
    }
}

impl Add for Usage {
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

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
