//! One system, several processes: this program starts itself again, two times, and the two solve together.
//!
//! `cargo run --release --example ranks`

#[cfg(all(unix, feature = "ranks"))]
fn main() -> residua::Result<()> {
    use residua::prelude::*;
    use residua::ranks::{Group, launch};
    let Some(group) = Group::from_environment()? else {
        let own = std::env::current_exe().expect("this program has a file");
        launch(2, |_| std::process::Command::new(&own), || false)?;
        return Ok(());
    };
    let solve = || -> Result<()> {
        // For now every rank has the whole matrix, and keeps its own rows.
        let a = residua::generate::poisson2d(100, 100)?;
        let mut solver = Solver::builder().build_spread(&Host, group.clone(), &a)?;
        let b = solver.own_part(&[1.0; 10_000]);
        let mut x = vec![0.0; b.len()];
        let report = solver.solve_into(&b, &mut x)?;
        if let Some(whole) = solver.whole(&x)? {
            println!(
                "{} after {} iterations on {:?}",
                report.outcome,
                report.iterations,
                group.description()
            );
            println!("x in the middle: {}", whole[5050]);
        }
        Ok(())
    };
    match solve() {
        Ok(()) => group.leave(0),
        // The program that started the ranks ends with this error, and so do all others.
        Err(error) => group.fail(&error),
    }
    Ok(())
}

#[cfg(not(all(unix, feature = "ranks")))]
fn main() {
    println!("built without ranks");
}
