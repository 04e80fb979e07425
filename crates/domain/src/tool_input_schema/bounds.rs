//! The cost of a schema, computed before it is compiled.
//!
//! A validator has no budget of its own: a schema whose parts refer to each other can make it perform more steps than
//! there are atoms. The schema is therefore treated as a graph, and its cost is counted as if every reference were
//! expanded.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// Maximum number of schemas after every reference is expanded.
const MAX_SCHEMAS: u64 = 1_000;
/// Maximum nesting of schemas after every reference is expanded. A schema that contains itself counts once.
const MAX_DEPTH: usize = 64;
/// Maximum number of schemas that are applied one after another at one place of the instance, for a schema that
/// contains itself. The stack depth is this number times the depth of the instance.
const MAX_IN_PLACE: usize = 6;
/// Maximum number of patterns in a schema.
const MAX_PATTERNS: usize = 32;
/// Maximum total size of the patterns in a schema, in bytes.
const MAX_PATTERN_BYTES: usize = 4 << 10;
/// Maximum depth of an instance: no message contains deeper JSON.
const INSTANCE_DEPTH: u64 = 128;
/// Number of names in `required` and similar keywords, or options of `enum`, that cost as much as one schema.
const NAMES_A_SCHEMA: u64 = 16;

/// Cost of one place of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocationValidationCost {
    /// Maximum number of schemas that are applied to the place.
    pub(super) schemas: u64,
    /// Maximum number of patterns that a text at the place is compared with.
    pub(super) patterns: u64,
    /// `true` if one of the patterns needs a backtracking engine.
    pub(super) backtracks: bool,
}

/// Reason why validating against a schema has no sufficiently small bound of cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnboundedCost {
    /// Too many schemas.
    #[error("it has more than {MAX_SCHEMAS} schemas once its references are written out")]
    Schemas,
    /// Too deeply nested schemas.
    #[error("its schemas are nested more than {MAX_DEPTH} deep once its references are written out")]
    Depth,
    /// The schema contains itself without descending into the instance, or through too many schemas.
    #[error("it contains itself, and more than {MAX_IN_PLACE} of its schemas follow one another at one place")]
    InPlace,
    /// The schema contains itself twice at one place.
    #[error("it contains itself, and refers twice to one place of what it describes")]
    Ambiguous,
    /// The schema has a reference of another form than `#/…`, or an `$id` below its root.
    #[error("it has a reference of another form than `#/…`")]
    Reference,
    /// Too many patterns, or too large ones.
    #[error("it has more than {MAX_PATTERNS} patterns, or they are too large")]
    Patterns,
    /// The arguments are too large for this schema.
    #[error("there are too many values to compare with it")]
    Instance,
}

/// Reason why a schema is not compiled in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotCompiled {
    /// The schema may cost too much.
    Unbounded(UnboundedCost),
    /// The schema has this reference, to a part that does not exist or to another document.
    Dangling(String),
}

impl From<UnboundedCost> for NotCompiled {
    fn from(unbounded: UnboundedCost) -> Self {
        Self::Unbounded(unbounded)
    }
}

/// Computes the maximum cost of the schema for one place of an instance; fails if the schema exceeds a limit. Takes
/// time linear in its size, whatever its references are.
pub(super) fn cost(root: &Value) -> Result<LocationValidationCost, NotCompiled> {
    let graph = SchemaGraph::of(root)?;
    let patterns = graph.patterns()?;
    let in_place = graph.in_place_depths()?.into_iter().max().unwrap_or(0);
    let families = graph.families();
    for at in 0..graph.schemas.len() {
        if families.is_recursive(at) && !graph.is_clear(at, &families) {
            return Err(UnboundedCost::Ambiguous.into());
        }
    }
    if in_place > MAX_IN_PLACE && families.of.iter().any(Option::is_some) {
        return Err(UnboundedCost::InPlace.into());
    }
    Ok(LocationValidationCost { schemas: graph.written_out(&families)?, ..patterns })
}

/// Place where a schema is applied, relative to the schema that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstanceStep<'a> {
    /// Same place of the instance.
    Same,
    /// Property with this name.
    Property(&'a str),
    /// Any property, or the name of any property.
    AnyProperty,
    /// Item with this index.
    Item(usize),
    /// Any item.
    AnyItem,
}

impl InstanceStep<'_> {
    fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Same, _) | (_, Self::Same) => true,
            (Self::Property(one), Self::Property(other)) => one == other,
            (Self::Item(one), Self::Item(other)) => one == other,
            (Self::Property(_) | Self::AnyProperty, Self::Property(_) | Self::AnyProperty)
            | (Self::Item(_) | Self::AnyItem, Self::Item(_) | Self::AnyItem) => true,
            (Self::Property(_) | Self::AnyProperty, Self::Item(_) | Self::AnyItem)
            | (Self::Item(_) | Self::AnyItem, Self::Property(_) | Self::AnyProperty) => false,
        }
    }
}

/// Schemas that can be reached from the root, each once.
struct SchemaGraph<'a> {
    schemas: Vec<&'a Value>,
    /// Edges of each schema: the schemas that it applies, and the places where it applies them.
    leads_to: Vec<Vec<(InstanceStep<'a>, usize)>>,
}

impl<'a> SchemaGraph<'a> {
    fn of(root: &'a Value) -> Result<Self, NotCompiled> {
        let mut graph = Self { schemas: vec![root], leads_to: Vec::new() };
        let mut known = HashMap::from([(std::ptr::from_ref(root), 0)]);
        let mut edges = 0;
        while let Some(schema) = graph.schemas.get(graph.leads_to.len()).copied() {
            let mut leads_to = Vec::new();
            let mut lead = |place: InstanceStep<'a>, to: &'a Value| {
                let at = *known.entry(std::ptr::from_ref(to)).or_insert_with(|| {
                    graph.schemas.push(to);
                    graph.schemas.len() - 1
                });
                leads_to.push((place, at));
                edges += 1;
                if edges > MAX_SCHEMAS { Err(NotCompiled::from(UnboundedCost::Schemas)) } else { Ok(()) }
            };
            if let Value::Object(members) = schema {
                each_subschema(root, members, std::ptr::eq(schema, root), &mut lead)?;
            }
            graph.leads_to.push(leads_to);
        }
        Ok(graph)
    }

    fn patterns(&self) -> Result<LocationValidationCost, UnboundedCost> {
        let mut all: Vec<&str> = Vec::new();
        for members in self.schemas.iter().filter_map(|schema| schema.as_object()) {
            all.extend(members.get("pattern").and_then(Value::as_str));
            let named = members.get("patternProperties").and_then(Value::as_object);
            all.extend(named.into_iter().flat_map(Map::keys).map(String::as_str));
        }
        let bytes: usize = all.iter().map(|pattern| pattern.len()).sum();
        if all.len() > MAX_PATTERNS || bytes > MAX_PATTERN_BYTES {
            return Err(UnboundedCost::Patterns);
        }
        let backtracks = all.iter().any(|pattern| backtracks(pattern));
        Ok(LocationValidationCost { schemas: 0, patterns: all.len() as u64, backtracks })
    }

    /// Returns, for each schema, the maximum number of schemas that it applies one after another at its own place.
    /// Fails if there are too many, or if they form a cycle.
    fn in_place_depths(&self) -> Result<Vec<usize>, UnboundedCost> {
        let here =
            |at: usize| self.leads_to[at].iter().filter(|(place, _)| *place == InstanceStep::Same).map(|(_, to)| *to);
        let mut depths = vec![0; self.schemas.len()];
        // Each round settles one more schema of the longest chain; a cycle is never settled.
        for _ in 0..=MAX_DEPTH + 1 {
            let mut is_settled = true;
            for at in (0..depths.len()).rev() {
                let depth = here(at).map(|to| depths[to] + 1).max().unwrap_or(0);
                is_settled &= depth == depths[at];
                depths[at] = depth;
            }
            if is_settled {
                return Ok(depths);
            }
        }
        Err(UnboundedCost::InPlace)
    }

    /// Groups the schemas that contain each other.
    fn families(&self) -> SchemaCycles {
        let reach: Vec<Vec<bool>> = (0..self.schemas.len()).map(|at| self.reachable(at)).collect();
        let count = reach.len();
        let first = |at: usize| (0..count).find(|other| reach[at][*other] && reach[*other][at]);
        SchemaCycles { of: (0..count).map(first).collect() }
    }

    /// Returns the schemas that can be reached from this one in one step or more.
    fn reachable(&self, from: usize) -> Vec<bool> {
        let mut seen = vec![false; self.schemas.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for (_, to) in &self.leads_to[at] {
                if !std::mem::replace(&mut seen[*to], true) {
                    open.push(*to);
                }
            }
        }
        seen
    }

    /// Returns `true` if the schemas that contain each other with this one reach each place of the instance by only one
    /// path. `unevaluatedProperties` and `unevaluatedItems` count as a second path.
    fn is_clear(&self, at: usize, families: &SchemaCycles) -> bool {
        let mut below: Vec<InstanceStep<'a>> = Vec::new();
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            for (place, to) in self.leads_to[at].iter().filter(|(_, to)| families.of[*to] == families.of[at]) {
                if *place == InstanceStep::Same && looks_again(self.schemas[at]) {
                    return false;
                } else if *place == InstanceStep::Same {
                    open.push(*to);
                } else if below.iter().any(|other| other.meets(*place)) {
                    return false;
                } else {
                    below.push(*place);
                }
            }
        }
        true
    }

    /// Returns the number of schemas once every reference is expanded. Fails if there are too many, or if they are
    /// nested too deeply.
    fn written_out(&self, families: &SchemaCycles) -> Result<u64, UnboundedCost> {
        let mut totals = SchemaTotalCache { graph: self, families, of: vec![None; self.schemas.len()] };
        let SchemaTotal { schemas, depth, .. } = totals.of_family(0, 0)?;
        match (schemas > MAX_SCHEMAS, depth > MAX_DEPTH) {
            (true, _) => Err(UnboundedCost::Schemas),
            (_, true) => Err(UnboundedCost::Depth),
            (false, false) => Ok(schemas),
        }
    }
}

/// Groups of schemas that contain each other, identified by the first of them; `None` for a schema that does not
/// contain itself.
struct SchemaCycles {
    of: Vec<Option<usize>>,
}

impl SchemaCycles {
    fn is_recursive(&self, at: usize) -> bool {
        self.of[at].is_some()
    }

    fn members(&self, at: usize) -> Vec<usize> {
        match self.of[at] {
            None => vec![at],
            family => (0..self.of.len()).filter(|other| self.of[*other] == family).collect(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct SchemaTotal {
    schemas: u64,
    depth: usize,
    /// `true` if a schema that contains itself is among the counted ones.
    recurs: bool,
}

/// Totals of schemas that are already counted, so that a schema with many references is counted once.
struct SchemaTotalCache<'a, 'g> {
    graph: &'g SchemaGraph<'a>,
    families: &'g SchemaCycles,
    of: Vec<Option<SchemaTotal>>,
}

impl SchemaTotalCache<'_, '_> {
    /// Returns the total of the group that contains the schema `at`. `above` is the number of schemas that enclose the
    /// group; more than `MAX_DEPTH` of them are an error.
    fn of_family(&mut self, at: usize, above: usize) -> Result<SchemaTotal, UnboundedCost> {
        if let Some(total) = self.of[at] {
            return Ok(total);
        }
        if above > MAX_DEPTH {
            return Err(UnboundedCost::Depth);
        }
        let members = self.families.members(at);
        let recurs = self.families.is_recursive(at);
        let mut total = SchemaTotal { schemas: 0, depth: 0, recurs };
        for member in &members {
            let weight = weight(self.graph.schemas[*member]);
            // To find its unevaluated parts, everything beside it is evaluated once more.
            let again = if looks_again(self.graph.schemas[*member]) { 2 } else { 1 };
            total.schemas = total.schemas.saturating_add(weight);
            for (place, to) in self.graph.leads_to[*member].clone() {
                if members.contains(&to) {
                    continue;
                }
                let part = self.of_family(to, above + members.len())?;
                // A schema that contains itself may be left at every depth, and each time by another path through the
                // next.
                let ways = if recurs && part.recurs { INSTANCE_DEPTH } else { 1 };
                let again = if place == InstanceStep::Same { again } else { 1 };
                total.schemas = total.schemas.saturating_add(part.schemas.saturating_mul(ways * again));
                total.depth = total.depth.max(part.depth);
                total.recurs |= part.recurs;
            }
        }
        total.depth += members.len();
        for member in members {
            self.of[member] = Some(total);
        }
        Ok(total)
    }
}

fn weight(schema: &Value) -> u64 {
    let all = |keyword: &str| schema.get(keyword).and_then(Value::as_array).map_or(0, |all| all.len() as u64);
    // Each name, and each of the names that it requires.
    let beside = |keyword: &str| {
        let named = schema.get(keyword).and_then(Value::as_object).into_iter().flat_map(Map::values);
        named.map(|wanted| 1 + wanted.as_array().map_or(0, |all| all.len() as u64)).sum::<u64>()
    };
    let names = all("enum") + all("required") + beside("dependentRequired") + beside("dependencies");
    1 + names / NAMES_A_SCHEMA
}

fn looks_again(schema: &Value) -> bool {
    schema.get("unevaluatedProperties").is_some() || schema.get("unevaluatedItems").is_some()
}

/// Returns `true` if the pattern may need a backtracking engine: it contains the characters of lookaround,
/// backreferences, or atomic or possessive groups.
fn backtracks(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    bytes.windows(3).any(|part| matches!(part, [b'(', b'?', b'=' | b'!' | b'<' | b'>' | b'(']))
        || bytes.windows(2).any(|part| matches!(part, [b'\\', b'1'..=b'9' | b'k' | b'g' | b'G' | b'K']))
        || bytes.windows(2).any(|part| matches!(part, [b'+' | b'*' | b'?' | b'}', b'+']))
}

/// Calls `lead` for every schema that a schema applies, with its place. Fails on references that are not followed. The
/// keywords of all drafts are examined, whatever draft the schema declares.
fn each_subschema<'a>(
    root: &'a Value,
    schema: &'a Map<String, Value>,
    is_root: bool,
    lead: &mut impl FnMut(InstanceStep<'a>, &'a Value) -> Result<(), NotCompiled>,
) -> Result<(), NotCompiled> {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("$ref", Value::String(reference)) => lead(InstanceStep::Same, target(root, reference)?)?,
            ("$dynamicRef" | "$recursiveRef", _) => return Err(UnboundedCost::Reference.into()),
            // References below it would have another base.
            ("$id" | "id", Value::String(_)) if !is_root => return Err(UnboundedCost::Reference.into()),
            ("not" | "if" | "then" | "else", one) => lead(InstanceStep::Same, one)?,
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                all.iter().try_for_each(|one| lead(InstanceStep::Same, one))?;
            }
            ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                all.values().filter(|one| !one.is_array()).try_for_each(|one| lead(InstanceStep::Same, one))?;
            }
            ("properties", Value::Object(all)) => {
                all.iter().try_for_each(|(name, one)| lead(InstanceStep::Property(name), one))?;
            }
            ("patternProperties", Value::Object(all)) => {
                all.values().try_for_each(|one| lead(InstanceStep::AnyProperty, one))?;
            }
            ("additionalProperties" | "unevaluatedProperties" | "propertyNames", one) => {
                lead(InstanceStep::AnyProperty, one)?;
            }
            ("prefixItems" | "items", Value::Array(all)) => {
                all.iter().enumerate().try_for_each(|(at, one)| lead(InstanceStep::Item(at), one))?;
            }
            ("contains", one) => {
                lead(InstanceStep::AnyItem, one)?;
                // To find the items that it evaluated, each is tried once more.
                if schema.contains_key("unevaluatedItems") {
                    lead(InstanceStep::AnyItem, one)?;
                }
            }
            ("items" | "additionalItems" | "unevaluatedItems", one) => lead(InstanceStep::AnyItem, one)?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns the schema that a reference names, if it is a JSON pointer into this schema.
fn target<'a>(root: &'a Value, reference: &str) -> Result<&'a Value, NotCompiled> {
    let is_named = ["$id", "id"].iter().any(|name| root.get(name).is_some_and(Value::is_string));
    match reference.strip_prefix('#') {
        // An anchor, or a percent-encoded pointer: rare, and left to the external validator.
        Some(pointer) if pointer.contains('%') || !(pointer.is_empty() || pointer.starts_with('/')) => {
            Err(UnboundedCost::Reference.into())
        }
        Some(pointer) => root.pointer(pointer).ok_or_else(|| NotCompiled::Dangling(reference.to_owned())),
        None if is_named || reference.contains("://json-schema.org/") => Err(UnboundedCost::Reference.into()),
        None => Err(NotCompiled::Dangling(reference.to_owned())),
    }
}

/// Returns the schema itself, or the one that its chain of references leads to; `None` if the chain is too long or
/// leads nowhere.
pub(super) fn resolved<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    let mut schema = schema;
    for _ in 0..MAX_IN_PLACE {
        match schema.get("$ref") {
            None => return Some(schema),
            Some(reference) => schema = target(root, reference.as_str()?).ok()?,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, expected: Result<u64, UnboundedCost>) {
        let found = cost(&schema).map(|cost| cost.schemas);
        assert_eq!(found, expected.map_err(NotCompiled::Unbounded), "{schema:.300}");
    }

    #[test]
    fn the_cost_of_a_schema_includes_expanded_references_and_is_bounded() {
        check(json!({}), Ok(1));
        check(json!({"properties": {"a": {}, "b": {"items": {"enum": vec![0; 32]}}}}), Ok(1 + 1 + 1 + 3));
        check(json!({"$defs": {"a": {}}}), Ok(1));
        check(json!({"required": vec!["b"; 32]}), Ok(1 + 2));
        for keyword in ["dependentRequired", "dependencies"] {
            check(json!({keyword: {"a": vec!["b"; 31]}}), Ok(1 + 2));
        }
        check(
            json!({"dependentRequired": (0..20_000).map(|at| (at.to_string(), json!([]))).collect::<Map<_, _>>()}),
            Err(UnboundedCost::Schemas),
        );
        let tried_again =
            |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"contains": inner, "unevaluatedItems": false}));
        check(tried_again(2), Ok(10));
        check(tried_again(60), Err(UnboundedCost::Schemas));
        check(
            json!({"properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}),
            Ok(5),
        );
        let chain = |names: usize| {
            let link = |at: usize| match at {
                0 => (format!("l{at}"), json!({"type": "object"})),
                at => {
                    let before = json!({"$ref": format!("#/$defs/l{}", at - 1)});
                    (format!("l{at}"), json!({"properties": {"a": {"allOf": [before.clone(), before]}}}))
                }
            };
            let links: Map<String, Value> = (0..=names).map(link).collect();
            json!({"$ref": format!("#/$defs/l{names}"), "$defs": links})
        };
        assert!(cost(&chain(3)).is_ok());
        check(chain(14), Err(UnboundedCost::Schemas));
        check(chain(60), Err(UnboundedCost::Depth));
        let flat: Map<String, Value> = (0..1_200).map(|at| (format!("p{at}"), json!({}))).collect();
        check(json!({"properties": flat}), Err(UnboundedCost::Schemas));
        let deep = (0..70).fold(json!({}), |inner, _| json!({"items": inner}));
        check(deep, Err(UnboundedCost::Depth));
    }

    #[test]
    fn a_recursive_schema_is_bounded_only_if_each_place_is_reached_once() {
        let this = json!({"$ref": "#"});
        check(json!({"properties": {"children": {"items": this}}}), Ok(3));
        check(json!({"properties": {"a": this}, "unevaluatedProperties": false}), Ok(3));
        // Any JSON value.
        let any = json!({"anyOf": [{"type": "string"}, {"items": this}, {"additionalProperties": this}]});
        check(any, Ok(6));
        check(json!({"properties": {"left": this, "right": this}}), Ok(3));
        for twice in [
            json!({"properties": {"a": {"anyOf": [this, this]}}}),
            json!({"properties": {"a": this}, "patternProperties": {"^a": this}}),
            json!({"anyOf": [{"properties": {"a": this}}, {"properties": {"a": this}}]}),
            json!({"items": this, "contains": this}),
            json!({"contains": this, "unevaluatedItems": false}),
            json!({"allOf": [{"contains": this}], "unevaluatedItems": false}),
        ] {
            check(twice, Err(UnboundedCost::Ambiguous));
        }
        for endless in [json!({"$ref": "#"}), json!({"allOf": [{"not": this}]}), json!({"anyOf": [this, this]})] {
            check(endless, Err(UnboundedCost::InPlace));
        }
        // One that contains itself, and leads to another at every depth, and so on.
        let names = ["a", "b", "c", "d"];
        let next = |at: usize| names.get(at + 1).map(|name| json!({"$ref": format!("#/$defs/{name}")}));
        let one = |(at, name): (usize, &&str)| {
            let own = json!({"$ref": format!("#/$defs/{name}")});
            let all: Vec<Value> = [Some(own), next(at)].into_iter().flatten().collect();
            ((*name).to_owned(), json!({"items": {"allOf": all}}))
        };
        let all: Map<String, Value> = names.iter().enumerate().map(one).collect();
        check(json!({"$ref": "#/$defs/a", "$defs": all}), Err(UnboundedCost::Schemas));
    }

    #[test]
    fn patterns_are_limited_in_number_and_size_and_unsupported_references_are_rejected() {
        let patterns = |count: usize, text: &str| json!({"properties": (0..count).map(|at| (format!("p{at}"), json!({"pattern": text}))).collect::<Map<_, _>>()});
        assert_eq!(cost(&patterns(32, "^a$")).unwrap().patterns, 32);
        check(patterns(33, "^a$"), Err(UnboundedCost::Patterns));
        check(patterns(2, &"a".repeat(3_000)), Err(UnboundedCost::Patterns));
        check(json!({"patternProperties": {("a".repeat(5_000)): {}}}), Err(UnboundedCost::Patterns));
        for (pattern, backtracks) in [(r"^\d{3}-(?:a|b)$", false), ("^(?=a)", true), (r"(a)\1", true), ("a++", true)] {
            assert_eq!(cost(&patterns(1, pattern)).unwrap().backtracks, backtracks, "{pattern}");
        }
        for reference in ["#name", "#/a%20b", "http://json-schema.org/draft-07/schema#"] {
            check(json!({"$ref": reference}), Err(UnboundedCost::Reference));
        }
        for reference in ["other.json", "#/$defs/none", "file:///etc/passwd"] {
            assert_eq!(cost(&json!({"$ref": reference})), Err(NotCompiled::Dangling(reference.into())));
        }
        check(json!({"properties": {"a": {"$dynamicRef": "#a"}}}), Err(UnboundedCost::Reference));
        check(json!({"items": {"$id": "http://a/b", "$ref": "#"}}), Err(UnboundedCost::Reference));
        check(json!({"$id": "http://a/b", "properties": {"id": {}, "$id": {}}}), Ok(3));
    }
}
