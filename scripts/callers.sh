#!/bin/bash
# Lists the functions of src that neither src nor the bindings call: `private` ones, and `public` ones, which are an
# offer to programs (benchmarks, tests and documents are programs). Names are counted as words, so a function whose name
# another one shares may be missed. Exits with 1 if a private function has no caller.
set -euo pipefail
cd "$(dirname "$0")/.."

# What the language, the standard library or a derive macro calls by itself.
implicit=' deref deref_mut drop fmt neg possible_values with_simd main '

code=$(mktemp -d)
trap 'rm -rf "$code"' EXIT
counted() { sort | uniq -c | awk '{print $2, $1}'; }
code_of() { # without tests, which are the end of a file, and comments
    find "$@" -name '*.rs' ! -name tests.rs ! -path '*/tests/*' | while read -r file; do
        sed -e '/^mod tests {/,$d' -e 's|//.*||' "$file"
    done
}
code_of src >"$code/src"
code_of capi/src python/src >"$code/bindings"
cat "$code/src" "$code/bindings" | grep -oE '\b[a-z_][a-z0-9_]*\b' | counted >"$code/words"
cat "$code/src" "$code/bindings" | grep -oE '\bfn [a-z_][a-z0-9_]*' | awk '{print $2}' | counted >"$code/functions"

for name in $(join "$code/functions" "$code/words" | awk '$2 == $3 {print $1}'); do
    case $implicit in *" $name "*) continue ;; esac
    where=$(grep -rlE "\bfn $name\b" src || true)
    # A function of the bindings, a test, or a function for tests alone.
    [ -z "$where" ] || grep -h -B3 -E "\bfn $name\b" $where | grep -qE '#\[(test|cfg\(test\))\]' && continue
    if grep -qE "^ *pub (const |unsafe )*fn $name\b" $where || grep -qE "^pub trait" $where; then
        echo "public  $name (${where%%$'\n'*})"
    else
        echo "private $name (${where%%$'\n'*})"
    fi
done | sort | tee "$code/found"
! grep -q ^private "$code/found"
