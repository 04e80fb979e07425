//! The table of `docs/guide/upstream-servers.md`: each class of change, with each treatment, at a real server.

use super::{Bench, base, table, tool};
use crate::binaries::{Pipe, stderr, stdout};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs};

/// Treatments, in the order of the columns.
const TREATMENTS: [&str; 3] = ["pin", "pass", "quarantine"];
const HEAD: &str = "| change | `on_change = \"pin\"` (default) | `\"pass\"` | `\"quarantine\"` |";

const TEXT: &str = "title, description, icon, or text of a schema";
const NARROWER: &str = "schema of the arguments accepts less";
const WIDER: &str = "schema of the arguments accepts or offers more";
const HINTS: &str = "annotations promise less (`readOnlyHint` and others)";
const OUTPUT: &str = "output schema";
const NEW_TOOL: &str = "new or renamed tool of a known server";
const REMOVED: &str = "removed tool, or a tool's old name";
const RETURNED: &str = "removed tool that returns as it was approved";
const INSTRUCTIONS: &str = "instructions";
const CONTEXT: &str = "prompt, resource or template";
const NEW_CONTEXT: &str = "new prompt, resource or template";
const LAUNCH: &str = "command or URL of the server";
const HIDDEN_TOOL: &str = "hard finding of the scan in a tool";
const HIDDEN_CONTEXT: &str = "hard finding in a prompt, resource or template";
const RENAMED: &str = "renamed server";
const LESS_TRUSTED: &str = "look-alike server in a less trusted file";
const ONE_FILE: &str = "look-alike servers in one file";

/// Rows of the table, in its order.
const ROWS: [&str; 17] = [
    TEXT,
    NARROWER,
    WIDER,
    HINTS,
    OUTPUT,
    NEW_TOOL,
    REMOVED,
    RETURNED,
    INSTRUCTIONS,
    CONTEXT,
    NEW_CONTEXT,
    LAUNCH,
    HIDDEN_TOOL,
    HIDDEN_CONTEXT,
    RENAMED,
    LESS_TRUSTED,
    ONE_FILE,
];

/// List of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl List {
    const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// Returns the member of an offer and the method of MCP.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Tools => ("tools", "tools/list"),
            Self::Prompts => ("prompts", "prompts/list"),
            Self::Resources => ("resources", "resources/list"),
            Self::Templates => ("resourceTemplates", "resources/templates/list"),
        }
    }

    fn new_item(self, name: &str) -> Value {
        match self {
            Self::Tools => {
                let mut tool = tool(name, "As approved.");
                tool["title"] = json!("Title");
                tool["icons"] = json!([{"src": "https://example.com/a.png"}]);
                tool["inputSchema"]["properties"]["a"]["description"] = json!("A text.");
                tool
            }
            Self::Prompts => json!({"name": name, "description": "As approved."}),
            Self::Resources => json!({"uri": format!("a://{name}"), "name": name, "description": "As approved."}),
            Self::Templates => {
                json!({"uriTemplate": format!("a://{name}/{{b}}"), "name": name, "description": "As approved."})
            }
        }
    }

    /// Returns the item with this name in a list.
    fn find<'i>(self, items: &'i [Value], name: &str) -> Option<&'i Value> {
        let own = self.new_item(name);
        items.iter().find(|item| match self {
            Self::Tools | Self::Prompts => item["name"] == name || item["name"] == format!("mcp__s__{name}"),
            Self::Resources => item["uri"] == own["uri"],
            Self::Templates => item["uriTemplate"] == own["uriTemplate"],
        })
    }
}

/// A change of one item: the member at the pointer gets the value. Without a pointer the item is new.
struct Change {
    row: &'static str,
    list: List,
    name: &'static str,
    pointer: &'static str,
    value: Value,
    /// Part of the difference that is shown.
    shown: &'static str,
}

fn changes() -> Vec<Change> {
    use List::{Prompts, Resources, Templates, Tools};
    let change = |row, list, name, pointer, value, shown| Change { row, list, name, pointer, value, shown };
    let changed = || json!("Changed.");
    vec![
        change(TEXT, Tools, "title", "/title", changed(), "@@ title @@\n-Title\n+Changed."),
        change(TEXT, Tools, "description", "/description", changed(), "@@ description @@\n-As approved.\n+Changed."),
        change(TEXT, Tools, "icons", "/icons/0/src", json!("https://example.com/b.png"), "--- icons (approved)"),
        change(
            TEXT,
            Tools,
            "schema-text",
            "/inputSchema/properties/a/description",
            changed(),
            "@@ inputSchema.properties.a.description @@\n-A text.\n+Changed.",
        ),
        change(
            NARROWER,
            Tools,
            "narrower",
            "/inputSchema/properties/a/maxLength",
            json!(5),
            "tool `narrower`: schema narrowed\n--- narrower (approved)\n+++ narrower (offered)\n\
                @@ inputSchema.properties.a.maxLength @@\n+5",
        ),
        change(
            WIDER,
            Tools,
            "wider",
            "/inputSchema/properties/b",
            json!({"type": "string"}),
            "@@ inputSchema.properties.b.type @@\n+string",
        ),
        change(
            WIDER,
            Tools,
            "nullable",
            "/inputSchema/properties/a/type",
            json!(["string", "null"]),
            "tool `nullable`: schema widened",
        ),
        change(
            HINTS,
            Tools,
            "hints",
            "/annotations/readOnlyHint",
            json!(false),
            "tool `hints`: hints weakened\n--- hints (approved)\n+++ hints (offered)\n\
                @@ annotations.readOnlyHint @@\n-true\n+false",
        ),
        change(
            OUTPUT,
            Tools,
            "output",
            "/outputSchema/properties/n/type",
            json!("string"),
            "@@ outputSchema.properties.n.type @@\n-integer\n+string",
        ),
        change(NEW_TOOL, Tools, "new", "", Value::Null, "tool `new`: new\n--- new (none)\n+++ new (offered)\n"),
        change(NEW_TOOL, Tools, "new-name", "", Value::Null, "tool `new-name`: new"),
        change(
            HIDDEN_TOOL,
            Tools,
            "hidden",
            "/description",
            json!("As approved.\u{e0041}"),
            "has the tag character U+E0041",
        ),
        change(
            HIDDEN_TOOL,
            Tools,
            "hidden-icon",
            "/icons/0/src",
            json!("data:image/png;base64,iVBORw0KGgo=\u{200b}"),
            "has the zero-width character U+200B",
        ),
        change(CONTEXT, Prompts, "prompt", "/description", changed(), "prompt `mcp__s__prompt`: text"),
        change(
            CONTEXT,
            Prompts,
            "icon",
            "/icons",
            json!([{"src": "https://example.com/b.png"}]),
            "prompt `mcp__s__icon`: text",
        ),
        change(CONTEXT, Resources, "resource", "/description", changed(), "resource `a://resource`: text"),
        change(CONTEXT, Templates, "template", "/description", changed(), "template `a://template/{b}`: text"),
        change(NEW_CONTEXT, Prompts, "new", "", Value::Null, "prompt `mcp__s__new`: new"),
        change(NEW_CONTEXT, Resources, "new", "", Value::Null, "resource `a://new`: new"),
        change(NEW_CONTEXT, Templates, "new", "", Value::Null, "template `a://new/{b}`: new"),
        change(
            HIDDEN_CONTEXT,
            Prompts,
            "hidden",
            "/title",
            json!("a\u{202e}b"),
            "which hides text from users in `title`",
        ),
        change(HIDDEN_CONTEXT, Resources, "hidden", "/title", json!("a\u{202e}b"), "resource `a://hidden`: text"),
        change(HIDDEN_CONTEXT, Templates, "hidden", "/title", json!("a\u{202e}b"), "template `a://hidden/{b}`: text"),
    ]
}

/// Tools that are missing in the changed offer. The second returns later.
const MISSING: [&str; 3] = ["removed", "returning", "old-name"];

/// Tool that never changes.
const UNCHANGED: &str = "unchanged";

/// Returns the first offer.
fn first_offer() -> Value {
    let mut offer = json!({"instructions": "As approved."});
    for list in List::ALL {
        let known = changes().into_iter().filter(|change| change.list == list && !change.pointer.is_empty());
        let mut items: Vec<Value> = known.map(|change| list.new_item(change.name)).collect();
        if list == List::Tools {
            // A server of which nothing is available has no instructions either.
            items.extend(MISSING.into_iter().chain([UNCHANGED]).map(|name| list.new_item(name)));
            let output = items.iter_mut().find(|item| item["name"] == "output").unwrap();
            output["outputSchema"] = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        }
        offer[list.names().0] = items.into();
    }
    offer
}

/// Returns the offer after all changes.
fn changed_offer() -> Value {
    let mut offer = first_offer();
    offer["instructions"] = json!("Changed.");
    offer["tools"].as_array_mut().unwrap().retain(|tool| MISSING.iter().all(|name| tool["name"] != *name));
    for change in changes() {
        let items = offer[change.list.names().0].as_array_mut().unwrap();
        if change.pointer.is_empty() {
            items.push(change.list.new_item(change.name));
            continue;
        }
        let own = change.list.new_item(change.name);
        let item = items
            .iter_mut()
            .find(|item| ["uri", "uriTemplate", "name"].iter().all(|key| item.get(*key) == own.get(*key)));
        let (parent, member) = change.pointer.rsplit_once('/').unwrap();
        item.unwrap().pointer_mut(parent).unwrap()[member] = change.value;
    }
    offer
}

/// Definitions that clients receive.
struct Served {
    instructions: String,
    lists: Vec<(List, Vec<Value>)>,
}

impl Served {
    fn by(bench: &Bench) -> Self {
        let mut command = bench.home.toolstead(&["mcp", "--config"]);
        command.arg(&bench.config);
        let mut pipe = Pipe::start(command);
        let handshake = pipe.initialize();
        let instructions = handshake["result"]["instructions"].as_str().unwrap_or_default().to_owned();
        let mut lists = Vec::new();
        for (id, list) in (1..).zip(List::ALL) {
            let (member, method) = list.names();
            pipe.send(json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string());
            let answer = pipe.answer(id);
            lists.push((list, answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}")).clone()));
        }
        Self { instructions, lists }
    }

    fn find(&self, list: List, name: &str) -> Option<&Value> {
        let (_, items) = self.lists.iter().find(|(one, _)| *one == list).unwrap();
        list.find(items, name)
    }
}

/// Observed effects of one treatment, by row.
#[derive(Default)]
struct Column(BTreeMap<&'static str, String>);

impl Column {
    /// Adds the effect of a change. All changes of a row have one effect.
    #[track_caller]
    fn add(&mut self, row: &'static str, what: &str, effect: String) {
        let before = self.0.entry(row).or_insert_with(|| effect.clone());
        assert_eq!(*before, effect, "{row}: {what}");
    }
}

/// Describes the effect on an item from its served definition, and for a tool from a call of it.
fn effect(change: &Change, served: &Served, called: Option<&str>) -> String {
    let (first, last) = (first_offer(), changed_offer());
    let items = |offer: &Value| offer[change.list.names().0].as_array().unwrap().clone();
    let member = |item: Option<&Value>| item.and_then(|item| item.pointer(change.pointer)).cloned();
    let own_member = |offer: &Value| member(change.list.find(&items(offer), change.name));
    let Some(item) = served.find(change.list, change.name) else {
        return called.unwrap_or("not listed").to_owned();
    };
    let text = match member(Some(item)) {
        _ if change.pointer.is_empty() => "served",
        now if now == own_member(&last) => "served",
        now if now == own_member(&first) => "the approved one is served",
        None if item.get("outputSchema").is_none() => "the approved one is served, without an output schema",
        other => panic!("{}: {other:?}", change.name),
    };
    match called {
        Some("runs") | None => text.to_owned(),
        Some("asks") => format!("{text}; the next call requires approval"),
        Some(other) => format!("{text}; {other}"),
    }
}

/// Observes the changes of definitions.
fn check_definitions(on_change: &str, column: &mut Column) {
    let bench = Bench::new(&format!("on_change = \"{on_change}\""));
    bench.offer(&first_offer());
    assert!(bench.see().contains("`s` offers what was approved"));
    let first = Served::by(&bench);
    bench.offer(&changed_offer());
    let shown = bench.see();
    let served = Served::by(&bench);
    for change in changes() {
        let called = (change.list == List::Tools).then(|| bench.called(change.name));
        let effect = effect(&change, &served, called.as_deref());
        assert_eq!(shown.contains(change.shown), effect != "served", "{on_change}, {}: {shown}", change.name);
        column.add(change.row, change.name, effect);
    }
    assert_eq!(bench.called(UNCHANGED), "runs", "{on_change}");
    for name in MISSING {
        assert!(first.find(List::Tools, name).is_some() && served.find(List::Tools, name).is_none(), "{name}");
        assert_eq!(bench.called(name), "unknown", "{name}");
        assert_eq!(shown.contains(&format!("tool `{name}`: removed")), on_change != "pass", "{shown}");
    }
    column.add(REMOVED, "removed", "disappears".into());
    assert!(first.instructions.contains("As approved."), "{}", first.instructions);
    let instructions = match served.instructions.contains("Changed.") {
        true => "served",
        false => "the approved one is served",
    };
    assert_eq!(served.instructions.contains("As approved."), instructions != "served", "{}", served.instructions);
    assert_eq!(shown.contains("@@ text @@\n-As approved.\n+Changed."), instructions != "served", "{shown}");
    column.add(INSTRUCTIONS, "instructions", instructions.into());

    let mut returned = changed_offer();
    returned["tools"].as_array_mut().unwrap().push(List::Tools.new_item("returning"));
    bench.offer(&returned);
    assert!(!bench.see().contains("tool `returning`"), "it is as it was approved");
    let is_served = Served::by(&bench).find(List::Tools, "returning").is_some();
    assert_eq!((is_served, bench.called("returning").as_str()), (true, "runs"));
    column.add(RETURNED, "returning", "served".into());

    bench.run(&["servers", "approve", "s"]);
    assert!(bench.see().contains("`s` offers what was approved"));
    let served = Served::by(&bench);
    assert!(served.instructions.contains("Changed."), "{}", served.instructions);
    for change in changes() {
        assert_eq!(effect(&change, &served, None), "served", "approved: {on_change}, {}", change.name);
    }
    for name in ["wider", "new", "hidden"] {
        assert_eq!(bench.called(name), "runs", "approved: {on_change}, {name}");
    }
}

/// Observes another command of the server.
fn check_launch(on_change: &str, column: &mut Column) {
    let mut bench = Bench::new(&format!("on_change = \"{on_change}\""));
    bench.see();
    let other =
        table("s", &format!("on_change = \"{on_change}\"")).replace("\"server.py\"", "\"server.py\", \"--other\"");
    bench.config = bench.home.config(&other);
    let shown = bench.see();
    assert_eq!(shown.contains("launch: launch\n") && shown.contains("@@ args @@"), on_change != "pass", "{shown}");
    let has_note = bench.run(&["servers"]).1.contains("the server is not started or reached in the approved way");
    let effect = match (bench.called("add").as_str(), has_note) {
        ("runs", false) => "served",
        ("runs", true) => "served, with a note",
        ("unavailable", true) => "all tools are unavailable",
        other => panic!("{on_change}: {other:?}"),
    };
    column.add(LAUNCH, "launch", effect.into());
    bench.run(&["servers", "approve", "s", "launch"]);
    assert_eq!(bench.called("add"), "runs", "{on_change}");
}

/// Observes a server under another name, and servers whose names look alike.
fn check_names(on_change: &str, column: &mut Column) {
    let keys = format!("on_change = \"{on_change}\"");
    let bench = Bench::new(&keys);
    bench.see();
    let mut changed = base();
    changed["tools"][0]["description"] = json!("Changed.");
    bench.offer(&changed);
    let renamed = bench.home.config(&table("t", &keys));
    let output = bench.home.run(&["tools", "--json", "--config", renamed.to_str().unwrap()]);
    assert!(stdout(&output).contains("Changed."), "{}", stdout(&output));
    let call = ["call", "mcp__t__add", r#"{"a":"x"}"#, "--config", renamed.to_str().unwrap()];
    assert!(stdout(&bench.home.run(&call)).contains("ran add"), "another name is another server");
    column.add(RENAMED, "renamed", "served, as at first sight".into());

    let config = bench.home.config(&(table("my-tools", &keys) + &table("my_t00ls", &keys)));
    let output = bench.home.run(&["tools", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    for name in ["my-tools", "my_t00ls"] {
        let message = format!("`mcp_servers.{name}` is rejected: its name looks like that of");
        assert!(stderr(&output).contains(&message), "{}", stderr(&output));
    }
    column.add(ONE_FILE, "one file", "both are rejected".into());

    // The file of the user is trusted more than that of the project.
    let own = bench.home.data().with_file_name("config").join("toolstead/config.toml");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, format!("[workspace]\nroots = [{:?}]\n{}", bench.home.work(), table("s", &keys))).unwrap();
    fs::write(bench.home.work().join("toolstead.toml"), table("S", &keys)).unwrap();
    let trusted = bench.home.run(&["config", "trust", "--yes", "toolstead.toml"]);
    assert!(trusted.status.success(), "{}{}", stdout(&trusted), stderr(&trusted));
    let output = bench.home.run(&["servers", "--json"]);
    let servers: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let servers = servers["servers"].as_array().unwrap();
    let names: Vec<&str> = servers.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["s"], "{}", stderr(&output));
    column.add(LESS_TRUSTED, "less trusted", "the look-alike is rejected".into());
}

#[test]
fn each_change_has_the_effect_that_the_guide_documents() {
    let columns = TREATMENTS.map(|on_change| {
        let mut column = Column::default();
        check_definitions(on_change, &mut column);
        check_launch(on_change, &mut column);
        check_names(on_change, &mut column);
        column
    });
    let cells = |row: &str| columns.each_ref().map(|column| column.0.get(row).unwrap().clone()).join(" | ");
    let rows: Vec<String> = ROWS.iter().map(|row| format!("| {row} | {} |", cells(row))).collect();
    let observed = format!("{HEAD}\n| --- | --- | --- | --- |\n{}\n", rows.join("\n"));
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/upstream-servers.md");
    assert!(fs::read_to_string(guide).unwrap().contains(&observed), "the table of the guide should be:\n{observed}");
}
