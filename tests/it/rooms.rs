//! The imports of infrastructure's files: which rooms are blind to which, and that no files import each other in a
//! circle. Only production code counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// A module by its names from the crate's root.
type Module = Vec<String>;

/// What a room, or a file, knows nothing of.
const BLIND: &[(&str, &[&str])] = &[
    ("sandbox", &["builtin", "documents", "hooks", "http", "mcp", "shell_analysis", "sqlite"]),
    ("http", &["builtin", "documents", "hooks", "mcp", "shell_analysis", "sqlite"]),
    ("mcp", &["builtin", "documents", "hooks", "shell_analysis", "sqlite"]),
    ("sqlite", &["builtin", "documents", "hooks", "http", "mcp", "shell_analysis"]),
    ("shell_analysis", &["builtin", "documents", "hooks", "http", "mcp", "sandbox", "sqlite"]),
    ("documents", &["builtin", "hooks", "http", "mcp", "shell_analysis", "sqlite"]),
    ("hooks", &["builtin", "documents", "http", "mcp", "sqlite"]),
    ("builtin", &["hooks", "http", "mcp", "sqlite"]),
    (
        "builtin/text",
        &["builtin/commands", "builtin/files", "builtin/run", "builtin/tools", "builtin/world", "documents"],
    ),
    ("builtin/files", &["builtin/commands", "builtin/tools"]),
    ("builtin/commands", &["builtin/tools"]),
    // What keeps state over calls is below the surroundings that hold it.
    ("builtin/commands/programs", &["builtin/run", "builtin/world"]),
    ("builtin/commands/tasks", &["builtin/run", "builtin/world"]),
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../infrastructure/src")
}

/// Every file with the files that it imports.
fn imports() -> BTreeMap<Module, BTreeSet<Module>> {
    let mut texts = BTreeMap::new();
    read_into(&source(), &mut Vec::new(), &mut texts);
    let known: BTreeSet<&Module> = texts.keys().collect();
    texts.iter().map(|(module, text)| (module.clone(), imported(module, text, &known))).collect()
}

fn read_into(folder: &Path, names: &mut Module, texts: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["tests", "lib"].contains(&name.as_str()) {
            continue;
        }
        names.push(name);
        if path.is_dir() {
            read_into(&path, names, texts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            texts.insert(names.clone(), fs::read_to_string(&path).unwrap());
        }
        names.pop();
    }
}

/// The text before its tests.
fn production(text: &str) -> &str {
    let is_tests = |rest: &str| {
        let item = rest.lines().skip(1).find(|line| !line.starts_with('#'));
        item.is_some_and(|item| item.split(' ').any(|word| word == "mod"))
    };
    let tests = text.match_indices("#[cfg(test)]").map(|(at, _)| at).find(|at| is_tests(&text[*at..]));
    &text[..tests.unwrap_or(text.len())]
}

fn imported(module: &Module, text: &str, known: &BTreeSet<&Module>) -> BTreeSet<Module> {
    let code: Vec<&str> = production(text).lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut found = BTreeSet::new();
    for statement in code.join("\n").split(';') {
        // An attribute or a brace of the item before may stand in front of it.
        let import = statement.lines().find(|line| is_import(line)).and_then(|line| statement.split_once(line));
        match import {
            Some((_, rest)) => {
                let line = statement[..statement.len() - rest.len()].lines().last().unwrap_or_default();
                let (public, tree) =
                    line.split_once("use ").map(|(before, tree)| (before.contains("pub"), tree)).unwrap();
                let mut paths = Vec::new();
                flatten(&format!("{tree}{rest}"), &[], &mut paths);
                for path in paths {
                    let to = resolved(module, &path, known);
                    // A folder's face hands on its children.
                    found.extend(to.filter(|to| !(public && to.starts_with(module))));
                }
            }
            None => {
                let is_path = |char: char| char.is_alphanumeric() || matches!(char, '_' | ':');
                for token in statement.split(|char| !is_path(char)).filter(|token| token.contains("::")) {
                    let path: Vec<String> = token.split("::").map(str::to_owned).collect();
                    found.extend(resolved(module, &path, known));
                }
            }
        }
    }
    // What a folder's own file declares belongs to all files within.
    found.into_iter().filter(|to| !module.starts_with(to)).collect()
}

fn is_import(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches(|char| char != ' ').trim_start());
    line.starts_with("use ")
}

/// The paths of a tree of imports.
fn flatten(tree: &str, before: &[String], paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let names = |text: &str| -> Vec<String> {
        let names = text.split("::").map(|name| name.split(" as ").next().unwrap_or_default().trim().to_owned());
        before.iter().cloned().chain(names.filter(|name| !name.is_empty())).collect()
    };
    let Some((first, rest)) = tree.split_once('{') else {
        return paths.push(names(tree));
    };
    let (inner, _) = rest.rsplit_once('}').unwrap();
    let (mut depth, mut start) = (0, 0);
    for (at, char) in inner.char_indices().chain([(inner.len(), ',')]) {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[start..at].trim().is_empty() {
                    flatten(&inner[start..at], &names(first), paths);
                }
                start = (at + 1).min(inner.len());
            }
            _ => {}
        }
    }
}

/// The file that a path leads to; `None` where that is none of this crate.
fn resolved(module: &Module, path: &[String], known: &BTreeSet<&Module>) -> Option<Module> {
    let (mut at, rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => {
            let up = path.iter().take_while(|name| *name == "super").count();
            (module[..module.len().checked_sub(up)?].to_vec(), &path[up..])
        }
        child => {
            let child = [&module[..], &[child.to_owned()]].concat();
            known.contains(&child).then(|| (module.clone(), path))?
        }
    };
    let mut file = known.contains(&at).then(|| at.clone());
    for name in rest {
        at.push(name.clone());
        if !known.contains(&at) {
            break;
        }
        file = Some(at.clone());
    }
    file
}

fn shown(module: &Module) -> String {
    module.join("/")
}

fn is_in(module: &Module, room: &str) -> bool {
    let room: Vec<String> = room.split('/').map(str::to_owned).collect();
    module.starts_with(&room)
}

#[test]
fn rooms_are_blind_to_those_above_and_beside_them() {
    let imports = imports();
    let mut faults = Vec::new();
    for (room, blind_to) in BLIND {
        assert!(imports.keys().any(|module| is_in(module, room)), "there is no `{room}`");
        for (from, to) in imports.iter().filter(|(from, _)| is_in(from, room)) {
            let seen = to.iter().filter(|to| blind_to.iter().any(|room| is_in(to, room)));
            faults.extend(seen.map(|to| format!("{} imports {}", shown(from), shown(to))));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn no_built_in_tool_imports_another() {
    let tool = |module: &Module| module.get(2).filter(|_| is_in(module, "builtin/tools")).cloned();
    let mut faults = Vec::new();
    let mut tools = BTreeSet::new();
    for (from, to) in &imports() {
        let Some(this) = tool(from) else { continue };
        faults.extend(
            to.iter().filter(|to| tool(to).is_some_and(|other| other != this)).map(|to| (shown(from), shown(to))),
        );
        tools.insert(this);
    }
    assert!(tools.len() > 20, "{tools:?}");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let imports = imports();
    let in_a_circle = |start: &&Module| {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![*start]);
        while let Some(module) = waiting.pop() {
            waiting.extend(imports[module].iter().filter(|to| seen.insert(*to)));
        }
        seen.contains(*start)
    };
    let circles: Vec<String> = imports.keys().filter(in_a_circle).map(shown).collect();
    assert!(circles.is_empty(), "in a circle with others of these: {circles:#?}");
}

#[test]
fn imports_are_read_through_braces_attributes_and_paths_in_the_code() {
    let modules: Vec<Module> =
        ["a", "a/b", "a/b/c", "a/d", "e", "e/f"].map(|path| path.split('/').map(str::to_owned).collect()).into();
    let known = modules.iter().collect();
    let check = |text: &str, expected: &[&str]| {
        let found: Vec<String> = imported(&modules[1], text, &known).iter().map(shown).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("use crate::{a::d::Thing, e::{f, f::X as Y}};", &["a/d", "e/f"]);
    check("mod c;\n\npub(crate) use c::One;\nuse c::Two;\n", &["a/b/c"]);
    check("pub use crate::a::b::c::One;", &[]);
    check("use super::d;\nfn go() { crate::e::run(c::X) }\n", &["a/b/c", "a/d", "e"]);
    check("#[cfg(test)]\n#[expect(clippy::x)]\npub(super) mod tests { use crate::e; }", &[]);
    check("// use crate::e::No;\nuse std::fs;\n#[cfg(test)]\nmod tests { use crate::e; }", &[]);
    check("use crate::a::Face;", &[]);
}
