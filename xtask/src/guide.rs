//! `cargo xtask guide`: builds the book and the API docs into one site, and checks the site.
//!
//! The site is `target/guide`. The book is at its root, with a page that shows a trace, and the API
//! docs are in `api`. The checks need a browser, so only `cargo xtask guide --check` makes them.
use anyhow::{Context, Result, bail};
use project::{
    say,
    workspace::{self, cargo, is_installed, succeeds},
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use walkdir::WalkDir;

/// The names that a browser's program may have.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A line of a browser's log with this word is a message that a page has written to its console.
const CONSOLE: &str = "CONSOLE";

/// The file of the page that shows a trace.
const TRACE: &str = "trace.html";

/// Options of `cargo xtask guide`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Opens each page in headless Chromium, and checks its links within the site. Fails if a link
    /// leads nowhere, or if a page writes to its console.
    #[arg(long)]
    check: bool,
    /// Leaves the API docs out.
    #[arg(long)]
    no_api: bool,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let site = root.join("target/guide");
    if !book(&root, &site)? {
        return Ok(false);
    }
    if !trace(&root, &site)? {
        return Ok(false);
    }
    if !options.no_api {
        let mut doc = cargo();
        doc.current_dir(&root)
            .args(["doc", "--no-deps", "--all-features", "--target-dir"])
            .arg(root.join("target/guide-api"));
        for package in packages.iter().filter(|package| package.is_publishable()) {
            doc.args(["--package", &package.name]);
        }
        if !succeeds(&mut doc)? {
            return Ok(false);
        }
        copy(&root.join("target/guide-api/doc"), &site.join("api"))?;
    }
    say!("the guide: {}", site.join("index.html").display());
    Ok(!options.check || check(&site)?)
}

/// Builds the book.
fn book(root: &Path, site: &Path) -> Result<bool> {
    let own = root.join("target/tools/bin/mdbook");
    let program = [PathBuf::from("mdbook"), own.clone()];
    let program = match program
        .into_iter()
        .find(|program| is_installed(&mut Command::new(program)))
    {
        Some(program) => program,
        None => {
            say!("mdbook is not installed: cargo install --locked mdbook --root target/tools");
            let mut install = cargo();
            let arguments = "install --locked mdbook --root target/tools";
            install.current_dir(root).args(arguments.split(' '));
            if !succeeds(&mut install)? {
                return Ok(false);
            }
            own
        }
    };
    let mut build = Command::new(program);
    build
        .arg("build")
        .arg(root.join("guide"))
        .arg("--dest-dir")
        .arg(site);
    succeeds(&mut build)
}

/// Records a trace, which a chapter links to.
fn trace(root: &Path, site: &Path) -> Result<bool> {
    let mut record = cargo();
    let example = "run --quiet --package selvedge --features recorder --example trace --";
    record.current_dir(root).args(example.split(' '));
    succeeds(record.arg(site.join(TRACE)))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let to = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&to)?;
        } else {
            fs::copy(entry.path(), &to).with_context(|| to.display().to_string())?;
        }
    }
    Ok(())
}

/// Checks the book's pages: their links, and their consoles in a browser.
fn check(site: &Path) -> Result<bool> {
    let mut passed = true;
    let pages = pages(site)?;
    for page in &pages {
        for link in dead_links(site, page)? {
            passed = false;
            say!("{}: a link that leads nowhere: {link}", page.display());
        }
    }
    let Some(browser) = BROWSERS
        .iter()
        .find(|name| is_installed(&mut Command::new(name)))
    else {
        bail!("no browser: install one of {}", BROWSERS.join(", "));
    };
    for page in &pages {
        let (text, console) = open(browser, page)?;
        // The script of a trace's page writes into the page how many lanes, polls and wakes the
        // page shows.
        let shows = |what: &str| text.contains(what) && !text.contains(&format!("{what}\"0\""));
        if page.ends_with(TRACE)
            && !(shows("data-lanes=") && shows("data-polls=") && shows("data-wakes="))
        {
            passed = false;
            say!("{}: the page shows no polls and wakes", page.display());
        }
        if page.ends_with(TRACE) && !fits(browser, page)? {
            passed = false;
            say!("{}: too wide for {NARROW} pixels", page.display());
        }
        for message in console {
            passed = false;
            say!("{}: {message}", page.display());
        }
    }
    if passed {
        say!(
            "{} pages: each link leads somewhere, no message on a console",
            pages.len()
        );
    }
    Ok(passed)
}

/// The width of a telephone's window, in pixels.
const NARROW: u32 = 390;

/// Returns whether a page with a trace, with each of its lists, is no wider than [`NARROW`]. The
/// window of a browser without a screen is wider, so the page is in a frame.
fn fits(browser: &str, page: &Path) -> Result<bool> {
    let text = fs::read_to_string(page)?;
    let frame = page.with_file_name("frame.html");
    let inner = text.replace('&', "&amp;").replace('"', "&quot;");
    let script = "f.onload = () => {
        const page = f.contentDocument, lists = page.getElementById('lists');
        let over = 0;
        for (const tab of page.querySelectorAll('[role=tab]')) {
            tab.click();
            for (const box of [page.documentElement, lists]) {
                over = Math.max(over, box.scrollWidth - box.clientWidth);
            }
        }
        document.body.dataset.over = over;
    }";
    let outer = format!(
        "<!doctype html><iframe id=f width={NARROW} height=844 style=\"border:0\" \
         srcdoc=\"{inner}\"></iframe><script>{script}</script>"
    );
    fs::write(&frame, outer)?;
    let opened = open(browser, &frame);
    fs::remove_file(&frame)?;
    Ok(opened?.0.contains("data-over=\"0\""))
}

/// Returns the pages of the book, without those of the API.
fn pages(site: &Path) -> Result<BTreeSet<PathBuf>> {
    let api = site.join("api");
    let mut pages = BTreeSet::new();
    for entry in WalkDir::new(site)
        .into_iter()
        .filter_entry(|e| e.path() != api)
    {
        let path = entry?.into_path();
        let name = path.file_name().unwrap_or_default();
        // `toc.html` is a frame for browsers without scripts.
        if path.extension().is_some_and(|end| end == "html") && name != "toc.html" {
            pages.insert(path);
        }
    }
    Ok(pages)
}

/// Returns the links of a page to files, or to places in pages, that do not exist.
fn dead_links(site: &Path, page: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let folder = page.parent().context("a file")?;
    let mut dead = Vec::new();
    for link in links(&text) {
        if link.contains("://") || link.starts_with("data:") || link.starts_with("javascript:") {
            continue;
        }
        let (file, place) = link.split_once('#').unwrap_or((&link, ""));
        let file = file.split('?').next().unwrap_or(file);
        let file = match file.strip_prefix('/') {
            Some(file) => site.join(file),
            None if file.is_empty() => page.to_owned(),
            None => folder.join(file),
        };
        let has_place = || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.contains(&format!("id=\"{place}\""))
        };
        if file.starts_with(site.join("api")) && !site.join("api").exists() {
            continue; // The API docs were left out.
        }
        if !file.exists() || !place.is_empty() && !has_place() {
            dead.push(link);
        }
    }
    Ok(dead)
}

/// Returns the targets of the attributes `href` and `src`.
fn links(text: &str) -> BTreeSet<String> {
    let targets = ["href=\"", "src=\""].into_iter().flat_map(|attribute| {
        let after = text.split(attribute).skip(1);
        after.filter_map(|rest| rest.split('"').next())
    });
    let targets = targets.filter(|target| !target.is_empty());
    targets.map(str::to_owned).collect()
}

/// Opens a page. Returns the page's text, as its scripts have left it, and the lines that the page
/// has written to its console.
fn open(browser: &str, page: &Path) -> Result<(String, Vec<String>)> {
    let mut open = Command::new(browser);
    let options = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage";
    open.args(options.split(' '));
    open.args([
        "--enable-logging=stderr",
        "--virtual-time-budget=2000",
        "--dump-dom",
    ]);
    open.arg(format!("file://{}", page.display()));
    let output = open.output().with_context(|| browser.to_owned())?;
    if !output.status.success() || output.stdout.is_empty() {
        bail!("{browser} did not open {}", page.display());
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let said = log.lines().filter(|line| line.contains(CONSOLE));
    let said = said.map(str::to_owned).collect();
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), said))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes without a browser, too.
    #[test]
    fn trace_with_long_names_fits_a_narrow_window() {
        let is_there = |name: &&&str| is_installed(&mut Command::new(name));
        let Some(browser) = BROWSERS.iter().find(is_there) else {
            return;
        };
        let site = tempfile::tempdir().unwrap();
        let page = site.path().join(TRACE);
        let name = "a_module::a_long_name_of_a_task::connection_handler";
        let json = format!(
            r#"[{{"ph":"M","name":"thread_name","tid":0,"args":{{"name":"{name}"}}}},
                {{"ph":"X","cat":"poll","name":"{name}","tid":0,"ts":0,"dur":9}},
                {{"ph":"s","cat":"wake","id":1,"name":"{name}","tid":0,"ts":1,"args":{{"by":"{name}"}}}},
                {{"ph":"f","cat":"wake","id":1,"name":"{name}","tid":0,"ts":9}}]"#
        );
        let text = task_trace::recorder::page_of(&json);
        fs::write(&page, &text).unwrap();
        assert!(fits(browser, &page).unwrap());
        let wide = text.replace("td.t { overflow-wrap: anywhere; }", "");
        assert!(wide != text);
        fs::write(&page, wide).unwrap();
        assert!(!fits(browser, &page).unwrap());
    }

    #[test]
    fn dead_link_of_a_page_is_found() {
        let site = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(site.path().join(name), text).unwrap();
        write("b.html", "<h1 id=\"there\">");
        let links = [
            "b.html",
            "b.html#there",
            "#own",
            "https://a.b",
            "c.html",
            "b.html#gone",
            "#gone",
        ];
        let anchors = links.map(|link| format!("<a href=\"{link}\">"));
        write("a.html", &format!("<p id=\"own\">{}", anchors.concat()));
        let dead = dead_links(site.path(), &site.path().join("a.html")).unwrap();
        assert_eq!(dead, ["#gone", "b.html#gone", "c.html"]);
    }
}
