//! References to elements of pages. A reference is assigned to one element of one document, and never reused.

use crate::browser::accessibility::BackendNodeId;
use std::{collections::HashMap, fmt, str::FromStr, sync::Arc};

/// Maximum number of references in one session.
const MAX_REFERENCES: u32 = 1_000_000;

/// A reference such as `e12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ElementReference(pub(crate) u32);

impl fmt::Display for ElementReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// The error for a text that is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid reference: write one like `e12`")]
pub(crate) struct MalformedElementReference(String);

impl FromStr for ElementReference {
    type Err = MalformedElementReference;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim().trim_start_matches("ref=").strip_prefix('e');
        let number = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        number
            .and_then(|digits| digits.parse().ok())
            .map(Self)
            .ok_or_else(|| MalformedElementReference(text.to_owned()))
    }
}

/// An element of a tab.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ElementNodeId {
    /// Id of its document, which changes with each navigation.
    pub(crate) document: Arc<str>,
    pub(crate) node: BackendNodeId,
}

/// The references of one session.
#[derive(Debug, Default)]
pub(crate) struct References {
    by_element: HashMap<ElementNodeId, ElementReference>,
    by_reference: HashMap<ElementReference, ElementNodeId>,
    given: u32,
}

impl References {
    /// Returns the reference of an element, and assigns one if it has none. `None` once no more are available.
    pub(crate) fn of(&mut self, element: ElementNodeId) -> Option<ElementReference> {
        if let Some(known) = self.by_element.get(&element) {
            return Some(*known);
        }
        if self.given >= MAX_REFERENCES {
            return None;
        }
        self.given += 1;
        let reference = ElementReference(self.given);
        self.by_element.insert(element.clone(), reference);
        self.by_reference.insert(reference, element);
        Some(reference)
    }

    /// Returns the element; `None` if its document no longer exists, or if the reference was never assigned.
    pub(crate) fn element(&self, reference: ElementReference) -> Option<&ElementNodeId> {
        self.by_reference.get(&reference)
    }

    /// Returns `true` if the reference was ever assigned, even if its document no longer exists.
    pub(crate) fn was_given(&self, reference: ElementReference) -> bool {
        (1..=self.given).contains(&reference.0)
    }

    /// Removes the elements of all documents for which `is_there` returns `false`.
    pub(crate) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.by_element.retain(|element, _| is_there(&element.document));
        self.by_reference.retain(|_, element| is_there(&element.document));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(document: &str, node: BackendNodeId) -> ElementNodeId {
        ElementNodeId { document: document.into(), node }
    }

    #[test]
    fn an_element_keeps_its_reference_and_references_are_not_reused() {
        let mut references = References::default();
        let first = references.of(element("d1", 7)).unwrap();
        assert_eq!((references.of(element("d1", 7)), first.to_string()), (Some(first), "e1".into()));
        assert_eq!(references.of(element("d2", 7)), Some(ElementReference(2)));
        references.keep(|document| document == "d2");
        assert_eq!((references.element(first), references.was_given(first)), (None, true));
        assert_eq!(references.element(ElementReference(2)), Some(&element("d2", 7)));
        assert_eq!(references.of(element("d1", 7)), Some(ElementReference(3)), "the document came back as another one");
        assert!(!references.was_given(ElementReference(4)) && !references.was_given(ElementReference(0)));
    }

    #[test]
    fn a_reference_is_parsed_in_its_displayed_form() {
        for (text, read) in
            [("e12", Some(12)), (" ref=e3 ", Some(3)), ("12", None), ("e", None), ("e-1", None), ("e+1", None)]
        {
            assert_eq!(text.parse::<ElementReference>().ok(), read.map(ElementReference), "{text}");
        }
        assert_eq!(
            "x".parse::<ElementReference>().unwrap_err().to_string(),
            "`x` is not a valid reference: write one like `e12`"
        );
    }
}
