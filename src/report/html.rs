//! A minimal HTML writer for a report that can be opened, printed and archived: one file without external resources.

use super::svg::escape;

/// The style of a page: light, dark, and in print.
const STYLE: &str = "\
:root{--ink:#1f2933;--pale:#6b7785;--line:#dde3e8;--page:#f6f7f9;--card:#fff;--good:#0a7d4f;--bad:#b3261e}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--pale:#9aa5b1;--line:#343d46;--page:#14181c;--card:#1c2228;\
--good:#4cc38a;--bad:#ff8a80}figure svg{filter:invert(.9) hue-rotate(180deg)}}\
*{box-sizing:border-box}\
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,Helvetica,Arial,sans-serif}\
main{max-width:60rem;margin:0 auto;padding:2rem 1.25rem}\
h1{font-size:1.5rem;margin:0 0 .25rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:0 0 .6rem}\
section{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:1rem 1.25rem;margin:1rem 0;\
overflow-x:auto}\
.pale{color:var(--pale)}.good{color:var(--good)}.bad{color:var(--bad)}\
.verdict{font-size:1.1rem;font-weight:600;border-left:.3rem solid currentColor;padding-left:.75rem;margin:1rem 0}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .9rem .3rem 0}\
thead th{color:var(--pale);font-weight:500;border-bottom:1px solid var(--line)}\
tbody th{font-weight:500;color:var(--pale);white-space:nowrap}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
tr+tr th,tr+tr td{border-top:1px solid var(--line)}\
.bar{display:block;height:.6rem;border-radius:.3rem;background:#0072b2;min-width:1px}\
figure{margin:0}figure svg{display:block;max-width:100%;height:auto;margin:0 auto}\
code{font:.9em ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere;white-space:pre-wrap}\
ul{margin:.5rem 0;padding-left:1.2rem}\
@media print{body{background:#fff;font-size:11pt}main{max-width:none;padding:0}\
section{border:none;padding:0;break-inside:avoid;overflow:visible}figure svg{max-height:16cm;filter:none}}";

/// A page that is being written.
pub(crate) struct Page {
    text: String,
}

impl Page {
    pub(crate) fn new(title: &str) -> Self {
        let title = escape(title);
        let text = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
             </head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        Self { text }
    }

    /// A paragraph, with a class if one is named.
    pub(crate) fn paragraph(&mut self, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.text += &format!("<p{class}>{}</p>\n", escape(text));
    }

    /// A section with a heading.
    pub(crate) fn section(&mut self, heading: &str, fill: impl FnOnce(&mut Self)) {
        self.text += &format!("<section>\n<h2>{}</h2>\n", escape(heading));
        fill(self);
        self.text += "</section>\n";
    }

    pub(crate) fn list(&mut self, items: &[String]) {
        if !items.is_empty() {
            let items: String = items.iter().map(|item| format!("<li>{}</li>\n", escape(item))).collect();
            self.text += &format!("<ul>\n{items}</ul>\n");
        }
    }

    /// A table of names and values.
    pub(crate) fn facts(&mut self, facts: &[(String, String)]) {
        self.text += "<table>\n<tbody>\n";
        for (name, fact) in facts {
            self.text +=
                &format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(fact));
        }
        self.text += "</tbody>\n</table>\n";
    }

    /// A table. A heading that starts with `>` marks a column of numbers.
    pub(crate) fn table(&mut self, headings: &[&str], rows: &[Vec<String>]) {
        let class = |k: usize| if headings[k].starts_with('>') { " class=\"n\"" } else { "" };
        self.text += "<table>\n<thead><tr>";
        for (k, heading) in headings.iter().enumerate() {
            let heading = escape(heading.trim_start_matches('>'));
            self.text += &format!("<th scope=\"col\"{}>{heading}</th>", class(k));
        }
        self.text += "</tr></thead>\n<tbody>\n";
        for row in rows {
            let cells = row.iter().enumerate().take(headings.len());
            let cells: String =
                cells.map(|(k, cell)| format!("<td{}>{}</td>", class(k), escape(cell))).collect();
            self.text += &format!("<tr>{cells}</tr>\n");
        }
        self.text += "</tbody>\n</table>\n";
    }

    /// Bars for fractions of a whole: name, label, fraction.
    pub(crate) fn bars(&mut self, bars: &[(&str, String, f64)]) {
        self.text += "<table>\n<tbody>\n";
        for (name, words, share) in bars {
            let (name, words, width) = (escape(name), escape(words), share.clamp(0.0, 1.0) * 100.0);
            self.text += &format!(
                "<tr><th scope=\"row\">{name}</th><td class=\"n\">{words}</td>\
                 <td style=\"width:60%\"><span class=\"bar\" style=\"width:{width:.1}%\"></span></td></tr>\n"
            );
        }
        self.text += "</tbody>\n</table>\n";
    }

    /// A picture made by this crate, which is well-formed and has no scripts.
    pub(crate) fn picture(&mut self, svg: &str) {
        self.text += &format!("<figure>\n{svg}</figure>\n");
    }

    pub(crate) fn code(&mut self, text: &str) {
        self.text += &format!("<p><code>{}</code></p>\n", escape(text));
    }

    pub(crate) fn finish(mut self) -> String {
        self.text += "</main>\n</body>\n</html>\n";
        self.text
    }
}
