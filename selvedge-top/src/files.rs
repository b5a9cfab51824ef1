//! The files of the page.

/// The page itself.
pub(crate) const PAGE: &str = include_str!("page/index.html");

/// Its style.
pub(crate) const STYLE: &str = include_str!("page/top.css");

/// Its script.
pub(crate) const SCRIPT: &str = include_str!("page/top.js");

/// Returns whether a path is that of one of the files. They hold no data of the program.
pub(crate) fn is_file(path: &str) -> bool {
    ["/", "/top.css", "/top.js"].contains(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The script puts texts of the program into the page as text. The page loads nothing but its
    /// own files, and runs only its own script: the header `Content-Security-Policy` says so, too.
    #[test]
    fn page_has_no_foreign_assets_and_no_inner_html() {
        for text in [PAGE, STYLE, SCRIPT] {
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
            ] {
                assert!(!text.contains(word), "{word}");
            }
            for word in ["http:", "https:", "@import", "url("] {
                let foreign = text.replace("http://www.w3.org/2000/svg", "");
                assert!(!foreign.contains(word), "{word}");
            }
        }
        for word in ["onclick=", "onload=", "style=", "<style", "javascript:"] {
            assert!(!PAGE.contains(word), "{word}");
        }
    }

    #[test]
    fn files_of_the_page_are_small() {
        let bytes = PAGE.len() + STYLE.len() + SCRIPT.len();
        assert!(bytes < 48 << 10, "{bytes} bytes");
    }
}
