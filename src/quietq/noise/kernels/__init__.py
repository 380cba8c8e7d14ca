"""Kernels: how smooth the noise is, and in which norm it protects."""

from quietq.noise.kernels.base import Kernel as Kernel
from quietq.noise.kernels.exponential import Additive as Additive, Exponential as Exponential, Product as Product
from quietq.noise.kernels.finite_rank import (
    BandLimited as BandLimited,
    FeatureKernel as FeatureKernel,
    FiniteRank as FiniteRank,
)
