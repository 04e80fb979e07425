//! The events by which a browser announces the requests of its pages, frames and workers.

use crate::browser::devtools::DevToolsEvent;

/// Beginnings of the addresses of documents that are part of the browser.
const OWN_DOCUMENTS: [&str; 5] = ["chrome:", "chrome-extension:", "chrome-search:", "chrome-untrusted:", "devtools:"];

/// Returns the address that a page, frame or worker is about to request, if this event announces one. A redirect is an
/// event of its own. Documents of the browser itself, such as the background page of a built-in extension, are ignored:
/// they request its own services.
pub(crate) fn requested_address(event: &DevToolsEvent) -> Option<&str> {
    let document = event.params.get("documentURL").and_then(|address| address.as_str()).unwrap_or_default();
    if OWN_DOCUMENTS.iter().any(|own| document.starts_with(own)) {
        return None;
    }
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
    use crate::browser::devtools::CommandTarget;
    use serde_json::{Value, json};

    #[test]
    fn only_requests_and_web_sockets_of_web_documents_announce_an_address() {
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
            (
                "Network.requestWillBeSent",
                json!({"request": {"url": "https://shop.example/"}, "documentURL": "https://shop.example/"}),
                Some("https://shop.example/"),
            ),
            (
                "Network.requestWillBeSent",
                json!({"request": {"url": "https://maker.example/"}, "documentURL": "chrome-extension://a/page.html"}),
                None,
            ),
            (
                "Network.requestWillBeSent",
                json!({"request": {"url": "https://maker.example/"}, "documentURL": "chrome://newtab/"}),
                None,
            ),
        ] {
            let Value::Object(params) = params else { panic!("parameters are an object") };
            let event = DevToolsEvent { target: CommandTarget(None), method: method.into(), params };
            assert_eq!(requested_address(&event), expected, "{method}");
        }
    }
}
