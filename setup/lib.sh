# Shared by the set-up scripts, which source it: messages, progress, finding a Python.
# shellcheck shell=bash disable=SC2034

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
repo=$(pwd -P)
readonly repo venv=$repo/.venv

say() { printf '%s\n' "$*"; }

# One sentence that says what is missing and how to get it. Exit status 3: the machine lacks something.
stop() {
    printf 'setup: %s\n' "$*" >&2
    exit 3
}

# Show the lines of standard input in place on a terminal, elsewhere one every five seconds.
progress() {
    local line shown=$SECONDS
    while IFS= read -r line; do
        if [[ -t 1 ]]; then
            printf '\r\033[K  %.100s' "$line"
        elif ((SECONDS - shown >= 5)); then
            printf '  %.100s\n' "$line"
            shown=$SECONDS
        fi
    done
    [[ ! -t 1 ]] || printf '\r\033[K'
}

# Print a Python 3.11 or later that can make virtual environments; fail if there is none.
find_python() {
    local candidate
    for candidate in python3 /usr/bin/python3; do
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}
