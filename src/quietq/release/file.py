"""One file that may leave: a private function's numbers and its certificate, by allow-list, in the safetensors format.

The format is eight bytes of header length, a JSON header and raw float64 numbers, so it is written and read with NumPy
alone and any safetensors reader opens it. What quietq adds is one JSON text in the header, under the key "quietq".

`load` takes a file from anywhere. It runs no code, checks sizes before it reads, and answers whatever is not a release
with `InvalidRelease`. It does not tell who made the file: a certificate is a statement, and not a signature.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Box
from quietq.noise.kernels import BandLimited, Features, FiniteRank
from quietq.noise.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateTable, PrivateWeights
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput, QuietqError
from quietq.release.container import MOST_BYTES, Arrays, InvalidRelease, pack, require, unpack, write
from quietq.version import __version__

FORMAT = 1
MOST_RANK = 2**14  # a larger band-limited kernel takes minutes to rebuild
NOT_PRIVATE = "NOT PRIVATE"
FIELDS = frozenset({"format", "version", "privacy", "kind", "box", "levels", "kernel", "certificate"})
"""All that is in the JSON text."""


def publish(thing: PrivateFunction, path: str | os.PathLike[str], *, not_private: bool = False) -> None:
    """Writes a private function to a file, whole or not at all; a file of that name is replaced.

    Only what a certificate covers may leave. `not_private` writes anything else, a simulation for instance, and marks
    it as NOT PRIVATE, in the file and once it is loaded.

    >>> import tempfile
    >>> from quietq import Budget, GaussianProcessMechanism, people
    >>> mechanism = GaussianProcessMechanism.for_relation(people(50, low=0, high=0.5, slope=1), Budget(0.9, 1e-4))
    >>> private = mechanism.apply(lambda s: 0.5 - abs(s - 0.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     publish(private, folder + "/reward.qq")
    ...     bool(load(folder + "/reward.qq")(0.3) == private(0.3))
    True
    """
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidInput(f"path must name a file in a folder that exists, not {str(target)!r}.")
    if not isinstance(thing, PrivateFunction):
        raise InvalidInput(f"Only a private function can be published, not {type(thing).__name__}.")
    standing = thing.certificate.standing
    if standing != "certified" and not not_private:
        raise InvalidInput(
            f"Only a certified release may leave, and this one's standing is {standing!r}; "
            "publish(..., not_private=True) writes it marked as NOT PRIVATE."
        )
    kind, levels, kernel, arrays = _parts(thing)
    record = {
        "format": FORMAT,
        "version": __version__,
        "privacy": standing if standing == "certified" else NOT_PRIVATE,
        "kind": kind,
        "box": [[float(low), float(high)] for low, high in zip(thing.box.low, thing.box.high, strict=True)],
        "levels": levels,
        "kernel": kernel,
        "certificate": thing.certificate.to_dict(),
    }
    data = pack(record, arrays)
    phi = thing.kernel if isinstance(thing, PrivateWeights) and isinstance(thing.kernel, Features) else None
    _rebuild(*unpack(data), phi)  # what load would refuse is not written
    write(target, data)


def load(path: str | os.PathLike[str], *, features: Features | None = None) -> PrivateFunction:
    """The private function in a file that `publish` wrote; InvalidRelease for any other file.

    Weights of a Features kernel need that kernel again, as `features`, because its feature map is code; it is checked
    against what the map gave at a few public points.
    """
    source = Path(path)
    try:
        if not source.is_file():
            raise InvalidRelease(f"There is no file {str(source)!r}.")
        require(source.stat().st_size <= MOST_BYTES, f"it has more than {MOST_BYTES} bytes")
        with source.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidRelease(f"The file could not be read: {error}") from error
    return _rebuild(*unpack(data), features)


class _Marked:
    """Says NOT PRIVATE wherever it is shown."""

    def __repr__(self) -> str:
        return f"{NOT_PRIVATE}: {super().__repr__()}"


class _MarkedTable(_Marked, PrivateTable): ...


class _MarkedKnots(_Marked, PrivateKnots): ...


class _MarkedSum(_Marked, PrivateSum): ...


class _MarkedWeights(_Marked, PrivateWeights): ...


def _parts(thing: PrivateFunction) -> tuple[str, list[int] | None, dict[str, object] | None, Arrays]:
    """The kind, levels, kernel and numbers of a private function."""
    if isinstance(thing, PrivateTable):
        return "table", [thing.levels], None, {"values": thing.values}
    if isinstance(thing, PrivateKnots):
        return "knots", None, None, {"values": thing.values}
    if isinstance(thing, PrivateSum):
        if any(part.certificate != thing.certificate for part in thing.parts):
            raise InvalidInput("Every part of a sum must be released under the sum's own certificate.")
        arrays = {f"part.{i}": part.values for i, part in enumerate(thing.parts)}
        return "sum", [part.levels for part in thing.parts], None, arrays
    if isinstance(thing, PrivateWeights) and isinstance(thing.kernel, BandLimited):
        kernel = {**thing.kernel.describe(), "tolerance": thing.kernel.tolerance}
        return "weights", None, kernel, {"weights": thing.weights}
    if isinstance(thing, PrivateWeights) and isinstance(thing.kernel, Features):
        return "weights", None, thing.kernel.describe(), {"weights": thing.weights, "check": _check(thing.kernel)}
    raise InvalidInput(f"A {type(thing).__name__} cannot be published.")


def _rebuild(record: dict[str, Any], arrays: Arrays, features: Features | None) -> PrivateFunction:
    """The private function of a file's JSON text and numbers, all of them checked against each other."""
    require(set(record) == FIELDS, f"the JSON text must have the fields {sorted(FIELDS)}")
    require(type(record["format"]) is int, "the format must be a number")
    require(record["format"] == FORMAT, f"its format is {record['format']}, and only {FORMAT} is known here")
    require(isinstance(record["version"], str), "the version must be text")
    certificate, box = _certificate(record["certificate"]), _box(record["box"])
    marked = record["privacy"] == NOT_PRIVATE
    require(marked or record["privacy"] == "certified", "its privacy must be 'certified' or 'NOT PRIVATE'")
    require(marked != (certificate.standing == "certified"), "its privacy must be what its certificate says")
    stated = certificate.domain
    sides = tuple(zip(box.low, box.high, strict=True))
    require(stated is None or tuple(map(tuple, stated)) == sides, "its box must be the one that its certificate names")
    kind, levels, kernel = record["kind"], record["levels"], record["kernel"]
    require(kind == "weights" or (kernel is None and features is None), "only weights have a kernel or features")
    if kind == "knots":
        require(levels is None and set(arrays) == {"values"} and box.dimension == 1, "knots have one array of values")
        require(arrays["values"].ndim == 1 and len(arrays["values"]) > 1, "knots are a list of at least two values")
        return (_MarkedKnots if marked else PrivateKnots)(arrays["values"], box, certificate)
    if kind == "table":
        require(set(arrays) == {"values"}, "a table has one array of values")
        _shaped(arrays["values"], _grids(levels, 1) * box.dimension)
        return (_MarkedTable if marked else PrivateTable)(arrays["values"], levels[0], box, certificate)
    if kind == "sum":
        names = [f"part.{i}" for i in range(box.dimension)]
        grids = _grids(levels, box.dimension)
        require(set(arrays) == set(names), "a sum has one array a coordinate")
        outputs = {_shaped(arrays[name], [grid]) for name, grid in zip(names, grids, strict=True)}
        require(len(outputs) == 1, "the parts of a sum must have the same outputs")
        parts = tuple(
            (_MarkedTable if marked else PrivateTable)(arrays[name], levels[i], box.coordinate(i), certificate)
            for i, name in enumerate(names)
        )
        return (_MarkedSum if marked else PrivateSum)(parts, box, certificate)
    require(kind == "weights" and levels is None, "its kind must be table, knots, sum or weights")
    rebuilt = _kernel(kernel, arrays, features)
    require(rebuilt.dimension == box.dimension, "kernel and box must have the same dimension")
    _shaped(arrays["weights"], [rebuilt.rank])
    return (_MarkedWeights if marked else PrivateWeights)(arrays["weights"], rebuilt, box, certificate)


def _certificate(record: object) -> Certificate:
    try:
        with np.errstate(all="ignore"):  # absurd numbers may overflow on the way to being refused
            return Certificate.from_dict(record)
    except (QuietqError, ArithmeticError, ValueError, TypeError) as error:
        raise InvalidRelease(f"This is not a release: its certificate is not valid. {error}") from error


def _box(sides: Any) -> Box:
    pairs = isinstance(sides, list) and all(isinstance(side, list) and len(side) == 2 for side in sides)
    require(pairs and all(type(end) is float for side in sides for end in side), "its box must be pairs of numbers")
    try:
        return Box.of(sides)
    except InvalidInput as error:
        raise InvalidRelease(f"This is not a release: {error}") from error


def _grids(levels: Any, tables: int) -> list[int]:
    """The number of grid points on a side of each table."""
    require(isinstance(levels, list) and len(levels) == tables, "it must state the levels of each table")
    require(all(type(level) is int and 1 <= level <= 26 for level in levels), "levels must be 1 to 26")
    return [2**level + 1 for level in levels]


def _shaped(array: np.ndarray, start: list[int]) -> tuple[int, ...]:
    """The shape of the outputs, if the array's shape starts as it must."""
    require(list(array.shape[: len(start)]) == start, f"an array has shape {array.shape} and must start with {start}")
    return array.shape[len(start) :]


def _kernel(record: Any, arrays: Arrays, features: Features | None) -> FiniteRank:
    require(isinstance(record, dict) and "weights" in arrays, "weights must come with their kernel")
    rank = len(arrays["weights"])
    if record.get("kind") == "features":
        phi = record.get("phi")
        require(set(arrays) == {"weights", "check"} and isinstance(phi, str), "features need their check values")
        if features is None:
            raise InvalidRelease(
                f"This release holds weights of the feature map {phi!r}, which is code and not in the file: "
                "give the kernel that they were made with, load(path, features=kernel)."
            )
        there = _check(features)
        same = features.rank == rank and there.shape == arrays["check"].shape
        if not (same and np.allclose(there, arrays["check"], rtol=1e-9, atol=1e-12)):
            raise InvalidRelease(f"The features given are not those of the release, {phi!r}: they differ in value.")
        return features
    require(features is None and set(arrays) == {"weights"}, "a kernel other than features has weights only")
    require(set(record) == {"kind", "half_width", "rank", "tolerance"}, "its kernel is not known here")
    width, tolerance = record["half_width"], record["tolerance"]
    require(
        record["kind"] == "band-limited" and type(width) is type(tolerance) is float, "its kernel is not known here"
    )
    # A kernel of half-width W has more than W terms, so a rank that fits bounds the work of rebuilding it.
    require(0 < width <= rank <= MOST_RANK, f"a band-limited kernel has at most {MOST_RANK} terms")
    try:
        kernel = BandLimited(width, tolerance)
    except InvalidInput as error:
        raise InvalidRelease(f"This is not a release: {error}") from error
    require(kernel.rank == record["rank"] == rank, "the number of weights must be the kernel's rank")
    return kernel


def _check(kernel: Features) -> Float[np.ndarray, "points features"]:
    """A feature map at a few public points, to recognise it by."""
    points = (1 + np.sin(np.outer(np.arange(1, 6), np.arange(1, kernel.dimension + 1)))) / 2
    return kernel.features(points if kernel.dimension > 1 else points[:, 0])
