//! Code that calls tools, through the real binary: real python3, node and bash in the sandbox, and each call on the path of
//! every call.

use crate::binaries::{Home, Pipe, peer, python_program, stdout};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

const CONFIG: &str = "[permissions]\nallow = [\"Bash\", \"Tools(*)\"]\ndeny = [\"Read(secret.txt)\"]\n";

/// A client in a workspace with these tools.
struct Place {
    home: Home,
    client: Pipe,
    calls: u64,
}

impl Place {
    fn new() -> Self {
        Self::with(CONFIG)
    }

    fn with(config: &str) -> Self {
        let home = Home::new();
        let mut command = home.toolstead(&["mcp", "--config"]);
        command.arg(home.config(config));
        let mut client = Pipe::start(command);
        client.initialize();
        Self { home, client, calls: 0 }
    }

    fn put(&self, name: &str, content: &str) {
        let path = self.home.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Sends a call without waiting for its answer; its id.
    fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.calls += 1;
        let params = json!({"name": tool, "arguments": arguments});
        self.client
            .send(json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params}).to_string());
        self.calls
    }

    /// The result of a call.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments);
        self.client.answer(id)["result"].take()
    }

    /// The output of code.
    #[track_caller]
    fn prints(&mut self, language: &str, code: &str, tools: &[&str]) -> String {
        let arguments = json!({"language": language, "code": code, "tools": tools});
        let result = self.call("run_code", &arguments);
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(result.get("isError"), None, "{language}: {result}");
        text
    }

    /// Returns the records of the audit log, newest first.
    fn rows(&self) -> Vec<Value> {
        let listed = self.home.run(&["executions", "list", "--limit", "500", "--json"]);
        serde_json::from_str::<Value>(&stdout(&listed)).unwrap()["executions"].as_array().unwrap().clone()
    }
}

/// Checks what one piece of code prints in each language.
#[track_caller]
fn check(place: &mut Place, tools: &[&str], expected: &str, codes: [(&str, &str); 3]) {
    for (language, code) in codes {
        assert_eq!(place.prints(language, code, tools), expected, "{language}: {code}");
    }
}

#[test]
fn forty_calls_in_a_loop_are_recorded_as_nested_calls_of_one_call() {
    let mut place = Place::new();
    for number in 0..40 {
        place.put(&format!("logs/{number}.log"), &"ERROR ä\nok\n".repeat(number));
    }
    check(
        &mut place,
        &["read_file"],
        "780\n",
        [
            (
                "python",
                "print(sum(tools.read_file(path=f'logs/{i}.log').get('content', '').count('ERROR') for i in range(40)))",
            ),
            (
                "javascript",
                "let errors = 0;\nfor (let i = 0; i < 40; i++) {\n\
                 const { content } = await tools.readFile({ path: `logs/${i}.log` });\n\
                 errors += (content ?? '').split('ERROR').length - 1;\n}\nconsole.log(errors);",
            ),
            ("shell", "for i in {0..39}; do read_file --path logs/$i.log; done | grep -o ERROR | wc -l"),
        ],
    );
    let rows = place.rows();
    let parents: Vec<&str> =
        rows.iter().filter(|row| row["tool"] == "run_code").map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(parents.len(), 3);
    for parent in parents {
        let below = rows.iter().filter(|row| row["parent"] == parent && row["tool"] == "read_file");
        assert_eq!(below.filter(|row| row["outcome"] == "succeeded").count(), 40);
    }
}

#[test]
fn refused_and_failed_calls_raise_errors_that_code_can_catch() {
    let mut place = Place::new();
    place.put("secret.txt", "x");
    check(
        &mut place,
        &["read_file"],
        "permission_denied\ninvalid_input\nnot_found\n",
        [
            (
                "python",
                "for wrong in {'path': 'secret.txt'}, {'path': 1, 'nonsense': 2}, {'path': 'nowhere'}:\n\
                 \x20   try: tools.read_file(wrong)\n    except tools.ToolError as error: print(error.kind)",
            ),
            (
                "javascript",
                "for (const wrong of [{ path: 'secret.txt' }, { path: 1, nonsense: 2 }, { path: 'nowhere' }]) {\n\
                 try { await tools.readFile(wrong); } catch (error) {\n\
                 if (!(error instanceof tools.ToolError)) throw error;\nconsole.log(error.kind); }\n}",
            ),
            (
                "shell",
                "said() { case $? in 3) echo permission_denied;; 2) echo invalid_input;; 4) echo not_found;; esac; }\n\
                 read_file --path secret.txt 2>/dev/null || said\n\
                 tool read_file '{\"path\": 1, \"nonsense\": 2}' 2>/dev/null || said\n\
                 read_file --path nowhere 2>/dev/null || said",
            ),
        ],
    );
    let failed = place.call("run_code", &json!({"language": "python", "code": "\n\ntools.read_file('secret.txt')"}));
    assert_eq!((&failed["isError"], &failed["structuredContent"]["error_line"]), (&json!(true), &json!(3)), "{failed}");
    assert!(failed["content"][0]["text"].as_str().unwrap().contains("ToolError: permission_denied"), "{failed}");
}

#[test]
fn code_reaches_no_tool_that_its_call_does_not_name() {
    let mut place = Place::new();
    place.put("a.txt", "a");
    check(
        &mut place,
        &["file_info"],
        "file_info\nrefused\nrefused\n",
        [
            (
                "python",
                "print(*tools.list())\nfor name in 'write_file', 'bash':\n\
                 \x20   try: tools.call(name, {'path': 'b', 'content': '', 'command': 'true'})\n\
                 \x20   except ToolError: print('refused')",
            ),
            (
                "javascript",
                "console.log(...Object.keys(tools.list()));\nfor (const name of ['write_file', 'bash']) {\n\
                 try { await tools.call(name, { path: 'b', content: '', command: 'true' }); }\n\
                 catch (error) { console.log('refused'); }\n}",
            ),
            (
                "shell",
                "tool --list | grep -o '^[a-z_]*' | sort -u\n\
                 tool write_file --path b --content x 2>/dev/null || echo refused\n\
                 tool bash --command true 2>/dev/null || echo refused",
            ),
        ],
    );
    assert!(!place.home.work().join("b").exists());
    let unasked = place.prints("shell", "command -v tool; echo \"${TOOLSTEAD_TOOLS-none}\"", &[]);
    assert_eq!(unasked, "none\n");
}

#[test]
fn code_makes_concurrent_calls_and_passes_values_of_several_megabytes() {
    let mut place = Place::new();
    // No process has an argument of this size, so that the shell has it in its input.
    check(
        &mut place,
        &["echo"],
        "5000006\n",
        [
            ("python", "print(len(tools.echo(message='ü' * 5_000_000)))"),
            ("javascript", "console.log((await tools.echo({ message: 'ü'.repeat(5_000_000) })).length);"),
            (
                "shell",
                "{ printf '{\"message\": \"'; head -c 5000000 /dev/zero | tr '\\0' u; printf '\"}'; } | tool echo - \
                 | tr -d '\\n' | wc -c",
            ),
        ],
    );
    check(
        &mut place,
        &["echo"],
        "Echo: 0 Echo: 19\n",
        [
            (
                "python",
                "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(20) as pool:\n\
                 \x20   said = list(pool.map(lambda i: tools.echo(message=str(i)), range(20)))\n\
                 print(said[0], said[19])",
            ),
            (
                "javascript",
                "const said = await Promise.all(Array.from({ length: 20 }, (_, i) => tools.echo({ message: `${i}` })));\n\
                 console.log(said[0], said[19]);",
            ),
            ("shell", "for i in {0..19}; do tool echo --message $i >said.$i & done; wait\necho $(cat said.0 said.19)"),
        ],
    );
}

#[test]
fn code_can_call_each_tool_by_its_original_name_and_read_its_help() {
    let mut place = Place::new();
    check(
        &mut place,
        &["current_time"],
        "True\n",
        [
            ("python", "print(tools['current_time'](zone='UTC') and 'zone' in tools.help('current_time'))"),
            (
                "javascript",
                "const said = await tools.help('currentTime');\n\
                 console.log(await tools['current_time']({ zone: 'UTC' }) && said.includes('zone') ? 'True' : said);",
            ),
            ("shell", "tool current_time --zone UTC >/dev/null && echo True"),
        ],
    );
}

#[test]
fn tools_of_servers_are_functions_as_far_as_the_rules_allow() {
    let mut place = Place::with(&format!(
        "[mcp_servers.git-hub]\ncommand = {:?}\nargs = [{:?}, \"good\"]\n[permissions]\n\
         allow = [\"Bash\", \"Tools(*)\", \"mcp__git-hub__work\"]\ndeny = [\"mcp__git-hub__facts\"]\n",
        python_program("python"),
        peer("hostile_upstream.py")
    ));
    // A server has its tools once it was met.
    assert_eq!(place.call("mcp__git-hub__work", &json!({"n": 1}))["content"][0]["text"], "1");
    check(
        &mut place,
        &["mcp__git-hub__*"],
        "mcp__git-hub__work 7 8\nrefused\n",
        [
            (
                "python",
                "print(*tools.list(), tools.mcp__git_hub__work(n=7), tools['mcp__git-hub__work']('8'))\n\
                 try: tools.call('mcp__git-hub__facts')\nexcept ToolError: print('refused')",
            ),
            (
                "javascript",
                "console.log(...Object.keys(tools.list()), await tools.mcpGitHubWork({ n: 7 }),\n\
                 await tools['mcp__git-hub__work']('8'));\n\
                 try { await tools.call('mcp__git-hub__facts'); } catch { console.log('refused'); }",
            ),
            (
                "shell",
                "echo $(tool --list | cut -f1) $(tool mcp__git-hub__work --n 7) $(mcp__git-hub__work --n 8)\n\
                 tool mcp__git-hub__facts 2>/dev/null || echo refused",
            ),
        ],
    );
}

#[test]
fn cancelling_a_run_code_call_ends_the_code_and_its_nested_calls() {
    for (language, code) in [
        ("python", "open('began', 'w').close()\nwhile True: tools.list_directory(path='.')"),
        ("javascript", "require('fs').writeFileSync('began', '');\nfor (;;) await tools.listDirectory({ path: '.' });"),
        ("shell", ": >began; while :; do tool list_directory --path . >/dev/null; done"),
    ] {
        let mut place = Place::new();
        let id = place.begin("run_code", &json!({"language": language, "code": code}));
        let deadline = Instant::now() + Duration::from_secs(120);
        while !place.home.work().join("began").exists() {
            assert!(Instant::now() < deadline, "{language} begins");
            std::thread::yield_now();
        }
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        place.client.send(cancelled.to_string());
        while !place.rows().iter().any(|row| row["tool"] == "run_code" && row["outcome"] == "cancelled") {
            assert!(Instant::now() < deadline, "{language} ends: {:?}", place.rows().first());
        }
        // A call that was made before is on record before the call that made it.
        let rows = place.rows();
        assert!(rows.iter().all(|row| row["outcome"] != "running"), "{language}: {rows:?}");
    }
}

/// The task: how often each service failed, in forty logs of 7.5 KB each.
const SERVICES: [&str; 4] = ["auth", "billing", "search", "mail"];
const LOGS: usize = 40;

fn log(number: usize) -> String {
    let mut log = String::new();
    for line in 0.. {
        let service = SERVICES[(number * 7 + line * line) % 4];
        let level = if (number + line * 3).is_multiple_of(11) { "ERROR" } else { "INFO" };
        writeln!(
            log,
            "2026-03-01T12:{:02}:{:02}Z {level} {service} request {number}-{line} handled",
            line / 60,
            line % 60
        )
        .unwrap();
        if log.len() >= 7_500 {
            return log;
        }
    }
    unreachable!("a log grows with every line")
}

fn failures() -> Vec<(&'static str, usize)> {
    let logs: Vec<String> = (0..LOGS).map(log).collect();
    let of = |service: &str| logs.iter().map(|log| log.matches(&format!("ERROR {service} ")).count()).sum();
    SERVICES.iter().map(|service| (*service, of(service))).collect()
}

/// Four bytes are a token, as an agent counts before a model has said better.
fn tokens<'a>(values: impl IntoIterator<Item = &'a Value>) -> usize {
    values.into_iter().map(|value| value.to_string().len()).sum::<usize>() / 4
}

/// All that a model reads and writes for one way: the definitions of its tools, its calls, and the results as agents send
/// them.
struct Way {
    name: &'static str,
    calls: usize,
    definitions: usize,
    asked: usize,
    answered: usize,
}

impl Way {
    fn of(place: &mut Place, name: &'static str, tools: &[&str], calls: &[(&str, Value)]) -> (Self, String) {
        place.calls += 1;
        place.client.send(json!({"jsonrpc": "2.0", "id": place.calls, "method": "tools/list"}).to_string());
        let id = place.calls;
        let mut listed = place.client.answer(id);
        let listed: Vec<Value> = serde_json::from_value(listed["result"]["tools"].take()).unwrap();
        let definitions = tokens(listed.iter().filter(|tool| tools.contains(&tool["name"].as_str().unwrap())));
        let asked: Vec<Value> =
            calls.iter().map(|(tool, arguments)| json!({"name": tool, "input": arguments})).collect();
        let mut answers = Vec::new();
        let mut said = String::new();
        for (tool, arguments) in calls {
            let result = place.call(tool, arguments);
            assert_eq!(result.get("isError"), None, "{name}: {result}");
            said = result["content"][0]["text"].as_str().unwrap().to_owned();
            answers.push(result["content"].clone());
        }
        (Self { name, calls: calls.len(), definitions, asked: tokens(&asked), answered: tokens(&answers) }, said)
    }

    fn total(&self) -> usize {
        self.definitions + self.asked + self.answered
    }
}

#[test]
fn a_task_of_forty_calls_costs_a_fiftieth_of_the_tokens_when_code_does_it() {
    let mut place = Place::new();
    let mut bytes = 0;
    for number in 0..LOGS {
        bytes += log(number).len();
        place.put(&format!("logs/{number}.log"), &log(number));
    }
    assert!(bytes >= 300_000, "{bytes}");
    let expected: String =
        failures().iter().fold(String::new(), |all, (service, count)| all + &format!("{service} {count}\n"));

    let single: Vec<(&str, Value)> =
        (0..LOGS).map(|number| ("read_file", json!({"path": format!("logs/{number}.log")}))).collect();
    let (single, _) = Way::of(&mut place, "single calls of `read_file`", &["read_file"], &single);
    let code = "from collections import Counter\nfailed = Counter()\nfor i in range(40):\n    \
                for line in tools.read_file(path=f'logs/{i}.log')['content'].splitlines():\n        \
                _, level, service, *_ = line.split()\n        failed[service] += level == 'ERROR'\n\
                for service in 'auth', 'billing', 'search', 'mail': print(service, failed[service])";
    let arguments = json!({"language": "python", "code": code, "tools": ["read_file"]});
    let (by_code, said) = Way::of(&mut place, "`run_code`", &["run_code"], &[("run_code", arguments)]);
    assert_eq!(said, expected);
    let line = "for i in {0..39}; do tool read_file --path logs/$i.log; done | grep -oE 'ERROR [a-z]+' >/tmp/failed; \
                for s in auth billing search mail; do echo $s $(grep -c \" $s$\" /tmp/failed); done";
    let arguments = json!({"command": line, "tools": ["read_file"]});
    let (by_pipes, said) = Way::of(&mut place, "`bash` with pipes", &["bash"], &[("bash", arguments)]);
    assert_eq!(said, expected);

    let mut table = String::from(
        "| way | calls | definitions | calls, written | results, read | together |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for way in [&single, &by_pipes, &by_code] {
        let Way { name, calls, definitions, asked, answered } = way;
        writeln!(table, "| {name} | {calls} | {definitions} | {asked} | {answered} | {} |", way.total()).unwrap();
    }
    println!("{table}");
    for way in [&by_pipes, &by_code] {
        assert!(way.total() * 50 <= single.total(), "{table}");
    }
    assert_figures("docs/guide/agent.md", &table);
}

/// Checks that a page has this table, with figures that are at most a tenth off.
fn assert_figures(page: &str, table: &str) {
    let page = fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page)).unwrap();
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    for row in table.lines().filter(|row| !row.starts_with("| ---")) {
        let measured = cells(row);
        let output = page.lines().map(cells).find(|output| output.get(1) == measured.get(1));
        let output = output.unwrap_or_else(|| panic!("the page has no row `{row}`"));
        for (output, measured) in output.iter().zip(&measured) {
            match (output.parse::<f64>(), measured.parse::<f64>()) {
                (Ok(output), Ok(measured)) => assert!((output - measured).abs() <= measured / 10.0, "{row}: {output}"),
                _ => assert_eq!(output, measured, "{row}"),
            }
        }
    }
}
