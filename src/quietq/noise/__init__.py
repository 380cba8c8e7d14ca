"""Random numbers and functions: exact randomness, the laws of noise, paths on a grid, rounding, boxes and feature maps.

Noise that protects is exact: of its law in real numbers, rounded once. Three engines do that, for three needs:

- `exact_gaussian` compares 64-bit digits in whole arrays. It is the fast one, for the millions of normals of a table or
  a mean of people, and knows no law but the normal one.
- `exact` computes with intervals of decimal numbers, one number at a time. It is the general one: logarithms, roots and
  quotients of uniforms, as K-norm noise (`laws`, `mechanisms.knots`) and flips of answers need them.
- `exact_path` rounds *coefficients*, not noise: of points that come one by one it computes weights to 40 digits and
  more, and draws its normals from `exact_gaussian`. On a grid `grid_path` does the same beforehand, in float64.
"""

from quietq.noise.box import Box as Box, Domain as Domain
from quietq.noise.entropy import Entropy as Entropy, SeededEntropy as SeededEntropy, SystemEntropy as SystemEntropy
from quietq.noise.feature_maps import (
    Categorical as Categorical,
    Columns as Columns,
    FeatureMap as FeatureMap,
    Fourier as Fourier,
    Polynomials as Polynomials,
)
