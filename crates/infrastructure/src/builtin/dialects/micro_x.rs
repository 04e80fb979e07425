//! Dialect adapters for Micro-X: texts, with errors that begin with the word "Error".

use super::{
    command_output::{CommandOutput, command_remark, time_had, with_remark},
    web_page::{content, grouped, remark},
    wording::{is_dry_run, notes, pretty},
};
use crate::services::anthropic_admin::money::rounded;
use serde_json::{Map, Value};
use toolstead_domain::{
    AdaptedResult, AdapterInput, DialectAdapter, DialectToolDefinitions, alias::Rewrite::Default, error_kind::ErrorKind,
};

/// Descriptions and schemas of the tools.
static DEFINITIONS: DialectToolDefinitions = DialectToolDefinitions::new(include_str!("micro_x.json"));

/// Dialect adapters in the order of their names.
pub(super) static ADAPTERS: &[DialectAdapter] = &[
    DialectAdapter::new("anthropic_usage", &DEFINITIONS).with_answer(reported_usage),
    DialectAdapter::new("append_file", &DEFINITIONS).with_answer(appended),
    DialectAdapter::new("bash", &DEFINITIONS).with_defaults(&[Default("timeout_ms", "30000")]).with_answer(ran),
    DialectAdapter::new("calendar_create_event", &DEFINITIONS).with_answer(created_event),
    DialectAdapter::new("calendar_get_event", &DEFINITIONS).with_answer(event),
    DialectAdapter::new("calendar_list_events", &DEFINITIONS).with_answer(events),
    DialectAdapter::new("delete_file", &DEFINITIONS)
        .with_answer(|answered| failed(answered, "Error deleting file").or_else(|| plain(answered))),
    DialectAdapter::new("edit_file", &DEFINITIONS)
        .with_answer(|answered| failed(answered, "Error editing file").or_else(|| plain(answered))),
    DialectAdapter::new("gmail_read", &DEFINITIONS).with_answer(read_mail),
    DialectAdapter::new("gmail_search", &DEFINITIONS).with_answer(found_mail),
    DialectAdapter::new("gmail_send", &DEFINITIONS).with_answer(sent_mail),
    DialectAdapter::new("linkedin_job_detail", &DEFINITIONS).with_answer(job_read),
    DialectAdapter::new("linkedin_jobs", &DEFINITIONS).with_answer(jobs_found),
    DialectAdapter::new("read_file", &DEFINITIONS)
        .with_defaults(&[Default("line_numbers", "false"), Default("limit", "10000")])
        .with_answer(read),
    DialectAdapter::new("system-info__disk_info", &DEFINITIONS).with_answer(reported),
    DialectAdapter::new("system-info__network_info", &DEFINITIONS).with_answer(reported),
    DialectAdapter::new("system-info__system_info", &DEFINITIONS).with_answer(reported),
    DialectAdapter::new("web_fetch", &DEFINITIONS)
        .with_defaults(&[Default("format", r#""text""#)])
        .with_answer(fetched),
    DialectAdapter::new("web_search", &DEFINITIONS).with_answer(searched),
    DialectAdapter::new("write_file", &DEFINITIONS).with_answer(|answered| {
        let written = || changed(answered, format!("Successfully wrote to {}", path(answered)));
        failed(answered, "Error writing file").or_else(written)
    }),
];

/// Returns the failure of the call as `words`, a colon and Toolstead's own text; `None` if the call succeeded.
fn failed(answered: &AdapterInput<'_>, words: &str) -> Option<AdaptedResult> {
    answered.error_kind().map(|_| AdaptedResult::error(format!("{words}: {}", answered.text())))
}

fn plain(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    Some(AdaptedResult::text(answered.text()))
}

/// Returns the path as the caller wrote it.
fn path<'a>(answered: &AdapterInput<'a>) -> &'a str {
    let given = answered.text_argument("path").or_else(|| answered.text_argument("file_path"));
    given.or_else(|| answered.member("path")?.as_str()).unwrap_or_default()
}

fn appended(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let path = path(answered);
    // The missing file may be a stored output.
    let is_text = |name| answered.text_argument(name).is_some();
    match answered.error_kind() {
        None => changed(answered, format!("Successfully appended to {path}")),
        Some(ErrorKind::NotFound) if is_text("content") && (is_text("path") || is_text("file_path")) => Some(
            AdaptedResult::error(format!("Error: file does not exist: {path}. Use write_file to create it first.")),
        ),
        Some(_) => failed(answered, "Error appending to file"),
    }
}

/// Returns jobs as a numbered list, with remarks.
fn jobs_found(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return refused(answered, "Error fetching LinkedIn jobs", "Error searching LinkedIn jobs");
    }
    let jobs = answered.member("jobs")?.as_array()?;
    let blocks = jobs.iter().enumerate().map(|(at, job)| {
        let fact = |name: &str| job.get(name).and_then(Value::as_str);
        format!(
            "{}. {}\n   Company: {}\n   Location: {}\n   Posted: {}\n   Salary: {}\n   URL: {}",
            at + 1,
            fact("title").unwrap_or_default(),
            fact("company").unwrap_or_default(),
            fact("location").unwrap_or_default(),
            fact("posted").unwrap_or_default(),
            fact("salary").unwrap_or("Not listed"),
            fact("url").unwrap_or_default(),
        )
    });
    let text = match blocks.collect::<Vec<_>>() {
        none if none.is_empty() => "No job postings found matching your criteria.".to_owned(),
        blocks => blocks.join("\n\n"),
    };
    let notes = answered.member("notes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    Some(AdaptedResult::text(text).with_extra_block(Some(notes.collect::<Vec<_>>().join("\n"))))
}

fn job_read(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind() == Some(ErrorKind::UpstreamProtocol) && status(answered).is_none() {
        let text = "Could not extract job description from the page. LinkedIn may have blocked the request or the page \
                    structure has changed.";
        return Some(AdaptedResult::error(text).with_extra_block(Some(answered.text().into_owned())));
    }
    if answered.error_kind().is_some() {
        return refused(answered, "Error fetching job page", "Error fetching job details");
    }
    let fact = |name: &str| answered.member(name).and_then(Value::as_str);
    let facts = [("Title", "title"), ("Company", "company"), ("Location", "location")];
    let head = facts.into_iter().filter_map(|(label, name)| Some(format!("{label}: {}\n", fact(name)?)));
    let (head, description) = (head.collect::<String>(), fact("description")?);
    Some(AdaptedResult::text(format!("{head}\n--- Job Description ---\n\n{description}")))
}

/// Returns the HTTP status of the page if the call failed because of it; otherwise `None`.
fn status(answered: &AdapterInput<'_>) -> Option<u64> {
    answered.outcome.err()?.data.get("status")?.as_u64()
}

/// Returns the failure of the call: `by_status` with the HTTP status of the page, and Toolstead's own text beside it;
/// `otherwise` before that text if there is no status.
fn refused(answered: &AdapterInput<'_>, by_status: &str, otherwise: &str) -> Option<AdaptedResult> {
    match status(answered) {
        Some(status) => {
            let text = format!("{by_status}: HTTP {status}");
            Some(AdaptedResult::error(text).with_extra_block(Some(answered.text().into_owned())))
        }
        None => failed(answered, otherwise),
    }
}

/// Returns the text for a changed file, with remarks. A dry run returns `None`, for Toolstead's own text.
fn changed(answered: &AdapterInput<'_>, text: String) -> Option<AdaptedResult> {
    (!is_dry_run(answered)).then(|| AdaptedResult::text(text).with_extra_block(notes(answered)))
}

/// Returns the text of a whole file. For other files and for parts it returns `None`, for Toolstead's own text.
fn read(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let member = |name| answered.member(name);
    let is_whole =
        member("kind").is_some_and(|kind| kind == "text") && member("truncated") == Some(&Value::Bool(false));
    let content = || member("content").and_then(Value::as_str);
    failed(answered, "Error reading file").or_else(|| is_whole.then(content).flatten().map(AdaptedResult::text))
}

fn created_event(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let created = || {
        let text = |name| answered.member(name).and_then(Value::as_str).unwrap_or_default();
        Some(AdaptedResult::text(format!(
            "Event created successfully.\n  ID: {}\n  Summary: {}\n  Start: {}\n  End: {}\n  Link: {}",
            answered.member("id")?.as_str()?,
            text("summary"),
            text("start"),
            text("end"),
            text("html_link"),
        )))
    };
    failed(answered, "Error creating calendar event").or_else(created)
}

fn event(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let describe = || {
        let text = |name| answered.member(name).and_then(Value::as_str).unwrap_or_default();
        let list = |name| answered.member(name).and_then(Value::as_array).into_iter().flatten();
        let mut lines = vec![
            format!("Summary: {}", answered.member("summary").and_then(Value::as_str).unwrap_or("(no title)")),
            format!("Status: {}", answered.member("status")?.as_str()?),
            format!("Start: {}", text("start")),
            format!("End: {}", text("end")),
            format!("Location: {}", text("location")),
            format!("Description: {}", text("description")),
            format!("Organizer: {}", text("organizer")),
            format!("Creator: {}", text("creator")),
        ];
        let attendee = |one: &Value| {
            let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            format!("\n    {} ({})", text("email"), text("response"))
        };
        let attendees: String = list("attendees").map(attendee).collect();
        if !attendees.is_empty() {
            lines.push(format!("Attendees:{attendees}"));
        }
        lines
            .extend(answered.member("video_link").and_then(Value::as_str).map(|uri| format!("Conference Link: {uri}")));
        let rules: Vec<&str> = list("recurrence").filter_map(Value::as_str).collect();
        if !rules.is_empty() {
            lines.push(format!("Recurrence: {}", rules.join("; ")));
        }
        Some(AdaptedResult::text(lines.join("\n")))
    };
    failed(answered, "Error getting calendar event").or_else(describe)
}

/// Returns the events; the token of the next page follows as a remark.
fn events(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let found = || {
        let block = |event: &Value| {
            let text = |name: &str| event.get(name).and_then(Value::as_str);
            let (id, summary) = (text("id")?, text("summary").unwrap_or("(no title)"));
            let (start, end) = (text("start").unwrap_or_default(), text("end").unwrap_or_default());
            let (location, status) = (text("location").unwrap_or_default(), text("status").unwrap_or_default());
            let organizer = text("organizer").unwrap_or_default();
            Some(format!(
                "ID: {id}\n  Summary: {summary}\n  Start: {start}\n  End: {end}\n  Location: {location}\n  Status: {status}\n  \
                 Organizer: {organizer}"
            ))
        };
        let blocks = answered.member("events")?.as_array()?.iter().map(block).collect::<Option<Vec<_>>>()?;
        let text = if blocks.is_empty() { "No events found.".into() } else { blocks.join("\n\n") };
        let more = answered.member("next_page_token").map(|token| format!("[There are more: page_token {token}]"));
        Some(AdaptedResult::text(text).with_extra_block(more))
    };
    failed(answered, "Error listing calendar events").or_else(found)
}

/// Returns a mail after its headers. Notes on omitted parts follow as a remark.
fn read_mail(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let mail = || {
        let text = |name| answered.member(name).and_then(Value::as_str);
        let list = |name| Some(answered.member(name)?.as_array()?.iter().filter_map(Value::as_str).collect::<Vec<_>>());
        let body = text("body").filter(|body| !body.is_empty()).unwrap_or("(no text content)");
        let (from, to, date, subject) = (text("from")?, list("to")?.join(", "), text("date")?, text("subject")?);
        let notes = list("notes").filter(|notes| !notes.is_empty()).map(|notes| notes.join("\n"));
        let said = AdaptedResult::text(format!("From: {from}\nTo: {to}\nDate: {date}\nSubject: {subject}\n\n{body}"));
        Some(said.with_extra_block(notes))
    };
    failed(answered, "Error reading email").or_else(mail)
}

fn found_mail(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let found = || {
        let messages = answered.member("messages")?.as_array()?;
        if messages.is_empty() {
            return Some(AdaptedResult::text("No emails found matching your query."));
        }
        let block = |message: &Value| {
            let text = |name| message.get(name)?.as_str();
            let (id, date, from) = (text("id")?, text("date")?, text("from")?);
            let (subject, snippet) = (text("subject")?, text("snippet")?);
            Some(format!("ID: {id}\n  Date: {date}\n  From: {from}\n  Subject: {subject}\n  Snippet: {snippet}"))
        };
        Some(AdaptedResult::text(messages.iter().map(block).collect::<Option<Vec<_>>>()?.join("\n\n")))
    };
    failed(answered, "Error searching Gmail").or_else(found)
}

fn sent_mail(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let sent =
        || Some(AdaptedResult::text(format!("Email sent successfully (ID: {})", answered.member("id")?.as_str()?)));
    failed(answered, "Error sending email").or_else(sent)
}

fn ran(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if let Err(failure) = answered.outcome {
        return Some(match (failure.kind, &failure.partial) {
            (ErrorKind::Timeout, Some(_)) => {
                let text = format!("[timed out after {}s]", seconds(answered));
                AdaptedResult::error(with_remark(text, command_remark(answered)).trim_end())
            }
            _ => AdaptedResult::error(format!("Error executing command: {}", failure.text())),
        });
    }
    if answered.member("task_id").is_some() {
        return plain(answered);
    }
    let printed = CommandOutput::of(answered);
    Some(match printed.code {
        // The failure has another reason than the exit code.
        0 if answered.error_kind().is_some() => AdaptedResult::error(answered.text()),
        0 => AdaptedResult::text(printed.text.trim_end()),
        code => {
            let text = format!("{}\n[exit code {code}]", printed.text.trim_end_matches('\n'));
            AdaptedResult { is_error: answered.error_kind().is_some(), ..AdaptedResult::text(text) }
        }
    })
}

/// Returns the timeout of the command in seconds.
fn seconds(answered: &AdapterInput<'_>) -> f64 {
    let given = |name| answered.arguments.get(name).and_then(Value::as_f64);
    let given = given("timeout_ms").or_else(|| given("timeout").map(|seconds| seconds * 1000.0));
    time_had(answered, given.unwrap_or(30_000.0)) / 1000.0
}

fn searched(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.text_argument("query").is_some_and(|query| query.trim().is_empty()) {
        return Some(AdaptedResult::error("Error: query must not be empty"));
    }
    failed(answered, "Error").or_else(|| {
        let query = answered.member("query")?.as_str()?;
        let hits = answered.member("results")?.as_array()?;
        if hits.is_empty() {
            return Some(AdaptedResult::text(format!("No results found for: {query}")));
        }
        let mut text = format!("Search: \"{query}\"\nResults: {}", hits.len());
        for (at, hit) in hits.iter().enumerate() {
            let part = |name: &str| hit.get(name).and_then(Value::as_str).unwrap_or_default();
            text += &format!("\n\n{}. {}\n   {}", at + 1, part("title"), part("url"));
            if !part("description").is_empty() {
                text += &format!("\n   {}", part("description"));
            }
        }
        Some(AdaptedResult::text(text))
    })
}

/// Returns a page after lines that describe it.
fn fetched(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if let Some(failed) = failed(answered, "Error") {
        return Some(failed);
    }
    let text = |name: &str| answered.member(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let number = |name: &str| answered.member(name).and_then(Value::as_u64).unwrap_or_default();
    let (content, url) = (content(answered)?, answered.text_argument("url")?);
    let mut lines = vec![format!("URL: {url}")];
    lines.extend(text("final_url").filter(|last| *last != url).map(|last| format!("Final URL: {last}")));
    lines.push(format!("Status: {}", number("status")));
    lines.push(format!("Content-Type: {}", text("content_type").unwrap_or_default()));
    lines.extend(text("title").map(|title| format!("Title: {title}")));
    let (shown, all) = (grouped(content.chars().count() as u64), grouped(number("characters")));
    let is_cut = answered.member("truncated") == Some(&Value::Bool(true));
    let length = if is_cut { format!("{shown} chars (truncated from {all})") } else { format!("{all} chars") };
    let mut said = format!("{}\nLength: {length}\n\n--- Content ---\n\n{content}", lines.join("\n"));
    if is_cut {
        said.push_str(&format!("\n\n[Content truncated at {shown} characters]"));
    }
    Some(AdaptedResult::text(said).with_extra_block(remark(answered)))
}

/// Returns the report after its label, as JSON text. Each amount in dollars and their sum are rounded to cents.
fn reported_usage(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    const ACTIONS: [(&str, &str); 3] =
        [("usage", "Token Usage Report"), ("cost", "Cost Report"), ("claude_code", "Claude Code Usage Report")];
    let action = answered.text_argument("action");
    let Some((action, label)) = ACTIONS.into_iter().find(|(known, _)| Some(*known) == action) else {
        let action = action.filter(|_| answered.error_kind() == Some(ErrorKind::InvalidInput))?;
        let text = format!("Unknown action '{action}'. Must be one of: usage, cost, claude_code.");
        return Some(AdaptedResult::error(text));
    };
    failed(answered, "Error querying Anthropic Admin API").or_else(|| {
        let mut data = answered.member("data")?.clone();
        let next = answered.member("next_page");
        let mut report = Map::new();
        if action == "cost" {
            let results =
                data.as_array_mut()?.iter_mut().filter_map(|bucket| bucket.get_mut("results")?.as_array_mut());
            for item in results.flatten().filter_map(Value::as_object_mut) {
                if let Some(amount) = item.get("amount_usd").and_then(rounded_dollars) {
                    item.shift_remove("amount");
                    item.insert("amount_usd".into(), amount);
                }
            }
        }
        report.insert("data".into(), data);
        report.insert("has_more".into(), next.is_some().into());
        report.insert("next_page".into(), next.cloned().unwrap_or_default());
        if let Some(total) = answered.member("totals")?.get("amount_usd").filter(|_| action == "cost") {
            report.insert("total_amount_usd".into(), rounded_dollars(total)?);
        }
        Some(AdaptedResult::text(format!("{label}:\n{}", pretty(&Value::Object(report)))))
    })
}

/// Returns dollars with two decimal places, as a number.
fn rounded_dollars(amount: &Value) -> Option<Value> {
    serde_json::from_str(&rounded(amount.as_str()?).ok()?).ok()
}

fn reported(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    failed(answered, "Error").or_else(|| plain(answered))
}
