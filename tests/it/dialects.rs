//! The five tool systems that Toolstead unites, as their own documents describe them: the tools that a dialect lists,
//! and their literal calls with the documented answers. The tables are in `dialects/`, one file per system.

mod kodelet;
mod kodelet_browser;
mod tfo;

use crate::binaries::{Home, Pipe};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

/// One system.
struct System {
    dialect: &'static str,
    tools: Vec<Advertised>,
    /// Made one after another, in the same folder and session.
    calls: Vec<Call>,
}

/// A tool as it is listed there: name, and name and type of each parameter.
struct Advertised {
    name: &'static str,
    required: &'static [(&'static str, &'static str)],
    optional: &'static [(&'static str, &'static str)],
}

/// A documented call and its answer, with the section of the document.
struct Call {
    section: &'static str,
    name: &'static str,
    arguments: Value,
    answer: Answer,
}

enum Answer {
    /// One block with this text.
    Text(&'static str),
    /// One block with this JSON, two blanks for each level.
    Json(Value),
    /// One block with a JSON object of exactly these members.
    Members(&'static [&'static str]),
    /// An error of the tool whose first block is this text.
    Error(&'static str),
    /// An error of the tool whose first block begins and ends so.
    ErrorLike(&'static str, &'static str),
    /// The same as `Error`, and the number by which the system knows it.
    Numbered(&'static str, i64),
    /// An error of the protocol: number, kind, and what its message holds.
    Protocol(i64, &'static str, &'static str),
}

/// Every system begins with these files.
const FILES: &[(&str, &str)] =
    &[("poem.txt", "one\ntwo\nthree\n"), ("src/main.rs", "fn main() {}\n"), ("src/deep/lib.rs", "// two\n")];

const CONFIG: &str = "[permissions]\nallow = [\"Read\", \"Write\", \"Bash\"]\n";

fn check(system: &System) {
    let listed = Session::start(Some(system.dialect)).list();
    let names: Vec<&str> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.iter().collect::<BTreeSet<_>>().len() == names.len(), "{names:?}");
    let wrong: Vec<String> = system.tools.iter().filter_map(|tool| tool.fault(&listed)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let native = Session::start(None);
    let ours: BTreeSet<String> = native.list().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let is_theirs_alone = |call: &&Call| !ours.contains(call.name);
    for (dialect, calls) in [
        (Some(system.dialect), system.calls.iter().collect::<Vec<_>>()),
        // A name that no other system has says as much as the dialect does.
        (None, system.calls.iter().filter(is_theirs_alone).collect()),
    ] {
        let mut session = Session::start(dialect);
        let wrong: Vec<String> = calls.into_iter().filter_map(|call| call.fault(&mut session)).collect();
        assert!(wrong.is_empty(), "in {dialect:?}:\n{}", wrong.join("\n\n"));
    }
}

impl Advertised {
    fn fault(&self, listed: &[Value]) -> Option<String> {
        let Some(tool) = listed.iter().find(|tool| tool["name"] == self.name) else {
            return Some(format!("`{}` is not listed", self.name));
        };
        let schema = &tool["inputSchema"];
        let texts = |value: &Value| -> BTreeSet<String> {
            value.as_array().into_iter().flatten().map(|one| one.as_str().unwrap().to_owned()).collect()
        };
        let required: BTreeSet<String> = self.required.iter().map(|(name, _)| (*name).to_owned()).collect();
        let types: Value =
            self.required.iter().chain(self.optional).map(|(name, kind)| ((*name).to_owned(), json!(kind))).collect();
        let listed_types: Value = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, property)| (name.clone(), property["type"].clone()))
            .collect();
        let is_right = texts(&schema["required"]) == required && listed_types == types;
        (!is_right).then(|| format!("`{}` is listed as {tool}", self.name))
    }
}

impl Call {
    fn fault(&self, session: &mut Session) -> Option<String> {
        let answer = session.call(self.name, &self.arguments);
        let result = &answer["result"];
        let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
        let text = blocks.first().and_then(|block| block["text"].as_str()).unwrap_or_default();
        let is_error = result["isError"] == true;
        let is_alone = blocks.len() == 1 && !is_error && result.get("structuredContent").is_none();
        let fits = match &self.answer {
            Answer::Text(expected) => is_alone && text == *expected,
            Answer::Json(expected) => is_alone && text == serde_json::to_string_pretty(expected).unwrap(),
            Answer::Members(expected) => {
                let reply: Value = serde_json::from_str(text).unwrap_or_default();
                let members = reply.as_object().map(|members| members.keys().map(String::as_str).collect::<Vec<_>>());
                is_alone && members.as_deref() == Some(expected)
            }
            Answer::Error(expected) => is_error && text == *expected,
            Answer::ErrorLike(begin, end) => is_error && text.starts_with(begin) && text.ends_with(end),
            // Only its own clients know errors by numbers.
            Answer::Numbered(expected, number) => {
                let numbered = &result["_meta"]["toolstead/errorNumber"];
                is_error && text == *expected && (session.dialect.is_none() || *numbered == *number)
            }
            Answer::Protocol(number, kind, message) => {
                let error = &answer["error"];
                let holds = |text: &Value| text.as_str().is_some_and(|text| text.contains(message));
                match session.dialect {
                    Some(_) => error["code"] == *number && error["data"]["kind"] == *kind && holds(&error["message"]),
                    None => error.is_object() || is_error,
                }
            }
        };
        (!fits).then(|| format!("{}: `{}` {} answered {answer}", self.section, self.name, self.arguments))
    }
}

/// One client of `toolstead mcp`.
struct Session {
    dialect: Option<&'static str>,
    pipe: std::cell::RefCell<Pipe>,
    id: std::cell::Cell<u64>,
    _home: Home,
}

impl Session {
    fn start(dialect: Option<&'static str>) -> Self {
        Self::configured(dialect, "", &[])
    }

    /// With more of a configuration, and where a tool is switched off before.
    fn configured(dialect: Option<&'static str>, more: &str, off: &[&str]) -> Self {
        Self::under(dialect, &format!("{CONFIG}{more}"), off)
    }

    /// With this configuration.
    fn under(dialect: Option<&'static str>, config: &str, off: &[&str]) -> Self {
        let home = Home::new();
        for (path, content) in FILES {
            let path = home.work().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let config = home.config(config);
        for tool in off {
            let mut command = home.toolstead(&["tools", tool, "--disable", "--config"]);
            assert!(command.arg(&config).status().unwrap().success());
        }
        let mut command = home.toolstead(&["mcp", "--config"]);
        command.arg(config).args(dialect.iter().flat_map(|dialect| ["--dialect", dialect]));
        let mut pipe = Pipe::start(command);
        pipe.initialize();
        Self { dialect, pipe: pipe.into(), id: 1.into(), _home: home }
    }

    fn request(&self, method: &str, params: &Value) -> Value {
        let (id, mut pipe) = (self.id.get(), self.pipe.borrow_mut());
        self.id.set(id + 1);
        pipe.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        pipe.answer(id)
    }

    fn list(&self) -> Vec<Value> {
        let answer = self.request("tools/list", &json!({}));
        answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }

    fn call(&self, name: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": name, "arguments": arguments}))
    }
}

#[test]
fn a_dialect_lists_adapted_tools_only_by_their_dialect_names() {
    let listed = Session::start(Some("tfo")).list();
    let is_listed = |name: &str| listed.iter().any(|tool| tool["name"] == name);
    assert!(is_listed("execute_command") && is_listed("edit_file") && !is_listed("bash") && !is_listed("glob"));
    let face = listed.iter().find(|tool| tool["name"] == "execute_command").unwrap();
    assert_eq!((&face["annotations"]["readOnlyHint"], face.get("outputSchema")), (&Value::Null, None), "{face}");
}

#[test]
fn a_native_tool_name_is_answered_in_the_selected_dialect() {
    for (dialect, expected) in
        [(Some("tfo"), "{\n  \"exit_code\": 0,\n  \"stdout\": \"hi\\n\",\n  \"stderr\": \"\"\n}"), (None, "hi\n")]
    {
        let answer = Session::start(dialect).call("bash", &json!({"command": "echo hi"}));
        assert_eq!(answer["result"]["content"][0]["text"], expected, "{answer}");
        assert_eq!(answer["result"].get("structuredContent").is_some(), dialect.is_none(), "{answer}");
    }
}

#[test]
fn nested_calls_and_audit_records_resolve_dialect_names_to_native_tools() {
    let session = Session::start(Some("tfo"));
    let invocations = json!([{"tool_name": "execute_command", "parameters": {"command": "echo hi"}}]);
    let answer = session.call("batch", &json!({"invocations": invocations}));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[0] execute_command\nhi"), "{answer}");
    let home = &session._home;
    drop(session.pipe.into_inner().finish());
    let output = home.run(&["executions", "list", "--json", "--tool", "bash"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let called_as: Vec<&Value> = listed["executions"].as_array().unwrap().iter().map(|row| &row["called_as"]).collect();
    assert_eq!(called_as, ["execute_command"], "{listed}");
}

#[test]
fn a_rule_on_a_tool_applies_under_each_of_its_dialect_names() {
    for rule in ["Bash", "bash", "execute_command"] {
        let session = Session::configured(Some("tfo"), &format!("deny = [\"{rule}\"]\n"), &[]);
        assert!(session.list().iter().all(|tool| tool["name"] != "execute_command"), "{rule}");
        let answer = session.call("execute_command", &json!({"command": "echo hi"}));
        assert_eq!(answer["result"]["isError"], true, "{rule}: {answer}");
    }
}
