"""The run-time type checker of the tests: beartype, with ints accepted where floats are asked for."""

from beartype import BeartypeConf, beartype

typecheck = beartype(conf=BeartypeConf(is_pep484_tower=True))
