//! The tool `write_file`.

use crate::{
    builtin::{
        files::{
            appending::append_text,
            change_set::{ChangeSet, ChangedFile, recording::ChangeRecorder},
            etag::etag,
            written_file::{diff_of, etag_of, notes, only},
        },
        text::{
            line_ending::in_lines,
            text_edit::{DecodedFile, lacking},
            wording::counted,
        },
        tool_kit::{
            answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::workspace::{granted_workspace::GrantedWorkspace, write::WriteOptions},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{
    Access, Category, ContentDigest, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Value of `if_match` for a file that must not exist.
const ABSENT: &str = "absent";
/// Value of `if_match` for a file that this session must have read, if it exists.
const READ: &str = "read";

/// Tool that writes a whole file.
pub(crate) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the file: absolute, or relative to the working directory.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// The whole content, written as UTF-8, exactly as given. Without it, a missing file is created empty.
    #[schemars(extend("x-advertised" = ""))]
    content: Option<String>,
    /// Create missing folders.
    #[serde(default = "default_true")]
    #[schemars(extend("x-advertised" = false))]
    create_dirs: bool,
    /// Action if the file exists.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    if_exists: IfExists,
    /// Write only if the file still has this etag; "absent": only if it does not exist; "read": only if this session
    /// has read its current content, or it does not exist.
    #[schemars(regex(pattern = r"^(absent|read|[0-9a-f]{16,64})$"))]
    #[schemars(extend("x-advertised" = false))]
    if_match: Option<String>,
    /// Keep the encoding, the byte order mark and the line endings of the existing file.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    keep_format: bool,
    /// Append the content to the file, which is created if missing, as `append_file` does.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    append: bool,
    /// Permission bits in octal, like "755". Default: unchanged.
    #[schemars(regex(pattern = r"^0?[0-7]{3}$"))]
    #[schemars(extend("x-advertised" = false))]
    mode: Option<String>,
    /// Change nothing; show what would be done.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    dry_run: bool,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum IfExists {
    #[default]
    Overwrite,
    Fail,
}

fn default_true() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Relative to the working directory, or absolute outside of it.
    pub(crate) path: String,
    /// `true` for a new file.
    pub(crate) created: bool,
    /// The file's size.
    pub(crate) bytes: u64,
    /// Number of given lines.
    pub(crate) lines: usize,
    /// Etag of the new content, for `if_match`.
    pub(crate) etag: String,
    /// `true` for `dry_run`: nothing was changed.
    pub(crate) dry_run: bool,
    /// The call's id, for `undo`; absent if there is nothing to undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    /// The changes, as a unified diff; absent for large files, and for new ones without `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
}

impl BuiltInTool for WriteFile {
    const NAME: &str = "write_file";
    const TITLE: &str = "Write file";
    const DESCRIPTION: &str = "Writes a whole file: creates it, or replaces its content. Missing folders are created. Use `edit_file` to \
         change a part of a file that exists; read a file before you replace it.";
    const BRIEF: &str = "Creates a file, or replaces its content: read it first. To change a part use `edit_file`.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["write"];
    const KEYWORDS: &str = "create new overwrite save";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations { idempotent_hint: Some(true), ..ToolAnnotations::WRITING };
    const EXAMPLE: &str = r#"{"path": "notes/today.md", "content": "Buy milk.\n"}"#;
    const SUPPORTS_DIFF_PREVIEW: bool = true;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let path = world.access(&input.path).await?;
        let reads = input.append || input.keep_format;
        let read = reads.then(|| Access::ReadPath(path.clone()));
        Ok(read.into_iter().chain([Access::WritePath(path)]).collect())
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let recording = ChangeRecorder::of(run);
        run.on_files(move |files| write(files, input, &recording)).await
    }
}

fn write(files: &GrantedWorkspace, input: Input, recording: &ChangeRecorder) -> Result<ToolResult, ToolFailure> {
    let mode = input.mode.as_deref().map(|mode| u32::from_str_radix(mode, 8)).transpose().map_err(|error| {
        ToolFailure::new(ErrorKind::InvalidInput, "`mode` must be three octal digits, like \"755\"").caused_by(error)
    })?;
    let options =
        WriteOptions { create_folders: input.create_dirs, overwrite: input.if_exists == IfExists::Overwrite, mode };
    let mut set = ChangeSet::take(files, &[&input.path])?;
    let Some(content) = input.content.or_else(|| set.size(0).is_none().then(String::new)) else {
        let message = format!("`{}` exists, and no `content` is given to replace its present content", set.shown(0));
        return Err(ToolFailure::new(ErrorKind::InvalidInput, message)
            .next("Nothing was written; give `content`, which may be empty."));
    };
    // A file that is not to be replaced is reported as existing, not as stale.
    if options.overwrite || input.if_match.is_some() {
        check_freshness(&set, input.if_match.as_deref(), recording)?;
    }
    let lines = in_lines(&content).lines().count();
    if input.append {
        let appended = append_text(&set, &content, recording.limit())?;
        set.put(0, appended.content, options);
        let changed = only(set.commit(recording, input.dry_run)?)?;
        return format_result(changed, lines, input.dry_run, Some(&appended.notes), recording);
    }
    let content = match input.keep_format {
        true => in_format_of(&set, content, recording.limit())?,
        false => content.into_bytes(),
    };
    set.put(0, content, options);
    format_result(only(set.commit(recording, input.dry_run)?)?, lines, input.dry_run, None, recording)
}

/// Refuses to replace a file whose content is not what `if_match` or the last reading of this session makes the caller
/// expect.
fn check_freshness(set: &ChangeSet<'_>, if_match: Option<&str>, recording: &ChangeRecorder) -> Result<(), ToolFailure> {
    let path = set.shown(0);
    let Some(now) = set.digest(0, recording.limit())? else {
        return match if_match {
            None | Some(ABSENT | READ) => Ok(()),
            Some(_) => Err(stale(format!("`{path}` no longer exists"))
                .next("Nothing was written; leave out `if_match`, or give \"absent\", to create it.")),
        };
    };
    let read_again = "Nothing was written; read it again before you write it.";
    match if_match {
        Some(ABSENT) => Err(stale(format!("`{path}` exists, and `if_match` is \"absent\"")).next(read_again)),
        None | Some(READ) if set.is_stale(0, now, recording)? => {
            Err(stale(format!("`{path}` changed since you read it")).next(read_again))
        }
        Some(READ) if !set.is_known(0, recording)? => {
            let message = format!("`{path}` exists, and this session has not read it");
            Err(ToolFailure::new(ErrorKind::NotRead, message).next("Nothing was written; read it first."))
        }
        Some(READ) | None => Ok(()),
        Some(wanted) if !stands_for(wanted, &now) => {
            Err(stale(format!("`{path}` has the etag {}, and `if_match` is {wanted}", etag(&now))).next(read_again))
        }
        Some(_) => Ok(()),
    }
}

fn stale(message: String) -> ToolFailure {
    ToolFailure::new(ErrorKind::StaleFile, message)
}

fn stands_for(etag: &str, digest: &ContentDigest) -> bool {
    digest.to_string().starts_with(etag)
}

/// Converts the content to the encoding and the line endings of the existing file. Does not convert it if that is
/// missing or empty.
fn in_format_of(set: &ChangeSet<'_>, content: String, limit: u64) -> Result<Vec<u8>, ToolFailure> {
    let Some(before) = set.content(0, limit)? else { return Ok(content.into_bytes()) };
    if before.is_empty() {
        return Ok(content.into_bytes());
    }
    let file = DecodedFile::of(&before, set.shown(0))?;
    let with_returns = file.text.matches("\r\n").count();
    let line_feeds = file.text.matches('\n').count();
    let plain = content.replace("\r\n", "\n");
    let content = match (line_feeds, with_returns) {
        (0, _) if file.text.contains('\r') => plain.replace('\n', "\r"),
        (all, crlf) if 2 * crlf > all => plain.replace('\n', "\r\n"),
        (0, _) => content,
        _ => plain,
    };
    let content = content.strip_prefix('\u{feff}').unwrap_or(&content);
    file.encoding.encode_whole(content).map_err(|_| lacking(file.encoding, content))
}

/// Formats the result of writing a file. `appended` has the notes on an appended text, and is `None` for a replaced
/// content.
fn format_result(
    changed: ChangedFile,
    lines: usize,
    dry_run: bool,
    appended: Option<&[String]>,
    recording: &ChangeRecorder,
) -> Result<ToolResult, ToolFailure> {
    let created = changed.before.is_none();
    let bytes = changed.new.as_ref().map_or(0, |new| new.len() as u64);
    let path = &changed.shown;
    let mut text = match (created, appended.is_some(), dry_run) {
        _ if changed.before == changed.after => format!("`{path}` already has exactly this content"),
        (true, _, false) => format!("Created `{path}`"),
        (true, _, true) => format!("Would create `{path}`, and nothing was changed"),
        (false, true, false) => format!("Appended to `{path}`"),
        (false, true, true) => format!("Would append to `{path}`, and nothing was changed"),
        (false, false, false) => format!("Replaced `{path}`"),
        (false, false, true) => format!("Would replace `{path}`, and nothing was changed"),
    };
    let size = counted(usize::try_from(bytes).unwrap_or(usize::MAX), "byte");
    text.push_str(&format!(": {}, {size}.", counted(lines, "line")));
    let notes = notes(&changed).into_iter().chain(appended.into_iter().flatten().cloned());
    for note in notes {
        text.push(' ');
        text.push_str(&note);
    }
    let output = Output {
        created,
        bytes,
        lines,
        etag: etag_of(&changed),
        dry_run,
        call: recording.undo_id(!dry_run && changed.is_change()),
        diff: diff_of(&changed, dry_run),
        path: path.clone(),
    };
    answer(text, &output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{files::etag::digest_of, tests::Bench};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_new_file_is_made_with_its_folders() {
        let bench = Bench::new();
        let result = bench.call("write_file", json!({"path": "a/b/c.txt", "content": "x\ny\n"})).unwrap();
        assert_eq!(result.joined_text(), "Created `a/b/c.txt`: 2 lines, 4 bytes.");
        let expected = json!({
            "path": "a/b/c.txt", "created": true, "bytes": 4, "lines": 2, "etag": etag(&digest_of(b"x\ny\n")), "dry_run": false,
            "call": bench.last_call().to_string(),
        });
        assert_eq!(result.structured_content(), Some(&expected));
        assert_eq!(bench.get("a/b/c.txt"), b"x\ny\n");
        bench.call("write_file", json!({"path": "empty", "content": "", "mode": "750"})).unwrap();
        assert_eq!((bench.get("empty"), bench.mode("empty")), (vec![], 0o750));
    }

    #[test]
    fn without_content_a_new_file_is_empty_and_an_existing_file_is_kept() {
        let bench = Bench::new();
        for more in [json!({}), json!({"append": true}), json!({"keep_format": true}), json!({"if_exists": "fail"})] {
            let mut arguments = json!({"path": "d/p"});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let text = bench.text("write_file", arguments.clone());
            assert_eq!((text.as_str(), bench.get("d/p")), ("Created `d/p`: 0 lines, 0 bytes.", vec![]));
            bench.put("d/p", "held\n");
            arguments["if_exists"] = "overwrite".into();
            let failure = bench.call("write_file", arguments).unwrap_err();
            let expected = "`d/p` exists, and no `content` is given to replace its present content. Nothing was written; give \
                            `content`, which may be empty.";
            assert_eq!((failure.text().as_str(), bench.get("d/p")), (expected, b"held\n".to_vec()), "{more}");
            bench.call("delete_file", json!({"path": "d/p"})).unwrap();
        }
    }

    #[test]
    fn replacing_a_file_keeps_its_mode_and_returns_a_diff() {
        let bench = Bench::new();
        bench.put("run.sh", "old\nsame\n");
        bench.set_mode("run.sh", 0o755);
        let result = bench.call("write_file", json!({"path": "run.sh", "content": "new\nsame\n"})).unwrap();
        assert_eq!(result.joined_text(), "Replaced `run.sh`: 2 lines, 9 bytes.");
        let diff = &result.structured_content().unwrap()["diff"];
        assert_eq!(diff, "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n");
        assert_eq!(bench.mode("run.sh"), 0o755);
    }

    #[test]
    fn replacing_a_file_reports_other_hard_links_with_the_old_content() {
        let bench = Bench::new();
        bench.put("a", "old");
        bench.hard_link("a", "b");
        let text = bench.text("write_file", json!({"path": "a", "content": "new"}));
        assert!(text.ends_with("The file had 1 other name (hard link), which still holds the old content."), "{text}");
        assert_eq!((bench.get("a"), bench.get("b")), (b"new".to_vec(), b"old".to_vec()));
    }

    #[test]
    fn rejected_writes_leave_existing_files_and_folders_unchanged() {
        let bench = Bench::new();
        bench.put("a", "old");
        bench.put("dir/x", "");
        let text_of = |arguments| bench.call("write_file", arguments).unwrap_err().text();
        assert!(text_of(json!({"path": "a", "content": "", "if_exists": "fail"})).contains("exists already"));
        assert!(text_of(json!({"path": "dir", "content": ""})).contains("a folder, not a file"));
        assert!(text_of(json!({"path": "new/x", "content": "", "create_dirs": false})).contains("does not exist"));
        assert!(text_of(json!({"path": "/etc/x", "content": ""})).contains("outside of the workspace"));
        assert_eq!(bench.get("a"), b"old");
        assert_eq!(bench.names("."), ["a", "dir"]);
    }

    #[test]
    fn replacing_a_file_that_requires_read_approval_returns_no_diff() {
        let bench = Bench::with_ask(&["Read(secret)"]);
        bench.put("secret", "s");
        let result = bench.call("write_file", json!({"path": "secret", "content": "new"})).unwrap();
        assert_eq!(result.structured_content().unwrap().get("diff"), None);
    }

    #[test]
    fn a_file_that_changed_since_it_was_read_is_not_overwritten_until_it_is_read_again() {
        let bench = Bench::new();
        bench.put("f", "mine");
        bench.saw("f");
        bench.put("f", "theirs");
        let write = |content: &str| bench.call("write_file", json!({"path": "f", "content": content}));
        let failure = write("new").unwrap_err();
        assert_eq!(failure.kind, ErrorKind::StaleFile);
        assert_eq!(
            failure.text(),
            "`f` changed since you read it. Nothing was written; read it again before you write it."
        );
        assert_eq!(bench.get("f"), b"theirs");
        bench.saw("f");
        write("new").unwrap();
        write("newer").unwrap();
        bench.put("f", "newer");
        write("newest").expect("the same content at another time is no change");
        bench.put("never read", "x");
        bench.call("write_file", json!({"path": "never read", "content": "y"})).unwrap();
    }

    #[test]
    fn if_match_permits_a_write_only_for_the_current_etag_or_an_absent_file() {
        let bench = Bench::new();
        let write = |path: &str, if_match: &str| {
            let arguments = json!({"path": path, "content": "new", "if_match": if_match});
            bench.call("write_file", arguments).map_err(|failure| (failure.kind, failure.text()))
        };
        bench.put("f", "old");
        let (kind, text) = write("f", "absent").unwrap_err();
        assert_eq!(kind, ErrorKind::StaleFile);
        assert!(
            text.starts_with("`f` exists, and `if_match` is \"absent\". Nothing was written; read it again"),
            "{text}"
        );
        let (_, text) = write("f", "0123456789abcdef").unwrap_err();
        let now = etag(&digest_of(b"old"));
        assert!(text.starts_with(&format!("`f` has the etag {now}, and `if_match` is 0123456789abcdef.")), "{text}");
        let (_, text) = write("g", &now).unwrap_err();
        assert!(text.starts_with("`g` no longer exists. Nothing was written; leave out `if_match`"), "{text}");
        assert_eq!(write("f", "no etag").unwrap_err().0, ErrorKind::InvalidInput);
        write("f", &now).unwrap();
        write("g", "absent").unwrap();
        assert_eq!((bench.get("f"), bench.get("g")), (b"new".to_vec(), b"new".to_vec()));
    }

    #[test]
    fn if_match_read_permits_replacing_only_files_that_this_session_has_read() {
        let bench = Bench::new();
        let write = |path: &str| {
            let result = bench.call("write_file", json!({"path": path, "content": "new", "if_match": "read"}));
            result.map(|_| ()).map_err(|failure| (failure.kind, failure.text()))
        };
        bench.put("f", "old");
        let next = "Nothing was written; read it first.";
        let expected = format!("`f` exists, and this session has not read it. {next}");
        assert_eq!(write("f"), Err((ErrorKind::NotRead, expected)));
        bench.text("read_file", json!({"path": "f"}));
        bench.put("f", "newer");
        assert!(write("f").unwrap_err().1.starts_with("`f` changed since you read it."));
        bench.text("read_file", json!({"path": "f"}));
        assert_eq!((write("f"), write("f"), write("fresh")), (Ok(()), Ok(()), Ok(())));
    }

    #[test]
    fn keep_format_preserves_encoding_byte_order_mark_and_line_endings() {
        let check = |before: &[u8], content: &str, after: &[u8]| {
            let bench = Bench::new();
            bench.put("f", before);
            bench.call("write_file", json!({"path": "f", "content": content, "keep_format": true})).unwrap();
            assert_eq!(bench.get("f"), after);
        };
        check(b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n");
        check(b"a\nb\n", "x\r\ny\n", b"x\ny\n");
        check(b"a\rb", "x\ny\n", b"x\ry\r");
        check(b"\xef\xbb\xbfa", "x", b"\xef\xbb\xbfx");
        check(b"\xff\xfea\0\r\0\n\0", "\u{feff}\u{e4}\n", b"\xff\xfe\xe4\0\r\0\n\0");
        check(b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln", "\u{fc}", b"\xfc");
        let bench = Bench::new();
        bench.put("f", b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln");
        let failure =
            bench.call("write_file", json!({"path": "f", "content": "\u{2192}", "keep_format": true})).unwrap_err();
        assert!(failure.text().contains("windows-1252, which has no `\u{2192}` (U+2192)"), "{}", failure.text());
    }

    #[test]
    fn append_creates_the_file_or_adds_to_its_end() {
        let bench = Bench::new();
        let append =
            |content: &str| bench.text("write_file", json!({"path": "d/f", "content": content, "append": true}));
        assert_eq!(append("a\n"), "Created `d/f`: 1 line, 2 bytes.");
        assert_eq!(append("b"), "Appended to `d/f`: 1 line, 3 bytes.");
        assert!(append("c").ends_with("so the new text continues that line."));
        assert_eq!(bench.get("d/f"), b"a\nbc");
    }

    #[test]
    fn a_dry_run_and_an_identical_write_change_nothing_and_report_that() {
        let bench = Bench::new();
        bench.put_at("f", "same\n", 7);
        let answer = bench.text("write_file", json!({"path": "f", "content": "other\n", "dry_run": true}));
        assert_eq!(answer, "Would replace `f`, and nothing was changed: 1 line, 6 bytes.");
        let answer = bench.text("write_file", json!({"path": "f", "content": "same\n"}));
        assert_eq!(answer, "`f` already has exactly this content: 1 line, 5 bytes.");
        let answer = bench.text("write_file", json!({"path": "g/h", "content": "x", "dry_run": true}));
        assert_eq!(answer, "Would create `g/h`, and nothing was changed: 1 line, 1 byte.");
        assert_eq!((bench.get("f"), bench.names(".")), (b"same\n".to_vec(), vec!["f".to_owned()]));
        let entries = bench.journal().entries();
        let [only] = &entries[..] else { panic!("the write of the same alone is known: {entries:?}") };
        assert_eq!(only.changes[0].before, only.changes[0].after);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn read_file_returns_what_write_file_wrote(content: String, name in "[a-z]{1,9}( [a-z]{1,3})?") {
            let bench = Bench::new();
            bench.call("write_file", json!({"path": name, "content": content})).unwrap();
            prop_assert_eq!(bench.get(&name), content.clone().into_bytes());
            let read = bench.call("read_file", json!({"path": name, "limit": 10_000, "encoding": "utf-8"})).unwrap();
            let found = read.structured_content().unwrap()["content"].as_str().unwrap().to_owned();
            // The byte order mark at the beginning of a file is not part of its text.
            prop_assert_eq!(found, content.strip_prefix('\u{feff}').unwrap_or(&content));
        }
    }
}
