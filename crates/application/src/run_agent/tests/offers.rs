//! The tools that a model is offered, and the parts of results and images that it receives.

use super::*;
use toolstead_domain::{OfferedTool, ToolSelection};

fn names(tools: &[OfferedTool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

async fn check(offered: OfferedTools, tools: &[&str], refused: Option<&str>) {
    let plan = Plan { rules: vec![(Effect::Deny, "bomb")], ..Plan::default() };
    let house = plan.house(Arc::new(provider())).await;
    let model = model([call("c1", "other"), text("done")]);
    let ran = house.ran(RunAgentCommand { offered: offered.clone(), ..house.command(&model, "go") }).await;
    assert_eq!(ran.end(), "finished");
    assert_eq!(names(&model.requests()[0].tools), tools, "{offered:?}");
    let history = house.history().await;
    assert_eq!(history[2], refused.unwrap_or("result c1: ho"), "{offered:?}");
}

#[tokio::test]
async fn a_run_offers_the_listed_tools_or_the_chosen_subset_and_refuses_others() {
    let all = ["broken", "echo", "endless", "other", "outside", "read", "write"];
    check(OfferedTools::Listed, &all, None).await;
    check(OfferedTools::Chosen(ToolSelection::only(["other", "ec*", "bomb"])), &["echo", "other"], None).await;
    check(
        OfferedTools::Chosen(ToolSelection::only(["echo"])),
        &["echo"],
        Some("error c1 (never made): Unknown tool: other. Call one of the tools that are offered."),
    )
    .await;
    check(
        OfferedTools::Nothing,
        &[],
        Some("error c1 (never made): Unknown tool: other. No tools are offered here: answer without them."),
    )
    .await;
}

#[tokio::test]
async fn tools_added_during_a_run_are_appended_and_the_order_of_others_is_unchanged() {
    let provider = Arc::new(
        ScriptedProvider::new("built-in").with(ScriptedTool::named("echo")).with(ScriptedTool::named("other")),
    );
    let house = Plan::default().house(provider.clone()).await;
    let model = model([text("wait").and_call("c1", "echo", json!({})).waits(), text("done")]);
    let mut run = house.handler.start(house.command(&model, "go"));
    model.stuck(1).await;
    provider.replace_tools(["a_first", "echo", "other"].map(ScriptedTool::named));
    while house.registry.snapshot().tools().len() < 3 {
        tokio::task::yield_now().await;
    }
    model.release();
    while run.next().await.is_some() {}
    let requests = model.requests();
    assert_eq!(names(&requests[0].tools), ["echo", "other"]);
    assert_eq!(names(&requests[1].tools), ["echo", "other", "a_first"]);
    assert_eq!(requests[1].cache_key.as_deref(), Some(&*house.conversation.to_string()));
}

#[tokio::test]
async fn a_result_reaches_the_model_as_texts_and_images() {
    for (content, expected) in [
        (
            json!([{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]),
            "a <image/png>",
        ),
        (
            json!([{"type": "image", "data": "AA==", "mimeType": "image/svg+xml"}]),
            "[image of image/svg+xml, of a kind that cannot be shown]",
        ),
        (
            json!([{"type": "resource_link", "uri": "file:///a", "name": "a", "description": "d"}]),
            "[link to a <file:///a>: d]",
        ),
        (json!([{"type": "resource", "resource": {"uri": "x:y", "text": "t"}}]), "[resource <x:y>]\nt"),
        (
            json!([{"type": "resource", "resource": {"uri": "x:y", "blob": "AAAA", "mimeType": "a/b"}}]),
            "[resource <x:y> of a/b, 3 bytes, which cannot be shown]",
        ),
        (
            json!([{"type": "resource", "resource": {"uri": "x:y", "blob": "AAAA", "mimeType": "image/gif"}}]),
            "<image/gif>",
        ),
        (
            json!([{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]),
            "[sound of audio/wav, which cannot be played here]",
        ),
        (json!([{"type": "video", "x": 1}]), "[content of the kind `video`, which cannot be shown]"),
        (json!([7]), "[content of the kind `?`, which cannot be shown]"),
    ] {
        let result = ToolResult::from_upstream(json!({"content": content})).unwrap();
        let block = result::for_model(&tool_use(), &result);
        assert_eq!(words(&block.content), expected);
    }
    let structured = ToolResult::from_upstream(json!({"structuredContent": {"a": 1}})).unwrap();
    assert_eq!(words(&result::for_model(&tool_use(), &structured).content), "{\"a\":1}");
    let nothing = ToolResult::from_upstream(json!({"content": []})).unwrap();
    assert_eq!(words(&result::for_model(&tool_use(), &nothing).content), "(no output)");
}

fn tool_use() -> toolstead_domain::model::message::ToolUse {
    let arguments = ToolArguments::Object(Default::default());
    toolstead_domain::model::message::ToolUse { id: "c1".into(), name: "t".into(), arguments, sealed: None }
}

#[test]
fn a_record_can_be_read_back_however_deep_the_result_is() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    for levels in [3, 90, 101, 124, 200] {
        let result = ToolResult::text("x").with_structured_content(json!({"deep": nested(levels)}));
        let record = result::for_programs("t", &result, samples::START);
        assert_eq!(record.get("metadata").is_some(), levels < 99, "{levels}");
        let event = json!({"event": {"record": record}}).to_string();
        assert!(serde_json::from_str::<Value>(&event).is_ok(), "{levels}");
    }
}

#[test]
fn an_image_without_valid_base64_data_becomes_a_text_notice() {
    let image = json!({"type": "image", "data": "\u{1}".repeat(4 << 20), "mimeType": "image/png"});
    let block = result::for_model(&tool_use(), &ToolResult::of_blocks(vec![image]));
    assert_eq!(words(&block.content), "[image of image/png, which is not in base64]");
}

#[test]
fn a_result_of_any_size_is_bounded() {
    let image = json!({"type": "image", "data": "A".repeat(6 << 20), "mimeType": "image/png"});
    let small = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let text = json!({"type": "text", "text": "ä".repeat(900_000)});
    let mut content = vec![image, text.clone(), text];
    content.extend(std::iter::repeat_n(small, 30));
    content.extend(std::iter::repeat_n(json!({"type": "text", "text": ""}), 5_000));
    let block = result::for_model(&tool_use(), &ToolResult::of_blocks(content));
    let images = block.content.iter().filter(|block| matches!(block, Block::Image(_))).count();
    assert_eq!(images, 20);
    assert!(result::text_of(&block).len() < (1 << 20) + 5_000);
    assert!(block.content.len() < 1_000, "{}", block.content.len());
}

#[tokio::test]
async fn only_the_newest_images_are_sent_and_none_to_a_model_without_image_support() {
    let image = |n: usize| Block::Image(Image { media_type: "image/png".into(), data: format!("{n}").into() });
    let picture = ScriptedTool::named("other").answers(ToolResult::image("result", "image/png"));
    let house = Plan::default().house(Arc::new(ScriptedProvider::new("built-in").with(picture))).await;
    let model_ = model([call("c1", "other"), text("done")]);
    let prompt = (0..12).map(image).collect();
    house.ran(RunAgentCommand { prompt, ..house.command(&model_, "") }).await;
    let sent = |message: &Message| -> Vec<String> {
        let all = message.blocks.iter().flat_map(|block| match block {
            Block::ToolResult(result) => result.content.clone(),
            other => vec![other.clone()],
        });
        all.filter_map(|block| match block {
            Block::Image(image) => Some(image.data.to_string()),
            _ => None,
        })
        .collect()
    };
    let requests = model_.requests();
    assert_eq!(sent(&requests[0].messages[0]), ["2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]);
    assert_eq!(sent(&requests[1].messages[0]), ["3", "4", "5", "6", "7", "8", "9", "10", "11"]);
    assert_eq!(sent(&requests[1].messages[2]), ["result"]);
    assert_eq!(requests[1].messages[0].blocks.len(), 12, "a word stands for each that is left out");
    let blind = Arc::new(ScriptedModel::answering([text("x")]).without_sight());
    house.run(&blind, "more").await;
    assert!(blind.requests()[0].messages.iter().all(|message| sent(message).is_empty()));
}
