//! The page on the configuration is true.

use super::{Machine, USER};
use std::{fs, path::Path};
use toolstead_presentation::config::tree::schema::reference;

fn documentation() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

#[test]
fn the_documentation_names_every_key() {
    let (path, text) = documentation();
    let (begin, end) = ("<!-- keys -->\n", "<!-- end of keys -->\n");
    let (before, rest) = text.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let current = format!("{before}{begin}{}\n{end}{after}", reference());
    if std::env::var_os("TOOLSTEAD_WRITE_DOCS").is_some() {
        fs::write(path, &current).unwrap();
    }
    assert_eq!(documentation().1, current, "run this test with TOOLSTEAD_WRITE_DOCS=1");
}

#[test]
fn the_example_of_the_documentation_loads() {
    let (_, text) = documentation();
    let (_, rest) = text.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let machine = Machine::with(&[(USER, example)]).variables(&[("REMOTE_TOKEN", "x")]);
    let config = machine.config();
    assert_eq!((config.notes.len(), config.mcp_servers.len(), config.permissions.rules.len()), (0, 2, 13));
}
