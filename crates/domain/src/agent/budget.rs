//! The bounds of an agent.

use std::{fmt, time::Duration};

/// The bounds of one run, which is one turn of a conversation. `None`: no bound.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Budgets {
    /// Calls of tools.
    pub calls: Option<u64>,
    /// Answers of the model.
    pub turns: Option<u64>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// US dollars. Counts only where the model's prices are known.
    pub cost: Option<f64>,
    /// Time by the clock on the wall.
    pub time: Option<Duration>,
}

/// A budget, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Budget {
    /// Calls of tools.
    Calls,
    /// Answers of the model.
    Turns,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
    /// Time.
    Time,
}

impl Budget {
    /// The budget as one word, as in the configuration: `max_` stands before it there.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Time => "seconds",
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
