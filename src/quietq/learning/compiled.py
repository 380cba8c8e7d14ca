"""A training in a compiled world: in pieces, with a checkpoint before each, so that it can be taken up where it was.

Rehearse, charge, draw, keep, run: what cannot work is refused before anything is paid; what was drawn is on disk before
it is used, and what ended is marked as ended before its end is released. So a training that is resumed draws nothing,
pays nothing, and uses no number for a second purpose.

Not even a copy of a checkpoint does. What a piece does is a function of the checkpoint and the program, and a
checkpoint is bound to its program (`bound`): method, world, reward, every hyper-parameter, seed, budget and code. So
all copies compute the same numbers, which is post-processing of one release, or are refused. And a training that is
ended early, and might be gone on with elsewhere, releases what it has released already and no more. (A processor of
another kind may round otherwise in the last place: then a copy on it is a copy but for that.)
"""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from quietq.learning import bound, checkpoint, trainer
from quietq.learning.events import Event, answers, recent
from quietq.learning.rehearsal import refused_early
from quietq.learning.report import Reporter
from quietq.privacy.errors import InvalidInput
from quietq.worlds.world import World

if TYPE_CHECKING:
    from quietq.learning import training


def run(
    training: "training.Training", world: World, resume: bool, progress: Any, callback: Any, reporter: Reporter
) -> tuple[Any, Any, int]:
    """What was released, what was seen (rewards and ends, a row a run), and after how many steps."""
    core, rewards, keys = training.method.core(), training.rewards(), training.keys()
    mark, probe = None, training.probe(rewards)
    kept = training.directory is not None and training.method.spends
    length = min(training.piece(progress, callback), training.steps)
    # What is told from inside is a part of the program, which must be the same for all copies of a checkpoint.
    tell = max(training.steps // 100, 1) if progress == "compiled" and not kept else None
    if training.directory is not None:
        checkpoint.prepare(training.directory)
        mark = bound.fingerprint(training, rewards, probe)
    if resume:
        assert training.directory is not None  # `Training.run` refuses it
        assert mark is not None
        noise = training.noise(seeded=True)  # for its shapes
        like = noise, trainer.begin(core, world, trainer.Runs(keys, rewards, noise)), _nothing_seen(training)
        (noise, carry, seen), header = checkpoint.read(training.directory, like, mark)
        first, booked = int(header["step"]), header.get("booked", False)
        if training.account is not None and training.method.spends:
            if not booked:
                raise InvalidInput("This training was begun without an account, so nothing was booked: go on without.")
            training.receipt = training.account.receipt(booked) if isinstance(booked, str) else None
        finished, training.booked = bool(header["finished"]), bool(booked)
    else:
        if training.directory is not None and (training.directory / checkpoint.NAME).exists():
            raise InvalidInput(
                f"{str(training.directory)!r} holds a checkpoint already: resume it, or choose another directory."
            )
        if training.releases:
            rehearsed = trainer.Runs(keys, rewards, training.no_noise())
            refused_early(trainer.rehearse, core, world, rehearsed, length, tell)
        training.pay()
        noise = training.noise(training.simulate is not None)
        carry, seen = trainer.begin(core, world, trainer.Runs(keys, rewards, noise)), _nothing_seen(training)
        first, finished = 0, False
        booked = training.receipt is not None and (training.receipt.id or True)
    runs = trainer.Runs(keys, rewards, noise)
    while first < training.steps and not finished:
        if training.directory is not None:
            assert mark is not None
            checkpoint.write(training.directory, (noise, carry, seen), mark, first, finished=False, booked=booked)
        piece = min(length, training.steps - first)
        carry, new = trainer.advance(core, world, runs, carry, first, piece, tell)
        seen = tuple(jax.lax.dynamic_update_slice(old, part, (0, first)) for old, part in zip(seen, new, strict=True))
        first += piece
        reporter.at(first, lambda seen=seen: recent(seen))
        so_far = trainer.current(core, runs, carry)
        if callback is not None and callback(Event(first, answers(core, so_far))) is True:
            if so_far is None and kept and first < training.steps:
                raise InvalidInput(
                    f"{training.method.name!r} releases at its end only, and its checkpoint might be gone on with: "
                    "resume it without ending it, or train without a directory."
                )
            break
    if training.directory is not None:
        assert mark is not None
        # Before the end is released: a training that ended is not gone on with, only its end is repeated.
        checkpoint.write(training.directory, (noise, carry, seen), mark, first, finished=True, booked=booked)
    early = first < training.steps and kept
    released = trainer.current(core, runs, carry) if early else trainer.finish(core, runs, carry)
    return jax.block_until_ready(released), tuple(np.asarray(part)[:, :first] for part in seen), first


def _nothing_seen(training: "training.Training") -> tuple[Any, Any]:
    shape = (training.draws * training.seeds, training.steps)
    return jnp.zeros(shape), jnp.zeros(shape, bool)
