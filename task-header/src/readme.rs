//! Checks of the generated parts of the README. A generated part lies between two marks, which are
//! HTML comments: `<!-- NAME -->` before it, and `<!-- /NAME -->` after it.

/// Asserts that the part `name` of the README is `text`. If the assertion fails, the README is out
/// of date. Run the test again with `SELVEDGE_BLESS=1` in its environment: then this function
/// asserts nothing, and writes `text` into the README in place of the old part.
pub(crate) fn holds(name: &str, text: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(path).expect("a checkout has a README");
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let from = readme.find(&begin).expect("a mark begins the part") + begin.len();
    let to = from + readme[from..].find(&end).expect("a mark ends the part");
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        let new = [&readme[..from], text, &readme[to..]].concat();
        std::fs::write(path, new).expect("a checkout may be written");
    } else {
        assert_eq!(
            &readme[from..to],
            text,
            "README.md differs in its part {name}: with SELVEDGE_BLESS=1 this test updates it"
        );
    }
}
