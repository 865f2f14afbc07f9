//! Files of options, and the report page.

use crate::support::Folder;
use std::collections::BTreeSet;

#[test]
fn options_come_from_a_file_and_the_command_line_wins() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 12 -o a.mtx");
    f.write(
        "solver.toml",
        "# for this model\ntolerance = 1e-11 # tight\nmethod = \"minres\"\nmax-iterations = 900\nquiet = true\n\
         dry-run = false\njson = 'r.json'\n",
    );
    assert_eq!(f.ok("solve a.mtx --config solver.toml").stdout, "");
    let json = |f: &Folder| serde_json::from_str::<serde_json::Value>(&f.read("r.json")).unwrap();
    let first = json(&f);
    assert_eq!(first["method"], "minres");
    assert!(first["relative_residual"].as_f64().unwrap() <= 1e-11);
    f.ok("solve --method=cg a.mtx --tolerance 1e-3 --config=solver.toml");
    let second = json(&f);
    assert_eq!(second["method"], "cg");
    assert!(second["iterations"].as_u64() < first["iterations"].as_u64());
    // An option of the file that conflicts with the command line is ignored.
    assert!(f.ok("solve a.mtx --dry-run --config solver.toml").stdout.contains("Nothing was solved"));
    for (content, words) in [
        (
            "tolerance = 1e-9\ntolerence = 1e-8\n",
            "bad.toml:2: unknown option `tolerence`: did you mean `tolerance`?",
        ),
        ("x = 1\n", "bad.toml:1: unknown option `x`; the options are rhs, output, method"),
        ("config = 'more.toml'\n", "bad.toml:1: unknown option `config`"),
        ("\n\ntolerance = \"tight\"\n", "bad.toml:3: invalid value 'tight' for '--tolerance"),
        ("method = \"magic\"\n", "bad.toml:1: invalid value 'magic' for '--method"),
        ("quiet = 1\n", "bad.toml:1: `quiet` must be true or false"),
        ("tolerance = [1e-8]\n", "bad.toml:1: `tolerance` must be a string or a number"),
        ("[method]\nname = 1\n", "bad.toml:1: `method` must be a string or a number"),
        ("quiet = true\nquiet = true\n", "bad.toml:2: duplicate key"),
        ("quiet\n", "bad.toml:1: "),
        ("\u{0}", "bad.toml:1: "),
    ] {
        f.write("bad.toml", content);
        let run = f.fails(3, "solve a.mtx --config bad.toml -o x.mtx");
        assert!(run.stderr.starts_with("residua: bad.toml:"), "{content}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{content}: no `{words}` in {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{content}: {}", run.stderr);
    }
    f.write("bad.toml", [0xff, 0xfe]);
    assert!(f.fails(3, "solve a.mtx --config bad.toml").stderr.contains("UTF-8"));
    assert!(f.fails(3, "solve a.mtx --config none.toml").stderr.starts_with("residua: none.toml: "));
    // Errors of the command line stay the same.
    assert!(f.fails(2, "solve a.mtx --config solver.toml --method magic").stderr.contains("'magic'"));
    let run = f.fails(2, "solve a.mtx --config solver.toml --json solver.toml");
    assert!(run.stderr.contains("overwrite an input file"), "{}", run.stderr);
}

/// Fails unless tags are opened and closed in order.
fn check_html(text: &str) {
    const VOID: [&str; 1] = ["meta"];
    let mut open: Vec<String> = Vec::new();
    let body = text.strip_prefix("<!DOCTYPE html>\n").expect("a document");
    for part in body.split('<').skip(1) {
        let (tag, rest) = part.split_once('>').expect("a tag ends");
        assert!(!rest.contains('>'), "a stray '>' in {part}");
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "in {part}");
        } else if !tag.ends_with('/') && !VOID.contains(&tag.split(' ').next().unwrap()) {
            open.push(tag.split(' ').next().unwrap().to_string());
        }
    }
    assert!(open.is_empty(), "{open:?} left open");
}

#[test]
fn a_page_for_a_colleague_tells_all_and_fetches_nothing() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 20x15 -o <a>&b.mtx");
    let folder = f.path("");
    let absolute = f.path("<a>&b.mtx");
    f.run(["solve", absolute.to_str().unwrap(), "--rhs", "a-random:3", "--report", "page.html", "--quiet"]);
    let page = f.read("page.html");
    check_html(&page);
    for words in [
        "A x = b with &lt;a&gt;&amp;b.mtx",
        "verdict good",
        "Solved: converged in ",
        "300 x 300",
        "A times a random x, seed 3",
        "conjugate gradients",
        "poly",
        "not reached",
        "residua solve &#39;&lt;a&gt;&amp;b.mtx&#39; --rhs a-random:3 --report page.html --quiet",
        env!("CARGO_PKG_VERSION"),
        "prefers-color-scheme:dark",
        "@media print",
    ] {
        let plain = words.replace("&#39;", "'");
        assert!(page.contains(words) || page.contains(&plain), "no `{words}`");
    }
    assert_eq!(page.matches("<svg").count(), 2, "the matrix and the convergence");
    assert!(!page.contains(folder.to_str().unwrap()), "folders of this machine");
    // The names of the two XML vocabularies are the only addresses.
    let addresses: BTreeSet<&str> =
        page.split("http").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let names = ["://www.w3.org/1999/xlink", "://www.w3.org/2000/svg"];
    assert!(addresses.into_iter().eq(names), "{page}");
    assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("url("));

    f.ok("generate helmholtz2d --size 30 -o h.mtx");
    let run = f.run(["solve", "h.mtx", "--method", "cg", "--max-iterations", "2", "--report", "not.html"]);
    assert_eq!(run.status, 4);
    assert!(run.stdout.contains("report    written to not.html"), "{}", run.stdout);
    let page = f.read("not.html");
    check_html(&page);
    assert!(page.contains("verdict bad") && page.contains("Not solved: "), "{page}");
    // With `--report -` the page replaces the report for a terminal.
    f.write("b.mtx", format!("%%MatrixMarket matrix array real general\n300 2\n{}", "1\n".repeat(600)));
    let run = f.run(["solve", absolute.to_str().unwrap(), "--rhs", "b.mtx", "--report", "-"]);
    check_html(&run.stdout);
    assert!(
        run.stdout.contains("2 of 2 right-hand sides converged") && run.stdout.contains("Right-hand sides")
    );
}

#[test]
fn the_report_tells_where_b_came_from() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 6 -o a.mtx");
    f.write("b.mtx", format!("%%MatrixMarket matrix array real general\n36 2\n{}", "1\n".repeat(72)));
    let of = |line: &str| f.ok(line).json()["right_hand_side"].clone();
    let b = of("solve a.mtx --json -");
    assert_eq!((&b["source"], &b["columns"]), (&"generated".into(), &1.into()));
    assert_eq!(of("solve a.mtx --rhs random:5 --json -")["name"], "random in [-1, 1), seed 5");
    let b = of("solve a.mtx --rhs b.mtx --json -");
    assert_eq!((&b["source"], &b["name"], &b["columns"]), (&"file".into(), &"b.mtx".into(), &2.into()));
    let member = |name: &'static str| std::fs::read_to_string(f.path(name)).unwrap();
    f.write("a.tar", crate::formats::tar(&[("a/a.mtx", &member("a.mtx")), ("a/a_b.mtx", &member("b.mtx"))]));
    let b = of("solve a.tar --json -");
    assert_eq!((&b["source"], &b["name"]), (&"matrix".into(), &"a.tar:a/a_b.mtx".into()));
    // The page says how the file was interpreted.
    f.write(
        "twice.mtx",
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 4\n1 1 2\n2 1 1\n1 2 1\n2 2 2\n",
    );
    let run = f.ok("solve twice.mtx --json -");
    assert!(
        run.json()["notes"][0].as_str().unwrap().starts_with("given in both triangles"),
        "{}",
        run.stdout
    );
    assert!(f.ok("solve twice.mtx").stdout.contains("in both triangles"));
    let run = f.ok("convert twice.mtx once.mtx");
    assert!(
        run.stderr.starts_with("residua: twice.mtx: given in both triangles of a symmetric matrix"),
        "{}",
        run.stderr
    );
    assert_eq!(f.read("once.mtx").lines().count(), 5);
}

/// `script` of util-linux provides a terminal.
#[test]
#[cfg(target_os = "linux")]
fn who_waits_at_a_terminal_is_told_how_far_it_is() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 300 -o a.mtx");
    let told = |options: &str| {
        let line = format!("{} solve a.mtx --device cpu {options}", crate::support::residua().display());
        let mut command = std::process::Command::new("script");
        command.current_dir(f.path("")).args(["-qec", &line, "/dev/null"]).stdin(std::process::Stdio::null());
        command.output().ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let long = "--method cg --preconditioner none --tolerance 1e-12";
    let Some(text) = told(long) else {
        eprintln!("SKIPPED: there is no `script` to make a terminal");
        return;
    };
    assert!(text.contains("iteration ") && text.contains("/s  residual ") && text.contains("[="), "{text:?}");
    // The progress line has been erased before the report is printed.
    let report = text.rfind("\r\u{1b}[K").map_or("", |at| &text[at + 4..]);
    assert!(report.starts_with("A "), "{text:?}");
    assert_eq!(told(&format!("{long} --quiet")).as_deref(), Some(""));
}
