"""Every annotated function of quietq and the reproduction is checked at run time while the tests run, shapes included.

What the tests find around them is the same however they are started: output as wide as a file's and without colours, no
token, the usual file modes.
"""

import atexit
import contextlib
import gc
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook
from typecheck import check_fast

for name in (
    "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "LINES", "NO_COLOR", "PY_COLORS",
    "QUIETQ_TOKEN", "TERMINAL_WIDTH", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
):  # fmt: skip
    os.environ.pop(name, None)  # before anything is imported: typer looks at some of them once
os.environ["TERM"] = "dumb"
# One thread a process: matrices are small, and the threads of two workers would wait for each other. It holds for
# workers and for processes that tests start; where there are no workers, pytest has loaded NumPy already.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.umask(0o022)
# What one test had compiled, others load: in both workers and in processes that tests start. It is empty at first.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="quietq-compiled-")
    atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
# Compiling takes far longer here than what is compiled: without the compiler's optimisations three in ten seconds less,
# and with its older emitter of fusions, which makes no MLIR on the way, again as much less.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

# absl keeps the standard error that it finds when it is first imported, and closes it whenever logging is configured
# anew. Found during a test, that would be what pytest captures with, and every later test of the process would fail.
with contextlib.redirect_stderr(sys.__stderr__):
    import absl.logging  # noqa: F401

check_fast()
install_import_hook(["quietq", "reproduction"], "typecheck.typecheck")

settings.register_profile("quietq", deadline=None, derandomize=True, max_examples=200, database=None)
settings.load_profile("quietq")
gc.set_threshold(50_000, 20, 20)  # compilers make many objects, and looking for garbage took a tenth of all time


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: nobody need look whether they are garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def quietq(monkeypatch, capsys, tmp_path) -> Callable[[str], tuple[int, str, str]]:
    """Runs a command in this process and in an empty folder: exit code, stdout, stderr."""
    from quietq.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main replaces it

    def call(arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["quietq", *arguments.split()])
        with pytest.raises(SystemExit) as done:
            main()
        return (done.value.code or 0, *capsys.readouterr())  # type: ignore[return-value]

    return call
