//! The limits of the language gate: one line for each module, page and command with forbidden wording.

use std::{collections::BTreeMap, fmt};

/// Kind of counted wording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Doc comments that begin with a question word.
    Questions,
    /// Doc comments with a phrase of the word list; on pages and in help texts, the phrases.
    Phrases,
    /// Forbidden names of types.
    Types,
    /// Forbidden names of modules.
    Modules,
    /// Forbidden names of functions.
    Functions,
}

const NAMES: [(Kind, &str); 5] = [
    (Kind::Questions, "questions"),
    (Kind::Phrases, "phrases"),
    (Kind::Types, "types"),
    (Kind::Modules, "modules"),
    (Kind::Functions, "functions"),
];

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(kind, _)| kind == self).map_or("", |(_, name)| *name);
        formatter.pad(name)
    }
}

/// A count that is not its limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Deviation {
    pub(super) place: String,
    pub(super) kind: Kind,
    pub(super) limit: usize,
    pub(super) count: usize,
}

/// Numbers by place and kind. A number that is missing is 0.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Limits(BTreeMap<(String, Kind), usize>);

impl Limits {
    /// Parses lines such as `domain/agent: questions 1, phrases 2`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut limits = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let invalid = || format!("`{line}` is not a line of limits");
            let (place, numbers) = line.rsplit_once(": ").ok_or_else(invalid)?;
            for number in numbers.split(", ") {
                let (name, number) = number.split_once(' ').ok_or_else(invalid)?;
                let (kind, _) = NAMES.iter().find(|(_, known)| *known == name).ok_or_else(invalid)?;
                *limits.entry(place, *kind) = number.parse().map_err(|_| invalid())?;
            }
        }
        Ok(limits)
    }

    pub(super) fn entry(&mut self, place: &str, kind: Kind) -> &mut usize {
        self.0.entry((place.to_owned(), kind)).or_default()
    }

    fn get(&self, key: &(String, Kind)) -> usize {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Lists every count that differs from its limit.
    pub(super) fn deviations(&self, counts: &Self) -> Vec<Deviation> {
        let mut keys: Vec<_> = self.0.keys().chain(counts.0.keys()).collect();
        keys.sort();
        keys.dedup();
        let deviation = |key: &(String, Kind)| {
            let (limit, count) = (self.get(key), counts.get(key));
            (limit != count).then(|| Deviation { place: key.0.clone(), kind: key.1, limit, count })
        };
        keys.into_iter().filter_map(deviation).collect()
    }

    /// Returns the counts as the new limits. Numbers may move between the modules of a crate, between pages and between
    /// commands, because code and pages move.
    ///
    /// # Errors
    /// A message that lists the sums that have risen.
    pub(super) fn lowered_to(&self, counts: &Self) -> Result<Self, String> {
        let (before, now) = (self.sums(), counts.sums());
        let risen: Vec<String> = now
            .iter()
            .map(|(key, sum)| (key, before.get(key).copied().unwrap_or(0), *sum))
            .filter(|(_, before, sum)| sum > before)
            .map(|((area, kind), before, sum)| format!("{area} has {sum} {kind}; the limits allow {before}"))
            .collect();
        if risen.is_empty() { Ok(counts.clone()) } else { Err(format!("limits only fall:\n{}", risen.join("\n"))) }
    }

    fn sums(&self) -> BTreeMap<(String, Kind), usize> {
        let mut sums = BTreeMap::new();
        for ((place, kind), number) in &self.0 {
            *sums.entry((area(place), *kind)).or_default() += number;
        }
        sums
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "# Limits of the language gate (docs/internals/testing.md). `make limits` lowers them; nothing raises them."
        )?;
        let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((place, kind), number) in self.0.iter().filter(|(_, number)| **number > 0) {
            places.entry(place).or_default().push(format!("{kind} {number}"));
        }
        places.iter().try_for_each(|(place, numbers)| writeln!(formatter, "{place}: {}", numbers.join(", ")))
    }
}

/// The group of places whose sum must not rise: a crate, all pages, or all help texts.
pub(super) fn area(place: &str) -> String {
    match place.split_once('/') {
        _ if place.ends_with(".md") => "pages".to_owned(),
        Some((name, _)) => format!("crate {name}"),
        None => "help".to_owned(),
    }
}

#[test]
fn limits_round_trip_through_text_and_invalid_lines_are_rejected() {
    let text = "docs/a.md: phrases 2\ndomain/agent: questions 1, types 3\ntoolstead call: phrases 1\n";
    let limits = Limits::parse(text).unwrap();
    assert_eq!(limits.to_string().split_once('\n').unwrap().1, text);
    for wrong in ["domain/agent", "domain/agent: questions", "domain/agent: words 1", "domain/agent: types x"] {
        assert!(Limits::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_count_that_rises_or_falls_deviates() {
    let limits = Limits::parse("domain/a: questions 1, types 2\ndomain/b: phrases 1").unwrap();
    let counts = Limits::parse("domain/a: questions 2, types 2\ndomain/c: phrases 1").unwrap();
    let found: Vec<_> =
        limits.deviations(&counts).into_iter().map(|found| (found.place, found.limit, found.count)).collect();
    assert_eq!(found, [("domain/a".into(), 1, 2), ("domain/b".into(), 1, 0), ("domain/c".into(), 0, 1)]);
    assert_eq!(limits.deviations(&limits), []);
}

#[test]
fn new_limits_are_accepted_unless_a_sum_rises() {
    let limits = "domain/a: questions 3\ndocs/a.md: phrases 2\ntoolstead call: phrases 1";
    for (counts, is_accepted) in [
        ("domain/a: questions 2", true),
        ("domain/b: questions 3", true),
        ("domain/a: questions 2\ndomain/b: questions 2", false),
        ("domain/a: phrases 1", false),
        ("application/a: questions 1", false),
        ("docs/b/c.md: phrases 1\nREADME.md: phrases 1", true),
        ("docs/b.md: phrases 3", false),
        ("toolstead mcp: phrases 1", true),
        ("toolstead call: phrases 2", false),
    ] {
        let result = Limits::parse(limits).unwrap().lowered_to(&Limits::parse(counts).unwrap());
        assert_eq!(result.is_ok(), is_accepted, "{counts}: {result:?}");
    }
}
