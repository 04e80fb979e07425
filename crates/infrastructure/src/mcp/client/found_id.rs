//! The id of an answer that cannot be read as a whole.

/// The id of an answer that is too long or no JSON, by its beginning or its end; `None` where neither tells.
///
/// The servers of most SDKs write the id first; those of the TypeScript SDK write it last.
pub(super) fn found_id(start: &[u8], end: &[u8]) -> Option<i64> {
    near_start(start).or_else(|| near_end(end))
}

/// Only members without structure may stand before it.
fn near_start(start: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(start);
    let mut rest = text.trim_start().strip_prefix('{')?;
    loop {
        let (name, after) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let (value, after) = value.split_once(',')?;
        match name {
            // What comes next must make it an answer.
            "id" if after.trim_start().starts_with("\"method\"") => return None,
            "id" => return value.trim_end().parse().ok(),
            "jsonrpc" => rest = after,
            _ => return None,
        }
    }
}

fn near_end(end: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(end);
    let (_, after) = text.rsplit_once("\"id\"")?;
    let value = after.trim_start().strip_prefix(':')?.trim_end().strip_suffix('}')?;
    value.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_at_either_end() {
        for (start, id) in [
            (r#"{"jsonrpc":"2.0","id":17,"result":{"#, Some(17)),
            (r#" { "id" : 3 , "jsonrpc": "2.0", "result": ["#, Some(3)),
            (r#"{"result":{"id":5,"#, None),
            (r#"{"jsonrpc":"2.0","id":"17","result":{"#, None),
            (r#"{"jsonrpc":"2.0","id":17,"method":"ping","#, None),
            (r#"{"jsonrpc":"2.0","method":"m","params":{"id":1,"#, None),
            ("xxxxxxxx", None),
        ] {
            assert_eq!(near_start(start.as_bytes()), id, "{start}");
        }
        for (end, id) in [
            (r#"xxx"}]},"jsonrpc":"2.0","id":17}"#, Some(17)),
            (r#"xxx"}]}, "id": 17, "jsonrpc": "2.0"} "#, Some(17)),
            (r#"xxx"}]}}"#, None),
            (r#"xxx"}]},"id":"17"}"#, None),
        ] {
            assert_eq!(near_end(end.as_bytes()), id, "{end}");
        }
    }
}
