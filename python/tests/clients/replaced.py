"""residua's functions under SciPy's names, by ``residua.patch``; the calls of each are counted."""

import functools

import residua
from residua import _patch


def replace() -> dict[str, int]:
    """From now on SciPy's names mean residua's functions."""
    calls = dict.fromkeys(_patch.NAMES, 0)

    def counted(name, function):
        @functools.wraps(function)
        def call(*args, **options):
            calls[name] += 1
            return function(*args, **options)

        return call

    _patch.OURS.update({name: counted(name, function) for name, function in _patch.OURS.items()})
    residua.patch()
    return calls
