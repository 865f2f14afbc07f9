//! A minimal SVG 1.1 writer for plots.

use std::fmt::Write;

/// Colours of titles and labels, and of less important elements.
pub(super) const INK: &str = "#1f2933";
pub(super) const PALE: &str = "#6b7785";
pub(super) const GRID: &str = "#e4e8ec";

/// The horizontal alignment of a text relative to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing that is being written.
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// An empty white page of this size, in pixels.
    pub(super) fn new(width: f64, height: f64) -> Self {
        let (w, h) = (number(width), number(height));
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
             width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\n"
        );
        let _ = writeln!(text, "<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>");
        Self { text }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64, dash: &str) {
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let _ = writeln!(
            self.text,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{colour}\" stroke-width=\"{}\"{dash}/>",
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1),
            number(width)
        );
    }

    /// A frame that is not filled.
    pub(super) fn frame(&mut self, at: (f64, f64), size: (f64, f64), colour: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{colour}\"/>",
            number(at.0),
            number(at.1),
            number(size.0),
            number(size.1)
        );
    }

    pub(super) fn fill(&mut self, at: (f64, f64), size: (f64, f64), colour: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{colour}\"/>",
            number(at.0),
            number(at.1),
            number(size.0),
            number(size.1)
        );
    }

    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, size: f64, colour: &str, content: &str) {
        self.raw_text(at, anchor, size, colour, "", &escape(content));
    }

    pub(super) fn title(&mut self, at: (f64, f64), content: &str) {
        self.raw_text(at, Anchor::Start, 17.0, INK, " font-weight=\"bold\"", &escape(content));
    }

    /// Writes 10 to the power of `exponent`.
    pub(super) fn power_of_ten(&mut self, at: (f64, f64), anchor: Anchor, exponent: i32) {
        let content = match exponent {
            0 => "1".into(),
            1 => "10".into(),
            _ => format!(
                "10<tspan dy=\"-5\" font-size=\"9\">{}</tspan>",
                exponent.to_string().replace('-', "\u{2212}")
            ),
        };
        self.raw_text(at, anchor, 12.0, PALE, "", &content);
    }

    /// Vertical text, read upwards.
    pub(super) fn upright(&mut self, at: (f64, f64), size: f64, colour: &str, content: &str) {
        let turn = format!(" transform=\"rotate(-90 {} {})\"", number(at.0), number(at.1));
        self.raw_text(at, Anchor::Middle, size, colour, &turn, &escape(content));
    }

    fn raw_text(
        &mut self,
        at: (f64, f64),
        anchor: Anchor,
        size: f64,
        colour: &str,
        more: &str,
        content: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" font-size=\"{}\" fill=\"{colour}\"{more}>{content}</text>",
            number(at.0),
            number(at.1),
            number(size)
        );
    }

    pub(super) fn polyline(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        self.text
            .push_str("<polyline fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\" points=\"");
        for (k, &(x, y)) in points.iter().enumerate() {
            let _ = write!(self.text, "{}{},{}", if k > 0 { " " } else { "" }, number(x), number(y));
        }
        let _ = writeln!(self.text, "\" stroke=\"{colour}\" stroke-width=\"{}\"/>", number(width));
    }

    pub(super) fn circle(&mut self, at: (f64, f64), radius: f64, fill: &str, stroke: &str) {
        let _ = writeln!(
            self.text,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"2\"/>",
            number(at.0),
            number(at.1),
            number(radius)
        );
    }

    /// Draws a PNG with sharp pixels.
    pub(super) fn image(&mut self, at: (f64, f64), size: (f64, f64), png: &[u8]) {
        let _ = writeln!(
            self.text,
            "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" \
             style=\"image-rendering:pixelated\" xlink:href=\"data:image/png;base64,{}\"/>",
            number(at.0),
            number(at.1),
            number(size.0),
            number(size.1),
            super::png::base64(png)
        );
    }

    /// Ends the drawing and returns its text.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// At most two decimals, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Escapes text for XML and HTML.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            // XML allows no other control characters, not even escaped.
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_the_document() {
        let mut svg = Svg::new(10.0, 10.5);
        svg.title((1.0, 2.25), "a<b>&\"\u{1}.mtx");
        let text = svg.finish();
        assert!(text.contains("a&lt;b&gt;&amp;&quot; .mtx"), "{text}");
        assert!(text.contains("y=\"2.25\"") && text.contains("height=\"10.5\""));
    }
}
