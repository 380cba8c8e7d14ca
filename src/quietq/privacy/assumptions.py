"""What a promise stands on: a closed list of assumptions, each a code with numbers.

A code says who vouches for it: quietq's own code (`ENFORCED`), or a person (`TRUSTED`), because no code can see whether
it holds. Nothing in a certificate can change that. It also says who has to read it: whoever signs a release off, or
the engineer who can judge how numbers were computed. Sentences are made when they are printed.
"""

import string
from enum import Enum
from typing import Annotated

from quietq.privacy.checks import Record, checked_by, real, shown
from quietq.privacy.errors import InvalidInput

ENFORCED, TRUSTED = True, False
SIGNER, ENGINEER = "signer", "engineer"
LONGEST_TEXT = 500


class Code(Enum):
    """One assumption: its name in files, its sentence, who vouches for it, and who has to read it.

    What is trusted has a question besides, for whoever has to judge it. In a sentence `{:g}` is a number, `{:d}` a
    whole number and `{}` a line of text, which only a trusted one has.
    """

    def __new__(cls, code: str, vouched: bool, reader: str, sentence: str, question: str = "") -> "Code":
        member = object.__new__(cls)
        member._value_ = code
        return member

    def __init__(self, code: str, vouched: bool, reader: str, sentence: str, question: str = "") -> None:
        self.enforced = vouched
        self.reader = reader
        self.sentence = sentence
        self.question = question

    @property
    def fields(self) -> list[str]:
        """Returns the format of each value that the sentence takes."""
        return [spec or "" for _, name, spec, _ in string.Formatter().parse(self.sentence) if name is not None]

    def __call__(self, *values: float | int | str) -> "Assumption":
        """Returns the assumption with these values."""
        return Assumption(self, values)

    # Behind every release.
    CHOSEN = (
        "chosen-without-data",
        TRUSTED,
        SIGNER,
        "Box or items, bounds, numbers of people, settings and budget were chosen without the private data.",
        "When was each of them decided, and from what? Is that written down, with a date?",
    )
    FAIR = (
        "fair-bits",
        TRUSTED,
        SIGNER,
        "The operating system's random bits are fair, independent and known to nobody.",
        "Did it run on a machine of yours, and not in a snapshot that was started twice?",
    )
    NO_ACCOUNT = (
        "no-account",
        TRUSTED,
        SIGNER,
        "No account was given: other releases of the same data add up.",
        "Who keeps the list of all releases about these people?",
    )
    OTHER_ACCOUNT = (
        "account-of-the-caller",
        TRUSTED,
        SIGNER,
        "The release was charged to an account of the caller's own kind, which adds up.",
        "Who wrote that account, and does it count all processes?",
    )
    NOT_CHARGED_YET = (
        "not-charged-yet",
        TRUSTED,
        SIGNER,
        "Nothing was drawn yet, and nothing charged: the account is charged before the first draw.",
        "Is there a certificate that was made after the draw? Take that one.",
    )
    CHARGED_IN_MEMORY = (
        "charged-in-memory",
        ENFORCED,
        SIGNER,
        "The release was charged to an Accountant in memory before the draw.",
    )
    CHARGED_IN_LEDGER = (
        "charged-in-ledger",
        ENFORCED,
        SIGNER,
        "The release was charged to a source's account in a ledger before the draw.",
    )
    OWN_CODE = (
        "own-code",
        TRUSTED,
        SIGNER,
        "The noise, or the queries, are code of the caller's own, which does what is stated here.",
        "Who wrote that code, and who tested that its noise is what is stated?",
    )
    NUMBERS_BOUNDED = (
        "numbers-bounded",
        TRUSTED,
        ENGINEER,
        "The numbers that noise was added to stay below {:g} in size whatever the data is, and were computed to within "
        "{:g}, which the noise covers.",
        "Are they quietq's own numbers? If not, who tested the code that computed them?",
    )
    EXACT_NOISE = (
        "exact-noise",
        ENFORCED,
        ENGINEER,
        "Noise of exactly the stated distribution was drawn from the operating system's generator, with as many bits "
        "as it took, and the sum was rounded to multiples of {:g}; what is released was computed from that alone.",
    )

    # What people gave.
    NAMES = (
        "one-name-each",
        TRUSTED,
        SIGNER,
        "Each row or answer stands under the name of the person it came from, and nobody has two names.",
        "Where do names come from? Can one person have two, or write rows in another's name?",
    )
    ONE_OF_DECLARED = (
        "one-of-declared-people",
        ENFORCED,
        SIGNER,
        "All rows of one person count together as one of {:d} declared people, however many rows there are.",
    )
    RATINGS_CLIPPED = (
        "ratings-clipped",
        ENFORCED,
        SIGNER,
        "Each person counts as one function with values in [{:g}, {:g}] and slope at most {:g} per width of the box.",
    )
    PERSON_CLIPPED = (
        "person-clipped",
        ENFORCED,
        SIGNER,
        "Rows were clipped to their declared ranges, and each person's contribution to a bound.",
    )
    ITEMS_OF_LIST = (
        "items-of-list",
        ENFORCED,
        SIGNER,
        "A state is the index of one of {:d} items of a public list; rows that name another item do not count.",
    )
    ACTIONS_OF_LIST = (
        "actions-of-list",
        ENFORCED,
        SIGNER,
        "There is a value for each of {:d} actions of a public list; rows that name another action do not count.",
    )
    NEIGHBOURS = (
        "neighbours-as-declared",
        TRUSTED,
        SIGNER,
        "Neighbouring inputs are as the relation says: nothing enforces it here.",
        "Why can one person not change more, and who checked it?",
    )
    CALLER = (
        "vouched-by-caller",
        TRUSTED,
        SIGNER,
        "The caller makes sure of the relation: {}",
        "Who checked the code that makes sure of it?",
    )

    # Which numbers were looked at.
    PUBLIC_POINTS = (
        "at-public-points",
        ENFORCED,
        SIGNER,
        "The function was evaluated at public points only, or given as weights, noised once, and not kept.",
    )
    INCREMENTS_BETWEEN_KNOTS = (
        "increments-between-knots",
        ENFORCED,
        SIGNER,
        "Only the increments between {:d} public knots were used, noised once, and not kept.",
    )
    MEANS_OF_PEOPLE = (
        "means-of-people",
        ENFORCED,
        SIGNER,
        "Each query is a mean of one clipped vector per person, made of all their rows, noised once, and depends on "
        "earlier answers only.",
    )

    # Worlds, policies and checks made of sessions.
    WORLD_PARTS = (
        "world-parts",
        ENFORCED,
        SIGNER,
        "The parts of a world that were not declared as known are released with noise, and no row: dynamics, states, "
        "and, where given, starts, rewards and termination.",
    )
    POLICY_CLONED = (
        "policy-cloned",
        ENFORCED,
        SIGNER,
        "The distribution of states and a policy that imitates people are released with noise, and no row.",
    )
    KNOWN_PARTS = (
        "known-parts",
        TRUSTED,
        SIGNER,
        "What was declared as known is public, and not derived from these people: {}.",
        "Where does it come from?",
    )
    RETURNS_CLIPPED = (
        "returns-clipped",
        ENFORCED,
        SIGNER,
        "Each person's return was clipped to [{:g}, {:g}], once over all of their episodes.",
    )
    FUNCTIONS_KEEP_NOTHING = (
        "functions-keep-nothing",
        TRUSTED,
        SIGNER,
        "Functions that were given (policies, probabilities, cells, models, known parts of a world) take one state or "
        "trajectory at a time, never fail and keep nothing.",
        "Who wrote these functions, and who read them?",
    )
    NOT_MADE_OF_DATA = (
        "not-made-of-data",
        TRUSTED,
        SIGNER,
        "What people were asked about (policies, rewards, worlds, functions, what is wanted) was not made from these "
        "people's data, but for releases of it, which add up.",
        "What was it made from?",
    )
    ONE_VOTE = (
        "one-vote",
        ENFORCED,
        SIGNER,
        "Each person has one vote and one sign, over all of their episodes, by their own steps and what was released.",
    )
    ONE_COSINE = (
        "one-cosine",
        ENFORCED,
        SIGNER,
        "Each person has one vote and one cosine, over all of their answers, by these and what was released.",
    )
    CHECKS_COUNTED = (
        "checks-counted",
        ENFORCED,
        SIGNER,
        "Checks by the same people, {:d} in number, were all counted, so the policy may have been "
        "published because of what they said.",
    )
    TRAINED = (
        "trained-on-release",
        TRUSTED,
        SIGNER,
        "The policy was trained on rewards from what this certificate covers, and nothing else private was used: no "
        "private observations, ends of episodes, environment, demonstrations or other rewards in training, and no "
        "private scores to choose this policy by.",
        "What else did the training see? By which number was this run chosen?",
    )
    COVERED = (
        "values-from-release",
        TRUSTED,
        SIGNER,
        "The values were computed from what this certificate covers, and from nothing else private.",
        "What else were they computed from?",
    )

    # Rewards that an environment gives.
    INDEPENDENT = (
        "environment-independent",
        TRUSTED,
        SIGNER,
        "The environment's observations, info and ends depend on its reward through the agent's actions only.",
        "Can an observation, or the end of an episode, reveal the reward?",
    )
    REWARD_OF_STATE = (
        "reward-of-state",
        TRUSTED,
        SIGNER,
        "The reward is a function of the state (here: {}) and changes as the relation says.",
        "What else does the reward depend on?",
    )
    FIRST_SEEN = (
        "noised-when-first-seen",
        ENFORCED,
        SIGNER,
        "Each state's reward was noised when it was first observed, and the released value used ever after, also for "
        "states that are nearer than {:g} of the box's width.",
    )
    REWARDS_NOISED_ONCE = (
        "rewards-noised-once",
        ENFORCED,
        SIGNER,
        "At most {:d} rewards were observed, each noised once, independently, before anything used it.",
    )
    REWARDS_CLIPPED = ("rewards-clipped", ENFORCED, SIGNER, "Rewards were clipped to {:g} in size.")
    STACKED = (
        "copies-exact",
        TRUSTED,
        ENGINEER,
        "Each copy's rewards were float32, or more exact, before they were put in one array.",
        "Of which type are the copies' rewards?",
    )

    # Arrivals.
    ANSWERS_CLIPPED = (
        "answers-clipped",
        ENFORCED,
        SIGNER,
        "Answers were clipped to [{:g}, {:g}], and missing ones count as the middle.",
    )
    VISITS_COUNTED = ("visits-counted", ENFORCED, SIGNER, "Of each name at most {:d} answers counted.")
    VISITS_TRUSTED = (
        "visits-trusted",
        TRUSTED,
        SIGNER,
        "Nobody gave more than {:d} answers, be it under two names.",
        "How are returning people recognised?",
    )
    ARRIVALS_PUBLIC = (
        "arrivals-public",
        TRUSTED,
        SIGNER,
        "Who arrives when, and which answer is learned when, is the same whatever the data is.",
        "Do people return because they were pleased? Then their return reveals their answer, and you cannot sign.",
    )
    SHOWN_FROM_NOISED = (
        "shown-from-noised",
        ENFORCED,
        SIGNER,
        "What is shown depends on people's data through noised numbers alone, and is covered.",
    )
    SHOWN_FROM_CONTEXT = (
        "shown-from-context",
        ENFORCED,
        SIGNER,
        "What is shown depends on people's data through noised numbers and the person's own context alone, and what "
        "all others are shown is covered.",
    )
    STATE_SECRET = (
        "state-secret",
        TRUSTED,
        SIGNER,
        "The policy's state and statistics of its success are kept secret: they depend on more than what this "
        "certificate covers.",
        "Who sees the state, its backups, and numbers such as clicks per arm?",
    )
    FEATURES_SHORTENED = (
        "features-clipped",
        ENFORCED,
        SIGNER,
        "Rows of features were clipped to length 1, and those that are not finite numbers count as zeros.",
    )
    FLIPPED = (
        "flipped-on-device",
        TRUSTED,
        SIGNER,
        "Each answer was flipped by `report` on the person's own device, whose generator is assumed to be ideal, and "
        "nothing else of it was sent.",
        "Who ships that program, and who can change it?",
    )

    # The paper's methods.
    FLOAT32_COVERED = (
        "float32-covered",
        ENFORCED,
        SIGNER,
        "Rewards were clipped to {:g} in size, and the noise covers rounding errors of float32.",
    )
    WHOLE_NOISE = (
        "whole-noise",
        ENFORCED,
        ENGINEER,
        "Noise of exactly the stated distribution was drawn from the operating system's generator, outside compiled "
        "code, in whole numbers of a public step, noise/262144, and each number was used once; values were clipped and "
        "rounded to whole numbers of that step, which the noise covers, and added to it without rounding.",
    )
    RANDOM_ACTIONS = (
        "random-actions",
        ENFORCED,
        SIGNER,
        "Actions were uniformly random, so that the visited states do not depend on the reward.",
    )
    FIXED_POINT = (
        "fixed-point",
        ENFORCED,
        SIGNER,
        "Values are a fixed point of averages, which contracts by gamma.",
    )
    GRADIENTS_CLIPPED = (
        "gradients-clipped",
        ENFORCED,
        SIGNER,
        "Each transition's gradient was clipped to length {:g}.",
    )
    FROM_NOISED = (
        "from-noised",
        ENFORCED,
        SIGNER,
        "Networks, targets, values and actions come from public states and noised numbers only.",
    )
    USED_IN_ONE_ROUND = (
        "used-in-one-round",
        ENFORCED,
        SIGNER,
        "Each transition was used in one round only; one that is observed again counts as another.",
    )
    LIPSCHITZ_VALUES = (
        "lipschitz-values",
        TRUSTED,
        SIGNER,
        "The value function is L-Lipschitz; nothing enforces it.",
        "Is anything known about its slope?",
    )
    TRAJECTORY_REWARDS_CLIPPED = (
        "trajectory-rewards-clipped",
        ENFORCED,
        SIGNER,
        "Rewards were clipped to {:g} in size, and each trajectory counted once in a cell.",
    )
    TRAJECTORIES_CUT = (
        "trajectories-cut",
        ENFORCED,
        SIGNER,
        "Trajectories were truncated after {:d} steps.",
    )
    TRAJECTORIES_DECLARED = (
        "trajectories-declared",
        ENFORCED,
        SIGNER,
        "Visits and returns were summed over {:d} trajectories, as declared: whoever gave none counts as an empty one.",
    )
    WEIGHTS_CLIPPED = ("weights-clipped", ENFORCED, ENGINEER, "Weights were clipped to {:g} in size.")
    WEIGHTS_EXACT = (
        "weights-exact",
        TRUSTED,
        ENGINEER,
        "Weights were computed to within 1e-7 of their bound, and that to twelve digits, which the noise covers.",
        "Is it an unmodified quietq?",
    )
    ONE_TRAJECTORY_EACH = (
        "one-trajectory-each",
        TRUSTED,
        SIGNER,
        "Each person gave one trajectory.",
        "Can one person have given two?",
    )


ABOUT_ACCOUNTS = (
    Code.NO_ACCOUNT,
    Code.OTHER_ACCOUNT,
    Code.NOT_CHARGED_YET,
    Code.CHARGED_IN_MEMORY,
    Code.CHARGED_IN_LEDGER,
)
"""What a certificate says about other releases of the same data: one of these."""


def _values(name: str, value: object) -> tuple[float | int | str, ...]:
    """Returns numbers and lines of plain text, which cannot look like another sentence."""
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"{name} must be a list of numbers and texts, not {shown(value)}.")
    return tuple(one if isinstance(one, str) else _number(name, one) for one in value)


def _number(name: str, value: object) -> float | int:
    number = real(name, value)
    return int(number) if isinstance(value, int) or hasattr(value, "__index__") else number


def _fits(value: float | int | str, spec: str) -> bool:
    if spec == "":
        return isinstance(value, str) and value.isascii() and value.isprintable() and 0 < len(value) <= LONGEST_TEXT
    return type(value) is int if spec == "d" else not isinstance(value, str)


class Assumption(Record, frozen=True, tag=False, tag_field=None):
    """Something the promise stands on: a code, and the values of its sentence.

    >>> print(Code.REWARDS_CLIPPED(0.5).text, Code.REWARDS_CLIPPED(0.5).enforced)
    Rewards were clipped to 0.5 in size. True
    """

    code: Code
    values: Annotated[tuple[float | int | str, ...], checked_by(_values)] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        formats = self.code.fields
        if len(self.values) != len(formats) or not all(map(_fits, self.values, formats)):
            raise InvalidInput(f"The values of the assumption {self.code.value!r} do not fit its sentence.")

    @property
    def enforced(self) -> bool:
        """Returns whether quietq's own code makes sure of it; else somebody is trusted for it."""
        return self.code.enforced

    @property
    def text(self) -> str:
        """Returns the sentence."""
        return self.code.sentence.format(*self.values)
