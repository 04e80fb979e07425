//! One search: the walk, a second look where little was found, and a look aside where nothing was.

use crate::{
    builtin::{
        files::{
            file_filter::{FileFilter, Ignoring, PassedOver},
            file_limits::FileLimits,
            source::Source,
        },
        text::wording::ShownBelow,
        tools::grep::{
            Input, OutputMode,
            findings::{Bounds, Findings, Place},
            plan::Plan,
        },
    },
    sandbox::workspace::{
        facts::FileKind,
        found::Found,
        granted::GrantedWorkspace,
        stop::Stop,
        walk::{Entry, Folder, Visit, Visitor, WalkLimits, WalkOrder, Walked},
    },
};
use std::{
    io::Read,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use toolstead_domain::{
    ports::{clock::Timestamp, output_store::StoredContent},
    tool_failure::ToolFailure,
};

/// Paths cannot be much deeper.
const MAX_DEPTH: usize = 2048;
/// As many matches are shown with what stands around them where the caller left it open what to show.
const FEW: usize = 3;
/// What is shown around them is no longer, in characters.
const MAX_FEW_CHARS: usize = 8000;
/// A look into what is passed over ends then.
const ASIDE_TIME: Duration = Duration::from_millis(500);

/// What a search came to.
#[derive(Default)]
pub(super) struct Searched {
    pub(super) findings: Findings,
    pub(super) walked: Walked,
    /// Entries that ignore files leave out, or that are hidden.
    pub(super) passed_over: usize,
    /// What there would be to find in those, if nothing else was found.
    pub(super) aside: Option<Aside>,
    /// All matches with what stands around them, where there are few and the caller left it open what to show.
    pub(super) few: Option<Findings>,
}

/// What a look into the passed-over files found.
pub(super) struct Aside {
    pub(super) lines: u64,
    pub(super) files: usize,
    /// Whether it saw all of them.
    pub(super) is_whole: bool,
}

pub(super) fn run(
    files: &GrantedWorkspace,
    source: Source,
    input: &Input,
    limits: &FileLimits,
) -> Result<Searched, ToolFailure> {
    let files = &files.with_stop(files.stop().within(Duration::from_secs(limits.search_seconds)));
    let name = source.name(files);
    let mut output = None;
    let mut searched = match source {
        Source::File(found) if found.facts().kind == FileKind::Folder => {
            let mut searched = in_folder(files, &found, input, limits)?;
            let is_done = searched.walked.ended.is_none() && searched.findings.ended.is_none();
            if searched.findings.files.is_empty() && searched.passed_over > 0 && is_done {
                searched.aside = aside(files, &found, input, limits);
            }
            searched
        }
        // A file that is named is searched whatever the filters say.
        Source::File(found) => {
            let place = Place { shown: name.clone(), lexical: found.path().lexical.clone() };
            in_one(files, place, found.open_file()?, found.facts().modified, &Plan::of_one(input)?, limits)
        }
        Source::Output(_, content) => {
            let place = Place { shown: name.clone(), lexical: PathBuf::new() };
            in_one(files, place, output.insert(content), Timestamp(0), &Plan::of_one(input)?, limits)
        }
    };
    searched.findings.sort();
    if input.output_mode.is_none() {
        searched.few = few(files, &searched.findings, output, input, limits);
    }
    Ok(searched)
}

fn in_folder(
    files: &GrantedWorkspace,
    folder: &Found,
    input: &Input,
    limits: &FileLimits,
) -> Result<Searched, ToolFailure> {
    let plan = Plan::of(input, &folder.path().lexical)?;
    let filter = FileFilter { show_hidden: input.show_hidden, respect_ignore_files: !input.no_ignore };
    let bounds = Bounds::new(limits.search_hits);
    let shown = ShownBelow::of(&files.workspace().shown(&folder.path().lexical));
    let passed_over = AtomicUsize::new(0);
    let search = Search { stop: files.stop(), plan: &plan, filter, bounds: &bounds, shown, passed_over };
    let walk = WalkLimits { entries: limits.search_entries, depth: MAX_DEPTH, order: WalkOrder::AnyOrder };
    let (walked, parts) = files.walk(folder, walk, filter.above(files, folder), &search)?;
    let mut findings = Findings::default();
    for part in parts {
        findings.absorb(part.findings);
    }
    Ok(Searched { findings, walked, passed_over: search.passed_over.into_inner(), ..Searched::default() })
}

fn in_one(
    files: &GrantedWorkspace,
    place: Place,
    content: impl Read,
    modified: Timestamp,
    plan: &Plan,
    limits: &FileLimits,
) -> Searched {
    let bounds = Bounds::new(limits.search_hits);
    let mut worker = plan.worker();
    worker.search(content, modified, || place, &bounds, files.stop());
    Searched { findings: worker.findings, ..Searched::default() }
}

/// Looks for the same in everything, whatever ignore files say, to tell whether it is worth asking for.
fn aside(files: &GrantedWorkspace, folder: &Found, input: &Input, limits: &FileLimits) -> Option<Aside> {
    let files = files.with_stop(files.stop().within(ASIDE_TIME));
    let input = Input { no_ignore: true, show_hidden: true, output_mode: Some(OutputMode::Count), ..input.clone() };
    let Searched { findings, walked, .. } = in_folder(&files, folder, &input, limits).ok()?;
    let is_whole = walked.ended.is_none() && findings.ended.is_none();
    Some(Aside { lines: findings.total_matches, files: findings.files.len(), is_whole })
}

/// The matches with what stands around them, if there are few: a caller who gets them needs not ask again. They are of
/// the stored output, if there is one, or else of files.
fn few(
    files: &GrantedWorkspace,
    found: &Findings,
    mut output: Option<Box<dyn StoredContent>>,
    input: &Input,
    limits: &FileLimits,
) -> Option<Findings> {
    // What the caller wants no more of than that is not shown in another form.
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
        let plan = Plan::of_one(&input).ok()?;
        let mut gathered = Findings::default();
        for file in &found.files {
            let mut opened;
            let content: &mut dyn Read = match &mut output {
                Some(output) => {
                    output.rewind().ok()?;
                    output
                }
                // The path is what it is: text that is shown could be taken for a handle or for the home folder.
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

struct Search<'a> {
    stop: &'a Stop,
    shown: ShownBelow,
    plan: &'a Plan,
    filter: FileFilter,
    bounds: &'a Bounds,
    passed_over: AtomicUsize,
}

impl Visitor for Search<'_> {
    type Context = Ignoring;
    type Worker = super::findings::Worker;

    fn worker(&self) -> Self::Worker {
        self.plan.worker()
    }

    fn enter(&self, folder: &Folder<'_>, above: &Ignoring) -> Ignoring {
        self.filter.enter(folder, above)
    }

    fn meet(&self, worker: &mut Self::Worker, entry: &Entry<'_>, ignoring: &Ignoring) -> Visit {
        match self.filter.passes_over(entry, ignoring) {
            None => {}
            Some(PassedOver::Ignored | PassedOver::Hidden) => {
                self.passed_over.fetch_add(1, Ordering::Relaxed);
                return Visit::Skip;
            }
            Some(PassedOver::VersionControl) => return Visit::Skip,
        }
        let is_folder = entry.kind() == FileKind::Folder;
        if !self.plan.is_wanted(&entry.path().lexical, is_folder) {
            return Visit::Skip;
        }
        // Links are left to what they lead to, so that nothing is found twice.
        if entry.kind() != FileKind::File {
            return Visit::Continue;
        }
        match entry.open() {
            Ok((file, facts)) => {
                let place = || Place { shown: self.shown.path(entry.below()), lexical: entry.path().lexical.clone() };
                worker.search(file, facts.modified, place, self.bounds, self.stop);
            }
            Err(_) => worker.findings.unreadable_files += 1,
        }
        if worker.findings.ended.is_some() { Visit::Stop } else { Visit::Continue }
    }
}
