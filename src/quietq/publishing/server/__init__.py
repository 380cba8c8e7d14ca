"""Releases over HTTP: `quietq serve` answers from the files alone, so every worker and every replica says the same."""
