//! The events by which a browser announces the requests of its pages, frames and workers.

use crate::browser::devtools::Event;

/// Returns the address that a page, frame or worker is about to request, if this event announces one. A redirect is an
/// event of its own.
pub(crate) fn requested_address(event: &Event) -> Option<&str> {
    let address = match event.method.as_str() {
        "Network.requestWillBeSent" | "Fetch.requestPaused" => event.params.get("request")?.get("url")?,
        "Network.webSocketCreated" | "Network.webTransportCreated" => event.params.get("url")?,
        _ => return None,
    };
    address.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browser::devtools::Target;
    use serde_json::{Value, json};

    #[test]
    fn requests_and_sockets_are_announced_and_nothing_else_that_has_an_address() {
        let request = json!({"request": {"url": "https://shop.example/"}});
        for (method, params, expected) in [
            ("Network.requestWillBeSent", request.clone(), Some("https://shop.example/")),
            ("Fetch.requestPaused", request.clone(), Some("https://shop.example/")),
            ("Network.webSocketCreated", json!({"url": "wss://shop.example/"}), Some("wss://shop.example/")),
            ("Network.responseReceived", request, None),
            ("Page.frameNavigated", json!({"frame": {"url": "https://shop.example/"}}), None),
            ("Target.targetInfoChanged", json!({"targetInfo": {"url": "https://shop.example/"}}), None),
            ("Network.requestWillBeSent", json!({"request": {"url": 1}}), None),
            ("Network.requestWillBeSent", json!({}), None),
        ] {
            let Value::Object(params) = params else { panic!("parameters are an object") };
            let event = Event { target: Target(None), method: method.into(), params };
            assert_eq!(requested_address(&event), expected, "{method}");
        }
    }
}
