//! Claims of textbooks about the formats, and whether they hold for this matrix on this device.
//!
//! The claims are those of Kirk, Hwu and El Hajj, "Programming Massively Parallel Processors" (PMPP), chapter 14, and
//! of Bell and Garland, "Implementing sparse matrix-vector multiplication on throughput-oriented processors" (SC 2009).

use super::line::Line;
use crate::report::{Align, Table};

/// Smaller fractions of padding, and smaller gains in speed, are not mentioned.
const LITTLE: f64 = 0.1;

/// Row lengths count as uneven if the longest is this many times the mean.
const UNLIKE: f64 = 2.0;

/// The table, or an empty text if too few formats were measured.
pub(super) fn table(lines: &[Line]) -> String {
    let facts = Facts { lines };
    let claims = [
        ("ell wastes space on ragged rows", facts.ell_pads()),
        ("hybrid avoids most of this waste", facts.hybrid_helps()),
        ("jds has no padding", facts.jds_is_tight()),
        ("slices of rows (sell) need little padding", facts.sell_pads_little()),
        ("coo takes the most bytes per nonzero", facts.coo_is_large()),
        ("formats stored by column are read faster than csr (coalesced)", facts.csr_is_uncoalesced()),
        ("csr is slow if row lengths differ, coo is not", facts.coo_is_balanced()),
    ];
    let mut table = Table::new([("claim", Align::Left), ("here", Align::Left), ("figures", Align::Left)]);
    let mut told = 0;
    for (claim, verdict) in claims {
        if let Some((holds, figures)) = verdict {
            table.row([claim.to_string(), if holds { "holds" } else { "does not" }.into(), figures]);
            told += 1;
        }
    }
    if told > 1 { format!("{table}\n") } else { String::new() }
}

type Verdict = Option<(bool, String)>;

/// The measurements that claims are checked with.
struct Facts<'a> {
    lines: &'a [Line],
}

impl Facts<'_> {
    fn line(&self, format: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.format == format && line.nonzeros > 0)
    }

    /// Padding divided by nonzeros, also known for a format that is refused.
    fn padding(&self, format: &str) -> Option<f64> {
        self.line(format).map(|line| line.padding as f64 / line.nonzeros as f64)
    }

    /// The bandwidth of a format's product, as a fraction of copy bandwidth.
    fn share(&self, format: &str) -> Option<f64> {
        self.line(format)?.share_of_copy
    }

    fn rows(&self) -> Option<String> {
        let line = self.lines.first()?;
        let mean = line.nonzeros as f64 / line.rows.max(1) as f64;
        Some(format!("longest row {}, mean {:.1}", line.longest, mean))
    }

    fn ell_pads(&self) -> Verdict {
        let padding = self.padding("ell")?;
        Some((padding > LITTLE, format!("{} padded; {}", percent(padding), self.rows()?)))
    }

    fn hybrid_helps(&self) -> Verdict {
        let (ell, hybrid) = (self.padding("ell")?, self.padding("hybrid")?);
        (ell > LITTLE)
            .then(|| (hybrid < 0.5 * ell, format!("{} padded instead of {}", percent(hybrid), percent(ell))))
    }

    fn jds_is_tight(&self) -> Verdict {
        let (jds, csr) = (self.line("jds")?, self.line("csr")?);
        let more = jds.bytes as f64 / csr.bytes as f64;
        Some((jds.padding == 0, format!("{} padded, {} of csr's bytes", jds.padding, percent(more))))
    }

    fn sell_pads_little(&self) -> Verdict {
        let (sell, ell) = (self.padding("sell")?, self.padding("ell")?);
        Some((sell <= LITTLE, format!("{} padded, ell {}", percent(sell), percent(ell))))
    }

    fn coo_is_large(&self) -> Verdict {
        let each = |line: &Line| line.bytes as f64 / line.nonzeros as f64;
        let coo = self.line("coo")?;
        let others = self.lines.iter().filter(|l| l.is_format() && l.refused.is_none() && l.format != "coo");
        let most = others.max_by(|a, b| each(a).total_cmp(&each(b)))?;
        let figures = format!("{:.1} bytes, {} {:.1}", each(coo), most.format, each(most));
        Some((each(coo) >= each(most), figures))
    }

    fn csr_is_uncoalesced(&self) -> Verdict {
        let csr = self.share("csr")?;
        let by_column = ["ell", "sell", "jds"].iter().filter_map(|name| Some((self.share(name)?, *name)));
        let (best, name) = by_column.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((best > (1.0 + LITTLE) * csr, faster(name, best, "csr", csr)))
    }

    fn coo_is_balanced(&self) -> Verdict {
        let (csr, coo) = (self.share("csr")?, self.share("coo")?);
        let line = self.line("csr")?;
        let unlike = line.longest as f64 * line.rows as f64 / line.nonzeros as f64;
        let figures = faster("coo", coo, "csr", csr);
        let figures = format!("{figures}; the longest row has {unlike:.1} times the mean");
        (unlike >= UNLIKE).then_some((coo > (1.0 + LITTLE) * csr, figures))
    }
}

/// The statement that a format reaches a larger fraction of copy bandwidth than another.
fn faster(name: &str, share: f64, other: &str, least: f64) -> String {
    let each = format!("{} and {} of copy bandwidth", percent(share), percent(least));
    format!("{name} reads its own bytes {:.2} times as fast as {other}: {each}", share / least)
}

fn percent(share: f64) -> String {
    let digits = usize::from(share > 0.0 && share < 0.095);
    format!("{:.digits$} %", 100.0 * share)
}
