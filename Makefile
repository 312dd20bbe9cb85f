# The targets are for people; .ci/run calls test and cross.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
GOFLAGS_BUILD := -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

.PHONY: build demo test check cross fuzz bench clean

build:  ## bin/troupe
	CGO_ENABLED=0 go build $(GOFLAGS_BUILD) -o bin/troupe ./cmd/troupe

demo: build  ## show agents at work
	./bin/troupe demo

test:  ## all tests
	@.ci/test

check:  ## go vet and staticcheck
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

cross:  ## build for every platform
	@.ci/cross

fuzz:  ## each fuzz target for ten seconds
	@.ci/fuzz

bench: build  ## measure start, memory, tool calls and search
	go run ./internal/bench bin/troupe

clean:
	rm -rf bin
