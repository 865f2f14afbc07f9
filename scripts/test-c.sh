#!/bin/sh
# Builds the C library and its example, with the address sanitizer, against the shared and the static library.
set -eu
cd "$(dirname "$0")/../capi"
cargo build --quiet
libraries=target/debug
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
flags="-std=c11 -Wall -Wextra -Werror -fsanitize=address -g -Iinclude"
gcc $flags examples/poisson.c -o "$made/shared" -L$libraries -lresidua
LD_LIBRARY_PATH=$libraries "$made/shared"
gcc $flags examples/poisson.c -o "$made/static" $libraries/libresidua.a -lpthread -ldl -lm
"$made/static"
# Random calls; the first argument of this script is how many.
gcc $flags tests/fuzz.c -o "$made/fuzz" -L$libraries -lresidua
LD_LIBRARY_PATH=$libraries "$made/fuzz" "${1:-1000000}"
