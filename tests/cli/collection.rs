//! Solves every matrix of the collection by `residua solve` with its defaults.

use crate::matrices::{folder, table};
use crate::support::{Folder, ones, read_matrix, residual};

#[test]
fn every_file_gets_an_honest_outcome_and_spd_ones_are_solved() {
    let Some(folder) = folder() else { return };
    let f = Folder::new();
    let (mut solved, mut unsolved) = (0, 0);
    for row in table(&folder.join("index.csv")) {
        let path = folder.join(&row["file"]);
        let run = f.run(["solve", path.to_str().unwrap(), "-o", "x.mtx", "--json", "-", "--time-limit", "4"]);
        let name = &row["file"];
        let must = row["spd"] == "yes" && row["jcg_status"] == "ok";
        assert!(
            !must || run.status == 0,
            "{name} is solvable: status {} {}{}",
            run.status,
            run.stdout,
            run.stderr
        );
        match run.status {
            0 | 4 => {
                let json = run.json();
                let (a, x) = (read_matrix(&path), read_matrix(&f.path("x.mtx")).column(0));
                let (b, _) = a.product(&ones(a.columns));
                // A times ones is summed in another order here; if it is only rounding errors, so is b.
                let own = residual(&a, &ones(a.columns), &b).1;
                let (found, doubt) = residual(&a, &x, &b);
                let doubt = doubt + own;
                let square = row["rows"] == row["cols"];
                // The rounding of x exceeds the tolerance, but at least one digit can be trusted.
                let limited = json["status"] == "precision_limit" && json["digits"].as_f64() >= Some(1.0);
                let least = limited || json["status"] == "least_squares" && !square;
                assert_eq!(
                    json["status"] == "converged" || least,
                    run.status == 0,
                    "{name}: {}",
                    json["status"]
                );
                if run.status == 0 && !least {
                    solved += 1;
                    assert!(found <= 1e-8 + doubt, "{name}: residual {found:e}, doubt {doubt:e}");
                    assert!(json["relative_residual"].as_f64().unwrap() <= 1e-8, "{name}");
                } else {
                    unsolved += 1;
                }
                if let Some(told) = json["relative_residual"].as_f64() {
                    assert!(
                        (told - found).abs() <= 1e-6 * found + doubt,
                        "{name}: told {told:e}, found {found:e}"
                    );
                }
            }
            other => panic!("{name}: status {other} {}", run.stderr),
        }
    }
    println!("{solved} solved, {unsolved} not solved");
    assert!(solved >= 38);
}

#[test]
fn broken_files_end_in_one_line_and_odd_ones_do_not_panic() {
    let Some(folder) = folder() else { return };
    let f = Folder::new();
    for kind in ["malformed", "variants"] {
        for entry in std::fs::read_dir(folder.join(kind)).unwrap() {
            let path = entry.unwrap().path();
            let run = f.run(["info", path.to_str().unwrap()]);
            assert!([0, 3].contains(&run.status), "{}: status {} {}", path.display(), run.status, run.stderr);
            assert_eq!(run.stderr.lines().count(), usize::from(run.status == 3), "{}", run.stderr);
        }
    }
}
