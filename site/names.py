"""Whether the names that a page tells are there: of the Python package, the C interface and the command."""

import inspect
import pathlib
import re
import sys


def check(root: pathlib.Path, page: str, help_of_command: str) -> None:
    """Ends the program with the names that are not there.

    Looked at are `residua.NAME` and `residua_NAME`, `--OPTION` in code that starts with `residua`, keywords of calls
    of `Solver(...)`, and methods `.NAME(` and attributes behind `solver`, `s`, `report`.
    """
    import residua

    header = (root / "capi/include/residua.h").read_text()
    missing = [f"residua.{name}" for name in re.findall(r"\bresidua\.(\w+)", page) if not hasattr(residua, name)]
    missing += [name for name in re.findall(r"\bresidua_\w+", page) if not re.search(rf"\b{name}\b", header)]
    for code in re.findall(r"`(residua [^`]*)`", page):
        missing += [f"{option} in {code}" for option in re.findall(r"--[\w-]+", code) if option not in help_of_command]
    keywords = set(inspect.signature(residua.Solver).parameters)
    calls = re.findall(r"Solver\(([^`]*?)\)`", page)
    given = [word for call in calls for word in re.findall(r"(\w+)=", re.sub(r'"[^"]*"', "", call))]
    missing += [f"Solver({word}=)" for word in given if word not in keywords]
    for things, owner in ((r"s|solver", residua.Solver), ("report", residua.Report)):
        found = re.findall(rf"`(?:{things})\.(\w+)", page)
        missing += [f"{owner.__name__}.{name}" for name in found if not hasattr(owner, name)]
        if not found:
            missing.append(f"any name of {owner.__name__}: has the page been written otherwise?")
    options = re.findall(r'residua_options_set\(\w+, "(\w+)"', page)
    named = header.partition("Names:")[2].partition("*/")[0]
    missing += [f'option "{name}"' for name in options if not re.search(rf"\b{name}\b", named)]
    if missing:
        sys.exit("coming_from.md tells of what is not there: " + ", ".join(sorted(set(missing))))
