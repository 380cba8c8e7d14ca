"""Every certificate there is: what it states was computed apart, and whoever changes a part of it is found out."""

import copy
import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

from quietq import (
    Accountant,
    Budget,
    Certificate,
    Exponential,
    GaussianProcessMechanism,
    InvalidInput,
    LipschitzBall,
    PrivateReward,
    Sessions,
    SupBall,
    load,
    people,
    privatise,
    publish,
)
from quietq.feedback.cells import Cells
from quietq.mechanisms import knots, path
from quietq.mechanisms.clone import CloneSettings, Cloning
from quietq.mechanisms.release import release
from quietq.noise.entropy import Entropy
from quietq.online import Elimination, Episodes, Linear, LocalUCB, TreeUCB
from quietq.paper import (
    Agent,
    BandLimited,
    FeatureKernel,
    FiniteRankMechanism,
    GradientNoise,
    InputNoise,
    NetworkValueNoise,
    OutputNoise,
    ValueNoise,
)
from quietq.paper.agents.method import EnvironmentSpaces
from quietq.paper.agents.trainer import spaces_of
from quietq.paper.baselines.balle import Evaluation
from quietq.paper.observed import observe
from quietq.privacy import Cost
from quietq.privacy.relations import Trajectories
from quietq.privacy.transcript import Transcript
from quietq.released.release_file import pack, unpack
from quietq.worlds import WALK, own_reward, walk_reward

BUDGET, FIFTY = Budget(0.9, 1e-4), people(50, low=0, high=0.5, slope=1)
LINES = FeatureKernel(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2)
IN_LOOP = {kind.name: kind for kind in (InputNoise, ValueNoise, OutputNoise, GradientNoise, NetworkValueNoise)}
STEPS = 2000


def of_kernel(kernel: Any) -> Certificate:
    mechanism = GaussianProcessMechanism(kernel, 0.02, BUDGET, levels=3)
    f: Any = lambda s: s[:, 0] if kernel.dimension > 1 else s  # noqa: E731
    return mechanism.apply([lambda s: s] * 2 if getattr(kernel, "summed", False) else f).certificate


def evaluation() -> Evaluation:
    relation = Trajectories(count=300, largest_reward=1.0, horizon=3)
    return Evaluation(budget=Budget(1.0, 1e-6), relation=relation, gamma=0.5, cells=Cells.states(3))


def own(relation: Any, **more: Any) -> Certificate:
    return PrivateReward.of(gymnasium.make("quietq.worlds:quietq/Walk-v0"), relation, BUDGET, **more).certificate


def on_knots(noise: Any, ledger: Accountant | None = None) -> Certificate:
    return privatise(walk_reward, BUDGET, noise=noise, pieces=4, relation=FIFTY, account=ledger).certificate


def cloned() -> Certificate:
    """A clone of few queries: each of them is forged in a dozen ways."""
    rows = {"person": range(40), "x": [0.1, 0.9] * 20, "go": [0, 1] * 20, "reward": [0.5, 1.0] * 20}
    read: dict[str, Any] = {"state": "x", "next_state": [], "action": "go", "actions": [0, 1], "reward": "reward"}
    sessions = Sessions.read(pl.DataFrame(rows), **read, box=(0, 1), people=40)
    settings = CloneSettings(state_rounds=1, threshold_rounds=2, steps=2, hidden=2)
    return release(Cloning(sessions, BUDGET, (0.0, 1.0), 0.2, settings), sessions).certificate


def in_loop(name: str, **options: Any) -> Certificate:
    return IN_LOOP[name](relation=FIFTY, budget=BUDGET, **options).certificate(spaces_of(WALK), STEPS)


CASES: dict[str, Callable[[], Any]] = {
    "path": lambda: privatise(walk_reward, BUDGET, noise="path", relation=FIFTY).certificate,
    "exponential": lambda: of_kernel(Exponential(4.0)),
    "additive": lambda: of_kernel(Exponential((4.0, 2.0), summed=True)),
    "product": lambda: of_kernel(Exponential((1.0, 2.0))),
    "band-limited": lambda: FiniteRankMechanism(BandLimited(2.0, 1e-12), 0.02, BUDGET).apply(walk_reward).certificate,
    "features": lambda: FiniteRankMechanism(LINES, 0.02, BUDGET).apply([0.1, 0.2]).certificate,
    "knots": lambda: on_knots("knots"),
    "k-norm": lambda: on_knots("k-norm"),
    "own path": lambda: own(FIFTY),
    "own rewards": lambda: own(SupBall(0.01), rewards=400),
    "observed": lambda: observe(WALK, SupBall(0.01), BUDGET, low=0.0, high=0.5, rewards=500).certificate,
    **{name: (lambda name=name: in_loop(name)) for name in IN_LOOP},
    "evaluation": lambda: evaluation().release([([0, 1, 2], [0.0, 0.0, 1.0])] * 300).certificate,
    "clone": lambda: cloned(),
    "pure episodes": lambda: Episodes(3, Budget(0.9, 0.0), visits=2).certificate,
    "pure tree": lambda: TreeUCB(3, BUDGET, arrivals=1000).certificate,
    "pure local": lambda: LocalUCB(3, BUDGET, named=True).certificate,
    "elimination": lambda: Elimination(3, BUDGET, arrivals=1000).certificate,
    "linear": lambda: Linear(3, BUDGET, dimension=4, arrivals=1000).certificate,
}


@functools.cache
def certificate_of(name: str) -> Certificate:
    return CASES[name]()


def forgeries(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One part changed by one in a hundred (or by one), so that the promise looks better or is about more."""

    def changed(*path: Any, to: Any) -> tuple[str, dict[str, Any]]:
        forged = copy.deepcopy(record)
        where = forged
        for name in path[:-1]:
            where = where[name]
        where[path[-1]] = to
        return f"{path} -> {to}", forged

    relation, budget, queries = record["relation"], record["budget"], record["queries"]
    yield changed("budget", "epsilon", to=budget["epsilon"] * 0.99)
    if budget["delta"]:
        yield changed("budget", "delta", to=budget["delta"] * 0.9)
        yield changed("budget", "delta", to=0.0)
    else:
        yield changed("budget", "delta", to=1e-4)
    yield changed("budget", to=None)
    if "radius" in relation:
        yield changed("relation", "radius", to=relation["radius"] * 1.03)
    kinds = {query["norm"]["kind"] for query in queries}
    if "actions" in relation and (kinds & {"exponential", "knots", "increments"} or "kernel" in relation):
        yield changed("relation", "actions", to=relation["actions"] + 1)
    if "lipschitz" in relation and kinds & {"exponential", "knots", "increments"}:
        yield changed("relation", "lipschitz", to=relation["lipschitz"] * 1.05)
    if relation["kind"] == "arrivals":
        yield changed("relation", "visits", to=relation["visits"] + 1)
        yield changed("relation", "contexts", to=not relation["contexts"])
        if relation["arrivals"] is not None:
            yield changed("relation", "arrivals", to=2 * relation["arrivals"])
            yield changed("relation", "arrivals", to=None)
    yield changed("relation", to=None)
    yield changed("queries", to=[])
    yield changed("queries", to=[*queries, queries[0]])
    for i, query in enumerate(queries):
        norm = query["norm"]
        for name in ("sensitivity", "size"):
            yield changed("queries", i, name, to=query[name] * 0.99)
        yield changed("queries", i, "sensitivity", to=query["sensitivity"] * 1.01)
        for family in {"gaussian", "pure", "smooth"} - {query["family"]}:
            yield changed("queries", i, "family", to=family)
        for name in ("count", "rounds", "weights", "operations"):
            if norm.get(name):
                more = math.ceil(norm[name] * (1.25 if name == "operations" else 1.03))
                yield changed("queries", i, "norm", name, to=more)
        if relation["kind"] == "arrivals":
            if "levels" in norm:
                yield changed("queries", i, "norm", "levels", to=norm["levels"] + 1)
            if "length" in norm:
                yield changed("queries", i, "norm", "length", to=norm["length"] * 1.01)
            if "scales" in norm:
                yield changed("queries", i, "norm", "scales", to=[1.1 * one for one in norm["scales"]])
        if norm["kind"] == "smooth-bound":
            yield changed("queries", i, "norm", "beta", to=norm["beta"] * 1.01)
        if norm["kind"] in ("increments", "reward-gradients"):
            yield changed("queries", i, "norm", "radius", to=norm["radius"] * 0.99)
        yield changed("queries", i, "norm", "kind", to="mine")
        yield changed("queries", i, "norm", to=None)
        if "diameter" in norm:  # of people's vectors; their norm has no box, and a file holds the one of its policy
            yield changed("queries", i, "norm", "diameter", to=norm["diameter"] * 1.01)
            yield changed("relation", "people", to=relation["people"] - 1)
        elif record["domain"] is not None and "operations" not in norm and "rounds" not in norm:
            yield changed("domain", to=None)
            yield changed("domain", to=[*record["domain"], [0.0, 1.0]])
    for i, one in enumerate(record["assumptions"]):
        yield changed("assumptions", i, to={**one, "enforced": True})
        yield changed("assumptions", i, "code", to="everything-is-enforced")
        yield changed("assumptions", i, "values", to=[*one["values"], 1])
        if one["code"] in ("chosen-without-data", "fair-bits"):
            yield changed("assumptions", to=[other for other in record["assumptions"] if other is not one])
    yield changed("reproducible", to=True)
    yield changed("method", to="published")


@pytest.mark.parametrize("name", CASES)
def test_a_part_that_the_others_determine_cannot_be_changed(name: str) -> None:
    certificate = certificate_of(name)
    assert certificate.standing == "certified"
    assert Certificate.from_json(certificate.to_json()) == certificate
    for what, forged in forgeries(certificate.to_dict()):
        with pytest.raises(InvalidInput):
            raise AssertionError(f"{what} was taken: {Certificate.from_dict(forged)}")


@pytest.mark.parametrize("name", CASES)
def test_promises_are_those_that_were_asked_for(name: str) -> None:
    certificate = certificate_of(name)
    if name == "evaluation":
        assert (certificate.epsilon, certificate.delta, certificate.mu) == (1.0, 1e-6, None)
    elif "pure" in name or name == "k-norm":
        assert (certificate.epsilon, certificate.delta, certificate.mu) == (0.9, 0.0, None)
    else:
        assert (certificate.epsilon, certificate.delta, certificate.mu) == (0.9, 1e-4, BUDGET.mu)


def test_a_forged_release_does_not_load(tmp_path: Path) -> None:
    """A file edited to epsilon 0.1, everything enforced, and its hash made right."""
    publish(privatise(walk_reward, BUDGET, noise="path", relation=FIFTY), tmp_path / "reward.qq")
    unpacked = unpack((tmp_path / "reward.qq").read_bytes())
    stated, lower = unpacked.record["certificate"], Budget(0.1, 1e-4)
    (query,), budget = stated["queries"], {"epsilon": 0.1, "delta": 1e-4}
    enforced = [{**one, "enforced": True} for one in stated["assumptions"]]
    smaller = [{**query, "sensitivity": lower.mu * query["size"]}]
    larger = [{**query, "size": query["sensitivity"] / lower.mu}]
    for forged in (
        {"budget": budget, "queries": smaller, "assumptions": enforced},
        {"budget": budget, "queries": smaller},
        {"budget": budget, "queries": larger, "assumptions": enforced},
    ):
        record = {**unpacked.record, "certificate": {**stated, **forged}}
        (tmp_path / "forged.qq").write_bytes(pack(json.dumps(record), unpacked.arrays))
        with pytest.raises(InvalidInput, match="This is no certificate"):
            load(tmp_path / "forged.qq")
    for i, (_, forged) in enumerate(forgeries(stated)):
        record = {**unpacked.record, "certificate": forged}
        (tmp_path / f"{i}.qq").write_bytes(pack(json.dumps(record), unpacked.arrays))
        with pytest.raises(InvalidInput):
            load(tmp_path / f"{i}.qq")


# Too little noise, by one in a hundred: refused before anything is drawn or booked


@pytest.mark.parametrize("what", ["scale", "normals"])
@pytest.mark.parametrize("name", IN_LOOP)
def test_a_method_that_draws_too_little_trains_nobody(name: str, what: str) -> None:
    kind = IN_LOOP[name]

    def draw(self: Any, *arguments: Any) -> Any:
        noise = kind.draw(self, *arguments)
        return noise._replace(**{what: np.float32(0.99) * getattr(noise, what)})

    accountant = Accountant(BUDGET)
    broken: Any = type(f"Less{kind.__name__}", (kind,), {"draw": draw})
    with pytest.raises(InvalidInput, match="more than the"):
        Agent(WALK, broken(relation=FIFTY, budget=BUDGET), seed=0, account=accountant).learn(STEPS)
    assert accountant.spending.spent_mu == 0


def test_gradients_scaled_to_a_smaller_radius_are_refused() -> None:
    class Narrow(GradientNoise):
        def draw(self, spaces: EnvironmentSpaces, steps: int, entropy: Entropy | Transcript) -> Any:
            noise = super().draw(spaces, steps, entropy)
            return noise._replace(radius=np.float32(0.99) * noise.radius)

    with pytest.raises(InvalidInput, match="more than the"):
        Narrow(relation=FIFTY, budget=BUDGET).certificate(spaces_of(WALK), STEPS)


@pytest.mark.parametrize("kind", ["path", "weights"])
def test_a_path_or_weights_with_too_little_noise_are_refused(kind: str) -> None:
    accountant = Accountant(BUDGET)
    mechanism = GaussianProcessMechanism.for_relation(FIFTY, BUDGET, levels=3, account=accountant)
    if kind == "weights":
        mechanism = FiniteRankMechanism(BandLimited(2.0), 0.02, BUDGET, account=accountant)
    law: Any = mechanism.mechanism.law
    mechanism.mechanism.law = dataclasses.replace(law, sigma=0.99 * law.sigma)
    with pytest.raises(InvalidInput, match="more than the"):
        mechanism.apply(walk_reward)
    mechanism.mechanism.sensitivity *= 0.99
    with pytest.raises(InvalidInput, match=r"sensitivity .* is below"):
        mechanism.apply(walk_reward)
    assert accountant.spending.spent_mu == 0


def test_knots_with_too_little_noise_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    accountant, shape = Accountant(BUDGET), knots.least_shape
    monkeypatch.setattr(knots, "least_shape", lambda ball, pieces: 0.99**2 * shape(ball, pieces))
    with pytest.raises(InvalidInput, match="more than the"):
        on_knots("knots", accountant)
    monkeypatch.setattr(knots, "least_shape", lambda ball, pieces: shape(ball, pieces) * (1 + np.eye(pieces)) / 2)
    with pytest.raises(InvalidInput, match="more than the"):  # as large in all, but of another shape
        on_knots("knots", accountant)
    assert accountant.spending.spent_mu == 0


def test_pure_noise_of_too_small_a_body_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    law = knots.IncrementNoise
    for radius, lipschitz in ((0.99, 1.0), (1.0, 0.99)):

        def smaller(
            rate: float, ball: LipschitzBall, pieces: int, radius: float = radius, lipschitz: float = lipschitz
        ) -> Any:
            narrow = LipschitzBall(radius * ball.radius, lipschitz * ball.lipschitz, people=ball.people)
            return law(rate, narrow, pieces)

        monkeypatch.setattr(knots, "IncrementNoise", smaller)
        with pytest.raises(InvalidInput, match="more than the"):
            on_knots("k-norm")
    monkeypatch.setattr(path, "SLACK", 0.99)
    with pytest.raises(InvalidInput, match=r"sensitivity .* is below"):
        privatise(walk_reward, BUDGET, noise="path", relation=FIFTY)


@pytest.mark.parametrize(("relation", "more"), [(FIFTY, {}), (SupBall(0.01), {"rewards": 10})])
def test_an_own_reward_with_too_little_noise_is_refused(
    monkeypatch: pytest.MonkeyPatch, relation: Any, more: dict[str, Any]
) -> None:
    name = "OnlinePath" if relation is FIFTY else "Gaussian"

    class Less(getattr(own_reward, name)):
        def __post_init__(self) -> None:
            super().__post_init__()
            object.__setattr__(self, "size", 0.99 * self.sigma)

        def cost(self, sensitivity: float) -> Cost:
            return Cost.gaussian(sensitivity / self.size)

    monkeypatch.setattr(own_reward, name, Less)
    with pytest.raises(InvalidInput, match="more than the"):
        own(relation, **more)


def test_an_evaluation_with_too_little_noise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quietq.paper.baselines.balle.SLACK", 0.99)
    with pytest.raises(InvalidInput, match="more than the"):
        evaluation().release([([0, 1, 2], [0.0, 0.0, 1.0])] * 300)
