//! Built-in data about models: context windows, output limits and prices.
//!
//! Taken from the providers' pages as of November 2025. Values in the configuration take precedence. A model that is
//! not listed gets the limits of [`UNKNOWN`] and no price.

use toolstead_domain::TokenPrices;

/// Data about a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::config) struct ModelDefaults {
    /// Size of the context window in tokens.
    pub(in crate::config) context_tokens: u64,
    /// Maximum number of output tokens to request.
    pub(in crate::config) max_output_tokens: u64,
    /// `true` if the model accepts images.
    pub(in crate::config) takes_images: bool,
    /// Prices at the model's own provider.
    pub(in crate::config) prices: Option<TokenPrices>,
}

/// Values for a model that is not listed.
const UNKNOWN: ModelDefaults =
    ModelDefaults { context_tokens: 128_000, max_output_tokens: 8_192, takes_images: false, prices: None };

/// Maximum number of output tokens to request, although some models allow more.
const LONGEST: u64 = 32_000;

/// Prefix of the name, context window, output limit (both in tokens), and prices in dollars per million tokens: input,
/// cache read, cache write, output.
type KnownModelEntry = (&'static str, u64, u64, [f64; 4]);

/// Models of Anthropic. Longer prefixes come first.
const ANTHROPIC: &[KnownModelEntry] = &[
    ("claude-opus-4-5", 200_000, 64_000, [5.0, 0.5, 6.25, 25.0]),
    ("claude-opus-4", 200_000, 32_000, [15.0, 1.5, 18.75, 75.0]),
    ("claude-sonnet-4", 200_000, 64_000, [3.0, 0.3, 3.75, 15.0]),
    ("claude-haiku-4-5", 200_000, 64_000, [1.0, 0.1, 1.25, 5.0]),
    ("claude-3-7-sonnet", 200_000, 64_000, [3.0, 0.3, 3.75, 15.0]),
    ("claude-3-5-haiku", 200_000, 8_192, [0.8, 0.08, 1.0, 4.0]),
    ("claude-3-haiku", 200_000, 4_096, [0.25, 0.03, 0.3, 1.25]),
];
const OPENAI: &[KnownModelEntry] = &[
    ("gpt-5-mini", 400_000, 128_000, [0.25, 0.025, 0.25, 2.0]),
    ("gpt-5-nano", 400_000, 128_000, [0.05, 0.005, 0.05, 0.4]),
    ("gpt-5-pro", 400_000, 128_000, [15.0, 15.0, 15.0, 120.0]),
    ("gpt-5", 400_000, 128_000, [1.25, 0.125, 1.25, 10.0]),
    ("gpt-4.1-mini", 1_047_576, 32_768, [0.4, 0.1, 0.4, 1.6]),
    ("gpt-4.1-nano", 1_047_576, 32_768, [0.1, 0.025, 0.1, 0.4]),
    ("gpt-4.1", 1_047_576, 32_768, [2.0, 0.5, 2.0, 8.0]),
    ("gpt-4o-mini", 128_000, 16_384, [0.15, 0.075, 0.15, 0.6]),
    ("gpt-4o", 128_000, 16_384, [2.5, 1.25, 2.5, 10.0]),
    ("o4-mini", 200_000, 100_000, [1.1, 0.275, 1.1, 4.4]),
    ("o3", 200_000, 100_000, [2.0, 0.5, 2.0, 8.0]),
];
const GEMINI: &[KnownModelEntry] = &[
    ("gemini-3-pro", 1_048_576, 65_536, [2.0, 0.2, 2.0, 12.0]),
    ("gemini-2.5-flash-lite", 1_048_576, 65_536, [0.1, 0.01, 0.1, 0.4]),
    ("gemini-2.5-flash", 1_048_576, 65_536, [0.3, 0.03, 0.3, 2.5]),
    ("gemini-2.5-pro", 1_048_576, 65_536, [1.25, 0.125, 1.25, 10.0]),
    ("gemini-2.0-flash", 1_048_576, 8_192, [0.1, 0.025, 0.1, 0.4]),
];

/// Returns the data about the model with this name at its provider, for any protocol.
pub(in crate::config) fn known(model: &str) -> ModelDefaults {
    let mut rows = [ANTHROPIC, OPENAI, GEMINI].into_iter().flatten();
    let Some((_, context_tokens, longest, prices)) = rows.find(|(beginning, ..)| model.starts_with(beginning)) else {
        return UNKNOWN;
    };
    let [input, cache_read, cache_write, output] = *prices;
    ModelDefaults {
        context_tokens: *context_tokens,
        max_output_tokens: (*longest).min(LONGEST),
        takes_images: true,
        prices: Some(TokenPrices { input, cache_read, cache_write, output }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_matching_prefix_selects_the_model_and_every_row_is_reachable() {
        assert_eq!(known("gpt-5-mini-2025-08-07").prices.map(|prices| prices.input), Some(0.25));
        assert_eq!(known("gpt-5.1").prices.map(|prices| prices.input), Some(1.25));
        assert_eq!(known("claude-sonnet-4-5").max_output_tokens, LONGEST);
        assert_eq!(known("llama3.3:70b"), UNKNOWN);
        for (beginning, context_tokens, ..) in [ANTHROPIC, OPENAI, GEMINI].into_iter().flatten() {
            let found = known(beginning);
            assert_eq!(found.context_tokens, *context_tokens, "{beginning}");
            assert!(found.max_output_tokens <= found.context_tokens, "{beginning}");
        }
    }

    #[test]
    fn no_model_row_is_hidden_by_an_earlier_prefix() {
        for rows in [ANTHROPIC, OPENAI, GEMINI] {
            for (at, (later, ..)) in rows.iter().enumerate() {
                let hiding = rows[..at].iter().find(|(earlier, ..)| later.starts_with(earlier));
                assert!(hiding.is_none(), "{later} is never found behind {hiding:?}");
            }
        }
    }
}
