"""A released network or policy as an ONNX graph, for programs that are not Python; its metadata is the certificate.

A graph cannot refuse: a state outside the box counts as the nearest one in it, where a release would raise an error.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from quietq.mechanisms.container import replace_file
from quietq.mechanisms.private_network import PrivateNetwork, frequencies, random_units
from quietq.mechanisms.private_policy import LEAK, PrivatePolicy
from quietq.mechanisms.release_file import NOT_PRIVATE, mark
from quietq.privacy.errors import InvalidInput, MissingExtra
from quietq.publishing.publish import function_of
from quietq.version import __version__

_OPSET, _IR_VERSION = 17, 8  # old enough for the runtimes that people have
_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "tanh": ("Tanh", {}), "relu": ("Relu", {}), "elu": ("Elu", {"alpha": 1.0}),
    "leaky-relu": ("LeakyRelu", {"alpha": LEAK}),
}  # fmt: skip


def export_onnx(thing: Any, path: str | os.PathLike[str], *, not_private: bool = False) -> None:
    """Writes the graph: "states", float32 of shape (points, d), to "values", (points, actions).

    That of a policy gives "actions" too: numbers of actions, (points,), or actions that are numbers, (points, numbers),
    which are then all that it gives.
    """
    function = function_of(thing, not_private)
    network = function if isinstance(function, PrivateNetwork | PrivatePolicy) else None
    if network is None or (isinstance(network, PrivateNetwork) and network.form == "grid"):
        form = type(function).__name__ if network is None else "grid"
        raise InvalidInput(f"Only networks are exported to ONNX, not a {form}: publish a .qq file.")
    try:
        import onnx
    except ImportError as error:
        raise MissingExtra.of("onnx", "Exporting to ONNX needs onnx") from error
    graph = _Graph(onnx)
    if isinstance(network, PrivatePolicy):
        graph.add_policy(network)
    else:
        graph.add_network(network)
    model = graph.model(network)
    onnx.checker.check_model(model)
    replace_file(Path(path), model.SerializeToString())


class _Graph:
    """Nodes and constants, as they are added."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.nodes, self.constants, self.outputs = onnx, [], [], []

    def constant(self, value: object, kind: type = np.float32) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def whole(self, value: list[int] | int) -> str:
        return self.constant(value, np.int64)

    def node(self, kind: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}" if to is None else to
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def add_network(self, network: PrivateNetwork) -> None:
        unit = self.unit_states(network)
        if network.form == "mlp":
            out = self.layers(unit, network)
        else:
            out = self.node("MatMul", self.features(unit, network), self.constant(network.weights[0].swapaxes(1, 2)))
        if network.output == "log-probabilities":
            out = self.node("LogSoftmax", out, axis=-1)
        self.node("ReduceMean", out, axes=[0], keepdims=0, to="values")
        self.give("values", "points", network.actions)

    def add_policy(self, policy: PrivatePolicy) -> None:
        hidden = self.within("states", policy.box.low, policy.box.high)
        if policy.normal is not None and policy.clip is not None:
            mean, deviation = map(self.constant, policy.normal)
            scaled = self.node("Div", self.node("Sub", hidden, mean), deviation)
            hidden = self.node("Clip", scaled, self.constant(-policy.clip), self.constant(policy.clip))
        kind, attributes = _ACTIVATIONS[policy.activation]
        for i, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True)):
            hidden = self.node(kind, hidden, **attributes) if i else hidden
            hidden = self.node("Add", self.node("MatMul", hidden, self.constant(weight.T)), self.constant(bias))
        if policy.action_range is None:
            last = {"values": ("Identity", {}), "log-probabilities": ("LogSoftmax", {"axis": -1})}[policy.output]
            values = self.node(last[0], hidden, to="values", **last[1])
            self.node("ArgMax", values, axis=1, keepdims=0, to="actions")
            self.give("values", "points", policy.outputs)
            self.give("actions", "points", kind=self.onnx.TensorProto.INT64)
            return
        low, high = policy.action_range
        if policy.output == "squashed":
            unit = self.node("Add", self.node("Tanh", hidden), self.constant(1.0))
            hidden = self.node("Add", self.node("Mul", unit, self.constant((high - low) / 2)), self.constant(low))
        self.within(hidden, low, high, to="actions")
        self.give("actions", "points", policy.outputs)

    def within(self, value: str, low: Any, high: Any, to: str | None = None) -> str:
        return self.node("Min", self.node("Max", value, self.constant(low)), self.constant(high), to=to)

    def give(self, name: str, *shape: str | int, kind: int | None = None) -> None:
        kind = self.onnx.TensorProto.FLOAT if kind is None else kind
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, [*shape]))

    def unit_states(self, network: PrivateNetwork) -> str:
        """States in unit coordinates, of shape (1, points, d): runs come first."""
        low, high = np.array(network.box.low), np.array(network.box.high)
        scaled = self.node("Div", self.node("Sub", "states", self.constant(low)), self.constant(high - low))
        inside = self.node("Clip", scaled, self.constant(0.0), self.constant(1.0))
        return self.node("Unsqueeze", inside, self.whole([0]))

    def layers(self, hidden: str, network: PrivateNetwork) -> str:
        last = len(network.weights) - 1
        for i, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            hidden = self.node("MatMul", hidden, self.constant(weight.swapaxes(1, 2)))
            hidden = self.node("Add", hidden, self.constant(bias[:, None, :]))
            hidden = hidden if i == last else self.node("Relu", hidden)
        return hidden

    def features(self, unit: str, network: PrivateNetwork) -> str:
        size, dimension = network.size, network.box.dimension
        if network.form == "fourier":
            waves = frequencies(size, dimension)
            angles = self.node("MatMul", unit, self.constant(math.pi * waves.T))
            return self.node("Mul", self.node("Cos", angles), self.constant(1 / math.sqrt(len(waves))))
        if network.form == "random":
            directions, kinks = random_units(size, dimension)
            beyond = self.node("Sub", self.node("MatMul", unit, self.constant(directions.T)), self.constant(kinks))
            return self.node("Mul", self.node("Relu", beyond), self.constant(2 / math.sqrt(size)))
        knots = self.constant(np.arange(size))
        position = self.node("Unsqueeze", self.node("Mul", unit, self.constant(size - 1.0)), self.whole([3]))
        far = self.node("Abs", self.node("Sub", position, knots))
        hats = self.node("Relu", self.node("Sub", self.constant(1.0), far))  # (1, points, d, knots)
        each = [self.node("Gather", hats, self.whole(axis), axis=2) for axis in range(dimension)]
        product = each[0]
        for count, more in enumerate(each[1:], start=2):
            outer = self.node(
                "Mul", self.node("Unsqueeze", product, self.whole([3])), self.node("Unsqueeze", more, self.whole([2]))
            )
            product = self.node("Reshape", outer, self.whole([1, -1, size**count]))
        return product

    def model(self, network: PrivateNetwork | PrivatePolicy) -> Any:
        helper, floats = self.onnx.helper, self.onnx.TensorProto.FLOAT
        certificate = network.certificate
        graph = helper.make_graph(
            self.nodes, "quietq",
            [helper.make_tensor_value_info("states", floats, ["points", network.box.dimension])],
            self.outputs, self.constants,
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
        privacy = mark(certificate)
        model.producer_name, model.producer_version = "quietq", __version__
        model.doc_string = f"{privacy}. {certificate}" if privacy == NOT_PRIVATE else str(certificate)
        sides = [list(side) for side in zip(network.box.low, network.box.high, strict=True)]
        helper.set_model_props(
            model,
            {"privacy": privacy, "certificate": certificate.to_json(), "box": json.dumps(sides),
             "output": network.output},
        )  # fmt: skip
        return model
