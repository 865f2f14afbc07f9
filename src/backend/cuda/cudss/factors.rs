//! A matrix, its analysis and its factors in cuDSS.

use super::library::{CreateCsr, Library, Opaque};
use super::version::{ALLOC_FAILED, ENTRIES, INFO, NO_MATCHING, USER_PERMUTATION};
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, record};
use crate::backend::{
    Backend, CsrArrays, Elimination, FactorEstimate, FactorKind, FactorOptions, Factors, Offsets,
};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use std::ffi::{CString, c_int, c_void};

// CUDA's codes for data types.
const INTEGER_32: c_int = 10;
const INTEGER_64: c_int = 11;

/// Returns CUDA's code for a type of entries.
fn number_of<T: Scalar>() -> Result<c_int> {
    Ok(match T::NAME {
        "f32" => 0,
        "f64" => 1,
        "c32" => 4,
        "c64" => 5,
        other => return Err(Error::Unsupported(format!("entries of type {other} in cuDSS"))),
    })
}

/// Returns cuDSS's codes for a kind of matrix, and for the triangle that it reads. All of A is stored; of a Hermitian
/// matrix, the lower triangle is read.
fn kind_of(kind: FactorKind, complex: bool) -> (c_int, c_int) {
    match (kind, complex) {
        (FactorKind::General, _) => (0, 0),
        (FactorKind::Symmetric, _) | (FactorKind::Hermitian, false) => (1, 1),
        (FactorKind::Hermitian, true) => (2, 1),
        (FactorKind::Positive, false) => (3, 1),
        (FactorKind::Positive, true) => (4, 1),
    }
}

/// An object of the library. Objects are destroyed in the reverse order of creation.
enum Object {
    Handle(Opaque),
    Config(Opaque),
    Data(Opaque),
    Matrix(Opaque),
}

/// A handle of the library with all its objects.
struct Objects {
    library: &'static Library,
    cuda: Cuda,
    handle: Opaque,
    config: Opaque,
    data: Opaque,
    created: Vec<Object>,
    /// The number of bytes that the next step may request.
    wanted: u64,
}

// SAFETY: cuDSS objects are not tied to a thread. Each call makes the device's context current first, and `&mut` keeps
// calls from overlapping.
unsafe impl Send for Objects {}

impl Drop for Objects {
    fn drop(&mut self) {
        // If waiting for the device fails, the memory may still be in use, so it is not freed.
        if self.cuda.0.synchronize().is_err() {
            return;
        }
        let f = &self.library.functions;
        for object in self.created.drain(..).rev() {
            // SAFETY: the library created each object, and it is destroyed once, in reverse order. Failures are
            // ignored.
            let _ = unsafe {
                match object {
                    Object::Handle(handle) => (f.destroy)(handle),
                    Object::Config(config) => (f.config_destroy)(config),
                    Object::Data(data) => (f.data_destroy)(self.handle, data),
                    Object::Matrix(matrix) => (f.matrix_destroy)(matrix),
                }
            };
        }
    }
}

impl Objects {
    fn new(library: &'static Library, cuda: Cuda) -> Result<Self> {
        cuda.0.bind()?;
        let [mut handle, mut config, mut data]: [Opaque; 3] = [std::ptr::null_mut(); 3];
        let mut objects = Self { library, cuda, handle, config, data, created: Vec::new(), wanted: 0 };
        let f = &library.functions;
        // SAFETY: the call writes one pointer. The handle belongs to the device whose context is current.
        let status = unsafe { (f.create)(&raw mut handle) };
        if !handle.is_null() {
            objects.handle = handle;
            objects.created.push(Object::Handle(handle));
        }
        objects.check("cudssCreate", status)?;
        let stream = cuda.0.main_stream().cast::<c_void>();
        // SAFETY: the stream lives as long as the process.
        objects.check("cudssSetStream", unsafe { (f.set_stream)(handle, stream) })?;
        // SAFETY: the call writes one pointer.
        objects.check("cudssConfigCreate", unsafe { (f.config_create)(&raw mut config) })?;
        objects.config = config;
        objects.created.push(Object::Config(config));
        // SAFETY: the call writes one pointer.
        objects.check("cudssDataCreate", unsafe { (f.data_create)(handle, &raw mut data) })?;
        objects.data = data;
        objects.created.push(Object::Data(data));
        Ok(objects)
    }

    fn check(&self, call: &'static str, status: c_int) -> Result<()> {
        if status == ALLOC_FAILED {
            let (free, total) = self.cuda.0.memory()?;
            let device = format!("{} ({free} of its {total} bytes are free)", self.cuda.0.name);
            return Err(Error::OutOfMemory { device, bytes: self.wanted });
        }
        self.library.check(&self.cuda.0.name, call, status)
    }

    /// Allows the library to compute orderings with several threads, if it can. Otherwise it uses one.
    fn use_threads(&self) {
        let file = self.library.threading_layer();
        if let Some(path) = file.and_then(|file| CString::new(file.to_str()?).ok()) {
            // SAFETY: the string is terminated and the handle is valid. If the call fails, cuDSS uses one thread.
            let _ = unsafe { (self.library.functions.set_threading)(self.handle, path.as_ptr()) };
        }
    }

    fn set(&self, parameter: c_int, value: c_int) -> Result<()> {
        // SAFETY: the call reads the value, whose size is passed, before it returns.
        let status = unsafe {
            (self.library.functions.config_set)(
                self.config,
                parameter,
                (&raw const value).cast(),
                size_of_val(&value),
            )
        };
        self.check("cudssConfigSet", status)
    }

    /// Passes an array in host memory; the library copies it.
    fn give(&self, parameter: c_int, values: &[u32]) -> Result<()> {
        // SAFETY: the slice is passed with its size in bytes; indices below 2^31 have the same bits signed and
        // unsigned.
        let status = unsafe {
            (self.library.functions.data_set)(
                self.handle,
                self.data,
                parameter,
                values.as_ptr().cast(),
                size_of_val(values),
            )
        };
        self.check("cudssDataSet", status)
    }

    /// Reads a property, which has at most `N` numbers.
    fn told<I: Default + Copy, const N: usize>(&self, parameter: c_int) -> Result<[I; N]> {
        let (mut values, mut written) = ([I::default(); N], 0);
        // SAFETY: the array is passed with its size in bytes, and the call also writes a size.
        let status = unsafe {
            (self.library.functions.data_get)(
                self.handle,
                self.data,
                parameter,
                values.as_mut_ptr().cast(),
                size_of_val(&values),
                &raw mut written,
            )
        };
        self.check("cudssDataGet", status)?;
        Ok(values)
    }

    /// Describes vectors to the library that are stored one after another.
    fn vectors(&mut self, n: usize, count: usize, address: u64, entries: c_int) -> Result<Opaque> {
        let (mut matrix, n) = (std::ptr::null_mut(), n as i64);
        // SAFETY: the call writes one pointer. The address is stored, and is replaced before anything is read from it.
        let status = unsafe {
            (self.library.functions.dense)(
                &raw mut matrix,
                n,
                count as i64,
                n,
                std::ptr::without_provenance(address as usize),
                entries,
                0,
            )
        };
        self.check("cudssMatrixCreateDn", status)?;
        self.created.push(Object::Matrix(matrix));
        Ok(matrix)
    }

    fn point(&self, matrix: Opaque, address: u64) -> Result<()> {
        let values = std::ptr::without_provenance(address as usize);
        // SAFETY: the matrix is valid, and the caller has checked that the array at `address` has as many elements as
        // the matrix.
        self.check("cudssMatrixSetValues", unsafe { (self.library.functions.set_values)(matrix, values) })
    }

    fn execute(&self, call: &'static str, phase: c_int, matrix: Opaque, x: Opaque, b: Opaque) -> Result<()> {
        record::forbid(self.cuda, "a factorisation")?;
        self.cuda.0.bind()?;
        // SAFETY: all objects are valid. The device memory that they describe is owned by this struct, or borrowed by
        // the caller until the stream has reached later work.
        let status = unsafe {
            (self.library.functions.execute)(self.handle, phase, self.config, self.data, matrix, x, b)
        };
        self.check(call, status)
    }
}

/// The library's descriptions of b and x for this number of right-hand sides.
struct Vectors {
    count: usize,
    b: Opaque,
    x: Opaque,
}

/// A matrix with its analysis and, after the first [`Factors::factorise`], its factors.
pub(super) struct Factorisation<T: Scalar> {
    objects: Objects,
    matrix: Opaque,
    vectors: Vectors,
    n: usize,
    estimate: FactorEstimate,
    factorised: bool,
    /// True until a solve for several right-hand sides in one call has failed.
    several: bool,
    /// The values to which `matrix` refers. They are dropped after the objects.
    values: DeviceVec<T>,
    _pattern: (Offsets<Cuda>, DeviceVec<u32>),
}

// SAFETY: the pointers are handles of the library, as in `Objects`.
unsafe impl<T: Scalar> Send for Factorisation<T> {}

impl<T: Scalar> Factorisation<T> {
    /// Analyses a pattern.
    pub(super) fn new(
        cuda: Cuda,
        n: usize,
        (offsets, columns, values): CsrArrays<T, Cuda>,
        options: FactorOptions<'_>,
    ) -> Result<Self> {
        record::forbid(cuda, "the analysis of a factorisation")?;
        let library = Library::get()?;
        let entries = number_of::<T>()?;
        if i32::try_from(n).is_err() || n == 0 {
            return Err(Error::Unsupported(format!("{n} unknowns in cuDSS, which allows 1 to 2^31 - 1")));
        }
        if let Some(order) = options.order {
            order.check(n)?;
        }
        let offsets = as_wide_as_needed(cuda, offsets, values.len(), library)?;
        let mut objects = Objects::new(library, cuda)?;
        // A lower bound until the analysis is done: the factors contain all entries of A.
        objects.wanted = values.bytes() as u64;
        prepare(&objects, options)?;
        let matrix = describe(&mut objects, n, (&offsets, &columns, &values), options.kind, entries)?;
        // This memory is not accessed: each solve passes other addresses.
        let place = values.address();
        let vectors = Vectors {
            count: 1,
            b: objects.vectors(n, 1, place, entries)?,
            x: objects.vectors(n, 1, place, entries)?,
        };
        let (numbers, phase) = (library.numbers, library.numbers.analysis);
        objects.execute("cudssExecute (analysis)", phase, matrix, vectors.x, vectors.b)?;
        cuda.0.synchronize()?;
        let [stored] = objects.told::<i64, 1>(ENTRIES)?;
        let flops = match numbers.flops {
            Some(flops) => Some(objects.told::<i64, 1>(flops)?[0]).filter(|&flops| flops > 0),
            None => None,
        };
        let memory = objects.told::<i64, 16>(numbers.memory_estimates)?;
        let bytes = |at: usize| u64::try_from(memory[at]).unwrap_or(0);
        let estimate = FactorEstimate {
            entries: stored as f64,
            flops: flops.map(|flops| flops as f64),
            bytes: bytes(0),
            peak: bytes(1).max(bytes(0)),
            free: cuda.0.memory()?.0 as u64,
        };
        objects.wanted = estimate.peak;
        let _pattern = (offsets, columns);
        Ok(Self { objects, matrix, vectors, n, estimate, factorised: false, several: true, values, _pattern })
    }
}

/// Sets the options, and the ordering if one is given.
fn prepare(objects: &Objects, options: FactorOptions<'_>) -> Result<()> {
    let numbers = objects.library.numbers;
    if let Some(deterministic) = numbers.deterministic.filter(|_| options.deterministic) {
        objects.set(deterministic, 1)?;
    }
    if let Some(pivots) = numbers.bunch_kaufman.filter(|_| options.blocks_of_two) {
        objects.set(numbers.pivot_type, pivots)?;
    }
    // The caller has applied a matching if one was needed, and its ordering is for the matrix that it passes.
    if let Some(matching) = numbers.matching {
        objects.set(matching, NO_MATCHING)?;
    }
    match options.order {
        None => objects.use_threads(),
        Some(Elimination { order, parts }) => {
            objects.give(USER_PERMUTATION, order)?;
            if let (Some(tree), Some(levels), false) = (numbers.parts, numbers.nd_levels, parts.is_empty()) {
                objects.set(levels, (parts.len() + 1).trailing_zeros() as c_int)?;
                objects.give(tree, parts)?;
            }
        }
    }
    Ok(())
}

/// Converts the offsets to a signed width that the library accepts.
fn as_wide_as_needed(
    cuda: Cuda,
    offsets: Offsets<Cuda>,
    nonzeros: usize,
    library: &Library,
) -> Result<Offsets<Cuda>> {
    let fits = i32::try_from(nonzeros).is_ok();
    if !fits && !library.numbers.offset_type {
        let version = library.version;
        return Err(Error::Unsupported(format!(
            "{nonzeros} entries in cuDSS {version}; use cuDSS 0.8 or later"
        )));
    }
    match offsets {
        Offsets::Lower(_) if fits => Ok(offsets),
        Offsets::Wide(_) if !fits => Ok(offsets),
        other => {
            let offsets = other.download(&cuda)?;
            Ok(if fits {
                Offsets::Lower(cuda.upload(offsets.into_iter().map(|o| o as u32).collect())?)
            } else {
                Offsets::Wide(cuda.upload(offsets.into_iter().map(|o| o as u64).collect())?)
            })
        }
    }
}

/// Returns the library's description of the matrix.
fn describe<T: Scalar>(
    objects: &mut Objects,
    n: usize,
    (offsets, columns, values): (&Offsets<Cuda>, &Slice<u32>, &Slice<T>),
    kind: FactorKind,
    entries: c_int,
) -> Result<Opaque> {
    let (starts, offset_type) = match offsets {
        Offsets::Lower(offsets) => (offsets.address(), INTEGER_32),
        Offsets::Wide(offsets) => (offsets.address(), INTEGER_64),
    };
    let (kind, view) = kind_of(kind, T::COMPLEX);
    let (mut matrix, nonzeros, n) = (std::ptr::null_mut(), values.len() as i64, n as i64);
    let at = |address: u64| std::ptr::without_provenance::<c_void>(address as usize);
    let (starts, columns, values) = (at(starts), at(columns.address()), at(values.address()));
    let none = std::ptr::null();
    // SAFETY: the call writes one pointer. The addresses are those of the arrays of a valid CSR matrix, which the
    // caller owns for as long as this description is used; 32-bit columns and offsets are below 2^31.
    let status = unsafe {
        let to = &raw mut matrix;
        match objects.library.functions.csr {
            CreateCsr::TwoTypes(create) => create(
                to,
                n,
                n,
                nonzeros,
                starts,
                none,
                columns,
                values,
                offset_type,
                INTEGER_32,
                entries,
                kind,
                view,
                0,
            ),
            CreateCsr::OneType(create) => {
                create(to, n, n, nonzeros, starts, none, columns, values, INTEGER_32, entries, kind, view, 0)
            }
        }
    };
    objects.check("cudssMatrixCreateCsr", status)?;
    objects.created.push(Object::Matrix(matrix));
    Ok(matrix)
}

impl<T: Scalar> Factors<T, Cuda> for Factorisation<T> {
    fn estimate(&self) -> FactorEstimate {
        self.estimate
    }

    fn factorise(&mut self, values: &Slice<T>) -> Result<Option<usize>> {
        Error::check_dimension("number of values", self.values.len(), values.len())?;
        let Self { objects, matrix, vectors, .. } = self;
        objects.cuda.copy(values, &mut self.values)?;
        let numbers = objects.library.numbers;
        let (call, phase) = match self.factorised {
            false => ("cudssExecute (factorisation)", numbers.factorisation),
            true => ("cudssExecute (refactorisation)", numbers.refactorisation),
        };
        objects.execute(call, phase, *matrix, vectors.x, vectors.b)?;
        objects.cuda.0.synchronize()?;
        self.factorised = true;
        let [row] = objects.told::<c_int, 1>(INFO)?;
        Ok(usize::try_from(row).ok().and_then(|row| row.checked_sub(1)))
    }

    fn solve(&mut self, count: usize, b: &Slice<T>, x: &mut Slice<T>) -> Result<()> {
        let n = self.n;
        Error::check_dimension("length of b", n * count, b.len())?;
        Error::check_dimension("length of x", n * count, x.len())?;
        if !self.factorised {
            return Err(Error::InvalidArgument(
                "the factors were not computed yet: factorise before a solve".into(),
            ));
        }
        if count == 0 {
            return Ok(());
        }
        if count > 1 && !self.several {
            return self.one_by_one(count, b, x);
        }
        match self.at_once(count, b, x) {
            // cuDSS 1.0.0 can fail for several right-hand sides if reproducible results are requested.
            Err(_) if count > 1 => {
                self.several = false;
                self.one_by_one(count, b, x)
            }
            done => done,
        }
    }
}

impl<T: Scalar> Factorisation<T> {
    fn one_by_one(&mut self, count: usize, b: &Slice<T>, x: &mut Slice<T>) -> Result<()> {
        let n = self.n;
        (0..count).try_for_each(|number| {
            let part = number * n..(number + 1) * n;
            self.at_once(1, b.part(part.clone()), x.part_mut(part))
        })
    }

    fn at_once(&mut self, count: usize, b: &Slice<T>, x: &mut Slice<T>) -> Result<()> {
        let (n, entries) = (self.n, number_of::<T>()?);
        let Self { objects, matrix, vectors, .. } = self;
        if vectors.count == count {
            objects.point(vectors.b, b.address())?;
            objects.point(vectors.x, x.address())?;
        } else {
            // Descriptions for other numbers of right-hand sides are kept as long as the factors; they are few and
            // small.
            let (b, x) = (b.address(), x.address());
            let b = objects.vectors(n, count, b, entries)?;
            let x = objects.vectors(n, count, x, entries)?;
            *vectors = Vectors { count, b, x };
        }
        let phase = objects.library.numbers.solve;
        objects.execute("cudssExecute (solve)", phase, *matrix, vectors.x, vectors.b)
    }
}
