//! The compressed format on the CPU.

use crate::cases::{HOST, example};
use crate::compressed_cases;
use residua::backend::{CompressedBody, CompressedColumns, CompressedValues};
use residua::matrix::Compressed;

#[test]
fn every_storage_gives_back_every_bit() {
    compressed_cases::round_trips(&HOST);
}

#[test]
fn products_in_every_storage() {
    compressed_cases::products(&HOST);
}

#[test]
fn products_with_dots_in_every_storage() {
    compressed_cases::dots(&HOST);
}

#[test]
fn infinities_reach_only_the_rows_that_refer_to_them() {
    compressed_cases::padding_never_meets_x(&HOST);
}

#[test]
fn the_code_of_no_entry_has_a_place_in_the_table() {
    compressed_cases::no_entry_has_a_place(&HOST);
}

#[test]
fn the_example_lies_in_memory_as_drawn() {
    let compressed = Compressed::from_csr(&HOST, &example::<f64>()).unwrap();
    let CompressedBody::Sections(parts) = compressed.parts().body else { panic!("{compressed:?}") };
    let CompressedColumns::Codes(distances) = parts.columns else { panic!("{}", compressed.describe()) };
    let CompressedValues::Codes(values) = parts.values else { panic!("{}", compressed.describe()) };
    assert_eq!(distances[..5].iter().map(|&d| d as i32).collect::<Vec<_>>(), [-3, -1, 0, 1, 2]);
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 7.0, 8.0]);
    assert_eq!(parts.words[..4], [0xffff_0402, 0xffff_ff03, 0xffff_0201, 0xffff_0200]);
    assert_eq!(parts.words[32..36], [0x0400, 0x05, 0x0203, 0x0001]);
    assert_eq!((parts.words.len(), compressed.padding()), (64, 57));
}
