//! Statements that write and read the tools of a catalogue.

use super::fault::Fault;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use sqlx::{Connection, Row, SqliteConnection, sqlite::SqliteRow};
use std::{collections::HashMap, error::Error};
use toolstead_domain::{
    Availability, Category, DefinitionChange, DefinitionPart, ProviderIdentity, ServerName, StoredToolCatalogue,
    Timestamp, Tool, ToolName, ToolSource,
};

/// Maximum number of catalogues of a provider that is started in different ways, such as once per project.
const KEPT_STARTS: i64 = 32;

/// Statement that stores the time ($4) at which a catalogue ($1, $2, $3) was last seen, and returns its id.
const SEE: &str = "
    INSERT INTO catalogues (configured_in, provider, start, last_seen) VALUES ($1, $2, $3, $4)
    ON CONFLICT (configured_in, provider, start) DO UPDATE SET last_seen = excluded.last_seen
    RETURNING id";

/// Statement that deletes the catalogues of a provider ($1, $2) except the most recently seen ones ($3) and the one
/// ($4) that is being saved. The latter may appear older if the clock was ahead before.
const FORGET_OLD_STARTS: &str = "
    DELETE FROM catalogues WHERE configured_in = $1 AND provider = $2 AND id <> $4 AND id NOT IN (
        SELECT id FROM catalogues WHERE configured_in = $1 AND provider = $2 ORDER BY last_seen DESC, id DESC LIMIT $3
    )";

/// Statement that deletes the tools of a catalogue ($1) whose names are not in a JSON array ($2).
const FORGET_OTHERS: &str = "
    DELETE FROM tools WHERE catalogue = $1 AND name NOT IN (SELECT value FROM json_each($2))";

/// Statement that adds the tools of a JSON array ($2) to a catalogue ($1) at a time ($3). Each item is an array in the
/// format of [`values`]. Unchanged tools are not written again.
const SAVE: &str = "
    INSERT INTO tools (
        catalogue, name, definition, category, tags, source, server, upstream_name, unavailable, fingerprint, changed,
        changed_at, first_seen
    )
    SELECT
        $1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
        unhex(value ->> 8), value ->> 9, value ->> 10, $3
    FROM jsonb_each($2)
    WHERE true
    ON CONFLICT (catalogue, name) DO UPDATE SET
        definition = excluded.definition, category = excluded.category, tags = excluded.tags,
        source = excluded.source, server = excluded.server, upstream_name = excluded.upstream_name,
        unavailable = excluded.unavailable, fingerprint = excluded.fingerprint, changed = excluded.changed,
        changed_at = excluded.changed_at
    WHERE (tools.definition, tools.category, tools.tags, tools.source, tools.server, tools.upstream_name,
           tools.unavailable, tools.changed, tools.changed_at)
        IS NOT (excluded.definition, excluded.category, excluded.tags, excluded.source, excluded.server,
                excluded.upstream_name, excluded.unavailable, excluded.changed, excluded.changed_at)";

/// Statement that returns the tools of a provider ($1, $2, $3), sorted by name. [`read`] relies on the order of the
/// columns.
pub(super) const CATALOGUE: &str = "
    SELECT name, definition, category, tags, source, server, upstream_name, unavailable,
           NOT EXISTS (SELECT 1 FROM disabled_tools WHERE disabled_tools.name = tools.name), changed, changed_at
    FROM tools WHERE catalogue = (
        SELECT id FROM catalogues WHERE configured_in = $1 AND provider = $2 AND start = $3
    ) ORDER BY name";

/// Catalogue as parameters of the statements.
#[derive(Debug)]
pub(super) struct CatalogueStatementParameters {
    provider: ProviderIdentity,
    /// Names of the tools, as a JSON array.
    names: String,
    /// JSON array of [`values`].
    tools: String,
    now: Timestamp,
}

impl CatalogueStatementParameters {
    /// Encodes the current catalogue of a provider.
    pub(super) fn new(provider: &ProviderIdentity, catalogue: &StoredToolCatalogue, now: Timestamp) -> Self {
        let StoredToolCatalogue { tools, changes } = catalogue;
        let names = tools.iter().map(|tool| tool.name().as_str()).collect::<Value>().to_string();
        let changes: HashMap<&str, &DefinitionChange> =
            changes.iter().map(|change| (change.tool.as_str(), change)).collect();
        let tools = tools.iter().map(|tool| values(tool, changes.get(tool.name().as_str()).copied()));
        Self { provider: provider.clone(), names, tools: tools.collect::<Value>().to_string(), now }
    }

    /// Replaces the stored catalogue of the provider, and deletes its least recently seen catalogues over
    /// [`KEPT_STARTS`].
    pub(super) async fn save(self, connection: &mut SqliteConnection) -> Result<(), Fault> {
        let Self { provider: ProviderIdentity { configured_in, name, start }, names, tools, now } = self;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let see = sqlx::query_scalar(SEE).bind(&configured_in).bind(&name).bind(start).bind(now.0);
        let catalogue: i64 = see.fetch_one(&mut *transaction).await?;
        let forget = sqlx::query(FORGET_OLD_STARTS).bind(configured_in).bind(name).bind(KEPT_STARTS).bind(catalogue);
        forget.execute(&mut *transaction).await?;
        sqlx::query(FORGET_OTHERS).bind(catalogue).bind(names).execute(&mut *transaction).await?;
        sqlx::query(SAVE).bind(catalogue).bind(tools).bind(now.0).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Enables or disables a tool.
pub(super) async fn switch(connection: &mut SqliteConnection, tool: &str, enabled: bool) -> Result<(), Fault> {
    let statement = match enabled {
        true => "DELETE FROM disabled_tools WHERE name = $1",
        false => "INSERT INTO disabled_tools (name) VALUES ($1) ON CONFLICT DO NOTHING",
    };
    sqlx::query(statement).bind(tool).execute(connection).await?;
    Ok(())
}

/// Returns a tool as JSON, in the order that [`SAVE`] expects.
fn values(tool: &Tool, change: Option<&DefinitionChange>) -> Value {
    let (source, server, upstream_name) = match tool.source() {
        ToolSource::BuiltIn => ("built-in", None, None),
        ToolSource::McpServer { server, tool } => ("mcp", Some(server.as_str()), Some(&**tool)),
        ToolSource::Embedded(provider) => ("embedded", Some(provider.as_str()), None),
    };
    let unavailable = match &tool.availability {
        Availability::Available => None,
        Availability::Unavailable(reason) => Some(reason),
    };
    json!([
        tool.name().as_str(),
        serde_json::to_string(tool.definition()).unwrap_or_default(),
        tool.category.as_str(),
        Value::from(tool.tags.as_slice()).to_string(),
        source,
        server,
        upstream_name,
        unavailable,
        fingerprint(tool),
        change.map(|change| change.parts.iter().map(|part| part.member()).collect::<Value>().to_string()),
        change.map(|change| change.at.0),
    ])
}

/// Returns the fingerprint of what models and rules receive of the tool: SHA-256 of name, description, schemas and
/// annotations, in hex. The order of members does not matter.
fn fingerprint(tool: &Tool) -> String {
    let member = |name: &str| tool.definition().get(name).cloned().unwrap_or_default();
    let mut seen = json!([
        tool.name().as_str(),
        member("description"),
        member("inputSchema"),
        member("outputSchema"),
        member("annotations"),
    ]);
    seen.sort_all_objects();
    Sha256::digest(seen.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads the rows of [`CATALOGUE`].
pub(super) fn catalogue(rows: &[SqliteRow]) -> Result<StoredToolCatalogue, Fault> {
    let mut catalogue = StoredToolCatalogue::default();
    for row in rows {
        let tool = read(row)?;
        if let (Some(parts), Some(at)) = (row.try_get::<Option<String>, _>(9)?, row.try_get::<Option<i64>, _>(10)?) {
            let parts: Vec<String> = serde_json::from_str(&parts).map_err(unreadable)?;
            let parts = parts.iter().filter_map(|part| DefinitionPart::of_member(part)).collect();
            catalogue.changes.push(DefinitionChange { tool: tool.name().to_string(), parts, at: Timestamp(at) });
        }
        catalogue.tools.push(tool);
    }
    Ok(catalogue)
}

/// Reads the tool of a row of [`CATALOGUE`].
fn read(row: &SqliteRow) -> Result<Tool, Fault> {
    let text = |column: usize| row.try_get::<String, _>(column);
    let optional = |column: usize| row.try_get::<Option<String>, _>(column);
    let name = ToolName::parse(&text(0)?).map_err(unreadable)?;
    let definition: Map<String, Value> = serde_json::from_str(&text(1)?).map_err(unreadable)?;
    let category = Category::parse(&text(2)?).map_err(unreadable)?;
    let server =
        || -> Result<ServerName, Fault> { ServerName::parse(&optional(5)?.unwrap_or_default()).map_err(unreadable) };
    let source = match text(4)?.as_str() {
        "built-in" => ToolSource::BuiltIn,
        "embedded" => ToolSource::Embedded(server()?),
        _ => ToolSource::McpServer { server: server()?, tool: optional(6)?.unwrap_or_default().into() },
    };
    let mut tool = Tool::new(name, definition, category, source);
    tool.tags = serde_json::from_str(&text(3)?).map_err(unreadable)?;
    tool.set_availability(optional(7)?.map_or(Availability::Available, Availability::Unavailable));
    tool.enabled = row.try_get(8)?;
    Ok(tool)
}

fn unreadable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Fault {
    Fault::Unreadable(cause.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::new_database::{TestDatabase, new_database};
    use toolstead_domain::testing::samples;

    #[track_caller]
    fn check(change: impl Fn(&mut Map<String, Value>), changes_the_fingerprint: bool) {
        let base = json!({
            "description": "d", "inputSchema": {"type": "object", "required": []}, "annotations": {"readOnlyHint": true},
        });
        let tool = |definition: Value| {
            let Value::Object(definition) = definition else { unreachable!("an object") };
            Tool::new(samples::tool("t").name().clone(), definition, Category::Utility, ToolSource::BuiltIn)
        };
        let mut changed = base.clone();
        change(changed.as_object_mut().unwrap());
        assert_eq!(fingerprint(&tool(changed)) != fingerprint(&tool(base)), changes_the_fingerprint);
    }

    #[test]
    fn a_tool_fingerprint_changes_only_with_model_visible_parts() {
        check(|definition| definition["description"] = "e".into(), true);
        check(|definition| definition["inputSchema"]["type"] = "string".into(), true);
        check(|definition| definition["annotations"]["readOnlyHint"] = false.into(), true);
        check(|definition| drop(definition.insert("outputSchema".into(), json!({}))), true);
        check(|definition| drop(definition.remove("annotations")), true);
        check(|definition| drop(definition.insert("_meta".into(), json!({"version": 2}))), false);
        check(|definition| definition["inputSchema"] = json!({"required": [], "type": "object"}), false);
    }

    /// Saves the tools. Returns the number of changed rows, and the time at which each tool was first seen.
    async fn save(connection: &mut SqliteConnection, tools: &[Tool], now: i64) -> (i64, Vec<i64>) {
        let changes = "SELECT total_changes()";
        let before: i64 = sqlx::query_scalar(changes).fetch_one(&mut *connection).await.unwrap();
        let catalogue = StoredToolCatalogue { tools: tools.to_vec(), changes: Vec::new() };
        let rows = CatalogueStatementParameters::new(&ProviderIdentity::of_program("p"), &catalogue, Timestamp(now));
        rows.save(connection).await.unwrap();
        let after: i64 = sqlx::query_scalar(changes).fetch_one(&mut *connection).await.unwrap();
        let seen =
            sqlx::query_scalar("SELECT first_seen FROM tools ORDER BY name").fetch_all(connection).await.unwrap();
        (after - before, seen)
    }

    #[tokio::test]
    async fn unchanged_tools_are_not_written_again() {
        let TestDatabase { folder: _folder, mut connection, .. } = new_database().await;
        let mut tools = ["a", "b", "c"].map(samples::tool);
        assert_eq!(save(&mut connection, &tools, 10).await, (4, vec![10, 10, 10]));
        assert_eq!(save(&mut connection, &tools, 20).await, (1, vec![10, 10, 10]));
        tools[1].availability = Availability::Unavailable("no key".into());
        assert_eq!(save(&mut connection, &tools, 30).await, (2, vec![10, 10, 10]));
        assert_eq!(save(&mut connection, &tools[1..], 40).await, (2, vec![10, 10]));
        assert_eq!(save(&mut connection, &tools, 50).await, (2, vec![50, 10, 10]));
        let last_seen: i64 =
            sqlx::query_scalar("SELECT last_seen FROM catalogues").fetch_one(&mut connection).await.unwrap();
        assert_eq!(last_seen, 50);
    }

    #[tokio::test]
    async fn a_provider_keeps_the_catalogues_of_its_latest_start_commands_only() {
        let TestDatabase { folder: _folder, mut connection, .. } = new_database().await;
        let catalogue = StoredToolCatalogue { tools: vec![samples::tool("a")], changes: Vec::new() };
        for number in 0..KEPT_STARTS + 3 {
            let mut provider = ProviderIdentity::of_program("p");
            provider.start = number.to_string();
            CatalogueStatementParameters::new(&provider, &catalogue, Timestamp(number))
                .save(&mut connection)
                .await
                .unwrap();
        }
        let kept: Vec<i64> = sqlx::query_scalar(
            "SELECT CAST(start AS INTEGER) FROM catalogues JOIN tools ON tools.catalogue = id ORDER BY last_seen",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        assert_eq!(kept, (3..KEPT_STARTS + 3).collect::<Vec<_>>());
        let tools: i64 = sqlx::query_scalar("SELECT count(*) FROM tools").fetch_one(&mut connection).await.unwrap();
        assert_eq!(tools, KEPT_STARTS, "the tools of a forgotten catalogue go with it");
        // After the clock was set back, a new catalogue appears to be the oldest.
        let provider = ProviderIdentity { start: "new".into(), ..ProviderIdentity::of_program("p") };
        CatalogueStatementParameters::new(&provider, &catalogue, Timestamp(-1)).save(&mut connection).await.unwrap();
        let new = "SELECT count(*) FROM catalogues JOIN tools ON tools.catalogue = id WHERE start = 'new'";
        assert_eq!(sqlx::query_scalar::<_, i64>(new).fetch_one(&mut connection).await.unwrap(), 1);
    }
}
