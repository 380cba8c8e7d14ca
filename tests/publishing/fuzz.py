"""Mutated releases, so many of them, in a process with little memory and a clock: `fuzz.py TRIALS SEED`.

Half of them are mutated byte by byte. The other half are forged with care: a field of the text or an array is changed
and the hash made to fit, so that the checks behind the hash are reached. A file that loads is asked, too.
"""

import copy
import json
import resource
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
from releases import KINDS, arrays_of, make, record_of, states

from quietq import InvalidInput
from quietq.publishing import publish
from quietq.released import InvalidRelease, load
from quietq.released.release_file import pack

MEMORY = 512 * 2**20
SECONDS = 5.0
NONSENSE = (
    None, True, False, -1, 0, 1, 2, 3, 7, 10**15, -0.0, 1e-320, 1e308, 0.5, "", "x", "NOT PRIVATE", "certified",
    "table", "mlp", [], [1], [26], [[0.0, 1.0]], [[0.0, 1.0]] * 30, {}, {"kind": "x"},
)  # fmt: skip


def scramble(whole: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, put in or taken out."""
    data, header = bytearray(whole), 8 + int.from_bytes(whole[:8], "little")
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(header if rng.random() < 0.8 else len(data)))
        what = rng.integers(5)
        if what == 0:
            data[at % len(data)] ^= 1 << int(rng.integers(8))
        elif what == 1:
            data[at % len(data)] = int(rng.choice(list(b'0123456789eE.-+[]{}":,truefalsn\\')))
        elif what == 2:
            del data[at:]
        elif what == 3:
            data[at:at] = rng.bytes(int(rng.integers(1, 20)))
        else:
            del data[at : at + int(rng.integers(1, 20))]
        if not data:
            break
    if rng.random() < 0.3 and len(data) > 8:  # a header length that fits again
        data[:8] = (header - 8 + len(data) - len(whole)).to_bytes(8, "little", signed=True)
    return bytes(data)


def forge(record: dict, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> bytes:
    """A field or an array changed, and the hash made to fit."""
    record, arrays = json.loads(json.dumps(record)), dict(arrays)
    for _ in range(rng.integers(1, 3)):
        if rng.random() < 0.7:
            where = record
            while True:
                places = list(where) if isinstance(where, dict) else range(len(where))
                name = places[rng.integers(len(places))]
                if isinstance(where[name], dict | list) and where[name] and rng.random() < 0.8:
                    where = where[name]
                    continue
                break
            value = where[name]
            if isinstance(value, float) and rng.random() < 0.5:  # a little better than it is
                where[name] = value * float(rng.choice([0.99, 1.01]))
            else:
                where[name] = copy.deepcopy(NONSENSE[rng.integers(len(NONSENSE))])
        else:
            name = str(rng.choice(list(arrays)))
            array, what = arrays[name].copy(), rng.integers(4)
            if what == 0:
                array.flat[rng.integers(array.size)] = rng.choice([1e99, -1e99, 1e-320, 0.0, np.nan, np.inf, 1e30])
            elif what == 1:
                array = array.reshape(-1)
            elif what == 2:
                array = array[..., None] if array.ndim < 8 else array
            else:
                array = array[: max(1, len(array) // 2)]
            arrays[name] = array
    return pack(json.dumps(record), arrays)


def expired(*_: object) -> None:
    """Hanging is a failure."""
    raise TimeoutError("a file took too long")


def main(trials: int, seed: int) -> None:
    """Writes, loads, asks; prints how many were refused and how many loaded."""
    rng, counts = np.random.default_rng(seed), {"refused": 0, "loaded": 0}
    with tempfile.TemporaryDirectory() as folder:
        path, samples = Path(folder) / "release.qq", []
        for kind in KINDS:
            publish(make(kind), path)
            samples.append((kind, path.read_bytes(), record_of(path), arrays_of(path)))
            load(path)
        modules = set(sys.modules)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        signal.signal(signal.SIGALRM, expired)
        for _ in range(trials):
            kind, whole, record, arrays = samples[rng.integers(len(samples))]
            path.write_bytes(scramble(whole, rng) if rng.random() < 0.5 else forge(record, arrays, rng))
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                back = load(path)
                values = back(states(back))
                assert np.isfinite(values).all(), path.read_bytes()
                assert back.certificate is not None
                assert str(back.certificate)
                assert repr(back)
                counts["loaded"] += 1
            except InvalidRelease:
                counts["refused"] += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        assert set(sys.modules) == modules, set(sys.modules) - modules
    print(json.dumps(counts))


if __name__ == "__main__":
    assert issubclass(InvalidRelease, InvalidInput)
    main(int(sys.argv[1]), int(sys.argv[2]))
