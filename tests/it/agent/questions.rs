//! Questions to the user at a terminal, in the middle of a turn.

use super::*;

/// The command at a controlling terminal of its own.
fn at_terminal(place: &Place, arguments: &[&str]) -> (Person, Child) {
    let mut command = place.home.command("/usr/bin/setsid", &["--ctty", "--wait", env!("CARGO_BIN_EXE_toolstead")]);
    command.arg("--config").arg(&place.config).env("MODEL_KEY", KEY).env_remove("PAGER");
    command.args(arguments);
    Person::at(command, false)
}

fn write_then_end() -> [Says; 2] {
    [Says::call("write_file", json!({"path": "a.txt", "content": "one"})), Says::text("Understood.")]
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_at_a_question_ends_the_turn_before_the_model_answers_again() {
    let place = Place::with(write_then_end(), "").await;
    let (mut person, child) = at_terminal(&place, &["query", "Write it."]);
    let output = block_in_place(|| {
        person.awaits("? ");
        person.types("\x03");
        child.wait_with_output().unwrap()
    });
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert_eq!(place.server.seen().len(), 1);
    assert!(!place.home.work().join("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_reads_why_the_user_denied_a_call() {
    let place = Place::with(write_then_end(), "").await;
    let (mut person, child) = at_terminal(&place, &["query", "Write it."]);
    let output = block_in_place(|| {
        person.awaits("? ");
        person.types("d");
        person.awaits("(Enter for none): ");
        person.types("write b.txt instead\r");
        child.wait_with_output().unwrap()
    });
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let request = &place.server.seen()[1].text;
    assert!(request.contains("with this message: write b.txt instead"), "{request}");
    assert!(!place.home.work().join("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_while_a_question_is_open_leads_to_a_question_about_the_new_change() {
    let place = Place::with(write_then_end(), "").await;
    let file = place.home.work().join("a.txt");
    fs::write(&file, "one\ntwo\n").unwrap();
    let edit = json!({"path": "a.txt", "old_text": "two", "new_text": "2"}).to_string();
    let (mut person, child) = at_terminal(&place, &["call", "edit_file", &edit]);
    let output = block_in_place(|| {
        person.awaits("? ");
        assert!(person.seen.contains("  |  one") && !person.seen.contains("zero"), "{}", person.seen);
        fs::write(&file, "zero\none\ntwo\n").unwrap();
        person.types("o");
        person.awaits("  |  zero");
        person.awaits("[o]nce");
        person.awaits("? ");
        person.types("o");
        child.wait_with_output().unwrap()
    });
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), "zero\none\n2\n");
}
