//! The public API of the four crates is compared with its stored listing in `docs/public-api/` (`make public-api`).

mod listing;

use listing::listing;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const CRATES: [&str; 4] = ["domain", "application", "infrastructure", "presentation"];
/// Maximum number of lines that a failure prints of one crate.
const SHOWN: usize = 20;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the section "Upgrading" of the changelog.
fn upgrading() -> String {
    let changelog = fs::read_to_string(repository().join("CHANGELOG.md")).unwrap();
    let section = changelog.split_once("\n### Upgrading\n").expect("CHANGELOG.md has a section \"Upgrading\"").1;
    section.split("\n#").next().unwrap().to_owned()
}

/// Returns the name that a line of a listing is about: the last word before its parameters, type or members.
fn name(mut line: &str) -> &str {
    while let Some((_, rest)) = line.strip_prefix("#[").and_then(|line| line.split_once("] ")) {
        line = rest;
    }
    let of_member =
        [": pub ", ": fn ", ": async fn ", ": const ", ": type "].iter().find_map(|mark| line.split_once(*mark));
    let line = of_member.map_or(line, |(_, member)| member);
    let end = line.find(['(', '{', '=', '<', ';']).unwrap_or(line.len());
    let head = line[..end].split(": ").next().unwrap_or_default();
    head.rsplit([' ', ':']).find(|word| !word.is_empty()).unwrap_or(head)
}

/// Lines of the stored listing that are not in the present one, and the other way round.
struct Difference {
    removed: Vec<String>,
    added: Vec<String>,
}

impl Difference {
    fn between(stored: &str, present: &str) -> Self {
        let (stored, present): (BTreeSet<&str>, BTreeSet<&str>) = (stored.lines().collect(), present.lines().collect());
        let lines = |lines: Vec<&&str>| lines.into_iter().map(ToString::to_string).collect();
        Self {
            removed: lines(stored.difference(&present).collect()),
            added: lines(present.difference(&stored).collect()),
        }
    }

    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    fn shown(&self) -> String {
        let lines = |sign, lines: &[String]| -> String {
            lines.iter().take(SHOWN).map(|line| format!("{sign} {line}\n")).collect()
        };
        format!(
            "{} lines removed, {} added\n{}{}",
            self.removed.len(),
            self.added.len(),
            lines('-', &self.removed),
            lines('+', &self.added)
        )
    }
}

#[test]
fn the_public_api_matches_the_stored_listing_and_removals_are_in_the_upgrading_section() {
    let (folder, upgrading) = (repository().join("docs/public-api"), upgrading());
    let words: BTreeSet<&str> = upgrading.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let writes = std::env::var_os("TOOLSTEAD_WRITE_API").is_some();
    let mut faults = Vec::new();
    for name_of_crate in CRATES {
        let present = listing(&repository().join("crates").join(name_of_crate).join("src"));
        let file = folder.join(name_of_crate).with_extension("txt");
        let stored = fs::read_to_string(&file).unwrap_or_default();
        let difference = Difference::between(&stored, &present);
        if difference.is_empty() {
            continue;
        }
        if !writes {
            faults.push(format!(
                "the public API of `{name_of_crate}` changed: run `make public-api`\n{}",
                difference.shown()
            ));
            continue;
        }
        let mut unexplained: Vec<&str> = difference.removed.iter().map(|line| name(line)).collect();
        unexplained.retain(|name| !words.contains(name));
        unexplained.sort_unstable();
        unexplained.dedup();
        match unexplained.is_empty() {
            true => {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&file, present).unwrap();
            }
            false => faults.push(format!(
                "`{name_of_crate}` is not written: add a line to the section \"Upgrading\" of CHANGELOG.md for `{}`",
                unexplained.join("`, `")
            )),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_listing_has_what_users_of_a_crate_can_name_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "lib.rs",
        "pub mod shapes;\nmod private;\npub use private::Hidden as Shown;\npub fn area(side: f64) -> f64 { side }",
    );
    write("private.rs", "#[derive(Debug, Clone)]\npub struct Hidden { pub a: u8, b: u8 }\npub(crate) struct Inner;");
    write(
        "shapes.rs",
        "#[cfg(feature = \"round\")]\npub mod round;\n\
         #[non_exhaustive]\npub enum Shape { Square(f64), Named { name: String } }\n\
         impl Shape { pub const SIDES: u8 = 4; pub fn grow(&mut self, by: &'_ f64) {} fn shrink(&mut self) {} }\n\
         impl std::fmt::Display for Shape { fn fmt(&self) {} }\n\
         pub trait Area: Send { type Unit; const N: u8 = 1; fn area(&self) -> f64; fn twice(&self) -> f64 { 2.0 } }\n\
         #[cfg(test)]\npub mod tests;\npub type Sides = Vec<f64>;\npub static S: u8 = 1;",
    );
    write("shapes/round.rs", "pub fn circle<T: Into<f64>>(radius: T) -> f64 where T: Copy { 0.0 }");
    let expected = [
        "#[cfg(feature = \"round\")] pub mod shapes::round",
        "#[derive(Debug, Clone)] pub struct private::Hidden { pub a: u8, .. }",
        "#[non_exhaustive] pub enum shapes::Shape { Named { name: String } }",
        "#[non_exhaustive] pub enum shapes::Shape { Square(f64) }",
        "impl Shape: pub const SIDES: u8",
        "impl Shape: pub fn grow(&mut self, by: &'_ f64)",
        "impl std::fmt::Display for Shape",
        "pub fn area(side: f64) -> f64",
        "pub fn shapes::round::circle<T: Into<f64>>(radius: T) -> f64 where T: Copy",
        "pub mod shapes",
        "pub static shapes::S: u8",
        "pub trait shapes::Area: Send",
        "pub trait shapes::Area: const N: u8 = ..",
        "pub trait shapes::Area: fn area(&self) -> f64",
        "pub trait shapes::Area: fn twice(&self) -> f64 { .. }",
        "pub trait shapes::Area: type Unit",
        "pub type shapes::Sides = Vec<f64>",
        "pub use private::Hidden as Shown",
    ];
    assert_eq!(listing(folder.path()).lines().collect::<Vec<_>>(), expected);
    let names = ["Hidden", "SIDES", "circle", "Shape", "Area", "Shown"];
    for (line, expected) in
        [expected[1], expected[4], expected[8], expected[2], expected[11], expected[17]].iter().zip(names)
    {
        assert_eq!(name(line), expected, "{line}");
    }
}
