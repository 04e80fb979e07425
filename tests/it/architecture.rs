//! The layers and the licences, as tests: a rule that nobody checks does not hold.

use serde_json::Value;
use std::{collections::BTreeMap, process::Command};

/// Which of our crates each of our crates may use.
const LAYERS: &[(&str, &[&str])] = &[
    ("toolstead-application", &["toolstead-domain"]),
    ("toolstead-domain", &[]),
    ("toolstead-infrastructure", &["toolstead-domain"]),
    ("toolstead-presentation", &["toolstead-application", "toolstead-domain", "toolstead-infrastructure"]),
];

/// What the inner crates may use of others' work. The outer two may use any library.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("toolstead-domain", &["async-trait", "globset", "jsonschema", "serde_json", "thiserror", "uuid"]),
    (
        "toolstead-application",
        &[
            "arc-swap",
            "async-trait",
            "base64",
            "futures",
            "regex",
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

/// The normal dependencies of each of our crates, by name.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap().iter();
    let normal = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|one| one["kind"].is_null()).map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    packages.map(|package| (package["name"].as_str().unwrap().to_owned(), normal(package))).collect()
}

#[test]
fn there_are_four_crates_and_each_knows_only_those_below_it() {
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
fn a_licence_expression_needs_one_allowed_part_of_each() {
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
