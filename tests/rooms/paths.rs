//! Which files a file names: the paths of its code, followed to the files that define what they end at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module: a file, or a part of one in braces.
#[derive(Default)]
struct Module {
    file: String,
    /// What it defines itself, submodules left out.
    defined: BTreeSet<String>,
    /// Names that it imports or exports again, with their paths.
    names: BTreeMap<String, Vec<String>>,
    /// Modules all of whose names it takes.
    globs: Vec<Vec<String>>,
    /// Paths that its code names, and whether it only exports them again.
    paths: BTreeSet<(Vec<String>, bool)>,
    /// Single names in its code, which may come from `globs`.
    words: BTreeSet<String>,
}

/// All modules of a crate, by their paths.
#[derive(Default)]
pub struct Crate(BTreeMap<Vec<String>, Module>);

/// A file names another: through which path, and whether it only exports that again.
pub type Arrows = BTreeMap<(String, String), BTreeSet<(String, bool)>>;

fn text_end(text: &[char], start: usize, hashes: usize) -> usize {
    let mut at = start;
    while at < text.len() {
        let closed = text[at] == '"' && text[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes;
        at += if text[at] == '\\' && hashes == 0 { 2 } else { 1 };
        if closed {
            return at + hashes;
        }
    }
    at
}

/// Words, `::` and single signs; comments, texts and lifetimes left out.
pub fn tokens(text: &str) -> Vec<String> {
    let text: Vec<char> = text.chars().collect();
    let word = |c: &char| c.is_alphanumeric() || *c == '_';
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(&['/', '/']) {
            at += rest.iter().take_while(|c| **c != '\n').count();
        } else if rest.starts_with(&['/', '*']) {
            at += (2..rest.len()).find(|end| rest[*end - 2..].starts_with(&['*', '/'])).unwrap_or(rest.len());
        } else if rest[0] == '"' {
            at = text_end(&text, at + 1, 0);
        } else if rest[0] == '\'' {
            let closing = if rest.get(1) == Some(&'\\') {
                (3..rest.len()).find(|end| rest[*end] == '\'')
            } else {
                Some(2).filter(|end| rest.get(*end) == Some(&'\''))
            };
            at += closing.map_or_else(|| 1 + rest[1..].iter().take_while(|c| word(c)).count(), |end| end + 1);
        } else if word(&rest[0]) {
            let length = rest.iter().take_while(|c| word(c)).count();
            let name: String = rest[..length].iter().collect();
            let hashes = rest[length..].iter().take_while(|c| **c == '#').count();
            if ["r", "br"].contains(&name.as_str()) && rest.get(length + hashes) == Some(&'"') {
                at = text_end(&text, at + length + hashes + 1, hashes.max(1) * usize::from(hashes > 0));
            } else {
                at += length;
                found.push(name);
            }
        } else if rest.starts_with(&[':', ':']) {
            at += 2;
            found.push("::".into());
        } else {
            found.extend(Some(rest[0].to_string()).filter(|sign| !sign.trim().is_empty()));
            at += 1;
        }
    }
    found
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The paths of a tree of imports, each with the name that it gets here; a glob's name is `*`.
fn imports(tokens: &[String], at: &mut usize, before: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let mut path = before.to_vec();
    while *at < tokens.len() {
        let token = tokens[*at].as_str();
        *at += 1;
        match token {
            "::" => {}
            "{" => {
                while tokens[*at] != "}" {
                    imports(tokens, at, &path, found);
                    if tokens[*at] == "," {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "*" => return found.push((path, "*".into())),
            "self" if !path.is_empty() => {}
            _ => path.push(token.into()),
        }
        match tokens[*at].as_str() {
            "as" => {
                found.push((path, tokens[*at + 1].clone()));
                *at += 2;
                return;
            }
            "," | "}" | ";" => {
                let name = path.last().cloned().unwrap_or_default();
                return found.push((path, name));
            }
            _ => {}
        }
    }
}

impl Crate {
    /// The crate whose root is `src/lib.rs` in `folder`; tests inside it are left out.
    pub fn read(folder: &Path) -> Self {
        let mut modules = Self::default();
        modules.folder(&folder.join("src"), &[], &folder.join(""));
        modules
    }

    fn folder(&mut self, folder: &Path, module: &[String], root: &Path) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_stem().unwrap().to_str().unwrap().to_string();
            let mut module = module.to_vec();
            if name == "tests" || (module.is_empty() && name == "main") {
                continue;
            }
            if name != "mod" && name != "lib" {
                module.push(name);
            }
            if entry.is_dir() {
                self.folder(&entry, &module, root);
            } else if entry.extension().is_some_and(|ending| ending == "rs") {
                let file = entry.strip_prefix(root).unwrap().to_str().unwrap().to_string();
                self.add(&file, module, &tokens(&fs::read_to_string(&entry).unwrap()));
            }
        }
    }

    /// Adds a module and those that its text holds in braces.
    pub fn add(&mut self, file: &str, module: Vec<String>, tokens: &[String]) {
        let mut this = Module { file: file.into(), ..Module::default() };
        let (mut at, mut exported, mut test) = (0, false, false);
        while at < tokens.len() {
            let token = tokens[at].as_str();
            let next = tokens.get(at + 1).map_or("", String::as_str);
            at += 1;
            match token {
                "#" if tokens[at..].iter().take(6).eq(["[", "cfg", "(", "test", ")", "]"]) => {
                    test = true;
                    at += 6;
                    continue;
                }
                "pub" => {
                    if next == "(" {
                        at += tokens[at..].iter().take_while(|token| *token != ")").count() + 1;
                    }
                    exported = true;
                    continue;
                }
                "use" => {
                    let (mut found, mut end) = (Vec::new(), at);
                    imports(tokens, &mut end, &[], &mut found);
                    at = end;
                    for (path, name) in found.into_iter().filter(|_| !test) {
                        if name == "*" {
                            this.globs.push(path);
                        } else {
                            this.paths.insert((path.clone(), exported));
                            this.names.insert(name, path);
                        }
                    }
                }
                "mod" if tokens.get(at + 1).is_some_and(|token| token == "{") => {
                    let (start, mut depth) = (at + 2, 1);
                    let mut end = start;
                    while depth > 0 {
                        depth += i32::from(tokens[end] == "{") - i32::from(tokens[end] == "}");
                        end += 1;
                    }
                    if !test {
                        let inner = [&module[..], &[next.to_string()]].concat();
                        self.add(file, inner, &tokens[start..end - 1]);
                    }
                    at = end;
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union"
                | "macro_rules" => {
                    let name = tokens[at..].iter().find(|token| is_word(token) && *token != "mut");
                    this.defined.extend(name.cloned());
                }
                _ if is_word(token) && (at < 2 || !["::", "."].contains(&tokens[at - 2].as_str())) => {
                    let mut path = vec![token.to_string()];
                    while tokens.get(at).is_some_and(|sign| sign == "::")
                        && tokens.get(at + 1).is_some_and(|name| is_word(name))
                    {
                        path.push(tokens[at + 1].clone());
                        at += 2;
                    }
                    if path.len() > 1 {
                        this.paths.insert((path, false));
                    } else {
                        this.words.insert(token.into());
                    }
                }
                _ => {}
            }
            (exported, test) = (false, false);
        }
        self.0.insert(module, this);
    }

    /// The file that defines what a path ends at, as `module` sees it; none for a module or another crate.
    fn file(&self, module: &[String], path: &[String], depth: usize) -> Option<&str> {
        let mut here = module.to_vec();
        let mut rest = path;
        let mut inside = false;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => here.clear(),
                "self" => {}
                "super" => drop(here.pop()),
                name => {
                    let this = self.0.get(&here)?;
                    let child = [&here[..], &[name.to_string()]].concat();
                    if self.0.contains_key(&child) {
                        here = child;
                    } else if this.defined.contains(name) {
                        return Some(&this.file);
                    } else if depth == 0 {
                        return None;
                    } else if let Some(path) = this.names.get(name).filter(|path| path[..] != rest[..1]) {
                        return self.file(&here, &[path, after].concat(), depth - 1);
                    } else {
                        let globs = this.globs.iter().filter(|glob| self.owns(&here, glob, name));
                        let found = globs.map(|glob| [glob, rest].concat()).next();
                        return match found {
                            Some(path) => self.file(&here, &path, depth - 1),
                            // What a macro defines is where the macro is called.
                            None => inside.then_some(this.file.as_str()),
                        };
                    }
                }
            }
            inside |= ["crate", "super", "self"].contains(&first.as_str());
            rest = after;
        }
        None
    }

    /// Every file with those that it names.
    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (place, module) in &self.0 {
            let mut add = |path: &[String], again: bool| {
                if let Some(file) = self.file(place, path, 8).filter(|file| *file != module.file) {
                    let arrow = (module.file.clone(), file.to_string());
                    arrows.entry(arrow).or_default().insert((path.join("::"), again));
                }
            };
            module.paths.iter().for_each(|(path, again)| add(path, *again));
            for glob in &module.globs {
                for word in module.words.iter().filter(|word| !module.defined.contains(*word)) {
                    if self.owns(place, glob, word) {
                        add(&[&glob[..], std::slice::from_ref(word)].concat(), false);
                    }
                }
            }
        }
        arrows
    }

    /// Whether the module of a glob, which `module` has, defines, imports or takes a name by a glob of its own.
    fn owns(&self, module: &[String], glob: &[String], name: &str) -> bool {
        let mut here = module.to_vec();
        for part in glob {
            match part.as_str() {
                "crate" => here.clear(),
                "self" => {}
                "super" => drop(here.pop()),
                part => here.push(part.into()),
            }
        }
        self.0.get(&here).is_some_and(|this| {
            let below = || this.globs.iter().filter(|glob| glob.len() == 1 && glob[0] != "super");
            this.defined.contains(name)
                || this.names.contains_key(name)
                || below().any(|glob| self.owns(&here, glob, name))
        })
    }
}

/// The sets of files that name each other in a circle: each with its arrows. What a module exports again is left out,
/// and what it takes from its own submodules by their names: a folder's `mod.rs` is made of these.
pub fn circles(arrows: &Arrows) -> Vec<Vec<(String, String, String)>> {
    let direct: BTreeMap<(&str, &str), String> = arrows
        .iter()
        .filter_map(|((from, to), paths)| {
            let is_upward = |path: &str| ["crate", "super", "self"].iter().any(|root| path.starts_with(root));
            let used = paths.iter().filter(|(path, again)| !again && is_upward(path));
            let used: Vec<_> = used.map(|(path, _)| path.as_str()).collect();
            (!used.is_empty()).then(|| ((from.as_str(), to.as_str()), used.join(", ")))
        })
        .collect();
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in direct.keys() {
        next.entry(from).or_default().push(to);
    }
    let reached = |start: &str| {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![start]);
        while let Some(file) = waiting.pop() {
            let new = next.get(file).into_iter().flatten().filter(|to| seen.insert(**to));
            waiting.extend(new.copied().collect::<Vec<_>>());
        }
        seen
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|file| (*file, reached(file))).collect();
    let mut found = BTreeSet::new();
    for (file, forward) in all.iter().filter(|(file, forward)| forward.contains(*file)) {
        let back = |other: &&&str| all.get(*other).is_some_and(|reached| reached.contains(file));
        found.insert(forward.iter().filter(back).copied().collect::<BTreeSet<_>>());
    }
    let inside = |circle: &BTreeSet<&str>| {
        let arrows = direct.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        arrows.map(|((from, to), paths)| (from.to_string(), to.to_string(), paths.clone())).collect()
    };
    found.iter().map(inside).collect()
}
