//! Arguments that may be or contain a shell text. All of them are read for deny rules.

use super::classified_command::{ClassificationContext, ClassifiedCommand, UnquotedWords, texts};
use crate::shell_analysis::{
    analysis::Analysis,
    catalogue::{bare, known_as, program},
    word::Word,
};
use toolstead_domain::ParseConfidence;

/// Maximum number of words in a command whose suffixes are all read. A command with more is opaque.
const MAX_SUFFIX_WORDS: usize = 256;

/// Maximum number of values in one word. Each value may extend to the end of the word, so reading them takes quadratic
/// time.
const MAX_VALUES: usize = 256;

/// Positions within a group of short options where a value may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttachedOptionValueStart {
    Nowhere,
    BehindTheFirst,
    Anywhere,
}

/// Adds every suffix of the argument list as a reading, as written and with the bare name of its program. If there are
/// too many, it marks the command as opaque instead and returns `false`.
pub(super) fn read_every_suffix(words: &[Word], result: &mut ClassifiedCommand) -> bool {
    if words.len() > MAX_SUFFIX_WORDS {
        result.mark_opaque("it has too many arguments to determine which of them it starts");
        return false;
    }
    let texts = texts(words);
    for at in 1..texts.len() {
        let mut reading: UnquotedWords = texts[at..].to_vec();
        let name = bare(&texts[at]).to_owned();
        if name.is_empty() {
            continue;
        }
        if *name != *texts[at] {
            result.add_reading(reading.clone());
        }
        reading[0] = name.into();
        result.add_reading(reading);
    }
    true
}

/// Analyses every argument that could be a shell text.
pub(super) fn read_texts(words: &[Word], scope: &ClassificationContext<'_>, result: &mut ClassifiedCommand) {
    let hands_texts_on = program(&words[0].text).wrapper().is_some_and(|wrapper| wrapper.hands_texts_on);
    for word in &words[1..] {
        let text = word.text.as_str();
        if text.contains([' ', '\t', '\n', ';', '|', '&', '$', '`', '(']) {
            inner(text, scope, hands_texts_on, result);
        }
    }
}

/// Analyses values within arguments as shell texts: `--to-command=rm`, `alias.x=!rm`, `EXEC:rm`, `rm,x`, `-Irm`. A word
/// with more than [`MAX_VALUES`] places where a value may begin makes the command opaque.
pub(super) fn read_values(
    words: &[Word],
    scope: &ClassificationContext<'_>,
    glued: AttachedOptionValueStart,
    result: &mut ClassifiedCommand,
) {
    // `1erm x` is a sed script.
    let of_sed = known_as(&words[0].text) == "sed";
    let separators: &[char] = if of_sed { &['=', ':', '!', 'e'] } else { &['=', ':', '!'] };
    for word in &words[1..] {
        let text = word.text.as_str();
        let group = text.strip_prefix('-').filter(|group| !group.starts_with('-')).unwrap_or_default();
        let glued = match glued {
            AttachedOptionValueStart::Nowhere => 0,
            AttachedOptionValueStart::BehindTheFirst => 1,
            AttachedOptionValueStart::Anywhere => group.len(),
        };
        if text.matches(separators).nth(MAX_VALUES).is_some() || glued > MAX_VALUES {
            return result
                .mark_opaque(format!("a word of it holds more than {MAX_VALUES} places where a value may begin"));
        }
        for (at, separator) in text.match_indices(separators) {
            let value = &text[at + separator.len()..];
            read_value(value, scope, separator == "=" && value.starts_with('!'), result);
        }
        if let Some((program, _)) = text.split_once(',') {
            read_value(program, scope, false, result);
        }
        for (at, _) in group.char_indices().skip(1).take(glued) {
            read_value(&group[at..], scope, false, result);
        }
    }
}

/// Analyses quoted parts of texts in other languages as shell texts: `system("rm x")`.
pub(super) fn read_quoted(words: &[Word], scope: &ClassificationContext<'_>, result: &mut ClassifiedCommand) {
    for word in &words[1..] {
        for part in word.text.split(['"', '\'', '`']).skip(1) {
            read_value(part, scope, false, result);
        }
    }
}

/// Analyses a value as a shell text. `surely` is `true` if it is certain that the value is run.
pub(super) fn read_value(value: &str, scope: &ClassificationContext<'_>, surely: bool, result: &mut ClassifiedCommand) {
    let value = value.strip_prefix('!').unwrap_or(value);
    if value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-+/".contains(&byte)) {
        // A single word needs no further analysis.
        if !value.is_empty() {
            result.add_reading(vec![bare(value).into()]);
        }
        return;
    }
    inner(value, scope, surely, result);
}

/// Analyses a shell text and adds its commands as readings. `surely` is `true` if it is certain that the text is run.
pub(super) fn inner(text: &str, scope: &ClassificationContext<'_>, surely: bool, result: &mut ClassifiedCommand) {
    let analysis = scope.analyse_within(text);
    let unclear = analysis.commands.iter().find_map(|command| match &command.clarity {
        ParseConfidence::Opaque(reason) => Some(reason.clone()),
        _ => None,
    });
    // A part that a limit cut off may contain a command that a deny rule matches.
    if let (Some(reason), true) = (unclear, surely || scope.limits.is_exceeded()) {
        result.mark_opaque(format!("in the text that it runs: {reason}"));
    }
    let readings = analysis.commands.iter().flat_map(|command| command.readings.iter().chain([&command.words]));
    if !scope.limits.take_readings(readings.map(|words| words.len()).sum()) {
        return result.mark_opaque("the texts within it have too many words to determine which of them it starts");
    }
    if surely {
        result.add_nested(analysis);
    } else {
        result.add_nested(Analysis { file_accesses: Vec::new(), ..analysis });
    }
}
