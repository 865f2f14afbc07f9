"""Runs a program with residua's functions instead of those of ``scipy.sparse.linalg``.

    python -m residua.patch program.py [arguments]
    python -m residua.patch -m module [arguments]

In Python it is the function :func:`residua.patch`.
"""

import os
import runpy
import sys

from residua._patch import patch


def main(arguments: list[str]) -> None:
    """Runs the program or module that ``arguments`` name, with the remaining arguments."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print((__doc__ or "").strip())
        raise SystemExit(0 if arguments[:1] in (["-h"], ["--help"]) else 2)
    patch()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    # As Python itself does: the program's folder comes first.
    sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    # Python has put the current folder, or nothing, first.
    del sys.path[0]
    main(sys.argv[1:])
else:
    # `import residua.patch` must not hide the function of that name.
    sys.modules[__name__] = patch  # type: ignore[assignment]
