# Everything a developer or a runner does with the project; `make` lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

.PHONY: help help-all up down status logs clean demo dev page words docs docs-serve screenshots outdated build test test-quick test-servers check \
  lint fmt generate notices release pin-images fuzz load bench bench-ingest bench-relay bench-consumer bench-sse bench-channels bench-streams bench-fair bench-pressure bench-page \
  test-kubernetes chaos chaos-cluster chaos-stream bench-compare

help: ## list the first targets
	@for target in demo up down test check; do \
	awk -F ':.*## ' -v target=$$target '$$1 == target { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST); done
	@echo
	@echo '  STACK=native|compose chooses the stack (Compose where a Docker engine answers),'
	@echo '  REPLICAS=3 runs three of each service. `make help-all` lists all targets.'

help-all: ## list all targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  STACK=native|compose chooses the stack (Compose where a Docker engine answers),'
	@echo '  REPLICAS=3 runs three of each service, RABBITMQ_NODES=3 a RabbitMQ cluster,'
	@echo '  POSTGRES_NODES=3 a PostgreSQL cluster.'

up: ## start the stack: databases, broker, services, gateway
	@scripts/stack up

down: ## stop the stack; its data stays
	@scripts/stack down

status: ## what runs, on which ports, and whether it is ready
	@scripts/stack status

logs: ## follow the stack's logs
	@scripts/stack logs

clean: ## stop everything and remove all data and built programs
	@scripts/stack clean
	@scripts/stack test-down
	@rm -rf .stack

demo: ## start the stack and walk the main job on sample reports
	@scripts/stack demo

dev: ## the running stack with hot reload of the page, and programs built and restarted when they change
	@scripts/dev.sh

page: ## build the page that notification-service embeds; needs Node.js 20.19, 22.13, 24 or later
	@scripts/page.sh build

words: ## the files to translate into a language: LANGUAGE=nl WORDS=/etc/cityconnect/words
	@go run ./notification-service/cmd/notification-service words "$(LANGUAGE)" "$(or $(WORDS),words)"

docs: ## build the documentation site into bin/docs, and a city to look at beside it; needs Node.js 20.19 or later
	@scripts/docs.sh build

docs-serve: ## show the documentation site while it is edited
	@scripts/docs.sh serve

screenshots: ## take the pictures in docs/screenshots again, from a stack started with GATEWAY_LIMITS=off
	@secret=$${STACK_DIR:-.stack}/native/secrets/rabbitmq/rabbitmq_url; \
	export RABBITMQ_URL=$${RABBITMQ_URL:-$$(cat "$$secret" 2>/dev/null || true)}; \
	go run ./scripts/cmd/screenshots "$$(scripts/stack address)"

outdated: ## list the dependencies and pinned tools that have newer versions; changes nothing
	@scripts/outdated.sh

build: page ## compile the page, where npm is installed, and the programs, into bin/
	@mkdir -p bin
	go build -ldflags="$$(scripts/version.sh flags)" -o bin/ ./report-service/cmd/... ./notification-service/cmd/... ./migrations/cmd/...

test: ## does it work? package tests and the main promises, on real servers
	@scripts/test.sh

check: test ## everything that must hold before a change is merged
	@scripts/check.sh

test-quick: ## only the tests whose code changed
	@eval "$$(scripts/stack test-up)" && go test $$(go work edit -json | sed -n 's/.*"DiskPath": "\(.*\)".*/\1\/.../p')

test-servers: ## the demo, faults, and all packages that talk to servers, on others: SERVERS="debian12 debian13 newest"
	@scripts/test-server-versions.sh

fuzz: ## 100,000 requests made from each OpenAPI document, valid, broken and large; FUZZ_SEED repeats a run
	@eval "$$(scripts/stack test-up)" && FUZZ_REQUESTS=$${FUZZ_REQUESTS:-100000} FUZZ_SEED=$${FUZZ_SEED:-$$RANDOM} \
	go test -count=1 -timeout 1h -v -run 'TestAPIFuzz' ./scripts/e2e | \
	awk '/^requests=/ { sums = $$0; next } { print } END { print sums }'

lint: ## formatting, linters, shell scripts, known vulnerabilities
	@scripts/lint.sh

fmt: ## format all Go sources
	@gofmt -w $$(git ls-files -co --exclude-standard '*.go')

generate: ## make the generated code from its sources
	go generate ./platform/... ./report-service/... ./notification-service/...

notices: ## write the licences of what the programs contain into deploy/third-party-notices.txt
	@notices=$$(go run ./scripts/cmd/notices migrations report-service notification-service) && \
	printf '%s\n' "$$notices" >deploy/third-party-notices.txt

release: ## programs, bills of materials, licences and checksums in bin/release, from the last commit
	@scripts/release.sh

pin-images: ## write the digests of the images that Compose uses into .env
	@scripts/pin-images.sh

load: ## start the stack and put it under half a minute of load, with an audit
	@scripts/load.sh

bench: ## all benchmarks and the load test, with a table of their results
	@scripts/bench.sh

bench-ingest: ## what is taken in over HTTP, against a bare database client
	@scripts/bench.sh ingest

bench-relay: ## the outbox relay, beside raw amqp091-go and River
	@scripts/bench.sh relay

bench-consumer: ## how fast a queue is emptied, with and without failures, beside wagslane/go-rabbitmq
	@scripts/bench.sh consumer

bench-sse: ## the live streams' hub: memory, an event to everyone, events to one each, beside r3labs/sse
	@scripts/bench.sh sse

bench-channels: ## deliveries to other systems while some receivers hang, beside a FIFO of the same workers
	@scripts/bench.sh channels

bench-fair: ## what others wait for while one account floods a stack, by kind of flood
	@scripts/bench.sh fair

bench-pressure: ## creates, votes, relay and consumer beside a held transaction, beside readers, and at 1.5 times the rate
	@scripts/bench.sh pressure

bench-streams: ## 200,000 idle live streams, an event to all, and all of them back after a kill; STREAMS=20000
	@cd scripts/bench && GOWORK=off go run ./streams -streams $${STREAMS:-200000} -reconnect-rate $${RECONNECT_RATE:-10000}

bench-page: ## the page on a slow phone, beside that of BASE=revision
	@scripts/bench-page.sh $(BASE)

test-kubernetes: ## the Helm chart on Kubernetes' own controllers, built from the module proxy, and machines that kwok plays
	@scripts/test-kubernetes.sh

chaos: ## 200 kills, stops, pauses and cuts of every process while people use the stack
	@scripts/chaos.sh

chaos-cluster: ## the same with the nodes of a RabbitMQ and a PostgreSQL cluster, 262 faults one at a time
	@RABBITMQ_NODES=3 POSTGRES_NODES=3 scripts/chaos.sh -faults $${FAULTS:-0} -rate $${RATE:-300} -kinds "\
	rabbitmq-leader-kill*50,rabbitmq-follower-kill*50,rabbitmq-partition*30,rabbitmq-stop*2,rabbitmq-pause*2,rabbitmq-cut*2,\
	postgres-kill*20,postgres-crash*20,postgres-postmaster-kill*60,postgres-switchover*20,postgres-stop*2,postgres-pause*2,postgres-cut*2"

chaos-stream: ## three minutes of kills, cuts and restarts under the live streams
	@cd notification-service && CHAOS_SECONDS=$${CHAOS_SECONDS:-180} CHAOS_RATE=$${CHAOS_RATE:-500} \
	CHAOS_USERS=$${CHAOS_USERS:-50} CHAOS_CLIENTS=$${CHAOS_CLIENTS:-4} \
	go test -count=1 -timeout 1h -v -run TestStreamChaos ./cmd/notification-service

bench-compare: ## measure BASE=revision and this tree in turn, with their ratios
	@scripts/bench-compare.sh $(BASE)
