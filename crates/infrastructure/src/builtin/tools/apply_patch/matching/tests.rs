//! Tests of the places of hunks.

use super::*;
use crate::builtin::tools::apply_patch::{
    parser::{PatchAction, parse},
    text_lines::lines_of,
};
use std::time::{Duration, Instant};

/// Returns the places of the hunks of an update in a text: the line numbers from 1, and the differences that were
/// ignored.
fn places(text: &str, hunks: &str) -> Result<Vec<(usize, LineTolerance)>, HunkProblem> {
    let patch = parse(&format!("*** Begin Patch\n*** Update File: a\n{hunks}\n*** End Patch")).unwrap();
    let PatchAction::Update { hunks, .. } = &patch[0].action else { panic!("{patch:?}") };
    let lines = lines_of(text);
    let stop = StopCondition::at(Instant::now() + Duration::from_secs(600));
    let lookup = HunkFinder::of(&lines, &stop);
    let (mut from, mut places) = (0, Vec::new());
    for hunk in hunks {
        let place = lookup.place(hunk, from)?;
        from = place.first + hunk.old_lines().count();
        places.push((place.first + 1, place.tolerance));
    }
    Ok(places)
}

#[track_caller]
fn check(text: &str, hunks: &str, expected: &[usize]) {
    let found: Vec<usize> = places(text, hunks).unwrap().into_iter().map(|(line, _)| line).collect();
    assert_eq!(found, expected, "{text:?}, {hunks:?}");
}

#[track_caller]
fn misfit(text: &str, hunks: &str, expected: HunkProblem) {
    assert_eq!(places(text, hunks), Err(expected), "{text:?}, {hunks:?}");
}

#[test]
fn a_hunk_is_placed_at_its_only_match() {
    check("a\nb\nc\n", "@@\n-b", &[2]);
    check("a\nb\na\nc\n", "@@\n a\n-c", &[3]);
    check("a\nb\nc", "@@\n-a\n@@\n-c", &[1, 3]);
    check("a\r\nb\r\n", "@@\n-b", &[2]);
    check("a\rb\r", "@@\n-b", &[2]);
    misfit("a\nb\n", "@@\n-c", HunkProblem::NoMatch);
    misfit("", "@@\n-c", HunkProblem::NoMatch);
}

#[test]
fn order_anchors_line_numbers_and_end_of_file_disambiguate_equal_matches() {
    let text = "class A:\n  def f:\n    x\nclass B:\n  def f:\n    x\n";
    misfit(text, "@@\n-    x", HunkProblem::Ambiguous(vec![2, 5]));
    check(text, "@@ class A:\n-    x", &[3]);
    check(text, "@@ class B\n-    x", &[6]);
    check(text, "@@ class B\n@@ def f\n-    x", &[6]);
    misfit(text, "@@ def f:\n-    x", HunkProblem::Ambiguous(vec![2, 5]));
    check(text, "@@ class A:\n class A:\n   def f:\n-    x", &[1]);
    check(text, "@@ class A\n-  def f:\n@@\n-class B:\n@@\n-    x", &[2, 4, 6]);
    check(text, "@@\n-class B:\n@@\n-    x", &[4, 6]);
    check(text, "@@ -6 +6 @@\n-    x", &[6]);
    check(text, "@@\n-    x\n*** End of File", &[6]);
    misfit(text, "@@ class C\n-    x", HunkProblem::NoAnchor("class C".into()));
    misfit(text, "@@ class B\n-class A:", HunkProblem::NotAfterAnchors(0));
    misfit(text, "@@\n-class B:\n@@\n-class A:", HunkProblem::OutOfOrder(0));
}

#[test]
fn hunk_matching_tolerates_only_differences_that_keep_every_token() {
    let loosely = |text: &str, hunks: &str, expected| {
        assert_eq!(places(text, hunks).map(|places| places[0].1), Ok(expected), "{text:?}, {hunks:?}");
    };
    loosely("a b\n", "@@\n-a b", LineTolerance::Exact);
    loosely("a b \t\n", "@@\n-a b", LineTolerance::TrailingSpace);
    loosely("a b\n", "@@\n-a b  ", LineTolerance::TrailingSpace);
    loosely("\u{201c}a\u{201d} \n", "@@\n-\"a\"", LineTolerance::Typography);
    loosely("  if x:\n    y\n", "@@\n if x:\n-  y", LineTolerance::Indent);
    loosely("if x:\n\n  y\n", "@@\n   if x:\n \n-    y", LineTolerance::Indent);
    loosely("\tif x:\n\t  y\n", "@@\n     if x:\n-      y", LineTolerance::Indent);
    for (text, hunks) in [
        ("a b\n", "@@\n-a  b"),
        ("a\n", "@@\n-A"),
        ("  a\n   b\n", "@@\n a\n-b"),
        ("a\nb\n", "@@\n-a b"),
        ("a \u{2212} b\n", "@@\n-a - b"),
        // The added line cannot be moved as far to the left.
        ("if x:\n  y\n", "@@\n     if x:\n-      y\n+z"),
    ] {
        misfit(text, hunks, HunkProblem::NoMatch);
    }
}

#[test]
fn lines_without_context_are_added_behind_an_anchor_or_at_the_end() {
    check("a\nb\n", "@@\n+x", &[3]);
    check("a\nb\n", "@@ a\n+x", &[2]);
    check("", "@@\n+x", &[1]);
    check("a\nb\n", "@@ -2,0 +2 @@\n+x", &[2]);
    misfit("a\na\n", "@@ a\n+x", HunkProblem::Ambiguous(vec![0, 1]));
}

#[test]
fn a_hunk_search_is_bounded_and_stops_at_the_deadline() {
    // At each of a hundred thousand places, 50,000 lines would be compared.
    let hunk = format!("@@\n{}", "-  x\n".repeat(50_000));
    let found = places(&" x\n".repeat(100_000), hunk.trim_end());
    assert!(matches!(&found, Err(HunkProblem::Ambiguous(several)) if several.len() == 50_001), "{:?}", found.is_ok());

    let lines = lines_of("a\n");
    let stop = StopCondition::at(Instant::now());
    let hunk = Hunk {
        lines: vec![crate::builtin::tools::apply_patch::parser::HunkLine::Removed("a".into())],
        ..Hunk::default()
    };
    assert_eq!(HunkFinder::of(&lines, &stop).place(&hunk, 0), Err(HunkProblem::OutOfTime));
}

#[test]
fn every_occurrence_of_a_sequence_is_found() {
    let check = |numbers: &[u32], wanted: &[u32]| {
        let plainly: Vec<usize> = (0..numbers.len()).filter(|at| numbers[*at..].starts_with(wanted)).collect();
        assert_eq!(occurrences(numbers, wanted), plainly, "{numbers:?}, {wanted:?}");
    };
    check(&[1, 1, 1], &[1]);
    check(&[1, 2, 1, 2, 1], &[1, 2, 1]);
    check(&[1, 1, 2, 1, 1, 1, 2], &[1, 1, 2]);
    check(&[], &[1]);
    check(&[1], &[1, 2]);
}
