//! The page that shows a trace: one HTML file that contains the trace.
const VIEWER: &str = include_str!("viewer.html");

/// The place in the viewer where the trace goes.
const PLACE: &str = "{\"traceEvents\":[]}";

/// Makes a page of HTML that shows a trace, from the JSON that
/// [`Capture::write_chrome`](super::Capture::write_chrome) writes.
///
/// `json` is trusted: it must not contain a `<`, because that could end the script around the JSON.
/// For other files of the format see [`page_of`].
pub(super) fn page(json: &[u8]) -> String {
    VIEWER.replacen(PLACE, String::from_utf8_lossy(json).trim(), 1)
}

/// Makes a page of HTML that shows a saved trace: any JSON in Chrome's trace-event format.
///
/// ```
/// let json = r#"{"traceEvents":[{"ph":"X","name":"a<b","tid":0,"ts":1,"dur":2}]}"#;
/// let page = task_trace::recorder::page_of(json);
/// assert!(page.contains(r"a\u003cb"));
/// ```
pub fn page_of(json: &str) -> String {
    // In JSON a `<` occurs only in strings, and there this escape means the same.
    page(json.replace('<', "\\u003c").as_bytes())
}
