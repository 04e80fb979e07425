use super::*;
use serde_json::json;
use toolstead_domain::testing::{in_memory_output_store::InMemoryOutputStore, samples};

/// `o1`: a text; `o2`: JSON; `o3`: a text that is JSON; `o4`: binary; `o5`: another principal's; `o6`: a reference.
async fn store() -> InMemoryOutputStore {
    let outputs = InMemoryOutputStore::new();
    let rows = r#"{"rows": [{"n": 1}, {"n": "zwei"}], "a/b": {"~": null}, "": 0}"#;
    for (owner, media_type, content) in [
        ("ann", "text/plain", "line\n".as_bytes()),
        ("ann", "application/json", rows.as_bytes()),
        ("ann", "text/plain", rows.as_bytes()),
        ("ann", "image/png", &[0xff, 0xfe, 0]),
        ("bob", "text/plain", b"bob's"),
        ("ann", "application/json", br#"{"$ref": "o1"}"#),
    ] {
        outputs.store(&Principal::token(owner), samples::call_id(1), media_type, content).await.unwrap();
    }
    outputs
}

async fn substituted(arguments: Value) -> Result<Value, String> {
    let members = arguments.as_object().unwrap().clone();
    let done = substitute(members, &Principal::token("ann"), &store().await).await;
    done.map(|done| Value::Object(done.arguments)).map_err(|failure| failure.text())
}

async fn check(value: Value, expected: Value) {
    let given = json!({"deep": [{"x~/": value}]});
    assert_eq!(substituted(given).await.unwrap(), json!({"deep": [{"x~/": expected}]}));
}

async fn check_refused(value: Value, expected: &str) {
    assert_eq!(substituted(json!({"a": value})).await.unwrap_err(), expected);
}

#[tokio::test]
async fn a_reference_is_replaced_by_the_stored_output_that_it_names_at_any_depth() {
    let rows = json!({"rows": [{"n": 1}, {"n": "zwei"}], "a/b": {"~": null}, "": 0});
    check(json!({"$ref": "o1"}), json!("line\n")).await;
    check(json!({"$ref": "o2"}), rows.clone()).await;
    check(json!({"$ref": "o3"}), rows_text()).await;
    check(json!({"$ref": "o3", "select": ""}), rows).await;
    check(json!({"$ref": "o3", "select": "/rows/1"}), json!({"n": "zwei"})).await;
    check(json!({"select": "/rows/1/n", "$ref": "o2"}), json!("zwei")).await;
    check(json!({"$ref": "o2", "select": "/a~1b/~0"}), json!(null)).await;
    check(json!({"$ref": "o2", "select": "/"}), json!(0)).await;
    check(json!({"$ref": "o4"}), json!("//4A")).await;
    // Substituted values are data.
    check(json!({"$ref": "o6"}), json!({"$ref": "o1"})).await;
}

fn rows_text() -> Value {
    json!(r#"{"rows": [{"n": 1}, {"n": "zwei"}], "a/b": {"~": null}, "": 0}"#)
}

#[tokio::test]
async fn a_value_that_only_resembles_a_reference_is_passed_on_as_data() {
    for data in [
        json!({"$ref": "#/definitions/x"}),
        json!({"$ref": "o017"}),
        json!({"$ref": 17}),
        json!({"$ref": "o1", "description": "x"}),
        json!({"$ref": "o1", "select": 3}),
        json!({"$ref": "o1", "select": "/a", "more": 1}),
        json!({"select": "/a"}),
        json!("o1"),
        json!("{\"$ref\": \"o1\"}"),
    ] {
        check(data.clone(), data).await;
    }
    // The arguments object itself is not a reference.
    assert_eq!(substituted(json!({"$ref": "o1"})).await.unwrap(), json!({"$ref": "o1"}));
}

#[tokio::test]
async fn an_unresolvable_reference_is_rejected_with_the_available_outputs_or_keys() {
    let latest = "The latest are `o6` (14 bytes of application/json), `o4` (3 bytes of image/png), `o3` (62 bytes of \
                  text/plain), `o2` (62 bytes of application/json), `o1` (5 bytes of text/plain).";
    let gone = "there never was one, or it has expired";
    check_refused(json!({"$ref": "o9"}), &format!("`o9` names no stored output: {gone}. {latest}")).await;
    // An output of another principal is reported in the same way as an unknown one.
    check_refused(json!({"$ref": "o5"}), &format!("`o5` names no stored output: {gone}. {latest}")).await;
    let within = |pointer: &str| json!({"$ref": "o2", "select": pointer});
    check_refused(
        within("/rows/2/n"),
        "`/rows/2/n` cannot be selected in `o2`: `/rows` is an array of 2 items, counted from 0",
    )
    .await;
    check_refused(
        within("/rows/01"),
        "`/rows/01` cannot be selected in `o2`: `/rows` is an array of 2 items, counted from 0",
    )
    .await;
    check_refused(
        within("/row"),
        "`/row` cannot be selected in `o2`: the whole is an object with the keys ``, `a/b`, `rows`",
    )
    .await;
    check_refused(within("/rows/1/n/x"), "`/rows/1/n/x` cannot be selected in `o2`: `/rows/1/n` is a string").await;
    check_refused(
        within("rows"),
        "`rows` cannot be selected in `o2`: a JSON Pointer is empty or begins with `/`, such as `/rows/3`",
    )
    .await;
    let refused = substituted(json!({"a": {"$ref": "o1", "select": "/a"}})).await.unwrap_err();
    assert!(refused.starts_with("`/a` cannot be selected in `o1`: it is not JSON"), "{refused}");
    check_refused(json!({"$ref": "o4", "select": ""}), "nothing can be selected in `o4`: it is binary (image/png)")
        .await;
}

#[tokio::test]
async fn references_are_bounded_in_number_and_in_size() {
    let many: Vec<Value> = (0..65).map(|_| json!({"$ref": "o1"})).collect();
    assert!(substituted(json!({"a": many[..64]})).await.is_ok());
    let answer = substituted(json!({"a": many})).await.unwrap_err();
    assert_eq!(answer, "the arguments contain 65 references to stored outputs, at most 64 are followed");

    let outputs = InMemoryOutputStore::new();
    let text = "x".repeat(9 << 20);
    outputs.store(&Principal::local(), samples::call_id(1), "text/plain", text.as_bytes()).await.unwrap();
    let json = format!("[{:?}, 7]", "x".repeat(20 << 20));
    outputs.store(&Principal::local(), samples::call_id(1), "application/json", json.as_bytes()).await.unwrap();
    let call = async |arguments: Value| {
        let done = substitute(arguments.as_object().unwrap().clone(), &Principal::local(), &outputs).await;
        done.map(|done| done.arguments.len()).map_err(|failure| failure.kind)
    };
    assert_eq!(call(json!({"a": {"$ref": "o1"}})).await, Ok(1));
    assert_eq!(call(json!({"a": {"$ref": "o1"}, "b": {"$ref": "o1"}})).await, Err(ErrorKind::TooLarge));
    assert_eq!(call(json!({"a": {"$ref": "o2"}})).await, Err(ErrorKind::TooLarge));
    assert_eq!(call(json!({"a": {"$ref": "o2", "select": "/1"}})).await, Ok(1), "a small part of a large output fits");
}

#[tokio::test]
async fn the_total_bytes_read_for_all_selections_of_a_call_are_limited() {
    let outputs = InMemoryOutputStore::new();
    let zeros = format!("[{}7]", "0,".repeat(10 << 20));
    outputs.store(&Principal::local(), samples::call_id(1), "application/json", zeros.as_bytes()).await.unwrap();
    let call = async |references: usize| {
        let part = json!({"$ref": "o1", "select": "/10485760"});
        let arguments = json!({"a": vec![part; references]}).as_object().unwrap().clone();
        substitute(arguments, &Principal::local(), &outputs).await.map(|done| Value::Object(done.arguments))
    };
    assert_eq!(call(2).await.unwrap(), json!({"a": [7, 7]}));
    let refused = call(4).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TooLarge);
    assert_eq!(
        refused.text(),
        "with `select` in the stored output `o1` (20971523 bytes) more than 67108864 bytes would be read through, \
         which count for each reference. Select fewer parts in one call."
    );
}

#[test]
fn a_selection_returns_the_value_at_its_json_pointer_or_explains_the_failure() {
    #[track_caller]
    fn check(text: &str, pointer: &str, expected: Result<Value, &str>) {
        let selected = select(text, pointer, 100).map(|(value, _)| value);
        assert_eq!(selected, expected.map_err(str::to_owned), "{text} {pointer}");
    }
    check(r#"{"a": {"b": 1}, "a": {"c": [2]}}"#, "/a/c/0", Ok(json!(2)));
    check(r#"{"a": {"b": 1}, "a": {"c": 2}}"#, "/a/b", Err("`/a` is an object with the keys `c`"));
    check(r#"{"a": 1.5, "b": null}"#, "/a/b", Err("`/a` is 1.5"));
    check(r#"{"a": 1.5, "b": null}"#, "/b/0", Err("`/b` is null"));
    check("[[], 1]", "/0/0", Err("`/0` is an array of 0 items, counted from 0"));
    check("[1, 2", "/0", Err("it is not JSON (EOF while parsing a list at line 1 column 5)"));
    check("[1] 2", "/0", Err("it is not JSON (trailing characters at line 1 column 5)"));
    check("[1, 2]", "/-1", Err("the whole is an array of 2 items, counted from 0"));
    check(r#""x""#, "/0", Err("the whole is a string"));
    check(&format!("[{:?}]", "x".repeat(200)), "/0", Err("it has 202 bytes, which are too many"));
    // Deep texts do not exhaust the stack, and long pointers cost nothing.
    check(&"[".repeat(1 << 20), &"/0".repeat(200), Err("a JSON Pointer of more than 100 steps is not followed"));
    let deep = format!("{}1{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    check(&format!("[{deep}, 3]"), "/1", Ok(json!(3)));
    let keys: Vec<String> = (10..40).map(|key| format!("\"{key}\": 0")).collect();
    let message = select(&format!("{{{}}}", keys.join(",")), "/x", 100).unwrap_err();
    assert!(message.ends_with("`28`, `29` and 10 more"), "{message}");
}
