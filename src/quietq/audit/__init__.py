"""Lower bounds: what can be told from a release, measured by attack, beside what its certificate promises."""
