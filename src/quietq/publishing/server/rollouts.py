"""Watching somebody act in a released world: `/v1/releases/{id}/rollout`."""

from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Path as InPath, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from quietq.publishing.server.addresses import Guards, find, marked, refusals
from quietq.publishing.server.catalogue import Catalogue
from quietq.publishing.server.episodes import RolloutBody, agent_in, play, schema
from quietq.publishing.server.guard import Metrics
from quietq.publishing.server.records import Rollout, marks_together
from quietq.publishing.server.states import JSON, sentence

_MOST_BYTES = 2**16
_EXAMPLE = 'The body must be like {"policy": "random", "steps": 200, "seed": 0}'


def add_rollouts(app: FastAPI, catalogue: Catalogue, metrics: Metrics, guards: Guards) -> None:
    in_path = InPath(json_schema_extra={"enum": [*catalogue]})
    sent = {"requestBody": {"required": True, "content": {JSON: {"schema": schema(catalogue)}}}}
    refused = refusals(404, 409, 413, 415, 422)

    @app.post("/v1/releases/{id}/rollout", responses=refused, dependencies=guards, openapi_extra=sent)
    async def rollout(id: Annotated[str, in_path], request: Request, response: Response) -> Rollout:
        entry = find(catalogue, id)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise HTTPException(415, f"Content-Type must be {JSON}.")
        body = await request.body()
        if len(body) > _MOST_BYTES:
            raise HTTPException(413, f"The body must have at most {_MOST_BYTES} bytes here.")
        try:
            asked = RolloutBody.model_validate_json(body)
        except ValidationError as error:
            raise HTTPException(422, f"{_EXAMPLE}; {sentence(error.errors())}") from error

        def work() -> Any:
            actor = agent_in(catalogue, entry, asked.policy)
            found = play(entry, actor, asked)
            involved = [entry.record, *([] if actor is None else [actor.record])]
            metrics.states.labels(entry.record.id, "rollout").inc(len(found.actions))
            numbers: dict[str, Any] = {"states": found.states.tolist(), "actions": found.actions.tolist(),
                       "rewards": None if found.rewards is None else found.rewards.tolist()}  # fmt: skip
            told: dict[str, Any] = {"ending": found.ending, "reason": found.reason}
            return Rollout.model_construct(**marks_together(involved), **numbers, **told)

        return marked(await run_in_threadpool(work), response)
