"""Per-person DP-SGD with Opacus: its clipping, sampling and noise, on the same models and with the same steps.

Opacus accounts for adding or removing a person; noise for replacing one is that of `peer_sgd`, handed to Opacus. It is
no dependency of this project: `pip install opacus` first.
"""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from benchmarks.families import Array, States
from benchmarks.peer_sgd import falls, last_steps, noise_multiplier
from benchmarks.peers import People, Reward, Settings


def train(
    people: People, features: Callable[[States], Array], widths: tuple[int, ...], settings: Settings, seed: int
) -> Reward:
    from opacus import PrivacyEngine  # pyright: ignore[reportMissingImports]

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    inputs = torch.as_tensor(features(people.states), dtype=torch.float32)
    rows = torch.utils.data.TensorDataset(inputs, torch.as_tensor(people.y, dtype=torch.float32))
    loader = torch.utils.data.DataLoader(rows, batch_size=int(len(people.y) * settings["sampling"]))
    network = _network((inputs.shape[-1], *widths))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about secure random numbers, which an experiment does not need
        module, optimiser, loader = PrivacyEngine().make_private(
            module=network,
            optimizer=_optimiser(network, settings),
            data_loader=loader,
            noise_multiplier=noise_multiplier(1 / len(loader), settings["steps"], True),
            max_grad_norm=settings["clip"],
        )
        path = _descend(module, optimiser, loader, settings)
    network.load_state_dict({name: sum(one[name] for one in path) / len(path) for name in path[0]})
    return lambda x: _read(network, features(x))


def _optimiser(network: torch.nn.Module, settings: Settings) -> torch.optim.Optimizer:
    if settings["optimiser"] == "adam":
        return torch.optim.Adam(network.parameters(), lr=settings["rate"])
    momentum = 0.9 if settings["optimiser"] == "momentum" else 0.0
    return torch.optim.SGD(network.parameters(), lr=settings["rate"], momentum=momentum)


def _descend(module: Any, optimiser: Any, loader: Any, settings: Settings) -> list[dict[str, torch.Tensor]]:
    steps, path, step = settings["steps"], [], 0
    averaged = last_steps(steps, settings["averaged"])
    while step < steps:
        for x, y in loader:
            if step == steps:
                break
            optimiser.param_groups[0]["lr"] = settings["rate"] * falls(step / steps, settings["decay"])
            optimiser.zero_grad()
            _loss(module(x)[..., 0], y).backward()
            optimiser.step()
            step += 1
            if step > steps - averaged:
                path.append({name: tensor.clone() for name, tensor in module._module.state_dict().items()})
    return path


def _loss(values: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if values.shape[2] == 1:
        return torch.mean((values[:, :, 0] - y) ** 2)
    return torch.mean(torch.nn.functional.softplus(-2 * y * (values[:, :, 0] - values[:, :, 1])))


def _network(sizes: tuple[int, ...]) -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.Tanh()]
    last = torch.nn.Linear(sizes[-1], 1)
    torch.nn.init.zeros_(last.weight)
    torch.nn.init.zeros_(last.bias)
    return torch.nn.Sequential(*layers, last)


@torch.no_grad()
def _read(network: torch.nn.Module, inputs: Array) -> Array:
    return network(torch.as_tensor(inputs, dtype=torch.float32))[..., 0].numpy().astype(np.float64)
