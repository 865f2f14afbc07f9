//! `info`, `convert`, `reorder`, `bench`, `generate`, `devices`.

use crate::support::{Folder, check_svg, package, read_matrix, residua};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the entries by their positions.
fn places(f: &Folder, name: &str) -> BTreeMap<(usize, usize), (f64, f64)> {
    read_matrix(&f.path(name)).entries.into_iter().map(|(i, j, v)| ((i, j), v)).collect()
}

#[test]
fn info_tells_what_one_would_ask() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 20x10 -o a.mtx");
    let run = f.ok("info a.mtx --spy s.svg --json i.json");
    for word in [
        "200 x 200, 940 nonzeros",
        "symmetric",
        "positive",
        "dominant in every row",
        "bandwidth   20",
        "rcm",
        "cg",
    ] {
        assert!(run.stdout.to_lowercase().contains(word) || word == "rcm", "{word} in {}", run.stdout);
    }
    check_svg(&f.read("s.svg"));
    let json: serde_json::Value = serde_json::from_str(&f.read("i.json")).unwrap();
    assert_eq!(
        (&json["rows"], &json["nonzeros"], &json["symmetric"]),
        (&200.into(), &940.into(), &true.into())
    );
    assert_eq!((&json["bandwidth"], &json["bandwidth_rcm"]), (&20.into(), &10.into()));
    assert_eq!((&json["diagonal"]["positive"], &json["strictly_dominant_rows"]), (&200.into(), &56.into()));
    assert_eq!((&json["components"], &json["advice"]["method"]), (&1.into(), &"cg".into()));
    let histogram = json["row_lengths"]["histogram"].as_array().unwrap();
    assert_eq!(histogram.iter().map(|bin| bin["rows"].as_u64().unwrap()).sum::<u64>(), 200);
    let formats = json["formats"].as_array().unwrap();
    assert!(formats.len() >= 7 && formats.iter().all(|format| format["bytes"].as_u64().unwrap() > 940 * 8));

    f.ok("generate arrow --size 5000 -o arrow.mtx");
    let json = f.ok("info arrow.mtx --json -").json();
    let ell = json["formats"].as_array().unwrap().iter().find(|format| format["format"] == "ell").unwrap();
    assert!(ell["refused"].is_string(), "an arrow in ELL wastes memory: {ell}");
    f.ok("generate convection2d --size 9 -o c.mtx");
    let json = f.ok("info c.mtx --json -").json();
    assert_eq!((&json["pattern_symmetric"], &json["symmetric"]), (&true.into(), &false.into()));
    assert_eq!(json["advice"]["method"], "gmres");
    assert!(json["words"].as_array().unwrap().len() > 1 && json["look"]["structure"]["rank"] == 81);
    f.ok("generate random --size 300x20 --row-lengths 0..9 -o r.mtx");
    let json = f.ok("info r.mtx --json -").json();
    assert!(json["bandwidth_rcm"].is_null() && json["empty_rows"].as_u64().unwrap() > 0);
    check_svg(&f.ok("info r.mtx --spy -").stdout);
}

#[test]
fn convert_keeps_every_entry() {
    let f = Folder::new();
    f.write("u.mtx", "%%MatrixMarket MATRIX Coordinate Real General\n\n% note\n3 3 5\n3 1 0.5D1\n1 1 1\n1 3 5\n2 2 0.1\n2 2 0.2\n");
    f.ok("convert u.mtx s.mtx");
    let text = f.read("s.mtx");
    assert!(text.starts_with("%%MatrixMarket matrix coordinate real symmetric\n"), "{text}");
    assert_eq!(
        places(&f, "s.mtx"),
        BTreeMap::from([
            ((0, 0), (1.0, 0.0)),
            ((0, 2), (5.0, 0.0)),
            ((1, 1), (0.1 + 0.2, 0.0)),
            ((2, 0), (5.0, 0.0)),
        ])
    );
    f.ok("convert s.mtx g.mtx.gz --general");
    assert_eq!(places(&f, "g.mtx.gz"), places(&f, "s.mtx"));
    f.ok("convert g.mtx.gz back.mtx");
    assert_eq!(f.read("back.mtx"), text);
    f.write("b.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2e-300\n0\n-0.1\n");
    f.ok("convert b.mtx c.mtx");
    let c = read_matrix(&f.path("c.mtx"));
    assert_eq!((c.column(0), c.column(1)), (vec![(1.0, 0.0), (2e-300, 0.0)], vec![(0.0, 0.0), (-0.1, 0.0)]));
    let run = f.run_with(["convert", "-", "-"], text.as_bytes());
    assert_eq!((run.status, run.stdout), (0, text));
    f.write("z.mtx", "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 2 0\n2 1 0 1\n");
    f.ok("convert z.mtx y.mtx");
    assert!(f.read("y.mtx").contains("complex hermitian"));
    assert_eq!(places(&f, "y.mtx"), places(&f, "z.mtx"));
}

#[test]
fn a_generated_matrix_can_be_shuffled() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 9x8 -o a.mtx");
    f.ok("generate poisson2d --size 9x8 --shuffle 5 -o b.mtx");
    f.ok("generate poisson2d --size 9x8 --shuffle 5 -o c.mtx");
    assert_eq!(f.read("b.mtx"), f.read("c.mtx"));
    let degrees = |name| {
        let mut degrees = vec![0; 72];
        places(&f, name).keys().for_each(|&(i, _)| degrees[i] += 1);
        degrees.sort_unstable();
        degrees
    };
    assert!(f.read("a.mtx") != f.read("b.mtx") && degrees("a.mtx") == degrees("b.mtx"));
    let run = f.fails(2, "generate random --size 20x30 --shuffle 5 -o d.mtx");
    assert!(run.stderr.contains("20 x 30 is not square"), "{}", run.stderr);
}

#[test]
fn reorder_renumbers_and_tells_by_how_much() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 40x7 -o a.mtx");
    let run = f.ok("reorder a.mtx -o b.mtx --permutation p.txt --json r.json");
    assert!(run.stdout.contains("bandwidth") && run.stdout.contains("profile"), "{}", run.stdout);
    let json: serde_json::Value = serde_json::from_str(&f.read("r.json")).unwrap();
    let mut keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["bandwidth_after", "bandwidth_before", "profile_after", "profile_before", "seconds"]);
    let old: Vec<usize> = f.read("p.txt").lines().map(|line| line.parse().unwrap()).collect();
    let mut seen = old.clone();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..280), "a permutation");
    let (a, b) = (places(&f, "a.mtx"), places(&f, "b.mtx"));
    assert_eq!(a.len(), b.len());
    for ((i, j), value) in &b {
        assert_eq!(a[&(old[*i], old[*j])], *value);
    }
    let bandwidth =
        |m: &BTreeMap<(usize, usize), (f64, f64)>| m.keys().map(|(i, j)| i.abs_diff(*j)).max().unwrap();
    assert_eq!(json["bandwidth_before"], bandwidth(&a));
    assert_eq!(json["bandwidth_after"], bandwidth(&b));
    assert_eq!((bandwidth(&a), bandwidth(&b)), (40, 7));
    let profile = |m: &BTreeMap<(usize, usize), (f64, f64)>| {
        let mut first: Vec<usize> = (0..280).collect();
        m.keys().for_each(|&(i, j)| first[i] = first[i].min(j));
        first.iter().enumerate().map(|(i, first)| i - first).sum::<usize>()
    };
    assert_eq!(json["profile_before"], profile(&a));
    assert_eq!(json["profile_after"], profile(&b));

    // A grid that is numbered well already is not changed, and the report says so.
    f.ok("generate tridiagonal --size 50 -o t.mtx");
    let run = f.ok("reorder t.mtx -o u.mtx");
    assert!(run.stdout.contains("the order is kept"), "{}", run.stdout);
    assert_eq!(f.read("t.mtx"), f.read("u.mtx"));
}

#[test]
fn reorder_for_factors_counts_their_fill() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 40 -o a.mtx");
    for method in ["nested-dissection", "minimum-degree"] {
        let run =
            f.ok(&format!("reorder a.mtx -o b.mtx --method {method} --permutation p.txt --json r.json"));
        assert!(run.stdout.contains("entries of a factor"), "{}", run.stdout);
        let json: serde_json::Value = serde_json::from_str(&f.read("r.json")).unwrap();
        // In natural order the factor fills the band of the 40 x 40 grid: about 1600 x 41 entries.
        assert!(json["factor_entries_before"].as_f64().unwrap() > 60_000.0, "{json}");
        assert!(json["factor_entries_after"].as_f64().unwrap() < 25_000.0, "{json}");
        let mut seen: Vec<usize> = f.read("p.txt").lines().map(|line| line.parse().unwrap()).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..1600), "a permutation");
    }
    f.fails(2, "reorder a.mtx -o b.mtx --method none");
    let run = f.ok("info a.mtx --json i.json");
    let json: serde_json::Value = serde_json::from_str(&f.read("i.json")).unwrap();
    assert!(run.stdout.contains("multiplications ("), "{}", run.stdout);
    assert!(json["factor"]["entries"].as_f64().unwrap() < 25_000.0, "{json}");
}

#[test]
fn bench_compares_the_formats() {
    let f = Folder::new();
    f.ok("generate arrow --size 6000 -o arrow.mtx");
    f.ok("generate poisson2d --size 20 -o a.mtx");
    let run = f.ok("bench a.mtx arrow.mtx --device cpu --time 0.01 --json b.json --csv b.csv");
    assert!(run.stdout.contains("copy bandwidth") && run.stdout.contains("refused"), "{}", run.stdout);
    let json: serde_json::Value = serde_json::from_str(&f.read("b.json")).unwrap();
    let lines = json.as_array().unwrap();
    let expected = "break_even bytes columns convert_seconds device format gb_s matrix nonzeros padding \
                    product_seconds refused rows share_of_copy type";
    for line in lines {
        let mut keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, expected.split(' ').collect::<Vec<_>>());
        let refused = line["refused"].is_string();
        assert_eq!(refused, line["product_seconds"].is_null(), "{line}");
        if !refused {
            assert!(line["product_seconds"].as_f64().unwrap() > 0.0 && line["gb_s"].as_f64().unwrap() > 0.0);
            assert!(line["share_of_copy"].as_f64().unwrap() > 0.0);
        }
    }
    assert_eq!(lines.iter().filter(|line| line["matrix"] == "a.mtx").count() * 2, lines.len());
    assert_eq!(lines.iter().filter(|line| line["type"] == "f32").count() * 2, lines.len());
    for word in ["claim", "ell wastes space on ragged rows", "coo takes the most bytes", "holds", "does not"]
    {
        assert!(run.stdout.contains(word), "{word} in {}", run.stdout);
    }
    let of = |matrix: &str, format: &str| {
        lines.iter().find(|l| l["matrix"] == matrix && l["format"] == format).unwrap()
    };
    assert!(of("arrow.mtx", "ell")["refused"].is_string());
    assert_eq!(
        (&of("a.mtx", "csr")["convert_seconds"], &of("a.mtx", "csr")["padding"]),
        (&0.0.into(), &0.into())
    );
    let csv = f.read("b.csv");
    assert_eq!(csv.lines().count(), lines.len() + 1);
    assert!(csv.starts_with("matrix,rows,columns,nonzeros,device,format,type,"));

    let json = f.ok("bench a.mtx --device cpu --types f64 --formats sell,coo --time 0.01 --json -").json();
    let names: Vec<&str> =
        json.as_array().unwrap().iter().map(|line| line["format"].as_str().unwrap()).collect();
    assert!(names.len() == 2 && names.contains(&"sell") && names.contains(&"coo"), "{names:?}");

    let line = "bench a.mtx --device cpu --formats csr --types f64,f32,mixed --time 0.01 --json -";
    let json = f.ok(line).json();
    let bytes = |k: usize| json[k]["bytes"].as_u64().unwrap();
    let kinds: Vec<&str> = json.as_array().unwrap().iter().map(|l| l["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["f64", "f32", "mixed"]);
    assert_eq!(bytes(0) - bytes(1), 4 * json[0]["nonzeros"].as_u64().unwrap());
    assert_eq!(bytes(1), bytes(2));
}

/// `bench` generates model problems without a file, and has a line for the automatic choice.
#[test]
fn bench_makes_its_matrices_and_tells_the_automatic_choice() {
    let f = Folder::new();
    let line = "bench --generate poisson3d:9,random:300x200,row-lengths=4..9,seed=3 --device cpu";
    f.fails(2, line);
    let models = "--generate poisson3d:9 --generate random:300x200,row-lengths=4..9,seed=3";
    let json = f.ok(&format!("bench {models} --device cpu --types f64 --time 0.01 --json -")).json();
    let lines = json.as_array().unwrap();
    let of = |matrix: &str| lines.iter().filter(|l| l["matrix"] == matrix).collect::<Vec<_>>();
    let (cube, random) = (of("poisson3d:9"), of("random:300x200,row-lengths=4..9,seed=3"));
    assert_eq!((cube.len(), cube[0]["rows"].as_u64()), (random.len(), Some(729)));
    assert_eq!((&random[0]["rows"], &random[0]["columns"]), (&300.into(), &200.into()));
    // 6 and -1 fit a type of half the width, so the automatic choice reads no more bytes than CSR. Without narrower
    // values the proposed format reads at most a third more; which format is fastest depends on the machine.
    for (word, most) in [("measured:", 1.0), ("plain:", 1.34)] {
        let chosen = cube.iter().find(|l| l["format"].as_str().unwrap().starts_with(word)).unwrap();
        assert!(chosen["product_seconds"].as_f64().unwrap() > 0.0);
        assert!(chosen["bytes"].as_f64().unwrap() <= most * cube[0]["bytes"].as_f64().unwrap(), "{chosen}");
    }
    let only =
        f.ok("bench --generate arrow:50 --device cpu --types f64 --formats measured --time 0 --json -");
    assert_eq!(only.json().as_array().unwrap().len(), 2);
    let copies =
        "bench --generate arrow:50 --copies 3 --device cpu --types f64 --formats csr --time 0 --json -";
    let line = &f.ok(copies).json()[0];
    assert_eq!((&line["matrix"], &line["rows"]), (&"arrow:50 x 3".into(), &150.into()));
    for (status, line) in [
        (2, "bench"),
        (2, "bench --generate arrow:50 --copies 0"),
        (2, "bench --generate arrow:50 --copies 200000000"),
        (2, "bench --generate cube:9"),
        (2, "bench --generate poisson3d:9,seed=1"),
        (2, "bench --generate poisson3d:0"),
        (2, "bench --generate poisson3d:9 --types f16"),
        (2, "bench --generate poisson3d:9 --formats csv"),
        (2, "bench --generate poisson3d:9 --time -1"),
        (3, "bench missing.mtx"),
    ] {
        let run = f.fails(status, line);
        assert!(!run.stderr.contains("panicked"), "{line}: {}", run.stderr);
    }
}

#[test]
fn generate_makes_what_it_lists() {
    let f = Folder::new();
    let list = f.ok("generate").stdout;
    for kind in list.lines().skip(2).map(|line| line.split_whitespace().next().unwrap()) {
        let three = kind.contains("3d");
        let size = if three { "3" } else { "40" };
        f.ok(&format!("generate {kind} --size {size} -o a.mtx"));
        let a = read_matrix(&f.path("a.mtx"));
        assert!(a.rows > 8 && !a.entries.is_empty(), "{kind}");
        f.ok("info a.mtx --json i.json");
    }
    f.ok("generate jumping2d --size 9 --seed 1 -o a.mtx");
    f.ok("generate jumping2d --size 9 --seed 2 -o b.mtx");
    f.ok("generate jumping2d --size 9 -o c.mtx");
    assert_ne!(f.read("a.mtx"), f.read("b.mtx"));
    assert_eq!(f.read("a.mtx"), f.read("c.mtx"));
    f.ok("generate random --size 50x80 --row-lengths power:1..20:2 -o r.mtx");
    let r = read_matrix(&f.path("r.mtx"));
    assert_eq!((r.rows, r.columns), (50, 80));
    // A right-hand side has a number for each row; earlier versions made one for each column.
    for rhs in ["random:3", "ones", "a-random:3"] {
        f.ok(&format!("solve r.mtx --rhs {rhs} --device cpu -q -o x.mtx"));
    }
}

/// The files in `matrices/` are made by the commands in its README. Powers may differ in the last bit between machines.
#[test]
fn shipped_matrices_are_made_by_the_commands_beside_them() {
    let f = Folder::new();
    let folder = package().join("matrices");
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut count = 0;
    for line in readme.lines().filter(|line| line.starts_with("| `")) {
        let words: Vec<&str> = line.split('`').collect();
        f.ok(&format!("{} -o a.mtx", words[3].strip_prefix("residua ").unwrap()));
        let (made, shipped) = (read_matrix(&f.path("a.mtx")), read_matrix(&folder.join(words[1])));
        assert_eq!(made.entries.len(), shipped.entries.len(), "{}", words[1]);
        for (a, b) in made.entries.iter().zip(&shipped.entries) {
            assert!(a.0 == b.0 && a.1 == b.1 && (a.2.0 - b.2.0).abs() <= 1e-14 * a.2.0.abs(), "{}", words[1]);
        }
        count += 1;
    }
    assert_eq!(count, std::fs::read_dir(&folder).unwrap().count() - 1);
}

/// If the collection has the matrix of a model problem, both must be the same. The exception is `cusp_7pt_10x10x10`,
/// which is A + I: its diagonal is 7 instead of the 6 of the 7-point Laplacian (as the index's smallest eigenvalue,
/// 1.243, shows).
#[test]
fn generate_agrees_with_the_collection() {
    let Some(folder) = crate::matrices::folder() else { return };
    let f = Folder::new();
    for (line, name, shift) in [
        ("poisson2d --size 10x10", "cusp_5pt_10x10.mtx", 0.0),
        ("poisson2d-9 --size 10x10", "cusp_9pt_10x10.mtx", 0.0),
        ("poisson2d-9 --size 30x30", "gr_30_30.mtx", 0.0),
        ("poisson3d --size 10x10x10", "cusp_7pt_10x10x10.mtx.gz", 1.0),
        ("tridiagonal --size 100", "cusp_3pt_100.mtx", 0.0),
    ] {
        f.ok(&format!("generate {line} -o a.mtx"));
        let theirs: BTreeMap<_, _> =
            read_matrix(&folder.join(name)).entries.into_iter().map(|(i, j, v)| ((i, j), v)).collect();
        let mut ours = places(&f, "a.mtx");
        ours.iter_mut().filter(|((i, j), _)| i == j).for_each(|(_, value)| value.0 += shift);
        assert_eq!(ours, theirs, "{name}");
    }
}

/// On a machine without a GPU, where packages are made and tested.
#[test]
#[cfg(feature = "cuda")]
fn devices_tells_which_kernels_came_compiled() {
    use residua::backend::cuda::compile::{Unit, pack};
    // A frame of zstd with one block that is stored as it is.
    let stored = |bytes: &[u8]| {
        let (length, block) = (bytes.len() as u32, (bytes.len() as u32) << 3 | 1);
        Ok([&[0x28, 0xb5, 0x2f, 0xfd, 0xa0], &length.to_le_bytes()[..], &block.to_le_bytes()[..3], bytes]
            .concat())
    };
    let units = [Unit::new("memory.cu"), Unit::new("pack.cu")];
    let packed = pack("12.9", &["sm_80", "sm_90"], &units, |_, _| Ok(vec![7; 100]), stored).unwrap();
    let f = Folder::new();
    let told = |bytes: &[u8]| {
        let path = f.write("residua.kernels", bytes);
        let output = f.command().arg("devices").env("RESIDUA_KERNELS", path).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let whole = told(&packed);
    if whole.contains("cuda:0") {
        return eprintln!("SKIPPED, there is a GPU, whose own kernels are told: {whole}");
    }
    assert!(whole.contains("compiled in advance: 2 for sm_80, 2 for sm_90, in"), "{whole}");
    let cut = told(&packed[..packed.len() - 1]);
    assert!(cut.contains("its part for sm_90 is damaged"), "{cut}");
}

/// A matrix in Matrix Market format whose dry run names the prices in use.
#[test]
fn prices_come_from_the_file_that_the_environment_names() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 6 -o a.mtx");
    let with = |prices: &str| {
        let mut command = std::process::Command::new(residua());
        command.args(["solve", "a.mtx", "--device", "cpu", "--dry-run", "--json", "-"]);
        command.current_dir(f.path("")).env("RESIDUA_PRICES", prices).output().unwrap()
    };
    let speeds = r#"{"copies": 3e10, "launch": 1e-6, "multiplications": 8e9}"#;
    f.write("mine.json", format!(r#"{{"name": "of my machine", "cpu": {speeds}, "gpu": null}}"#));
    let told: Value = serde_json::from_slice(&with("mine.json").stdout).unwrap();
    let decisions = told["trail"]["decisions"].as_array().unwrap();
    assert!(decisions.iter().any(|one| one["subject"] == "prices" && one["chosen"] == "of my machine"));
    f.write("damaged.json", "{}");
    let refused = with("damaged.json");
    assert_ne!(refused.status.code(), Some(0));
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(why.contains("RESIDUA_PRICES=damaged.json") && why.contains("name"), "{why}");
}

#[test]
fn devices_lists_the_cpu_and_help_helps() {
    let f = Folder::new();
    let run = f.ok("devices");
    assert!(run.stdout.contains("threads") && run.stdout.contains("GB/s"), "{}", run.stdout);
    let prices = f.ok("devices --prices").stdout;
    assert!(prices.contains("Cholesky: a multiplication") && prices.contains("unknowns"), "{prices}");
    assert!(prices.contains("shipped with residua"), "{prices}");
    // Information on CUDA, or the reason why there is none.
    assert!(run.stdout.contains("\ncuda"), "{}", run.stdout);
    assert!(f.ok("--version").stdout.starts_with("residua "));
    let help = f.ok("--help").stdout;
    for command in
        ["solve", "info", "convert", "reorder", "bench", "generate", "devices", "completions", "man"]
    {
        assert!(help.contains(command));
        assert!(f.ok(&format!("{command} --help")).stdout.contains("Usage: residua"));
    }
}

#[test]
fn shells_and_man_learn_the_command_from_itself() {
    let f = Folder::new();
    for (shell, sign) in
        [("bash", "_residua()"), ("zsh", "#compdef residua"), ("fish", "complete -c residua")]
    {
        let text = f.ok(&format!("completions {shell}")).stdout;
        assert!(text.contains(sign) && text.contains("preconditioner"), "{shell}: {text}");
    }
    f.fails(2, "completions cobol");
    f.ok("man pages/man1");
    let page = |name: &str| f.read(&format!("pages/man1/{name}.1"));
    assert!(page("residua").contains("solve"));
    assert!(
        page("residua-solve").contains("preconditioner") && page("residua-solve").contains(".TH residua")
    );
    f.write("file", "precious");
    assert!(f.fails(3, "man file").stderr.contains("file"));
}

#[test]
fn files_of_other_programs_are_solved_and_only_known_endings_are_written() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 3 -o a.mtx");
    f.write("b.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    f.ok("solve a.mtx --rhs b.txt -o x.npy");
    let run = f.fails(2, "solve a.mtx b.txt");
    assert!(run.stderr.contains("--rhs b.txt"), "{}", run.stderr);
    for line in
        ["convert a.mtx a.mat", "convert a.mtx a.rua", "solve a.mtx -o x.txt", "reorder a.mtx -o a.petsc"]
    {
        let run = f.fails(3, line);
        assert!(run.stderr.contains(".npz"), "{line}: {}", run.stderr);
    }
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    f.write("system.mtx", format!("{banner}%%AMGX rhs\n2 2 2\n1 1 2\n2 2 4\n2\n8\n"));
    let run = f.ok("solve system.mtx -o x.mtx");
    assert!(run.stdout.contains("came with the matrix"), "{}", run.stdout);
    assert!(f.read("x.mtx").ends_with("1\n2\n"), "{}", f.read("x.mtx"));
    let words = f.ok("completions bash").stdout;
    for word in ["chebyshev-single", "bicgstab", "sell", "cuda"] {
        assert!(words.contains(word), "{word}");
    }
}
