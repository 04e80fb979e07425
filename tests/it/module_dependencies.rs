//! Dependencies between the modules of the crates, and the number of crates that each module of `infrastructure`
//! requires. `make rooms` prints what these tests measure.
//!
//! A file may use what the file of its own folder declares: that is the folder's contract, not a way back.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use syn::{Attribute, Item, ItemUse, UseTree, visit::Visit};

/// A file by its path in the module tree: `["builtin", "text", "snippet"]`.
type Module = Vec<String>;

/// The modules of `infrastructure`, each with the modules that it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("accounts", &["web"]),
    ("browser", &["egress", "sandbox"]),
    ("builtin", &["browser", "documents", "egress", "host", "sandbox", "services", "shell_analysis", "web"]),
    ("documents", &["sandbox"]),
    ("egress", &[]),
    ("hooks", &["sandbox"]),
    ("host", &[]),
    ("http", &["egress"]),
    ("mcp", &["egress", "http", "sandbox"]),
    ("models", &["http"]),
    ("sandbox", &[]),
    ("services", &["host", "http", "web"]),
    ("shell_analysis", &[]),
    ("sqlite", &[]),
    ("upstream_auth", &["accounts", "web"]),
    ("web", &["egress", "http"]),
];

/// The layers of `builtin`, except `tool_kit`. Each may use those before it in the list.
const FLOORS: [&str; 10] =
    ["dialects", "text", "files", "commands", "web", "agents", "google", "browsing", "context", "tools"];

/// A crate of ours, its features, and how many crates it may bring along, itself among them.
const WEIGHTS: &[(&str, &str, usize)] = &[
    ("toolstead-domain", "", 35),
    ("toolstead-infrastructure", "sqlite", 150),
    ("toolstead-infrastructure", "sandbox", 100),
    ("toolstead-infrastructure", "egress", 96),
    ("toolstead-infrastructure", "host", 50),
    ("toolstead-infrastructure", "shell-analysis", 100),
    ("toolstead-infrastructure", "http", 122),
    ("toolstead-infrastructure", "mcp", 132),
    ("toolstead-infrastructure", "mcp-stdio", 136),
    ("toolstead-infrastructure", "models", 130),
    ("toolstead-infrastructure", "documents", 149),
    ("toolstead-infrastructure", "hooks", 108),
    ("toolstead-infrastructure", "web", 149),
    ("toolstead-infrastructure", "accounts", 154),
    ("toolstead-infrastructure", "services", 161),
    ("toolstead-infrastructure", "browser", 118),
    ("toolstead-infrastructure", "builtin", 258),
    ("toolstead-infrastructure", "schema-validation", 142),
    ("toolstead-infrastructure", "upstream-auth", 192),
];

/// The features of `infrastructure` that build without the sandbox.
const PORTABLE: [&str; 9] = ["accounts", "egress", "host", "http", "mcp", "models", "services", "upstream-auth", "web"];
/// Crates that no portable feature may depend on: those for one kernel, and the parser of command lines.
const NOT_PORTABLE: [&str; 3] = ["landlock", "seccompiler", "tree-sitter"];

/// The files of one crate, and which of them each one uses.
struct Imports(BTreeMap<Module, BTreeSet<Module>>);

impl Imports {
    fn of(name: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let mut files = BTreeMap::new();
        collect(&source, &mut Module::new(), &mut files);
        let known: BTreeSet<Module> = files.keys().cloned().collect();
        Self(files.iter().map(|(module, file)| (module.clone(), used_by(module, file, &known))).collect())
    }

    /// Every file that can be reached from this one by imports.
    fn reached_from(&self, start: &Module) -> BTreeSet<&Module> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&Module> = self.0[start].iter().collect();
        while let Some(module) = next.pop() {
            if reached.insert(module) {
                next.extend(&self.0[module]);
            }
        }
        reached
    }

    /// Returns the files of each import cycle.
    fn circles(&self) -> BTreeSet<Vec<String>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.0.keys().map(|module| (module, self.reached_from(module))).collect();
        let circle = |module: &Module| -> Vec<String> {
            reached[module]
                .iter()
                .filter(|other| reached[**other].contains(module))
                .map(|other| other.join("/"))
                .collect()
        };
        self.0.keys().filter(|module| reached[module].contains(module)).map(circle).collect()
    }

    /// The arrows from one file to another.
    fn arrows(&self) -> impl Iterator<Item = (&Module, &Module)> {
        self.0.iter().flat_map(|(from, used)| used.iter().map(move |to| (from, to)))
    }
}

/// The source files below a folder, without tests, binaries and the root of the crate.
fn collect(folder: &Path, path: &mut Module, files: &mut BTreeMap<Module, PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["tests", "bin", "lib"].contains(&name.as_str()) {
            continue;
        }
        path.push(name);
        if file.is_dir() {
            collect(&file, path, files);
        } else if file.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path.clone(), file);
        }
        path.pop();
    }
}

fn used_by(module: &Module, file: &Path, known: &BTreeSet<Module>) -> BTreeSet<Module> {
    let text = fs::read_to_string(file).unwrap();
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut reader = Reader { module, known, used: BTreeSet::new() };
    reader.visit_file(&syntax);
    reader.used
}

/// Reads the paths of one file.
struct Reader<'a> {
    module: &'a Module,
    known: &'a BTreeSet<Module>,
    used: BTreeSet<Module>,
}

impl Reader<'_> {
    /// Records the file that a path leads to, unless it is this file or belongs to a folder that contains this file.
    fn note(&mut self, path: &[String]) {
        let up = path.iter().take_while(|part| *part == "super").count();
        let (base, rest) = match path.first().map(String::as_str) {
            Some("crate") => (Module::new(), &path[1..]),
            Some("self") => (self.module.clone(), &path[1..]),
            Some("super") => (self.module[..self.module.len().saturating_sub(up)].to_vec(), &path[up..]),
            _ => (self.module.clone(), path),
        };
        let within = |count: usize| [&base[..], &rest[..count]].concat();
        let Some(target) =
            (0..=rest.len()).map(within).take_while(|at| at.is_empty() || self.known.contains(at)).last()
        else {
            return;
        };
        if !target.is_empty() && !self.module.starts_with(&target) {
            self.used.insert(target);
        }
    }

    fn note_tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.note_tree(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(tree, before)),
            UseTree::Name(name) => self.note(&[&before[..], &[name.ident.to_string()]].concat()),
            UseTree::Rename(name) => self.note(&[&before[..], &[name.ident.to_string()]].concat()),
            UseTree::Glob(_) => self.note(before),
        }
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = match item {
            Item::Const(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => &[],
        };
        if !is_test(attributes) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.note_tree(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if parts.len() > 1 {
            self.note(&parts);
        }
        syn::visit::visit_path(self, path);
    }
}

#[test]
fn source_files_do_not_import_each_other_in_a_cycle() {
    let mut all = BTreeMap::new();
    for name in ["domain", "application", "infrastructure", "presentation"] {
        let imports = Imports::of(name);
        let circles = imports.circles();
        println!("{name}: {} files, {} circles", imports.0.len(), circles.len());
        all.insert(name, circles);
    }
    assert!(all.values().all(BTreeSet::is_empty), "files use each other in a circle: {all:#?}");
}

#[test]
fn each_infrastructure_module_imports_exactly_the_modules_listed_for_it() {
    let imports = Imports::of("infrastructure");
    let room = |module: &Module| ROOMS.iter().find(|(name, _)| module[0] == *name);
    let folders: BTreeSet<&String> =
        imports.0.keys().filter(|module| module.len() > 1 && room(module).is_none()).map(|module| &module[0]).collect();
    assert!(folders.is_empty(), "`ROOMS` does not say what they may use: {folders:?}");
    let is_weighed = |name: &str| WEIGHTS.iter().any(|(_, feature, _)| feature.replace('-', "_") == name);
    let unweighed: Vec<&str> = ROOMS.iter().map(|(name, _)| *name).filter(|name| !is_weighed(name)).collect();
    assert!(unweighed.is_empty(), "`WEIGHTS` does not say how much they may bring along: {unweighed:?}");
    let mut faults = Vec::new();
    let mut drawn: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in imports.arrows() {
        let (Some((name, allowed)), Some((used, _))) = (room(from), room(to)) else { continue };
        if name != used {
            drawn.entry(name).or_default().insert(used);
            if !allowed.contains(used) {
                faults.push(format!("{} uses {}", from.join("/"), to.join("/")));
            }
        }
    }
    println!("rooms and what they stand on: {drawn:?}");
    assert!(faults.is_empty(), "{faults:#?}");
    let unlisted: Vec<_> = imports.0.keys().filter(|module| module.len() > 1 && room(module).is_none()).collect();
    assert!(unlisted.is_empty(), "they stand in no room of the list: {unlisted:?}");
    let unused: Vec<_> =
        ROOMS.iter().filter(|(name, used)| used.len() != drawn.get(name).map_or(0, BTreeSet::len)).collect();
    assert!(unused.is_empty(), "they may use more than they do: {unused:?}");
}

#[test]
fn tools_do_not_import_other_tools_and_lower_layers_do_not_import_higher_layers() {
    let imports = Imports::of("infrastructure");
    let floor = |module: &Module| {
        let name = module.get(1).filter(|_| module[0] == "builtin")?;
        FLOORS.iter().position(|floor| floor == name)
    };
    let tools = FLOORS.len() - 1;
    let fault = |(from, to): (&Module, &Module)| {
        let (below, above) = (floor(from)?, floor(to)?);
        let is_other_tool =
            below == tools && above == tools && from.get(2) != to.get(2) && to.len() > 2 && from.len() > 2;
        (above > below || is_other_tool).then(|| format!("{} uses {}", from.join("/"), to.join("/")))
    };
    let faults: Vec<String> = imports.arrows().filter_map(fault).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Returns what `cargo tree` prints of a crate that is built with these features alone, in this format.
fn tree(package: &str, features: &str, format: &str) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--offline", "--edges", "normal,build", "--prefix", "none", "--format", format]);
    cargo.args(["--no-default-features", "--features", features, "--package", package]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn portable_features_enable_neither_the_sandbox_nor_unportable_crates() {
    let mut faults = Vec::new();
    for feature in PORTABLE {
        let lines = tree("toolstead-infrastructure", feature, "{p} {f}");
        let (own, others) = lines.split_once('\n').unwrap();
        let features = own.split_whitespace().last().unwrap();
        assert!(features.split(',').any(|one| one == feature), "{own}");
        if features.split(',').any(|one| one == "sandbox") {
            faults.push(format!("`{feature}` turns `sandbox` on"));
        }
        let foreign = others.lines().filter(|line| NOT_PORTABLE.iter().any(|name| line.starts_with(name)));
        faults.extend(foreign.map(|line| format!("`{feature}` brings {line}")));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn each_feature_set_depends_on_no_more_crates_than_its_limit() {
    let mut too_heavy = Vec::new();
    for (package, features, most) in WEIGHTS {
        let lines = tree(package, features, "{p}");
        let crates: BTreeSet<&str> = lines.lines().map(|line| line.trim_end_matches(" (*)")).collect();
        println!("{package} {features:17} {:4} crates of at most {most}", crates.len());
        if crates.len() > *most {
            too_heavy.push((package, features, crates.len(), most));
        }
    }
    assert!(too_heavy.is_empty(), "{too_heavy:?}");
}
