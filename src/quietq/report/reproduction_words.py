"""What the report of `quietq reproduce` says around its pictures; every number comes from the tables."""

from quietq.experiments.experiment import Tables
from quietq.report.page import Part, Table

TITLE = "Private Q-learning with functional noise: what is printed, what is measured, what holds"
LEAD = (
    "A paper of 2019 trains an agent on a private reward and adds noise that is itself a function. Here is every "
    "figure and claim of it that can be made again, and then the comparison at promises that are kept."
)


def about() -> list[Part]:
    """For a reader who does not know the paper."""
    return [
        "An agent learns what to do from a reward. Where the reward is what people like, what the agent learned tells "
        "about them: whoever can ask it for its values can work out the reward. Wang and Hegde (NeurIPS 2019, "
        "Privacy-preserving Q-learning with functional noise in continuous spaces) add noise to the values while the "
        "agent learns. The noise is a random function, so that it can be asked at any number of states.",
        "What is promised is differential privacy: two rewards that differ by no more than one person can make them "
        "differ lead to agents that can hardly be told apart. How hardly is what epsilon says: the smaller, the safer. "
        "With epsilon 0.9 and delta 1e-4, somebody who wants to know which of two things a person said, and would be "
        "right in 50 of 100 cases by tossing a coin, is right in at most 56 if Gaussian noise keeps the promise.",
        "A promise has one of three standings here. Certified: a theorem covers what is released, and the code "
        "enforces its conditions or names them. Claimed: the paper says so; its proof does not hold. Other relation: "
        "something else is protected. An audit attacks: it trains under two rewards, tells them apart if it can, and "
        "reports what is given away at least.",
        "The task is the paper's walk: a place between 0 and 1, steps to the left or right of random length, and more "
        "reward in the middle. A score of 0 is the worst policy, 1 the best; random actions have 0.52.",
    ]


def before(name: str, tables: Tables) -> list[Part]:
    """What to look for in the pictures of an experiment."""
    return list(_BEFORE[name])


_BEFORE: dict[str, tuple[str, ...]] = {
    "figure1": (
        "The more noise, the less is learned. The paper redraws the noise in every round, or keeps one path for the "
        "whole run; here is also one number between. The paper's text and its authors' program are two algorithms: the "
        "program uses replay, a target network and RMSprop, the text none of them. Both are shown.",
    ),
    "figure2": (
        "The paper compares its method with three others that are said to have the same epsilon. They do not: one is a "
        "claim that does not hold, two are certified (for what their noise is worth), and one protects single "
        "trajectories instead of the reward function.",
    ),
    "claims": (
        "Each theorem, lemma, proposition and printed set of parameters, checked by numbers. What fails is explained "
        "in docs/errata.md; what is right instead is in docs/theory.md.",
    ),
    "honest": (
        "What the promise costs, when all methods make the same one: epsilon 0.9, delta 1e-4, for replacing one of N "
        "people (K-norm noise promises delta = 0, which is more). The more people stand behind a reward, the less each "
        "of them matters, and the less noise is needed. No method can pass the cap, whatever it does.",
    ),
    "extensions": ("What the paper says its method extends to, each tried on what is certified here.",),
}


def after(name: str, tables: Tables) -> list[Part]:
    """Tables that belong to the pictures."""
    return [_needed(tables), *_audits(tables)] if name == "honest" else []


def _needed(tables: Tables) -> Table:
    """People for a score of 0.9, world by world."""
    rows = []
    for row in tables["needed"]:
        people = "not reached" if row["people"] is None else f"{row['people']:.0f}"
        interval = " to ".join("more than tried" if row[end] is None else f"{row[end]:,.0f}" for end in ("low", "high"))
        rows.append((row["world"], row["name"], people, interval, row["fewest_possible"]))
    return Table(("world", "method", "people for 0.9", "80 % interval", "fewest that any method can do with"), rows)


def _audits(tables: Tables) -> list[Part]:
    rows = [row for name in ("audit_draws", "audit_trainings") for row in tables.get(name, ())]
    if not rows:
        return []
    keys = ("name", "epsilon", "epsilon_at_least", "mu", "mu_at_least", "runs", "verdict")
    headings = (
        "method",
        "epsilon promised",
        "measured, at least",
        "mu promised",
        "measured, at least",
        "runs",
        "verdict",
    )
    return [
        "What the audit found (50 people, the walk). A measured number above the promised one refutes the promise; one "
        "below does not prove it.",
        Table(headings, [tuple(row.get(key) for key in keys) for row in rows], strong=frozenset({"refuted"})),
    ]  # fmt: skip


def made(quick: bool, version: str) -> list[Part]:
    """How to make it again."""
    return [
        f"By quietq {version}. All of it is simulation, with seeds, in worlds whose reward is public: no release rests "
        "on it and nobody's data is in it. The tables beside this page (.csv) hold every number that was drawn, and "
        "the .json files the configuration that made it.",
    ]
