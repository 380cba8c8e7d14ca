"""Every theorem, lemma, proposition, corollary, claim and printed parameter set of the paper, checked by numbers.

A file a group of statements: what is printed, how it is measured, and how the numbers decide. `STATEMENTS` is all of
them in the paper's order; a row of the table `claims_measured` belongs to the statement that its `claim` names. What
the Discussion says of extensions is judged in `paper.extensions`, and only there.
"""

from typing import ClassVar

from paper.claims import (
    audits,
    listing,
    mechanisms,
    moments,
    networks,
    parameters,
    paths,
    programs,
    rounds,
    sampler,
    spaces,
    utility,
)
from paper.claims.statement import TABLE, Statement
from paper.experiment import Claim, Experiment, Tables
from paper.task import Task

__all__ = ["PRINTED", "STATEMENTS", "TABLE", "Claims", "Statement"]

_GROUPS = (
    mechanisms, audits, parameters, spaces, networks, rounds, listing, paths, moments, sampler, utility, programs,
)  # fmt: skip
STATEMENTS: tuple[Statement, ...] = tuple(statement for group in _GROUPS for statement in group.STATEMENTS)
"""All that is checked."""
PRINTED: tuple[Statement, ...] = tuple(statement for statement in STATEMENTS if not statement.ours)
"""The paper's own."""


class Claims(Experiment):
    """The paper's statements, one by one."""

    name: ClassVar[str] = "claims"
    title: ClassVar[str] = "Every statement and printed parameter of the paper, checked"

    def tasks(self, quick: bool) -> list[Task]:
        """A task a group; the audits train the authors' program, for a few hundred steps only if `quick`."""
        audited = [audits.audit_of(sigma, quick) for sigma in audits.CLAIMED]
        if quick:
            return [
                *audited, mechanisms.Mechanisms(20_000), parameters.Parameters(), spaces.Spaces(40), rounds.Rounds(),
                networks.Networks(), listing.Listing(1000), paths.Paths(200), moments.Moments(20_000),
                sampler.Sampler(20_000), sampler.Speed(20_000, 900, 2), utility.Utility(40, (10, 30, 100)),
                programs.Programs(3, 1000),
            ]  # fmt: skip
        return [
            *audited, mechanisms.Mechanisms(), parameters.Parameters(), spaces.Spaces(), rounds.Rounds(),
            networks.Networks(), listing.Listing(), paths.Paths(), moments.Moments(), sampler.Sampler(),
            sampler.Speed(), utility.Utility(), programs.Programs(),
        ]  # fmt: skip

    def claims(self, tables: Tables) -> list[Claim]:
        """A verdict on each statement."""
        rows = tables[TABLE]
        return [statement.claim(rows) for statement in STATEMENTS]
