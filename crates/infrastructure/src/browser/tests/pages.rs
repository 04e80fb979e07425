//! Pictures and documents of pages, and their messages.

use super::{end, rig};
use crate::browser::actions::PictureFormat;
use base64::{Engine, engine::general_purpose::STANDARD};

const LONG: &str = "<!doctype html><title>Long</title><body style='margin: 0'>\
    <div style='height: 300000px; background: linear-gradient(red, blue)'></div><p>The end</p>";

/// Logs every kind of message twice.
const BROKEN: &str = r#"<!doctype html><title>Broken</title><script>
  console.log('quiet');
  for (const _ of [1, 2]) {
    console.error('bad', 3, 'y'.repeat(5000));
    console.warn('careful <system>');
    setTimeout(() => { throw new RangeError('boom') });
    Promise.reject(new Error('nobody hears'));
  }
</script><img src="/nothing.png"><img src="/nothing.png"><img src="http://shop.example:81/away.png">"#;

const LOUD: &str =
    "<!doctype html><title>Loud</title><script>for (let at = 1; at <= 50; at++) console.error('n', at)</script>";

const PAGES: &[(&str, &str)] = &[("/", LONG), ("/broken", BROKEN), ("/loud", LOUD)];

#[tokio::test(flavor = "multi_thread")]
async fn a_full_page_screenshot_is_limited_in_height_and_a_pdf_in_pages() {
    let rig = rig(PAGES).await;
    rig.session.open("http://shop.example/", false, end()).await.unwrap();
    let size = |file: &str| {
        let file = STANDARD.decode(file).unwrap();
        assert!(file.starts_with(b"\x89PNG"));
        let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
        (number(16), number(20))
    };
    let whole = rig.session.picture(true, PictureFormat::Png).await.unwrap();
    assert_eq!((size(&whole.data).1, whole.is_cut), (16_000, true));
    let shown = rig.session.picture(false, PictureFormat::Png).await.unwrap();
    assert_eq!((size(&shown.data), shown.is_cut), ((1_280, 800), false));
    let document = STANDARD.decode(rig.session.pdf().await.unwrap()).unwrap();
    assert!(document.starts_with(b"%PDF-") && document.trim_ascii_end().ends_with(b"%%EOF"));
    let is_page = |part: &&[u8]| part.starts_with(b"/Type /Page") && !part.ends_with(b"s");
    assert_eq!(document.windows(12).filter(is_page).count(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn page_errors_and_warnings_are_reported_once_and_shortened() {
    let rig = rig(PAGES).await;
    let session = &rig.session;
    session.open("http://shop.example/broken", false, end()).await.unwrap();
    let has_all =
        |state: &crate::browser::state::BrowserState| (state.current()?.messages().count() >= 6).then_some(());
    session.when(end(), has_all).await.unwrap();
    let mut message = session.state().current_mut().unwrap().take_messages();
    message.sort();
    let begins = [
        "console error: bad 3 yyyy",
        "console warning: careful &lt;system>",
        "error: Error: nobody hears at http://shop.example/broken:",
        "error: RangeError: boom at http://shop.example/broken:",
        "request failed: the server responded with a status of 404 (Not Found) (http://shop.example/nothing.png)",
        "request failed: the server responded with a status of 502 (Bad Gateway) (http://shop.example:81/away.png)",
    ];
    assert_eq!(message.len(), begins.len(), "{message:#?}");
    for (message, begin) in message.iter().zip(begins) {
        assert!(message.starts_with(begin) && message.chars().count() <= 310, "{message}");
    }
    session.open("http://shop.example/loud", false, end()).await.unwrap();
    let message = session.state().current_mut().unwrap().take_messages();
    assert_eq!(
        (message.len(), &*message[0], &*message[20]),
        (21, "30 earlier ones are omitted", "console error: n 50")
    );
    assert_eq!(session.state().current_mut().unwrap().take_messages(), [] as [String; 0]);
}
