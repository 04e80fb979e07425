#![expect(clippy::disallowed_methods, reason = "tests lay out files behind the provider's back")]

use super::*;
use crate::{
    sandbox::workspace::{UserPathAliases, Workspace},
    system_clock::SystemClock,
};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use toolstead_domain::{
    CallPermissions, ClientProfile, Effect, NoCalls, NoOutputs, PatternContext, PermissionPolicy, PermissionRule,
    Principal, Prompt, SilentCaller, Verdict, WorkspaceRoots, permission::rule::RuleOrigin, testing::samples,
};

struct Bench {
    folder: TempDir,
    policy: Arc<PermissionPolicy>,
    provider: BuiltInContextProvider,
}

impl Bench {
    /// Creates a root `w` beside a file `outside.txt`, with deny rules in which `ROOT` is the root.
    fn with_deny(rules: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("w");
        fs::create_dir(&root).unwrap();
        fs::write(top.join("outside.txt"), "outside").unwrap();
        let roots = WorkspaceRoots { write: vec![root.clone()], ..Default::default() };
        let workspace = Arc::new(Workspace::open(&roots, UserPathAliases::default()).unwrap());
        let rule = |text: &&str| {
            let text = text.replace("ROOT", &root.to_string_lossy());
            let rule = PermissionRule::parse(Effect::Deny, &text, RuleOrigin::CommandLine, &PatternContext::default());
            Arc::new(rule.unwrap())
        };
        let policy = PermissionPolicy { rules: rules.iter().map(rule).collect(), roots, ..Default::default() };
        let world = ToolEnvironment::new(workspace, Arc::new(SystemClock), "Toolstead test".into());
        let report = ReportResource {
            uri: "config://server",
            name: "config",
            title: "T",
            description: "D",
            make: Box::new(|| Box::pin(async { json!({"a": 1}) })),
        };
        let provider = BuiltInContextProvider::new(world, vec![report]).unwrap();
        Self { folder, policy: Arc::new(policy), provider }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("w")
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn uri(&self, name: &str) -> String {
        uri_of(&self.root().join(name))
    }

    /// Decides and answers as the call path does.
    async fn ask(&self, request: &ContextRequest) -> Result<Value, ErrorKind> {
        let accesses = self.provider.accesses(request).await.map_err(|failure| failure.kind)?;
        let tool = Arc::new(samples::tool("read_resource"));
        if self.policy.decide(&tool, &Map::new(), &accesses).verdict != Verdict::Allow {
            return Err(ErrorKind::PermissionDenied);
        }
        let (principal, client) = (Principal::local(), ClientProfile::without_protocol("test"));
        let grant = CallPermissions::new(self.policy.clone(), tool, Vec::new());
        let context = CallContext {
            id: samples::call_id(1),
            principal: &principal,
            session: "s",
            deadline: Instant::now() + Duration::from_secs(120),
            grant: &grant,
            client: &client,
            forwarded: Default::default(),
            labels: &Default::default(),
            answers: None,
            caller: &SilentCaller,
            calls: &NoCalls,
            outputs: &NoOutputs,
            output_characters: 30_000,
        };
        self.provider.answer(request, &context).await.map(Value::Object).map_err(|failure| failure.kind)
    }

    async fn read(&self, uri: &str) -> Result<Value, ErrorKind> {
        self.ask(&ContextRequest::Read { uri: uri.into() }).await.map(|answer| answer["contents"][0].clone())
    }

    async fn completed(&self, of: CompletionReference, argument: &str, value: &str) -> Result<Value, ErrorKind> {
        let (argument, value) = (argument.to_owned(), value.to_owned());
        let request = ContextRequest::Complete(CompletionRequest { of, argument, value, known: Default::default() });
        self.ask(&request).await.map(|answer| answer["completion"].clone())
    }

    /// Returns the completions of a path, without the path of the root.
    async fn paths(&self, typed: &str) -> Result<Vec<String>, ErrorKind> {
        let root = encoded_path(&self.root());
        let of = CompletionReference::Template("file:///{path}".into());
        let completion = self.completed(of, "path", &format!("{root}/{typed}")).await?;
        let values = completion["values"].as_array().unwrap().iter();
        Ok(values.map(|value| value.as_str().unwrap().strip_prefix(&format!("{root}/")).unwrap().to_owned()).collect())
    }
}

/// Encodes a path for a URI, without its first slash.
fn encoded_path(path: &Path) -> String {
    crate::builtin::files::file_uri::encoded(path.to_str().unwrap().trim_start_matches('/'))
}

fn uri_of(path: &Path) -> String {
    format!("file:///{}", encoded_path(path))
}

#[tokio::test]
async fn the_catalogue_lists_two_kinds_of_resources_and_three_prompts() {
    let catalogue = Bench::with_deny(&[]).provider.list().await.unwrap();
    assert_eq!(catalogue.resources.iter().map(|one| one.uri()).collect::<Vec<_>>(), ["config://server"]);
    assert_eq!(catalogue.templates[0].template().as_str(), "file:///{path}");
    let prompts: Vec<&str> = catalogue.prompts.iter().map(|one| one.name()).collect();
    assert_eq!(prompts, ["code_review", "debug_help", "explain_code"]);
    let required = |prompt: &Prompt| {
        let arguments = prompt.definition()["arguments"].as_array().unwrap().clone();
        arguments.into_iter().filter(|one| one["required"] == true).count()
    };
    assert!(catalogue.prompts.iter().all(|prompt| required(prompt) == 1));
    let closed = ToolEnvironment::new(Arc::new(Workspace::closed()), Arc::new(SystemClock), String::new());
    let without_roots = BuiltInContextProvider::new(closed, Vec::new()).unwrap().list().await.unwrap();
    assert_eq!(without_roots.templates, []);
}

#[tokio::test]
async fn text_comes_as_text_and_everything_else_as_base64() {
    let bench = Bench::with_deny(&[]);
    bench.write("a b/notes.md", "# ä\n");
    bench.write("marked.txt", b"\xef\xbb\xbfhello");
    bench.write("data.bin", [0, 159, 146, 150]);
    bench.write("nothing", "");
    for (name, media_type, member, content) in [
        ("a b/notes.md", "text/markdown", "text", "# ä\n"),
        ("marked.txt", "text/plain", "text", "hello"),
        ("data.bin", "application/octet-stream", "blob", "AJ+Slg=="),
        ("nothing", "text/plain", "text", ""),
    ] {
        let uri = bench.uri(name);
        let expected = json!({"uri": uri, "mimeType": media_type, member: content});
        assert_eq!(bench.read(&uri).await, Ok(expected));
    }
    let report = bench.read("config://server").await.unwrap();
    assert_eq!((&report["mimeType"], &report["text"]), (&json!("application/json"), &json!("{\n  \"a\": 1\n}")));
}

#[tokio::test]
async fn nothing_outside_of_the_roots_is_read_whatever_the_uri() {
    let bench = Bench::with_deny(&["Read(/ROOT/secret/**)"]);
    bench.write("secret/key.txt", "key");
    bench.write("open.txt", "open");
    let top = bench.root().parent().unwrap().to_path_buf();
    symlink(top.join("outside.txt"), bench.root().join("link.txt")).unwrap();
    symlink(bench.root().join("secret"), bench.root().join("also")).unwrap();
    let root = bench.uri("");
    for (uri, kind) in [
        (uri_of(&top.join("outside.txt")), ErrorKind::PermissionDenied),
        ("file:///etc/passwd".to_owned(), ErrorKind::PermissionDenied),
        (bench.uri("link.txt"), ErrorKind::PermissionDenied),
        (bench.uri("secret/key.txt"), ErrorKind::PermissionDenied),
        (bench.uri("also/key.txt"), ErrorKind::PermissionDenied),
        (format!("{root}../outside.txt"), ErrorKind::InvalidInput),
        (format!("{root}..%2foutside.txt"), ErrorKind::InvalidInput),
        (format!("{root}%2e%2e/outside.txt"), ErrorKind::InvalidInput),
        (format!("{root}open.txt%00"), ErrorKind::InvalidInput),
        (format!("{root}%252e%252e%252foutside.txt"), ErrorKind::NotFound),
        (format!("file://host{}", bench.root().join("open.txt").display()), ErrorKind::InvalidInput),
        (bench.uri("missing.txt"), ErrorKind::NotFound),
        (bench.uri("secret/.."), ErrorKind::InvalidInput),
        (root.trim_end_matches('/').to_owned(), ErrorKind::UnsupportedType),
    ] {
        assert_eq!(bench.read(&uri).await, Err(kind), "{uri}");
    }
    assert!(bench.read(&bench.uri("open.txt")).await.is_ok());
}

#[tokio::test]
async fn path_completion_stays_within_roots_and_permission_rules() {
    let bench = Bench::with_deny(&["Read(/ROOT/secret/**)", "Read(/ROOT/sealed.txt)"]);
    for name in ["src/main.rs", "src/more/x", "secret/key.txt", "sealed.txt", "some ä.txt"] {
        bench.write(name, "x");
    }
    assert_eq!(bench.paths("sea").await, Ok(Vec::new()), "a file that may not be read is not named");
    assert_eq!(bench.paths("so").await.unwrap(), ["some%20%C3%A4.txt"]);
    assert_eq!(bench.paths("some%20").await.unwrap(), ["some%20%C3%A4.txt"]);
    assert_eq!(bench.paths("src/m").await.unwrap(), ["src/main.rs", "src/more/"]);
    assert_eq!(bench.paths("src/../").await, Ok(Vec::new()));
    assert_eq!(bench.paths("none/").await, Ok(Vec::new()));
    assert_eq!(bench.paths("secret/").await, Ok(Vec::new()));
    let template = || CompletionReference::Template("file:///{path}".into());
    let above = bench.completed(template(), "path", "").await.unwrap();
    assert_eq!(above["values"], json!([format!("{}/", encoded_path(&bench.root()))]), "only the way to the root");
    let top = encoded_path(bench.root().parent().unwrap());
    let beside = bench.completed(template(), "path", &format!("{top}/out")).await.unwrap();
    assert_eq!((&beside["values"], &beside["hasMore"]), (&json!([]), &json!(false)));
    assert_eq!(bench.completed(template(), "file", "").await, Err(ErrorKind::InvalidInput));
    let report = bench.completed(CompletionReference::Template("config://server".into()), "path", "").await.unwrap();
    assert_eq!(report["values"], json!([]), "no paths by another name");
}

#[tokio::test]
async fn a_completion_returns_at_most_a_hundred_values_and_reports_that_more_exist() {
    let bench = Bench::with_deny(&[]);
    (0..130).for_each(|number| bench.write(&format!("many/{number:03}"), ""));
    let of = CompletionReference::Template("file:///{path}".into());
    let typed = format!("{}/many/", encoded_path(&bench.root()));
    let completion = bench.completed(of, "path", &typed).await.unwrap();
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(130), &json!(true)));
}

#[tokio::test]
async fn arguments_of_prompts_are_completed_by_their_values_and_suggestions() {
    let bench = Bench::with_deny(&[]);
    let prompt = |name: &str| CompletionReference::Prompt(name.into());
    for (name, argument, typed, expected) in [
        ("explain_code", "detail_level", "", json!(["brief", "medium", "detailed"])),
        ("explain_code", "detail_level", "d", json!(["detailed"])),
        ("code_review", "language", "Ru", json!(["ruby", "rust"])),
        ("code_review", "code", "x", json!([])),
    ] {
        let completion = bench.completed(prompt(name), argument, typed).await.unwrap();
        assert_eq!(completion["values"], expected, "{name} {argument} {typed}");
    }
    assert_eq!(bench.completed(prompt("code_review"), "none", "").await, Err(ErrorKind::InvalidInput));
    assert_eq!(bench.completed(prompt("none"), "code", "").await, Err(ErrorKind::NotFound));
}
