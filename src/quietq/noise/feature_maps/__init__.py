"""Public feature maps: data, not code, so that they travel inside a release.

A map looks at one state at a time, and a state's features are the same bits in whatever company. It is written once
against the array module `xp`, NumPy or jax.numpy: points of the unit box have shape (..., d), features (..., rank). A
file can name the maps that stand here and no others.
"""

from dataclasses import fields
from typing import Any

from quietq.noise.feature_maps.categorical import Categorical as Categorical
from quietq.noise.feature_maps.columns import Columns as Columns
from quietq.noise.feature_maps.feature_map import FeatureMap as FeatureMap
from quietq.noise.feature_maps.polynomials import MOST_DEGREE as MOST_DEGREE, Polynomials as Polynomials, Term as Term
from quietq.noise.feature_maps.random_features import Fourier as Fourier, Radial as Radial
from quietq.noise.feature_maps.splines import Splines as Splines
from quietq.privacy.errors import InvalidInput

_MAPS: dict[str, type[FeatureMap]] = {
    one.kind: one for one in (Polynomials, Fourier, Radial, Splines, Categorical, Columns)
}


def is_data(features: FeatureMap) -> bool:
    """Whether it is one of the maps here, and not a class that somebody derived from them."""
    return type(features) in _MAPS.values()


def map_of(record: Any) -> FeatureMap:
    """A map from JSON, with everything checked."""
    named: Any = record.get("kind") if isinstance(record, dict) else None
    kind = _MAPS.get(named) if isinstance(named, str) else None
    if kind is None:
        raise InvalidInput(f"A feature map must be one of {', '.join(_MAPS)}.")
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if set(record) != {"kind", *names}:
        raise InvalidInput(f"A feature map of kind {kind.kind!r} must have the fields {', '.join(names)}.")
    try:
        found = kind(**{name: _tupled(record[name]) for name in names})
    except TypeError as error:
        raise InvalidInput(f"A feature map of kind {kind.kind!r} has a field of another type.") from error
    if found.dimension < 1:
        raise InvalidInput("A feature map in a file must say for how many coordinates it is.")
    return found


def _tupled(value: Any) -> Any:
    return tuple(_tupled(one) for one in value) if isinstance(value, list) else value
