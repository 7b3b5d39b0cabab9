//! Checks of the documentation: links have targets, the table of contents lists all pages, guides
//! are short.

use std::path::{Path, PathBuf};

use super::COLUMNS_MAX;
use super::table::anchor;
use crate::{Fallible, workspace};

/// Pages outside the book.
const OTHERS: [&str; 6] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "python/trex/README.md",
    "python/wirestorm/README.md",
];
/// Folder of the book, and its table of contents.
const BOOK: &str = "docs";
const CONTENTS: &str = "docs/SUMMARY.md";
/// Folders whose pages have at most [`LINES_MAX`] lines of [`COLUMNS_MAX`] columns.
const GUIDES: [&str; 2] = ["docs/guide", "docs/from"];
const LINES_MAX: usize = 150;

/// Lists all errors in the documentation, one line each.
pub(super) fn wrong() -> Fallible<Vec<String>> {
    let root = workspace::root();
    let mut wrong = Vec::new();
    let mut pages: Vec<PathBuf> = OTHERS.iter().map(PathBuf::from).collect();
    let of_book = pages_below(root, Path::new(BOOK))?;
    let contents = std::fs::read_to_string(root.join(CONTENTS))?;
    for page in &of_book {
        let inside = page.strip_prefix(BOOK)?.display().to_string();
        if page != Path::new(CONTENTS) && !contents.contains(&format!("]({inside})")) {
            wrong.push(format!("{CONTENTS} lacks {inside}"));
        }
    }
    pages.extend(of_book);
    for page in &pages {
        let text = std::fs::read_to_string(root.join(page))?;
        for link in links(&text) {
            if let Some(reason) = broken(root, page, &link) {
                wrong.push(format!("{}: {link}: {reason}", page.display()));
            }
        }
        if GUIDES.iter().any(|folder| page.starts_with(folder)) {
            wrong.extend(too_long(page, &text));
        }
    }
    Ok(wrong)
}

fn pages_below(root: &Path, folder: &Path) -> Fallible<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(root.join(folder))? {
        let path = folder.join(entry?.file_name());
        if root.join(&path).is_dir() {
            pages.extend(pages_below(root, &path)?);
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// Lines of a page outside fenced blocks, with their numbers from 0.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// Link targets of a page, without links in code.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for (_, line) in prose(text) {
        let outside: String = line
            .split('`')
            .enumerate()
            .map(|(number, part)| if number % 2 == 0 { part } else { "code" })
            .collect();
        let mut rest = outside.as_str();
        while let Some((_, behind)) = rest.split_once("](") {
            let (target, behind) = behind.split_once(')').unwrap_or((behind, ""));
            links.push(target.to_owned());
            rest = behind;
        }
    }
    links
}

/// Returns the reason why a link is broken; `None` if it is not.
fn broken(root: &Path, page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.to_owned(),
        path => normal(&page.parent().unwrap_or(Path::new("")).join(path)),
    };
    if page.starts_with(BOOK) && !target.starts_with(BOOK) {
        return Some(format!("{} is not a page of the book", target.display()));
    }
    let Ok(content) = std::fs::read(root.join(&target)) else {
        return Some(format!("there is no file {}", target.display()));
    };
    // An image has no headings.
    let text = String::from_utf8(content).unwrap_or_default();
    let headings = prose(&text).filter(|(_, line)| line.starts_with('#'));
    let mut anchors = headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim()));
    let exists = fragment.is_empty() || anchors.any(|it| it == fragment);
    (!exists).then(|| format!("{} has no heading #{fragment}", target.display()))
}

/// Resolves `..` and `.` in a path.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(normal.pop()),
            std::path::Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

fn too_long(page: &Path, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let count = text.lines().count();
    if count > LINES_MAX {
        wrong.push(format!("{}: {count} lines; at most {LINES_MAX}", page.display()));
    }
    // Rows of tables cannot be wrapped.
    let long = text.lines().enumerate().filter(|(_, line)| !line.starts_with('|'));
    for (number, line) in long.filter(|(_, line)| line.chars().count() > COLUMNS_MAX) {
        let columns = line.chars().count();
        let place = format!("{}:{}", page.display(), number + 1);
        wrong.push(format!("{place}: {columns} columns; at most {COLUMNS_MAX}"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_targets_and_guides_are_short() {
        let wrong = wrong().expect("documents");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn link_to_a_missing_page_or_heading_is_reported() {
        let root = workspace::root();
        let page = Path::new("docs/guide/replay.md");
        assert!(broken(root, page, "streams.md#measurement").is_none());
        assert!(broken(root, page, "#rate").is_none());
        assert!(broken(root, page, "../from/tcpreplay.md").is_none());
        assert!(broken(root, page, "no.md").is_some());
        assert!(broken(root, page, "no.png").is_some());
        assert!(broken(root, page, "streams.md#no-such-heading").is_some());
        assert!(broken(root, page, "../../README.md").is_some(), "the book has no README");
    }

    #[test]
    fn links_in_code_are_ignored() {
        assert_eq!(links("[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n[g](h)"), ["b.md", "h"]);
    }
}
