//! A page of five thousand nodes is told by Toolstead's browser, and beside it only fetched and parsed, in a browser that
//! nobody confines.

use crate::{Outcome, load::Connection, rows::Server};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};
use toolstead_infrastructure::{
    browser::testing::page_of_orders,
    web::testing::{Reply, TestServer},
};

const ORDERS: usize = 137;
const ROUNDS: usize = 11;
/// Bytes of a token, as an agent counts before a model has said better.
const TOKEN: f64 = 4.0;

/// The rows of time, tokens and memory.
pub(crate) async fn run() -> Outcome<()> {
    let page = page_of_orders(ORDERS);
    let site = TestServer::plain(move |_| Reply::html(page.clone())).await;
    let address = format!("http://{}/", site.address());
    let Some(mut bare) = Bare::start(&address)? else {
        println!("no browser is on the PATH: its rows were not measured");
        return Ok(());
    };
    let config = format!(
        "[web]\nallow_private_hosts = [\"{}\"]\n[permissions]\nallow = [\"WebFetch(domain:127.0.0.1)\"]\n",
        site.address()
    );
    let server = Server::start(&config, &[]).await?;
    let before = (resident(server.child.id())?, processes(server.child.id())?);
    let mut tools = Tools { connection: Connection::open(&server.target).await?, server: &server };
    let (first, _) = tools.call("browser_navigate", json!({"url": address})).await?;
    let sends: Vec<&str> =
        first.lines().filter_map(|line| line.split_once("button \"Send\" [")?.1.split(']').next()).collect();
    if sends.len() < ROUNDS {
        return Err(format!("the page has no buttons: {first}").into());
    }
    let (mut outcome, mut read, mut clicks, mut again, mut read_again) = (vec![], vec![], vec![], vec![], vec![]);
    let (mut change, mut nodes, mut bytes) = (String::new(), 0, 0);
    for (round, send) in sends.iter().take(ROUNDS).enumerate() {
        outcome.push(tools.call("browser_get_page", json!({})).await?.1);
        let (time, (of_page, in_bytes)) = bare.read_trees()?;
        (nodes, bytes) = (of_page, in_bytes);
        read.push(time);
        let (text, time) = tools.call("browser_click", json!({"ref": send})).await?;
        change = text;
        clicks.push(time);
        again.push(tools.call("browser_get_page", json!({})).await?.1);
        bare.click(round)?;
        read_again.push(bare.read_trees()?.0);
    }
    let (all, _) = tools.call("browser_get_page", json!({"full": true})).await?;
    let note =
        format!("{nodes} nodes, {} KiB; the trees of its frames fetched and parsed in a bare browser", bytes >> 10);
    times("browser, a page of 5,000 nodes", outcome, Some(read), &note);
    times("browser, the same after a click", again, Some(read_again), "the same");
    times("browser, a click and what changed", clicks, None, "150 ms of it the page has to be quiet");
    let tokens = |text: &str| text.len() as f64 / TOKEN;
    row(
        "browser, tokens told at first",
        tokens(&first),
        bytes as f64 / TOKEN,
        "4,000",
        "the trees as the browser tells them",
    );
    row("browser, tokens of all of it", tokens(&all), bytes as f64 / TOKEN, "", "the same");
    row("browser, tokens of a click", tokens(&change), tokens(&first), "500", "the page told at first");
    let ours = proportional(&processes(server.child.id())?, &before.1)?;
    let theirs = proportional(&processes(bare.child.id())?, &HashSet::new())?;
    row("browser, MiB of its processes", ours, theirs, "", "a bare browser with the same page");
    println!(
        "{:<34} {:>10.1}MiB {:>9.1}MiB {:>8} {:>8}  resident in the server, and before its browser began",
        "browser, memory of ours",
        resident(server.child.id())?,
        before.0,
        "",
        ""
    );
    Ok(())
}

fn times(row: &str, ours: Vec<Duration>, theirs: Option<Vec<Duration>>, note: &str) {
    let middle = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let ours = middle(ours);
    match theirs.map(middle) {
        Some(theirs) => println!("{row:<34} {ours:>10.0}ms {theirs:>10.0}ms {:>8.2} {:>8}  {note}", ours / theirs, ""),
        None => println!("{row:<34} {ours:>10.0}ms {:>12} {:>8} {:>8}  {note}", "", "", ""),
    }
}

fn row(row: &str, ours: f64, theirs: f64, budget: &str, note: &str) {
    println!("{row:<34} {ours:>12.0} {theirs:>12.0} {:>8.3} {budget:>8}  {note}", ours / theirs);
}

/// A client that calls tools of the server.
struct Tools<'a> {
    server: &'a Server,
    connection: Connection,
}

impl Tools<'_> {
    /// The text of the answer, and how long it took.
    async fn call(&mut self, tool: &str, arguments: Value) -> Outcome<(String, Duration)> {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let request = self.server.target.request(&body);
        let begun = Instant::now();
        let answer = self.connection.exchange(&request).await?.body;
        let time = begun.elapsed();
        // A long call is answered in an event stream.
        let line = answer.split(|byte| *byte == b'\n').map(|line| line.strip_prefix(b"data: ").unwrap_or(line));
        let message = line.filter_map(|line| serde_json::from_slice::<Value>(line).ok()).find(|line| line["id"] == 1);
        let result = message.ok_or("no answer")?;
        match (&result["result"]["isError"], result["result"]["content"][0]["text"].as_str()) {
            (Value::Null | Value::Bool(false), Some(text)) => Ok((text.to_owned(), time)),
            _ => Err(format!("{tool}: {result}").into()),
        }
    }
}

/// A browser over its DevTools pipe, and no more than that.
struct Bare {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    next: u64,
    _profile: tempfile::TempDir,
}

impl Bare {
    /// Starts one that shows this page. `None` where there is none.
    fn start(address: &str) -> Outcome<Option<Self>> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
        let Some(program) = ["chromium-headless-shell", "chromium"].into_iter().find(is_there) else { return Ok(None) };
        let profile = tempfile::tempdir()?;
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", program])
            .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-site-isolation-trials", "--disable-dev-shm-usage", "--window-size=1280,800"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take().ok_or("no stdin")?, child.stdout.take().ok_or("no stdout")?);
        let output = BufReader::with_capacity(64 << 10, output);
        let mut bare = Self { child, input, output, session: None, next: 0, _profile: profile };
        let tab = bare.call("Target.createTarget", json!({"url": "about:blank"}))?.0;
        let params = json!({"targetId": tab["targetId"], "flatten": true});
        bare.session = bare.call("Target.attachToTarget", params)?.0["sessionId"].as_str().map(str::to_owned);
        bare.call("Page.enable", json!({}))?;
        bare.call("Accessibility.enable", json!({}))?;
        bare.call("Page.navigate", json!({"url": address}))?;
        while bare.value("document.readyState === 'complete' && location.protocol === 'http:'")? != Value::Bool(true) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(bare))
    }

    /// The answer to a command, and its bytes.
    fn call(&mut self, method: &str, params: Value) -> Outcome<(Value, usize)> {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes())?;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            if self.output.read_until(0, &mut bytes)? == 0 {
                return Err("the bare browser ended".into());
            }
            bytes.pop();
            let mut answer: Value = serde_json::from_slice(&bytes)?;
            if answer["id"] == self.next {
                return Ok((answer["result"].take(), bytes.len()));
            }
        }
    }

    fn value(&mut self, script: &str) -> Outcome<Value> {
        let answer = self.call("Runtime.evaluate", json!({"expression": script, "returnByValue": true}))?;
        Ok(answer.0["result"]["value"].clone())
    }

    fn click(&mut self, order: usize) -> Outcome<()> {
        self.value(&format!("document.querySelectorAll('tbody tr')[{order}].querySelector('button').click()"))?;
        Ok(())
    }

    /// Fetches and parses the tree of each frame. Says how long it took, how many nodes came, and in how many bytes.
    fn read_trees(&mut self) -> Outcome<(Duration, (usize, usize))> {
        let begun = Instant::now();
        let page = self.call("Page.getFrameTree", json!({}))?.0["frameTree"].take();
        let (mut nodes, mut bytes) = (0, 0);
        let inner = page["childFrames"].as_array().into_iter().flatten();
        for frame in inner.chain([&page]) {
            let (tree, length) = self.call("Accessibility.getFullAXTree", json!({"frameId": frame["frame"]["id"]}))?;
            nodes += tree["nodes"].as_array().map_or(0, Vec::len);
            bytes += length;
        }
        Ok((begun.elapsed(), (nodes, bytes)))
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // Its profile goes as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process and those below it.
fn processes(process: u32) -> Outcome<HashSet<u32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        // A process that ended meanwhile is none.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (id, parent)));
    }
    let mut found = HashSet::from([process]);
    loop {
        let count = found.len();
        found
            .extend(parents.iter().filter(|(_, parent)| found.contains(parent)).map(|(id, _)| *id).collect::<Vec<_>>());
        if found.len() == count {
            return Ok(found);
        }
    }
}

/// The memory of these processes but for those, in MiB: what several share counts by its share.
fn proportional(processes: &HashSet<u32>, others: &HashSet<u32>) -> Outcome<f64> {
    let mut kib = 0;
    for process in processes.difference(others) {
        let Ok(rollup) = fs::read_to_string(format!("/proc/{process}/smaps_rollup")) else { continue };
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        kib += line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0);
    }
    if kib == 0 {
        return Err("the memory of the browser cannot be read".into());
    }
    Ok(kib as f64 / 1024.0)
}

fn resident(process: u32) -> Outcome<f64> {
    Ok(crate::rows::resident_kib(process)? as f64 / 1024.0)
}
