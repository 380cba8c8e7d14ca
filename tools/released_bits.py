"""Whether a change left every released number as it was, to the last bit: one SHA-256 for each case, at fixed seeds.

    python tools/released_bits.py --out before.json        # and then, when modules were moved,
    python tools/released_bits.py --compare before.json    # ends with 1 if a number differs

Each case makes one release, or trains, plays or attacks for a short while, and hashes the numbers that come out. Noise
that protects is part of it: in this process, and nowhere else, the operating system's generator is replaced, for the
package, by a stream that follows from the case's name. So nothing that is released here protects anybody.

Names are looked for in `quietq` first, and then where `WHERE` says: after a move that table is all that changes. What
is found nowhere is "gone". The last bits of floating-point sums depend on the machine and on versions of NumPy and JAX:
compare runs on one machine only.
"""

import argparse
import dataclasses
import hashlib
import importlib
import inspect
import json
import os
import random
import secrets
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PLACES: tuple[tuple[str, str], ...] = (
    # Modules in the order in which they are tried, and what is in them that `quietq` itself does not name. Where two
    # have one name, it follows the module's last name and a dot.
    ("quietq.paper", "ActorCritic Agent BandLimited Evaluation FeatureKernel GradientNoise InputNoise "
                     "NetworkValueNoise NoNoise OutputNoise Published PublishedTheorem RewardNoise "
                     "SortedPath ValueNoise"),
    ("quietq.privacy.budget", "epsilon_from_mu"),
    ("quietq.privacy.limits", "cap_any_dp cap_gdp people_needed"),
    ("quietq.privacy.norms", "Answers"),
    ("quietq.paper.theorem", "claimed_budget"),
    ("quietq.noise", "Polynomials SeededEntropy SystemEntropy"),
    ("quietq.noise.laws", "BallNoise"),
    ("quietq.noise.exact_gaussian", "Chance add_exactly as_they_are by_matrix draw_normals"),
    ("quietq.noise.exact_path", "ExactPath"),
    ("quietq.mechanisms.knots", "IncrementNoise"),
    ("quietq.noise.grid_path", "GridNoise draw_grid"),
    ("quietq.feedback.synthetic", "Survey"),
    ("quietq.feedback.cells", "Cells"),
    ("quietq.mechanisms", "expected"),
    ("quietq.feedback.own_function", "OwnFunction"),
    ("quietq.mechanisms.candidates", "MECHANISMS candidates"),
    ("quietq.mechanisms.candidates", "choose"),
    ("quietq.worlds", "WALK find_world mean_return plan_on_grid walk_reward"),
    ("quietq.paper.observed", "observe"),
    ("quietq.online",
     "Elimination Episodes Linear LocalUCB TreeUCB resume save"),
    ("quietq.online.ucb", "keeps"),
    ("quietq.audit", "Visit audit_bandit audit_mechanism audit_reward frozen_bandit "
                     "frozen_release all_but_two worst_rows"),
    ("quietq.paper.attacks", "audit_evaluation audit_training frozen_sensitivity reconstruct"),
    ("quietq.paper.agents.method", "EnvironmentSpaces"),
    ("quietq.paper", "BandLimited FeatureKernel FiniteRankMechanism"),
    ("reproduction.claims.listing", "listing.measure listing.measure_rounds"),
    ("reproduction.claims.mechanisms", "mechanisms.measure"),
    ("reproduction.claims.parameters", "parameters.measure"),
    ("reproduction.claims.paths", "paths.measure paths.measure_moments"),
    ("reproduction.claims.sampler", "sampler.dense sampler.measure"),
    ("reproduction.claims.spaces", "spaces.measure spaces.movement"),
    ("reproduction.claims.utility", "utility.measure utility.measure_programs"),
    ("reproduction.comparison.scores", "scores.measure scores.measure_caps"),
    ("reproduction.extensions.kernels", "kernels.measure_covariance kernels.measure_dimension kernels.measure_releases "
                                 "kernels.measure_terms"),
    ("reproduction.extensions.learners", "learners.measure_gradient learners.measure_learning "
                                  "learners.measure_raw_advantages"),
    ("reproduction.extensions.worlds", "worlds.measure_plans worlds.measure_scaled"),
    ("reproduction.figures.figure1", "figure1.measure"),
    ("reproduction.figures.figure2", "figure2.measure_evaluation figure2.measure_method figure2.measure_opposite"),
    ("reproduction.hilbert", "norm_of piecewise_linear"),
    ("quietq.paper.discrete", "random_mdp solve"),
)  # fmt: skip
OURS = ("quietq", "reproduction")
"""What all that is measured belongs to."""
WHERE: dict[str, tuple[str, ...]] = {}
for _module, _names in PLACES:
    for _name in _names.split():
        WHERE[_name] = (*WHERE.get(_name, ()), _module)
SURROUNDINGS = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "QUIETQ_CACHE": "", "JAX_ENABLE_X64": "0",
}  # fmt: skip
"""One core and no program from an earlier run: what is measured is this code."""
GONE = "gone"
CERTIFIED = ("standing", "epsilon", "delta", "mu", "expected_error")
CASES: dict[str, Callable[[], Any]] = {}


class Gone(Exception):
    """What a case is about is no longer in the package."""


def find(name: str) -> Any:
    """A public name of quietq, or what the first module of `WHERE` has under it."""
    import quietq

    attribute = name.rpartition(".")[2]
    if name in quietq.__all__:
        return getattr(quietq, name)
    for place in WHERE.get(name, ()):
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{place}.".startswith(f"{error.name}."):
                raise  # it is there, and something that it needs is not
            continue
        if hasattr(module, attribute):
            return getattr(module, attribute)
    raise Gone(name)


class _Names:
    """Whatever is found under a name: `qq.Budget`."""

    def __getattr__(self, name: str) -> Any:
        return find(name)


qq = _Names()


def with_option(function: Any, option: str) -> None:
    """Raises Gone if a function lost this option."""
    if option not in inspect.signature(function).parameters:
        raise Gone(option)


def case(name: str, *given: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a case of a function, called with what is given."""

    def take(function: Callable[..., Any]) -> Callable[..., Any]:
        assert name not in CASES, name
        CASES[name] = lambda: function(*given)
        return function

    return take


def cases(prefix: str, table: Mapping[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """One case for each entry, called with its value."""

    def take(function: Callable[..., Any]) -> Callable[..., Any]:
        for name, given in table.items():
            case(f"{prefix}/{name}", given)(function)
        return function

    return take


# What is hashed


def feed(digest: Any, value: Any) -> None:
    """Adds exact bytes, with types and shapes, so that no two values that differ look alike."""
    if value is None or isinstance(value, bool | int | str | bytes):
        digest.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, float):
        digest.update(b"float:" + struct.pack("<d", value))
    elif isinstance(value, Mapping):
        digest.update(f"mapping:{len(value)};".encode())
        for key in sorted(value, key=str):
            feed(digest, str(key))
            feed(digest, value[key])
    elif isinstance(value, list | tuple):
        digest.update(f"list:{len(value)};".encode())
        for one in value:
            feed(digest, one)
    elif hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError("an array of objects has no bytes of its own")
        digest.update(f"array:{array.dtype.str}{array.shape};".encode() + np.ascontiguousarray(array).tobytes())
    else:
        raise TypeError(f"no numbers are known in a {type(value).__name__}")


def sha(value: Any) -> str:
    digest = hashlib.sha256()
    feed(digest, value)
    return digest.hexdigest()


def certified(certificate: Any) -> dict[str, Any]:
    """The numbers of a certificate; its sentences may be put better."""
    told = certificate.to_dict()
    queries = told["queries"] if certificate.standing == "certified" else []
    numbers = {name: getattr(certificate, name) for name in CERTIFIED}
    return numbers | {"relation": told["relation"], "queries": queries}


def all_of(released: Any) -> dict[str, Any]:
    """All that a file holds of a release, what it answers, and the numbers of its certificate."""
    details, arrays = {}, {name: getattr(released, name) for name in released.arrays}
    if hasattr(released, "details"):  # weights of features that are code can be in no file
        details, arrays = released.to_arrays()
    items = getattr(released, "items", None)
    places = points(released.box) if items is None else list(items)
    return {"details": details, "arrays": arrays, "values": released(places),
            "certificate": certified(released.certificate)}  # fmt: skip


def points(box: Any, number: int = 65) -> Any:
    unit = np.random.default_rng(1).random((number, box.dimension))
    places = np.array(box.low) + unit * np.array(box.width)
    return places[:, 0] if box.dimension == 1 else places


def fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass of numbers, or of one in another."""
    shown = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {name: fields(one) if dataclasses.is_dataclass(one) else one for name, one in shown.items()}


# What people gave, made up by fixed seeds


def frame(**columns: Any) -> Any:
    import polars

    return polars.DataFrame(columns)


def who(people: int, rows: int) -> Any:
    return np.repeat(np.arange(people), rows)


def generator(seed: int = 0) -> Any:
    return np.random.default_rng(seed)


def liking(*coordinates: Any) -> Any:
    return np.exp(-3 * sum((one - 0.3) ** 2 for one in coordinates))


def ratings_of_one(**options: Any) -> Any:
    rng = generator()
    x = rng.random(300)
    rows = frame(person=who(60, 5), state=x, rating=liking(x) + 0.1 * rng.normal(size=300))
    return qq.Ratings.read(rows, **{"box": (0, 1), "low": 0, "high": 1, "slope": 2, "people": 60, **options})


def ratings(kind: str = "states", people: int = 200, **options: Any) -> Any:
    rng, rows = generator(), 5 * people
    x, y = rng.random((2, rows))
    told = {"person": who(people, 5), "x": x, "y": y, "rating": liking(x, y) + 0.1 * rng.normal(size=rows)}
    declared = {"state": ["x", "y"], "box": [(0, 1), (0, 1)]}
    if kind == "items":
        names = [f"item {i}" for i in range(12)]
        told["item"], declared = rng.choice(names, rows), {"state": "item", "box": names}
    elif kind == "actions":
        told["action"] = rng.choice(["stay", "go"], rows)
        declared |= {"action": "action", "actions": ["stay", "go"]}
    return qq.Ratings.read(frame(**told), **declared, low=0, high=1, people=people, **options)


def comparisons(kind: str = "states", people: int = 200, **options: Any) -> Any:
    rng, rows = generator(), 5 * people
    a, b, c, d = rng.random((4, rows))
    better = liking(a, b) + 0.2 * rng.normal(size=rows) > liking(c, d)
    told = {"person": who(people, 5), "a": a, "b": b, "c": c, "d": d, "choice": np.where(better, "left", "right")}
    declared: dict[str, Any] = {"left": ["a", "b"], "right": ["c", "d"], "box": [(0, 1), (0, 1)]}
    if kind == "ties":
        told["choice"] = np.where(rng.random(rows) < 0.2, "tie", told["choice"])
    elif kind == "options":
        declared = {"box": declared["box"], "options": {"train": ["a", "b"], "car": ["c", "d"], "bus": ["e", "f"]}}
        told["e"], told["f"] = rng.random((2, rows))
        told["choice"] = rng.choice(["train", "car", "bus"], rows)
    elif kind == "items":
        names = [f"item {i}" for i in range(8)]
        told |= {"left": rng.choice(names, rows), "right": rng.choice(names, rows)}
        declared = {"left": "left", "right": "right", "box": names}
    elif kind == "segments":
        told["pair"] = rng.integers(0, 2, rows)
        declared |= {"segment": "pair", "length": 2}
    return qq.Comparisons.read(frame(**told), **declared, people=people, **options)


def sessions(people: int = 120, steps: int = 8, numbers: bool = False, **options: Any) -> Any:
    """A linear system in two coordinates, which ends beyond 1.5."""
    rng, rows = generator(3), []
    for person in range(people):
        state = 0.5 * rng.normal(size=2)
        for step in range(steps):
            action = rng.uniform(-1, 1) if numbers else int(rng.integers(2))
            push = np.array([0.0, 0.2 * (action if numbers else 2 * action - 1)])
            moved = np.array([state[0] + 0.1 * state[1], 0.95 * state[1] - 0.1 * state[0]]) + push
            after = np.clip(moved + 0.01 * rng.normal(size=2), -2, 2)
            reward = min(max((state[0] + 1) / 3, 0.0), 1.0)
            rows.append((person, step, *state, *after, action, reward, int(abs(after[0]) > 1.5)))
            if rows[-1][-1]:
                break
            state = after
    names = ("who", "step", "x", "y", "next x", "next y", "push", "reward", "end")
    acting: dict[str, Any] = {"action": "push", "actions": [0, 1]}
    if numbers:
        acting = {"action": ["push"], "actions": [(-1, 1)]}
    given = {"person": "who", "step": "step", "state": ["x", "y"], "next_state": ["next x", "next y"],
             "reward": "reward", "end": "end", "box": [(-2, 2), (-2, 2)], "people": people}  # fmt: skip
    told = frame(**dict(zip(names, zip(*rows, strict=True), strict=True)))
    return qq.Sessions.read(told, **given, **acting, **options)


def budget(delta: float = 1e-4, epsilon: float = 0.9) -> Any:
    return qq.Budget(epsilon, delta)


def fifty() -> Any:
    return qq.people(50, low=0, high=0.5, slope=1)


def peak(states: Any) -> Any:
    return 0.5 - np.abs(np.asarray(states) - 0.5)


def two_features(x: Any) -> Any:
    return np.stack([np.ones_like(x), x], axis=-1)


def in_both_ways(make: Callable[[], Any], release: Callable[..., Any]) -> list[Any]:
    """A simulation from a seed, and the release itself with its exact noise."""
    source = make()
    try:
        return [all_of(release(source, simulate=5)), all_of(release(source))]
    except ValueError as error:
        if str(error).startswith("noise must be"):  # this kind of it is no longer there
            raise Gone from error
        raise


# Noise


def draws_of(entropy: Any) -> list[Any]:
    return [entropy.normals((200,)), entropy.normals((3, 4)), entropy.uniforms((50,))]


@case("noise/seeded entropy")
def seeded_entropy() -> Any:
    return draws_of(qq.SeededEntropy(7))


@case("noise/system entropy")
def system_entropy() -> Any:
    entropy = qq.SystemEntropy()
    return [*draws_of(entropy), entropy.whole_normals((40,), 2.0**18)]


@case("noise/exact normals")
def exact_normals() -> Any:
    normals = qq.draw_normals(400, qq.Chance())
    return [normals.about(), [[str(end) for end in normals.between(i, 3)] for i in range(20)]]


@case("noise/exact sum")
def exact_sum() -> Any:
    numbers = generator().normal(size=150)
    matrix = generator(1).normal(size=(6, 6))
    step = 2.0**-40
    grid = qq.GridNoise(1.0, qq.Exponential((1.0, 2.0)), 3).whiten(generator(2).normal(size=(9, 9)), step)
    white = [qq.as_they_are(numbers, step), qq.by_matrix(matrix, numbers[:6], step), grid]
    return [qq.add_exactly(one, 0.3, step) for one in white]


@case("noise/exact path")
def exact_path() -> Any:
    path = qq.ExactPath(qq.Exponential(4.0), 2.0**-20, 0.1)
    return [path.add(float(x), float(peak(x))) for x in generator().random(60)]


@case("noise/increments")
def increments() -> Any:
    law = qq.IncrementNoise(0.9, fifty(), 5)
    exact = [law.round_exactly(np.zeros(5), 2.0**-40) for _ in range(20)]
    return [law.draws(qq.SeededEntropy(3), 50), exact, law.sigma]


@case("noise/ball")
def ball() -> Any:
    law = qq.BallNoise(0.9, 5, qq.Answers())
    exact = [law.round_exactly(np.zeros(5), 2.0**-40) for _ in range(10)]
    return [law.draws(qq.SeededEntropy(3), 50), exact, law.sigma]


@case("noise/flips")
def flips() -> Any:
    return [qq.keeps(odds) for odds in (0.1, 0.5, 1.0, 3.0) for _ in range(40)]


@case("noise/sorted path")
def sorted_path() -> Any:
    x = generator().random(300)
    return [qq.SortedPath(qq.Exponential(4.0), entropy=one)(x) for one in (qq.SeededEntropy(1), None)]


@case("noise/grid path")
def grid_path() -> Any:
    kernels = qq.Exponential(4.0), qq.Exponential((1.0, 2.0)), qq.Exponential((4.0, 2.0), summed=True)
    sources = qq.SeededEntropy(1), qq.SystemEntropy()
    return [qq.draw_grid(kernel, 5, (), one) for kernel in kernels for one in sources]


@case("noise/kernels")
def kernels() -> Any:
    x, two = generator().random(9), generator().random((9, 2))
    on_line = qq.Exponential(3.0), qq.BandLimited(2.0, 1e-12), qq.FeatureKernel(two_features, 2)
    return [*(one.covariance(x, x) for one in on_line), on_line[0].norm_on(x, peak(x)),
            qq.Exponential((1.0, 2.0)).covariance(two, two), fifty().rkhs_radius(on_line[0]),
            fifty().best_beta()]  # fmt: skip


@case("noise/feature maps")
def feature_maps() -> Any:
    x = generator().random((20, 2))
    maps = (qq.Fourier.draw(2, 6, 0.5), qq.Columns().sized(2),
            qq.Polynomials(2, (((0, 1),), ((1, 1),), ((0, 2),), ((0, 1), (1, 1)))))  # fmt: skip
    return [[one.to_dict(), one(x)] for one in maps]


# What `privatise` releases


def of_function(options: dict[str, Any], f: Any = peak, relation: Callable[[], Any] = fifty) -> Any:
    if "level" in options:
        with_option(qq.privatise, "level")
    given = {"relation": relation(), "budget": budget(), **options}
    return in_both_ways(lambda: f, lambda f, **more: qq.privatise(f, **given, **more))


@cases("function", {
    "auto": {}, "path": {"noise": "path"}, "path with a level": {"noise": "path", "level": True},
    "path, rough values": {"noise": "path", "accuracy": 1e-6}, "path on another interval": {"noise": "path",
    "domain": (14.0, 30.0)}, "k-norm": {"noise": "k-norm"}, "k-norm, 5 pieces": {"noise": "k-norm", "pieces": 5},
    "knots": {"noise": "knots"}, "knots, 5 pieces": {"noise": "knots", "pieces": 5},
})  # fmt: skip
def function(options: dict[str, Any]) -> Any:
    f = (lambda s: peak((s - 14) / 16)) if "domain" in options else peak
    return of_function(options, f)


@case("function/pure auto")
def pure_function() -> Any:
    return of_function({"budget": budget(0.0)})


@case("function/path of two actions")
def function_of_actions() -> Any:
    return of_function({"noise": "path"}, lambda s: np.stack([peak(s), s / 2], axis=-1),
                       lambda: qq.people(50, low=0, high=0.5, slope=1, actions=2))  # fmt: skip


@case("function/path of an account")
def accounted() -> Any:
    account = qq.Accountant(budget(epsilon=3.0))
    private = [qq.privatise(peak, budget(), relation=fifty(), account=account) for _ in range(2)]
    return [[all_of(one) for one in private], account.spending.spent_mu]


def by_process(kernel: Any, f: Any, mechanism: str = "GaussianProcessMechanism") -> Any:
    make = lambda: find(mechanism)(kernel, 0.02, budget(), levels=4)  # noqa: E731
    return [make().sigma, all_of(make().simulate(f, 3)), all_of(make().apply(f))]


@case("gaussian process/exponential")
def process_exponential() -> Any:
    return by_process(qq.Exponential(4.0), peak)


@case("gaussian process/product")
def process_product() -> Any:
    return by_process(qq.Exponential((1.0, 2.0)), lambda s: peak(s[:, 0]) * s[:, 1])


@case("gaussian process/additive")
def process_additive() -> Any:
    return by_process(qq.Exponential((4.0, 2.0), summed=True), [peak, lambda s: s])


@case("gaussian process/band-limited")
def process_band_limited() -> Any:
    return by_process(qq.BandLimited(2.0, 1e-12), peak, "FiniteRankMechanism")


@case("gaussian process/features")
def process_features() -> Any:
    return by_process(qq.FeatureKernel(two_features, 2), [0.1, 0.2], "FiniteRankMechanism")


@case("gaussian process/for relations")
def process_for_relations() -> Any:
    def made() -> Any:
        return qq.GaussianProcessMechanism.for_relation(fifty(), budget(), level=False)

    return [made().sigma, all_of(made().simulate(peak, 1)), all_of(made().apply(peak))]


@cases("ratings of one coordinate", {
    "auto": {}, "path": {"noise": "path"}, "k-norm": {"noise": "k-norm"}, "knots": {"noise": "knots"},
})  # fmt: skip
def one_coordinate(options: dict[str, Any]) -> Any:
    return in_both_ways(ratings_of_one, lambda source, **more: qq.privatise(source, budget(), **options, **more))


def of_rows(noise: str, read: Callable[[], Any], **options: Any) -> Any:
    return in_both_ways(read, lambda it, **more: qq.privatise(it, budget(), noise=noise, **options, **more))


@cases("ratings", {"rounds": "rounds", "auto": "auto"})
def rated_states(noise: str) -> Any:
    return of_rows(noise, ratings)


@case("ratings/from a CSV file")
def from_a_file() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ratings.csv"
        rng = generator()
        x = rng.random(300)
        frame(person=who(60, 5), state=x, rating=liking(x)).write_csv(file)
        given = {"box": (0, 1), "low": 0, "high": 1, "slope": 2, "people": 60}
        return in_both_ways(lambda: qq.Ratings.read(file, **given), lambda it, **more: qq.privatise(
            it, budget(), **more))  # fmt: skip


@cases("ratings/items", {"rounds": "rounds"})
def rated_items(noise: str) -> Any:
    return of_rows(noise, lambda: ratings("items"))


@cases("ratings/actions", {"rounds": "rounds"})
def rated_actions(noise: str) -> Any:
    return of_rows(noise, lambda: ratings("actions"))


@cases("ratings/features", {
    "Fourier": lambda: qq.Fourier.draw(2, 6, 0.5),
    "Columns": lambda: qq.Columns(),
    "Polynomials": lambda: qq.Polynomials(2, (((0, 1),), ((1, 1),), ((0, 1), (1, 1)))),
})  # fmt: skip
def rated_with_features(features: Callable[[], Any]) -> Any:
    return of_rows("rounds", lambda: ratings(features=features()))


@cases("comparisons", {"rounds": "rounds"})
def compared(noise: str) -> Any:
    return of_rows(noise, comparisons)


@cases("comparisons", {kind: kind for kind in ("ties", "options", "items", "segments")})
def other_comparisons(kind: str) -> Any:
    return of_rows("auto", lambda: comparisons(kind))


# Worlds, policies and plans


def known_parts() -> dict[str, Any]:
    return {
        "reward": lambda states, actions, after: 1 - after[..., 0] ** 2,
        "end": lambda after: abs(after[..., 0]) > 1.5,
        "start": lambda draws: draws - 0.5,
        "moves": {0: lambda states, actions, after: states[..., 0] + 0.1 * states[..., 1]},
    }


def known(*names: str) -> Any:
    return qq.WorldModel(**{name: known_parts()[name] for name in names})


def in_world(world: Any, **options: Any) -> list[Any]:
    """Some steps of three copies."""
    env = world.env(copies=3, **options)
    rng, seen = generator(), [env.reset(seed=4)[0]]
    for _ in range(30):
        lows, highs = (getattr(env.single_action_space, name, None) for name in ("low", "high"))
        actions = rng.integers(0, env.single_action_space.n, 3) if lows is None else rng.uniform(lows, highs, (3, 1))
        seen += env.step(actions)[:4]
    return seen


@cases("world", {
    "linear": ({}, lambda: None), "of numbers": ({"numbers": True}, lambda: None),
    "degree 2": ({}, lambda: qq.WorldModel(degree=2)), "Fourier": ({}, lambda: qq.WorldModel(
    features=qq.Fourier.draw(3, 6, 0.5))), "without ends": ({"end": None}, lambda: None),
    "known reward": ({}, lambda: known("reward")), "known end and start": ({}, lambda: known("end", "start")),
    "known moves": ({}, lambda: known("moves")), "all known": ({}, lambda: known("reward", "end", "start", "moves")),
})  # fmt: skip
def world_of(given: tuple[dict[str, Any], Callable[[], Any]]) -> Any:
    options, model = given
    people = _without_ends() if "end" in options else sessions(**options)
    made = [qq.privatise(people, budget(epsilon=4.0), world=model(), simulate=2)]
    made.append(qq.privatise(people, budget(epsilon=4.0), world=model()))
    return [[all_of(one), in_world(one)] for one in made]


def _without_ends() -> Any:
    rng = generator(3)
    x = rng.random((600, 1))
    rows = frame(who=who(100, 6), step=[0, 1, 2, 3, 4, 5] * 100, x=x[:, 0], go=rng.integers(0, 2, 600), r=x[:, 0] / 2)
    return qq.Sessions.read(rows, person="who", step="step", state="x", action="go", actions=[0, 1], reward="r",
                            box=(0, 1), people=100)  # fmt: skip


@case("world/plans")
def plans() -> Any:
    people, asked = sessions(), budget(1e-5, 4.0)
    world = qq.privatise(people, asked, simulate=0)
    plan = qq.plan_linear(world, steps=30, iterations=4, candidates=24)
    other = qq.plan_linear(world, steps=30, iterations=2, candidates=24, ensemble=False, seed=1)
    rich = qq.Budget.from_mu(1.0, 1e-5)
    checks = [qq.check(plan, people, rich, wanted, steps=30, simulate=1) for wanted in (3, 12)]
    account = qq.Accountant(qq.Budget(20.0, 1e-5))
    made = qq.plan_linear(qq.privatise(people, asked, account=account), steps=30, iterations=2, candidates=24)
    checks.append(qq.check(made, people, rich, 3, steps=30, account=account))
    found = [[one.share, one.agreement, one.error, one.promised, certified(one.certificate)] for one in checks]
    return [all_of(plan), all_of(other), found]


@case("world/published plan")
def published_plan() -> Any:
    world = qq.privatise(sessions(), budget(1e-5, 4.0))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.qq"
        qq.publish(qq.plan_linear(world, steps=30, iterations=2, candidates=16), file)
        return all_of(qq.load(file))


def visits(people: int = 300) -> Any:
    rng = generator(5)
    x = rng.random(4 * people)
    go = (rng.random(len(x)) < 0.3 + 0.4 * x).astype(int)
    reward = (rng.random(len(x)) < 0.2 + 0.6 * x) - 0.3 * go
    probable = np.where(go == 1, 0.3 + 0.4 * x, 0.7 - 0.4 * x)
    return frame(person=who(people, 4), t=np.tile(np.arange(4), people), x=x, go=go, r=reward, p=probable)


def read_visits(**options: Any) -> Any:
    return qq.Sessions.read(visits(), step="t", state="x", next_state=[], action="go", actions=[0, 1], reward="r",
                            low=-1, high=1, box=(0, 1), people=300, **options)  # fmt: skip


def chances(right: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda states: np.stack([1 - right(states[:, 0]), right(states[:, 0])], axis=-1)


@cases("policies", {
    "values": {}, "per step": {"per_step": True}, "advantages": {"against": "stay"},
    "learnt behaviour": {"behaviour": "cells"}, "propensities": {"behaviour": None},
})  # fmt: skip
def policies(options: dict[str, Any]) -> Any:
    people = read_visits(**({"propensity": "p"} if "behaviour" in options and options["behaviour"] is None else {}))
    given = {"behaviour": chances(lambda x: 0.3 + 0.4 * x), **options}
    if given["behaviour"] == "cells":
        given["behaviour"] = qq.Cells.between([0.0, 0.5, 1.0])
    asked = {"go": "1", "stay": "0", "bold": chances(lambda x: 0.4 + 0.5 * (x > 0.5))}
    release = lambda **more: qq.evaluate_policies(  # noqa: E731
        people, asked, budget(), returns=(-4, 4), discount=0.9, **given, **more
    )
    return [[one.table, one.noise, certified(one.certificate)] for one in (release(simulate=1), release())]


@cases("evaluation", {"lsw": {}, "lsl": {"kind": "lsl", "ridge": 10.0}, "lsw with features": {"features": True}})
def evaluation(options: dict[str, Any]) -> Any:
    rng = generator()
    path = np.cumsum(np.c_[rng.integers(0, 5, 3000), rng.random((3000, 11)) < 0.7], axis=1) % 5
    walks = list(zip(path, (path == 4).astype(float), strict=True))
    given = options | ({"features": np.c_[np.ones(5), np.arange(5)]} if "features" in options else {})
    made = qq.Evaluation(budget=qq.Budget(1.0, 1e-6), relation=qq.Trajectories(3000, 1.0, 12), gamma=0.8,
                         cells=qq.Cells.states(5), **given)  # fmt: skip
    found = made.release(walks, simulate=3), made.release(walks)
    return [[one.weights, one(np.arange(5)), certified(one.certificate)] for one in found]


# Rewards in environments, and what is made of releases


def walk_env() -> Any:
    import gymnasium

    return gymnasium.make("quietq.worlds:quietq/Walk-v0")


def rewards_of(env: Any, steps: int = 120) -> list[Any]:
    env.reset(seed=6)
    found, rng = [], generator()
    for _ in range(steps):
        seen, reward, ended, cut, _ = env.step(int(rng.integers(2)))
        found.append([seen, float(reward), bool(ended), bool(cut)])
        if ended or cut:
            env.reset()
    return found


@cases("own reward", {
    "path": (fifty, {}),
    "independent": (lambda: qq.SupBall(0.01), {"rewards": 200}),
})  # fmt: skip
def own_reward(given: tuple[Callable[[], Any], dict[str, Any]]) -> Any:
    env = qq.PrivateReward.of(walk_env(), given[0](), budget(), **given[1])
    return [rewards_of(env), certified(env.certificate)]


@case("private reward/in an environment")
def reward_in_environment() -> Any:
    private = qq.privatise(peak, budget(), relation=fifty(), noise="path", simulate=1)
    states = generator().random((40, 1))
    places = [qq.PrivateReward(walk_env(), private, on=on) for on in ("next-state", "state")]
    return [*map(rewards_of, places), private(states[1:, 0])]


@case("private reward/observed")
def observed() -> Any:
    given = {"low": 0.0, "high": 0.5, "rewards": 300}
    observe = lambda **more: qq.observe(qq.WALK, qq.SupBall(0.01), budget(), **given, **more)  # noqa: E731
    found = observe(simulate=1, seed=2), observe()
    return [[one.values, certified(one.certificate)] for one in found]


@case("private reward/published and loaded")
def published_and_loaded() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reward.qq"
        qq.publish(qq.privatise(peak, budget(), relation=fifty()), file)
        return all_of(qq.load(file))


@cases("environment", {name: name for name in ("walk", "thermostat", "navigation")})
def environment(name: str) -> Any:
    world = qq.find_world(name)
    rng, relation = generator(), world.relation(100)
    state = np.asarray(world.start(rng.random((20, world.draws)), np))
    seen = [state]
    for _ in range(20):
        state, over = world.move(state, rng.integers(0, world.actions, 20), rng.random((20, world.draws)), np)
        state = np.asarray(state)
        seen += [state, np.asarray(over), np.asarray(world.reward(state, np))]
    policy = qq.plan_on_grid(world)
    return [seen, relation.to_dict(), qq.mean_return(world, policy, episodes=50)]


# Public numbers


@case("public/promises")
def promises() -> Any:
    asked, theorem = budget(), qq.PublishedTheorem(budget())
    return [asked.mu, [one.mu for one in asked.split(0.5, 0.3, 0.2)], qq.epsilon_from_mu(0.5, 1e-5),
            theorem.beta, theorem.certificate(0.32).epsilon, qq.claimed_budget(0.4).epsilon, qq.cap_gdp(asked.mu, 5),
            qq.cap_any_dp(asked, 5), qq.people_needed(0.9, asked, distance=1.0, width=0.5, gaussian=True)]  # fmt: skip


@cases("public/plan", {
    "ratings": ("ratings", {}), "ratings in two dimensions": ("ratings", {"dimension": 2}),
    "items": ("ratings", {"items": 8}), "actions": ("ratings", {"actions": 2}), "comparisons": ("comparisons", {}),
    "choices": ("comparisons", {"options": 3}),
})  # fmt: skip
def planned(given: tuple[str, dict[str, Any]]) -> Any:
    kind, options = given
    found = qq.expected(qq.Survey(kind, 5, **options), 60, budget(), draws=2)
    return [found.correlations, found.regrets]


@case("public/plan and people needed")
def people_needed() -> Any:
    told = qq.plan("ratings", budget(1e-5, 1.0), people=100, rows=5, draws=1, useful=0.3).to_dict()
    return told


@case("public/expected errors")
def expected_errors() -> Any:
    told = {}
    sources = {"function": qq.OwnFunction(None, fifty(), slope=1.0), "rows": ratings(), "sessions": sessions()}
    for name, source in sources.items():
        for kind, entry in sorted(qq.MECHANISMS.items()):
            if entry.is_for(source):
                by_pieces = {getattr(one, "pieces", 0): one for one in reversed(qq.candidates(source, budget(), kind))}
                told[f"{name} {kind}"] = [one.expected_error for _, one in sorted(by_pieces.items())]
    return told


# Agents


STEPS = 200
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("NoNoise", {"widths": (8,), "start": 32, "batch": 16}),
    "reward": ("RewardNoise", {"widths": (8,), "start": 32, "batch": 16}),
    "actor-critic": ("ActorCritic", {"widths": (8,), "batch": 50, "epochs": 2}),
    "value": ("ValueNoise", {"round_steps": 100}),
    "value-network": ("NetworkValueNoise", {"batch": 50}),
    "gradient": ("GradientNoise", {"start": 50, "batch": 32, "train_every": 50}),
    "input": ("InputNoise", {}),
    "output": ("OutputNoise", {}),
}
"""The methods that are trained in worlds by their names, their classes, and settings that let them learn soon."""
PRESETS: dict[str, dict[str, Any]] = {
    "code": {"widths": (8,), "start": 32, "batch": 16}, "code, one path": {"widths": (8,), "start": 32, "resets": 1},
    "text": {"widths": (8,), "batch": 50, "replay": 50, "start": 50, "train_every": 50, "levels": 8},
}  # fmt: skip
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gradient of a small network": ("gradient", {"widths": (4,), "loss": "squared"}),
    "splines": ("none", {"network": "splines", "features": 5}),
}  # fmt: skip


def method_of(name: str, more: Mapping[str, Any] | None = None) -> Any:
    kind, settings = METHODS[name]
    given = settings | dict(more or {})
    made = find(kind)
    if name in ("reward", "actor-critic"):
        return made(qq.privatise(peak, budget(), relation=fifty(), noise="path", simulate=1), **given)
    return made(**given) if name == "none" else made(relation=fifty(), budget=budget(), **given)


def answers(agent: Any) -> list[Any]:
    import jax

    places = np.linspace(0, 1, 17)[:, None]
    values = [agent.q_values(places, member) for member in range(agent.members)]
    return [jax.tree.leaves(agent.released), values, agent.not_private, certified(agent.certificate)]


@cases("method", {name: name for name in METHODS})
def compiled(name: str) -> Any:
    """In the compiled trainer: with exact noise and, where a method draws its own, with two simulated draws."""
    trained = [qq.Agent("walk", method_of(name), seed=3).learn(STEPS)]
    if trained[0].method.spends:
        trained.append(qq.Agent("walk", method_of(name), seed=3).learn(STEPS, simulate=2))
    return [answers(one) for one in trained]


@cases("method in Gymnasium", {name: name for name in METHODS})
def looped(name: str) -> Any:
    return answers(qq.Agent(walk_env(), method_of(name), seed=3).learn(STEPS))


@case("method in Gymnasium/copies")
def looped_copies() -> Any:
    import gymnasium

    walk_env()  # which registers it
    return answers(
        qq.Agent(gymnasium.make_vec("quietq.worlds:quietq/Walk-v0", 3), method_of("input"), seed=3).learn(STEPS)
    )


@cases("method", VARIANTS)
def variant(given: tuple[str, dict[str, Any]]) -> Any:
    name, more = given
    return answers(qq.Agent("walk", method_of(name, more), seed=3).learn(STEPS))


def published(preset: str) -> Any:
    return getattr(qq.Published, preset.partition(",")[0])(0.32, **PRESETS[preset])


@cases("method/published", {preset: preset for preset in PRESETS})
def published_compiled(preset: str) -> Any:
    return answers(qq.Agent("walk", published(preset), seed=3).learn(STEPS, simulate=2))


@cases("method in Gymnasium/published", {preset: preset for preset in ("code", "text")})
def published_looped(preset: str) -> Any:
    return answers(qq.Agent(walk_env(), published(preset), seed=3).learn(STEPS))


@case("method/several dimensions")
def several_dimensions() -> Any:
    world, given = qq.find_world("navigation"), {"relation": qq.SupBall(0.01, 100), "budget": budget()}
    return answers_in(qq.Agent(world, qq.InputNoise(**given, knots=3), seed=3).learn(STEPS))


def answers_in(agent: Any) -> list[Any]:
    import jax

    places = points(agent.spaces.box).reshape(-1, agent.spaces.box.dimension)
    return [jax.tree.leaves(agent.released), agent.q_values(places), certified(agent.certificate)]


@case("method/values of an agent")
def of_released_values() -> Any:
    agent = qq.Agent("walk", method_of("input"), seed=3).learn(STEPS)
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent.qq")
        loaded = qq.Agent.load(Path(folder) / "agent.qq")
        again = all_of(qq.load(Path(folder) / "agent.qq"))
    learner = qq.ActorCritic(agent.released_values(), **METHODS["actor-critic"][1])
    return [answers_in(loaded), again, answers(qq.Agent("walk", learner, seed=3).learn(STEPS))]


@case("method/scores")
def scores() -> Any:
    found = qq.Agent("walk", method_of("none"), seed=3).learn(STEPS).evaluate()
    return [found.scores, found.returns]


# Bandits


BANDITS: dict[str, Callable[..., Any]] = {
    "Elimination": lambda **more: qq.Elimination(2, qq.Budget(1.0, 0.0), arrivals=6000, **more),
    "Gaussian Elimination": lambda **more: qq.Elimination(2, qq.Budget(1.0, 1e-5), arrivals=6000, **more),
    "Episodes": lambda **more: qq.Episodes(3, qq.Budget(1.0, 0.0), **more),
    "Gaussian Episodes": lambda **more: qq.Episodes(3, qq.Budget(1.0, 1e-5), visits=2, **more),
    "TreeUCB": lambda **more: qq.TreeUCB(3, qq.Budget(1.0, 0.0), arrivals=1000, **more),
    "LocalUCB": lambda **more: qq.LocalUCB(3, qq.Budget(1.0, 0.0), **more),
    "Linear": lambda **more: qq.Linear(3, qq.Budget(1.0, 1e-5), dimension=2, arrivals=500, **more),
}
"""Each with its answers noised by a seed, and by the operating system's generator if it promises anything."""


def play(policy: Any, arrivals: int) -> list[Any]:
    rng, chosen = generator(), []
    context = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]][: policy.arms] if policy.contexts else None
    for _ in range(arrivals):
        chosen.append(policy.choose(context))
        reward: Any = float(rng.random() < (0.8, 0.5, 0.2)[chosen[-1]])
        reward = policy.report(reward) if hasattr(policy, "report") else reward
        policy.learn(context, chosen[-1], reward)
    return [chosen, vars(policy.state), certified(policy.certificate)]


@cases("bandit", {name: name for name in BANDITS})
def bandit(name: str) -> Any:
    made = [BANDITS[name](simulate=7)]
    if hasattr(made[0], "budget"):
        made.append(BANDITS[name]())
    arrivals = 6000 if "Elimination" in name else 500 if "Lin" in name else 1000
    return [play(one, arrivals) for one in made]


@case("bandit/saved and resumed")
def resumed() -> Any:
    policy = BANDITS["Linear"](simulate=7)
    first = play(policy, 100)
    with tempfile.TemporaryDirectory() as folder:
        qq.save(policy, folder)
        return [first, play(qq.resume(folder), 100), play(qq.resume(folder), 100)]


# Audits


def found(finding: Any) -> list[Any]:
    """What an audit measured, without its seconds."""
    promise = finding.promise
    return [finding.runs, tuple(finding.by_epsilon), tuple(finding.by_mu), finding.epsilon_lower, finding.mu_lower,
            promise.epsilon, promise.delta, promise.mu]  # fmt: skip


def moved(movement: Any) -> list[Any]:
    return [movement.stated, movement.found, movement.queries, movement.together]


@case("audit/mechanism")
def audited_mechanism() -> Any:
    return [found(qq.audit_mechanism(1.0, 400, seed=seed)) for seed in (0, None)]


@cases("audit/reward", {noise: noise for noise in ("path", "k-norm", "knots")})
def audited_reward(noise: str) -> Any:
    return found(
        qq.audit_reward(qq.WALK, qq.choose(noise, qq.OwnFunction(None, fifty(), box=qq.WALK.box), budget()), 60)
    )


@case("audit/evaluation")
def audited_evaluation() -> Any:
    return found(qq.audit_evaluation(300, qq.Budget(1.0, 1e-6), 60))


@case("audit/training")
def audited_training() -> Any:
    return found(qq.audit_training(published("code"), qq.WALK, 40, steps=STEPS))


@case("audit/bandit")
def audited_bandit() -> Any:
    answers = generator(5).integers(0, 2, (40, 2)).astype(float).tolist()
    before = [qq.Visit(None, tuple(one)) for one in answers]
    after = [qq.Visit(None, (1 - answers[0][0], 1 - answers[0][1])), *before[1:]]

    def make(seed: int) -> Any:
        return qq.Episodes(2, qq.Budget(1.5, 0.0), simulate=seed)

    return [found(qq.audit_bandit(make, before, after, 60)), moved(qq.frozen_bandit(make, before, after))]


@case("audit/frozen releases")
def frozen() -> Any:
    tried = [qq.frozen_release(qq.choose(noise, qq.OwnFunction(None, fifty()), budget(), pieces=pieces))
             for noise, pieces in (("knots", 4), ("k-norm", 4))]  # fmt: skip
    return [*map(moved, tried)]


@case("audit/frozen step")
def frozen_step() -> Any:
    spaces = qq.EnvironmentSpaces(qq.Box((0.0,), (1.0,)), 2, 50)
    return moved(qq.frozen_sensitivity(qq.InputNoise(relation=qq.SupBall(0.3), budget=budget()), spaces, rewards=32))


@case("audit/worst rows")
def worst() -> Any:
    return moved(qq.worst_rows(*qq.all_but_two("ratings", 20), budget(), tries=2).movement)


@case("audit/reconstruction")
def reconstructed() -> Any:
    private = qq.privatise(peak, budget(), relation=qq.people(200, 0, 0.5, 1), noise="path", simulate=1)
    attacked = qq.reconstruct(private, qq.WALK, truth=qq.walk_reward, points=17)
    values = generator().random((17, 2))
    other = qq.reconstruct(lambda _: values, qq.WALK, 0.9, truth=qq.walk_reward, points=17)
    return [[[one.name, one.rewards] for one in each.recovered] for each in (attacked, other)] + [attacked.planned]


# The paper's figures, claims, comparison and extensions


def untimed(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The rows of a table without those that are seconds."""
    return [row for row in rows if "seconds" not in str(row.get("quantity", ""))]


@case("paper/samplers")
def samplers() -> Any:
    tent = qq.piecewise_linear([0.0, 0.5, 1.0], [0.0, 0.5, 0.0])
    return [find("sampler.dense")(generator().random(30)), qq.norm_of(qq.Exponential(4.0), tent)]


@case("paper/finite worlds")
def finite_worlds() -> Any:
    solution = qq.solve(qq.random_mdp(12, 3, 0.9, 1))
    return [solution.values, solution.occupancy]


@cases("paper", {
    "figure 1, code": ("figure1.measure", {"preset": "code", "sigma": 0.4, "resets": None, "steps": 200, "seeds": 2}),
    "figure 1, text": ("figure1.measure", {"preset": "text", "sigma": 0.4, "resets": 1, "steps": 200, "seeds": 2}),
    "figure 2, input": ("figure2.measure_method", {"method": "input", "epsilon": 0.9, "steps": 200, "seeds": 2}),
    "figure 2, gradient": ("figure2.measure_method", {"method": "gradient", "epsilon": 0.9, "steps": 200, "seeds": 2}),
    "figure 2, opposite": ("figure2.measure_opposite", {"epsilon": 0.9, "steps": 200, "seeds": 2}),
    "figure 2, evaluation": ("figure2.measure_evaluation", {"epsilon": 0.9, "cells": 3, "steps": 400, "seeds": 2}),
    "claims, mechanisms": ("mechanisms.measure", {"releases": 200}), "claims, parameters": ("parameters.measure", {}),
    "claims, spaces": ("spaces.measure", {"tries": 4}), "claims, networks": ("spaces.movement", {}),
    "claims, rounds": ("listing.measure_rounds", {}), "claims, listing": ("listing.measure", {"paths": 50}),
    "claims, paths": ("paths.measure", {"paths": 20}), "claims, moments": ("paths.measure_moments", {"paths": 500}),
    "claims, sampler": ("sampler.measure", {"draws": 500}),
    "claims, utility": ("utility.measure", {"worlds": 2, "sizes": (10,)}),
    "claims, programs": ("utility.measure_programs", {"worlds": 1, "draws": 60}),
    "comparison, reward": ("scores.measure", {"world": "walk", "method": "reward", "noise": "observed", "people": 40,
                                              "draws": 2, "steps": 200}),
    "comparison, value": ("scores.measure", {"world": "walk", "method": "value", "noise": None, "people": 40,
                                             "draws": 2, "steps": 3000}),
    "comparison, caps": ("scores.measure_caps", {"world": "walk", "people": (10, 40)}),
    "extensions, learning": ("learners.measure_learning", {"stated": (("a", "b"),), "learner": "actor-critic",
                             "people": (100,), "draws": 2, "steps": 250, "network": "splines", "batch": 125}),
    "extensions, gradient": ("learners.measure_gradient", {"people": 50, "draws": 0, "train_every": 25}),
    "extensions, advantages": ("learners.measure_raw_advantages", {}),
    "extensions, dimensions": ("kernels.measure_dimension", {"dimension": 2, "people": 100}),
    "extensions, covariance": ("kernels.measure_covariance", {"draws": 50}),
    "extensions, terms": ("kernels.measure_terms", {"half_width": 3.0, "draws": 20}),
    "extensions, band-limited": ("kernels.measure_releases", {"half_width": 3.0, "people": (100,), "draws": 2}),
    "extensions, scaled": ("worlds.measure_scaled", {"low": -3.0, "high": 5.0, "people": 100, "draws": 2}),
    "extensions, navigation": ("worlds.measure_plans", {"people": (100,), "draws": 1}),
})  # fmt: skip
def of_the_paper(given: tuple[str, dict[str, Any]]) -> Any:
    name, settings = given
    rows = find(name)(**settings)
    return untimed(rows) if isinstance(rows, list) else rows


# Running them


class Stream:
    """In the place of the operating system's generator: bits that follow from a name.

    For functions of the package alone: what modules draw when they are imported, here or elsewhere, must not shift
    what the first case draws that needs them.
    """

    def __init__(self) -> None:
        self.source, system_bytes, system_bits = random.Random(), os.urandom, secrets.randbits
        os.urandom = lambda size: (self.source.randbytes if _asked_by_us() else system_bytes)(size)
        secrets.randbits = lambda bits: (self.source.getrandbits if _asked_by_us() else system_bits)(bits)

    def begin(self, name: str) -> None:
        self.source = random.Random(name)


def _asked_by_us() -> bool:
    """Whether whoever asked for bits is a function of the package, or of the paper's."""
    asking = sys._getframe(2)
    return str(asking.f_globals["__name__"]).partition(".")[0] in OURS and asking.f_code.co_name != "<module>"


def run(names: Sequence[str], stream: Stream) -> Iterator[tuple[str, str, float]]:
    """Each case by itself: what fails is told, and does not stop the others."""
    for name in names:
        stream.begin(name)
        began = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outcome = sha(CASES[name]())
        except Gone:
            outcome = GONE
        except Exception as error:
            outcome = f"error: {type(error).__name__}"
            print(f"{name}: {error}", file=sys.stderr)
        yield name, outcome, time.process_time() - began


def compare(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, list[str]]:
    """Names of cases that are the same, differ, are gone or new; a case that fails is never the same."""
    groups: dict[str, list[str]] = {"same": [], "differs": [], "gone": [], "new": []}
    for name in sorted({*old, *new}):
        before, after = old.get(name, GONE), new.get(name, GONE)
        if after == GONE:
            group = "gone"
        elif after.startswith("error"):
            group = "differs"
        else:
            group = "new" if before == GONE else "same" if before == after else "differs"
        groups[group].append(name)
    return groups


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="a file for the hashes, as JSON")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="hashes of an earlier run")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in their names, and no others")
    given = parser.parse_args()
    wanted = [name for name in CASES if given.only in name]
    old = {} if given.compare is None else json.loads(given.compare.read_text())
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    stream, hashes = Stream(), {}
    for name, outcome, seconds in run(wanted, stream):
        hashes[name] = outcome
        print(f"{outcome:64} {name}  ({seconds:.1f} s)", flush=True)
    print(f"{len(hashes)} cases in {time.process_time():.0f} s of one core.", file=sys.stderr)
    if given.out is not None:
        given.out.write_text(json.dumps(hashes, indent=1, sort_keys=True) + "\n")
    groups = compare({name: one for name, one in old.items() if given.only in name}, hashes)
    if given.compare is not None:
        for group, names in groups.items():
            print(f"{group}: {len(names)}", *names, sep="\n  ")
    return int(given.compare is not None and bool(groups["differs"]))


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in SURROUNDINGS.items()):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | SURROUNDINGS)  # before NumPy
    sys.exit(main())
