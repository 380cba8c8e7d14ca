"""Random numbers and functions: exact randomness, kernels and their norms, sample paths, rounding."""

from quietq.noise.box import Box as Box, Domain as Domain
from quietq.noise.entropy import Entropy as Entropy, SeededEntropy as SeededEntropy, SystemEntropy as SystemEntropy
from quietq.noise.feature_maps import (
    Categorical as Categorical,
    Columns as Columns,
    FeatureMap as FeatureMap,
    Fourier as Fourier,
    Polynomials as Polynomials,
    Radial as Radial,
    Splines as Splines,
)
from quietq.noise.grid_path import GridPath as GridPath
from quietq.noise.kernels import (
    Additive as Additive,
    Exponential as Exponential,
    Kernel as Kernel,
    Product as Product,
)
