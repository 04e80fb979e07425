//! Labels of a call, by which its audit records can be found.

use std::collections::BTreeMap;

/// Maximum number of labels of a call.
pub const MOST_LABELS: usize = 16;
/// Maximum length of a name, in bytes.
pub const LONGEST_NAME: usize = 64;
/// Maximum length of a value, in bytes.
pub const LONGEST_VALUE: usize = 256;

/// Names with values, limited in number and size. Embedding applications and hooks set them; a client only provides the
/// id of its trace.
///
/// ```
/// use toolstead_domain::labels::CallLabels;
/// let labels = CallLabels::default().with("team", "search")?.with("ticket", "T-12")?;
/// assert_eq!(labels.get("ticket"), Some("T-12"));
/// assert!(labels.with("a b", "").is_err());
/// # Ok::<(), toolstead_domain::labels::InvalidLabel>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallLabels(BTreeMap<String, String>);

/// Label that a call cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabel {
    /// The name is invalid.
    #[error("a label name must have 1 to {LONGEST_NAME} ASCII letters, digits, `.`, `_`, `-`, `/` or `:`")]
    Name,
    /// The value is too long.
    #[error("the value of the label `{name}` has {bytes} bytes, at most {LONGEST_VALUE} are allowed")]
    Value {
        /// Name of the label.
        name: String,
        /// Length of the value, in bytes.
        bytes: usize,
    },
    /// The call already has the maximum number of labels.
    #[error("a call can have at most {MOST_LABELS} labels")]
    TooMany,
}

impl CallLabels {
    /// No labels.
    pub const EMPTY: Self = Self(BTreeMap::new());

    /// Returns the labels with this one added. A label with the same name is replaced.
    ///
    /// # Errors
    /// [`InvalidLabel`] if the label is invalid, or there are too many.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Result<Self, InvalidLabel> {
        self.set(name, value)?;
        Ok(self)
    }

    /// Sets a label. A label with the same name is replaced.
    ///
    /// # Errors
    /// [`InvalidLabel`]; nothing has then changed.
    pub fn set(&mut self, name: &str, value: impl Into<String>) -> Result<(), InvalidLabel> {
        let value = value.into();
        check_name(name)?;
        if value.len() > LONGEST_VALUE {
            return Err(InvalidLabel::Value { name: name.to_owned(), bytes: value.len() });
        }
        if self.0.len() >= MOST_LABELS && !self.0.contains_key(name) {
            return Err(InvalidLabel::TooMany);
        }
        self.0.insert(name.to_owned(), value);
        Ok(())
    }

    /// Adds the other labels up to the maximum number. Existing labels are not replaced. Returns the number of labels
    /// that were left out.
    pub fn add(&mut self, others: &Self) -> usize {
        let mut left_out = 0;
        for (name, value) in &others.0 {
            if !self.0.contains_key(name) && self.set(name, value.as_str()).is_err() {
                left_out += 1;
            }
        }
        left_out
    }

    /// Returns the labels with the values that `value` returns for each name and old value, cut to their maximum
    /// length.
    #[must_use]
    pub fn map(&self, value: impl Fn(&str, &str) -> String) -> Self {
        let mapped = self.0.iter().map(|(name, old)| {
            let mut new = value(name, old);
            new.truncate(new.floor_char_boundary(LONGEST_VALUE));
            (name.clone(), new)
        });
        Self(mapped.collect())
    }

    /// Returns the value of the label with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns all labels, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns `true` if there are no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Checks that a label may have this name.
///
/// # Errors
/// [`InvalidLabel::Name`] if it may not.
pub fn check_name(name: &str) -> Result<(), InvalidLabel> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:".contains(&byte);
    match (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(InvalidLabel::Name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_label_is_a_plain_name_and_a_short_value() {
        for (name, value, fits) in [
            ("team", String::new(), true),
            ("acme.example/team:1_a-b", "ü=\"".into(), true),
            (&"n".repeat(LONGEST_NAME), "v".repeat(LONGEST_VALUE), true),
            ("", String::new(), false),
            (&"n".repeat(LONGEST_NAME + 1), String::new(), false),
            ("a=b", String::new(), false),
            ("a\"b", String::new(), false),
            ("a\nb", String::new(), false),
            ("team", "v".repeat(LONGEST_VALUE + 1), false),
        ] {
            assert_eq!(CallLabels::default().with(name, value).is_ok(), fits, "{name}");
        }
    }

    #[test]
    fn add_keeps_existing_labels_and_counts_labels_that_exceed_the_limit() {
        let mut labels = CallLabels::default().with("a", "1").unwrap();
        let others =
            (0..MOST_LABELS).fold(CallLabels::default(), |labels, n| labels.with(&format!("n{n}"), "x").unwrap());
        assert_eq!(labels.add(&CallLabels::default().with("a", "2").unwrap()), 0);
        assert_eq!(labels.get("a"), Some("1"));
        assert_eq!(labels.add(&others), 1);
        assert_eq!(labels.with("b", ""), Err(InvalidLabel::TooMany));
    }

    proptest! {
        #[test]
        fn setting_and_mapping_labels_keeps_their_number_and_value_length_within_limits(values in prop::collection::vec(".{0,300}", 0..30)) {
            let mut labels = CallLabels::default();
            for (number, value) in values.iter().enumerate() {
                let _ = labels.set(&format!("n{number}"), value.as_str());
            }
            let mapped = labels.map(|_, value| format!("{value}{value}"));
            for labels in [&labels, &mapped] {
                prop_assert!(labels.iter().count() <= MOST_LABELS);
                prop_assert!(labels.iter().all(|(_, value)| value.len() <= LONGEST_VALUE));
            }
            prop_assert_eq!(labels.iter().count(), mapped.iter().count());
        }
    }
}
