//! Contract of every audit log.

use super::{join_all::join_all, samples};
use crate::{
    error_kind::ErrorKind,
    labels::CallLabels,
    ports::{
        clock::Timestamp,
        execution_log::{ExecutionFilter, ExecutionLog},
    },
    tool_execution::{
        AuditedRequestKind, CancelReason, ExecutionOutcome, OutcomeKind, RecordedDecision, ToolExecution,
    },
};
use serde_json::{Value, json};

/// Checks each guarantee of [`ExecutionLog`] on an empty log.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn execution_log_contract(log: &dyn ExecutionLog) {
    an_empty_log_has_no_rows(log).await;
    a_final_row_replaces_the_running_one_and_stays(log).await;
    every_outcome_comes_back_as_it_was(log).await;
    every_value_comes_back_as_it_was(log).await;
    rows_recorded_side_by_side_are_all_there(log).await;
    a_list_is_in_the_order_of_recording_and_fits_every_condition(log).await;
    a_list_by_label_returns_only_records_with_that_label(log).await;
    calls_are_found_by_the_beginning_of_their_ids(log).await;
    nested_calls_are_found_by_the_call_that_made_them(log).await;
    log.check().await.expect("a log that takes rows says so");
}

async fn an_empty_log_has_no_rows(log: &dyn ExecutionLog) {
    assert_eq!(log.find(samples::call_id(0)).await.unwrap(), None, "an unknown call has no row");
    assert_eq!(log.list(&ExecutionFilter::default()).await.unwrap(), [], "an empty log lists nothing");
}

async fn a_final_row_replaces_the_running_one_and_stays(log: &dyn ExecutionLog) {
    let [running, done] = [samples::running_execution(1), samples::execution(1)];
    log.record(running.clone()).await.unwrap();
    assert_eq!(log.find(running.id).await.unwrap(), Some(running.clone()), "a call that runs has a row");
    let waiting = ToolExecution { outcome: ExecutionOutcome::InputRequired, ..running.clone() };
    for turn in [waiting.clone(), running.clone(), waiting] {
        log.record(turn.clone()).await.unwrap();
        assert_eq!(
            log.find(turn.id).await.unwrap(),
            Some(turn.clone()),
            "a call waits and goes on as often as it asks"
        );
        let filter = ExecutionFilter { outcome: Some(turn.outcome.kind()), limit: 1, ..ExecutionFilter::default() };
        assert_eq!(log.list(&filter).await.unwrap(), [turn], "it is listed as what it is");
    }
    log.record(done.clone()).await.unwrap();
    assert_eq!(log.find(done.id).await.unwrap(), Some(done.clone()), "the final row replaces the running one");
    let other = ToolExecution { outcome: ExecutionOutcome::Interrupted, tool: "other".into(), ..done.clone() };
    for late in [other, running, done.clone()] {
        log.record(late).await.unwrap();
        assert_eq!(log.find(done.id).await.unwrap(), Some(done.clone()), "a final row is never changed");
    }
    assert_eq!(log.list(&ExecutionFilter::default()).await.unwrap(), [done], "a call has one row");
}

async fn every_outcome_comes_back_as_it_was(log: &dyn ExecutionLog) {
    let mut outcomes = vec![
        ExecutionOutcome::Running,
        ExecutionOutcome::Succeeded,
        ExecutionOutcome::InputRequired,
        ExecutionOutcome::Interrupted,
    ];
    outcomes.extend(
        [CancelReason::Client, CancelReason::Deadline, CancelReason::Shutdown].map(ExecutionOutcome::Cancelled),
    );
    for kind in ErrorKind::ALL {
        outcomes.push(ExecutionOutcome::Failed(*kind, format!("failed: {kind}")));
        outcomes.push(ExecutionOutcome::Refused(*kind, String::new()));
    }
    for (number, outcome) in (100..).zip(outcomes) {
        comes_back(log, ToolExecution { outcome, ..samples::execution(number) }).await;
    }
}

async fn every_value_comes_back_as_it_was(log: &dyn ExecutionLog) {
    let sample = samples::execution;
    comes_back(log, ToolExecution { arguments: Value::Null, accesses: vec![], ..sample(200) }).await;
    let labels = labels("acme.example/team:1_a-b", "ü = \"x\", \\ and '%'").with("empty", "").unwrap();
    comes_back(log, ToolExecution { labels, ..sample(208) }).await;
    comes_back(log, ToolExecution { decision: None, result_digest: None, ended: None, ..sample(201) }).await;
    let approved = RecordedDecision {
        verdict: "ask".into(),
        reason: "the ask rule".into(),
        approved_by: Some("tester".into()),
        trace: Value::Null,
    };
    comes_back(log, ToolExecution { decision: Some(approved), ..sample(202) }).await;
    let numbers = json!({"i64": i64::MIN, "u64": u64::MAX, "double": 1.0e-7, "whole": 1.0, "b": 1, "a": [null, true]});
    comes_back(log, ToolExecution { arguments: numbers, ..sample(203) }).await;
    comes_back(log, ToolExecution { parent: Some(samples::call_id(200)), ..sample(209) }).await;
    let hostile = "'; DROP TABLE x; -- \" \\ \u{0} \u{1f} \u{7f} \u{2028} \u{feff} \u{202e} é 🦀 $1 ?1 %s\r\n\t";
    let everywhere = ToolExecution {
        kind: AuditedRequestKind::Resource,
        tool: hostile.into(),
        called_as: hostile.into(),
        source: hostile.into(),
        principal: hostile.into(),
        session: hostile.into(),
        client: hostile.into(),
        arguments: json!({hostile: [hostile, {hostile: hostile}]}),
        arguments_digest: hostile.into(),
        accesses: vec![hostile.into(), String::new(), "[1]".into()],
        decision: Some(RecordedDecision {
            verdict: hostile.into(),
            reason: hostile.into(),
            approved_by: Some(hostile.into()),
            trace: json!([{"part": hostile, hostile: null}]),
        }),
        started: Timestamp(i64::MIN),
        ended: Some(Timestamp(i64::MAX)),
        outcome: ExecutionOutcome::Failed(ErrorKind::Internal, hostile.into()),
        result_bytes: u64::from(u32::MAX) + 1,
        result_digest: Some(hostile.into()),
        metadata: json!({hostile: [hostile]}),
        ..sample(204)
    };
    comes_back(log, everywhere).await;
    let empty = ToolExecution {
        tool: String::new(),
        source: String::new(),
        client: String::new(),
        arguments: json!({}),
        arguments_digest: String::new(),
        result_digest: Some(String::new()),
        ..sample(205)
    };
    comes_back(log, empty).await;
    let mut deep = json!(0);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    comes_back(log, ToolExecution { arguments: deep, ..sample(206) }).await;
    comes_back(log, ToolExecution { arguments: json!("x".repeat(1 << 20)), ..sample(207) }).await;
}

async fn rows_recorded_side_by_side_are_all_there(log: &dyn ExecutionLog) {
    let numbers = 1000..1200_u32;
    // Some are running, some are final already, and final ones do not wait for each other.
    let row = |number: u32| match number % 3 {
        0 => samples::running_execution(number),
        _ => samples::execution(number),
    };
    let recorded = join_all(numbers.clone().map(|number| log.record(row(number)))).await;
    assert!(recorded.iter().all(Result::is_ok), "rows recorded side by side are all recorded");
    for number in numbers {
        assert_eq!(log.find(samples::call_id(number)).await.unwrap(), Some(row(number)));
    }
}

async fn a_list_is_in_the_order_of_recording_and_fits_every_condition(log: &dyn ExecutionLog) {
    let outcomes = [
        ExecutionOutcome::Succeeded,
        ExecutionOutcome::Failed(ErrorKind::Io, "no".into()),
        ExecutionOutcome::Running,
        ExecutionOutcome::Cancelled(CancelReason::Client),
    ];
    let mut rows = Vec::new();
    for number in 5000..5048_u32 {
        let turn = number as usize;
        rows.push(ToolExecution {
            tool: format!("listed_{}", turn % 3),
            principal: format!("lister_{}", turn / 2 % 2),
            client: ["one 1.0", "one-more 2", "one"][turn / 4 % 3].to_owned(),
            outcome: outcomes[turn % 4].clone(),
            kind: AuditedRequestKind::ALL[turn / 3 % 4],
            ..samples::execution(number)
        });
    }
    // Recorded in another order than that of their ids and times, as after a change of the clock.
    rows = rows.iter().rev().step_by(2).chain(rows.iter().step_by(2)).cloned().collect();
    for row in &rows {
        log.record(row.clone()).await.unwrap();
    }
    // A record that is written again keeps its position.
    let late = ToolExecution { ended: Some(Timestamp(7)), outcome: ExecutionOutcome::Succeeded, ..rows[1].clone() };
    let at = rows.iter().position(|row| row.outcome == ExecutionOutcome::Running).unwrap();
    let late = ToolExecution { id: rows[at].id, ..late };
    log.record(late.clone()).await.unwrap();
    rows[at] = late;
    rows.reverse();
    let tools = [None, Some("listed_1"), Some("nothing")];
    let principals = [None, Some("lister_0"), Some("nobody")];
    let kinds = std::iter::once(None).chain(OutcomeKind::ALL.iter().copied().map(Some));
    for outcome in kinds {
        for (tool, principal) in tools.iter().flat_map(|tool| principals.map(|principal| (*tool, principal))) {
            let fits = |row: &&ToolExecution| {
                tool.is_none_or(|tool| row.tool == tool)
                    && principal.is_none_or(|principal| row.principal == principal)
                    && outcome.is_none_or(|outcome| row.outcome.kind() == outcome)
            };
            let filter = ExecutionFilter {
                tool: tool.map(str::to_owned),
                outcome,
                principal: principal.map(str::to_owned),
                limit: 20,
                ..ExecutionFilter::default()
            };
            let expected: Vec<ToolExecution> = rows.iter().filter(fits).take(20).cloned().collect();
            let mut listed = log.list(&filter).await.unwrap();
            // Records of the earlier checks are older than these.
            listed.retain(|row| row.id >= samples::call_id(5000));
            assert_eq!(listed, expected, "{filter:?}");
        }
    }
    for kind in AuditedRequestKind::ALL {
        let filter = ExecutionFilter { kind: Some(*kind), limit: 12, ..ExecutionFilter::default() };
        let mut listed = log.list(&filter).await.unwrap();
        listed.retain(|row| row.id >= samples::call_id(5000));
        let expected: Vec<ToolExecution> = rows.iter().filter(|row| row.kind == *kind).take(12).cloned().collect();
        assert_eq!(listed, expected, "{filter:?}");
    }
    let since = Some(samples::execution(5020).started);
    for (client, since, clients) in [
        (Some("one"), None, &["one", "one 1.0"][..]),
        (Some("one 1.0"), None, &["one 1.0"]),
        (None, since, &["one", "one 1.0", "one-more 2"]),
        (Some("one-more"), since, &["one-more 2"]),
    ] {
        let fits = |row: &ToolExecution| {
            clients.contains(&row.client.as_str()) && since.is_none_or(|since| row.started >= since)
        };
        let client = client.map(str::to_owned);
        let filter = ExecutionFilter { client, since, limit: 30, ..ExecutionFilter::default() };
        let listed = log.list(&filter).await.unwrap();
        let listed: Vec<_> = listed.into_iter().filter(|row| row.id >= samples::call_id(5000)).collect();
        let expected: Vec<ToolExecution> = rows.iter().filter(|row| fits(row)).take(listed.len()).cloned().collect();
        assert!(!listed.is_empty() && listed == expected, "{filter:?}");
    }
    pages_join_without_gap(log, &rows).await;
}

fn labels(name: &str, value: &str) -> CallLabels {
    CallLabels::default().with(name, value).expect("it fits")
}

async fn a_list_by_label_returns_only_records_with_that_label(log: &dyn ExecutionLog) {
    let rows = [
        (6000, labels("team", "search").with("ticket", "T-1").expect("it fits")),
        (6001, labels("team", "search").with("note", "a \"ticket\":\"T-1\" in a text").expect("it fits")),
        (6002, labels("subteam", "search")),
        (6003, labels("team", "Search")),
        (6004, CallLabels::default()),
        (6005, labels("search", "team").with("team", "").expect("it fits")),
    ];
    for (number, labels) in rows {
        log.record(ToolExecution { labels, tool: "labelled".into(), ..samples::execution(number) }).await.unwrap();
    }
    for (name, value, found) in [
        ("team", "search", &[6001, 6000][..]),
        ("ticket", "T-1", &[6000]),
        ("note", "a \"ticket\":\"T-1\" in a text", &[6001]),
        ("team", "", &[6005]),
        ("team", "searc", &[]),
        ("te\"am", "search", &[]),
        ("", "", &[]),
    ] {
        let label = Some((name.to_owned(), value.to_owned()));
        let filter = ExecutionFilter { label, tool: Some("labelled".into()), ..ExecutionFilter::default() };
        let listed: Vec<_> = log.list(&filter).await.unwrap().into_iter().map(|row| row.id).collect();
        let expected: Vec<_> = found.iter().map(|number| samples::call_id(*number)).collect();
        assert_eq!(listed, expected, "{name}={value}");
        let anywhere = log.list(&ExecutionFilter { tool: None, ..filter }).await.unwrap();
        assert!(anywhere.iter().map(|row| row.id).eq(expected), "{name}={value}");
    }
}

async fn calls_are_found_by_the_beginning_of_their_ids(log: &dyn ExecutionLog) {
    let [one, other] = [5000, 5001].map(|number| samples::call_id(number).0.simple().to_string());
    let found = async |digits: &str, at_most| log.beginning_with(digits, at_most).await.unwrap();
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    assert_eq!(found(&one[..same + 1], 9).await, [samples::call_id(5000)], "a beginning that is one call's");
    assert_eq!(found(&one, 9).await, [samples::call_id(5000)], "a whole id");
    assert!(found(&one[..same], 99).await.starts_with(&[samples::call_id(5000), samples::call_id(5001)]), "several");
    assert_eq!(found(&one[..same], 2).await.len(), 2, "no more than were asked for");
    assert_eq!(found("ffff", 9).await, [], "none");
    assert_eq!(found("", 1).await.len(), 1, "every id begins with nothing");
}

async fn nested_calls_are_found_by_the_call_that_made_them(log: &dyn ExecutionLog) {
    let parent = samples::call_id(7000);
    let nested = |number| ToolExecution { parent: Some(parent), ..samples::execution(number) };
    let other = ToolExecution { parent: Some(samples::call_id(7001)), ..samples::execution(7004) };
    for row in [samples::running_execution(7000), nested(7002), other, nested(7003)] {
        log.record(row).await.unwrap();
    }
    let filter = ExecutionFilter { parent: Some(parent), ..ExecutionFilter::default() };
    let expected = [nested(7003), nested(7002)];
    assert_eq!(log.list(&filter).await.unwrap(), expected, "the calls that a call made, and no other");
    let filter = ExecutionFilter { tool: Some("echo".into()), limit: 1, ..filter };
    assert_eq!(log.list(&filter).await.unwrap(), expected[..1], "beside other conditions");
    let filter = ExecutionFilter { tool: Some("other".into()), ..filter };
    assert_eq!(log.list(&filter).await.unwrap(), [], "beside other conditions");
}

async fn pages_join_without_gap(log: &dyn ExecutionLog, rows: &[ToolExecution]) {
    let mut filter = ExecutionFilter { principal: Some("lister_1".into()), limit: 5, ..ExecutionFilter::default() };
    let mut paged = Vec::new();
    loop {
        let page = log.list(&filter).await.unwrap();
        assert!(page.len() <= 5, "a page has at most `limit` rows");
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id);
        paged.extend(page);
    }
    let expected: Vec<ToolExecution> = rows.iter().filter(|row| row.principal == "lister_1").cloned().collect();
    assert_eq!(paged, expected, "pages join without a gap and without a row twice");
    filter.before = Some(samples::call_id(4_000_000));
    assert_eq!(log.list(&filter).await.unwrap(), [], "nothing is known to be older than what there is not");
    filter.limit = 0;
    filter.before = None;
    assert_eq!(log.list(&filter).await.unwrap(), [], "a page of no rows is empty");
}

async fn comes_back(log: &dyn ExecutionLog, row: ToolExecution) {
    log.record(row.clone()).await.unwrap();
    let found = log.find(row.id).await.unwrap().expect("a recorded row is found");
    // The text shows the order of members and the notation of numbers, which equality does not.
    assert_eq!(found.arguments.to_string(), row.arguments.to_string());
    assert_eq!(found, row);
}
