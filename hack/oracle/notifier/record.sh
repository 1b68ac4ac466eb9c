#!/usr/bin/env bash
# Records what Flux's notifiers send.
#   ./record.sh REPOSITORY > ../../../crates/notifier/src/tests/flux.jsonl
#   ./record.sh REPOSITORY ./git > ../../../crates/notifier/src/git/tests/flux.jsonl
# REPOSITORY is a clone of github.com/fluxcd/notification-controller: zoom and incident.io are in no release yet.
set -euo pipefail
repository="$(cd "$1" && pwd)"
cd "$(dirname "$0")"
commit=2e46958
export GOFLAGS=-mod=mod
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/flux"
git -C "$repository" archive "$commit" | tar -x -C "$work/flux"
cp go.mod go.sum "$work/"
go mod edit -replace "github.com/fluxcd/notification-controller=$work/flux" \
    -replace "github.com/fluxcd/notification-controller/api=$work/flux/api" "$work/go.mod"
go run -modfile "$work/go.mod" "${2:-.}"
