//! Exact arithmetic for money: no amount is converted to a binary fraction, and none is rounded before it is added.

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::Value;

/// The reason why an amount is invalid, or cannot be added exactly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAmount {
    /// The amount is not a decimal number.
    #[error("`{0}` is not an amount of money")]
    Number(String),
    /// The amount or the sum has more digits than can be represented exactly.
    #[error("the sum has more digits than can be added exactly")]
    Digits,
}

/// Parses an amount in cents from the API: a text, or a number.
///
/// # Errors
/// [`InvalidAmount::Number`].
pub fn cents(value: &Value) -> Result<Decimal, InvalidAmount> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => other.to_string(),
    };
    let number = Decimal::from_str_exact(&text).or_else(|_| Decimal::from_scientific(&text));
    number.map_err(|_| InvalidAmount::Number(text.chars().take(60).collect()))
}

/// Returns the sum, with all digits of both amounts.
///
/// # Errors
/// [`InvalidAmount::Digits`].
pub fn sum(one: Decimal, other: Decimal) -> Result<Decimal, InvalidAmount> {
    if one.is_zero() {
        return Ok(other);
    }
    let sum = one.checked_add(other).ok_or(InvalidAmount::Digits)?;
    // The addition drops the last digits if there are too many.
    let is_exact = other.is_zero() || sum.scale() >= one.scale().max(other.scale());
    is_exact.then_some(sum).ok_or(InvalidAmount::Digits)
}

/// Converts cents to dollars, with all digits, and with at least two after the decimal point: `1.2345`.
///
/// # Errors
/// [`InvalidAmount::Digits`].
pub fn dollars(cents: Decimal) -> Result<String, InvalidAmount> {
    let mut dollars = cents.normalize();
    let scale = dollars.scale() + 2;
    dollars.set_scale(scale).map_err(|_| InvalidAmount::Digits)?;
    let mut shortest = dollars.normalize();
    if shortest.scale() < 2 {
        shortest.rescale(2);
    }
    Ok(shortest.to_string())
}

/// Rounds an amount in dollars to at most two digits after the decimal point, without trailing zeros; halves are
/// rounded away from zero. Only for display, never for addition.
///
/// # Errors
/// [`InvalidAmount::Number`].
pub fn rounded(dollars: &str) -> Result<String, InvalidAmount> {
    let amount = Decimal::from_str_exact(dollars).map_err(|_| InvalidAmount::Number(dollars.to_owned()))?;
    Ok(amount.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero).normalize().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn total<'a>(amounts: impl IntoIterator<Item = &'a Value>) -> Result<Decimal, InvalidAmount> {
        amounts.into_iter().try_fold(Decimal::ZERO, |total, amount| sum(total, cents(amount)?))
    }

    #[test]
    fn cents_convert_to_dollars_without_losing_digits() {
        for (amount, expected) in [
            (json!("123.45"), "1.2345"),
            (json!("100"), "1.00"),
            (json!("0.3"), "0.003"),
            (json!("0"), "0.00"),
            (json!("0.00"), "0.00"),
            (json!("-12.50"), "-0.125"),
            (json!(1025), "10.25"),
            (json!(10.5), "0.105"),
            (json!("99999999.99999999"), "999999.9999999999"),
            (json!(1e20), "1000000000000000000.00"),
        ] {
            assert_eq!(dollars(cents(&amount).unwrap()).unwrap(), expected, "{amount}");
        }
        for amount in [json!("1,5"), json!(""), json!("NaN"), json!(null), json!([]), json!("1".repeat(40))] {
            assert!(cents(&amount).is_err(), "{amount}");
        }
    }

    #[test]
    fn rejects_amounts_that_cannot_be_added_exactly() {
        let large = json!("9999999999999999999999999999");
        assert_eq!(total([&large, &json!("0.1")]), Err(InvalidAmount::Digits));
        assert_eq!(total([&json!("0.1"), &large]), Err(InvalidAmount::Digits));
        assert_eq!(
            dollars(Decimal::from_str_exact("0.0000000000000000000000000001").unwrap()),
            Err(InvalidAmount::Digits)
        );
    }

    #[test]
    fn amounts_are_rounded_to_cents_for_display() {
        for (amount, expected) in
            [("1.2345", "1.23"), ("1.235", "1.24"), ("-1.235", "-1.24"), ("0.003", "0"), ("2.00", "2")]
        {
            assert_eq!(rounded(amount).unwrap(), expected);
        }
    }

    proptest! {
        #[test]
        fn many_small_amounts_add_up_exactly(tenths in prop::collection::vec(0_u32..50, 0..2_000)) {
            let amounts: Vec<Value> = tenths.iter().map(|tenth| json!(format!("{}.{}", tenth / 10, tenth % 10))).collect();
            let expected: u64 = tenths.iter().map(|tenth| u64::from(*tenth)).sum();
            prop_assert_eq!(total(&amounts).unwrap() * Decimal::TEN, Decimal::from(expected));
        }
    }
}
