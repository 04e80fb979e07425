//! Documents are read by a child process: with the real binary, and with documents that would take a runtime down.

use crate::binaries::{Home, Pipe, kill, stderr, stdout};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs,
    io::{Cursor, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Limit of every wait. Ends only a test that would hang.
const PATIENCE: Duration = Duration::from_secs(120);

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/documents")
}

fn home_with(names: &[&str]) -> Home {
    let home = Home::new();
    for name in names {
        fs::copy(fixtures().join(name), home.work().join(name)).unwrap();
    }
    home
}

/// A server on pipes with these lines in its configuration.
fn server(home: &Home, config: &str) -> Pipe {
    let config = home.config(config);
    let mut pipe = Pipe::start(home.toolstead(&["--config", config.to_str().unwrap(), "mcp"]));
    pipe.initialize();
    pipe
}

fn send(pipe: &mut Pipe, id: usize, arguments: Value) {
    let params = json!({"name": "read_file", "arguments": arguments});
    pipe.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
}

fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The processes that came of this one, each with its folder in `/proc`, without those that only hold the sandbox: its
/// zygote and the inits of its runs.
fn children_of(ancestor: u32) -> Vec<PathBuf> {
    let parent = |folder: &Path| {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok())
    };
    let is_child = |folder: &PathBuf| {
        let up = std::iter::successors(parent(folder), |process| parent(&Path::new("/proc").join(process.to_string())));
        let name = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
        // A zombie has no command line until it is reaped.
        up.take(4).any(|process| process == ancestor) && !name.is_empty() && !name.starts_with("toolstead-zygote")
    };
    fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()).filter(is_child).collect()
}

/// Returns when nothing that came of this process runs any more: an answer need not wait for the last of its reader.
fn until_alone(ancestor: u32) {
    let end = Instant::now() + PATIENCE;
    loop {
        let children = children_of(ancestor);
        if children.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "there are still {children:?}");
    }
}

fn pid(process: &Path) -> u32 {
    process.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Returns `true` if the process has set the last of its limits.
fn is_confined(process: &Path) -> bool {
    let limits = fs::read_to_string(process.join("limits")).unwrap_or_default();
    limits.lines().any(|line| line.starts_with("Max file size") && line.split_whitespace().nth(3) == Some("0"))
}

/// A child of this process, as soon as there is one that reads.
fn reader_of(parent: u32) -> PathBuf {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(child) = children_of(parent).into_iter().find(|child| is_confined(child)) {
            return child;
        }
    }
    panic!("no child reads")
}

/// Returns a docx with this number of empty paragraphs, which takes long to parse.
fn long_docx(paragraphs: usize) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let main =
        "<Relationships><Relationship Id='1' Type='x/officeDocument' Target='word/document.xml'/></Relationships>";
    for (name, content) in [
        ("[Content_Types].xml", "<Types/>".to_owned()),
        ("_rels/.rels", main.to_owned()),
        ("word/document.xml", format!("<body>{}</body>", "<p><r/></p>".repeat(paragraphs))),
    ] {
        writer.start_file(name, options).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn every_kind_of_document_is_read_over_the_command_line_and_over_mcp() {
    let files = ["report.docx", "budget.xlsx", "talk.pptx", "notebook.ipynb", "chromium.pdf", "writer.pdf"];
    let home = home_with(&files);
    let mut pipe = server(&home, "");
    for (id, name) in (1..).zip(files) {
        let expected = fs::read_to_string(fixtures().join(format!("expected/{name}.txt"))).unwrap();
        let output = home.run(&["call", "read_file", &json!({"path": name}).to_string()]);
        assert_eq!((stdout(&output), stderr(&output)), (expected.clone(), String::new()), "{name}");
        send(&mut pipe, id, json!({"path": name}));
        assert_eq!(format!("{}\n", text_of(&pipe.answer(id))), expected);
    }
    send(&mut pipe, 99, json!({"path": "chromium.pdf", "pages": "2-3"}));
    let answer = pipe.answer(99);
    let found = &answer["result"]["structuredContent"];
    assert_eq!(
        (&found["kind"], &found["pages"], &found["title"], &found["truncated"]),
        (&json!("pdf"), &json!({"first": 2, "last": 3, "total": 3}), &json!("Tide tables"), &json!(false))
    );
    send(&mut pipe, 100, json!({"path": "report.docx", "offset": 5, "limit": 4}));
    let answer = pipe.answer(100);
    let found = &answer["result"]["structuredContent"];
    assert_eq!(
        (&found["kind"], &found["content"], &found["next_offset"]),
        (&json!("docx"), &json!("## Ships & goods\n\n- Cargo\n  - Grain"), &json!(9))
    );
}

#[test]
fn an_unreadable_document_is_rejected_with_a_suggestion() {
    let home =
        home_with(&["encrypted.pdf", "encrypted.docx", "report.doc", "report.odt", "chromium.pdf", "report.docx"]);
    let whole = fs::read(fixtures().join("report.docx")).unwrap();
    fs::write(home.work().join("half.docx"), &whole[..whole.len() / 2]).unwrap();
    fs::write(home.work().join("a.txt"), "text").unwrap();
    let mut pipe = server(&home, "[files]\ndocument_bytes = 40000\n");
    fs::write(home.work().join("large.ipynb"), format!("{{{}", " ".repeat(40_000))).unwrap();
    let cases = [
        (
            json!({"path": "encrypted.pdf"}),
            "`encrypted.pdf` cannot be read: it is encrypted, and a password is needed",
            "a copy without a password",
        ),
        (json!({"path": "encrypted.docx"}), "it is encrypted, and a password is needed", "a copy without a password"),
        (
            json!({"path": "report.doc"}),
            "it is a Word document from before 2007 (.doc), which is not supported",
            "--convert-to docx",
        ),
        (
            json!({"path": "report.odt"}),
            "it is an OpenDocument text (.odt), which is not supported",
            "--convert-to docx",
        ),
        (
            json!({"path": "half.docx"}),
            "it is damaged or not what it seems: its archive cannot be opened",
            "an intact copy",
        ),
        (
            json!({"path": "large.ipynb"}),
            "`large.ipynb` has 40001 bytes, and documents are read up to 40000",
            "Ask for a shorter copy",
        ),
        (json!({"path": "chromium.pdf", "pages": "7"}), "`pages` is \"7\": the PDF has 3 pages", "\"1-5\""),
        (json!({"path": "chromium.pdf", "pages": "x"}), "it is not a list of numbers and ranges", "\"1-5\""),
        (json!({"path": "report.docx", "pages": "1"}), "`pages` is \"1\": a docx has no fixed pages", "\"1-5\""),
        (json!({"path": "a.txt", "pages": "1"}), "`pages` is for documents, and `a.txt` is a text", "`offset`"),
    ];
    for (id, (arguments, reason, next)) in (1..).zip(cases) {
        send(&mut pipe, id, arguments);
        let answer = pipe.answer(id);
        let text = text_of(&answer);
        assert!(answer["result"]["isError"] == true && text.contains(reason) && text.contains(next), "{text}");
    }
}

/// A PDF whose picture contains itself.
fn endless_pdf() -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let resources = "/Resources<</XObject<</X 4 0 R>>>>";
    let stream = "<<DICT/Length 5>>\nstream\n/X Do\nendstream";
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        format!("<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]{resources}/Contents 5 0 R>>"),
        stream.replace("DICT", &format!("/Type/XObject/Subtype/Form/BBox[0 0 9 9]{resources}")),
        stream.replace("DICT", ""),
    ];
    let mut table = "xref\n0 6\n0000000000 65535 f \n".to_owned();
    for (number, object) in (1..).zip(objects) {
        table.push_str(&format!("{:010} 00000 n \n", bytes.len()));
        bytes.extend_from_slice(format!("{number} 0 obj\n{object}\nendobj\n").as_bytes());
    }
    let start = bytes.len();
    bytes.extend_from_slice(format!("{table}trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n{start}\n%%EOF").as_bytes());
    bytes
}

/// Reads one document under these limits, then an honest one with the same runtime.
#[track_caller]
fn check_contained(limits: &str, name: &str, content: &[u8], text: &str) {
    let home = home_with(&["budget.xlsx"]);
    fs::write(home.work().join(name), content).unwrap();
    let mut pipe = server(&home, &format!("[files]\n{limits}\n"));
    send(&mut pipe, 1, json!({"path": name}));
    let answer = pipe.answer(1);
    assert!(text_of(&answer).contains(&format!("the document `{name}` could not be read: {text}")), "{answer}");
    send(&mut pipe, 2, json!({"path": "budget.xlsx", "pages": "2"}));
    assert!(text_of(&pipe.answer(2)).contains("Rope per metre"));
    until_alone(pipe.child.id());
}

#[test]
fn a_document_that_exhausts_memory_ends_only_its_reader() {
    let json = format!("{{\"nbformat\":4,\"cells\":[{}0]}}", "0,".repeat(15 << 20));
    let text = "the reader ran out of memory. Request fewer pages";
    check_contained("document_memory_bytes = 268435456", "memory.ipynb", json.as_bytes(), text);
}

#[test]
fn a_document_that_exhausts_processor_time_ends_only_its_reader() {
    let text = "the reader used more than 1 second of processor time. Request fewer pages";
    check_contained("document_seconds = 1", "time.docx", &long_docx(4 << 20), text);
}

#[test]
fn a_document_that_overflows_the_stack_ends_only_its_reader() {
    check_contained("", "stack.pdf", &endless_pdf(), "the reader crashed. The document may be damaged or malicious");
}

#[test]
fn a_killed_reader_is_reported_and_leaves_no_process_behind() {
    let home = home_with(&["report.docx"]);
    fs::write(home.work().join("long.docx"), long_docx(4 << 20)).unwrap();
    let mut pipe = server(&home, "");
    let runtime = pipe.child.id();
    send(&mut pipe, 1, json!({"path": "long.docx"}));
    let reader = reader_of(runtime);
    // It limited itself before it read, and has nothing of the runtime's environment.
    let status = fs::read_to_string(reader.join("status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    let limits = fs::read_to_string(reader.join("limits")).unwrap();
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    let limits =
        ["Max cpu time", "Max file size", "Max core file size", "Max open files", "Max processes", "Max address space"]
            .map(limit);
    assert_eq!(limits, ["60", "0", "0", "0", "0", "1073741824"]);
    let environment = fs::read(reader.join("environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("XDG_DATA_HOME"));
    kill(pid(&reader), Signal::KILL);
    let answer = pipe.answer(1);
    let text = text_of(&answer);
    assert!(text.contains("the document `long.docx` could not be read: the reader crashed"), "{text}");
    assert!(text.contains("do not try again"), "{text}");
    send(&mut pipe, 2, json!({"path": "report.docx"}));
    assert!(text_of(&pipe.answer(2)).contains("# Harbour report"));
    until_alone(runtime);
}

#[test]
fn concurrent_reads_use_a_limited_number_of_readers() {
    let home = Home::new();
    fs::write(home.work().join("long.docx"), long_docx(4 << 20)).unwrap();
    let mut pipe = server(&home, "");
    let runtime = pipe.child.id();
    let seats = 2 * std::thread::available_parallelism().unwrap().get();
    let calls = seats + 4;
    for id in 1..=calls {
        send(&mut pipe, id, json!({"path": "long.docx"}));
    }
    // Stopped, so that none makes room by itself; one that is not ready yet would be given up.
    let stopped = || {
        let readers: Vec<u32> =
            children_of(runtime).iter().filter(|child| is_confined(child)).map(|child| pid(child)).collect();
        readers.iter().for_each(|reader| kill(*reader, Signal::STOP));
        readers
    };
    for left in (1..=calls).rev() {
        let end = Instant::now() + PATIENCE;
        let readers = loop {
            let readers = stopped();
            if readers.len() >= left.min(seats) {
                break readers;
            }
            assert!(Instant::now() < end, "{} readers for {left} documents", readers.len());
        };
        assert_eq!(readers.len(), left.min(seats), "for {left} documents");
        kill(readers[0], Signal::KILL);
        assert!(text_of(&pipe.receive()).contains("the reader crashed"));
    }
    until_alone(runtime);
}

#[test]
fn a_reader_ends_with_its_runtime_and_with_its_call() {
    let home = Home::new();
    fs::write(home.work().join("long.docx"), long_docx(4 << 20)).unwrap();
    let mut pipe = server(&home, "");
    let runtime = pipe.child.id();
    send(&mut pipe, 1, json!({"path": "long.docx"}));
    let reader = reader_of(runtime);
    pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    until_gone(&reader);
    send(&mut pipe, 2, json!({"path": "long.docx"}));
    let reader = reader_of(runtime);
    kill(runtime, Signal::KILL);
    until_gone(&reader);
}

/// Waits until the process has ended. A zombie counts as ended.
fn until_gone(process: &Path) {
    let end = Instant::now() + PATIENCE;
    let lives = || {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
    };
    while lives() {
        assert!(Instant::now() < end, "{} still runs", process.display());
    }
}
