"""What is told of releases, as pydantic models for the OpenAPI document: every answer is one of these."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from quietq.mechanisms.release_file import NOT_PRIVATE


class Marked(BaseModel):
    """Whatever is read from a release says how private that is, and who stands behind it."""

    privacy: Literal["certified", "NOT PRIVATE"]
    signed: str = Field(description="Who signed it, and whether that was checked against a key.")


class Values(Marked):
    values: list[list[float]]


class Actions(Marked):
    actions: list[int] | list[list[float]] = Field(description="Their numbers, or the actions themselves.")


class Sides(BaseModel):
    low: list[float]
    high: list[float]


class Stage(BaseModel):
    """What can be done in a world, and what of it is not in its file."""

    actions: int | None = Field(description="How many actions there are; null where an action is numbers.")
    action_box: Sides | None = Field(description="Where these numbers lie.")
    state_names: list[str] = Field(description="What the coordinates of a state are called.")
    action_names: list[str] = Field(description="What the actions are called, or the numbers that an action is.")
    policies: list[str] = Field(description="Ids of served agents whose states and actions are those of this world.")
    start: list[float] = Field(description="A state to begin in: the mean of people's first states, or of all states.")
    unknown: list[str] = Field(
        description="What was declared as known when the world was made, and so is not in the file. Without moves "
        "nobody can act in it."
    )


class Items(Marked):
    """All that a release is a list of, with the values of each."""

    items: list[str]
    values: list[list[float]]
    low: list[float] | None = Field(description="The low ends of intervals around the values, if it has any.")
    high: list[float] | None


class Rollout(Marked):
    """One episode in a released world, as its server drew it."""

    states: list[list[float]] = Field(description="The first one, and the one after each step.")
    actions: list[int] | list[list[float]]
    rewards: list[float] | None = Field(description="Expected rewards; null if they are not in the file.")
    ending: Literal["ended", "halted", "steps"]
    reason: str = Field(description="Why it stopped there, in a sentence.")


class ReleaseRecord(Marked):
    """What the list of releases says of one."""

    id: str = Field(description="The first digits of the hash.")
    hash: str = Field(description="SHA-256 of the release's content.")
    name: str = Field(description="The name of its file.")
    what: Literal["agent", "function", "world", "policy values"]
    box: Sides
    items: int | None = Field(description="How many items there are, if a state is an item's whole place, from 0 on.")
    outputs: int = Field(description="How many values each state has.")
    names: list[str] = Field(description="What each of these values is called.")
    measure: str = Field(description="What the values are, for an axis.")
    actions: int | None = Field(
        description="How many actions an agent chooses among; null where the values are the action itself."
    )
    stage: Stage | None = Field(description="How to act in it, if it is a world.")
    epsilon: float | None
    delta: float | None
    version: str = Field(description="Of the quietq that wrote it.")
    signer: str | None = Field(description="Fingerprint of the key that it was signed with.")
    signer_checked: bool = Field(description="Whether the server was given that key (`--key`).")


def marks_together(records: list[ReleaseRecord]) -> dict[str, Any]:
    """Of what was read from several releases: one that is not private makes all of it not private."""
    privacy = "certified" if all(each.privacy == "certified" for each in records) else NOT_PRIVATE
    signed = {each.signed for each in records}
    several = "signed by several, or not all of them: see each release"
    return {"privacy": privacy, "signed": signed.pop() if len(signed) == 1 else several}


class ReleaseList(Marked):
    """All releases that are served."""

    releases: list[ReleaseRecord]

    @classmethod
    def of(cls, releases: list[ReleaseRecord]) -> "ReleaseList":
        return cls(**marks_together(releases), releases=releases)


class CertificateRecord(Marked):
    """A certificate, as it is and in plain words, with what belongs to it."""

    certificate: dict[str, Any]
    text: str
    plain: list[str]
    assumptions: list[dict[str, str | bool]]
    cap: dict[str, float | str] | None = Field(description="What no algorithm with the same promise can beat.")
    audit: dict[str, str | float | bool | None] | None


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    releases: int


class Refusal(BaseModel):
    detail: str = Field(description="Why a request was refused, in one sentence.")
