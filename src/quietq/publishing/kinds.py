"""What can be published, kind by kind: the allow-list of its numbers, and the way back with everything checked.

A release's details and arrays are all that describes it, besides its box and its certificate. Nothing here runs code
from a file, and nothing is believed before it was checked against the rest.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.model import FittedReward
from quietq.mechanisms.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateTable, PrivateWeights
from quietq.noise.box import Box
from quietq.noise.kernels import BandLimited, FeatureKernel
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.publishing.cells import PrivateCells
from quietq.publishing.checks import InvalidRelease, require
from quietq.publishing.container import Arrays
from quietq.publishing.network import LARGEST, PrivateNetwork, number_of_features

Released = PrivateFunction | FittedReward
Details = dict[str, Any]
MOST_RANK = 2**14  # a larger band-limited kernel takes minutes to rebuild
_MOST_FEATURES, _MOST_RUNS = 4096, 1024


def taken_apart(thing: object) -> tuple[str, Details, Arrays]:
    """The kind, the details and the numbers of what is to be published; nothing else of it is looked at."""
    if isinstance(thing, PrivateTable):
        return "table", {"levels": [thing.levels]}, {"values": thing.values}
    if isinstance(thing, PrivateKnots):
        return "knots", {}, {"values": thing.values}
    if isinstance(thing, PrivateSum):
        if any(part.certificate != thing.certificate for part in thing.parts):
            raise InvalidInput("Every part of a sum must be released under the sum's own certificate.")
        arrays = {f"part.{i}": part.values for i, part in enumerate(thing.parts)}
        return "sum", {"levels": [part.levels for part in thing.parts]}, arrays
    if isinstance(thing, PrivateWeights) and isinstance(thing.kernel, BandLimited):
        kernel = {**thing.kernel.describe(), "tolerance": thing.kernel.tolerance}
        return "weights", {"kernel": kernel}, {"weights": thing.weights}
    if isinstance(thing, PrivateWeights) and isinstance(thing.kernel, FeatureKernel):
        arrays = {"weights": thing.weights, "check": _check(thing.kernel)}
        return "features", {"kernel": thing.kernel.describe()}, arrays
    if isinstance(thing, PrivateNetwork):
        details = {"form": thing.form, "size": thing.size, "output": thing.output}
        named = [(f"weight.{i}", array) for i, array in enumerate(thing.weights)]
        return "network", details, dict(named + [(f"bias.{i}", array) for i, array in enumerate(thing.biases)])
    if isinstance(thing, PrivateCells):
        return "cells", {}, {"edges": thing.edges, "values": thing.values}
    if isinstance(thing, FittedReward):
        return "fitted", {}, {"mean": thing.mean, "covariance": thing.covariance}
    raise InvalidInput(f"A {type(thing).__name__} cannot be published.")


def put_together(
    kind: object, details: object, arrays: Arrays, box: Box, certificate: Certificate, given: FeatureKernel | None
) -> Released:
    """The way back; `given` are the features that a release of their weights cannot hold, because they are code."""
    require(isinstance(kind, str) and kind in _KINDS, f"its kind must be one of {sorted(_KINDS)}")
    require(isinstance(details, dict), "its details must be a JSON object")
    require(kind == "features" or given is None, "only weights of features are loaded with features")
    if kind == "features":
        return _features(details, arrays, box, certificate, given)  # pyright: ignore[reportArgumentType]
    return _KINDS[kind](details, arrays, box, certificate)  # pyright: ignore[reportArgumentType]


def check_fit(function: Released, certificate: Certificate) -> None:
    """Refuses noised numbers that a mechanism in the certificate's norm could not have released."""
    norm: dict[str, Any] = dict(certificate.norm or {})
    relation: dict[str, Any] = dict(certificate.relation or {})
    sides = tuple(zip(function.box.low, function.box.high, strict=True))
    stated = None if certificate.domain is None else tuple(map(tuple, certificate.domain))
    require(stated == sides or norm["kind"] == "smooth-bound", "its certificate must name its box")
    if isinstance(function, PrivateKnots):
        pieces = {"knots": len(norm.get("shape", ())) - 1, "increments": norm.get("pieces")}.get(norm["kind"])
        require(pieces == len(function.values) - 1, "its knots must be those that its certificate names")
    elif isinstance(function, PrivateTable | PrivateSum | PrivateWeights):
        kinds = {PrivateTable: ("exponential", "product"), PrivateSum: ("additive",)}
        known = kinds.get(type(function), ("features", "band-limited"))
        require(norm["kind"] in known, f"its noise must have the kernel of a {type(function).__name__}")
        if isinstance(function, PrivateWeights):
            require(_json(function.kernel.describe()) == _json(norm), "its kernel must be that of its certificate")
        values = np.asarray(function([function.box.low] if function.box.dimension > 1 else function.box.low))
        require(values.size <= relation.get("actions", 1), "it has more outputs than its certificate lets change")
    elif isinstance(function, PrivateCells):
        require(norm["kind"] not in _TRAINED, "its certificate is for an agent, and cells are not one")
    elif isinstance(function, FittedReward):
        require(norm["kind"] != "smooth-bound" and norm["kind"] not in _TRAINED - {"rewards"}, "it must be fitted to "
                "rewards, and its certificate is for something else")  # fmt: skip
        outputs = function.mean.size // len(function.mean)
        require(outputs <= relation.get("actions", 1), "it has more outputs than its certificate lets change")
    elif isinstance(function, PrivateNetwork) and certificate.method in _SPENDING:
        require(function.runs == 1, "it has more runs than its certificate, which is for one release")
        linear = function.form == "splines" and function.output == "values"
        averages = certificate.method in ("input", "value", "output")
        require(linear or not averages, f"the method {certificate.method!r} releases values at knots")
        if norm["kind"] == "values":
            require(function.weights[0][0].size == norm["count"], "its values must be as many as its certificate names")


_SPENDING = {
    "input": "rewards", "value": "mean-rewards", "output": "values", "gradient": "clipped-gradients",
    "value-network": "reward-gradients",
}  # fmt: skip
"""Methods that noise as they go, and what their noise is measured in."""
_TRAINED = frozenset(_SPENDING.values())


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _json(item) for key, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, list | tuple) else value


def _table(details: Details, arrays: Arrays, box: Box, certificate: Certificate) -> Released:
    require(set(details) == {"levels"} and set(arrays) == {"values"}, "a table has levels and one array of values")
    _shaped(arrays["values"], _grids(details["levels"], 1) * box.dimension)
    return PrivateTable(arrays["values"], details["levels"][0], box, certificate)


def _knots(details: Details, arrays: Arrays, box: Box, certificate: Certificate) -> Released:
    require(not details and set(arrays) == {"values"} and box.dimension == 1, "knots have one array of values")
    require(arrays["values"].ndim == 1 and len(arrays["values"]) > 1, "knots are a list of at least two values")
    return PrivateKnots(arrays["values"], box, certificate)


def _sum(details: Details, arrays: Arrays, box: Box, certificate: Certificate) -> Released:
    require(set(details) == {"levels"}, "a sum has levels")
    names, grids = [f"part.{i}" for i in range(box.dimension)], _grids(details["levels"], box.dimension)
    require(set(arrays) == set(names), "a sum has one array a coordinate")
    outputs = {_shaped(arrays[name], [grid]) for name, grid in zip(names, grids, strict=True)}
    require(len(outputs) == 1, "the parts of a sum must have the same outputs")
    parts = [
        PrivateTable(arrays[name], details["levels"][i], box.coordinate(i), certificate) for i, name in enumerate(names)
    ]
    return PrivateSum(tuple(parts), box, certificate)


def _weights(details: Details, arrays: Arrays, box: Box, certificate: Certificate) -> Released:
    kernel: Any = details.get("kernel")
    require(set(details) == {"kernel"} and set(arrays) == {"weights"}, "weights have a kernel and one array")
    require(isinstance(kernel, dict) and set(kernel) == {"kind", "half_width", "rank", "tolerance"}, "its kernel is "
            "not known here")  # fmt: skip
    width, tolerance, rank = kernel["half_width"], kernel["tolerance"], len(arrays["weights"])
    known = kernel["kind"] == "band-limited" and type(width) is type(tolerance) is float
    require(known, "its kernel is not known here")
    # A kernel of half-width W has more than W terms, so a rank that fits bounds the work of rebuilding it.
    require(0 < width <= rank <= MOST_RANK, f"a band-limited kernel has at most {MOST_RANK} terms")
    try:
        rebuilt = BandLimited(width, tolerance)
    except InvalidInput as error:
        raise InvalidRelease(f"This is not a release: {error}") from error
    require(rebuilt.rank == kernel["rank"] == rank, "the number of weights must be the kernel's rank")
    _shaped(arrays["weights"], [rank])
    require(rebuilt.dimension == box.dimension, "kernel and box must have the same dimension")
    return PrivateWeights(arrays["weights"], rebuilt, box, certificate)


def _features(
    details: Details, arrays: Arrays, box: Box, certificate: Certificate, given: FeatureKernel | None = None
) -> Released:
    kernel = details.get("kernel")
    phi = kernel.get("phi") if isinstance(kernel, dict) else None
    require(set(arrays) == {"weights", "check"} and isinstance(phi, str), "features need their name and check values")
    if given is None:
        raise InvalidRelease(
            f"This release holds weights of the feature map {phi!r}, which is code and not in the file: "
            "give the kernel that they were made with, load(path, features=kernel)."
        )
    _shaped(arrays["weights"], [len(arrays["weights"])])
    there = _check(given)
    same = given.rank == len(arrays["weights"]) and there.shape == arrays["check"].shape
    if not (same and np.allclose(there, arrays["check"], rtol=1e-9, atol=1e-12)):
        raise InvalidRelease(f"The features given are not those of the release, {phi!r}: they differ in value.")
    require(given.dimension == box.dimension, "kernel and box must have the same dimension")
    return PrivateWeights(arrays["weights"], given, box, certificate)


def _network(details: Details, arrays: Arrays, box: Box, certificate: Certificate) -> Released:
    require(set(details) == {"form", "size", "output"}, "a network has a form, a size and an output")
    form, size, output = details["form"], details["size"], details["output"]
    require(form in ("mlp", "splines", "fourier", "random"), "its network is not known here")
    require(output in ("values", "log-probabilities"), "its network's output is not known here")
    layers = sum(name.startswith("weight.") for name in arrays)
    names = [f"weight.{i}" for i in range(layers)] + [f"bias.{i}" for i in range(layers if form == "mlp" else 0)]
    require(layers > 0 and set(arrays) == set(names), "a network's arrays must be its layers")
    weights, biases = [arrays[name] for name in names[:layers]], [arrays[name] for name in names[layers:]]
    require(all(weight.ndim == 3 for weight in weights), "a layer's weights have three axes")
    runs, inputs = weights[0].shape[0], box.dimension
    require(runs <= _MOST_RUNS, f"it has more than {_MOST_RUNS} runs")
    if form != "mlp":
        require(layers == 1 and type(size) is int and size >= 2, "linear weights are one layer of 2 features or more")
        # Checked before it is computed: a large power is slow.
        require(size <= _MOST_FEATURES and box.dimension <= 12, f"it has more than {_MOST_FEATURES} features")
        inputs = number_of_features(form, size, box.dimension)
        require(inputs <= _MOST_FEATURES, f"it has more than {_MOST_FEATURES} features")
    else:
        require(size == 0, "an mlp's size is 0")
    for i, weight in enumerate(weights):
        require(weight.shape[0] == runs and weight.shape[2] == inputs, "its layers do not fit each other")
        inputs = weight.shape[1]
        require(not biases or biases[i].shape == (runs, inputs), "its layers do not fit each other")
    network = PrivateNetwork(form, size, tuple(weights), tuple(biases), output, box, certificate)
    require(network.largest() <= LARGEST, "its values could get too large to compute with")
    return network


def _fitted(details: Details, arrays: Arrays, box: Box, certificate: Certificate) -> Released:
    require(not details and set(arrays) == {"mean", "covariance"}, "a fitted reward has a mean and a covariance")
    mean, covariance = arrays["mean"], arrays["covariance"]
    require(box.dimension == 1 and len(mean) > 1, "a fitted reward has one coordinate and two knots or more")
    _shaped(mean, [len(mean)])
    require(covariance.shape == (len(mean), len(mean)), "mean and covariance must have the same knots")
    return FittedReward(box, mean, covariance, certificate)


def _cells(details: Details, arrays: Arrays, box: Box, certificate: Certificate) -> Released:
    require(not details and set(arrays) == {"edges", "values"} and box.dimension == 1, "cells have edges and values")
    edges, values = arrays["edges"], arrays["values"]
    require(edges.ndim == values.ndim == 1 and len(edges) == len(values) + 1, "there is one value between two edges")
    rises = (np.diff(edges) > 0).all() and (edges[0], edges[-1]) == (box.low[0], box.high[0])
    require(rises, "the edges must rise from one end of the box to the other")
    return PrivateCells(edges, values, box, certificate)


_KINDS: dict[str, Callable[..., Released]] = {
    "table": _table, "knots": _knots, "sum": _sum, "weights": _weights, "features": _features, "network": _network,
    "fitted": _fitted, "cells": _cells,
}  # fmt: skip


def _grids(levels: Any, tables: int) -> list[int]:
    """The number of grid points on a side of each table."""
    require(isinstance(levels, list) and len(levels) == tables, "it must state the levels of each table")
    require(all(type(level) is int and 1 <= level <= 26 for level in levels), "levels must be 1 to 26")
    return [2**level + 1 for level in levels]


def _shaped(array: np.ndarray, start: list[int]) -> tuple[int, ...]:
    """The shape of the outputs, if the array's shape starts as it must."""
    require(list(array.shape[: len(start)]) == start, f"an array has shape {array.shape} and must start with {start}")
    require(array.ndim <= len(start) + 1, "values must be numbers, or rows of numbers")
    return array.shape[len(start) :]


def _check(kernel: FeatureKernel) -> Float[np.ndarray, "points features"]:
    """A feature map at a few public points, to recognise it by."""
    points = (1 + np.sin(np.outer(np.arange(1, 6), np.arange(1, kernel.dimension + 1)))) / 2
    return kernel.features(points if kernel.dimension > 1 else points[:, 0])
