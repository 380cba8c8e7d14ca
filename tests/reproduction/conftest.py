"""The command, run in this process."""

import warnings
from collections.abc import Callable

import pytest


@pytest.fixture
def command(monkeypatch, capsys, tmp_path) -> Callable[[str], tuple[int, str, str]]:
    """Runs it in an empty folder: exit code, stdout, stderr."""
    from reproduction.__main__ import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main replaces it
    return lambda arguments: (main(arguments.split()), *capsys.readouterr())
