//! Names that may not be used: names with a phrase of the word list, names that say nothing (participles, pronouns and
//! adverbs), and names that the style rules replace.
//!
//! Left out are names that are right for another item: `Run`, `View`, `Turn`, `Request`, `Flags`, `Mark`,
//! `RunningApp`, `McpServer`. Participles as names of functions are allowed where Rust uses them (`cancelled`,
//! `closed`, `changed`).

use super::{limits::Kind, phrases::Phrases};

/// Types. Single participles that end in "ed" are forbidden without being listed.
const TYPES: &str = "
    AgentMoment AgentWord Aftermath Again Aside Asides Asking AtWork Beginning Beginnings Begun Below Beside Births
    Calling Came CameBack Chosen Clarity Coming Course Done Elsewhere Existing Far First Fitting Following Foreseen
    ForeseenCall Found Given Goes GoingOn Gone HandedOver Heard HeardAfter HeardBefore Held HookPatience HowMany Hunt
    Ignoring Keeper Keeping Known Lean Led Left LeftCall LeftOut Looseness Lost Made Meant Met Misfit More Next Nobody
    NotHere NotPut NotTaken Once One Ongoing Only Others Ours Outliving PassedOver PlainWords Place Places ProviderVoices
    Purse Ran Reach RemedyWords Said Seen Sent Shop Shown ShownBelow Somebody Spent Taken Takes Touches Touching Tried
    Trying Unattended Understood Unfit Until UntilStopped Way WhileItLasts Whole Wish InvalidWish Within Worn WornFace
    Written Wrong Yes";
/// Words that end in "ed" and are no participles.
const NOUNS: [&str; 6] = ["Bed", "Embed", "Feed", "Need", "Seed", "Speed"];

const MODULES: &str = "
    answered aside asides assigned at_work begun beside births bounded called closed_by_profile confined elsewhere
    fetched fitting folded forwarded given gone granted held here_text in_the_clear judged keeper keeping known landlocked
    lasting_home may_ask meaning misfit moved offered ongoing others outliving passed_time patched place places printed
    quoted reach remembered said sampled seen served shown stragglers understood unread unseen watched way wish worn_face";

const FUNCTIONS: &str = "
    alike anything apart as_ours as_wanted aside asks_nobody begun beside birth born both came elsewhere everything few
    foresee foreseen given go goes goes_on gone handed_over handed_over_in hear heard hears is_given is_gone is_heard
    is_left is_ours is_said is_said_by_tool is_theirs is_there is_wanted is_whole lean led lets_a_call_in lose lost made
    may_be_meant meant nothing one other others ours patient_for put_all_right put_list_right put_lists_right
    put_new_right put_right said said_by_tool said_text saw say saying says seen somebody stragglers taken takes theirs
    there want wanted wants way whole wish worn yes";

/// Returns `true` if an item of this kind may not have this name.
pub(super) fn is_forbidden(kind: Kind, name: &str, phrases: &Phrases) -> bool {
    let words = words(name);
    let is_listed = |names: &str| names.split_whitespace().any(|listed| listed == name);
    let is_participle = || words.len() == 1 && name.ends_with("ed") && !NOUNS.contains(&name);
    let is_empty_name = match kind {
        Kind::Types => is_listed(TYPES) || is_participle(),
        Kind::Modules => is_listed(MODULES),
        Kind::Functions => is_listed(FUNCTIONS),
        Kind::Questions | Kind::Phrases => false,
    };
    is_empty_name || !phrases.find(&words).is_empty()
}

/// Splits `CamelCase` and `snake_case` into lower-case words.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut begins = true;
    for letter in name.chars() {
        if letter == '_' {
            begins = true;
        } else if begins || letter.is_uppercase() {
            words.push(letter.to_lowercase().collect());
            begins = false;
        } else if let Some(word) = words.last_mut() {
            word.push(letter);
        }
    }
    words
}

#[test]
fn vague_names_and_names_with_a_forbidden_phrase_are_rejected() {
    let phrases = Phrases::new();
    for (kind, name, expected) in [
        (Kind::Types, "Kept", true),
        (Kind::Types, "KeptContent", true),
        (Kind::Types, "Resolved", true),
        (Kind::Types, "ResolvedPath", false),
        (Kind::Types, "Feed", false),
        (Kind::Types, "Wish", true),
        (Kind::Types, "NewsStream", true),
        (Kind::Types, "ShutdownSignal", false),
        (Kind::Modules, "elsewhere", true),
        (Kind::Modules, "told_notes", true),
        (Kind::Modules, "seen_files", true),
        (Kind::Modules, "retention_clock", false),
        (Kind::Functions, "told", true),
        (Kind::Functions, "session_goes_on", true),
        (Kind::Functions, "take_back", true),
        (Kind::Functions, "cancelled", false),
        (Kind::Functions, "tell_apart", true),
        (Kind::Functions, "remove_hop_by_hop", false),
        (Kind::Functions, "wait_for_tasks", false),
    ] {
        assert_eq!(is_forbidden(kind, name, &phrases), expected, "{name}");
    }
}
