//! The terminal while the model works: what its calls do, and text that is typed meanwhile.

use super::{KEY, Person, Place};
use crate::{
    binaries::stderr,
    model_server::{ModelServer, Reply, Says},
};
use serde_json::json;
use std::{fs, process::Child};
use tokio::{runtime::Handle, task::block_in_place};

fn chat(place: &Place) -> (Person, Child) {
    let mut command = place.home.command("/usr/bin/setsid", &["--ctty", "--wait", env!("CARGO_BIN_EXE_toolstead")]);
    command.arg("--config").arg(&place.config).arg("chat").env("MODEL_KEY", KEY).env("TERM", "xterm");
    Person::at(command, true)
}

#[tokio::test(flavor = "multi_thread")]
async fn input_typed_during_a_turn_is_queued_and_escape_ends_the_turn() {
    let server = ModelServer::with([Reply::Hangs(Vec::new()), Reply::from(Says::text("The second answer."))]).await;
    let place = Place::of(server, "");
    let runtime = Handle::current();
    block_in_place(|| {
        let (mut person, mut child) = chat(&place);
        person.awaits_prompt("> ");
        person.types("First.\r");
        runtime.block_on(place.server.has_seen(1));
        person.types("And then\r");
        person.awaits("queued: And then");
        person.types("hal\u{7f}lf");
        person.awaits("> half");
        person.types("\x1b");
        person.awaits("cancelled");
        person.awaits("> And then");
        person.awaits("The second answer.");
        person.awaits_prompt("> ");
        // What was not sent is in the next line.
        person.awaits("half");
        person.types("\x03");
        person.awaits_prompt("> ");
        person.types("\x03");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", person.seen);
    });
    let seen = place.server.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen[1].text.contains("First.") && seen[1].text.contains("And then"), "{}", seen[1].text);
    assert!(!seen[1].text.contains("half"), "{}", seen[1].text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_not_answered_by_what_was_typed_before_it() {
    let command = "echo waiting; until [ -e gate ]; do sleep 0.05; done; echo broken; exit 3";
    let place = Place::with(
        [
            Says::call("bash", json!({"command": command})),
            Says::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
            Says::text("It is done."),
        ],
        "[permissions]\nallow = [\"Bash\"]\n",
    )
    .await;
    let (gate, file) = (place.home.work().join("gate"), place.home.work().join("a.txt"));
    block_in_place(|| {
        let (mut person, mut child) = chat(&place);
        person.awaits_prompt("> ");
        person.types("Go.\r");
        // The newest line of its output.
        person.awaits(" s: waiting");
        person.types("yo");
        person.awaits("> yo");
        fs::write(&gate, "").unwrap();
        person.awaits("with exit code 3:");
        person.awaits("  | broken");
        person.awaits("May the tool `write_file` run?");
        person.awaits("[d]eny");
        person.awaits("? ");
        assert!(!file.exists());
        person.types("o");
        person.awaits("• write_file a.txt +1 -0 (");
        person.awaits("It is done.");
        person.awaits_prompt("> ");
        person.awaits("yo");
        person.types("\x03");
        person.awaits_prompt("> ");
        person.types("\x03");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", person.seen);
    });
    assert_eq!(fs::read_to_string(file).unwrap(), "one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_has_a_plain_line_where_the_output_is_no_terminal() {
    for verbose in [false, true] {
        let place = Place::with(
            [
                Says::call("bash", json!({"command": "printf 'one\\n\\033[2Jtwo\\n'; exit 3"})),
                Says::call("edit_file", json!({"path": "calc.sh", "old_text": "minus", "new_text": "plus"})),
                Says::call("bash", json!({"command": "echo fine"})),
                Says::text("Done."),
            ],
            "[permissions]\nallow = [\"Bash\", \"Edit\"]\n",
        )
        .await;
        fs::write(place.home.work().join("calc.sh"), "minus\n").unwrap();
        let arguments: &[&str] = if verbose { &["-v", "query", "Mend it."] } else { &["query", "Mend it."] };
        let output = place.run(arguments);
        let message = stderr(&output);
        for part in [
            "• bash printf 'one\\n\\033[2Jtwo\\n'; exit 3 failed after ",
            " s with exit code 3:\n  | one\n  | ",
            "• edit_file calc.sh +1 -1 (",
            "\n  | -minus\n  | +plus\n",
            "• bash echo fine (",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(message.contains("\n  | fine\n"), verbose, "{message}");
        assert!(!message.contains('\u{1b}'), "{message}");
    }
}
