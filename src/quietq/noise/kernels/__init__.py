"""Kernels: how smooth the noise is, and in which norm it protects."""

from quietq.noise.kernels.additive import Additive
from quietq.noise.kernels.band_limited import BandLimited
from quietq.noise.kernels.base import Kernel
from quietq.noise.kernels.exponential import Exponential
from quietq.noise.kernels.features import FeatureKernel, FiniteRank
from quietq.noise.kernels.functions import Differentiable, piecewise_linear
from quietq.noise.kernels.product import Product

__all__ = [
    "Additive",
    "BandLimited",
    "Differentiable",
    "Exponential",
    "FeatureKernel",
    "FiniteRank",
    "Kernel",
    "Product",
    "piecewise_linear",
]
