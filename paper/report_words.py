"""What the report of `python -m paper` says around its pictures; its numbers are computed, not written down."""

from scipy.special import ndtr

from paper.experiment import Tables
from quietq.privacy.budget import Budget
from quietq.report.page import Part, Table
from quietq.worlds import random_return, worst_return
from quietq.worlds.walk_returns import best_return

TITLE = "Private Q-learning with functional noise: what is printed, what is measured, what holds"
LEAD = (
    "A paper of 2019 trains an agent on a private reward and adds noise that is itself a function. Here is what of it "
    "was made again, and what is measured beside what is printed."
)
PROMISE = Budget(0.9, 1e-4)


def about() -> list[Part]:
    """For a reader who does not know the paper."""
    chance = (random_return() - worst_return()) / (best_return() - worst_return())
    guess = 100 * float(ndtr(PROMISE.mu / 2))
    return [
        "An agent learns what to do from a reward. Where the reward is what people like, what the agent learned tells "
        "about them: whoever can ask it for its values can work out the reward. Wang and Hegde (NeurIPS 2019, "
        "Privacy-preserving Q-learning with functional noise in continuous spaces) add noise to the values while the "
        "agent learns. The noise is a random function (a path), so that it can be asked at any number of states; sigma "
        "is its standard deviation.",
        "What is promised is differential privacy: two rewards that are neighbours lead to agents that can hardly be "
        "told apart. How hardly is what epsilon says: the smaller, the safer; delta is a small chance that it fails. "
        "For the paper, neighbours are any two rewards that differ by at most 1 everywhere; here also rewards that "
        f"differ by what one of N people likes. With epsilon {PROMISE.epsilon:g} and delta {PROMISE.delta:g} by "
        "Gaussian noise, somebody who could only toss a coin between two rewards, and be right in 50 of 100 cases, is "
        f"right in at most {guess:.0f}. (Mu is another measure of the same, for Gaussian noise.)",
        "What stands behind a promise differs. Certified: a theorem covers what is released, and the code enforces its "
        "conditions or names them. Claimed: the paper says so; its proof does not hold. Another relation: something "
        "else is protected. An audit attacks: it trains under two neighbours, tells them apart if it can, and reports "
        "what is given away at least.",
        "The task is the paper's walk: a place between 0 and 1, steps to the left or right of random length, and more "
        f"reward in the middle. A score of 0 is the worst policy, 1 the best; random actions have {chance:.2f}.",
        "Verdicts: `holds` means that the numbers clearly agree with what is printed, `fails` that they clearly "
        "contradict it, and `in part` that some of it holds, or that nothing clear came out.",
    ]


def before(name: str) -> list[Part]:
    """What to look for in the pictures of an experiment."""
    return list(_BEFORE[name])


_BEFORE: dict[str, tuple[str, ...]] = {
    "figure1": (
        "How much is learned at each noise level. The paper draws the noise anew in every round, or keeps one path for "
        "the whole run; here is also one number between. (J is how often it is drawn in a run.) The paper's text and "
        "its authors' program are two algorithms: the program uses replay, a target network and RMSprop, the text none "
        "of them. Both are shown.",
    ),
    "figure2": (
        "The paper compares its method with three others that are meant to have the same epsilon. They do not promise "
        "the same: one is a claim, two have a theorem for what their noise is really worth, and one protects single "
        "steps instead of the reward function. How the paper computed the others' noise it does not say in full; this "
        "is one reading.",
    ),
    "claims": (
        "Each theorem, lemma, proposition and printed set of parameters, checked by numbers. What fails is explained "
        "in docs/errata.md; what is right instead is in docs/theory.md.",
    ),
    "comparison": (
        "What the promise costs, when all methods make the same one: epsilon 0.9, delta 1e-4, for replacing one of N "
        "people (K-norm noise promises delta = 0, which is more). The more people stand behind a reward, the less each "
        "of them matters, and the less noise is needed. Above the cap no method can be under both of two opposite "
        "rewards, whatever it does; under one of them it may be lucky.",
        "`reward` puts noise on the reward function once, before training: a Gaussian path, or noise at a few knots "
        "(Gaussian, or K-norm, whose shape is that of what one person can change), or on many observed rewards. "
        "`input`, `value`, `gradient`, `value-network` and `output` noise rewards, values, gradients or the result as "
        "they learn. Their defaults were tuned on the walk, so the walk flatters them; nothing was tuned elsewhere. On "
        "the walk, private rewards got more draws near a score of 0.9 after a first look.",
    ),
    "extensions": ("What the paper says its method extends to, each tried on what is certified here.",),
}


def after(name: str, tables: Tables) -> list[Part]:
    """Tables that belong to the pictures."""
    return [_needed(tables), *_audits(tables)] if name == "comparison" else []


def _needed(tables: Tables) -> Table:
    """People for a score of 0.9, world by world."""
    rows = []
    for row in tables["needed"]:
        people = "not reached" if row["people"] is None else f"{'at most ' * (row['below'] is None)}{row['people']:.0f}"
        interval = " to ".join("more than tried" if row[end] is None else f"{row[end]:,.0f}" for end in ("low", "high"))
        rows.append((row["world"], row["name"], people, interval, row["fewest_gaussian"], row["fewest_any"]))
    headings = ("world", "method", "people for 0.9", "80 % interval", "fewest with Gaussian noise", "fewest with any")
    return Table(headings, rows)


def _audits(tables: Tables) -> list[Part]:
    rows = [row for name in ("audit_draws", "audit_trainings") for row in tables.get(name, ())]
    if not rows:
        return []
    keys = ("name", "epsilon", "epsilon_at_least", "mu", "mu_at_least", "runs", "verdict")
    headings = (
        "method", "epsilon promised", "measured, at least", "mu promised", "measured, at least", "runs", "verdict",
    )  # fmt: skip
    each = next((row["confidence"] for row in rows if row.get("confidence") is not None), None)
    sure = "" if each is None else f" Each bound has a confidence of {each:.2%}, so that all hold together at 95 %."
    return [
        "What the audit found, on the walk: of certified methods with 50 people, and of the paper's program with its "
        f"own relation. A measured number above the promised one refutes the promise; one below proves nothing.{sure}",
        Table(headings, [tuple(row.get(key) for key in keys) for row in rows], strong=frozenset({"refuted"})),
    ]


def made(quick: bool, version: str) -> list[Part]:
    """How to make it again."""
    return [
        f"By quietq {version}. All of it is simulation, with seeds, in worlds whose reward is public: no release rests "
        "on it and nobody's data is in it. The tables beside this page (.csv) hold every number that was drawn, and "
        "the .json files the configuration that made it.",
    ]
