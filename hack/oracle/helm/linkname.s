// Without an assembly file a function must have a body here; the two of render.go have theirs in Helm.
