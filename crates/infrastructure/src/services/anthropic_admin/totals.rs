//! Sums of a report.

use super::{
    money::{InvalidAmount, cents, dollars, sum},
    report::ReportKind,
};
use rust_decimal::Decimal;
use serde_json::{Map, Value};

/// Members of a usage record that are added.
const USAGE: [&str; 6] = [
    "uncached_input_tokens",
    "cache_creation/ephemeral_1h_input_tokens",
    "cache_creation/ephemeral_5m_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "server_tool_use/web_search_requests",
];
/// Members of a Claude Code record that are added.
const CLAUDE_CODE: [&str; 5] = [
    "core_metrics/num_sessions",
    "core_metrics/lines_of_code/added",
    "core_metrics/lines_of_code/removed",
    "core_metrics/commits_by_claude_code",
    "core_metrics/pull_requests_by_claude_code",
];
/// Members of each model in a Claude Code record that are added.
const MODEL: [&str; 4] = ["tokens/input", "tokens/output", "tokens/cache_read", "tokens/cache_creation"];

/// Returns the sums of these buckets or records. Inserts `amount_usd` after the `amount` of each cost item.
///
/// # Errors
/// [`InvalidAmount`].
pub fn totals(action: ReportKind, data: &mut [Value]) -> Result<Map<String, Value>, InvalidAmount> {
    let mut totals = Map::new();
    match action {
        ReportKind::Usage => {
            data.iter().flat_map(|bucket| list(bucket, "results")).for_each(|item| add(&mut totals, item, &USAGE))
        }
        ReportKind::Cost => {
            let mut money = DollarTotal::default();
            let results = data.iter_mut().filter_map(|bucket| bucket.get_mut("results")?.as_array_mut()).flatten();
            for item in results {
                if let Some(amount) = money.add(item)? {
                    with_dollars(item, &amount);
                }
            }
            money.insert_into(&mut totals)?;
        }
        ReportKind::ClaudeCode => {
            let mut money = DollarTotal::default();
            for record in data.iter() {
                add(&mut totals, record, &CLAUDE_CODE);
                for model in list(record, "model_breakdown") {
                    add(&mut totals, model, &MODEL);
                    if let Some(cost) = model.get("estimated_cost").filter(|cost| cost.is_object()) {
                        money.add(cost)?;
                    }
                }
            }
            money.insert_into(&mut totals)?;
        }
    }
    Ok(totals)
}

/// The sum of amounts in dollars, and the number of amounts in other currencies.
#[derive(Default)]
struct DollarTotal {
    cents: Decimal,
    others: u64,
}

impl DollarTotal {
    /// Adds the amount of an item, and returns it in dollars. An item in another currency is only counted, and `None`
    /// is returned.
    fn add(&mut self, item: &Value) -> Result<Option<String>, InvalidAmount> {
        if item.get("currency").and_then(Value::as_str).is_some_and(|currency| currency != "USD") {
            self.others += 1;
            return Ok(None);
        }
        let amount = cents(item.get("amount").unwrap_or(&Value::Null))?;
        self.cents = sum(self.cents, amount)?;
        dollars(amount).map(Some)
    }

    fn insert_into(self, totals: &mut Map<String, Value>) -> Result<(), InvalidAmount> {
        totals.insert("amount".into(), self.cents.to_string().into());
        totals.insert("amount_usd".into(), dollars(self.cents)?.into());
        if self.others > 0 {
            totals.insert("items_in_other_currencies".into(), self.others.into());
        }
        Ok(())
    }
}

/// Inserts the amount in dollars after that in cents.
fn with_dollars(item: &mut Value, amount: &str) {
    let Value::Object(members) = item else { return };
    let old = std::mem::take(members);
    for (name, value) in old {
        let is_amount = name == "amount";
        members.insert(name, value);
        if is_amount {
            members.insert("amount_usd".into(), amount.into());
        }
    }
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Adds the numbers at these paths to the totals, under the last segment of each path; numbers of lines of code are
/// named `lines_added` and `lines_removed`.
fn add(totals: &mut Map<String, Value>, item: &Value, paths: &[&str]) {
    for path in paths {
        let name = match *path {
            "core_metrics/lines_of_code/added" => "lines_added",
            "core_metrics/lines_of_code/removed" => "lines_removed",
            path => path.rsplit('/').next().unwrap_or(path),
        };
        let number = item.pointer(&format!("/{path}")).and_then(Value::as_u64).unwrap_or(0);
        let before = totals.get(name).and_then(Value::as_u64).unwrap_or(0);
        totals.insert(name.to_owned(), before.saturating_add(number).into());
    }
}
