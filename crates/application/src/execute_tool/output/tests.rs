use super::*;
use serde_json::json;
use std::io::Read;
use toolstead_domain::{
    FormatValidation, NoOutputs, OutputReaderParameters, OutputStore, Principal, UnavailableSchemaValidator,
    testing::{in_memory_output_store::InMemoryOutputStore, samples},
};

async fn bounded_in(outputs: &dyn OutputStore, result: ToolResult, schema: Option<Value>, budget: usize) -> ToolResult {
    let owner = Principal::local();
    let mut show = samples::tool("show");
    show.reads_outputs = Some(OutputReaderParameters::lines("of", "from"));
    let readers = OutputReaders::of([&show].into_iter());
    let mut keeper = OverflowStorage::new(outputs, &owner, samples::call_id(1), 64 << 20, &readers);
    let schema = schema.map(|schema| ToolInputSchema::compile(&schema, FormatValidation::Annotations).unwrap());
    let promised = schema.as_ref().map(|schema| OutputSchema { schema, schemas: &UnavailableSchemaValidator });
    bounded(result, promised, of(budget), &mut keeper).await
}

fn of(characters: usize) -> ResultSizeLimits {
    ResultSizeLimits { characters, media_bytes: 5 << 20 }
}

async fn kept(outputs: &dyn OutputStore, handle: &str) -> String {
    let mut content = outputs.open(&Principal::local(), handle.parse().unwrap()).await.unwrap().unwrap();
    let mut text = String::new();
    content.read_to_string(&mut text).unwrap();
    text
}

fn characters(result: &ToolResult) -> usize {
    result.content().iter().filter_map(block_text).map(|text| text.chars().count()).sum()
}

/// Bounds a text and returns the rest. Checks that the rest has at most `budget` characters.
async fn cut_text(text: &str, budget: usize) -> String {
    let outputs = InMemoryOutputStore::new();
    let result = bounded_in(&outputs, ToolResult::text(text), None, budget).await;
    assert!(characters(&result) <= budget, "{} of {budget}", characters(&result));
    assert_eq!(kept(&outputs, "o1").await, text, "the whole is kept");
    result.joined_text()
}

#[tokio::test]
async fn a_result_within_its_budget_is_unchanged() {
    let outputs = InMemoryOutputStore::new();
    for text in ["x".repeat(1000), "🦀".repeat(1000)] {
        let raw = json!({"content": [{"type": "text", "text": text}], "structuredContent": {"a": 1}, "x": 2});
        let result = ToolResult::from_upstream(raw.clone()).unwrap();
        let bound = bounded_in(&outputs, result, None, 1000).await;
        assert_eq!(Value::Object(bound.into_object()).to_string(), raw.to_string());
    }
    assert!(outputs.is_empty());
}

#[tokio::test]
async fn only_results_of_short_plain_texts_and_short_structured_content_skip_bounding() {
    let text = |length: usize| json!({"type": "text", "text": "x".repeat(length)});
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let resource = json!({"type": "resource", "resource": {"uri": "a:b", "text": "x"}});
    let annotated = json!({"type": "text", "text": "x", "annotations": {"audience": ["user"]}});
    let outputs = InMemoryOutputStore::new();
    for (raw, expected) in [
        (json!({"content": [text(1000)]}), true),
        (json!({"content": [text(499), text(500)]}), true),
        (json!({"content": [text(1)], "structuredContent": {"a": 1}}), true),
        (json!({"content": [], "isError": true}), true),
        (json!({"content": [text(1001)]}), false),
        (json!({"content": [text(500), text(500)]}), false),
        (json!({"content": vec![text(0); 257]}), false),
        (json!({"content": [text(1)], "structuredContent": {"a": "x".repeat(1000)}}), false),
        (json!({"content": [text(1)], "_meta": {"a": 1}}), false),
        (json!({"content": [text(1)], "x": 1}), false),
        (json!({"content": [text(1), image]}), false),
        (json!({"content": [text(1), resource]}), false),
        (json!({"content": [text(1), annotated]}), false),
    ] {
        let result = ToolResult::from_upstream(raw.clone()).unwrap();
        assert_eq!(has_short_texts_alone(&result, 1000), expected, "{raw}");
        if expected {
            let bound = bounded_in(&outputs, result, None, 1000).await;
            assert_eq!(Value::Object(bound.into_object()).to_string(), raw.to_string());
        }
    }
    for (length, expected) in [(1000, true), (1001, false)] {
        assert_eq!(has_short_texts_alone(&ToolResult::text("x".repeat(length)), 1000), expected);
    }
    assert!(outputs.is_empty());
}

#[tokio::test]
async fn truncation_respects_character_boundaries_and_reports_the_lines_and_the_handle() {
    let text = cut_text(&"🦀ä".repeat(25_000), 30_000).await;
    assert!(text.starts_with("🦀ä🦀ä") && text.ends_with("🦀ä🦀ä"), "{text}");
    assert!(text.contains(" of 50000 characters (within line 1) are left out here; all of it is `o1`: show {"));

    let lines: Vec<String> = (1..=5000).map(|number| format!("line {number}")).collect();
    let text = cut_text(&lines.join("\n"), 5000).await;
    let notice = text.lines().find(|line| line.starts_with("[…")).unwrap();
    let (before, after) = text.split_once(notice).unwrap();
    let number = |line: &str| line.strip_prefix("line ").unwrap().parse::<usize>().unwrap();
    let (last, next) =
        (number(before.trim_end().lines().last().unwrap()), number(after.trim_start().lines().next().unwrap()));
    assert!(notice.contains(&format!("(lines {} to {})", last + 1, next - 1)), "{last} {next} {notice}");
    assert!(notice.contains(&format!("show {{\"of\": \"o1\", \"from\": {}}}", last + 1)), "{notice}");
    let missing: usize = lines[last..next - 1].iter().map(|line| line.len() + 1).sum();
    assert!(notice.contains(&format!("[… {missing} of {} characters", lines.join("\n").len())), "{notice}");
}

#[tokio::test]
async fn results_stay_within_every_budget_and_a_budget_of_zero_leaves_only_the_notice() {
    for budget in [400, 999, 1000, 1001, 7777] {
        cut_text(&"ab\n🦀".repeat(5000), budget).await;
        cut_text(&"\n".repeat(20_000), budget).await;
    }
    let outputs = InMemoryOutputStore::new();
    let result = bounded_in(&outputs, ToolResult::text("x".repeat(300_000)), None, 0).await;
    assert_eq!(
        result.joined_text(),
        "[… 300000 of 300000 characters are left out; all of it is `o1`: show {\"of\": \"o1\"}, or pass it on as {\"$ref\": \"o1\"} …]"
    );
}

#[tokio::test]
async fn many_text_blocks_and_resources_are_truncated_and_stored_as_one_text() {
    let mut blocks = vec![json!({"type": "text", "text": "x"}); 31_000];
    blocks.insert(5, json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}));
    blocks.push(json!({"type": "resource", "resource": {"uri": "a:b", "text": "y".repeat(5000)}}));
    let outputs = InMemoryOutputStore::new();
    let result = bounded_in(&outputs, ToolResult::of_blocks(blocks), None, 30_000).await;
    assert!(characters(&result) <= 30_000);
    assert_eq!(result.content()[1]["type"], "image", "what is no text stays, between texts that are one each");
    assert!(result.content().len() <= 4);
    assert_eq!(result.content().last().unwrap()["resource"]["uri"], "a:b", "the end is that of the last block");
    let written = Value::Object(result.as_object().clone()).to_string();
    assert_eq!(written.matches("characters (lines").count(), 1, "the notice stands once");
    assert_eq!(kept(&outputs, "o1").await, format!("{}{}", "x\n".repeat(31_000), "y".repeat(5000)));
    let result =
        bounded_in(&outputs, ToolResult::of_blocks(vec![json!({"type": "text", "text": ""}); 50_000]), None, 1000)
            .await;
    assert_eq!(result.content().len(), 1, "blocks of nothing are one text");
}

#[tokio::test]
async fn structured_content_over_the_budget_is_left_out_and_kept_once() {
    let data = json!({"rows": vec![json!({"name": "x".repeat(90)}); 500]});
    // As text and as structure.
    let outputs = InMemoryOutputStore::new();
    let result = bounded_in(&outputs, ToolResult::json(data.clone()), None, 5000).await;
    assert!(characters(&result) <= 5000 && result.structured_content().is_none());
    assert_eq!(outputs.len(), 1, "the same data is kept once");
    assert_eq!(result.as_object()["_meta"][OUTPUTS][0]["handle"], "o1");
    assert!(result.joined_text().contains("[the structured content is too large and left out; all of it is `o1`"));
    // With a short text.
    let outputs = InMemoryOutputStore::new();
    let result = ToolResult::text("500 rows").with_structured_content(data.clone());
    let result = bounded_in(&outputs, result, None, 5000).await;
    assert!(
        result
            .joined_text()
            .starts_with("500 rows\n[the structured content is too large and left out; all of it is `o1`")
    );
    assert_eq!(serde_json::from_str::<Value>(&kept(&outputs, "o1").await).unwrap(), data);
    assert_eq!(
        result.as_object()["_meta"][OUTPUTS],
        json!([{"of": "structuredContent", "handle": "o1", "mediaType": "application/json", "bytes": kept(&outputs, "o1").await.len()}])
    );
}

#[tokio::test]
async fn structured_content_that_a_schema_requires_is_shortened_or_the_result_becomes_an_error() {
    let text = json!({"type": "string"});
    let schema = |text: Value, least: u64| {
        let items = json!({"type": "array", "minItems": least, "items": text});
        Some(json!({"type": "object", "required": ["all", "count"],
            "properties": {"all": items, "count": {"type": "integer"}}}))
    };
    let data = json!({"all": vec!["🦀".repeat(3000); 300], "count": 300});
    let result = || ToolResult::text("300").with_structured_content(data.clone());
    let outputs = InMemoryOutputStore::new();
    let short = bounded_in(&outputs, result(), schema(text.clone(), 1), 5000).await;
    let content = short.structured_content().unwrap();
    assert!(!is_longer(content, 5000) && content["count"] == 300);
    assert!(content["all"][0].as_str().unwrap().contains("of 3000 characters are left out here"), "{content}");
    assert!(short.joined_text().contains("long texts are cut and its long lists end early; all of it is `o1`"));
    assert!(!short.is_error());
    let unfit = bounded_in(&outputs, result(), schema(text, 300), 5000).await;
    assert_eq!(
        (unfit.is_error(), unfit.error_kind(), unfit.structured_content()),
        (true, Some(ErrorKind::TooLarge), None)
    );
    assert!(unfit.joined_text().starts_with("300\nThe call was done, do not repeat it."), "{}", unfit.joined_text());
}

#[tokio::test]
async fn binary_content_over_the_limit_is_stored_decoded_and_replaced_by_a_notice() {
    let image = |bytes: usize| json!({"type": "image", "data": "A".repeat(bytes), "mimeType": "image/png"});
    let blob =
        json!({"type": "resource", "resource": {"uri": "a:b", "blob": "QUJD".repeat(1 << 20), "mimeType": "text/csv"}});
    let outputs = InMemoryOutputStore::new();
    let blocks = vec![image(4 << 20), blob, image(400)];
    let result = bounded_in(&outputs, ToolResult::of_blocks(blocks.clone()), None, 5000).await;
    assert_eq!(result.content()[0], blocks[0]);
    assert_eq!(result.content()[2], blocks[2], "a small one behind a large one still fits");
    assert_eq!(
        result.content()[1]["text"],
        "[the resource (text/csv, 3145728 bytes) is left out here: all of it is `o1`]"
    );
    assert!(kept(&outputs, "o1").await.starts_with("ABCABC"));
    let result = bounded_in(&outputs, ToolResult::of_blocks(vec![image(1 << 20); 40]), None, 5000).await;
    assert_eq!(result.content().len(), 6);
    assert!(result.content()[5]["text"].as_str().unwrap().starts_with("[35 blocks of binary data are left out here"));
    let link = json!({"type": "resource_link", "uri": "a:b", "description": "z".repeat(9000)});
    let result = bounded_in(&outputs, ToolResult::of_blocks(vec![link]), None, 5000).await;
    assert!(characters(&result) <= 5000 && result.joined_text().contains("of 9"), "{}", result.joined_text());
}

#[tokio::test]
async fn a_result_reports_the_part_of_its_output_that_could_not_be_stored() {
    let result = bounded_in(&NoOutputs, ToolResult::text("x".repeat(9000)), None, 5000).await;
    assert!(
        result.joined_text().contains("(within line 1) are left out here; it is not stored: ask for less at a time …]")
    );
    assert!(result.as_object().get("_meta").is_none());
    let outputs = InMemoryOutputStore::new();
    let owner = Principal::local();
    let readers = OutputReaders::default();
    let mut keeper = OverflowStorage::new(&outputs, &owner, samples::call_id(1), 8001, &readers);
    let result = bounded(ToolResult::text("ä".repeat(9000)), None, of(5000), &mut keeper).await;
    assert!(result.joined_text().contains("its first 8000 bytes are `o1`, the rest is not stored"));
    assert_eq!(kept(&outputs, "o1").await, "ä".repeat(4000));
    assert_eq!(result.as_object()["_meta"][OUTPUTS][0]["bytesInAll"], 18_000);
}

#[tokio::test]
async fn stored_json_is_pretty_printed_unless_it_becomes_too_long_or_mostly_indentation() {
    async fn check(value: &Value, max_bytes: usize, expected: &str) -> Value {
        let (outputs, owner) = (InMemoryOutputStore::new(), Principal::local());
        let readers = OutputReaders::default();
        let mut keeper = OverflowStorage::new(&outputs, &owner, samples::call_id(1), max_bytes, &readers);
        keeper.store_json("structuredContent", value).await;
        assert_eq!(kept(&outputs, "o1").await, expected);
        keeper.take_list().remove(0)
    }
    let value = json!({"a": [1, 2]});
    check(&value, 100, "{\n  \"a\": [\n    1,\n    2\n  ]\n}").await;
    assert_eq!(check(&value, 11, r#"{"a":[1,2]}"#).await["mediaType"], "application/json");
    let cut = check(&value, 10, r#"{"a":[1,2]"#).await;
    assert_eq!((&cut["mediaType"], &cut["bytes"], &cut["bytesInAll"]), (&json!("text/plain"), &json!(10), &json!(11)));
    // At a depth of a hundred levels, pretty-printing would put two hundred blanks before each zero.
    let deep = (0..100).fold(json!(vec![0; 10_000]), |value, _| json!([value]));
    check(&deep, 64 << 20, &deep.to_string()).await;
}

/// Returns the number of characters of the whole result as JSON.
fn as_it_leaves(result: &ToolResult) -> usize {
    length(&Value::Object(result.as_object().clone()))
}

#[tokio::test]
async fn every_kind_of_oversized_result_is_bounded_and_stored() {
    let text = json!({"type": "text", "text": "ok"});
    let large = || json!("z".repeat(200_000));
    let with = |member: &str, value: Value| {
        let mut block = text.clone();
        block[member] = value;
        json!([block])
    };
    let rows: [(&str, Value); 14] = [
        ("_meta", json!({"content": [text], "_meta": {"a/b": large()}})),
        ("a member that nobody knows", json!({"content": [text], "x": {"y": large()}})),
        ("many such members", json!({"content": [text], "x": vec![0; 100_000]})),
        ("an unknown block", json!({"content": [{"type": "video", "x": large()}]})),
        ("many unknown blocks", json!({"content": vec![json!({"type": "video"}); 100_000]})),
        ("many blocks of nothing", json!({"content": vec![json!({"type": "text", "text": ""}); 100_000]})),
        (
            "many resources of nothing",
            json!({"content": vec![json!({"type": "resource", "resource": {"text": ""}}); 100_000]}),
        ),
        ("a block's own _meta", json!({"content": with("_meta", large())})),
        ("the data of a text", json!({"content": with("data", large())})),
        ("the resource of a text", json!({"content": with("resource", json!({"text": large(), "blob": large()}))})),
        ("a blob that is in no resource", json!({"content": [{"type": "image", "data": "AAAA", "blob": large()}]})),
        (
            "a resource of both kinds",
            json!({"content": [{"type": "resource", "resource": {"uri": "u", "text": "ok", "blob": large()}}]}),
        ),
        ("a block's type", json!({"content": [{"type": large(), "text": "ok"}]})),
        (
            "a resource's address",
            json!({"content": [{"type": "resource", "resource": {"uri": large(), "text": "ok"}}]}),
        ),
    ];
    for (what, raw) in rows {
        let outputs = InMemoryOutputStore::new();
        let result = bounded_in(&outputs, ToolResult::from_upstream(raw).unwrap(), None, 5_000).await;
        assert!(as_it_leaves(&result) < 20_000, "{what}: {}", as_it_leaves(&result));
        assert!(result.content().len() <= blocks::MAX_BLOCKS, "{what}");
        assert!(!outputs.is_empty(), "{what}: it is kept");
        assert!(result.joined_text().contains("`o1`"), "{what}: {}", result.joined_text());
        assert!(is_within(&result, of(6_000)), "{what}");
    }
    let images = vec![json!({"type": "image", "data": "", "mimeType": "image/png"}); 100_000];
    let result = bounded_in(&InMemoryOutputStore::new(), ToolResult::of_blocks(images), None, 5_000).await;
    assert!(as_it_leaves(&result) < 20_000 && result.content().len() <= blocks::MAX_BLOCKS);
}

#[tokio::test]
async fn oversized_members_beside_the_content_are_stored_whole_and_the_content_remains() {
    let outputs = InMemoryOutputStore::new();
    let raw = json!({
        "content": [{"type": "text", "text": "ok", "annotations": {"audience": ["user"]}},
            {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "all", "_meta": {"c": 1}}}],
        "_meta": {"a/b": "z".repeat(9_000)}, "x": 1, "structuredContent": {"n": 1},
    });
    let result = bounded_in(&outputs, ToolResult::from_upstream(raw.clone()).unwrap(), None, 5_000).await;
    assert_eq!(result.content()[0], json!({"type": "text", "text": "ok"}));
    assert_eq!(result.content()[1]["resource"], json!({"uri": "a:b", "mimeType": "text/plain", "text": "all"}));
    assert_eq!(result.structured_content(), Some(&json!({"n": 1})));
    let notice = result.content()[2]["text"].as_str().unwrap();
    assert!(
        notice.ends_with("characters that the result has beside its content are left out here; all of it is `o1`]"),
        "{notice}"
    );
    assert_eq!(result.as_object()["_meta"][OUTPUTS][0]["of"], "rest");
    let kept: Value = serde_json::from_str(&kept(&outputs, "o1").await).unwrap();
    assert_eq!(
        kept,
        json!({"_meta": raw["_meta"], "x": 1, "content": [
            {"block": 0, "beside": {"annotations": {"audience": ["user"]}}},
            {"block": 1, "beside": {"resource": {"_meta": {"c": 1}}}},
        ]})
    );
}

#[tokio::test]
async fn binary_content_counts_toward_the_limit_by_its_encoded_size() {
    let image = |bytes: usize| json!({"type": "image", "data": "A".repeat(bytes), "mimeType": "image/png"});
    let outputs = InMemoryOutputStore::new();
    let owner = Principal::local();
    let readers = OutputReaders::default();
    let mut keeper = OverflowStorage::new(&outputs, &owner, samples::call_id(1), 64 << 20, &readers);
    let budget = ResultSizeLimits { characters: 5_000, media_bytes: 1_000 };
    let result = bounded(ToolResult::of_blocks(vec![image(800), image(400)]), None, budget, &mut keeper).await;
    assert_eq!(result.content()[0], image(800));
    assert_eq!(result.content()[1]["text"], "[the image (image/png, 300 bytes) is left out here: all of it is `o1`]");
    assert_eq!(budget.up_to(Some(200)), ResultSizeLimits { characters: 200, media_bytes: 200 });
    assert_eq!(budget.up_to(None), budget);
}

#[tokio::test]
async fn rewriting_output_for_a_dialect_keeps_the_notice_of_omitted_structured_content() {
    let outputs = InMemoryOutputStore::new();
    let blocks = vec![text_block("a".repeat(500)), text_block("b".into())];
    let result =
        ToolResult::of_blocks(blocks).with_structured_content(json!({"a": "x".repeat(500)})).mark_tool_output();
    let bound = bounded_in(&outputs, result, None, 60).await;
    assert_eq!(bound.content().len(), 2, "the notices of text and structured content: {bound:?}");
    let in_face = bound.clone().said_as(vec!["said".into()], false, None);
    assert_eq!(in_face.content(), [text_block("said".into()), bound.content()[1].clone()]);
}
