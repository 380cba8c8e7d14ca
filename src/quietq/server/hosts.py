"""Which Host headers are answered.

A page on the internet may have its own name lead to 127.0.0.1, and a browser would then let it read what is served
here. Such requests still carry that name.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address

from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")
_LONGEST = 260  # characters of a name with its port


def allowed_hosts(address: str, names: Iterable[str]) -> frozenset[str] | None:
    """The names that are answered besides those of this machine itself; None if any name is.

    >>> allowed_hosts("127.0.0.1", []), allowed_hosts("0.0.0.0", []), allowed_hosts("0.0.0.0", ["Example.org"])
    (frozenset(), None, frozenset({'example.org'}))
    """
    found = frozenset(_checked(name) for name in names)
    return found if found or ip_address(address.partition("%")[0]).is_loopback else None


@lru_cache(maxsize=64)
def is_allowed(header: bytes, names: frozenset[str]) -> bool:
    """Whether a Host header, with or without a port, holds a name of this machine itself or one of these.

    >>> headers = b"localhost:80", b"[::1]", b"A.example", b"b.example"
    >>> [is_allowed(header, frozenset({"a.example"})) for header in headers]
    [True, True, True, False]
    """
    if len(header) > _LONGEST:
        return False
    host = re.sub(r":\d*$", "", header.decode("latin-1").strip().lower()).removesuffix(".")
    if host in names or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def _checked(name: str) -> str:
    found = name.lower().removesuffix(".")
    if len(found) > _LONGEST or not _NAME.fullmatch(found):
        raise InvalidInput(f"--allow-host must be a name such as quietq.example, without a port, not {shown(name)}.")
    return found
