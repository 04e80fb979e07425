//! All that a run has used up, and which budget does not allow more. Runs that it hands work to draw on the same purse.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use toolstead_domain::{
    agent::budget::{Budget, Budgets},
    model::usage::{Prices, Usage},
};

/// The budgets of a run and what is used up of them, by it and by all that it hands work to.
#[derive(Debug)]
pub(crate) struct Purse {
    budgets: Budgets,
    deadline: Option<Instant>,
    /// That of the run which handed over the work: what it does not allow nobody below it may use.
    above: Option<Arc<Purse>>,
    spent: Mutex<Spent>,
}

/// All that is used up, or bound to be.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    usage: Usage,
    cost: f64,
    /// The usage of answers of which their provider says nothing. It counts for budgets alone.
    guessed: Usage,
    guessed_cost: f64,
    /// Calls that were made.
    calls: u64,
    /// Calls that were let in, those that were made among them.
    let_in: u64,
    /// The least that requests take which are not answered yet.
    asked: Asked,
}

/// The least that requests take.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    tokens: u64,
    cost: f64,
}

impl Purse {
    /// The purse of a run that begins now.
    pub(super) fn new(budgets: Budgets, above: Option<Arc<Self>>) -> Arc<Self> {
        let own = budgets.time.and_then(|time| Instant::now().checked_add(time));
        let above_it = above.as_ref().and_then(|above| above.deadline);
        let deadline = own.into_iter().chain(above_it).min();
        Arc::new(Self { budgets, deadline, above, spent: Mutex::default() })
    }

    /// The end of its time, or of that of one above it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Tells whether it bounds costs, or one above it does.
    pub(super) fn bounds_costs(&self) -> bool {
        self.chain().any(|purse| purse.budgets.cost.is_some())
    }

    /// Takes what is asked for, from this one and all above it, or from none of them. The error is the budget in the way.
    fn take(
        &self,
        is_over: &dyn Fn(&Budgets, &Spent) -> Option<Budget>,
        take: &dyn Fn(&mut Spent),
    ) -> Result<(), Budget> {
        // Always upwards, so that nobody waits for one who waits for them.
        let mut spent = self.lock();
        match is_over(&self.budgets, &spent) {
            Some(budget) => return Err(budget),
            None => self.above.as_ref().map_or(Ok(()), |above| above.take(is_over, take))?,
        }
        take(&mut spent);
        Ok(())
    }

    fn change(&self, change: impl Fn(&mut Spent)) {
        self.chain().for_each(|purse| change(&mut purse.lock()));
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |purse| purse.above.as_deref())
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        // Nothing panics while it is held.
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All that a run has used up so far. Dropping it gives back what its last request was bound to take.
#[derive(Debug)]
pub(super) struct Spending {
    purse: Arc<Purse>,
    /// Of the run's model; without them costs are not known.
    prices: Option<Prices>,
    turns: u64,
    asked: Asked,
}

impl Spending {
    pub(super) fn new(purse: Arc<Purse>, prices: Option<Prices>) -> Self {
        Self { purse, prices, turns: 0, asked: Asked::default() }
    }

    /// Of the run, with all that it handed over.
    pub(super) fn usage(&self) -> Usage {
        self.purse.lock().usage
    }

    /// In US dollars, where prices are known.
    pub(super) fn cost(&self) -> Option<f64> {
        self.prices.map(|_| self.purse.lock().cost)
    }

    pub(super) fn calls(&self) -> u64 {
        self.purse.lock().calls
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// The model answered. The guess counts where it does not say what that took.
    pub(super) fn answered(&mut self, usage: Usage, guess: Usage) {
        self.turns += 1;
        if usage == Usage::default() {
            let cost = self.prices.map_or(0.0, |prices| guess.cost(&prices));
            self.purse.change(|spent| {
                spent.guessed += guess;
                spent.guessed_cost += cost;
            });
        }
        self.used(usage, self.prices);
    }

    /// Some model of these prices was asked something.
    pub(super) fn used(&self, usage: Usage, prices: Option<Prices>) {
        let cost = prices.map_or(0.0, |prices| usage.cost(&prices));
        self.purse.change(|spent| {
            spent.usage += usage;
            spent.cost += cost;
        });
    }

    /// Tells whether one more call is let in.
    pub(super) fn lets_a_call_in(&self) -> bool {
        let is_over = |budgets: &Budgets, spent: &Spent| {
            budgets.calls.filter(|most| spent.let_in >= *most).map(|_| Budget::Calls)
        };
        self.purse.take(&is_over, &|spent| spent.let_in += 1).is_ok()
    }

    /// A call that was let in is over. One that was never made leaves its place to another.
    pub(super) fn call_is_over(&self, was_made: bool) {
        self.purse.change(|spent| match was_made {
            true => spent.calls += 1,
            false => spent.let_in = spent.let_in.saturating_sub(1),
        });
    }

    /// As many calls may still be made; `None`: there is no bound.
    pub(super) fn calls_left(&self) -> Option<u64> {
        let left = |purse: &Purse| purse.budgets.calls.map(|calls| calls.saturating_sub(purse.lock().calls));
        self.purse.chain().filter_map(left).min()
    }

    /// The budget that a request of so many tokens would go over, whatever the answer is. Time is watched by a clock.
    pub(super) fn refuses_request(&self, tokens: u64) -> Option<Budget> {
        self.request(tokens, &|_| {}).err()
    }

    /// Lets a request of so many tokens go, which counts until it is answered.
    ///
    /// # Errors
    /// The budget that it would go over.
    pub(super) fn asks(&mut self, tokens: u64) -> Result<(), Budget> {
        self.is_answered();
        let asked = Asked { tokens: tokens.saturating_add(1), cost: self.least(tokens) };
        self.request(tokens, &|spent| {
            spent.asked.tokens = spent.asked.tokens.saturating_add(asked.tokens);
            spent.asked.cost += asked.cost;
        })?;
        self.asked = asked;
        Ok(())
    }

    /// The last request is answered, or will not be.
    pub(super) fn is_answered(&mut self) {
        let Asked { tokens, cost } = std::mem::take(&mut self.asked);
        if tokens > 0 {
            self.purse.change(|spent| {
                spent.asked.tokens = spent.asked.tokens.saturating_sub(tokens);
                spent.asked.cost = (spent.asked.cost - cost).max(0.0);
            });
        }
    }

    fn request(&self, tokens: u64, take: &dyn Fn(&mut Spent)) -> Result<(), Budget> {
        if self.purse.budgets.turns.is_some_and(|most| self.turns + 1 > most) {
            return Err(Budget::Turns);
        }
        let least = self.prices.map(|_| self.least(tokens));
        let is_over = |budgets: &Budgets, spent: &Spent| {
            let used = (spent.usage + spent.guessed).total().saturating_add(spent.asked.tokens);
            let cost = least.map(|least| spent.cost + spent.guessed_cost + spent.asked.cost + least);
            if budgets.tokens.is_some_and(|bound| used.saturating_add(tokens).saturating_add(1) > bound) {
                Some(Budget::Tokens)
            } else if budgets.cost.zip(cost).is_some_and(|(bound, cost)| cost >= bound) {
                Some(Budget::Cost)
            } else {
                None
            }
        };
        self.purse.take(&is_over, take)
    }

    /// The least that so many tokens cost: a provider may have all of it in its cache.
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

    const PRICES: Prices = Prices { input: 10.0, cache_read: 1.0, cache_write: 12.0, output: 50.0 };

    fn spent(budgets: Budgets, turns: u64) -> Spending {
        let mut spending = Spending::new(Purse::new(budgets, None), Some(PRICES));
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
        let mut spending = Spending::new(Purse::new(Budgets::default(), None), None);
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
            let mut spending = Spending::new(Purse::new(budgets, None), Some(PRICES));
            spending.answered(Usage::default(), guess);
            assert_eq!(spending.refuses_request(0), expected, "{tokens:?} {cost:?}");
            assert_eq!((spending.usage(), spending.cost()), (Usage::default(), Some(0.0)));
        }
    }
}
