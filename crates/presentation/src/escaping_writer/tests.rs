use super::*;
use std::{
    fs,
    path::{Path, PathBuf},
};

#[test]
fn terminal_control_and_bidirectional_characters_are_escaped() {
    let steering = (0..0x20).chain(0x7f..=0x9f).filter_map(char::from_u32).filter(|c| !matches!(c, '\n' | '\t'));
    let reordering = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
    for c in steering.chain(reordering.chars()).chain(['\u{2028}', '\u{2029}']) {
        let mut written = Vec::new();
        write!(EscapingWriter(&mut written), "a{c}b").unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), format!("a{}b", c.escape_unicode()));
    }
}

#[test]
fn line_feeds_and_tabs_are_escaped_only_in_single_line_output() {
    assert_eq!(escaped("a\tb\n\u{1b}[31m"), "a\tb\n\\u{1b}[31m");
    assert_eq!(on_one_line("a\tb\n\u{1b}[31m"), "a\\tb\\n\\u{1b}[31m");
}

#[test]
fn escaped_json_has_the_same_meaning() {
    let value = serde_json::json!({"a": "\u{9b}\u{202e}ä"});
    let escaped = escaped_json(&value.to_string());
    assert_eq!(escaped, r#"{"a":"\u009b\u202eä"}"#);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
}

/// Files that may use the streams of the process, each with its reason.
const WRITERS: [(&str, &str); 5] = [
    ("presentation/src/cli/output.rs", "writes through the escaping writer"),
    ("presentation/src/telemetry.rs", "writes through the escaping writer"),
    ("presentation/src/event_file.rs", "writes escaped JSON"),
    ("presentation/src/mcp_server/stdio/process_streams.rs", "the protocol, which no terminal shows"),
    ("presentation/src/bin/toolstead-server.rs", "a program of its own, which links nothing and prints one fixed line"),
];

#[test]
fn only_writers_that_escape_use_the_streams_of_the_process() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // These crates never run in front of a terminal, save for helpers, whose streams are pipes.
    let macros = ["println!(", "eprintln!(", "print!(", "eprint!(", "dbg!("];
    let streams = ["io::stdout()", "io::stderr()", "io::{stdout", "io::{stderr", "stdio::stdout()", "stdio::stderr()"];
    let mut found = Vec::new();
    for (file, text) in sources(crates) {
        let name = file.strip_prefix(crates).unwrap().to_string_lossy().into_owned();
        if WRITERS.iter().any(|(writer, _)| *writer == name) {
            continue;
        }
        let forbidden = macros.iter().chain(streams.iter().filter(|_| name.starts_with("presentation/")));
        let forbidden: Vec<&str> = forbidden.copied().collect();
        for (number, line) in (1..).zip(text.lines()) {
            // Questions about a stream, such as whether it is a terminal, write nothing.
            let line = line.replace("io::stdout().is_terminal()", "").replace("io::stderr().is_terminal()", "");
            if !line.trim_start().starts_with("//") && forbidden.iter().any(|word| line.contains(word)) {
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "write through `cli::output` instead:\n{}", found.join("\n"));
}

/// Returns the files of all crates that are compiled into programs, without tests.
pub(crate) fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests" || stem == "examples" || stem == "benches");
        if is_test {
            continue;
        }
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            files.push((path, text));
        }
    }
    files
}
