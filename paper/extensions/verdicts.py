"""What the Discussion says of other learners and of intervals, beside what the rows say."""

import math
from collections.abc import Sequence

from paper.experiment import Claim, Verdict
from paper.extensions.released import CHANGE
from paper.extensions.row import ACTOR_CRITIC, EXPLORATION, INTERVAL, REPLAY, mean, sentences, values
from paper.extensions.words import by_setting, listed, scores
from paper.task import Row

COMMAND = "python -m paper extensions"
COVERED = "epsilon of the policy"
THEOREM = "By theorem (post-processing), not by attack: "


def learner_claims(rows: Sequence[Row]) -> list[Claim]:
    """One claim an extension; each verdict would be another with other rows."""
    return [make(rows) for make in (_actor_critic, _raw_rewards, _replay, _exploration, _interval)]


def _actor_critic(rows: Sequence[Row]) -> Claim:
    before = by_setting(rows, ACTOR_CRITIC, "epsilon of the source")
    after = by_setting(rows, ACTOR_CRITIC, COVERED)
    covered = bool(before) and all(after[source] <= epsilon for source, epsilon in before.items())
    return Claim(
        "actor-critic",
        "Actor-critic has the same privacy guarantee if the policy's updates use the Q function only.",
        f"{THEOREM}whatever it learns from, if that was released, the certificate of that covers the policy, epsilon "
        f"{listed(after)}. Mean scores: {scores(rows, ACTOR_CRITIC, 50)}.",
        "holds" if covered else "fails",
        f"{COMMAND}; tests/learning/test_actor_critic.py",
    )


def _raw_rewards(rows: Sequence[Row]) -> Claim:
    """That noise on the policy would mend it was not tried, so it cannot be found to hold as a whole."""
    words = sentences(rows, ACTOR_CRITIC)
    ours = (
        f"This library refuses it: {' / '.join(words)}" if words and all(words) else "This library does not refuse it."
    )
    moved = max(values(rows, ACTOR_CRITIC, None, CHANGE), default=math.nan)
    return Claim(
        "actor-critic on raw rewards",
        "With advantages of raw rewards the guarantee no longer holds; one should add noise to the policy as well.",
        f"Along one walk, r + 1 in place of r moves the policy by {moved:.3g} in one step of size 1, with no noise on "
        f"it: whoever knows the walk {'tells' if moved else 'cannot tell'} the two apart. Whether noise on the policy "
        f"mends it was not tried. {ours}",
        "in part" if moved else "fails",
        f"{COMMAND}; tests/learning/test_actor_critic.py",
    )


def _replay(rows: Sequence[Row]) -> Claim:
    def published(quantity: str) -> float:
        return mean(rows, REPLAY, "published program", quantity)

    uses, made = published("uses of a reward"), published("gradient steps")
    counted, honest = published("rounds counted by the theorem"), published("epsilon if all were counted")
    free, paid = _same_promise(rows, REPLAY), uses > 1 and made > counted
    verdict: Verdict = "fails" if not free else "in part" if paid else "holds"
    return Claim(
        "experience replay",
        "Experience replay is post-processing of the private Q function, and included in the guarantee.",
        f"{THEOREM}on a reward that was released, yes. Where true rewards are replayed, each look pays again: noise "
        f"multipliers for one budget, {listed(by_setting(rows, REPLAY, 'noise multiplier'))}. The authors' program "
        f"uses a reward {uses:.0f} times in {made:.0f} gradient steps, and the theorem counts {counted:.0f} rounds; "
        f"were all of them counted in its way, epsilon {_asked(rows):g} would be {honest:.1f}. Mean scores: "
        f"{scores(rows, REPLAY, 50)}.",
        verdict,
        COMMAND,
    )


def _exploration(rows: Sequence[Row]) -> Claim:
    return Claim(
        "epsilon-greedy",
        "Epsilon-greedy policies are post-processing of the private Q function.",
        f"{THEOREM}on a private reward the certificate is the same for every share of random actions. Mean scores: "
        f"{scores(rows, EXPLORATION, 50)}.",
        "holds" if _same_promise(rows, EXPLORATION) else "fails",
        COMMAND,
    )


def _interval(rows: Sequence[Row]) -> Claim:
    sigmas = by_setting(rows, INTERVAL, "sigma")
    quantities = ("sigma", "norm of the reward", "epsilon of the certificate")
    apart = max(_spread(list(by_setting(rows, INTERVAL, quantity).values())) for quantity in quantities)
    differs = max(values(rows, INTERVAL, None, "largest difference of the releases"), default=math.nan)
    same = apart < 1e-9 and differs < 1e-5 * min(sigmas.values())
    return Claim(
        "any bounded interval",
        "The setting extends to any bounded interval by scaling.",
        f"With slopes declared per width of the box, sigma is {listed(sigmas)}; sigma, the reward's norm and epsilon "
        f"differ by at most {apart:.1g} of themselves, and releases of one seed by {differs:.1g} at corresponding "
        f"points. Mean scores: {scores(rows, INTERVAL)}.",
        "holds" if same else "fails",
        COMMAND,
    )


def _same_promise(rows: Sequence[Row], extension: str) -> bool:
    found = values(rows, extension, None, COVERED)
    return bool(found) and all(one == _asked(rows) for one in found)


def _asked(rows: Sequence[Row]) -> float:
    """The epsilon that the walk's rewards were released with."""
    found = [one["epsilon"] for one in rows if (one["extension"], one["quantity"]) == (ACTOR_CRITIC, COVERED)]
    return float(found[0]) if found and found[0] is not None else math.nan


def _spread(numbers: Sequence[float]) -> float:
    return (max(numbers) - min(numbers)) / abs(max(numbers))
