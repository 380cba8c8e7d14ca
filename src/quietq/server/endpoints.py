"""The endpoints: what is answered at each address under `/v1`, at `/healthz` and at `/metrics`."""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import Request, Response

from quietq.server.answers import JSON, Answer, Question, answered, body_answered, sent_type, wanted_type
from quietq.server.bodies import read_body
from quietq.server.catalogue import Catalogue, Entry
from quietq.server.limits import Refusal
from quietq.server.measures import Measures
from quietq.server.plain_words import explain
from quietq.server.states import from_query
from quietq.server.turns import Turns

Endpoint = Callable[[Request], Awaitable[Response]]
_SMALL = 1024  # bytes of a body whose answer does not keep others waiting


class Endpoints:
    """What can be asked; whatever does not depend on the question is made ready once."""

    def __init__(self, catalogue: Catalogue, measures: Measures) -> None:
        self._catalogue, self._measures = catalogue, measures
        self._batches, self._countings = Turns(2, "batch"), Turns(1, "metrics")
        listed = [entry.describe() for entry in catalogue]
        self._releases = _json({"releases": listed, "privacy": catalogue.privacy, "signed": catalogue.signed})
        self._described = {entry.id: _json(entry.describe()) for entry in catalogue}
        self._certificates = {entry.id: _json(certificate_record(entry)) for entry in catalogue}
        self._health = _json({"status": "ok", "releases": len(catalogue)})

    def one_state(self, question: Question) -> Endpoint:
        """The answer for a state in the address."""

        async def ask(request: Request) -> Response:
            entry, kind = self._asked(request, question)
            states = from_query(entry, request.query_params.getlist("state"))
            return self._counted(entry, question, answered(entry, question, states, kind))

        return ask

    def many_states(self, question: Question) -> Endpoint:
        """The answer for the states in a body; large ones are worked on beside the loop that serves everybody."""

        async def ask(request: Request) -> Response:
            entry, kind = self._asked(request, question)
            sent = sent_type(request.headers.get("content-type", ""), request.headers.get("content-encoding", ""))
            body = await read_body(request)
            if len(body) <= _SMALL:
                return self._counted(entry, question, body_answered(entry, question, body, sent, kind))
            found = await self._batches.take(request, partial(body_answered, entry, question, body, sent, kind))
            return self._counted(entry, question, found)

        return ask

    async def releases(self, request: Request) -> Response:
        """All releases that are served."""
        return _marked(self._releases, self._catalogue)

    async def release(self, request: Request) -> Response:
        """One release."""
        entry = self._entry(request)
        return _marked(self._described[entry.id], entry)

    async def certificate(self, request: Request) -> Response:
        """What is promised, to whom, under which assumptions."""
        entry = self._entry(request)
        return _marked(self._certificates[entry.id], entry)

    async def health(self, request: Request) -> Response:
        """Whether the server answers."""
        return Response(self._health, media_type=JSON)

    async def metrics(self, request: Request) -> Response:
        """Counters for Prometheus, of all workers."""
        text = await self._countings.take(request, self._measures.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    def _asked(self, request: Request, question: Question) -> tuple[Entry, str]:
        """Which release is asked, and of what type the answer shall be."""
        entry = self._entry(request)
        if question == "actions" and entry.release.what != "agent":
            raise Refusal(409, "This release is a function, and only an agent has a policy: ask for its values.")
        return entry, wanted_type(", ".join(request.headers.getlist("accept")))

    def _entry(self, request: Request) -> Entry:
        entry = self._catalogue.get(request.path_params["id"])
        if entry is None:
            raise Refusal(404, "There is no release of that id: /v1/releases lists those that there are.")
        return entry

    def _counted(self, entry: Entry, question: Question, found: Answer) -> Response:
        self._measures.states(entry.id, question, found.states)
        return Response(found.content, headers=found.headers, media_type=found.kind)


def certificate_record(entry: Entry) -> dict[str, Any]:
    """A certificate, as it is and in plain words, with what belongs to it."""
    certificate = entry.release.certificate
    return {
        "certificate": certificate.to_dict(),
        "text": str(certificate),
        **explain(entry.release),
        "audit": entry.audit,
        "privacy": entry.privacy,
        "signed": entry.signed,
    }


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


def _marked(content: bytes, whose: Entry | Catalogue) -> Response:
    headers = {"X-Quietq-Privacy": whose.privacy, "X-Quietq-Signed": whose.signed}
    return Response(content, media_type=JSON, headers=headers)
