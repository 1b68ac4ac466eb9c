# The one entry point. `make help` lists what there is.
CARGO ?= cargo
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
TARGET = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
WINDLASS = $(TARGET)/$(HOST)/release/windlass
ORACLE = $(TARGET)/oracle
MDBOOK = $(or $(shell command -v mdbook),$(TARGET)/tools/bin/mdbook)
# As the workspace builds it: built alone, its dependencies would have other features and be compiled once more.
XTASK = $(TARGET)/debug/xtask

# A test that fails says why; fifty frames of a stack below each error would push that out of sight.
export RUST_LIB_BACKTRACE ?= 0
# Tests on the control plane wait for most of their time: 71 of them take 67 s on two cores with two at a time, and 29 s with six.
export RUST_TEST_THREADS ?= $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores * 3)))

.DEFAULT_GOAL := help
.PHONY: help build setup test ui-test attack lint audit fmt generate generate-schema record-cases record-flux-cases record-flux-objects conformance-cluster record-helm-cases demo tools bench-sync bench-source cli bench-build bench-render fuzz-build fuzz-render fuzz-source fuzz-notify bench-chain bench-rest bench-scale bench-releases bench-notify bench-images bench-pipelines bench-previews bench-console bench-ledger bench-idle images release release-prepare docs chaos soak chaos-images chaos-pipelines chaos-ledger record-takeover clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: ## Build every binary (debug)
	$(CARGO) build --workspace --bins --locked

setup: ## Build all that tests and the demo need, and say what is being done: about 21 minutes on two cores, once
	@echo "1 of 3: debug build of the workspace (about 9 minutes on two cores)"
	$(MAKE) --no-print-directory build
	@echo "2 of 3: packages that tests need (names those that are missing)"
	hack/install-test-packages
	@echo "3 of 3: etcd, kube-apiserver, Gitea and other tools from their Go modules, in ~/.cache/windlass (about 12 minutes)"
	$(XTASK) tools
	@echo "done: make demo, make test"

tools: build ## Build and install what tests and the demo speak to (once; about 12 minutes on 2 cores)
	hack/install-test-packages
	$(XTASK) tools

test: tools ## Run all tests: unit, conformance (where ../shared is there), and on the real control plane
	$(CARGO) test --workspace --locked --no-fail-fast

attack: tools ## Play what a hostile tenant tries, on the real control plane (tests/attacks)
	$(CARGO) test --workspace --locked --test attacks

chaos: tools ## Push REVISIONS=200 while controllers, API server and etcd fail at random; SEED=n repeats the choices of a run
	REVISIONS=$(or $(REVISIONS),200) SEED=$(or $(SEED),$$(date +%s)) $(CARGO) test --workspace --locked --test chaos -- --nocapture

soak: tools ## HOURS=2 of COMMITS=1 each second to APPS=1000 applications, release build, while all around fails; memory must be flat
	$(CARGO) build --release --locked -p source-controller -p apply-controller
	HOURS=$(or $(HOURS),2) APPS=$(or $(APPS),1000) COMMITS=$(or $(COMMITS),1) SEED=$(or $(SEED),$$(date +%s)) WINDLASS_BIN_DIR=$(TARGET)/release \
	$(CARGO) test --workspace --locked --test chaos long_run -- --ignored --nocapture

chaos-images: tools ## Kill image-controller at ROUNDS=200 random moments, with commits and with pull requests
	ROUNDS=$(or $(ROUNDS),200) $(CARGO) test --workspace --locked --test images kill -- --nocapture

chaos-pipelines: tools ## Kill pipeline-controller at ROUNDS=200 random moments of promotions
	ROUNDS=$(or $(ROUNDS),200) $(CARGO) test --workspace --locked --test pipelines kill -- --nocapture

chaos-ledger: tools ## Kill the console ROUNDS times (ROUNDS=100) while deliveries come, on both stores, and compare its ledger
	ROUNDS=$(or $(ROUNDS),100) $(CARGO) test --workspace --locked --test console ledger -- --nocapture

lint: build ## Formatting, clippy, generated files, circles of imports, and the dependency rules
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(XTASK) generate --check
	$(XTASK) check-circles
	hack/check-dependencies

audit: $(TARGET)/tools/bin/cargo-deny $(TARGET)/tools/bin/cargo-cyclonedx ## Licences, bans, sources and RustSec's advisories of every dependency, and a bill of materials of each program in target/sbom; ADVISORIES=skip where their database cannot be reached
	ADVISORIES=$(ADVISORIES) hack/audit $(TARGET)/tools/bin $(TARGET)/sbom

# Both are installed from crates.io if they are not there.
$(TARGET)/tools/bin/cargo-deny:
	$(CARGO) install cargo-deny@0.20.2 --locked --root $(TARGET)/tools --target-dir $(TARGET)/tools/build
$(TARGET)/tools/bin/cargo-cyclonedx:
	$(CARGO) install cargo-cyclonedx@0.5.9 --locked --root $(TARGET)/tools --target-dir $(TARGET)/tools/build

fmt: ## Format all Rust code
	$(CARGO) fmt --all

docs: $(MDBOOK) ## Build the book of docs/ with mdbook, which is installed from crates.io if it is not there; fails on warnings; prints where it is
	@mkdir -p $(TARGET)
	$(MDBOOK) build --dest-dir $(TARGET)/book 2>&1 | tee $(TARGET)/book.log
	@! grep -E 'WARN|ERROR' $(TARGET)/book.log
	@test -f $(TARGET)/book/index.html && echo $(TARGET)/book/index.html

# Without optimization it is there in a bit over a minute on two cores, and the book takes a second all the same.
$(TARGET)/tools/bin/mdbook:
	$(CARGO) install mdbook@0.5.4 --debug --locked --no-default-features --features search --root $(TARGET)/tools --target-dir $(TARGET)/tools/build

generate: build ## Write the CRDs, the gRPC code, and the tables of the docs from their sources
	$(XTASK) generate

generate-schema: build ## Write the table of Kubernetes' built-in types from the published OpenAPI; needs Go, and is no part of lint
	$(XTASK) generate-schema

record-cases: ## Record what the real kustomize answers to the cases in tests/cases/kustomize; CHECK=1 only compares
	hack/record-cases $(if $(CHECK),--check) $(CASE)

record-flux-cases: ## Record what Flux's own code makes of the cases in tests/cases/flux
	hack/record-flux-cases $(CASE)

record-takeover: ## Record what the real kustomize-controller (CONTROLLER=path), kubectl and Helm leave in a cluster
	hack/record-takeover $(CONTROLLER)

record-flux-objects: build ## Record what Flux's controllers (CONTROLLERS=folder) write into objects, into tests/cases/flux-objects
	$(XTASK) record-flux-objects $(CONTROLLERS)

conformance-cluster: build ## Compare what Flux's controllers (PEER=folder, made by hack/build-flux) and ours leave in a cluster; N=300 overlays and charts of SET=folder; WORDS=1 compares what the flux command says of both; RECORD=1 records Flux's for tests/cases/cluster
	$(XTASK) conformance-cluster --peer $(PEER) --overlays $(or $(N),300) --charts $(or $(N),300) $(if $(SET),--set $(SET)) $(if $(WORDS),--words) $(if $(RECORD),--record)

record-helm-cases: ## Record what the real Helm answers to the cases in tests/cases/{go-template,helm}; CHECK=1 only compares
	hack/record-helm-cases $(if $(CHECK),--check) $(CASE)

demo: build ## Show the main job end to end; DEMO=once ends by itself with 0 or 1, DEMO=ui shows the console's pages
	$(XTASK) $(if $(filter ui,$(DEMO)),demo-ui --port 9080,demo $(if $(filter once,$(DEMO)),--once))

ui-test: tools ## Test the console's pages in a real browser, over two clusters; pictures of them are put into target/ui
	cd tests/ui && npm ci --no-audit --no-fund
	$(XTASK) demo-ui --then node --test --test-concurrency=1 --test-reporter=spec tests/ui/

bench-sync: build ## Measure N pairs of OCIRepository and Kustomization (N=100), release build; PEER=folder with Flux's binaries
	$(CARGO) build --release --locked -p source-controller -p apply-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-sync --pairs $(or $(N),100) $(if $(PEER),--peer $(PEER))

bench-chain: build ## Measure a chain of N Kustomizations (N=10) by dependsOn, release build; REVISIONS=n, PEER=folder with Flux's binaries
	$(CARGO) build --release --locked -p source-controller -p apply-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-chain --length $(or $(N),10) --revisions $(or $(REVISIONS),1) $(if $(PEER),--peer $(PEER))

bench-rest: build ## Measure N Kustomizations (N=1000) at rest for SECONDS=300, release build; INTERVAL=1h, PEER=folder with Flux's binaries
	$(CARGO) build --release --locked -p source-controller -p apply-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-rest --kustomizations $(or $(N),1000) --seconds $(or $(SECONDS),300) --interval $(or $(INTERVAL),1h) $(if $(PEER),--peer $(PEER))

bench-scale: build ## Measure what N=50000 Kustomizations cost that are only watched: memory for each, CPU for each change; PEER=folder with Flux's
	$(CARGO) build --release --locked -p source-controller -p apply-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-scale --objects $(or $(N),50000) $(if $(PEER),--peer $(PEER))

bench-releases: build ## Measure N HelmReleases of one chart (N=100), release build; PEER=folder with Flux's binaries
	$(CARGO) build --release --locked -p source-controller -p helm-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-releases --releases $(or $(N),100) $(if $(PEER),--peer $(PEER))

bench-notify: build ## Measure notification-controller: N events (N=10000) OVER=60 seconds (0: as fast as they are taken), at rest; ALERTS=n, PEER=folder with Flux's
	$(CARGO) build --release --locked -p notification-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-notify --events $(or $(N),10000) --over $(or $(OVER),60) --alerts $(or $(ALERTS),1) $(if $(PEER),--peer $(PEER))

bench-pipelines: build ## Measure pipeline-controller with N pipelines (N=100) of ENVIRONMENTS=4 and TARGETS=5 each
	$(CARGO) build --release --locked -p pipeline-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-pipelines --pipelines $(or $(N),100) --environments $(or $(ENVIRONMENTS),4) --targets $(or $(TARGETS),5)

bench-previews: build ## Measure pipeline-controller with pull requests of a repository with N applications (N=1000)
	$(CARGO) build --release --locked -p pipeline-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-previews --apps $(or $(N),1000)

bench-images: build ## Measure image-controller with N images (N=100) of TAGS=100 tags and FILES=10000 files in Git; LISTED=1 only scans lists; PEER=folder with Flux's two image controllers
	$(CARGO) build --release --locked -p image-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-images --images $(or $(N),100) --tags $(or $(TAGS),100) --files $(or $(FILES),10000) $(if $(LISTED),--listed) $(if $(PEER),--peer $(PEER))

bench-ledger: ## Measure the questions of pages over 100,000 deliveries, on SQLite and PostgreSQL
	$(CARGO) test --release --locked -p ledger --test stores -- --ignored --nocapture

bench-console: build ## Measure the console with N apps (N=1000) of OBJECTS=10 objects in each of CLUSTERS=2 clusters: 200 queries a second, 200 streams, pages, 500 tabs
	$(CARGO) build --release --locked -p console
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-console --apps $(or $(N),1000) --objects $(or $(OBJECTS),10) --clusters $(or $(CLUSTERS),2)

bench-idle: build ## Measure the memory of all four controllers with N apps (N=100) at rest, programs linked as images have them, and their start; also from one program, and in one process; PEER=folder with Flux's
	$(XTASK) images --only-programs
	WINDLASS_BIN_DIR=$(TARGET)/$(HOST)/release \
	$(XTASK) bench-idle --apps $(or $(N),100) $(if $(PEER),--peer $(PEER))
	@echo "the same from one program, and then in one process"
	mkdir -p $(TARGET)/one-program
	for name in source apply helm notification; do \
		ln -f $(TARGET)/$(HOST)/release/windlass-controllers $(TARGET)/one-program/$$name-controller; \
	done
	ln -f $(TARGET)/$(HOST)/release/windlass-controllers $(TARGET)/one-program/
	WINDLASS_BIN_DIR=$(TARGET)/one-program $(XTASK) bench-idle --apps $(or $(N),100)
	WINDLASS_BIN_DIR=$(TARGET)/one-program $(XTASK) bench-idle --apps $(or $(N),100) --all

images: build ## Build container images and push them to IMAGE_REPOSITORY=host/path, or to the running demo's registry (needs Debian's buildah, no engine); TAG=tag, PLATFORMS=linux/amd64,linux/arm64, IMAGES="names"
	$(XTASK) images --out $(TARGET)/images $(if $(IMAGE_REPOSITORY),--repository $(IMAGE_REPOSITORY)) $(if $(TAG),--tag $(TAG)) $(if $(PLATFORMS),--platforms $(PLATFORMS)) $(IMAGES)

release-prepare: build ## Write VERSION=1.2.3 into Cargo.toml, Chart.yaml and the changelog, to be read, committed and tagged
	$(XTASK) release --prepare $(VERSION)

release: build ## Make the release of the tagged commit in OUT=target/dist: images, archives, chart, inventories, provenance, checksums; KEY=file signs; IMAGE_REPOSITORY=host/path pushes; PLATFORMS=linux/amd64,linux/arm64; CHECK=1 makes it twice and compares; TRIAL=1 needs no tag
	$(XTASK) release --out $(or $(OUT),$(TARGET)/dist) $(if $(KEY),--key $(KEY)) $(if $(IMAGE_REPOSITORY),--repository $(IMAGE_REPOSITORY)) $(if $(PLATFORMS),--platforms $(PLATFORMS)) $(if $(CHECK),--check) $(if $(TRIAL),--trial)

bench-source: build ## Measure source-controller: N=500 sources at once, 1,000 at rest, a large repository and index; PEER=folder with Flux's
	$(CARGO) build --release --locked -p source-controller -p apply-controller
	WINDLASS_BIN_DIR=$(TARGET)/release \
	$(XTASK) bench-source --sources $(or $(N),500) $(if $(PEER),--peer $(PEER))

# Half of the time of a small build was the dynamic linker's. kustomize is linked like this too. Needs libc.a.
cli: ## Build the windlass command: release, linked statically, so that it starts fast; prints where it is
	RUSTFLAGS='-C target-feature=+crt-static -C relocation-model=static' \
	$(CARGO) build --release --locked -p cli --target $(HOST)
	@echo $(WINDLASS)

bench-build: build cli ## Measure `windlass build`, release build; PEER=the real kustomize binary
	$(XTASK) bench-build --windlass $(WINDLASS) $(if $(PEER),--peer $(PEER))

bench-render: build cli ## Measure `windlass template`, release build; PEER=the real helm binary, EVERY=N takes each Nth recorded chart
	$(XTASK) bench-render --windlass $(WINDLASS) --every $(or $(EVERY),10) $(if $(PEER),--peer $(PEER))

fuzz-build: ## Compare CASES=N generated overlays with kustomize: its library, or the binary KUSTOMIZE=path
	$(if $(KUSTOMIZE),,GOTOOLCHAIN=go$$(awk '$$1 == "go" { print $$2 }' hack/oracle/kustomize/go.mod) go build -C hack/oracle/kustomize -o $(ORACLE) -ldflags '-X sigs.k8s.io/kustomize/api/provenance.version=v5.8.3' .)
	KUSTOMIZE=$(or $(KUSTOMIZE),$(ORACLE)) CASES=$(or $(CASES),1000) SEED=$(or $(SEED),1) \
	$(CARGO) test --locked -p kustomize-build --test fuzz -- --nocapture as_the_real_kustomize

fuzz-render: ## Compare CASES=N generated templates, from the one of SEED on, with Helm's engine; HELM=v3 with that of Helm 3
	GOTOOLCHAIN=go$$(awk '$$1 == "go" { print $$2 }' hack/oracle/helm/go.mod) go build -C hack/oracle/helm -o $(ORACLE)-helm .
	ORACLE=$(ORACLE)-helm CASES=$(or $(CASES),1000) SEED=$(or $(SEED),1) HELM=$(HELM) \
	$(CARGO) test --locked -p helm-render --test fuzz -- --nocapture as_the_real_helm

# Each checks properties (no panic, nothing outside, no more than allowed) on random bytes and on pieces of real input. Real
# fuzzers want a nightly compiler; proptest keeps what it finds beside the test.
fuzz-source: ## What a remote or a tenant sends, CASES=N times at random: archives, ignore rules, indexes, known_hosts, Git's answers and packs, manifests
	PROPTEST_CASES=$(or $(CASES),20000) $(CARGO) test --locked --workspace --lib -- no_bytes_make no_lines_make no_change_of no_manifest_makes no_archive_leads no_rule no_text_makes no_entry_makes any_lines any_bytes cut_in_pieces
	PROPTEST_CASES=$(or $(CASES),20000) $(CARGO) test --locked --workspace --test git -- a_changed_pack any_entries any_deltas

fuzz-notify: ## What a stranger sends to a Receiver, CASES=N times at random: headers, bodies, tokens, keys of issuers
	PROPTEST_CASES=$(or $(CASES),20000) $(CARGO) test --locked --workspace --test hostile -- any_call any_body

clean: ## Remove build output (the control plane's binaries are kept in the user's cache)
	$(CARGO) clean
