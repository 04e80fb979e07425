//! The rows of the table.

use crate::{
    Outcome,
    cost::Used,
    gateways::{Peer, relay_to},
    load::{Connection, Rate, Target, header, rate},
    machine, side_by_side,
};
use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 16;
/// What clients of 2026-07-28 say with every request.
const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Runs every row, or those whose name holds `only`.
pub(crate) async fn run(only: Option<&String>) -> Outcome<()> {
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only.as_str()));
    println!("{}", machine::facts());
    println!("{:<34} {:>12} {:>12} {:>8} {:>8}  note", "row", "subject", "reference", "ratio", "budget");
    if wanted("start") {
        start()?;
    }
    if wanted("echo") {
        let server = Server::start("", &[]).await?;
        let sdk = Reference::http("sdk")?;
        let (ours, theirs) = alternate(server.child.id(), &server.target, "echo", &sdk.target, "echo").await?;
        print("echo, HTTP, sessions", ours, theirs, "0.60", "a bare server on the official SDK, stateless JSON");
        let stateless = server.stateless("echo");
        let (ours, theirs) = alternate(server.child.id(), &stateless, "echo", &sdk.target, "echo").await?;
        print("echo, HTTP, 2026-07-28", ours, theirs, "0.60", "the same");
        let plain = Reference::http("echo")?;
        let (ours, theirs) = alternate(server.child.id(), &server.target, "echo", &plain.target, "echo").await?;
        print("echo, HTTP, sessions", ours, theirs, "0.55", "a plain hyper echo");
    }
    if wanted("proxy-http") {
        let backend = |up: &Reference| format!("transport = \"http\"\nurl = \"http://{}/mcp\"", up.target.address);
        let ours = |up: &Reference| format!("url = \"http://{}/mcp\"", up.target.address);
        let [echo, unmarked] = [Reference::http("echo")?, Reference::http("echo-unmarked")?];
        proxied("HTTP", "0.30", [&ours(&echo), &ours(&unmarked)], &backend(&echo), &echo).await?;
    }
    if wanted("proxy-stdio") {
        let program = std::env::current_exe()?;
        let serving = |name: &str| format!("command = {program:?}\nargs = [\"--serve\", \"{name}\"]");
        let backend = format!("transport = \"stdio\"\n{}", serving("echo-stdio"));
        let ours = [&*serving("echo-stdio"), &serving("echo-stdio-unmarked")];
        proxied("stdio", "0.45", ours, &backend, &Reference::http("echo")?).await?;
    }
    if wanted("list") {
        list_of_many_tools().await?;
    }
    if wanted("read-window") {
        crate::files::windows(|home| toolstead(env!("CARGO_BIN_EXE_toolstead"), home))?;
    }
    if wanted("rows") {
        audit_rows().await?;
    }
    if wanted("spawn") {
        crate::spawn::run().await?;
    }
    if wanted("fetch") {
        crate::pages::run().await?;
    }
    if wanted("browser") {
        crate::browsing::run().await?;
    }
    if wanted("decide") {
        crate::decide::run()?;
    }
    crate::search::rows(|home| toolstead(env!("CARGO_BIN_EXE_toolstead"), home), wanted)?;
    if wanted("files") {
        side_by_side::run()?;
    }
    Ok(())
}

/// Calls through Toolstead to an upstream, and through others to the same one, in turn with the plain reference: a relay
/// that copies bytes to it, and `mcp-proxy` where there is one.
async fn proxied(kind: &str, budget: &str, ours: [&str; 2], backend: &str, plain: &Reference) -> Outcome<()> {
    let mut servers = Vec::new();
    for up in ours {
        let config = format!("[mcp_servers.up]\n{up}\nallow_tools = [\"*\"]\nprotocol = \"2025-11-25\"\n");
        servers.push(Server::start(&config, &["mcp__up__echo"]).await?);
    }
    let relay = relay_to(plain)?;
    let peer = Peer::start(backend).await?;
    let mut subjects: Vec<_> = ["read-only tool", "any tool"]
        .iter()
        .zip(&servers)
        .map(|(tool, server)| {
            let name = format!("proxied, {kind}, {tool}");
            Subject { name, budget, process: server.child.id(), target: &server.target, tool: "mcp__up__echo" }
        })
        .collect();
    let others = peer.as_ref().map(|peer| ("mcp-proxy", peer.child.id(), &peer.target, "up/echo"));
    let relay = ("a relay that copies bytes", relay.child.id(), &relay.target, "echo");
    for (name, process, target, tool) in others.into_iter().chain([relay]) {
        subjects.push(Subject { name: format!("  {name}"), budget: "", process, target, tool });
    }
    let (rates, reference) = in_turn(&subjects, &plain.target).await?;
    for (subject, rate) in subjects.iter().zip(rates) {
        print(&subject.name, rate, reference, subject.budget, "a plain hyper echo");
        one_connection("    one connection", subject.target, subject.tool, &plain.target).await?;
    }
    if peer.is_none() {
        println!("  mcp-proxy is not on the PATH and was not measured");
    }
    Ok(())
}

/// What is measured beside others.
struct Subject<'a> {
    name: String,
    budget: &'a str,
    process: u32,
    target: &'a Target,
    tool: &'a str,
}

/// Rounds of every subject and of the reference in turn; the medians.
async fn in_turn(subjects: &[Subject<'_>], reference: &Target) -> Outcome<(Vec<Rate>, Rate)> {
    let (mut rounds, mut plain) = (vec![Vec::new(); subjects.len()], Vec::new());
    for _ in 0..ROUNDS {
        for (subject, rounds) in subjects.iter().zip(&mut rounds) {
            rounds.push(costing(subject.process, subject.target, subject.tool).await?);
        }
        plain.push(rate(reference, "echo", CONNECTIONS, ROUND).await?);
    }
    Ok((rounds.into_iter().map(median).collect(), median(plain)))
}

/// One round, with what it cost the process.
async fn costing(process: u32, target: &Target, tool: &str) -> Outcome<Rate> {
    let before = Used::by(process)?;
    let mut round = rate(target, tool, CONNECTIONS, ROUND).await?;
    let used = Used::by(process)? - before;
    round.cost = Some(used.each(round.per_second * ROUND.as_secs_f64()));
    Ok(round)
}

fn print(row: &str, subject: Rate, reference: Rate, budget: &str, note: &str) {
    let ratio = subject.per_second / reference.per_second;
    println!(
        "{row:<34} {:>10.0}/s {:>10.0}/s {ratio:>8.2} {budget:>8}  {note}; the slowest in a hundred {:.1} ms{}",
        subject.per_second,
        reference.per_second,
        subject.slow.as_secs_f64() * 1e3,
        subject.cost.map_or(String::new(), |cost| {
            format!("; a call takes {:.1} us of processor time, {:.2} switches", cost.micros, cost.switches)
        })
    );
}

/// Rounds of subject and reference in turn; the medians.
async fn alternate(
    process: u32,
    subject: &Target,
    tool: &str,
    reference: &Target,
    reference_tool: &str,
) -> Outcome<(Rate, Rate)> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(costing(process, subject, tool).await?);
        theirs.push(rate(reference, reference_tool, CONNECTIONS, ROUND).await?);
    }
    Ok((median(ours), median(theirs)))
}

async fn one_connection(row: &str, subject: &Target, tool: &str, reference: &Target) -> Outcome<()> {
    let ours = rate(subject, tool, 1, ROUND).await?.median;
    let theirs = rate(reference, "echo", 1, ROUND).await?.median;
    let added = ours.saturating_sub(theirs);
    println!(
        "{row:<34} {:>10.0}us {:>10.0}us {:>8} {:>8}  added at the median: {} us",
        micros(ours),
        micros(theirs),
        "",
        "+60 us",
        added.as_micros()
    );
    Ok(())
}

fn median(mut rates: Vec<Rate>) -> Rate {
    rates.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    rates[rates.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// From the spawn of `toolstead mcp` to the answered `tools/list`, and its memory when idle.
fn start() -> Outcome<()> {
    let home = tempfile::tempdir()?;
    let mut times = Vec::new();
    let mut resident = 0;
    for _ in 0..21 {
        let begun = Instant::now();
        let mut child = toolstead(env!("CARGO_BIN_EXE_toolstead"), home.path())
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().ok_or("no stdin")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        writeln!(
            input,
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
        )?;
        writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
        writeln!(input, r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list"}}"#)?;
        wait_for(&mut output, "\"tools\"")?;
        times.push(begun.elapsed());
        resident = resident_kib(child.id())?;
        drop(input);
        child.wait()?;
    }
    times.sort();
    let middle = times[times.len() / 2].as_secs_f64() * 1e3;
    println!("{:<34} {middle:>10.1}ms {:>12} {:>8} {:>8}  spawn to the answered tools/list", "start", "", "", "20 ms");
    println!(
        "{:<34} {:>9.1}MiB {:>12} {:>8} {:>8}  resident afterwards",
        "memory, idle",
        resident as f64 / 1024.0,
        "",
        "",
        "25 MB"
    );
    Ok(())
}

fn wait_for(output: &mut BufReader<ChildStdout>, wanted: &str) -> Outcome<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            return Err("the program ended early".into());
        }
        if line.contains(wanted) {
            return Ok(());
        }
    }
}

pub(crate) fn resident_kib(process: u32) -> Outcome<u64> {
    let mut status = String::new();
    std::fs::File::open(format!("/proc/{process}/status"))?.read_to_string(&mut status)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

async fn list_of_many_tools() -> Outcome<()> {
    let config = format!(
        "[mcp_servers.many]\ncommand = {:?}\nargs = [\"--serve\", \"tools-stdio:10000\"]\nallow_tools = [\"*\"]\nprotocol = \"2025-11-25\"\nmax_tools = 10000\n",
        std::env::current_exe()?
    );
    let server = Server::start(&config, &["mcp__many__echo"]).await?;
    let mut connection = Connection::open(&server.target).await?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let mut cursor = None;
        loop {
            let params = cursor.map_or("{}".to_owned(), |cursor: String| format!("{{\"cursor\":{cursor:?}}}"));
            let request = server
                .target
                .request(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#));
            let sent = Instant::now();
            let answer = connection.exchange(&request).await?;
            times.push(sent.elapsed());
            let message: serde_json::Value = serde_json::from_slice(&answer.body)?;
            match message["result"]["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
    }
    // The first page is asked for while the catalogue is on its way to the disk.
    let (first, pages) = (times[0], times.len() / ROUNDS);
    times.sort();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{:<34} {:>10.2}ms {:>12} {:>8} {:>8}  {pages} pages, the first of all {:.2} ms, the slowest {:.2} ms",
        "tools/list of 10,000, a page",
        millis(times[times.len() / 2]),
        "",
        "",
        "5 ms",
        millis(first),
        millis(times[times.len() - 1])
    );
    Ok(())
}

/// The call rate with a million rows in the trail against an empty one.
async fn audit_rows() -> Outcome<()> {
    let full = Server::start("", &[]).await?;
    full.fill_trail(1_000_000).await?;
    let empty = Server::start("", &[]).await?;
    let (ours, theirs) = alternate(full.child.id(), &full.target, "echo", &empty.target, "echo").await?;
    print("echo, 10^6 audit rows", ours, theirs, "1.00", "the same with an empty trail");
    Ok(())
}

/// A reference in a process of its own.
pub(crate) struct Reference {
    pub(crate) child: Child,
    pub(crate) target: Target,
}

impl Reference {
    pub(crate) fn http(name: &str) -> Outcome<Self> {
        let mut child =
            Command::new(std::env::current_exe()?).args(["--serve", name]).stdout(Stdio::piped()).spawn()?;
        let mut port = String::new();
        BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut port)?;
        let headers = "mcp-protocol-version: 2025-11-25\r\n".to_owned();
        let path = if name == "sdk" { "/" } else { "/mcp" }.into();
        let address = format!("127.0.0.1:{}", port.trim());
        Ok(Self { child, target: Target { address, path, headers, meta: "".into() } })
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // It holds nothing that a kill could hurt.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `toolstead-server` with a configuration of its own.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) target: Target,
    token: String,
    home: tempfile::TempDir,
}

impl Server {
    /// Starts the server, opens a session, and waits until it offers the tools.
    pub(crate) async fn start(config: &str, tools: &[&str]) -> Outcome<Self> {
        let home = tempfile::tempdir()?;
        let file = home.path().join("bench.toml");
        std::fs::write(&file, format!("[workspace]\nroots = [{:?}]\n{config}", home.path()))?;
        let token = "bench-token-bench-token-bench-token".to_owned();
        let mut command = toolstead(env!("CARGO_BIN_EXE_toolstead-server"), home.path());
        command.arg("--config").arg(&file).args(["--listen", "127.0.0.1:0"]).env("TOOLSTEAD_SERVER_TOKEN", &token);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut line = String::new();
        let address = loop {
            line.clear();
            if output.read_line(&mut line)? == 0 {
                return Err("toolstead-server ended early".into());
            }
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split(['/', ' ', '\n', '"']).next().unwrap_or_default().to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let headers = format!("authorization: Bearer {token}\r\n");
        let mut server =
            Self { child, target: Target { address, path: "/mcp".into(), headers, meta: "".into() }, token, home };
        server.open_session().await?;
        server.wait_for_tools(tools).await?;
        Ok(server)
    }

    async fn open_session(&mut self) -> Outcome<()> {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let mut connection = Connection::open(&self.target).await?;
        let answer = connection.exchange(&self.target.request(initialize)).await?;
        let session = header(&answer.head, "mcp-session-id")
            .ok_or_else(|| format!("no session: {}", String::from_utf8_lossy(&answer.body)))?;
        self.target.headers += &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
        connection.exchange(&self.target.request(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)).await?;
        Ok(())
    }

    async fn wait_for_tools(&self, tools: &[&str]) -> Outcome<()> {
        let mut connection = Connection::open(&self.target).await?;
        let deadline = Instant::now() + Duration::from_secs(20);
        for tool in tools {
            let call = self.target.request(&self.target.call(7, tool, "hello"));
            loop {
                let answer = connection.exchange(&call).await?;
                if String::from_utf8_lossy(&answer.body).contains("Echo: hello") {
                    break;
                }
                if Instant::now() > deadline {
                    return Err(format!("`{tool}` does not come: {}", String::from_utf8_lossy(&answer.body)).into());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    /// The same server for a client of 2026-07-28 that calls this tool.
    fn stateless(&self, tool: &str) -> Target {
        let headers = format!(
            "authorization: Bearer {}\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n",
            self.token
        );
        Target { headers, meta: META.into(), ..self.target.clone() }
    }

    /// Copies the newest row until there are so many.
    async fn fill_trail(&self, rows: u32) -> Outcome<()> {
        rate(&self.target, "echo", 1, Duration::from_millis(200)).await?;
        let file = find_database(self.home.path()).ok_or("no database")?;
        fill(&file, &table_columns(&file).await?, rows).await
    }
}

/// The columns of the audit table, in order.
async fn table_columns(file: &Path) -> Outcome<Vec<String>> {
    let pool = sqlx::SqlitePool::connect_with(sqlx::sqlite::SqliteConnectOptions::new().filename(file)).await?;
    let rows: Vec<(String,)> =
        sqlx::query_as("SELECT name FROM pragma_table_info('tool_executions') WHERE name <> 'seq' ORDER BY cid")
            .fetch_all(&pool)
            .await?;
    Ok(rows.into_iter().map(|(name,)| name).collect())
}

/// Fills the table with copies of one row under ids that sort before today's.
async fn fill(file: &Path, columns: &[String], rows: u32) -> Outcome<()> {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file).busy_timeout(Duration::from_secs(60));
    let pool = sqlx::SqlitePool::connect_with(options).await?;
    let copied: Vec<&str> =
        columns.iter().map(|name| if name == "id" { "unhex(printf('%032x', x))" } else { name.as_str() }).collect();
    let statement = format!(
        "INSERT INTO tool_executions ({}) WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {rows}) SELECT {} FROM n, (SELECT * FROM tool_executions LIMIT 1)",
        columns.join(", "),
        copied.join(", ")
    );
    sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&pool).await?;
    Ok(())
}

fn find_database(folder: &Path) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let database = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|extension| extension == "db" || extension == "sqlite")
    };
    files.into_iter().find(database).or_else(|| folders.iter().find_map(|folder| find_database(folder)))
}

impl Drop for Server {
    fn drop(&mut self) {
        // The measurement is over; its data folder goes as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A binary of Toolstead with a home of its own and nothing else of this environment.
pub(crate) fn toolstead(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home).current_dir(home);
    command
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .stderr(Stdio::inherit());
    command.arg("-q");
    command
}
