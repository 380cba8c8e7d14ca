"""What benchmarks and studies are called, and what must be installed before one begins.

A new benchmark offers `rows() -> list[Row]`, opens with a docstring for its heading and joins BENCHMARKS; programs that
it needs are in its NEEDS. A new study (see `study.py`) joins STUDIES. Nothing is imported until it is asked for.
"""

import ast
import importlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import quietq as qq

BENCHMARKS = ("noise", "people", "learning", "release", "serving")
STUDIES = ("auto", "families", "peers", "real", "worlds", "world-peers", "sessions", "go", "bandits", "cloning")
"""In the order of the page."""


def load(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.{_module(name)}")


def _module(name: str) -> str:
    return name.replace("-", "_")


def title(name: str) -> str:
    """The first line of a module, which is not imported for it."""
    source = (Path(__file__).parent / f"{_module(name)}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or name).splitlines()[0].rstrip(".")


def missing_packages(names: Iterable[str] = (*BENCHMARKS, *STUDIES)) -> dict[str, str]:
    """By name, the package without which a benchmark or study cannot be imported."""
    found = {}
    for name in names:
        try:
            load(name)
        except ImportError as error:
            found[name] = error.name or str(error)
    return found


def missing(names: Iterable[str]) -> list[str]:
    """For each that cannot begin, a sentence that says what to do."""
    names = list(names)
    packages = missing_packages(names)
    sentences = [str(qq.MissingExtra.of("bench", f"{name} needs {package}")) for name, package in packages.items()]
    for name in names:
        programs = () if name in packages else getattr(load(name), "NEEDS", ())
        sentences += [
            f"{name} needs the program {program}: make programs" for program in programs if not shutil.which(program)
        ]
    return sentences
