"""The Ray that is there, or else one on this machine for as long as it is needed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from quietq.privacy.errors import MissingExtra

try:
    import ray
except ImportError as error:
    raise MissingExtra.of("ray", "The Ray engine needs Ray") from error


@contextmanager
def cluster() -> Iterator[None]:
    """Already initialised, or at RAY_ADDRESS; else started here and stopped in the end."""
    if ray.is_initialized():
        yield
        return
    ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()
