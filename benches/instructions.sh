#!/usr/bin/env bash
# Instructions per guarded call and per HTTP request: without the feature `metrics`, with it and no recorder, and with a
# recorder. Repeatable where time is not: what counts is the difference of two runs of different length.
#
# Needs valgrind. Fails if a request with metrics takes more than 3 % more instructions than one without.
set -euo pipefail
# A run that fails in a substitution is a failure of the whole.
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

command -v valgrind >/dev/null || { echo "no valgrind: apt-get install valgrind" >&2; exit 1; }
target=${CARGO_TARGET_DIR:-$PWD/target}
out=$target/instructions
mkdir -p "$out"

build() { # build NAME [cargo's flags]
    local name=$1
    shift
    ${CARGO:-cargo} build --locked --quiet --release --package steadfast-benches --bin instructions "$@"
    cp "$target/release/instructions" "$out/$name"
}

run() { # run PROGRAM WORK COUNT [counted]: the instructions of the whole run
    # Not those of the server, which is a child.
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --trace-children=no "$out/$1" "${@:2}" 2>&1 |
        awk '/Collected/ { print $4 }'
}

each() { # each PROGRAM WORK FEW MANY [counted]: instructions per operation
    local few many
    few=$(run "$1" "$2" "$3" "${@:5}")
    many=$(run "$1" "$2" "$4" "${@:5}")
    [ "${few:-0}" -gt 0 ] && [ "${many:-0}" -gt "$few" ] || { echo "no instructions were counted: $*" >&2; exit 1; }
    echo $(((many - few) / ($4 - $3)))
}

build off
build on --features metrics

printf '%-28s %10s %10s\n' "" "guard call" "GET"
row() { # row TITLE PROGRAM [counted]
    local guard http
    guard=$(each "$2" guard 20000 120000 "${@:3}")
    http=$(each "$2" http 500 2500 "${@:3}")
    printf '%-28s %10d %10d\n' "$1" "$guard" "$http"
    last=$http
}
row "without the feature" off
off=$last
row "feature on, no recorder" on
row "recorder installed" on counted
awk -v off="$off" -v on="$last" 'BEGIN { more = (on / off - 1) * 100; printf "a request with metrics: %+.1f %%\n", more; exit more > 3 }'
