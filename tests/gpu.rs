//! The common cases of all backends, on a CUDA device, and cases that only a device can run. Skips with a message if
//! there is none. The solvers' cases are in `krylov.rs`.

#![cfg(feature = "cuda")]

#[path = "common/assembly.rs"]
mod assembly;
#[path = "common/backend.rs"]
mod backend;
#[path = "common/compressed_cases.rs"]
mod compressed_cases;
#[path = "common/device.rs"]
mod device;
#[path = "common/formats/mod.rs"]
mod formats;
#[path = "common/graph.rs"]
mod graph;
#[path = "common/precondition.rs"]
mod precondition;
#[path = "common/primitives/mod.rs"]
mod primitives;
#[path = "gpu/products.rs"]
mod products_on_device;
#[path = "common/random.rs"]
mod random;
#[path = "common/triangular.rs"]
mod triangular;
#[path = "common/vector_ops/mod.rs"]
mod vector_ops;

use device::device;
use formats::{choice, conversions};

use num_complex::Complex;
use residua::assemble::{Assembler, ResidentTriplets};
use residua::backend::cuda::compile::units_of_an_ordering;
use residua::backend::{Backend, GraphSteps, Mailbox, OrderingPrice, Replay, VectorOps};
use residua::{Csr, Cuda, CudaError, Error, Host, Scalar};
use std::sync::Mutex;

/// Runs the cases of a module on the device.
macro_rules! cases {
    ($module:ident in $tests:ident: $($name:ident),*) => {
        mod $tests {
            $(
                #[test]
                fn $name() {
                    if let Some(device) = super::device() {
                        super::$module::$name(&device);
                    }
                }
            )*
        }
    };
}
backend::each_case!(cases backend in backend_on_device:);
precondition::each_case!(cases precondition in precondition_on_device:);
triangular::each_case!(cases triangular in triangular_on_device:);
assembly::each_case!(cases assembly in assembly_on_device:);
graph::each_case!(cases graph in graph_on_device:);
vector_ops::each_vector_case!(cases vector_ops in vector_ops_on_device:);
cases!(assembly in large_assembly_on_device: many_cases);
cases!(choice in choice_on_device: choice_cases);
cases!(
    products_on_device in products_of_formats: double,
    single,
    complex,
    narrow,
    padding,
    fused_products,
    half_diagonals,
    csr_algorithms,
    coordinates_by_atomics,
    rows_of_several_tiles,
    rows_of_several_large_tiles,
    rows_that_end_anywhere,
    tiles_of_every_size,
    values_of_two_types_on_one_pattern,
    sums_of_many_blocks,
    several_vectors,
    recorded_first,
    chained_products,
    products_that_write_the_next_matrix,
    stencils_on_large_grids
);
cases!(conversions in conversions_on_device: round_trip_cases, transposes, large_cases);

/// Locked by tests that take most of the device's memory, so that they run one at a time.
static LARGE: Mutex<()> = Mutex::new(());

#[test]
fn a_device_that_is_not_there_is_an_error_that_says_what_to_do() {
    match Cuda::new(4096) {
        Err(Error::Cuda(CudaError::NoSuchDevice { ordinal: 4096, count })) => assert!(count > 0),
        Err(Error::Cuda(CudaError::NoDriver | CudaError::NoDevice | CudaError::BrokenDriver { .. })) => {
            assert!(device().is_none());
        }
        other => panic!("{other:?}"),
    }
}

/// A thread that needs kernels while others load them gets the same ones, and an ordering is cheaper afterwards.
#[test]
fn kernels_serve_while_they_are_loaded_ahead() {
    let Some(b) = device() else { return };
    let loading = b.compile_ahead(units_of_an_ordering());
    let grid = graph::graph(60 * 50, graph::grid_edges(60, 50));
    graph::check_order(&b, "grid", &grid);
    drop(loading);
    graph::check_order(&b, "grid", &grid);
    assert_eq!(b.ordering_price().start, OrderingPrice::GPU.start);
}

#[test]
fn running_out_of_memory_is_an_error_with_sizes_and_the_device_goes_on() {
    let Some(b) = device() else { return };
    let _alone = LARGE.lock();
    let (_, total) = b.memory().unwrap();
    let mut held = Vec::new();
    let error = loop {
        match b.zeros::<u64>(total / 8 / 5) {
            Ok(buffer) => held.push(buffer),
            Err(error) => break error,
        }
        assert!(held.len() < 6, "more memory was handed out than there is");
    };
    let text = error.to_string();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{text}");
    assert!(text.contains(&total.to_string()) && text.contains("free"), "{text}");
    drop(held);
    let x = b.upload(vec![2.0_f64; 1000]).unwrap();
    let mut out = b.zeros(1).unwrap();
    b.dot(&x, &x, &mut out).unwrap();
    assert_eq!(b.download(&out).unwrap(), [4000.0]);
    // Freed memory can be allocated again at once.
    assert!(b.zeros::<u64>(total / 8 / 5).is_ok());
}

#[test]
fn waiting_inside_of_a_recording_is_refused_and_leaves_the_device_whole() {
    let Some(b) = device() else { return };
    let mut x = b.upload(vec![1.0_f64; 10]).unwrap();
    let mailbox = b.mailbox::<f64>(10).unwrap();
    type Body<'a> = Box<dyn FnMut() -> Result<(), Error> + Send + 'a>;
    {
        let x = &x;
        let mut scratch = b.zeros::<f64>(10).unwrap();
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| b.download(x).map(|_| ())),
            Box::new(|| b.synchronize()),
            Box::new(|| b.zeros::<f64>(4).map(|_| ())),
            Box::new(|| mailbox.next(&b, true, &mut [0.0; 10]).map(|_| ())),
            Box::new(|| b.write(&[0.0; 10], &mut scratch)),
            Box::new(|| b.record(|| Ok(())).map(|_| ())),
        ];
        for body in bodies {
            let error = b.record(body).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::Cuda(CudaError::NotRecordable { .. })), "{error}");
        }
    }
    b.fill(3.0, &mut x).unwrap();
    assert_eq!(b.download(&x).unwrap(), [3.0; 10]);
}

#[test]
fn a_recording_keeps_what_its_body_owns_or_drops() {
    let Some(b) = device() else { return };
    let mut x = b.zeros::<f64>(1 << 16).unwrap();
    let mut dropped = Some(b.upload(vec![1.0_f64; 1 << 16]).unwrap());
    {
        let mut step = b
            .record(|| {
                if let Some(one) = dropped.take() {
                    b.axpby(1.0, &one, 1.0, &mut x)?;
                }
                Ok(())
            })
            .unwrap();
        // If the buffer were freed, these would take its place and overwrite it.
        let others: Vec<_> = (0..8).map(|_| b.upload(vec![f64::NAN; 1 << 16]).unwrap()).collect();
        for _ in 0..5 {
            step.replay().unwrap();
        }
        drop(others);
    }
    assert!(b.download(&x).unwrap().iter().all(|&v| v == 5.0));
}

/// Buffers of another library; here they are the backend's own, given by address.
#[test]
fn foreign_memory_is_computed_with_in_place() {
    let Some(b) = device() else { return };
    let (x, mut y) = (b.upload(vec![3.0_f64; 1000]).unwrap(), b.upload(vec![1.0_f64; 1000]).unwrap());
    // SAFETY: both vectors are in this device's memory, live to the end, and are accessed on this stream only; y
    // through one reference at a time.
    let (foreign_x, foreign_y) =
        unsafe { (b.foreign::<f64>(x.address(), 1000), b.foreign_mut::<f64>(y.address(), 1000)) };
    b.axpby(2.0, foreign_x, 1.0, foreign_y).unwrap();
    assert_eq!(b.download(&y).unwrap(), [7.0; 1000]);
    b.fill(0.0, &mut y).unwrap();
    // SAFETY: the slices are empty, so that no element is accessed.
    let (nothing, none) = unsafe { (b.foreign::<f64>(0, 0), b.foreign_mut::<f64>(0, 0)) };
    b.copy(nothing, none).unwrap();
    assert!(b.download(nothing).unwrap().is_empty());
}

#[test]
fn a_panicking_body_ends_its_recording() {
    let Some(b) = device() else { return };
    let result = std::panic::catch_unwind(|| b.record(|| panic!("in a body")).map(|_| ()));
    assert!(result.is_err());
    assert_eq!(b.download(&b.upload(vec![1_u32, 2, 3]).unwrap()).unwrap(), [1, 2, 3]);
}

#[test]
fn threads_record_and_compute_beside_each_other() {
    let Some(b) = device() else { return };
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            scope.spawn(move || {
                let n = 10_000 + 1000 * thread as usize;
                let x = b.upload(vec![f64::from(thread + 1); n]).unwrap();
                let mut y = b.zeros::<f64>(n).unwrap();
                let mut sum = b.zeros::<f64>(1).unwrap();
                {
                    let mut step = b.record(|| b.axpby(1.0, &x, 1.0, &mut y)).unwrap();
                    (0..50).for_each(|_| step.replay().unwrap());
                }
                for _ in 0..50 {
                    b.dot(&x, &y, &mut sum).unwrap();
                    let expected = 50.0 * f64::from(thread + 1).powi(2) * n as f64;
                    assert_eq!(b.download(&sum).unwrap(), [expected]);
                }
            });
        }
    });
}

#[test]
fn large_copies_are_whole() {
    let Some(b) = device() else { return };
    let _alone = LARGE.lock();
    let data: Vec<u64> = (0..40_000_019_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let x = b.upload(data.clone()).unwrap();
    assert!(b.download(&x).unwrap() == data);
    let mut y = b.zeros::<u64>(data.len()).unwrap();
    b.copy(&x, &mut y).unwrap();
    drop(x);
    assert!(b.download(&y).unwrap() == data);
}

#[test]
fn host_and_device_agree_on_integers_as_doubles() {
    let Some(b) = device() else { return };
    let x: Vec<f64> = (0..1_000_003).map(|i| f64::from(i % 1000)).collect();
    let (mut here, mut there) = (vec![0.0], b.zeros(1).unwrap());
    Host.dot(&x, &x, &mut here).unwrap();
    let on_device = b.upload(x).unwrap();
    b.dot(&on_device, &on_device, &mut there).unwrap();
    assert_eq!(b.download(&there).unwrap(), here);
}

/// 2.4 and 4.35 billion nonzeros, for which offsets have 64 bits: products are compared with the stencil computed point
/// by point, also after conversion to SELL and back.
#[test]
fn matrices_with_more_nonzeros_than_32_bits_count() {
    let Some(b) = device() else { return };
    let _alone = LARGE.lock();
    for side in [3_usize, 447, 545] {
        let nonzeros = (3 * side - 2).pow(3);
        if b.memory().unwrap().1 < nonzeros * 25 {
            eprintln!("SKIPPED: {side}^3 points do not fit the device");
            continue;
        }
        let a = b.poisson3d_27::<f64>(side, side, side).unwrap();
        assert_eq!(a.nonzeros(), nonzeros);
        let n = a.rows();
        let value = |i: usize| (i % 1009) as f64 - 500.0;
        let (x, ones) = (b.upload((0..n).map(value).collect()).unwrap(), b.upload(vec![1.0; n]).unwrap());
        let mut y = b.zeros(n).unwrap();
        a.product(&b, 1.0, &ones, 0.0, &mut y).unwrap();
        let sums = b.download(&y).unwrap();
        a.product(&b, 1.0, &x, 0.0, &mut y).unwrap();
        let products = b.download(&y).unwrap();
        let around = |k: usize| k.saturating_sub(1)..=(k + 1).min(side - 1);
        for row in (0..n).step_by(1 + n / 100_000).chain([n - 1]) {
            let (i, j, k) = (row % side, row / side % side, row / side / side);
            let (mut entries, mut sum) = (0, 27.0 * value(row));
            for z in around(k) {
                for column in around(j).flat_map(|y| around(i).map(move |x| x + side * (y + side * z))) {
                    entries += 1;
                    sum -= value(column);
                }
            }
            // Small integers: exact in any order.
            assert_eq!((sums[row], products[row]), (f64::from(27 - entries), sum), "row {row} of {side}^3");
        }
        let sell = residua::matrix::Sell::with_chunks(&b, &a, 32, 1).unwrap();
        drop(a);
        let again = sell.to_csr(&b).unwrap();
        drop(sell);
        again.product(&b, 1.0, &x, 0.0, &mut y).unwrap();
        assert!(b.download(&y).unwrap() == products, "{side}^3 points by way of SELL");
    }
}

#[test]
fn large_matrices_transpose_as_on_the_host() {
    let Some(b) = device() else { return };
    conversions::large_transposes(&b);
}

/// Stencils generated on the device equal those of the host.
#[test]
fn stencils_made_on_the_device_are_the_hosts() {
    let Some(b) = device() else { return };
    for (nx, ny, nz) in [(1, 1, 1), (1, 5, 2), (7, 3, 4), (20, 1, 9)] {
        let (here, there) = (
            residua::generate::poisson3d(nx, ny, nz).unwrap(),
            b.poisson3d::<f64>(nx, ny, nz).unwrap().to_host(&b).unwrap(),
        );
        assert!(here == there, "7 points, {nx} x {ny} x {nz}");
        let here = residua::generate::poisson3d_27(nx, ny, nz).unwrap();
        let there = b.poisson3d_27::<f64>(nx, ny, nz).unwrap().to_host(&b).unwrap();
        assert!(here == there, "27 points, {nx} x {ny} x {nz}");
        let here = residua::generate::poisson2d(nx, ny).unwrap();
        let there = b.poisson2d::<f64>(nx, ny).unwrap().to_host(&b).unwrap();
        assert!(here == there, "5 points, {nx} x {ny}");
    }
}

/// The contents of a device's shared buffers after one operation must not affect the next.
#[test]
fn everything_twice_on_one_device_from_two_threads() {
    let Some(b) = device() else { return };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                backend::all_cases(&b);
                primitives::all_cases(&b);
            });
        }
    });
}

/// Triplets of which three make one nonzero: many that are far from each other, so that their values are first moved
/// close to their nonzeros, and some whose map stores sources as codes. Both must be summed in order of appearance.
#[test]
fn kept_maps_sum_in_order_of_appearance() {
    const MANY: usize = 24 * 350_003;
    const FEW: usize = 24 * 10_007;
    fn check<T: Scalar>(b: &Cuda, m: usize, nonzero_of: fn(usize) -> usize, value: impl Fn(usize) -> T) {
        let width = 1024;
        let expected = |scale: T| {
            let mut sums: Vec<Option<T>> = vec![None; m / 3];
            for t in 0..m {
                let sum = &mut sums[nonzero_of(t)];
                let value = value(t) * scale;
                *sum = Some(sum.map_or(value, |sum| sum + value));
            }
            sums.into_iter().flatten().collect::<Vec<T>>()
        };
        let values = |scale: T| b.upload((0..m).map(|t| value(t) * scale).collect::<Vec<T>>()).unwrap();
        let place = |part: fn(usize, usize) -> usize| {
            b.upload((0..m).map(|t| part(nonzero_of(t), width) as u32).collect::<Vec<_>>()).unwrap()
        };
        let (is, js) = (place(std::ops::Div::div), place(std::ops::Rem::rem));
        let (one, two) = (T::from_f64(1.0), T::from_f64(-2.5));
        let t = ResidentTriplets::from_parts(b, m / 3 / width + 1, width, is, js, values(one)).unwrap();
        let (mut a, map) = Assembler::default().resident_assembly(b, &t).unwrap();
        drop(t);
        let got = |a: &Csr<T, Cuda>| b.download(a.parts().values).unwrap();
        assert!(got(&a) == expected(one), "{} assembled", T::NAME);
        let fresh = values(two);
        map.update(b, &fresh, &mut a).unwrap();
        assert!(got(&a) == expected(two), "{} updated", T::NAME);
        let again = values(one);
        b.record(|| map.update(b, &again, &mut a)).unwrap().replay().unwrap();
        assert!(got(&a) == expected(one), "{} updated by a recording", T::NAME);
    }
    if let Some(b) = device() {
        let double = |t: usize| (t % 1013) as f64 / 3.0 + 1e6 * (t % 7) as f64;
        let near = |t: usize| t / 24 * 8 + t % 8;
        let far = |t: usize| t * 1_000_003 % MANY / 3;
        check(&b, MANY, far, double);
        check(&b, MANY, far, |t| (t % 1013) as f32 / 3.0 + 1e4 * (t % 7) as f32);
        // Groups of three triplets, across windows of 5000 nonzeros.
        let across = |t: usize| match t / 3 {
            k if k / 5000 == MANY / 3 / 5000 => k,
            k => k / 5000 * 5000 + k % 25 * 200 + k % 5000 / 25,
        };
        check(&b, MANY, across, double);
        check(&b, MANY, across, |t| (t % 1013) as f32 / 3.0 + 1e4 * (t % 7) as f32);
        check(&b, FEW, near, double);
        check(&b, FEW, near, |t| (t % 1013) as f32 / 3.0 + 1e4 * (t % 7) as f32);
        check(&b, FEW, near, |t| Complex::new((t % 1013) as f64 / 3.0, t as f64 / 7.0));
    }
}

#[test]
fn the_compressed_format_gives_back_every_bit() {
    let Some(b) = device() else { return };
    compressed_cases::round_trips(&b);
}

#[test]
fn the_compressed_format_multiplies_in_every_storage() {
    let Some(b) = device() else { return };
    compressed_cases::products(&b);
    compressed_cases::dots(&b);
    compressed_cases::padding_never_meets_x(&b);
    compressed_cases::no_entry_has_a_place(&b);
}
