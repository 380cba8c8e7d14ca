"""Per-person DP-SGD with Opacus: its clipping, sampling, noise and accounting, with Adam.

Opacus is no dependency of this project: `pip install opacus` first.
"""

import warnings
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from benchmarks.families import Array, States
from benchmarks.peers import DELTA, EPSILON, People, Reward, Settings


def train(people: People, settings: Settings, seed: int) -> Reward:
    """Weights are averaged over the second half of the steps, as with the other library."""
    from opacus import PrivacyEngine  # pyright: ignore[reportMissingImports]

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    count, steps = len(people.y), settings["steps"]
    network = _network((people.dimension, *settings["widths"]))
    adam = torch.optim.Adam(network.parameters(), lr=settings["learning rate"])
    rows = torch.utils.data.TensorDataset(
        torch.as_tensor(2 * people.x - 1, dtype=torch.float32), torch.as_tensor(people.y, dtype=torch.float32)
    )
    loader = torch.utils.data.DataLoader(rows, batch_size=int(count * settings["sampling"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about secure random numbers, which an experiment does not need
        module, optimiser, loader = PrivacyEngine().make_private(
            module=network,
            optimizer=adam,
            data_loader=loader,
            noise_multiplier=noise_multiplier(1 / len(loader), steps),
            max_grad_norm=settings["clip"],
        )
        path = _descend(module, optimiser, loader, steps)
    network.load_state_dict({name: sum(one[name] for one in path) / len(path) for name in path[0]})
    return lambda x: _read(network, x)


@cache
def noise_multiplier(sampling: float, steps: int) -> float:
    from opacus.accountants.utils import get_noise_multiplier  # pyright: ignore[reportMissingImports]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return get_noise_multiplier(
            target_epsilon=EPSILON, target_delta=DELTA, sample_rate=sampling, steps=steps, accountant="prv"
        )


def _descend(module: Any, optimiser: Any, loader: Any, steps: int) -> list[dict[str, torch.Tensor]]:
    path, step = [], 0
    while step < steps:
        for x, y in loader:
            if step == steps:
                break
            optimiser.zero_grad()
            torch.mean((module(x)[..., 0] - y) ** 2).backward()
            optimiser.step()
            step += 1
            if step > steps // 2:
                path.append({name: tensor.clone() for name, tensor in module._module.state_dict().items()})
    return path


def _network(sizes: tuple[int, ...]) -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.Tanh()]
    last = torch.nn.Linear(sizes[-1], 1)
    torch.nn.init.zeros_(last.weight)
    torch.nn.init.zeros_(last.bias)
    return torch.nn.Sequential(*layers, last)


@torch.no_grad()
def _read(network: torch.nn.Module, x: States) -> Array:
    return network(torch.as_tensor(2 * x - 1, dtype=torch.float32))[..., 0].numpy().astype(np.float64)
