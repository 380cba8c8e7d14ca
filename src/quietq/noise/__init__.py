"""Random functions: kernels and their norms, sample paths, and the mechanism that makes a function private."""

from quietq.noise.box import Box, Domain
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.feature_path import AdditivePath, FeaturePath
from quietq.noise.grid_path import GridPath
from quietq.noise.kernels import (
    Additive,
    BandLimited,
    Differentiable,
    Exponential,
    Features,
    Kernel,
    Product,
    piecewise_linear,
)
from quietq.noise.mechanism import GaussianProcessMechanism
from quietq.noise.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateTable, PrivateWeights
from quietq.noise.sorted_path import SortedPath
from quietq.noise.tree_path import TreePath

__all__ = [
    "Additive",
    "AdditivePath",
    "BandLimited",
    "Box",
    "Differentiable",
    "Domain",
    "Entropy",
    "Exponential",
    "FeaturePath",
    "Features",
    "GaussianProcessMechanism",
    "GridPath",
    "Kernel",
    "PrivateFunction",
    "PrivateKnots",
    "PrivateSum",
    "PrivateTable",
    "PrivateWeights",
    "Product",
    "SeededEntropy",
    "SortedPath",
    "SystemEntropy",
    "TreePath",
    "piecewise_linear",
]
