#!/usr/bin/env bash
# Records how Flux's own state machine goes through the scenarios, with scripted actions in the place of Helm's.
#   ./record.sh > ../../../crates/helm-controller/tests/state.jsonl
# A number says how many random scenarios there are; with `full`, what came of them is written, and not a checksum alone.
set -euo pipefail
cd "$(dirname "$0")"
export GOFLAGS=-mod=mod
work="$(mktemp -d)"
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
# Go replaces no single files of a module: this is Flux's code but for the actions.
cp -r "$(go list -m -f '{{.Dir}}' github.com/fluxcd/helm-controller)" "$work/flux"
chmod -R u+w "$work/flux"
rm "$work"/flux/internal/action/{install,upgrade,rollback,uninstall,test,diff}.go "$work"/flux/internal/action/*_test.go
cp overlay/world.go "$work/flux/internal/action/"
cp go.mod go.sum "$work/"
go mod edit -replace "github.com/fluxcd/helm-controller=$work/flux" "$work/go.mod"
go run -modfile "$work/go.mod" . "$@"
