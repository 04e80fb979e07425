//! The language gate: limits on wording that the style rules forbid, as a ratchet. The limits are stored for each
//! module, page and command in `language/limits.txt`; `make limits` lowers them.

/// The texts of `--help`.
mod help;
/// The stored limits and their comparison with the counts.
mod limits;
/// Names of types, modules and functions that may not be used.
mod names;
/// The word list, and the search for its phrases.
mod phrases;
/// Doc comments and item names of a source file, without tests.
mod source;

use limits::{Kind, Limits};
use phrases::{Phrases, words};
use source::{Item, SourceFile};
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// First words of doc comments that ask instead of describing.
const QUESTION_WORDS: [&str; 10] =
    ["What", "Whether", "How", "Where", "When", "Why", "Who", "Whose", "Which", "Tells whether"];
/// Maximum number of findings in one list of a report.
const LISTED: usize = 10;
/// Shares of doc comments to reach, in percent.
const GOALS: [(Kind, f64); 2] = [(Kind::Questions, 5.0), (Kind::Phrases, 2.0)];

/// One use of forbidden wording.
#[derive(Debug)]
struct Finding {
    /// The module, page or command whose limit it counts against.
    place: String,
    kind: Kind,
    /// File and line, or the command and its argument.
    location: String,
    /// The text, preceded by the phrases found in it.
    excerpt: String,
    /// Number of rules that the text breaks, to list the worst first.
    weight: usize,
}

/// All findings of the repository, and the number of doc comments read.
#[derive(Debug, Default)]
struct Survey {
    findings: Vec<Finding>,
    comments: usize,
}

impl Survey {
    fn of_repository() -> Self {
        let (root, phrases) = (root(), Phrases::new());
        let mut survey = Self::default();
        for name in ["application", "domain", "infrastructure", "presentation"] {
            let folder = root.join("crates").join(name).join("src");
            for (path, file) in source::files(&folder) {
                let module = path.strip_prefix(&folder).unwrap().iter().next().unwrap().to_str().unwrap();
                let place = format!("{name}/{}", module.trim_end_matches(".rs"));
                survey.read_code(&place, &shown(&path, &root), &file, &phrases);
            }
        }
        for path in pages(&root) {
            let place = shown(&path, &root);
            survey.read_page(&place, &fs::read_to_string(&path).unwrap(), &phrases);
        }
        for text in help::texts() {
            survey.read_text(&text.place, text.location, &text.text, &phrases);
        }
        survey
    }

    fn read_code(&mut self, place: &str, path: &str, file: &SourceFile, phrases: &Phrases) {
        self.comments += file.comments.len();
        for comment in &file.comments {
            let found = phrases.find(&words(&comment.text));
            let asks = is_question(&comment.text);
            let weight = found.len() + usize::from(asks);
            let mut add = |kind, excerpt| {
                let location = format!("{path}:{}", comment.line);
                self.findings.push(Finding { place: place.to_owned(), kind, location, excerpt, weight });
            };
            if asks {
                add(Kind::Questions, comment.text.clone());
            }
            if !found.is_empty() {
                add(Kind::Phrases, format!("[{}] {}", found.join(", "), comment.text));
            }
        }
        for Item { kind, name, line } in &file.items {
            if names::is_forbidden(*kind, name, phrases) {
                self.findings.push(Finding {
                    place: place.to_owned(),
                    kind: *kind,
                    location: format!("{path}:{line}"),
                    excerpt: name.clone(),
                    weight: 1,
                });
            }
        }
    }

    /// Reads the lines of a page outside of code blocks.
    fn read_page(&mut self, place: &str, text: &str, phrases: &Phrases) {
        let mut in_code = false;
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            } else if !in_code {
                self.read_text(place, format!("{place}:{}", number + 1), line, phrases);
            }
        }
    }

    /// Adds one finding for each phrase in a text.
    fn read_text(&mut self, place: &str, location: String, text: &str, phrases: &Phrases) {
        let found = phrases.find(&words(text));
        for phrase in &found {
            self.findings.push(Finding {
                place: place.to_owned(),
                kind: Kind::Phrases,
                location: location.clone(),
                excerpt: format!("[{phrase}] {text}"),
                weight: found.len(),
            });
        }
    }

    fn counts(&self) -> Limits {
        let mut counts = Limits::default();
        for finding in &self.findings {
            *counts.entry(&finding.place, finding.kind) += 1;
        }
        counts
    }

    /// Lists the worst of the findings that match, one a line.
    fn worst(&self, matches: impl Fn(&Finding) -> bool) -> String {
        let mut found: Vec<&Finding> = self.findings.iter().filter(|finding| matches(finding)).collect();
        found.sort_by_key(|finding| std::cmp::Reverse(finding.weight));
        let mut locations = BTreeSet::new();
        found.retain(|finding| locations.insert(&finding.location));
        let mut lines = String::new();
        for finding in found.into_iter().take(LISTED) {
            let excerpt: String = finding.excerpt.chars().take(160).collect();
            writeln!(lines, "    {}: {excerpt}", finding.location).unwrap();
        }
        lines
    }

    /// Reports the shares of doc comments beside their goals, and the other counts.
    fn summary(&self) -> String {
        let in_code = |kind| {
            let found = self.findings.iter().filter(|finding| finding.kind == kind);
            found.filter(|finding| limits::area(&finding.place).starts_with("crate ")).count()
        };
        let mut lines = format!("{} doc comments\n", self.comments);
        for (kind, goal) in GOALS {
            let count = in_code(kind);
            let share = count as f64 * 100.0 / self.comments as f64;
            writeln!(lines, "{kind:<10} {count:>5}, {share:.1} % of the doc comments; goal: at most {goal} %").unwrap();
        }
        for kind in [Kind::Types, Kind::Modules, Kind::Functions] {
            writeln!(lines, "{kind:<10} {:>5} forbidden names; goal: 0", in_code(kind)).unwrap();
        }
        for area in ["pages", "help"] {
            let found = self.findings.iter().filter(|finding| limits::area(&finding.place) == area);
            writeln!(lines, "{area:<10} {:>5} phrases", found.count()).unwrap();
        }
        lines
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()
}

/// `README.md` and every page below `docs/`.
fn pages(root: &Path) -> Vec<PathBuf> {
    let (mut pages, mut open) = (vec![root.join("README.md")], vec![root.join("docs")]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => open.push(path),
                Some(extension) if extension == "md" => pages.push(path),
                _ => {}
            }
        }
    }
    pages.sort();
    pages
}

fn is_question(comment: &str) -> bool {
    QUESTION_WORDS.iter().any(|word| {
        comment.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
    })
}

#[test]
fn forbidden_wording_never_increases() {
    let survey = Survey::of_repository();
    let is_in_code = |finding: &Finding| limits::area(&finding.place).starts_with("crate ");
    println!("{}the worst doc comments:\n{}", survey.summary(), survey.worst(is_in_code));
    let counts = survey.counts();
    let path = root().join("tests/it/language/limits.txt");
    if std::env::var_os("TOOLSTEAD_WRITE_LIMITS").is_some() {
        let stored = Limits::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        let lowered = stored.lowered_to(&counts).unwrap_or_else(|error| panic!("{error}"));
        fs::write(&path, lowered.to_string()).unwrap();
    }
    let limits = Limits::parse(&fs::read_to_string(&path).unwrap()).unwrap();
    let mut report = String::new();
    let (mut above, mut below) = (false, false);
    for limits::Deviation { place, kind, limit, count } in limits.deviations(&counts) {
        writeln!(report, "{place} has {count} {kind}; the limit is {limit}").unwrap();
        if count > limit {
            above = true;
            report += &survey.worst(|finding| finding.place == place && finding.kind == kind);
        } else {
            below = true;
        }
    }
    if above {
        report += "Reword what was added; docs/internals/testing.md describes the rules. If code moved within a crate, run `make limits`.\n";
    }
    if below {
        report += "Counts have fallen: run `make limits` and commit the lower limits.\n";
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn a_doc_comment_that_begins_with_a_question_word_counts_as_a_question() {
    for (comment, asks) in [
        ("Whether the file exists.", true),
        ("Tells whether the file exists.", true),
        ("Who may call.", true),
        ("Whole files.", false),
        ("Returns what is stored.", false),
        ("Tells the caller.", false),
    ] {
        assert_eq!(is_question(comment), asks, "{comment}");
    }
}

#[test]
fn code_blocks_of_a_page_are_not_counted() {
    let mut survey = Survey::default();
    survey.read_page("docs/page.md", "It is told.\n```sh\ntold\n```\nNobody is told.\n", &Phrases::new());
    let found: Vec<_> = survey.findings.iter().map(|finding| finding.location.as_str()).collect();
    assert_eq!(found, ["docs/page.md:1", "docs/page.md:5", "docs/page.md:5"]);
}
