//! Numbers that are valid JSON but cannot be represented exactly.

/// Returns the first number of a JSON text that neither a 64-bit integer nor a double represents exactly, or `None` if
/// there is none. The text must be valid JSON.
///
/// An integer beyond 64 bits is exact if it equals a double or has at most 17 significant digits, because JavaScript
/// writes large doubles in this way.
pub fn first_inexact(json: &[u8]) -> Option<&str> {
    let mut at = 0;
    while at < json.len() {
        match json[at] {
            b'"' => at = after_string(json, at + 1),
            b'-' | b'0'..=b'9' => {
                let length = json[at..]
                    .iter()
                    .take_while(|c| matches!(c, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
                    .count();
                let number = std::str::from_utf8(&json[at..at + length]).ok()?;
                if !is_exact(number) {
                    return Some(number);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

/// Returns the position after the closing quote of the string in which `at` is; without a closing quote, the length of
/// the text.
fn after_string(json: &[u8], mut at: usize) -> usize {
    while let Some(length) = json.get(at..).and_then(|rest| memchr::memchr2(b'\\', b'"', rest)) {
        at += length;
        match json[at] {
            b'\\' => at += 2,
            _ => return at + 1,
        }
    }
    json.len()
}

fn is_exact(number: &str) -> bool {
    // 15 characters contain at most 15 digits, which a double represents exactly unless an exponent overflows it.
    if number.len() <= 15 && !number.contains(['e', 'E']) {
        return true;
    }
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').trim_end_matches('0').len();
    match number.parse::<f64>() {
        Ok(double) if double.is_finite() => significant <= 17 || is_written_as(double, number),
        Ok(_) | Err(_) => false,
    }
}

/// Returns `true` if an integer is the exact decimal form of a double, such as a power of two. Texts longer than any
/// double are not compared.
fn is_written_as(double: f64, number: &str) -> bool {
    number.len() <= 310 && format!("{double:.0}") == number
}

/// Returns the reason why a number is inexact, as a clause.
pub fn why_inexact(number: &str) -> &'static str {
    match number.parse::<f64>() {
        Ok(double) if double.is_finite() => {
            "is not a 64-bit integer and has more digits than a double holds: send it as a string"
        }
        Ok(_) | Err(_) => "is larger than any double: send it as a string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_fit_64_bit_integers_or_doubles_count_as_exact() {
        for (json, inexact) in [
            ("[0,-1,9007199254740993,9223372036854775807,-9223372036854775808,18446744073709551615]", None),
            ("[0.1,1e308,2.2250738585072014e-308,18446744073709552000,1.7976931348623157e308]", None),
            (r#"{"a":"18446744073709551617","b\"":"1e400"}"#, None),
            ("[18446744073709551617]", Some("18446744073709551617")),
            ("[18446744073709551616,-36893488147419103232,340282366920938463463374607431768211456]", None),
            ("[340282366920938463463374607431768211457]", Some("340282366920938463463374607431768211457")),
            ("[1e400]", Some("1e400")),
            ("[0.12345678901234567891]", Some("0.12345678901234567891")),
            ("[-9223372036854775809]", Some("-9223372036854775809")),
        ] {
            assert_eq!(first_inexact(json.as_bytes()), inexact, "{json}");
        }
    }

    #[test]
    fn the_reason_for_an_inexact_number_matches_the_number() {
        for number in ["1e400", "-1e400", &"9".repeat(400)] {
            assert!(why_inexact(number).starts_with("is larger than any double"), "{number}");
        }
        for number in ["18446744073709551617", "0.12345678901234567891"] {
            assert!(why_inexact(number).contains("more digits than a double holds"), "{number}");
        }
    }
}
