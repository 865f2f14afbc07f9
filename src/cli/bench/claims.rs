//! What textbooks say of the formats, and whether it holds on this matrix and this device, in figures.
//!
//! The claims are those of Kirk, Hwu and El Hajj, "Programming Massively Parallel Processors" (PMPP), chapter 14, and of
//! Bell and Garland, "Implementing sparse matrix-vector multiplication on throughput-oriented processors" (SC 2009).

use super::line::Line;
use residua::report::{Align, Table, ratio};

/// Padding below this share of the nonzeros is not worth a word.
const LITTLE: f64 = 0.1;

/// The table, or nothing where too few formats were measured.
pub(super) fn table(lines: &[Line]) -> String {
    let facts = Facts { lines };
    let claims = [
        ("ell wastes space on ragged rows", facts.ell_pads()),
        ("hybrid keeps that waste off", facts.hybrid_helps()),
        ("jds has no padding", facts.jds_is_tight()),
        ("sections of rows (sell) pad little", facts.sell_pads_little()),
        ("coo takes the most room a nonzero", facts.coo_is_large()),
        ("csr is not coalesced, formats by column are", facts.csr_is_uncoalesced()),
        ("csr suffers from rows of unlike length, coo is balanced", facts.coo_is_balanced()),
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

struct Facts<'a> {
    lines: &'a [Line],
}

impl Facts<'_> {
    fn line(&self, format: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.format == format && line.nonzeros > 0)
    }

    /// Padding over nonzeros, known also of a format that is refused.
    fn padding(&self, format: &str) -> Option<f64> {
        self.line(format).map(|line| line.padding as f64 / line.nonzeros as f64)
    }

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
        let figures =
            format!("csr reaches {} of copy on its own bytes, {name} {}", percent(csr), percent(best));
        Some((best > 1.1 * csr, figures))
    }

    fn coo_is_balanced(&self) -> Verdict {
        let (csr, coo) = (self.share("csr")?, self.share("coo")?);
        let line = self.line("csr")?;
        let unlike = line.longest as f64 * line.rows as f64 / line.nonzeros as f64;
        let figures = format!(
            "coo reaches {} of copy on its own bytes, csr {}; the longest row has {} times the mean",
            percent(coo),
            percent(csr),
            ratio(unlike)
        );
        Some((coo > 1.1 * csr, figures))
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
