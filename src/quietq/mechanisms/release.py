"""`release`: answers a mechanism's queries through a transcript, which charges, draws, rounds and certifies.

A mechanism's queries may depend on the answers so far, and it never sees a number that was not noised. What it costs is
what was charged before the first draw, whatever it asks (`privacy.transcript`; docs/theory.md#adaptive-composition).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quietq.mechanisms.mechanism import AnyFeedback, Mechanism
from quietq.noise.entropy import SeededEntropy
from quietq.noise.own_values import shows_nothing
from quietq.privacy import Code, InvalidInput
from quietq.privacy.account import Account
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import LARGEST, SMALLEST, is_own
from quietq.privacy.errors import EngineFailed
from quietq.privacy.transcript import Query, Transcript
from quietq.released.publishable import Labelled, Labels

CHARGED = "what was charged stays charged, and nothing was released"
"""What is said of a failure after the charge."""


@shows_nothing
def release(mechanism: Mechanism, feedback: AnyFeedback, account: Account | None = None) -> Any:
    """Makes `feedback` private by `mechanism`, once; the account is charged before anything is drawn.

    What can be refused is refused before that. A query beyond what was charged ends the release without a result.
    """
    transcript = _open(mechanism, feedback, account)
    labels = _labels(feedback)
    steps = mechanism.run()
    query = next(steps)
    _ask(transcript, query)
    _certify(transcript, mechanism, feedback, rehearsal=True)  # what it refuses costs nothing
    numbers = None
    if not mechanism.asks_code:
        numbers = or_say("nothing was spent", query.numbers, feedback)
        query.law.check_values(numbers)
    transcript.charge()
    while True:
        if numbers is None:  # a failure must not be a free answer
            numbers = or_say(CHARGED, query.numbers, feedback)
        try:
            query = steps.send(transcript.answer(query, numbers))
        except StopIteration as last:
            certificate = _certify(transcript, mechanism, feedback)
            return _labelled(mechanism.result(last.value, certificate), labels).with_receipt(transcript.receipt)
        _ask(transcript, query)
        numbers = None


@shows_nothing
def simulate(mechanism: Mechanism, feedback: AnyFeedback, seed: int) -> Any:
    """The same release with noise from a seed, as often as you like: private to nobody, charged to nobody."""
    transcript = _open(mechanism, feedback, None, seed)
    steps = mechanism.run()
    query = next(steps)
    while True:
        _ask(transcript, query)
        try:
            query = steps.send(transcript.answer(query, query.numbers(feedback)))
        except StopIteration as last:
            certificate = _certify(transcript, mechanism, feedback)
            return _labelled(mechanism.result(last.value, certificate), _labels(feedback))


def _open(mechanism: Mechanism, feedback: AnyFeedback, account: Account | None, seed: int | None = None) -> Transcript:
    """A transcript for what the mechanism asks of this feedback, which it must be made for."""
    if mechanism.relation != feedback.relation or not mechanism.is_for(feedback):
        raise InvalidInput(
            f"Noise {mechanism.name!r} is made for {mechanism.relation}, but what is to be released is about "
            f"{feedback.relation}: make it for that."
        )
    if feedback.box is not None and feedback.box != mechanism.box:
        raise InvalidInput(f"Noise {mechanism.name!r} is made for the box {mechanism.box}, not for {feedback.box}.")
    return Transcript(
        mechanism.relation,
        mechanism.budget,
        account,
        cost=mechanism.cost,
        once=feedback.once,
        largest=mechanism.largest,
        error=mechanism.error,
        simulated=None if seed is None else SeededEntropy(seed),
    )


def _labels(feedback: Any) -> Labels:
    """What coordinates and actions were called when they were declared; names that cannot be printed are refused."""
    return Labels(*getattr(feedback, "names", ()))


def _labelled(released: Any, labels: Labels) -> Any:
    return replace(released, labels=labels) if isinstance(released, Labelled) else released


def _ask(transcript: Transcript, query: Query) -> None:
    """Books a mechanism's query, which is a whole one: nothing here bounds what parts of one come to together."""
    if query.in_parts:
        raise InvalidInput(
            "A mechanism asks whole queries, each of which counts: leave in_parts out; nothing was drawn."
        )
    transcript.ask(query)


def _certify(
    transcript: Transcript, mechanism: Mechanism, feedback: AnyFeedback, rehearsal: bool = False
) -> Certificate:
    """What was promised so far; refused if a query's sensitivity is below what the relation comes to.

    What the mechanism states may be about all of its queries, of which only the first was asked in rehearsal.
    """
    error = mechanism.expected_error()
    own = () if is_own(mechanism) and is_own(feedback) else (Code.OWN_CODE(),)
    of_rewards = mechanism.error_unit == Mechanism.error_unit
    return transcript.certificate(
        f"{mechanism.releases}/{mechanism.name}",
        tuple(zip(mechanism.box.low, mechanism.box.high, strict=True)),
        (*feedback.assumptions, *(() if rehearsal else mechanism.conditions), *own),
        mechanism.remarks,
        error if of_rewards and SMALLEST <= error <= LARGEST else None,
    )


def or_say(spent: str, step: Callable[..., Any], *given: Any) -> Any:
    """Takes a step; if the machines that hold people's rows fail, says what became of the budget."""
    try:
        return step(*given)
    except EngineFailed as error:
        failure = EngineFailed(f"{str(error).rstrip('.')}; {spent}.")
    raise failure
