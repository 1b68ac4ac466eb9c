module windlass.dev/hack/image-automation

go 1.26.0

require github.com/fluxcd/image-automation-controller v1.2.4
