"""The exported graph answers as the release does, and says what covers it."""

import json

import numpy as np
import pytest
from releases import make

import quietq as qq
from quietq.mechanisms.private_network import PrivateNetwork, number_of_features
from quietq.noise.box import Box
from quietq.publishing.onnx_export import export_onnx

runtime = pytest.importorskip("onnxruntime")


def random_network(form: str, dimension: int, output: str) -> PrivateNetwork:
    rng = np.random.default_rng(0)
    box = Box((-1.0,) * dimension, (3.0,) * dimension)
    certificate = make("table", simulate=1).certificate
    if form == "mlp":
        shapes = [(2, 6, dimension), (2, 5, 6), (2, 3, 5)]
        weights, biases = (tuple(rng.normal(size=shape[:n]) for shape in shapes) for n in (3, 2))
        return PrivateNetwork("mlp", 0, weights, biases, output, box, certificate)  # type: ignore[arg-type]
    weights = (rng.normal(size=(2, 3, number_of_features(form, 4, dimension))),)
    return PrivateNetwork(form, 4, weights, (), output, box, certificate)  # type: ignore[arg-type]


@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("form", ["mlp", "splines", "fourier", "random"])
@pytest.mark.parametrize("output", ["values", "log-probabilities"])
def test_answers_as_the_release(tmp_path, form, dimension, output):
    network = random_network(form, dimension, output)
    export_onnx(network, tmp_path / "network.onnx", not_private=True)
    session = runtime.InferenceSession(tmp_path / "network.onnx")
    x = network.box.from_unit(np.random.default_rng(1).random((200, dimension)))
    (found,) = session.run(None, {"states": x.astype(np.float32)})
    expected = network(x[:, 0] if dimension == 1 else x)
    assert found.shape == (200, 3)
    assert np.abs(found - expected).max() < 2e-5 * (1 + np.abs(expected).max())


def test_says_what_covers_it(tmp_path):
    network = make("mlp")
    export_onnx(network, tmp_path / "network.onnx")  # type: ignore[arg-type]
    meta = runtime.InferenceSession(tmp_path / "network.onnx").get_modelmeta()
    assert meta.custom_metadata_map["privacy"] == "certified"
    assert qq.Certificate.from_json(meta.custom_metadata_map["certificate"]) == network.certificate
    assert json.loads(meta.custom_metadata_map["box"]) == [[-1.0, 3.0]]


def test_not_private_is_refused_or_says_so(tmp_path):
    network = make("mlp", simulate=1)
    with pytest.raises(qq.InvalidInput, match="Only a certified release"):
        export_onnx(network, tmp_path / "network.onnx")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
    export_onnx(network, tmp_path / "network.onnx", not_private=True)  # type: ignore[arg-type]
    meta = runtime.InferenceSession(tmp_path / "network.onnx").get_modelmeta()
    assert meta.custom_metadata_map["privacy"] == "NOT PRIVATE"
    assert meta.description.startswith("NOT PRIVATE")


def test_only_networks_are_exported(tmp_path):
    with pytest.raises(qq.InvalidInput, match="Only networks"):
        export_onnx(make("table"), tmp_path / "table.onnx")  # type: ignore[arg-type]
