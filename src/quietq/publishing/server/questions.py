"""The values and the policy of a release, at one state or at many: `/v1/releases/{id}/values` and `/policy`."""

from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, HTTPException, Path as InPath, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import FiniteFloat

from quietq.publishing.server.addresses import Guards, find, marks, refusals
from quietq.publishing.server.catalogue import Catalogue, Served
from quietq.publishing.server.guard import Metrics
from quietq.publishing.server.records import Actions, Marked, Values
from quietq.publishing.server.states import BYTES, JSON, Question, States, answer, parse, schemas

_SMALL = 1024  # bytes of a body whose answer does not keep others waiting


def add_questions(app: FastAPI, catalogue: Catalogue, metrics: Metrics, guards: Guards) -> None:
    one, many = schemas(catalogue)
    in_path = InPath(json_schema_extra={"enum": [*catalogue]})
    in_query = Query(description="One state; repeat it for each coordinate.", json_schema_extra=one)
    numbers = {"schema": {"type": "string", "format": "binary", "description": "Little-endian, state by state."}}
    sent = {"requestBody": {"required": True, "content": {JSON: {"schema": many}, BYTES: numbers}}}
    answers: Any = {200: {"content": {BYTES: numbers}}}

    def add(path: str, question: Question, model: type[Marked], *statuses: int) -> None:
        def respond(entry: Served, states: States, request: Request, response: Response) -> Any:
            found, record = answer(entry, question, states), entry.record
            metrics.states.labels(record.id, question).inc(len(states))
            if request.headers.get("accept", "").strip().lower() == BYTES:
                content = found.astype("<i8" if found.dtype.kind == "i" else "<f8").tobytes()
                shape = {"X-Quietq-Shape": ",".join(map(str, found.shape))}
                return Response(content, media_type=BYTES, headers=marks(record) | shape)
            response.headers.update(marks(record))
            told = {"privacy": record.privacy, "signed": record.signed}
            return model.model_construct(**told, **{question: found.tolist()})  # nothing of ours needs a check

        @app.get(path, response_model=model, responses=answers | refusals(*statuses), dependencies=guards)
        async def at_one_state(
            id: Annotated[str, in_path], state: Annotated[list[FiniteFloat], in_query], request: Request,
            response: Response,
        ) -> Any:  # fmt: skip
            entry = find(catalogue, id)
            dimension = entry.release.box.dimension
            if len(state) != dimension:
                raise HTTPException(422, f"state must be given {dimension} times, once for each coordinate.")
            return respond(entry, np.array([state]), request, response)

        more = answers | refusals(413, 415, *statuses)

        @app.post(path, response_model=model, responses=more, dependencies=guards, openapi_extra=sent)
        async def at_many_states(id: Annotated[str, in_path], request: Request, response: Response) -> Any:
            entry = find(catalogue, id)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in (JSON, BYTES):
                raise HTTPException(415, f"Content-Type must be {JSON} or {BYTES}.")
            body = await request.body()

            def work() -> Any:
                return respond(entry, parse(entry, kind, body), request, response)

            return work() if len(body) <= _SMALL else await run_in_threadpool(work)

    add("/v1/releases/{id}/values", "values", Values, 404, 422)
    add("/v1/releases/{id}/policy", "actions", Actions, 404, 409, 422)
