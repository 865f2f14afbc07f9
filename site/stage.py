"""Puts the site's pages into one folder: those of this folder, the repository's documents, and what programs print.

    python site/stage.py FOLDER COMMAND

The documents are copied to where they lie in the repository, so that links between them lead somewhere. COMMAND is
the program `residua`: its help becomes a page. The interpreter that runs this needs residua, matplotlib and SciPy.
"""

import ast
import os
import pathlib
import shutil
import subprocess
import sys

import names

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["python/README.md", "python/DEVIATIONS.md", "capi/README.md", "kernels/README.md"]
DOCUMENTS = ["README.md", "CHANGELOG.md", *PACKAGES]
FOLDERS = ["docs", "examples", "capi/include", "capi/fortran", "capi/examples"]
COMMANDS = ["solve", "info", "convert", "reorder", "bench", "generate", "devices", "completions", "man"]


def printed(*command: object, cwd: pathlib.Path) -> str:
    """What a program prints; it has to end well."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "COLUMNS": "100"}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with status {done.returncode}:\n{done.stderr}")
    return done.stdout


def gallery(folder: pathlib.Path) -> str:
    """Runs the programs of the gallery; a page of what each says of itself, prints and draws."""
    page = ["# Gallery", "Each program checks its own result, and the tests run it as it stands here."]
    for program in sorted((ROOT / "python/examples/gallery").glob("*.py")):
        shutil.copy(program, folder)
        told = printed(sys.executable, program, cwd=folder)
        title, _, text = ast.get_docstring(ast.parse(program.read_text())).partition("\n\n")
        made = f"made/{program.stem}"
        page += [f"## {' '.join(title.split()).rstrip('.')}", text, f"![picture of {program.name}]({made}.png)"]
        page += [f"```text\n{told}```", f"<details><summary>{program.name}</summary>"]
        page += [f"```{{literalinclude}} {made}.py\n:language: python\n```", "</details>"]
    return "\n\n".join(page) + "\n"


def main() -> None:
    folder, command = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "made").mkdir(parents=True)
    for page in [*(ROOT / "site").glob("*.md"), ROOT / "site/conf.py", ROOT / "site/first.py"]:
        shutil.copy(page, folder)
    for document in DOCUMENTS:
        (folder / document).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / document, folder / document)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name)

    (folder / "made/first.txt").write_text(printed(sys.executable, "first.py", cwd=folder))
    printed(command, "info", ROOT / "matrices/wathen-12x12.mtx", "--spy", "made/spy.svg", cwd=folder)
    texts = {name: printed(command, "help", name, cwd=folder) for name in COMMANDS}
    page = [f"## residua {name}\n\n```text\n{text.strip()}\n```" for name, text in texts.items()]
    (folder / "help.md").write_text("\n\n".join(["# Help", *page]) + "\n")
    names.check(ROOT, (folder / "docs/coming_from.md").read_text(), "".join(texts.values()))
    (folder / "gallery.md").write_text(gallery(folder / "made"))


main()
