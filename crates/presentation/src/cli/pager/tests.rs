use super::*;
use std::os::unix::process::ExitStatusExt;

#[test]
fn a_pager_setting_is_split_into_words_and_an_unusable_one_selects_the_built_in() {
    let command = |program: &str, arguments: &[&str]| {
        Some((program.to_owned(), arguments.iter().map(|argument| (*argument).to_owned()).collect()))
    };
    for (setting, expected) in [
        (None, None),
        (Some(""), None),
        (Some("  "), None),
        (Some("''"), None),
        (Some("less 'x"), None),
        (Some("less"), command("less", &[])),
        (Some("less -R -S"), command("less", &["-R", "-S"])),
        (Some("'/opt/my pager' \"a b\" $HOME|x;y"), command("/opt/my pager", &["a b", "$HOME|x;y"])),
    ] {
        assert_eq!(Pager::parse(setting).command, expected, "{setting:?}");
    }
}

#[test]
fn a_pager_counts_as_opened_only_if_successful_after_a_minimum_time() {
    let (success, failure, killed) = (ExitStatus::from_raw(0), ExitStatus::from_raw(256), ExitStatus::from_raw(9));
    for (status, time, expected) in [
        (success, SHORTEST_READING, true),
        (success, SHORTEST_READING - Duration::from_millis(1), false),
        (failure, SHORTEST_READING * 10, false),
        (killed, SHORTEST_READING * 10, false),
    ] {
        assert_eq!(was_opened(status, time), expected, "{status} {time:?}");
    }
}
