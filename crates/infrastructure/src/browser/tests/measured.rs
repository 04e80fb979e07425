//! The cost of pages in tokens.

use super::{end, rig};
use crate::browser::{
    actions::PageCondition,
    snapshot::SnapshotDiff,
    testing::{page_of_boxes, page_of_orders},
};

/// Bytes per token, as an agent estimates before a model reports its usage.
const TOKEN: usize = 4;
/// Maximum number of characters shown without a request.
const ROOM: usize = 14_000;

fn pages(page: String) -> &'static [(&'static str, &'static str)] {
    Box::leak(Box::new([("/", &*page.leak())]))
}

/// Opens a page. Checks the maximum number of tokens shown at first, and after a click which brings up a text. Also
/// checks the number of all lines.
async fn check(page: String, first: usize, button: &str, brings: &str, after: usize, lines: std::ops::Range<usize>) {
    let rig = rig(pages(page)).await;
    let session = &rig.session;
    session.open("http://shop.example/", false, end()).await.unwrap();
    let (snapshot, _) = session.look().await.unwrap();
    let (outcome, left_out) = snapshot.text(ROOM);
    assert!(outcome.len() / TOKEN <= first, "{} tokens: {outcome}", outcome.len() / TOKEN);
    assert!(lines.contains(&snapshot.lines.len()) && !snapshot.is_cut, "{}: {outcome}", snapshot.lines.len());
    let (all, none) = snapshot.text(usize::MAX);
    assert_eq!((none, outcome.lines().count() + left_out), (0, all.lines().count()));
    for wrapper in ["- generic", "- none", "- listitem\n", "- cell\n"] {
        assert!(!all.contains(wrapper), "{wrapper}: {all}");
    }
    session.click(rig.reference(button).await, false).await.unwrap();
    session.wait_for(&PageCondition::Text(brings.into()), end()).await.unwrap();
    let Some(SnapshotDiff::Lines(outcome)) = session.look().await.unwrap().1 else { panic!("a change is told") };
    assert!(outcome.len() / TOKEN <= after && outcome.contains(brings), "{} tokens: {outcome}", outcome.len() / TOKEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_page_costs_at_most_4000_tokens_and_a_click_500() {
    check(page_of_orders(137), 4_000, "button \"Send\"", "Order 1001 is sent", 500, 1_000..1_400).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_a_hundred_thousand_boxes_lists_only_the_buttons() {
    let page = page_of_boxes(99_000);
    let page = format!(
        "{page}<script>document.querySelector('button').onclick = event => \
        event.target.textContent = 'Done'</script>"
    );
    check(page, 1_000, "button \"Button 0\"", "Done", 100, 100..101).await;
}
