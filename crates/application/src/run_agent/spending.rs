//! What a run has used up, and which budget does not allow more.

use toolstead_domain::{
    agent::budget::{Budget, Budgets},
    model::usage::{Prices, Usage},
};

/// What a run has used up so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Spending {
    budgets: Budgets,
    /// Of the run's model; without them costs are not known.
    prices: Option<Prices>,
    usage: Usage,
    cost: f64,
    /// What answers took of which their provider says nothing. It counts for budgets alone.
    guessed: Usage,
    calls: u64,
    turns: u64,
}

impl Spending {
    pub(super) fn new(budgets: Budgets, prices: Option<Prices>) -> Self {
        Self { budgets, prices, ..Self::default() }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// In US dollars, where prices are known.
    pub(super) fn cost(&self) -> Option<f64> {
        self.prices.map(|_| self.cost)
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// The model answered. The guess counts where it does not say what that took.
    pub(super) fn answered(&mut self, usage: Usage, guess: Usage) {
        self.turns += 1;
        if usage == Usage::default() {
            self.guessed += guess;
        }
        self.used(usage, self.prices);
    }

    /// Some model of these prices was asked something.
    pub(super) fn used(&mut self, usage: Usage, prices: Option<Prices>) {
        self.usage += usage;
        self.cost += prices.map_or(0.0, |prices| usage.cost(&prices));
    }

    /// A call is made.
    pub(super) fn called(&mut self) {
        self.calls += 1;
    }

    /// As many calls may still be made; `None`: there is no bound.
    pub(super) fn calls_left(&self) -> Option<u64> {
        self.budgets.calls.map(|calls| calls.saturating_sub(self.calls))
    }

    /// The budget that a request of so many tokens would go over, whatever the answer is. Time is watched by a clock.
    pub(super) fn refuses_request(&self, tokens: u64) -> Option<Budget> {
        let over = |bound: Option<u64>, needed: u64| bound.is_some_and(|bound| needed > bound);
        // A provider may have all of it in its cache.
        let least = |prices: Prices| tokens as f64 * prices.cache_read.min(prices.input) / 1e6;
        let cost = self.prices.map(|prices| self.cost + self.guessed.cost(&prices) + least(prices));
        let used = (self.usage + self.guessed).total();
        if over(self.budgets.turns, self.turns + 1) {
            Some(Budget::Turns)
        } else if over(self.budgets.tokens, used.saturating_add(tokens).saturating_add(1)) {
            Some(Budget::Tokens)
        } else if self.budgets.cost.zip(cost).is_some_and(|(bound, cost)| cost >= bound) {
            Some(Budget::Cost)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices = Prices { input: 10.0, cache_read: 1.0, cache_write: 12.0, output: 50.0 };

    fn spent(budgets: Budgets, turns: u64) -> Spending {
        let mut spending = Spending::new(budgets, Some(PRICES));
        for _ in 0..turns {
            let usage = Usage { input_tokens: 1_000, output_tokens: 100, ..Usage::default() };
            spending.answered(usage, Usage { input_tokens: 1 << 40, ..usage });
        }
        spending
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Budgets), turns: u64, tokens: u64, expected: Option<Budget>) {
        let mut budgets = Budgets::default();
        change(&mut budgets);
        assert_eq!(spent(budgets, turns).refuses_request(tokens), expected, "{turns} turns, then {tokens} tokens");
    }

    #[test]
    fn a_request_is_refused_before_it_would_go_over_a_budget() {
        check(|_| {}, 100, 1 << 40, None);
        check(|budgets| budgets.turns = Some(2), 1, 0, None);
        check(|budgets| budgets.turns = Some(2), 2, 0, Some(Budget::Turns));
        check(|budgets| budgets.turns = Some(0), 0, 0, Some(Budget::Turns));
        check(|budgets| budgets.tokens = Some(3_000), 2, 799, None);
        check(|budgets| budgets.tokens = Some(3_000), 2, 800, Some(Budget::Tokens));
        check(|budgets| budgets.tokens = Some(500), 0, 500, Some(Budget::Tokens));
        // Two answers of 1.5 cents.
        check(|budgets| budgets.cost = Some(0.04), 2, 9_000, None);
        check(|budgets| budgets.cost = Some(0.04), 2, 10_000, Some(Budget::Cost));
        check(|budgets| budgets.cost = Some(0.03), 2, 0, Some(Budget::Cost));
    }

    #[test]
    fn costs_count_only_where_prices_are_known() {
        let mut spending = Spending::new(Budgets::default(), None);
        spending.answered(Usage { input_tokens: 1_000, ..Usage::default() }, Usage::default());
        assert_eq!((spending.cost(), spending.usage().total()), (None, 1_000));
        assert_eq!(spent(Budgets::default(), 1).cost(), Some(0.015));
    }

    #[test]
    fn an_answer_of_which_the_provider_tells_no_usage_counts_by_a_guess() {
        let guess = Usage { input_tokens: 1_000, output_tokens: 100, ..Usage::default() };
        for (tokens, cost, expected) in [
            (Some(1_100), None, Some(Budget::Tokens)),
            (None, Some(0.015), Some(Budget::Cost)),
            (Some(1_101), None, None),
        ] {
            let mut budgets = Budgets::default();
            (budgets.tokens, budgets.cost) = (tokens, cost);
            let mut spending = Spending::new(budgets, Some(PRICES));
            spending.answered(Usage::default(), guess);
            assert_eq!(spending.refuses_request(0), expected, "{tokens:?} {cost:?}");
            assert_eq!((spending.usage(), spending.cost()), (Usage::default(), Some(0.0)));
        }
    }
}
