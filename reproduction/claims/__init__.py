"""Every theorem, lemma, proposition, corollary, claim and printed parameter set of the paper, checked by numbers.

A file a group of statements: what is printed, how the numbers decide, and how they are measured. What the Discussion
says of extensions is in `reproduction.extensions`, and only there.
"""

from types import ModuleType
from typing import Any

from reproduction.claims import listing, mechanisms, parameters, paths, sampler, spaces, utility
from reproduction.claims.statement import TABLE, PaperStatement
from reproduction.experiment import Experiment, Task, task


def statements_of(*groups: ModuleType) -> list[PaperStatement]:
    """Those that the modules define, in their order."""
    return [one for group in groups for one in vars(group).values() if isinstance(one, PaperStatement)]


STATEMENTS = statements_of(mechanisms, parameters, spaces, listing, paths, sampler, utility)
"""All that is checked, in the paper's order."""


def tasks(quick: bool) -> list[Task]:
    """The audits train the authors' program, for a few hundred steps only if `quick`, when other groups do less too."""
    groups: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("mechanisms and composition", mechanisms.measure, {"releases": 20_000}),
        ("the stated parameters", parameters.measure, {}),
        ("the kernel's space", spaces.measure, {"tries": 40}),
        ("hidden state and shared noise", listing.measure_rounds, {}),
        ("networks in the kernel's space", spaces.measure_networks, {}),
        ("the listing", listing.measure, {"paths": 1000}),
        ("the maximum of a path", paths.measure, {"paths": 200}),
        ("moments of the likelihood ratio", paths.measure_moments, {"paths": 20_000}),
        ("the printed sampler", sampler.measure, {"draws": 20_000}),
        ("time of queries", sampler.measure_time, {"largest": 20_000, "largest_dense": 900, "repeats": 2}),
        ("utility in finite worlds", utility.measure, {"worlds": 40, "sizes": (10, 30, 100)}),
        ("linear programs", utility.measure_programs, {"worlds": 3, "draws": 1000}),
    )
    audits = [mechanisms.audit_task(sigma, quick) for sigma in mechanisms.AUDITED]
    return audits + [task(TABLE, f"claims: {title}", run, **(less if quick else {})) for title, run, less in groups]


CLAIMS = Experiment(
    name="claims",
    tasks=tasks,
    claims=lambda tables: [statement.claim(tables[TABLE]) for statement in STATEMENTS],
)
