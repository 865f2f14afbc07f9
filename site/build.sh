#!/bin/sh
# Builds the site into target/site/html, warnings as errors: the programs of the gallery run, links are followed.
#
#   site/build.sh
#
# python/.venv, as python/scripts/test.sh makes it, has the package; where there is none, target/site-venv is made and
# residua is compiled into it. RESIDUA names the command, else the one of the profile dev is taken, or built.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
venv=python/.venv
if ! [ -e "$venv/installed" ]; then
    venv=target/site-venv
    if ! [ -e "$venv/installed" ]; then
        "${PYTHON:-python3}" -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check ./python matplotlib
        echo residua >"$venv/installed"
    fi
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check -r site/requirements.txt
command=${RESIDUA:-$target/debug/residua}
[ -x "$command" ] || cargo build --locked --quiet --all-features
"$venv/bin/python" site/stage.py target/site/source "$command"
"$venv/bin/python" -m sphinx -W --keep-going -n -q -E -b html target/site/source target/site/html
echo "target/site/html/index.html"
