module windlass.dev/hack/gitea

go 1.26.0

require code.gitea.io/gitea v1.25.5
