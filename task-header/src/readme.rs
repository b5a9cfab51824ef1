//! The generated parts of the README, each between two marks.

/// Asserts that the README has `text` between the marks of this name. With `SELVEDGE_BLESS=1`,
/// writes it there.
pub(crate) fn holds(name: &str, text: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(path).expect("a checkout has a README");
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let from = readme.find(&begin).expect("the mark is there") + begin.len();
    let to = from + readme[from..].find(&end).expect("the mark is there");
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        let new = [&readme[..from], text, &readme[to..]].concat();
        std::fs::write(path, new).expect("a checkout may be written");
    } else {
        assert_eq!(&readme[from..to], text, "SELVEDGE_BLESS=1 writes it");
    }
}
