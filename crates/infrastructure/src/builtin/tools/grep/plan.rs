//! Compiles the pattern and the file filters of a search.

use crate::builtin::tools::grep::{
    Input, OutputMode,
    findings::{Findings, Worker},
};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, SearcherBuilder};
use ignore::{
    overrides::{Override, OverrideBuilder},
    types::{Types, TypesBuilder},
};
use std::path::Path;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Maximum size of a compiled pattern, in bytes.
const MAX_PROGRAM_BYTES: usize = 10 << 20;
/// Maximum length in bytes of a searched line, or of a searched file if matches may span lines.
const MAX_BUFFER_BYTES: usize = 16 << 20;

/// Compiled pattern, file filters and settings of a search.
#[derive(Debug)]
pub(super) struct SearchPlan {
    matcher: RegexMatcher,
    searcher: SearcherBuilder,
    mode: OutputMode,
    only_matching: bool,
    globs: Override,
    types: Option<Types>,
}

impl SearchPlan {
    /// Compiles a search whose globs are anchored at `start`.
    pub(super) fn of(input: &Input, start: &Path) -> Result<Self, ToolFailure> {
        Ok(Self {
            matcher: matcher(input)?,
            searcher: searcher(input),
            mode: input.mode(),
            only_matching: input.only_matching,
            globs: globs(input, start)?,
            types: types(input)?,
        })
    }

    /// Compiles the search of a single named file, to which no glob applies.
    pub(super) fn for_single_file(input: &Input) -> Result<Self, ToolFailure> {
        Self::of(input, Path::new("/"))
    }

    /// Returns `true` if the globs and file types let this file be searched, or this folder be entered.
    pub(super) fn is_included(&self, path: &Path, is_folder: bool) -> bool {
        if self.globs.matched(path, is_folder).is_ignore() {
            return false;
        }
        is_folder || self.types.as_ref().is_none_or(|types| types.matched(path, false).is_whitelist())
    }

    /// Creates the worker of one thread. It shares nothing with other workers, so that none waits.
    pub(super) fn worker(&self) -> Worker {
        Worker {
            matcher: self.matcher.clone(),
            searcher: self.searcher.build(),
            mode: self.mode,
            only_matching: self.only_matching,
            findings: Findings::default(),
        }
    }
}

fn searcher(input: &Input) -> SearcherBuilder {
    let is_content = input.mode() == OutputMode::Content;
    let around = |own: Option<usize>| match is_content && !input.only_matching {
        true => own.or(input.context).unwrap_or(0),
        false => 0,
    };
    let mut searcher = SearcherBuilder::new();
    searcher
        .line_number(is_content)
        .multi_line(input.multiline)
        .before_context(around(input.before))
        .after_context(around(input.after))
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_BUFFER_BYTES));
    searcher
}

fn matcher(input: &Input) -> Result<RegexMatcher, ToolFailure> {
    if input.pattern.contains('\0') {
        return Err(ToolFailure::new(ErrorKind::InvalidInput, "`pattern` contains a NUL character")
            .next("Files that contain one are binary and not searched; leave it out."));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(input.ignore_case)
        .fixed_strings(input.fixed_strings)
        .multi_line(true)
        .dot_matches_new_line(input.multiline)
        .size_limit(MAX_PROGRAM_BYTES)
        .dfa_size_limit(MAX_PROGRAM_BYTES);
    if !input.multiline {
        // Lets the engine work line by line, with `$` before a carriage return as well.
        builder.crlf(true).line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| {
        let failure =
            ToolFailure::new(ErrorKind::InvalidInput, format!("`{}` cannot be searched for: {error}", input.pattern));
        let has_backreference = (b'1'..=b'9').any(|digit| input.pattern.contains(&format!("\\{}", char::from(digit))));
        let has_look_around = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| input.pattern.contains(group));
        if has_backreference {
            failure.next("Backreferences are not supported; search for the first part, and filter the results.")
        } else if has_look_around {
            failure.next("Look-around is not supported; search without it, and filter the results.")
        } else if !input.multiline && (input.pattern.contains("\\n") || input.pattern.contains('\n')) {
            failure.next("Set `multiline` to match across lines.")
        } else {
            failure.next("Set `fixed_strings` to search for the literal text.")
        }
    })
}

fn globs(input: &Input, start: &Path) -> Result<Override, ToolFailure> {
    let wrong = |error: ignore::Error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("`glob` cannot be used: {error}"))
            .next("Give patterns like \"*.rs\" or \"src/**/*.{ts,tsx}\".")
    };
    if input.glob.as_ref().is_some_and(|glob| glob.contains('\0')) {
        return Err(ToolFailure::new(ErrorKind::InvalidInput, "`glob` contains a NUL character")
            .next("File names never do; leave it out."));
    }
    let mut builder = OverrideBuilder::new(start);
    for glob in separated(input.glob.as_deref().unwrap_or_default()) {
        builder.add(&glob).map_err(wrong)?;
    }
    builder.build().map_err(wrong)
}

/// Splits a list of globs at commas. A comma in braces or after a backslash belongs to its pattern. A space is part of
/// a name; it separates patterns only if each part is recognizably a pattern.
pub(super) fn separated(list: &str) -> Vec<String> {
    let by_commas = split(list, ',').into_iter().map(|pattern| pattern.trim().to_owned());
    let by_blanks = by_commas.flat_map(|pattern| {
        let words: Vec<String> = split(&pattern, ' ').into_iter().filter(|word| !word.is_empty()).collect();
        let are_patterns = words.iter().all(|word| word.starts_with('!') || word.contains(['*', '?', '[', '{']));
        if are_patterns { words } else { vec![pattern] }
    });
    by_blanks.filter(|pattern| !pattern.is_empty()).collect()
}

/// Splits a list at the separators that are neither in braces nor after a backslash.
fn split(list: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut is_escaped) = (0_usize, false);
    for c in list.chars() {
        match c {
            _ if is_escaped => {}
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if c == separator && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

fn types(input: &Input) -> Result<Option<Types>, ToolFailure> {
    let Some(name) = &input.file_type else { return Ok(None) };
    let types = TypesBuilder::new().add_defaults().select(name).build().map_err(|error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("`file_type` cannot be used: {error}"))
            .next("Use ripgrep's names, like \"rust\", \"py\", \"js\" or \"md\", or use `glob`.")
    })?;
    Ok(Some(types))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_globs_is_split_into_its_patterns() {
        assert_eq!(separated("*.rs, *.{ts,tsx} !x"), ["*.rs", "*.{ts,tsx}", "!x"]);
        assert_eq!(separated(" ,"), Vec::<String>::new());
        assert_eq!(separated("}a,b{c,d"), ["}a", "b{c,d"]);
        assert_eq!(separated("e f.txt"), ["e f.txt"]);
        assert_eq!(separated("my *.txt, !a b.md"), ["my *.txt", "!a b.md"]);
        assert_eq!(separated("*.{a b,c} *.d"), ["*.{a b,c}", "*.d"]);
        assert_eq!(separated(r"a\,b*,c\ d* e*"), [r"a\,b*", r"c\ d*", "e*"]);
    }
}
