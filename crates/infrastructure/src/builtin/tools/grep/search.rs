//! Runs a search. Few matches are searched again for their context; without matches, ignored and hidden files are
//! searched.

use crate::{
    builtin::{
        files::{
            file_filter::{ActiveIgnoreRules, IgnoreOptions, SkipReason},
            file_limits::FileLimits,
            source::FileOrOutput,
        },
        text::wording::DisplayPathPrefix,
        tools::grep::{
            Input, OutputMode,
            findings::{Findings, FindingsSource, SearchBudget},
            plan::SearchPlan,
        },
    },
    sandbox::workspace::{
        facts::FileKind,
        file_handle::FileHandle,
        granted_workspace::GrantedWorkspace,
        stop::StopCondition,
        walk::{Visitor, WalkControl, WalkEntry, WalkFolder, WalkOptions, WalkOrder, WalkSummary},
    },
};
use std::{
    io::Read,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use toolstead_domain::{StoredContent, Timestamp, ToolFailure};

/// Maximum depth of folders. Paths cannot be much deeper.
const MAX_DEPTH: usize = 2048;
/// Maximum number of matches that are shown with context, if the caller did not choose an output mode.
const FEW: usize = 3;
/// Maximum number of characters that at most [`FEW`] matches take with their context.
const MAX_FEW_CHARS: usize = 8000;
/// Timeout of the search in ignored and hidden files.
const ASIDE_TIME: Duration = Duration::from_millis(500);

/// Result of a search.
#[derive(Default)]
pub(super) struct SearchResult {
    pub(super) findings: Findings,
    pub(super) walked: WalkSummary,
    /// Number of entries that are hidden or excluded by ignore files.
    pub(super) passed_over: usize,
    /// Matches in the hidden and ignored entries; `None` if there are other matches, or those entries were not
    /// searched.
    pub(super) excluded: Option<ExcludedMatches>,
    /// All matches with context, if there are few and the caller did not choose an output mode.
    pub(super) few: Option<Findings>,
}

/// Number of matches in ignored and hidden files.
pub(super) struct ExcludedMatches {
    pub(super) lines: u64,
    pub(super) files: usize,
    /// `true` if all ignored and hidden files were searched, so that the numbers are complete.
    pub(super) is_whole: bool,
}

pub(super) fn run(
    files: &GrantedWorkspace,
    source: FileOrOutput,
    input: &Input,
    limits: &FileLimits,
) -> Result<SearchResult, ToolFailure> {
    let files = &files.with_stop(files.stop().within(Duration::from_secs(limits.search_seconds)));
    let name = source.name(files);
    let mut output = None;
    let mut searched = match source {
        FileOrOutput::File(found) if found.facts().kind == FileKind::Folder => {
            let mut searched = in_folder(files, &found, input, limits)?;
            let is_done = searched.walked.ended.is_none() && searched.findings.ended.is_none();
            if searched.findings.files.is_empty() && searched.passed_over > 0 && is_done {
                searched.excluded = count_excluded_matches(files, &found, input, limits);
            }
            searched
        }
        // A file that the caller names is searched regardless of the filters.
        FileOrOutput::File(found) => {
            let place = FindingsSource { shown: name.clone(), lexical: found.path().lexical.clone() };
            in_one(
                files,
                place,
                found.open_file()?,
                found.facts().modified,
                &SearchPlan::for_single_file(input)?,
                limits,
            )
        }
        FileOrOutput::Output(_, content) => {
            let place = FindingsSource { shown: name.clone(), lexical: PathBuf::new() };
            in_one(files, place, output.insert(content), Timestamp(0), &SearchPlan::for_single_file(input)?, limits)
        }
    };
    searched.findings.sort();
    if input.output_mode.is_none() {
        searched.few = find_with_context(files, &searched.findings, output, input, limits);
    }
    Ok(searched)
}

fn in_folder(
    files: &GrantedWorkspace,
    folder: &FileHandle,
    input: &Input,
    limits: &FileLimits,
) -> Result<SearchResult, ToolFailure> {
    let plan = SearchPlan::of(input, &folder.path().lexical)?;
    let filter = IgnoreOptions { show_hidden: input.show_hidden, respect_ignore_files: !input.no_ignore };
    let bounds = SearchBudget::new(limits.search_hits);
    let shown = DisplayPathPrefix::of(&files.workspace().shown(&folder.path().lexical));
    let passed_over = AtomicUsize::new(0);
    let search = SearchVisitor { stop: files.stop(), plan: &plan, filter, bounds: &bounds, shown, passed_over };
    let walk = WalkOptions { entries: limits.search_entries, depth: MAX_DEPTH, order: WalkOrder::AnyOrder };
    let (walked, parts) = files.walk(folder, walk, filter.above(files, folder), &search)?;
    let mut findings = Findings::default();
    for part in parts {
        findings.absorb(part.findings);
    }
    Ok(SearchResult { findings, walked, passed_over: search.passed_over.into_inner(), ..SearchResult::default() })
}

fn in_one(
    files: &GrantedWorkspace,
    place: FindingsSource,
    content: impl Read,
    modified: Timestamp,
    plan: &SearchPlan,
    limits: &FileLimits,
) -> SearchResult {
    let bounds = SearchBudget::new(limits.search_hits);
    let mut worker = plan.worker();
    worker.search(content, modified, || place, &bounds, files.stop());
    SearchResult { findings: worker.findings, ..SearchResult::default() }
}

/// Searches everything for a short time, including ignored and hidden files, and returns the number of matches. Returns
/// `None` if the search fails.
fn count_excluded_matches(
    files: &GrantedWorkspace,
    folder: &FileHandle,
    input: &Input,
    limits: &FileLimits,
) -> Option<ExcludedMatches> {
    let files = files.with_stop(files.stop().within(ASIDE_TIME));
    let input = Input { no_ignore: true, show_hidden: true, output_mode: Some(OutputMode::Count), ..input.clone() };
    let SearchResult { findings, walked, .. } = in_folder(&files, folder, &input, limits).ok()?;
    let is_whole = walked.ended.is_none() && findings.ended.is_none();
    Some(ExcludedMatches { lines: findings.total_matches, files: findings.files.len(), is_whole })
}

/// Searches a few matches again and returns them with context, which saves the caller another call. Reads from the
/// stored output if there is one, otherwise from the files. Returns `None` if there is no match, there are too many,
/// the search was incomplete, or the content cannot be read.
fn find_with_context(
    files: &GrantedWorkspace,
    found: &Findings,
    mut output: Option<Box<dyn StoredContent>>,
    input: &Input,
    limits: &FileLimits,
) -> Option<Findings> {
    // More matches than the caller's `head_limit` are not shown in this form either.
    let few = FEW.min(input.head_limit.filter(|limit| *limit > 0).unwrap_or(FEW));
    if found.files.is_empty() || found.files.len() > few || found.ended.is_some() || input.offset > 0 {
        return None;
    }
    let mut around = |context: usize| {
        let input = Input {
            output_mode: Some(OutputMode::Content),
            context: Some(context),
            before: None,
            after: None,
            ..input.clone()
        };
        let plan = SearchPlan::for_single_file(&input).ok()?;
        let mut gathered = Findings::default();
        for file in &found.files {
            let mut opened;
            let content: &mut dyn Read = match &mut output {
                Some(output) => {
                    output.rewind().ok()?;
                    output
                }
                // Opens the full path: the displayed one could be read as a handle or as the home folder.
                None => {
                    opened = files.find_lexical(&file.place.lexical).ok()?.open_file().ok()?;
                    &mut opened
                }
            };
            gathered.absorb(in_one(files, file.place.clone(), content, file.modified, &plan, limits).findings);
            if gathered.total_matches > few as u64 {
                return None;
            }
        }
        Some(gathered).filter(|gathered| gathered.ended.is_none())
    };
    let bare = around(0)?;
    let wide = if bare.total_matches == 1 { 20 } else { 7 };
    let wanted = input.context.or(input.before).or(input.after);
    let contexts = wanted.map_or([wide, 2], |own| [own, own]);
    contexts.into_iter().filter_map(around).find(|few| few.chars() <= MAX_FEW_CHARS).or(Some(bare))
}

struct SearchVisitor<'a> {
    stop: &'a StopCondition,
    shown: DisplayPathPrefix,
    plan: &'a SearchPlan,
    filter: IgnoreOptions,
    bounds: &'a SearchBudget,
    passed_over: AtomicUsize,
}

impl Visitor for SearchVisitor<'_> {
    type Context = ActiveIgnoreRules;
    type Worker = super::findings::Worker;

    fn worker(&self) -> Self::Worker {
        self.plan.worker()
    }

    fn enter(&self, folder: &WalkFolder<'_>, above: &ActiveIgnoreRules) -> ActiveIgnoreRules {
        self.filter.enter(folder, above)
    }

    fn visit_entry(
        &self,
        worker: &mut Self::Worker,
        entry: &WalkEntry<'_>,
        ignoring: &ActiveIgnoreRules,
    ) -> WalkControl {
        match self.filter.skip_reason(entry, ignoring) {
            None => {}
            Some(SkipReason::Ignored | SkipReason::Hidden) => {
                self.passed_over.fetch_add(1, Ordering::Relaxed);
                return WalkControl::Skip;
            }
            Some(SkipReason::VersionControl) => return WalkControl::Skip,
        }
        let is_folder = entry.kind() == FileKind::Folder;
        if !self.plan.is_included(&entry.path().lexical, is_folder) {
            return WalkControl::Skip;
        }
        // Links are not searched: their targets are, and no match is found twice.
        if entry.kind() != FileKind::File {
            return WalkControl::Continue;
        }
        match entry.open() {
            Ok((file, facts)) => {
                let place =
                    || FindingsSource { shown: self.shown.path(entry.below()), lexical: entry.path().lexical.clone() };
                worker.search(file, facts.modified, place, self.bounds, self.stop);
            }
            Err(_) => worker.findings.unreadable_files += 1,
        }
        if worker.findings.ended.is_some() { WalkControl::Stop } else { WalkControl::Continue }
    }
}
