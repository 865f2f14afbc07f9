//! Conversions and assembly on a CUDA device, each beside the CSR product of the same matrix, with the memory they
//! take.
//!
//! `cargo bench --bench convert`, or the built binary on another machine, with `grids`, `unsymmetric`, `random`,
//! `others`, `files`, `assembly` or `large` for a part of it (`files`: those of the folder that RESIDUA_MATRICES names,
//! of more than 10^5 nonzeros; with `enlarged`, as many copies of each along the diagonal as have 2^24 nonzeros),
//! `only:FORMAT` for the conversions to and from one format, and `only:WORD` for the assembly of triplets with that
//! word in their name (elements, rows, columns, 2^20, 2^23). The peer is `benches/peers/device_assembly.py` in the same
//! run.

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("built without CUDA: nothing to measure");
}

#[cfg(feature = "cuda")]
fn main() -> residua::Result<()> {
    let b = match residua::Cuda::new(0) {
        Ok(b) => b,
        Err(error) => {
            println!("nothing was measured: {error}");
            return Ok(());
        }
    };
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let asked = |what: &str| wanted.is_empty() || wanted.iter().any(|w| w == what);
    if asked("grids") {
        measure::grids(&b)?;
    }
    if asked("unsymmetric") {
        measure::unsymmetric(&b)?;
    }
    if asked("random") {
        measure::random(&b)?;
    }
    if asked("others") {
        measure::others(&b)?;
    }
    if asked("files") {
        measure::files(&b)?;
    }
    if asked("assembly") {
        measure::assembly(&b)?;
    }
    if asked("large") {
        measure::large(&b)?;
    }
    Ok(())
}

#[cfg(feature = "cuda")]
mod measure {
    use rayon::prelude::*;
    use residua::assemble::{Assembler, ResidentTriplets};
    use residua::backend::{Backend, OffsetsRef, Primitives, Replay};
    use residua::generate::{self, RmatKind};
    use residua::matrix::{self, Coo, Csr, Sell, SparseMatrix};
    use residua::{Cuda, Result};
    use std::time::Instant;

    type CudaSlice<T> = <Cuda as Backend>::Slice<T>;

    /// Milliseconds of a call, median of `runs` after one to warm up; `prepare` is not timed.
    fn median<P, R>(
        b: &Cuda,
        runs: usize,
        mut prepare: impl FnMut() -> Result<P>,
        mut call: impl FnMut(P) -> Result<R>,
    ) -> Result<f64> {
        let mut times = Vec::new();
        for run in 0..=runs {
            let input = prepare()?;
            b.synchronize()?;
            let start = Instant::now();
            let result = call(input)?;
            b.synchronize()?;
            let time = start.elapsed().as_secs_f64() * 1e3;
            drop(result);
            if run > 0 {
                times.push(time);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// Bytes that `call` held beyond what there was, at its peak.
    fn peak<R>(b: &Cuda, call: impl FnOnce() -> Result<R>) -> Result<(R, f64)> {
        b.synchronize()?;
        b.forget_peak();
        let before = b.peak_memory();
        let result = call()?;
        b.synchronize()?;
        Ok((result, (b.peak_memory() - before) as f64))
    }

    const HEADER: &str =
        "matrix, values, nonzeros, conversion, ms, CSR products, extra memory in parts of source and target";

    /// Made on the device.
    pub fn grids(b: &Cuda) -> Result<()> {
        println!("{HEADER}");
        one::<f64>(b, "7 points, 256^3", &b.poisson3d(256, 256, 256)?)?;
        one::<f32>(b, "7 points, 256^3", &b.poisson3d(256, 256, 256)?)?;
        one::<f64>(b, "27 points, 160^3", &b.poisson3d_27(160, 160, 160)?)?;
        one::<f32>(b, "27 points, 160^3", &b.poisson3d_27(160, 160, 160)?)
    }

    /// Transposes of patterns that are not symmetric: grids with one more column, random columns, a power law.
    pub fn unsymmetric(b: &Cuda) -> Result<()> {
        println!("{HEADER}");
        unsymmetric_of::<f64>(b)?;
        unsymmetric_of::<f32>(b)?;
        let graph = generate::rmat(1 << 21, 16, RmatKind::Directed, 1)?;
        conversions(b, "R-MAT 2^21 x 16, directed", &graph.to_backend(b)?, Some("csc"))
    }

    fn unsymmetric_of<T: residua::Scalar>(b: &Cuda) -> Result<()> {
        let grid = wider(b, b.poisson3d_27::<T>(160, 160, 160)?)?;
        conversions(b, "27 points, 160^3, one more column", &grid, Some("csc"))?;
        drop(grid);
        let grid = wider(b, b.poisson3d::<T>(256, 256, 256)?)?;
        conversions(b, "7 points, 256^3, one more column", &grid, Some("csc"))?;
        drop(grid);
        conversions(b, "random, 16 a row, 2^21 rows", &random_columns::<T>(b, 1 << 21)?, Some("csc"))
    }

    /// Columns all over the matrix.
    pub fn random(b: &Cuda) -> Result<()> {
        println!("{HEADER}");
        one(b, "random, 16 a row, 2^20 rows", &random_columns::<f64>(b, 1 << 20)?)?;
        one(b, "random, 16 a row, 2^20 rows", &random_columns::<f32>(b, 1 << 20)?)
    }

    fn random_columns<T: residua::Scalar>(b: &Cuda, rows: usize) -> Result<Csr<T, Cuda>> {
        let a_row = 16;
        let all = || (0..rows * a_row).into_par_iter();
        let is = b.upload(all().map(|t| (t / a_row) as u32).collect::<Vec<_>>())?;
        let js = b.upload(all().map(|t| hash(t as u64) as u32 % rows as u32).collect::<Vec<_>>())?;
        let values = b.upload(all().map(|t| T::from_f64(t as f64)).collect::<Vec<_>>())?;
        let triplets = ResidentTriplets::from_parts(b, rows, rows, is, js, values)?;
        Assembler::default().resident_to_csr(b, triplets)
    }

    /// Files of a folder, as far as they have real values and more than 10^5 nonzeros.
    pub fn files(b: &Cuda) -> Result<()> {
        println!("{HEADER}");
        let folder = std::env::var_os("RESIDUA_MATRICES").and_then(|folder| std::fs::read_dir(folder).ok());
        let Some(folder) = folder else {
            println!("RESIDUA_MATRICES names no folder");
            return Ok(());
        };
        let mut paths: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Ok(a) = residua::market::read_csr::<f64>(&path) else { continue };
            if a.nonzeros() <= 100_000 {
                continue;
            }
            if std::env::args().any(|word| word == "enlarged") {
                let copies = (1usize << 24).div_ceil(a.nonzeros());
                one(
                    b,
                    &format!("{name} x {copies}"),
                    &generate::along_the_diagonal(&a, copies)?.to_backend(b)?,
                )?;
            } else {
                one(b, &name, &a.to_backend(b)?)?;
            }
        }
        Ok(())
    }

    fn wider<T: residua::Scalar>(b: &Cuda, a: Csr<T, Cuda>) -> Result<Csr<T, Cuda>> {
        let (rows, columns, parts) = (a.rows(), a.columns(), a.parts());
        let (mut is, mut js, mut values) =
            (b.buffer(a.nonzeros())?, b.buffer(a.nonzeros())?, b.buffer(a.nonzeros())?);
        match parts.offsets {
            OffsetsRef::Narrow(offsets) => b.expand_offsets(offsets, &mut is)?,
            OffsetsRef::Wide(offsets) => b.expand_offsets(offsets, &mut is)?,
        }
        b.copy(parts.indices, &mut js)?;
        b.copy(parts.values, &mut values)?;
        drop(a);
        let triplets = ResidentTriplets::from_parts(b, rows, columns + 1, is, js, values)?;
        Assembler::default().resident_to_csr(b, triplets)
    }

    /// Made on the host.
    pub fn others(b: &Cuda) -> Result<()> {
        println!("{HEADER}");
        one::<f64>(b, "elasticity 64^3", &generate::elasticity3d(64, 64, 64, 0.3)?.to_backend(b)?)?;
        one::<f64>(b, "R-MAT 2^21 x 16", &generate::rmat(1 << 21, 16, RmatKind::Symmetric, 1)?.to_backend(b)?)
    }

    fn one<T: residua::Scalar>(b: &Cuda, name: &str, a: &Csr<T, Cuda>) -> Result<()> {
        conversions(b, name, a, only().as_deref())
    }

    /// What a part of the measurements is asked for by.
    fn only() -> Option<String> {
        std::env::args().find_map(|word| word.strip_prefix("only:").map(String::from))
    }

    /// Those to and from one format, or all.
    fn conversions<T: residua::Scalar>(
        b: &Cuda,
        name: &str,
        a: &Csr<T, Cuda>,
        only: Option<&str>,
    ) -> Result<()> {
        let x = b.upload(vec![T::from_f64(1.0); a.columns()])?;
        let mut y = b.zeros::<T>(a.rows())?;
        let (one, zero) = (T::from_f64(1.0), T::from_f64(0.0));
        let product = median(b, 20, || Ok(()), |()| a.product(b, one, &x, zero, &mut y))?;
        let title = format!("{name}, {}, {}", T::NAME, a.nonzeros());
        println!("{title}, product in CSR, {product:.3}, 1");
        let mut stored: Vec<(String, Box<dyn SparseMatrix<T, Cuda>>)> = Vec::new();
        let line = |what: String, ms: f64, extra: f64| {
            println!("{title}, {what}, {ms:.3}, {:.1}, {extra:.3}", ms / product);
        };
        for format in matrix::formats::<T, Cuda, T>() {
            if format.name() == "csr" || only.is_some_and(|only| only != format.name()) {
                continue;
            }
            stored.clear();
            match peak(b, || format.build(b, a)) {
                Ok((matrix, bytes)) => {
                    let both = (a.storage_bytes() + matrix.storage_bytes()) as f64;
                    let extra = (bytes - matrix.storage_bytes() as f64) / both;
                    stored.push((format.name().into(), matrix));
                    let ms = median(b, 5, || Ok(()), |()| format.build(b, a))?;
                    line(format!("csr to {}", format.name()), ms, extra);
                }
                Err(error) => println!("{title}, {}: {error}", format.name()),
            }
            for (name, matrix) in &stored {
                let (_, bytes) = peak(b, || matrix.to_csr(b))?;
                let both = (a.storage_bytes() + matrix.storage_bytes()) as f64;
                let ms = median(b, 5, || Ok(()), |()| matrix.to_csr(b))?;
                line(format!("{name} to csr"), ms, (bytes - a.storage_bytes() as f64) / both);
            }
        }
        stored.clear();
        if only.is_some() {
            return Ok(());
        }
        for (height, window) in [(32, 1), (32, 1024), (32, 1 << 16)] {
            let convert = || Sell::with_sections(b, a, height, window);
            match convert() {
                Ok(_) => line(
                    format!("csr to sell-{height}-{window}"),
                    median(b, 5, || Ok(()), |()| convert())?,
                    0.0,
                ),
                Err(error) => println!("{title}, sell-{height}-{window}: {error}"),
            }
        }
        Ok(())
    }

    /// splitmix64
    fn hash(x: u64) -> u64 {
        let z = x.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn resident<T: residua::Scalar>(
        b: &Cuda,
        n: usize,
        m: usize,
        place: impl Fn(usize) -> (u32, u32) + Sync,
    ) -> Result<ResidentTriplets<T, Cuda>> {
        let all = || (0..m).into_par_iter();
        let is = b.upload(all().map(|t| place(t).0).collect::<Vec<u32>>())?;
        let js = b.upload(all().map(|t| place(t).1).collect::<Vec<u32>>())?;
        let value = |t| T::from_f64((hash(t as u64) >> 11) as f64 * 1e-16);
        let values = b.upload(all().map(value).collect::<Vec<T>>())?;
        ResidentTriplets::from_parts(b, n, n, is, js, values)
    }

    /// As the peer does it: every place twice, in random order.
    fn twice<T: residua::Scalar>(b: &Cuda, n: usize, m: usize) -> Result<ResidentTriplets<T, Cuda>> {
        // A stride without common factors with m visits every triplet once, far from the last.
        let stride =
            (1_000_003..).step_by(2).map(|s| s * (m / 5_000_000).max(1) + 1).find(|&s| gcd(s, m) == 1);
        let stride = stride.unwrap_or(1);
        resident(b, n, m, |t| {
            let h = hash((t * stride % m % (m / 2)) as u64);
            ((h >> 32) as u32 % n as u32, h as u32 % n as u32)
        })
    }

    fn gcd(a: usize, b: usize) -> usize {
        if b == 0 { a } else { gcd(b, a % b) }
    }

    /// As trilinear elements deliver them, one after another: 64 triplets each.
    fn elements<T: residua::Scalar>(b: &Cuda, side: usize) -> Result<ResidentTriplets<T, Cuda>> {
        let points = side + 1;
        resident(b, points * points * points, side * side * side * 64, |t| {
            let (e, i, j) = (t / 64, t / 8 % 8, t % 8);
            let (x, y, z) = (e % side, e / side % side, e / side / side);
            let at =
                |k: usize| ((x + (k & 1)) + points * ((y + (k >> 1 & 1)) + points * (z + (k >> 2)))) as u32;
            (at(i), at(j))
        })
    }

    pub fn assembly(b: &Cuda) -> Result<()> {
        println!("triplets, what, ms, M triplets/s, peak memory in parts of the triplets");
        let (in_order, twice_1e7, twice_1e8) = (
            "trilinear elements, 115^3",
            "2^20 rows, each place twice, shuffled",
            "2^23 rows, each place twice, shuffled",
        );
        let only = only();
        let asked = |name: &str| only.as_ref().is_none_or(|only| name.contains(&**only));
        if asked(in_order) {
            triplets::<f64>(b, in_order, elements(b, 115)?)?;
            triplets::<f32>(b, in_order, elements(b, 115)?)?;
        }
        for (name, by_column) in
            [("27 points, 155^3, by rows", false), ("27 points, 155^3, by columns", true)]
        {
            if asked(name) {
                triplets::<f64>(b, name, stored(b, 155, by_column)?)?;
                triplets::<f32>(b, name, stored(b, 155, by_column)?)?;
            }
        }
        if asked(twice_1e7) {
            triplets::<f64>(b, twice_1e7, twice(b, 1 << 20, 10_000_000)?)?;
        }
        if asked(twice_1e8) {
            triplets::<f64>(b, twice_1e8, twice(b, 1 << 23, 100_000_000)?)?;
            triplets::<f32>(b, twice_1e8, twice(b, 1 << 23, 100_000_000)?)?;
        }
        Ok(())
    }

    /// Triplets of copies: rows, columns and values.
    fn copied<T: residua::Scalar>(
        b: &Cuda,
        (rows, columns): (usize, usize),
        (is, js, values): (&CudaSlice<u32>, &CudaSlice<u32>, &CudaSlice<T>),
    ) -> Result<ResidentTriplets<T, Cuda>> {
        let m = Cuda::len(values);
        let (mut i, mut j, mut v) = (b.buffer(m)?, b.buffer(m)?, b.buffer(m)?);
        b.copy(is, &mut i)?;
        b.copy(js, &mut j)?;
        b.copy(values, &mut v)?;
        ResidentTriplets::from_parts(b, rows, columns, i, j, v)
    }

    /// A matrix as a file has it, by rows or by columns.
    fn stored<T: residua::Scalar>(
        b: &Cuda,
        side: usize,
        by_column: bool,
    ) -> Result<ResidentTriplets<T, Cuda>> {
        let a = Coo::from_csr(b, &b.poisson3d_27::<T>(side, side, side)?)?;
        let from = a.parts();
        let (is, js) = (from.row_indices, from.column_indices);
        let (is, js) = if by_column { (js, is) } else { (is, js) };
        copied(b, (a.rows(), a.columns()), (is, js, from.values))
    }

    /// Updates in a recording: a time loop's, which does not wait for each.
    const STEPS: usize = 8;

    fn triplets<T: residua::Scalar>(b: &Cuda, name: &str, t: ResidentTriplets<T, Cuda>) -> Result<()> {
        let m = t.len();
        let name = format!("{name}, {}", T::NAME);
        let bytes = ((8 + size_of::<T>()) * m) as f64;
        let assembler = Assembler::default();
        let line = |what: &str, ms: f64, memory: f64| {
            println!("{m}, {name}: {what}, {ms:.3}, {:.0}, {memory:.2}", m as f64 / ms * 1e-3);
        };
        let copied = || copied(b, (t.rows(), t.columns()), t.parts());
        let input = copied()?;
        let (_, extra) = peak(b, || assembler.resident_to_csr(b, input))?;
        let ms = median(b, 5, copied, |t| assembler.resident_to_csr(b, t))?;
        line("to CSR", ms, 1.0 + extra / bytes);
        let ((mut a, map), extra) = peak(b, || assembler.resident_assembly(b, &t))?;
        let ms = median(b, 5, || Ok(()), |()| assembler.resident_assembly(b, &t))?;
        line("to CSR and map", ms, 1.0 + extra / bytes);
        let ms = median(b, 9, || Ok(()), |()| map.update(b, t.parts().2, &mut a))?;
        line("new values", ms, 0.0);
        let recorded = {
            let values = t.parts().2;
            let mut steps = b.record(|| (0..STEPS).try_for_each(|_| map.update(b, values, &mut a)))?;
            median(b, 9, || Ok(()), |()| steps.replay())? / STEPS as f64
        };
        line("new values, recorded", recorded, 0.0);
        // What reading the triplets' values once and writing the matrix's once takes, by the bandwidth of a copy.
        let mut to = b.buffer::<T>(m)?;
        let copy = median(b, 9, || Ok(()), |()| b.copy(t.parts().2, &mut to))?;
        let once = copy * (m + a.nonzeros()) as f64 / (2 * m) as f64;
        println!(
            "{m}, {name}: values read and written once, {once:.3}; new values take {:.2} times that, recorded {:.2}",
            ms / once,
            recorded / once
        );
        Ok(())
    }

    /// More nonzeros than 32-bit offsets count.
    pub fn large(b: &Cuda) -> Result<()> {
        for side in [447, 545] {
            let a = b.poisson3d_27::<f64>(side, side, side)?;
            let x = b.upload(vec![1.0; a.columns()])?;
            let mut y = b.zeros(a.rows())?;
            let ms = median(b, 5, || Ok(()), |()| a.product(b, 1.0, &x, 0.0, &mut y))?;
            println!("27 points, {side}^3, {} nonzeros: product in CSR {ms:.2} ms", a.nonzeros());
            let start = Instant::now();
            let sell = Sell::with_sections(b, &a, 32, 1)?;
            b.synchronize()?;
            println!("27 points, {side}^3: to sell-32-1 {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
            drop(a);
            let start = Instant::now();
            let again = sell.to_csr(b)?;
            b.synchronize()?;
            println!("27 points, {side}^3: back {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
            drop(sell);
            let mut z = b.zeros(again.rows())?;
            again.product(b, 1.0, &x, 0.0, &mut z)?;
            println!("27 points, {side}^3: same product {}", b.download(&y)? == b.download(&z)?);
        }
        Ok(())
    }
}
