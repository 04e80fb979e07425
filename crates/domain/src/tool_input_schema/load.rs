//! The size of an instance, as far as it affects the cost of its validation.

use super::bounds::LocationValidationCost;
use serde_json::Value;

/// Maximum number of backtracking steps of a pattern on one text.
pub(super) const BACKTRACKS: usize = 10_000;
/// Number of bytes of a text whose copying or counting costs as much as one step.
const BYTES_A_STEP: u64 = 1 << 10;
/// Number of bytes of a text whose comparison with one pattern costs as much as one step.
const MATCHED_BYTES_A_STEP: u64 = 64;

/// Size of an instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct InstanceSize {
    values: u64,
    text_bytes: u64,
}

impl InstanceSize {
    pub(super) fn of(instance: &Value) -> Self {
        let mut load = Self::default();
        load.add(instance);
        load
    }

    /// Counts a value and its parts. Recurses as deep as the value is nested.
    fn add(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::String(text) => self.text_bytes += text.len() as u64,
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => {
                for (name, member) in members {
                    self.text_bytes += name.len() as u64;
                    self.add(member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the maximum number of steps of a validation.
    pub(super) fn steps(self, cost: LocationValidationCost) -> u64 {
        let matched = self.text_bytes.div_ceil(MATCHED_BYTES_A_STEP).saturating_mul(cost.patterns);
        let matched = if cost.backtracks { matched.saturating_mul(BACKTRACKS as u64) } else { matched };
        self.looked_at(cost).saturating_add(matched)
    }

    /// Returns the maximum number of steps of a validation without the matching of patterns; each may find a violation.
    pub(super) fn looked_at(self, cost: LocationValidationCost) -> u64 {
        (self.values + self.text_bytes / BYTES_A_STEP).saturating_mul(cost.schemas)
    }
}
