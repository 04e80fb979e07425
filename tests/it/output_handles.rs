//! `read_file` and `grep` take the handle of a stored output wherever they take a path.

use crate::{
    outputs::House,
    support::{StdioClient, call, legacy, text_of},
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn ranges_and_searches_on_the_handle_of_a_50_mb_result_work() {
    let house = House::new().await;
    let mut client = StdioClient::legacy(&house.app).await;
    client.ask(legacy(1, "tools/call", call("lines", json!({"count": 500_000})))).await;
    let mut ask = async |tool: &str, arguments: Value| client.ask(legacy(2, "tools/call", call(tool, arguments))).await;

    // From the middle, and from the very end.
    for line in [1, 250_000, 499_998] {
        let answer = ask("read_file", json!({"path": "o1", "offset": line, "limit": 3})).await;
        let text = text_of(&answer);
        assert!(text.contains(&format!("{:09} x", line)) && text.contains(&format!("{:09} x", line + 2)), "{text}");
        assert!(!text.contains(&format!("{:09} x", line + 3)), "{text}");
        assert!(text.len() < 2000, "{text}");
    }
    let answer = ask("grep", json!({"path": "o1", "pattern": "^000(123456|400000) ", "output_mode": "content"})).await;
    let text = text_of(&answer);
    assert!(text.contains("000123456 x") && text.contains("000400000 x"), "{text}");
    assert!(text.contains("123456") && text.len() < 2000, "{text}");

    for tool in ["read_file", "grep"] {
        let answer = ask(tool, json!({"path": "o99", "pattern": "x"})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    // A file of that name is meant where it is given as a path.
    std::fs::write(house.work("o1"), "a file\n").unwrap();
    let answer = ask("read_file", json!({"path": "./o1"})).await;
    assert!(text_of(&answer).contains("a file"), "{answer}");
}
