//! Files that `mkdir`, `touch`, `rm`, `mv` and `cp` change, if all of them are literal.

use super::classified_command::{ClassifiedCommand, FileOperand};
use crate::shell_analysis::{catalogue::may_be_an_option, word::Word};

/// Programs whose operands are files, with the letters of the options that do not change that.
const PROGRAMS: &[(&str, &str)] =
    &[("cp", "Rrafvnpiu"), ("mkdir", "pv"), ("mv", "fvni"), ("rm", "rRfivd"), ("rmdir", "v"), ("touch", "acm")];

/// Returns `true` if the program does nothing but change the files that it names.
pub(in crate::shell_analysis) fn only_changes_files(program: &str) -> bool {
    PROGRAMS.iter().any(|(name, _)| *name == program)
}

/// Returns `true` if an option can make this program change files other than its operands.
fn options_name_files(program: &str) -> bool {
    matches!(program, "cp" | "mv")
}

/// Adds to `result` the files that a `cp`, `mkdir`, `mv`, `rm`, `rmdir` or `touch` reads or changes; does nothing for
/// other programs. If one of the files is unknown, the command is no longer plain, because its rule is about files.
pub(super) fn of(words: &[Word], result: &mut ClassifiedCommand) {
    let Some((name, letters)) = PROGRAMS.iter().find(|(name, _)| *name == words[0].text) else { return };
    let mut options = String::new();
    let mut paths = Vec::new();
    let mut only_operands = false;
    for word in &words[1..] {
        let text = word.text.as_str();
        if !only_operands && text == "--" {
            only_operands = true;
        } else if !only_operands && text.starts_with('-') && text.len() > 1 {
            options.push_str(&text[1..]);
            if word.literal().is_none() || !text[1..].chars().all(|letter| letters.contains(letter)) {
                return result.mark_exact(format!("it is unknown which files this form of {name} changes"));
            }
        } else if !only_operands && options_name_files(name) && word.file_names_start().is_some_and(may_be_an_option) {
            return result.mark_exact("a file's name may be taken for an option");
        } else if word.tilde || word.dynamic.is_some() || text.is_empty() {
            return result.mark_exact("the files that it changes are known only when it runs");
        } else {
            paths.push(word);
        }
    }
    let recursive = options.contains(['r', 'R', 'a']) && *name != "touch";
    let at = |word: &Word, writes: bool, tree: bool| {
        // A pattern can match anything in the folder before its first wildcard.
        let path = if word.glob {
            let fixed = word.text.find(['*', '?', '[']).unwrap_or(0);
            word.text[..fixed].rfind('/').map_or(".", |slash| &word.text[..=slash])
        } else {
            &word.text
        };
        FileOperand { path: path.to_owned(), writes, tree: tree || word.glob }
    };
    match (*name, paths.as_slice()) {
        ("cp" | "mv", [sources @ .., target]) if !sources.is_empty() => {
            let moves = *name == "mv";
            result.operands.extend(sources.iter().map(|source| at(source, moves, moves || recursive)));
            let many = sources.iter().any(|source| source.glob);
            result.operands.push(at(target, true, recursive || moves || many));
            // The sources end up in the target if that is a folder.
            for source in sources.iter().filter(|source| !source.glob && !target.glob) {
                if let Some(leaf) =
                    source.text.trim_end_matches('/').rsplit('/').next().filter(|leaf| !matches!(*leaf, "." | ".."))
                {
                    let path = format!("{}/{leaf}", target.text.trim_end_matches('/'));
                    result.operands.push(FileOperand { path, writes: true, tree: recursive || moves });
                }
            }
        }
        _ => result.operands.extend(paths.iter().map(|path| at(path, true, recursive))),
    }
}
