//! Consumption of a run, and the checks against its budgets. A delegated run has a ledger of its own, and also draws on
//! that of the delegating run.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use toolstead_domain::{BudgetKind, Budgets, TokenPrices, TokenUsage};

/// The budgets of a run and their consumption, by the run and by all work that it delegates.
#[derive(Debug)]
pub(crate) struct BudgetLedger {
    budgets: Budgets,
    deadline: Option<Instant>,
    /// Ledger of the delegating run. Its budgets also apply to this run.
    above: Option<Arc<BudgetLedger>>,
    spent: Mutex<Consumption>,
}

/// Amounts that are used up or reserved.
#[derive(Debug, Clone, Copy, Default)]
struct Consumption {
    usage: TokenUsage,
    cost: f64,
    /// Estimated usage of answers whose provider reported none. It counts towards the budgets, but is not reported.
    guessed: TokenUsage,
    guessed_cost: f64,
    /// Number of calls that were made.
    calls: u64,
    /// Number of calls that were admitted, including those that were made.
    admitted_calls: u64,
    /// Minimum consumption of requests that are not answered yet.
    reserved: BudgetReservation,
}

/// Reserved amounts: the minimum consumption of requests without an answer.
#[derive(Debug, Clone, Copy, Default)]
struct BudgetReservation {
    tokens: u64,
    cost: f64,
}

impl BudgetLedger {
    /// Creates the ledger of a run that begins now. `above` is the ledger of the delegating run, if there is one.
    pub(super) fn new(budgets: Budgets, above: Option<Arc<Self>>) -> Arc<Self> {
        let own = budgets.time.and_then(|time| Instant::now().checked_add(time));
        let above_it = above.as_ref().and_then(|above| above.deadline);
        let deadline = own.into_iter().chain(above_it).min();
        Arc::new(Self { budgets, deadline, above, spent: Mutex::default() })
    }

    /// Returns the earliest deadline of this run and its ancestors; `None` if none of them has a time budget.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns `true` if this run or an ancestor has a cost budget.
    pub(super) fn bounds_costs(&self) -> bool {
        self.chain().any(|purse| purse.budgets.cost.is_some())
    }

    /// Applies `take` to this ledger and to all its ancestors, if `is_over` returns no budget for any of them; else to
    /// none.
    ///
    /// # Errors
    /// The budget that would be exceeded.
    fn take(
        &self,
        is_over: &dyn Fn(&Budgets, &Consumption) -> Option<BudgetKind>,
        take: &dyn Fn(&mut Consumption),
    ) -> Result<(), BudgetKind> {
        // Locks are always taken upwards, which rules out a deadlock.
        let mut spent = self.lock();
        match is_over(&self.budgets, &spent) {
            Some(budget) => return Err(budget),
            None => self.above.as_ref().map_or(Ok(()), |above| above.take(is_over, take))?,
        }
        take(&mut spent);
        Ok(())
    }

    fn change(&self, change: impl Fn(&mut Consumption)) {
        self.chain().for_each(|purse| change(&mut purse.lock()));
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |purse| purse.above.as_deref())
    }

    fn lock(&self) -> MutexGuard<'_, Consumption> {
        // Nothing panics while the lock is held.
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Consumption of one run. Dropping it releases the reservation of the last request.
#[derive(Debug)]
pub(super) struct Spending {
    ledger: Arc<BudgetLedger>,
    /// Prices of the run's model; `None`: costs are unknown.
    prices: Option<TokenPrices>,
    turns: u64,
    reserved: BudgetReservation,
}

impl Spending {
    pub(super) fn new(ledger: Arc<BudgetLedger>, prices: Option<TokenPrices>) -> Self {
        Self { ledger, prices, turns: 0, reserved: BudgetReservation::default() }
    }

    /// Returns the reported usage of the run and of all work that it delegated, without estimates.
    pub(super) fn usage(&self) -> TokenUsage {
        self.ledger.lock().usage
    }

    /// Returns the cost of the run and of all work that it delegated, in US dollars; `None` if the prices of its model
    /// are unknown.
    pub(super) fn cost(&self) -> Option<f64> {
        self.prices.map(|_| self.ledger.lock().cost)
    }

    pub(super) fn calls(&self) -> u64 {
        self.ledger.lock().calls
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// Adds an answer of the model. If the model reported no usage, `guess` counts towards the budgets, but is not
    /// reported.
    pub(super) fn answered(&mut self, usage: TokenUsage, guess: TokenUsage) {
        self.turns += 1;
        if usage == TokenUsage::default() {
            let cost = self.prices.map_or(0.0, |prices| guess.cost(&prices));
            self.ledger.change(|spent| {
                spent.guessed += guess;
                spent.guessed_cost += cost;
            });
        }
        self.used(usage, self.prices);
    }

    /// Adds the usage of a model with these prices to this ledger and its ancestors. Without prices, the cost is zero.
    pub(super) fn used(&self, usage: TokenUsage, prices: Option<TokenPrices>) {
        let cost = prices.map_or(0.0, |prices| usage.cost(&prices));
        self.ledger.change(|spent| {
            spent.usage += usage;
            spent.cost += cost;
        });
    }

    /// Admits one more call and returns `true`, if the budgets allow it.
    pub(super) fn try_reserve_call(&self) -> bool {
        let is_over = |budgets: &Budgets, spent: &Consumption| {
            budgets.calls.filter(|most| spent.admitted_calls >= *most).map(|_| BudgetKind::Calls)
        };
        self.ledger.take(&is_over, &|spent| spent.admitted_calls += 1).is_ok()
    }

    /// Completes an admitted call. A call that was not made releases its place.
    pub(super) fn call_is_over(&self, was_made: bool) {
        self.ledger.change(|spent| match was_made {
            true => spent.calls += 1,
            false => spent.admitted_calls = spent.admitted_calls.saturating_sub(1),
        });
    }

    /// Returns the number of calls that may still be made; `None`: there is no limit.
    pub(super) fn calls_left(&self) -> Option<u64> {
        let left = |purse: &BudgetLedger| purse.budgets.calls.map(|calls| calls.saturating_sub(purse.lock().calls));
        self.ledger.chain().filter_map(left).min()
    }

    /// Returns the budget that a request with this number of tokens would exceed, whatever its answer is; `None` if it
    /// can be sent. Reserves nothing. The time budget is enforced by a timer instead.
    pub(super) fn refuses_request(&self, tokens: u64) -> Option<BudgetKind> {
        self.request(tokens, &|_| {}).err()
    }

    /// Releases the reservation of the last request, and reserves the tokens and the minimum cost of a new one until it
    /// is answered.
    ///
    /// # Errors
    /// The budget that would be exceeded.
    pub(super) fn asks(&mut self, tokens: u64) -> Result<(), BudgetKind> {
        self.is_answered();
        let asked = BudgetReservation { tokens: tokens.saturating_add(1), cost: self.least(tokens) };
        self.request(tokens, &|spent| {
            spent.reserved.tokens = spent.reserved.tokens.saturating_add(asked.tokens);
            spent.reserved.cost += asked.cost;
        })?;
        self.reserved = asked;
        Ok(())
    }

    /// Releases the reservation of the last request, which is answered or will never be.
    pub(super) fn is_answered(&mut self) {
        let BudgetReservation { tokens, cost } = std::mem::take(&mut self.reserved);
        if tokens > 0 {
            self.ledger.change(|spent| {
                spent.reserved.tokens = spent.reserved.tokens.saturating_sub(tokens);
                spent.reserved.cost = (spent.reserved.cost - cost).max(0.0);
            });
        }
    }

    fn request(&self, tokens: u64, take: &dyn Fn(&mut Consumption)) -> Result<(), BudgetKind> {
        if self.ledger.budgets.turns.is_some_and(|most| self.turns + 1 > most) {
            return Err(BudgetKind::Turns);
        }
        let least = self.prices.map(|_| self.least(tokens));
        let is_over = |budgets: &Budgets, spent: &Consumption| {
            let used = (spent.usage + spent.guessed).total().saturating_add(spent.reserved.tokens);
            let cost = least.map(|least| spent.cost + spent.guessed_cost + spent.reserved.cost + least);
            if budgets.tokens.is_some_and(|bound| used.saturating_add(tokens).saturating_add(1) > bound) {
                Some(BudgetKind::Tokens)
            } else if budgets.cost.zip(cost).is_some_and(|(bound, cost)| cost >= bound) {
                Some(BudgetKind::Cost)
            } else {
                None
            }
        };
        self.ledger.take(&is_over, take)
    }

    /// Returns the minimum cost of a number of input tokens in US dollars: the provider may have all of them in its
    /// cache. 0 if the prices are unknown.
    fn least(&self, tokens: u64) -> f64 {
        self.prices.map_or(0.0, |prices| tokens as f64 * prices.cache_read.min(prices.input) / 1e6)
    }
}

impl Drop for Spending {
    fn drop(&mut self) {
        self.is_answered();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: TokenPrices = TokenPrices { input: 10.0, cache_read: 1.0, cache_write: 12.0, output: 50.0 };

    fn spent(budgets: Budgets, turns: u64) -> Spending {
        let mut spending = Spending::new(BudgetLedger::new(budgets, None), Some(PRICES));
        for _ in 0..turns {
            let usage = TokenUsage { input_tokens: 1_000, output_tokens: 100, ..TokenUsage::default() };
            spending.answered(usage, TokenUsage { input_tokens: 1 << 40, ..usage });
        }
        spending
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Budgets), turns: u64, tokens: u64, expected: Option<BudgetKind>) {
        let mut budgets = Budgets::default();
        change(&mut budgets);
        assert_eq!(spent(budgets, turns).refuses_request(tokens), expected, "{turns} turns, then {tokens} tokens");
    }

    #[test]
    fn a_request_is_refused_before_it_would_go_over_a_budget() {
        check(|_| {}, 100, 1 << 40, None);
        check(|budgets| budgets.turns = Some(2), 1, 0, None);
        check(|budgets| budgets.turns = Some(2), 2, 0, Some(BudgetKind::Turns));
        check(|budgets| budgets.turns = Some(0), 0, 0, Some(BudgetKind::Turns));
        check(|budgets| budgets.tokens = Some(3_000), 2, 799, None);
        check(|budgets| budgets.tokens = Some(3_000), 2, 800, Some(BudgetKind::Tokens));
        check(|budgets| budgets.tokens = Some(500), 0, 500, Some(BudgetKind::Tokens));
        // Two answers of 1.5 cents.
        check(|budgets| budgets.cost = Some(0.04), 2, 9_000, None);
        check(|budgets| budgets.cost = Some(0.04), 2, 10_000, Some(BudgetKind::Cost));
        check(|budgets| budgets.cost = Some(0.03), 2, 0, Some(BudgetKind::Cost));
    }

    #[test]
    fn costs_count_only_where_prices_are_known() {
        let mut spending = Spending::new(BudgetLedger::new(Budgets::default(), None), None);
        spending.answered(TokenUsage { input_tokens: 1_000, ..TokenUsage::default() }, TokenUsage::default());
        assert_eq!((spending.cost(), spending.usage().total()), (None, 1_000));
        assert_eq!(spent(Budgets::default(), 1).cost(), Some(0.015));
    }

    #[test]
    fn an_answer_without_reported_usage_counts_toward_budgets_by_an_estimate() {
        let guess = TokenUsage { input_tokens: 1_000, output_tokens: 100, ..TokenUsage::default() };
        for (tokens, cost, expected) in [
            (Some(1_100), None, Some(BudgetKind::Tokens)),
            (None, Some(0.015), Some(BudgetKind::Cost)),
            (Some(1_101), None, None),
        ] {
            let mut budgets = Budgets::default();
            (budgets.tokens, budgets.cost) = (tokens, cost);
            let mut spending = Spending::new(BudgetLedger::new(budgets, None), Some(PRICES));
            spending.answered(TokenUsage::default(), guess);
            assert_eq!(spending.refuses_request(0), expected, "{tokens:?} {cost:?}");
            assert_eq!((spending.usage(), spending.cost()), (TokenUsage::default(), Some(0.0)));
        }
    }
}
