"""The gradient of a small network, person by person: hidden layers of tanh in float64, by hand.

A person's rows lie in blocks of their own, and every product of matrices is of one block and one layer, so all products
have the same size whoever else is there: nobody's company changes a bit of their vector. (`COMPANY` allows for a step
of everybody's sum all the same.)
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.feedback.loss import Loss
from quietq.feedback.row_statistics import TOLD, clipped
from quietq.feedback.statistic import Columns, Starts, Vector

BLOCK = 8
"""Rows; those that a person's last block has too many count nothing."""


def number_of_weights(widths: Sequence[int]) -> int:
    """Of a network whose layers are so wide, inputs first and outputs last."""
    return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(widths))


def layers(weights: Any, widths: Sequence[int]) -> list[Any]:
    """Each layer's matrix, of shape (inputs + 1, outputs) with biases in the last row, from all numbers in a row."""
    found, begin = [], 0
    for inputs, outputs in itertools.pairwise(widths):
        end = begin + (inputs + 1) * outputs
        found.append(weights[begin:end].reshape(inputs + 1, outputs))
        begin = end
    return found


@dataclass(frozen=True, eq=False)
class NetworkGradient(Vector):
    """A person's gradient of the loss, over the clip, and beside it how much of it was left by clipping."""

    loss: Loss
    widths: tuple[int, ...]
    weights: Float[np.ndarray, " weights"]
    clip: float
    bound: float = (1 + TOLD**2 / 4) ** 0.5

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.weights) + 1

    @property
    def rows_at_once(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return max(BLOCK, 2**21 // self.size)  # so that they fit into a cache

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite counts as 0
            return clipped(self.gradients(starts, columns), self.clip)

    def gradients(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people weights"]:
        """Each person's mean gradient over their answers."""
        points, matrices = self.loss.points(columns), layers(self.weights, self.widths)
        counts = np.diff(starts, append=len(points[0]))
        blocks = -(-counts // BLOCK)
        begins = np.cumsum(blocks) - blocks
        row = np.arange(len(points[0]))
        places = row + np.repeat(BLOCK * begins - starts, counts)  # of each row among all blocks' rows

        def in_blocks(rows: np.ndarray) -> np.ndarray:
            laid = np.zeros((BLOCK * int(blocks.sum()), rows.shape[1]))
            laid[places] = rows
            return laid.reshape(-1, BLOCK, rows.shape[1])

        acted = columns["action"].astype(np.int64) if self.loss.actions > 1 else np.zeros(len(row), np.int64)
        passed = [forward(in_blocks(2 * np.nan_to_num(one, nan=0.5) - 1), matrices) for one in points]
        values = [outputs.reshape(-1, outputs.shape[-1])[places, acted] for _, outputs in passed]
        total = np.zeros((len(begins), len(self.weights)))
        for (hidden, outputs), slopes in zip(passed, self.loss.slopes(starts, columns, values), strict=True):
            slope = np.zeros((len(row), outputs.shape[-1]))
            slope[row, acted] = slopes
            total += np.add.reduceat(backward(in_blocks(slope), hidden, matrices), begins, axis=0)
        return total


def forward(inputs: np.ndarray, matrices: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """What each layer is given, with a column of ones, and what the last one gives."""
    given = []
    for i, matrix in enumerate(matrices):
        given.append(np.concatenate([inputs, np.ones((*inputs.shape[:-1], 1))], axis=-1))
        inputs = np.matmul(given[-1], matrix)
        if i < len(matrices) - 1:
            inputs = np.tanh(inputs)
    return given, inputs


def backward(slope: np.ndarray, given: list[np.ndarray], matrices: list[np.ndarray]) -> np.ndarray:
    """Each block's gradient of all weights, by the slopes of its outputs."""
    found = []
    for i in reversed(range(len(matrices))):
        found.append(np.matmul(given[i].swapaxes(1, 2), slope).reshape(len(slope), -1))
        if i:
            slope = np.matmul(slope, matrices[i][:-1].T) * (1 - given[i][..., :-1] ** 2)
    return np.concatenate(found[::-1], axis=1)
