//! Iterates over two slices in pairs, for loops over the few entries of a row.

/// The elements of two slices in pairs, up to the length of the shorter one.
///
/// The same as [`Iterator::zip`], but inlined. The constructor of a zip in the standard library is not marked for
/// inlining, so it may remain a call, one for each row, which takes as long as the row itself. For loops over thousands
/// of elements it makes no difference.
#[inline(always)]
pub(crate) fn both<'a, A, B>(
    a: &'a [A],
    b: &'a [B],
) -> impl DoubleEndedIterator<Item = (&'a A, &'a B)> + ExactSizeIterator + Clone {
    let n = a.len().min(b.len());
    let (a, b) = (&a[..n], &b[..n]);
    (0..n).map(move |k| (&a[k], &b[k]))
}

#[cfg(test)]
mod tests {
    use super::both;

    #[test]
    fn the_shorter_of_two_decides_from_either_end() {
        let (few, many) = ([1, 2, 3], [10, 20, 30, 40]);
        let expected = [(&1, &10), (&2, &20), (&3, &30)];
        assert!(both(&few, &many).eq(expected));
        assert!(both(&many, &few).map(|(a, b)| (b, a)).eq(expected));
        assert!(both(&few, &many).rev().eq(expected.into_iter().rev()));
        assert_eq!(both(&few, &many[..0]).len(), 0);
    }
}
