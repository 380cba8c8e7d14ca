"""What the server answers, as pydantic models: FastAPI writes the answers and the OpenAPI document from them."""

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
    actions: list[int]


class Sides(BaseModel):
    low: list[float]
    high: list[float]


class ReleaseRecord(Marked):
    """What the list of releases says of one."""

    id: str = Field(description="The first digits of the hash.")
    hash: str = Field(description="SHA-256 of the release's content.")
    name: str = Field(description="The name of its file.")
    what: Literal["agent", "function"]
    box: Sides
    outputs: int = Field(description="How many values each state has.")
    actions: int | None = Field(description="The same for an agent.")
    epsilon: float | None
    delta: float | None
    version: str = Field(description="Of the quietq that wrote it.")
    signer: str | None = Field(description="Fingerprint of the key that it was signed with.")
    signer_checked: bool = Field(description="Whether the server was given that key (`--key`).")


class ReleaseList(Marked):
    """All releases that are served."""

    releases: list[ReleaseRecord]

    @classmethod
    def of(cls, releases: list[ReleaseRecord]) -> "ReleaseList":
        """One that is not private makes the whole list not private."""
        privacy = "certified" if all(each.privacy == "certified" for each in releases) else NOT_PRIVATE
        signed = {each.signed for each in releases}
        several = "signed by several, or not all of them: see each release"
        return cls(privacy=privacy, signed=signed.pop() if len(signed) == 1 else several, releases=releases)


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
