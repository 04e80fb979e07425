//! A small shop on this machine, and its visitors with a browser: clients of the official Python SDK, which make the
//! calls of a test. Its pages are in `tests/fixtures/shop`.

use crate::{
    binaries::{Home, Pipe, TOKEN, peer, python_program, stderr, stdout},
    web_server::{ReceivedRequest, Reply, TestServer},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The only password that the shop takes.
pub(crate) const PASSWORD: &str = "open sesame";

/// A rule that lets the shop be reached.
pub(crate) const MAY_ENTER: &str = "\"WebFetch(domain:127.0.0.1)\"";

/// The shop, with a home for the programs that go there.
pub(crate) struct Shop {
    pub(crate) home: Home,
    pub(crate) site: TestServer,
    /// The configuration for [`Home::config`].
    pub(crate) settings: String,
    pub(crate) config: PathBuf,
}

impl Shop {
    /// The shop, where these rules allow something.
    pub(crate) async fn where_allowed(rules: &[&str]) -> Self {
        let site = TestServer::plain(answer).await;
        let home = Home::new();
        let port = site.address().port();
        let settings = format!(
            "[web]\nallow_private_hosts = [\"127.0.0.1:{port}\", \"localhost:{port}\"]\n[permissions]\nallow = [{}]\n",
            rules.join(", ")
        );
        let config = home.config(&settings);
        Self { home, site, settings, config }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.site.url(path).to_string()
    }

    /// The same page at a host of another name.
    pub(crate) fn partner_url(&self) -> String {
        format!("http://localhost:{}/partner", self.site.address().port())
    }

    /// Returns the command of the SDK's client, which connects through `toolstead mcp`.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.home.command(python_program("python"), &[]);
        command.arg(peer("calls.py")).arg(env!("CARGO_BIN_EXE_toolstead")).arg("mcp").arg("--config").arg(&self.config);
        command
    }

    /// A client of the SDK that goes there through `toolstead mcp`.
    pub(crate) fn visitor(&self) -> Visitor {
        Visitor::of(self.command())
    }

    /// Runs `toolstead ARGUMENTS…` without a terminal, so that no approver is available. Returns the exit code and the
    /// output.
    pub(crate) fn toolstead(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command =
            self.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead"), "--config"]);
        let output = command.arg(&self.config).args(arguments).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
    }

    /// The latest row of this tool.
    #[track_caller]
    pub(crate) fn row(&self, tool: &str) -> Value {
        let config = self.config.to_str().unwrap();
        let list = self.home.run(&["--config", config, "executions", "list", "--json", "--tool", tool]);
        let list: Value = serde_json::from_slice(&list.stdout).unwrap();
        let id = list["executions"][0]["id"].as_str().unwrap_or_else(|| panic!("no row of {tool}: {list}")).to_owned();
        let row = self.home.run(&["--config", config, "executions", "show", &id, "--json"]);
        serde_json::from_slice(&row.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&row)))
    }

    /// The forms that were sent to this path.
    pub(crate) fn forms(&self, path: &str) -> Vec<ReceivedRequest> {
        self.site.requests().into_iter().filter(|seen| seen.method == "POST" && seen.path() == path).collect()
    }
}

/// Returns the reply of the shop.
fn answer(seen: &ReceivedRequest) -> Reply {
    let cookie = seen.header("cookie");
    let visitor = cookie.split("; ").find_map(|pair| pair.strip_prefix("visitor="));
    match (seen.method.as_str(), seen.path(), visitor) {
        ("POST", "/sign-in", _) if seen.form("password").as_deref() == Some(PASSWORD) => {
            let name = seen.form("name").unwrap_or_default();
            Reply::redirect(303, "/").header("Set-Cookie", &format!("visitor={name}; HttpOnly; SameSite=Lax; Path=/"))
        }
        ("POST", "/sign-in", _) => page("sign-in", &[("WRONG", "The password is wrong.")]).status(401),
        (_, "/sign-in", _) => page("sign-in", &[("WRONG", "")]),
        (_, "/terms", _) => page("terms", &[]),
        (_, "/partner", _) => Reply::html("<title>Partner</title><h1>Partner shop</h1>"),
        (_, _, None) => Reply::redirect(302, "/sign-in"),
        ("POST", "/order", _) => Reply::redirect(303, "/thanks"),
        ("POST", "/return", _) | (_, "/thanks", _) => page("thanks", &[]),
        (_, "/", Some(name)) => {
            let port = seen.header("host").rsplit(':').next().unwrap_or_default();
            page("shop", &[("NAME", name), ("OTHER", &format!("http://localhost:{port}/partner"))])
        }
        (_, "/receipt.txt", Some(name)) => Reply::new(200, format!("{name} paid 12.00\n"))
            .header("Content-Type", "text/plain")
            .header("Content-Disposition", "attachment; filename=\"receipt.txt\""),
        (_, "/parcels.json", _) => Reply::json(&json!(["parcel 1", "parcel 2"])),
        (_, path @ ("/order" | "/return" | "/parcels" | "/pay" | "/card"), _) => page(&path[1..], &[]),
        _ => Reply::html("<h1>Not here</h1>").status(404),
    }
}

fn page(name: &str, words: &[(&str, &str)]) -> Reply {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/shop");
    let text = fs::read_to_string(folder.join(format!("{name}.html"))).unwrap();
    Reply::html(words.iter().fold(text, |text, (word, meant)| text.replace(word, meant)))
}

/// A client within one session, and the last page that it received.
pub(crate) struct Visitor {
    pub(crate) pipe: Pipe,
    transcript: String,
}

impl Visitor {
    pub(crate) fn of(command: Command) -> Self {
        Self { pipe: Pipe::start(command), transcript: String::new() }
    }

    /// A client of a server over HTTP, by this name, in this generation of the protocol.
    pub(crate) fn over_http(home: &Home, url: &str, name: &str, mode: &str) -> Self {
        let mut command = home.command(python_program("python"), &[]);
        command.arg(peer("calls.py")).arg(url).env("TOKEN", TOKEN).env("NAME", name).env("MODE", mode);
        Self::of(command)
    }

    /// Calls a tool, and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.pipe.send(json!({"tool": tool, "arguments": arguments}).to_string());
        let result = self.pipe.receive();
        self.transcript.push_str(text(&result));
        self.transcript.push('\n');
        result
    }

    /// The text of a call that works.
    #[track_caller]
    pub(crate) fn does(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments.clone());
        assert!(result["isError"] != true, "{tool} {arguments}: {result}");
        text(&result).to_owned()
    }

    /// The text and the kind of the error of a call that fails.
    #[track_caller]
    pub(crate) fn fails(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, arguments.clone());
        assert!(result["isError"] == true, "{tool} {arguments}: {result}");
        let kind = result["_meta"]["toolstead/errorKind"].as_str().unwrap_or("execution_failed");
        (kind.to_owned(), text(&result).to_owned())
    }

    /// Opens an address; returns the page.
    #[track_caller]
    pub(crate) fn opens(&mut self, url: &str) -> String {
        self.does("browser_navigate", json!({"url": url}))
    }

    /// Calls the tool with the element whose line contains `part`, and with more arguments.
    #[track_caller]
    pub(crate) fn does_to(&mut self, tool: &str, part: &str, more: Value) -> String {
        let arguments = self.to(part, more);
        self.does(tool, arguments)
    }

    #[track_caller]
    pub(crate) fn clicks(&mut self, part: &str) -> String {
        self.does_to("browser_click", part, json!({}))
    }

    /// Clicks, and waits for what has to show then, however slow this machine is.
    #[track_caller]
    pub(crate) fn clicks_to(&mut self, part: &str, shows: &str) -> String {
        self.clicks(part) + &self.waits("text", Some(shows))
    }

    /// Clicks, and waits until the page asks for nothing any more.
    #[track_caller]
    pub(crate) fn clicks_and_waits(&mut self, part: &str) -> String {
        self.clicks(part) + &self.waits("idle", None)
    }

    #[track_caller]
    pub(crate) fn waits(&mut self, condition: &str, value: Option<&str>) -> String {
        let mut arguments = json!({"condition": condition});
        if let Some(value) = value {
            arguments["value"] = value.into();
        }
        let waited = self.does("browser_wait_for", arguments);
        // A wait reports changes, and never a new page.
        match waited.contains("Much of the page is new") {
            true => waited + &self.does("browser_get_page", json!({})),
            false => waited,
        }
    }

    #[track_caller]
    pub(crate) fn types(&mut self, part: &str, text: &str) -> String {
        self.does_to("browser_type", part, json!({"text": text}))
    }

    /// Adds the last reported reference of the element whose line contains `part` to the arguments.
    #[track_caller]
    pub(crate) fn to(&self, part: &str, mut more: Value) -> Value {
        let reference =
            reference(&self.transcript, part).unwrap_or_else(|| panic!("no {part} in\n{}", self.transcript));
        more["ref"] = reference.into();
        more
    }

    /// Signs in as a user.
    #[track_caller]
    pub(crate) fn signs_in(&mut self, shop: &Shop, name: &str) -> String {
        self.opens(&shop.url("/sign-in"));
        self.types("textbox \"Name\"", name);
        self.does_to("browser_type", "textbox \"Password\"", json!({"secret": PASSWORD}));
        self.clicks_to("button \"Sign in\"", &format!("Welcome, {name}"))
    }
}

/// The first text of a result.
pub(crate) fn text(result: &Value) -> &str {
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    blocks.iter().find_map(|block| block["text"].as_str()).unwrap_or_default()
}

/// The reference of the last line that holds this.
fn reference(outcome: &str, part: &str) -> Option<String> {
    let line = outcome.lines().rev().find(|line| line.contains(part) && line.contains("[e"))?;
    Some(format!("e{}", line.split("[e").nth(1)?.split(']').next()?))
}

/// Processes of browsers. Their descriptors are held open, so that their numbers are not reused.
pub(crate) struct Browsers {
    processes: HashMap<u32, OwnedFd>,
}

impl Browsers {
    /// Those that a process has started by now, with all that belongs to them.
    pub(crate) fn below(process: u32) -> Self {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (child, parent) in fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let name = entry.unwrap().file_name().to_str()?.parse().ok()?;
            Some((name, parent(name)?))
        }) {
            children.entry(parent).or_default().push(child);
        }
        let mut waiting = vec![process];
        let mut processes = HashMap::new();
        while let Some(one) = waiting.pop() {
            let below = children.remove(&one).unwrap_or_default();
            let is_browser = fs::read(format!("/proc/{one}/cmdline")).is_ok_and(|line| {
                let line = String::from_utf8_lossy(&line).into_owned();
                line.contains("chrom") && line.contains("headless")
            });
            let pid = i32::try_from(one).ok().and_then(Pid::from_raw).unwrap();
            if let (true, Ok(held)) = (is_browser, pidfd_open(pid, PidfdFlags::empty())) {
                processes.insert(one, held);
            }
            waiting.extend(below);
        }
        Self { processes }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.processes.is_empty()
    }

    /// Those that were not among the others.
    pub(crate) fn without(mut self, others: &Self) -> Self {
        self.processes.retain(|process, _| !others.processes.contains_key(process));
        self
    }

    /// The processes that still run.
    pub(crate) fn running(&self) -> Vec<u32> {
        self.processes
            .iter()
            .filter(|(_, held)| !has_ended(held, Duration::ZERO))
            .map(|(process, _)| *process)
            .collect()
    }

    /// Waits until none of them runs.
    #[track_caller]
    pub(crate) fn end(&self) {
        let end = Instant::now() + Duration::from_secs(120);
        for (process, held) in &self.processes {
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                has_ended(held, left),
                "{process} still runs: {:?}",
                fs::read_to_string(format!("/proc/{process}/cmdline"))
            );
        }
    }
}

fn has_ended(held: &OwnedFd, wait: Duration) -> bool {
    let wait = Timespec::try_from(wait).unwrap();
    poll(&mut [PollFd::new(held, PollFlags::IN)], Some(&wait)).unwrap() > 0
}

fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in brackets and may contain any character.
    status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
