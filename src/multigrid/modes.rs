//! Near-null vectors of elasticity: the rigid body modes.

use crate::error::{Error, Result};

/// The rigid body modes of points in the plane (3) or in space (6): translations, and rotations about the middle of the
/// points. `points` has `dimensions` coordinates for each point, one point after another. Entry (i, j), mode j at
/// unknown i, is at i * modes + j, as [`Multigrid::with_near_null`](super::Multigrid::with_near_null) takes them; the
/// unknowns of a point are its displacements along the axes.
///
/// # Errors
/// For dimensions other than 2 and 3, and if coordinates are missing, infinite or NaN.
pub fn rigid_body_modes(dimensions: usize, points: &[f64]) -> Result<Vec<f64>> {
    let refused = |what: String| Err(Error::InvalidArgument(what));
    if !(2..=3).contains(&dimensions) || !points.len().is_multiple_of(dimensions) {
        return refused(format!(
            "{} coordinates are not those of points of {dimensions} dimensions: 2 or 3 are possible",
            points.len()
        ));
    }
    if let Some(place) = points.iter().position(|at| !at.is_finite()) {
        return refused(format!("point {}: a coordinate is infinite or NaN", place / dimensions + 1));
    }
    let count = (points.len() / dimensions).max(1) as f64;
    let middle = |axis: usize| points.iter().skip(axis).step_by(dimensions).sum::<f64>() / count;
    let middle: Vec<f64> = (0..dimensions).map(middle).collect();
    let mut modes = Vec::with_capacity(points.len() * if dimensions == 2 { 3 } else { 6 });
    for point in points.chunks_exact(dimensions) {
        match (point, &middle[..]) {
            (&[x, y], &[of_x, of_y]) => {
                let [x, y] = [x - of_x, y - of_y];
                modes.extend([1.0, 0.0, -y]);
                modes.extend([0.0, 1.0, x]);
            }
            (&[x, y, z], &[of_x, of_y, of_z]) => {
                let [x, y, z] = [x - of_x, y - of_y, z - of_z];
                modes.extend([1.0, 0.0, 0.0, -y, 0.0, z]);
                modes.extend([0.0, 1.0, 0.0, x, -z, 0.0]);
                modes.extend([0.0, 0.0, 1.0, 0.0, y, -x]);
            }
            _ => {}
        }
    }
    Ok(modes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_keep_distances() {
        let points = [0.0, 0.0, 1.0, 3.0, 1.0, 2.0, -1.0, 0.5, 4.0];
        let modes = rigid_body_modes(3, &points).unwrap();
        assert_eq!(modes.len(), 9 * 6);
        // To first order, a motion that keeps distances is orthogonal to the line between two points.
        for mode in 0..6 {
            for (p, q) in [(0, 1), (0, 2), (1, 2)] {
                let along: f64 = (0..3)
                    .map(|axis| {
                        let moved = modes[(3 * p + axis) * 6 + mode] - modes[(3 * q + axis) * 6 + mode];
                        moved * (points[3 * p + axis] - points[3 * q + axis])
                    })
                    .sum();
                assert!(along.abs() < 1e-12, "mode {mode} between {p} and {q}: {along}");
            }
        }
        assert_eq!(rigid_body_modes(2, &[1.0, 2.0, 3.0, 4.0]).unwrap().len(), 12);
        assert!(rigid_body_modes(2, &[1.0, 2.0, 3.0]).is_err());
        assert!(rigid_body_modes(1, &[1.0]).is_err());
        assert!(rigid_body_modes(2, &[1.0, f64::NAN]).unwrap_err().to_string().contains("point 1"));
    }
}
