//! Tests of the layers and the licences.

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use toolstead_infrastructure::{
    builtin,
    dialects::{CLAI, CLAUDE_CODE, KODELET, MICRO_X, TFO},
    shell_analysis::catalogue::LOOKED_THROUGH,
};

/// Workspace crates that each workspace crate may use.
const LAYERS: &[(&str, &[&str])] = &[
    ("toolstead-application", &["toolstead-domain"]),
    ("toolstead-domain", &[]),
    ("toolstead-infrastructure", &["toolstead-domain"]),
    ("toolstead-presentation", &["toolstead-application", "toolstead-domain", "toolstead-infrastructure"]),
];

/// Libraries that the inner crates may use. The outer two may use any library.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("toolstead-domain", &["async-trait", "globset", "jsonschema", "serde", "serde_json", "thiserror", "uuid"]),
    (
        "toolstead-application",
        &[
            "arc-swap",
            "async-trait",
            "base64",
            "futures",
            "regex",
            "rust-stemmers",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
            "tokio-util",
            "tracing",
            "uuid",
        ],
    ),
];

const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "0BSD",
    "BSL-1.0",
    "MIT-0",
];

/// They need a foreign build system, bring a second TLS, or fetch things.
const BANNED: &[&str] = &["openssl-sys", "native-tls", "aws-lc-sys", "cmake", "bindgen", "git2", "serde_yaml"];

fn metadata(arguments: &[&str]) -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--offline"]).args(arguments);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the normal dependencies of each of our crates, by name. The programs in `examples/` are not among them.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let metadata = metadata(&["--no-deps"]);
    let examples = Path::new(metadata["workspace_root"].as_str().unwrap()).join("examples");
    let is_ours = |package: &&Value| !Path::new(package["manifest_path"].as_str().unwrap()).starts_with(&examples);
    let packages = metadata["packages"].as_array().unwrap().iter().filter(is_ours);
    let normal = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|one| one["kind"].is_null()).map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    packages.map(|package| (package["name"].as_str().unwrap().to_owned(), normal(package))).collect()
}

#[test]
fn the_four_crates_depend_only_on_the_crates_below_them() {
    let dependencies = dependencies();
    let ours = |name: &String| name.starts_with("toolstead-");
    let drawn: Vec<(&str, Vec<&str>)> = dependencies
        .iter()
        .map(|(name, uses)| (name.as_str(), uses.iter().filter(|name| ours(name)).map(String::as_str).collect()))
        .collect();
    let allowed: Vec<(&str, Vec<&str>)> = LAYERS.iter().map(|(name, uses)| (*name, uses.to_vec())).collect();
    assert_eq!(drawn, allowed);
}

#[test]
fn the_inner_crates_use_only_the_libraries_they_are_allowed() {
    let dependencies = dependencies();
    for (name, allowed) in LIBRARIES {
        let foreign: Vec<_> = dependencies[*name]
            .iter()
            .filter(|library| !library.starts_with("toolstead-") && !allowed.contains(&library.as_str()))
            .collect();
        assert!(foreign.is_empty(), "{name} may not use {foreign:?}");
    }
}

/// Every AND part needs one allowed OR part: enough for SPDX as crates write it.
fn is_allowed(spdx: &str) -> bool {
    let trim = |text: &str| text.trim_matches(['(', ')', ' ']).to_owned();
    let spdx = spdx.replace('/', " OR ");
    spdx.split(" AND ").all(|part| trim(part).split(" OR ").any(|licence| LICENCES.contains(&trim(licence).as_str())))
}

#[test]
fn every_dependency_has_a_licence_we_may_link_and_comes_from_the_registry() {
    let metadata = metadata(&["--all-features", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let mut faults = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let Some(source) = package["source"].as_str() else { continue };
        let (name, licence) = (package["name"].as_str().unwrap(), package["license"].as_str().unwrap_or("none"));
        if !is_allowed(licence) {
            faults.push(format!("{name}: {licence}"));
        }
        if BANNED.contains(&name) {
            faults.push(format!("{name} is banned"));
        }
        if !source.starts_with("registry+") {
            faults.push(format!("{name} does not come from the registry"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn each_and_term_of_a_licence_expression_needs_an_allowed_alternative() {
    for (spdx, allowed) in [
        ("MIT OR Apache-2.0", true),
        ("MIT/Apache-2.0", true),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0-only", false),
        ("LGPL-2.1-or-later", false),
        ("none", false),
    ] {
        assert_eq!(is_allowed(spdx), allowed, "{spdx}");
    }
}

/// The heads of rules are names of tools elsewhere.
const RULE_HEADS: [&str; 5] = ["Read", "Write", "Edit", "Bash", "WebFetch"];
/// An alias that is first of all a word of JSON and of MCP.
const COMMON_WORD: &str = "type";
/// Names with another meaning in these files: kinds of events, a password in an address, and words of attacks.
const OTHER_MEANINGS: &[(&str, &str)] = &[
    ("event.rs", "task_output"),
    ("event.rs", "thinking"),
    ("redaction.rs", "pwd"),
    ("phrases.rs", "bash"),
    ("phrases.rs", "cat"),
    ("phrases.rs", "find"),
];
/// Names of MCP clients, which their requests contain.
const CLIENT_NAMES: &[(&str, &str)] = &[("client_profile.rs", "claude-code")];
/// Programs that the inner crates have known before, beside those that are looked through.
const PROGRAMS: [&str; 6] = ["mkdir", "touch", "rm", "rmdir", "mv", "cp"];
/// Names of programs that also have other meanings.
const NO_PROGRAMS: [&str; 2] = ["timeout", "time"];

#[test]
fn the_inner_crates_name_no_tool_alias_program_or_other_tool_system() {
    let spellings: BTreeSet<&str> = builtin::names_and_aliases().into_iter().collect();
    let programs = || PROGRAMS.iter().chain(LOOKED_THROUGH).filter(|name| !NO_PROGRAMS.contains(name));
    let systems = [CLAI, CLAUDE_CODE, KODELET, MICRO_X, TFO].map(|dialect| folded(dialect.0));
    let mut faults = Vec::new();
    for (file, code) in production_files(&["crates/domain/src", "crates/application/src"]) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let is_meant =
            |word: &str| word == COMMON_WORD || RULE_HEADS.contains(&word) || OTHER_MEANINGS.contains(&(name, word));
        let parts = parts(&code);
        for text in &parts.texts {
            let named = words(text).find(|word| spellings.contains(word) && !is_meant(word));
            faults.extend(named.map(|word| format!("{}: `{word}` in {text:?}", file.display())));
            // Within a sentence they are words.
            let program = programs().find(|program| text == *program);
            faults.extend(program.map(|program| format!("{}: the program `{program}`", file.display())));
        }
        let all = parts.texts.iter().chain([&parts.rest]);
        let is_system = |word: &&str| systems.contains(&folded(word)) && !CLIENT_NAMES.contains(&(name, *word));
        let system = all.flat_map(|text| words(text)).find(is_system);
        faults.extend(system.map(|word| format!("{}: `{word}`", file.display())));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Functions that reach other machines, and the files that may use them: one connector dials, and each connector has a
/// policy.
const WAYS_OUT: &[(&str, &[&str])] = &[
    // The self-test of the sandbox shows that what is confined cannot.
    ("TcpStream::connect", &["egress/connector.rs", "self_test/tries.rs"]),
    ("TcpSocket", &[]),
    ("to_socket_addrs", &["egress/connector.rs"]),
    ("lookup_host", &[]),
    // The client itself, and the proxy for plain HTTP of sandboxed commands, both over a connector.
    ("client::conn::", &["http/connection.rs", "proxy/http.rs"]),
    ("Connector::new(", &["browser/browsers.rs", "commands/programs.rs", "web/web_client.rs"]),
    // What an application reaches, and what a program does that takes the client of MCP servers alone.
    ("Connector::to_configured_hosts(", &["composition_root/upstream.rs", "mcp/mcp_client.rs", "web/web_client.rs"]),
    ("HttpClient::new", &["composition_root/upstream.rs", "mcp/mcp_client.rs", "web/web_client.rs"]),
];

#[test]
fn all_outgoing_network_traffic_uses_one_connector() {
    let crates = ["domain", "application", "infrastructure", "presentation"].map(|name| format!("crates/{name}/src"));
    let files = production_files(&crates.each_ref().map(String::as_str));
    let code: Vec<(String, String)> =
        files.into_iter().map(|(path, code)| (path.display().to_string(), parts(&code).rest)).collect();
    for (way, allowed) in WAYS_OUT {
        let using: Vec<&String> = code.iter().filter(|(_, code)| code.contains(way)).map(|(path, _)| path).collect();
        let is_allowed = |path: &&&String| allowed.iter().any(|end| path.ends_with(end));
        assert_eq!(using.iter().filter(is_allowed).count(), allowed.len(), "{way}: {using:?}");
        assert_eq!(using.len(), allowed.len(), "{way}: {using:?}");
    }
    let clients = ["reqwest", "ureq", "isahc", "curl", "attohttpc", "rmcp"];
    for (name, uses) in dependencies() {
        let others: Vec<&String> = uses.iter().filter(|library| clients.contains(&library.as_str())).collect();
        // Its sign-in, which sends its requests by our client, and servers that an application adds.
        let allowed: &[&str] = if name == "toolstead-infrastructure" { &["rmcp"] } else { &[] };
        assert!(others.iter().all(|own| allowed.contains(&own.as_str())), "{name} brings another client: {others:?}");
    }
    let users = |word: &str| {
        let using = code.iter().filter(|(_, code)| code.contains(word)).map(|(path, _)| path.as_str());
        using.collect::<Vec<_>>()
    };
    assert_eq!(users("reqwest"), [""; 0], "only rmcp names its client");
    let of_rmcp = users("rmcp::");
    let is_allowed = |path: &&str| path.contains("/upstream_auth/") || path.contains("/rmcp");
    assert!(of_rmcp.iter().all(is_allowed), "rmcp is for the features `upstream-auth` and `rmcp`: {of_rmcp:?}");
    let manifest =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../infrastructure/Cargo.toml")).unwrap();
    let bringing = manifest.lines().filter(|line| line.contains("\"dep:rmcp\""));
    for feature in bringing.filter_map(|line| line.split_once(" =")).map(|(feature, _)| feature) {
        assert!(["upstream-auth", "rmcp"].contains(&feature), "the feature `{feature}` brings rmcp");
    }
}

/// Features that are not on by default: servers written with the official SDK, in the process of an application.
const OPTIONAL_FEATURES: [&str; 1] = ["rmcp"];

/// Returns the features of our crates that are on by default, as `CRATE/FEATURE`, with all that these bring.
fn default_features() -> BTreeSet<String> {
    let metadata = metadata(&["--no-deps"]);
    let packages: BTreeMap<&str, &Value> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["name"].as_str().unwrap(), package))
        .filter(|(name, _)| name.starts_with("toolstead"))
        .collect();
    let mut open: Vec<(&str, String)> = packages.keys().map(|name| (*name, "default".to_owned())).collect();
    for package in packages.values() {
        let normal = package["dependencies"].as_array().unwrap().iter().filter(|one| one["kind"].is_null());
        for dependency in normal {
            let Some((name, _)) = packages.get_key_value(dependency["name"].as_str().unwrap()) else { continue };
            let features = dependency["features"].as_array().unwrap().iter();
            open.extend(features.map(|feature| (*name, feature.as_str().unwrap().to_owned())));
        }
    }
    let mut on = BTreeSet::new();
    while let Some((package, feature)) = open.pop() {
        if !on.insert(format!("{package}/{feature}")) {
            continue;
        }
        for brought in packages[package]["features"][&feature].as_array().into_iter().flatten() {
            let brought = brought.as_str().unwrap();
            match brought.split_once('/') {
                // Features of a library count as those of the crate that uses it.
                Some((name, feature)) => match packages.get_key_value(name.trim_end_matches('?')) {
                    Some((name, _)) => open.push((*name, feature.to_owned())),
                    None => {
                        on.insert(format!("{package}/{brought}"));
                    }
                },
                None => open.push((package, brought.to_owned())),
            }
        }
    }
    on
}

#[test]
fn the_adapter_of_the_official_sdk_is_not_on_by_default() {
    let on = default_features();
    assert!(on.contains("toolstead-infrastructure/upstream-auth"), "{on:?}");
    let is_optional = |feature: &&String| OPTIONAL_FEATURES.iter().any(|name| feature.ends_with(&format!("/{name}")));
    let found: Vec<&String> = on.iter().filter(is_optional).collect();
    assert!(found.is_empty(), "default features must not bring {found:?}");
    // The sign-in uses the client side of the SDK only.
    let servers: Vec<&String> = on.iter().filter(|one| one.contains("rmcp") && one.contains("server")).collect();
    assert!(servers.is_empty(), "default features must not bring {servers:?}");
}

#[test]
fn no_layer_bypasses_the_call_path() {
    let files = production_files(&["crates/application/src", "crates/presentation/src"]);
    let past = files
        .iter()
        .filter(|(_, code)| ["mcp_client::", "McpClient", "TestRun"].iter().any(|door| code.contains(door)));
    let past: Vec<_> = past.map(|(file, _)| file.display().to_string()).collect();
    assert!(past.is_empty(), "these extension points are for applications that use one module alone: {past:?}");
}

#[test]
fn string_literals_are_found_in_code_and_not_in_comments() {
    let code = r##"let a = "b\"c"; // "d"
        let quote = '"'; let e = r#"f"g"#; fn h<'i>() {} let b = b'"'; let j = '\'';"##;
    let parts = parts(code);
    assert_eq!(parts.texts, [r#"b\"c"#, r#"f"g"#]);
    assert!(parts.rest.contains("fn h<'i>() {}") && !parts.rest.contains('d'), "{}", parts.rest);
}

/// Case and the signs between words do not count: `ClaudeCode` is `claude_code`.
fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')).filter(|word| !word.is_empty())
}

/// The code of these folders without tests.
fn production_files(folders: &[&str]) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if matches!(name, "tests" | "testing" | "tests.rs" | "testing.rs") {
            continue;
        }
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if name.ends_with(".rs") {
            let code = fs::read_to_string(&path).unwrap();
            let tests = ["\nmod tests {", "\npub(super) mod tests {"].map(|begin| code.find(begin));
            let production = code[..tests.into_iter().flatten().min().unwrap_or(code.len())].to_owned();
            files.push((path, production));
        }
    }
    assert!(files.len() > 50, "{}", files.len());
    files
}

/// Code, taken apart.
struct Parts {
    /// The texts in quotes, as they are written.
    texts: Vec<String>,
    /// Code that is neither a text nor a comment.
    rest: String,
}

fn parts(code: &str) -> Parts {
    let (mut texts, mut rest, mut left) = (Vec::new(), String::new(), code);
    while let Some(letter) = left.chars().next() {
        let raw = left.strip_prefix('r').filter(|_| !rest.ends_with(|c: char| c.is_alphanumeric() || c == '_'));
        let raw = raw.map(|after| (after, after.len() - after.trim_start_matches('#').len()));
        if left.starts_with("//") {
            left = &left[left.find('\n').unwrap_or(left.len())..];
        } else if let Some((after, signs)) = raw.filter(|(after, signs)| after[*signs..].starts_with('"')) {
            let (text, behind) = after[signs + 1..].split_once(&format!("\"{}", "#".repeat(signs))).unwrap();
            texts.push(text.to_owned());
            left = behind;
        } else if let Some(after) = left.strip_prefix('"') {
            let end = end_of(after, '"');
            texts.push(after[..end].to_owned());
            left = &after[end + 1..];
        } else if let Some(after) = left.strip_prefix('\'').filter(|after| is_letter(after)) {
            left = &after[end_of(after, '\'') + 1..];
        } else {
            rest.push(letter);
            left = &left[letter.len_utf8()..];
        }
    }
    Parts { texts, rest }
}

/// Returns `true` if a character literal begins here, and not a lifetime.
fn is_letter(after: &str) -> bool {
    after.starts_with('\\') || after.chars().nth(1) == Some('\'')
}

/// Returns the position of the closing quote, which is not escaped by `\`.
fn end_of(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, letter)| {
        let ends = *letter == quote && !escaped;
        escaped = *letter == '\\' && !escaped;
        ends
    });
    end.unwrap().0
}
