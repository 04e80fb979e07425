//! Names that look like those of other tools.

use super::{ScanFinding, words::looks_latin};
use crate::server_name::folded_name;
use std::collections::BTreeSet;

/// Returns findings if the name mixes Latin letters with similar ones, or equals or looks like one of the `others`.
pub(super) fn find(name: &str, others: &BTreeSet<String>) -> Vec<ScanFinding> {
    let finding = |what: String| ScanFinding { is_hard: false, what, place: String::new() };
    let mut findings = Vec::new();
    if name.chars().any(looks_latin) && name.chars().any(|c| c.is_ascii_alphabetic()) {
        findings.push(finding("its name mixes Latin letters with others".into()));
    }
    if others.contains(name) {
        findings.push(finding(format!("its name shadows the tool `{name}` of another provider")));
    } else if let Some(other) = others.iter().find(|other| folded_name(other) == folded_name(name)) {
        findings.push(finding(format!("its name looks like that of the tool `{other}`")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_found() {
        let others = BTreeSet::from(["read_file".to_owned(), "list".to_owned()]);
        let found = |name: &str| find(name, &others).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        assert_eq!(found("read_file"), "its name shadows the tool `read_file` of another provider");
        assert_eq!(found("Read-Fi1e"), "its name looks like that of the tool `read_file`");
        assert_eq!(found("reаd"), "its name mixes Latin letters with others");
        assert_eq!(found("write_file"), "");
    }
}
