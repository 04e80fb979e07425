//! `[views]`: their meaning, and what a file of a project may define.

use super::{ADMINISTRATOR, Machine, PROJECT, USER};

const VIEW: &str = "[views.review]\ntools = [\"read_file\", \"mcp__git__*\"]\ndeny = [\"Read(secrets/**)\"]\n\
                    [views.review.overlay.mcp__git__git_log]\nname = \"history\"\n\
                    fixed = { repo_path = \".\", max_count = 20, deep = { a = [1.5, true] } }\nhide = [\"since\"]\n";

#[test]
fn a_view_has_tools_rules_and_overlays() {
    let machine = Machine::with(&[(USER, VIEW)]);
    let config = machine.config();
    let view = config.view("review").unwrap();
    assert_eq!(view.tools.to_string(), "read_file, mcp__git__*");
    assert_eq!(view.rules.iter().map(|rule| rule.text.as_str()).collect::<Vec<_>>(), ["Read(secrets/**)"]);
    let overlay = &view.content.overlays()["mcp__git__git_log"];
    assert_eq!(overlay.name.as_ref().unwrap().as_str(), "history");
    assert_eq!(
        serde_json::json!(overlay.fixed),
        serde_json::json!({"repo_path": ".", "max_count": 20, "deep": {"a": [1.5, true]}})
    );
    assert_eq!(overlay.hidden, ["since"]);
    let notes: Vec<String> = config.notes.iter().map(|note| machine.plain(note)).collect();
    let expected = "`mcp__git__git_log` names the MCP server `git`, which is not configured";
    assert!(notes.iter().any(|note| note.ends_with(expected)), "{notes:?}");
    let error = config.view("reviews").unwrap_err();
    assert_eq!(error.to_string(), "no view is called `reviews`; did you mean `review`?");
}

#[test]
fn a_view_is_defined_by_one_file_and_a_project_cannot_redefine_it() {
    let wider = "[views.review]\ntools = [\"*\"]\n[views.own]\ntools = [\"echo\"]\n";
    let machine =
        Machine::with(&[(USER, VIEW), (ADMINISTRATOR, "[views.review]\nprompts = [\"*\"]\n"), (PROJECT, wider)]);
    let names = || machine.config().views.into_iter().map(|view| view.name).collect::<Vec<_>>();
    assert_eq!(names(), ["review"], "a view of an untrusted file does not exist");
    machine.trust("toolstead.toml");
    assert_eq!(names(), ["own", "review"]);
    let config = machine.config();
    let view = config.view("review").unwrap();
    assert_eq!(view.tools.to_string(), "read_file, mcp__git__*");
    assert!(view.content.prompts().is_empty());
    let notes: Vec<String> = config.notes.iter().map(|note| machine.plain(note)).collect();
    assert!(notes.iter().any(|note| note.ends_with("is not used: another file defines it")), "{notes:?}");
}

#[test]
fn rejects_invalid_views_with_file_and_line() {
    let at = "~/home/.config/toolstead/config.toml";
    let fails = |text: &str, outcome: &str| Machine::with(&[(USER, text)]).fails(&format!("{at}{outcome}"));
    fails(
        "[views.\"a/b\"]\ntools = []\n",
        ":1: `views.a/b`: the name of a view is 1 to 64 letters, digits and `_`, `-`, because it is a part of a URL",
    );
    fails(
        "[views.v.overlay.a]\nname = \"x\"\n[views.v.overlay.b]\nname = \"x\"\n",
        ":4: `views.v`: `a` and `b` are both shown as `x`: give each tool a name of its own",
    );
    fails(
        "[views.v.overlay.a]\nfixed = 1\n",
        ":2: `views.v.overlay.a.fixed` must be a table of values, got the number 1",
    );
    fails(
        "[views.v.overlay.a]\nfixed = { x = 2020-01-01 }\n",
        ":2: `views.v.overlay.a.fixed.x` must have a value that JSON can express, got a date",
    );
    fails(
        "[views.review]\ntools = []\n[profiles.p]\nview = \"reviw\"\n",
        ":4: `profiles.p.view`: no view is called `reviw`; did you mean `review`?",
    );
}
