//! Limits of an agent.

use std::{fmt, time::Duration};

/// Limits of one run, which is one turn of a conversation. `None` is unlimited.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Budgets {
    /// Maximum number of tool calls.
    pub calls: Option<u64>,
    /// Maximum number of model answers.
    pub turns: Option<u64>,
    /// Maximum number of tokens, input and output together.
    pub tokens: Option<u64>,
    /// Maximum cost in US dollars. Applies only if the prices of the model are known.
    pub cost: Option<f64>,
    /// Maximum elapsed time.
    pub time: Option<Duration>,
}

/// Kind of limit in [`Budgets`], without its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BudgetKind {
    /// Tool calls.
    Calls,
    /// Model answers.
    Turns,
    /// Tokens.
    Tokens,
    /// Cost.
    Cost,
    /// Time.
    Time,
}

impl BudgetKind {
    /// Returns the name of the budget; that of [`BudgetKind::Time`] is `seconds`. Its configuration key is the name
    /// after `max_`.
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

impl fmt::Display for BudgetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
