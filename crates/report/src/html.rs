//! Reports as one HTML file: script, style and data inside, nothing from the network.

use crate::document::{Block, Cell, Document, Plot, RunSummary, Section, Table, Tile, Warning};

const SCRIPT: &str = include_str!("../web/dist/report.js");
const STYLE: &str = include_str!("../web/dist/report.css");
/// SHA-256 of the script and the style, for the Content-Security-Policy: no other script runs.
pub(crate) const SCRIPT_HASH: &str = include_str!("../web/dist/report.js.sha256");
pub(crate) const STYLE_HASH: &str = include_str!("../web/dist/report.css.sha256");

/// Most rows of a table.
const ROWS_MAX: usize = 2_000;
/// Longest text in characters that a cell keeps on one line.
const SHORT_MAX: usize = 28;
/// Rows from which a table scrolls. Print shows this many; the style has the same number.
const ROWS_LONG: usize = 30;

pub(crate) fn html(document: &Document) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.raw(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '",
    );
    html.raw(SCRIPT_HASH.trim());
    html.raw("'; style-src '");
    html.raw(STYLE_HASH.trim());
    html.raw("'; base-uri 'none'; form-action 'none'\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    html.raw("<meta name=\"generator\" content=\"Wirestorm\">\n<title>");
    html.text(&document.title);
    html.raw("</title>\n<style>");
    html.raw(STYLE);
    html.raw("</style>\n</head>\n<body>\n");
    html.raw("<a class=\"skip\" href=\"#results\">Skip to the results</a>\n");
    html.head(document);
    html.raw("<main id=\"results\" tabindex=\"-1\">\n");
    html.warnings(document);
    html.tiles(&document.tiles);
    html.contents(&document.sections);
    for (number, section) in document.sections.iter().enumerate() {
        html.section(number, section);
    }
    html.raw("</main>\n<footer><p>Made by Wirestorm. Plots: uPlot, MIT licence.</p></footer>\n");
    html.raw("<p class=\"hidden\" id=\"status\" role=\"status\"></p>\n");
    html.data(document);
    html.raw("<script>");
    html.raw(SCRIPT);
    html.raw("</script>\n</body>\n</html>\n");
    html.out
}

#[derive(Default)]
struct Html {
    out: String,
    /// Number of plots written.
    plots: usize,
}

impl Html {
    /// Writes markup. Everything that comes from a run goes through [`Html::text`].
    fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// Writes text, escaped for elements and quoted attributes.
    fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.raw("&amp;"),
                '<' => self.raw("&lt;"),
                '>' => self.raw("&gt;"),
                '"' => self.raw("&quot;"),
                '\'' => self.raw("&#39;"),
                // Marks that change the direction of text could disguise a name.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.raw("\u{fffd}"),
                '\t' | '\n' => self.out.push(character),
                _ if character.is_control() => self.raw("\u{fffd}"),
                _ => self.out.push(character),
            }
        }
    }

    fn element(&mut self, opening: &str, text: &str, closing: &str) {
        self.raw(opening);
        self.text(text);
        self.raw(closing);
    }

    fn head(&mut self, document: &Document) {
        self.raw("<header class=\"top\">\n<div>\n");
        self.element("<h1>", &document.title, "</h1>\n");
        self.raw("<ul class=\"runs\">\n");
        for (place, run) in document.runs.iter().enumerate() {
            self.run(place, run, document.runs.len() > 1);
        }
        self.raw("</ul>\n</div>\n");
        self.raw("<button type=\"button\" id=\"theme\" hidden>Theme: system</button>\n</header>\n");
    }

    fn run(&mut self, place: usize, run: &RunSummary, has_color: bool) {
        self.raw("<li>");
        if has_color {
            self.raw(&format!(
                "<span class=\"swatch k{}\" aria-hidden=\"true\"></span>",
                place % 8
            ));
        }
        self.element("<strong>", &run.label, "</strong> ");
        let class = if run.is_good { "good" } else { "bad" };
        self.element(&format!("<span class=\"badge {class}\">"), &run.verdict, "</span> ");
        if run.is_simulated {
            self.raw("<span class=\"badge bad\">simulated</span> ");
        }
        let mut facts = vec![&run.kind];
        facts.extend([&run.device, &run.started].into_iter().filter(|text| !text.is_empty()));
        for fact in facts {
            self.element("<span class=\"fact\">", fact, "</span> ");
        }
        self.raw("</li>\n");
    }

    fn warnings(&mut self, document: &Document) {
        if document.warnings.is_empty() {
            return;
        }
        self.raw("<section class=\"warnings\" aria-labelledby=\"warnings\">\n");
        self.raw("<h2 id=\"warnings\">Warnings</h2>\n<ul>\n");
        for Warning { run, text } in &document.warnings {
            self.raw("<li>");
            let run = run.filter(|_| document.runs.len() > 1).and_then(|it| document.runs.get(it));
            if let Some(run) = run {
                self.element("<strong>", &run.label, ":</strong> ");
            }
            self.text(text);
            self.raw("</li>\n");
        }
        self.raw("</ul>\n</section>\n");
    }

    fn tiles(&mut self, tiles: &[Tile]) {
        if tiles.is_empty() {
            return;
        }
        self.raw("<dl class=\"tiles\">\n");
        for tile in tiles {
            self.element("<div><dt>", &tile.label, "</dt><dd><span class=\"value\">");
            self.text(&tile.value);
            self.raw(" <span class=\"unit\">");
            self.text(&tile.unit);
            let class = if tile.is_warning { "note warning" } else { "note" };
            self.raw(&format!("</span></span><span class=\"{class}\">"));
            self.text(&tile.note);
            self.raw("</span></dd></div>\n");
        }
        self.raw("</dl>\n");
    }

    fn contents(&mut self, sections: &[Section]) {
        self.raw("<nav aria-label=\"Contents\"><ul>\n");
        for (number, section) in sections.iter().enumerate() {
            self.raw(&format!("<li><a href=\"#s{number}\">"));
            self.text(&section.title);
            self.raw("</a></li>\n");
        }
        self.raw("</ul></nav>\n");
    }

    fn section(&mut self, number: usize, section: &Section) {
        self.raw(&format!("<section aria-labelledby=\"s{number}\">\n<h2 id=\"s{number}\">"));
        self.text(&section.title);
        if !section.source.is_empty() {
            self.element(" <span class=\"source\">", &section.source, "</span>");
        }
        self.raw("</h2>\n<div class=\"blocks\">\n");
        for block in &section.blocks {
            match block {
                Block::Text(text) => self.element("<p>", text, "</p>\n"),
                Block::Plot(plot) => self.plot(plot),
                Block::Table(table) => self.table(table),
            }
        }
        self.raw("</div>\n</section>\n");
    }

    fn plot(&mut self, plot: &Plot) {
        let number = self.plots;
        self.plots += 1;
        let expected = plot.points() + plot.marks.len();
        self.raw(&format!("<figure data-plot=\"{number}\" data-expected=\"{expected}\">\n"));
        self.element("<figcaption>", &plot.title, "</figcaption>\n");
        self.raw("<div class=\"plot\" role=\"img\" tabindex=\"0\" aria-label=\"");
        self.text(&plot.title);
        self.raw(". ");
        self.text(&plot.summary);
        self.raw(". The table below has the data.\"></div>\n");
        self.raw("<div class=\"legend\" role=\"group\" aria-label=\"Series\"></div>\n");
        self.raw("<p class=\"readout\"></p>\n<details><summary>Data of this plot</summary>\n");
        let (table, is_complete) = plot.table();
        if !is_complete {
            self.raw("<p>The table shows a part of the points, evenly spaced.</p>\n");
        }
        self.table(&table);
        for mark in &plot.marks {
            self.element("<p>", &mark.label, "</p>\n");
        }
        self.raw("</details>\n</figure>\n");
    }

    fn table(&mut self, table: &Table) {
        let formatted = table.formatted();
        let is_long = table.rows.len() > ROWS_LONG;
        self.raw(if is_long {
            "<div class=\"scroll long\"><table>\n"
        } else {
            "<div class=\"scroll\"><table>\n"
        });
        self.element("<caption>", &table.caption, "</caption>\n<thead><tr>");
        for (column, heading) in table.columns.iter().zip(&formatted.headings) {
            let class = if column.is_number { " class=\"n\"" } else { "" };
            self.raw(&format!(
                "<th scope=\"col\" aria-sort=\"none\"{class}><button type=\"button\">"
            ));
            self.text(heading);
            self.raw("</button></th>");
        }
        self.raw("</tr></thead>\n<tbody>\n");
        for (cells, texts) in table.rows.iter().zip(&formatted.rows).take(ROWS_MAX) {
            self.raw("<tr>");
            for ((cell, text), column) in cells.iter().zip(texts).zip(&table.columns) {
                let length =
                    if text.chars().count() <= SHORT_MAX { "short-text" } else { "long-text" };
                match cell {
                    Cell::Number(it) => self.raw(&format!("<td class=\"n\" data-v=\"{it:?}\">")),
                    Cell::Problem(_) => self.raw(&format!("<td class=\"problem {length}\">")),
                    Cell::None if column.is_number => self.raw("<td class=\"n none\">"),
                    Cell::None => self.raw("<td class=\"none\">"),
                    Cell::Text(_) => self.raw(&format!("<td class=\"{length}\">")),
                }
                self.text(text);
                self.raw("</td>");
            }
            self.raw("</tr>\n");
        }
        self.raw("</tbody></table></div>\n");
        if is_long {
            let rows = table.rows.len();
            let text = format!("The first {ROWS_LONG} of {rows} rows are printed.");
            self.element("<p class=\"printed\">", &text, "</p>\n");
        }
        let more = table.rows.len().saturating_sub(ROWS_MAX);
        if more > 0 {
            self.raw(&format!("<p>{more} more rows are not shown.</p>\n"));
        }
    }

    /// Writes the plots as JSON in an element that is no script.
    fn data(&mut self, document: &Document) {
        let plots: Vec<&Plot> = document
            .sections
            .iter()
            .flat_map(|section| &section.blocks)
            .filter_map(|block| match block {
                Block::Plot(plot) => Some(plot),
                _ => None,
            })
            .collect();
        let runs = document.runs.len();
        let data = serde_json::json!({ "runs": runs, "plots": plots });
        self.raw("<script type=\"application/json\" id=\"data\">");
        // `</script>` and `<!--` would end the element or change how it is read.
        let data = data.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028");
        self.raw(&data);
        self.raw("</script>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let mut html = Html::default();
        html.text("</script><img src=x onerror='a()'>\"&\u{0}\u{202e}");
        let expected =
            "&lt;/script&gt;&lt;img src=x onerror=&#39;a()&#39;&gt;&quot;&amp;\u{fffd}\u{fffd}";
        assert_eq!(html.out, expected);
    }

    #[test]
    fn bundle_cannot_end_its_element_and_has_the_licence() {
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
        assert!(SCRIPT.contains("Permission is hereby granted"), "uPlot's licence is missing");
        for url in ["http://", "https://"] {
            let places = SCRIPT.matches(url).count() + STYLE.matches(url).count();
            // The licence and the SVG namespace name addresses; nothing loads them.
            assert!(places <= 2, "{places} addresses in the bundle");
        }
    }
}
