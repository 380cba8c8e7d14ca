# ruff: noqa: E501 (prose)
"""Writes docs/reading-a-certificate.md and docs/certificate-fields.md from real releases and from the records.

usage: python tools/certificate_pages.py     (a test makes both again and compares them with what is there)

What a line means, who vouches for it and what to ask is taken from `explain`, `Code` and the docstrings of the records,
so that the pages cannot say something else than the code does.
"""

import ast
import contextlib
import inspect
import io
import textwrap
import typing
from pathlib import Path

from quietq.privacy.assumptions import Code
from quietq.privacy.certificate import AnsweredQuery, Certificate
from quietq.privacy.checks import Record
from quietq.privacy.explain import Sentence, explain
from quietq.privacy.norms import AnyNorm
from quietq.privacy.relations import AnyRelation

DOCS = Path(__file__).parents[1] / "docs"
WIDTH = 120

READING = """# Reading a certificate

For the person who must sign off a release. You need no mathematics: this page, the certificate, and ten minutes with the
engineer who made it.

A certificate is a *statement*, not a proof: anybody can write such a file. What an unmodified quietq releases carries a
true one (`quietq verify FILE --key KEY` shows who signed it), **if the assumptions marked as trusted hold**: no code can
see these, so somebody has to vouch for them. **Enforced** ones are made sure of by quietq's code. A **note** promises nothing.
"""

EXAMPLE = """\
import numpy as np
import polars as pl
import quietq as qq

rng = np.random.default_rng(0)
rooms = pl.DataFrame({"person": np.repeat(np.arange(300), 10), "warmth": rng.uniform(15, 25, 3000),
                      "light": rng.random(3000), "rating": rng.uniform(1, 5, 3000)})
people = qq.Ratings.read(rooms, state=["warmth", "light"], box=[(15, 25), (0, 1)], low=1, high=5, people=300)
budget = qq.Budget(epsilon=1, delta=1e-5)
certificate = qq.privatise(people, budget, account=qq.Accountant(budget)).certificate
"""
ABOUT = """
## A reward, line by line

From 300 people's synthetic ratings of rooms, by warmth and light, charged to an account.

"""

REST = """
Its other lines are marked as enforced or as notes: there is nothing to ask about them. Other kinds of release have lines of
their own: every trusted one, with what to ask, is in [every field of a
certificate](certificate-fields.md#trusted-assumptions).

## If something proves wrong later

A certificate is not edited. Write down what is still promised, charge the difference, and tell everybody who relied on it.

| what proved wrong | what is still promised |
|---|---|
| fewer people gave something than were declared | the same: the others count as neutral |
| one person had k names, or came k times as often | to that person k·μ, and for pure noise k·ε |
| there was another release about the same people | both together: √(Σμ²), or the sums of ε and of δ |
| a bound, the box or the budget was chosen by the data; a seed was used | nothing that a number could state |

## The three standings

`certified`: there is a theorem, and the code enforces its conditions, except those listed as trusted. `claimed`: the paper's
theorem, which does not hold. `none`: nothing is promised. Only what is certified can be published.

## Before you sign, ask

1. Is the standing `certified`, and is `reproducible` false?
2. Do *Neighbouring inputs* describe the people you want to protect? Can one of them appear twice?
3. Where do box, range, slope, number of people and budget come from, if not from the data?
4. What else was released about the same people? `quietq ledger show` has the sum.
5. Does anything leave besides what the certificate covers, such as files under `not_private`, seeds, logs or backups
   ([what is protected](what-is-protected.md))?

Proofs are in [the theory](theory.md), and attacks in [the audits](audit.md).
"""

FIELDS = """# Every field of a certificate

For whoever reads certificates by program, `private.certificate.to_json()`. How to read one as a person is in
[reading a certificate](reading-a-certificate.md).

"""

CHECKED = """
## What is checked

A certified certificate is checked when it is made, before anything is drawn or spent, and again when it is read:

- each query's `sensitivity` is at least that of the relation in its `norm`, and its `family` is one of that norm;
- for Gaussian noise, √Σ(`sensitivity`/`size`)² is at most the μ of the `budget`; for pure noise, `delta` is 0 and
  Σ `sensitivity`/`size` at most `epsilon`; noise that follows the data fulfils its theorem;
- the `domain` has the norm's dimension;
- the `assumptions` say who vouches for the relation, how noise was drawn and rounded, that settings were chosen without the
  data, that random bits are fair, and whether the release was charged; numbers stated twice agree.

That shows that the parts fit each other, not that the noise was drawn or an account charged.
"""

ENFORCED = (
    "quietq's own code makes sure of these, so there is nothing to ask. A code's sentence is in every certificate that is "
    'printed, and in `qq.Code("one-vote").sentence`. They are {}.'
)


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def reading() -> str:
    """The page for whoever signs: a certificate, line by line."""
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(EXAMPLE, "example", "exec"), names)
    lines = [
        (audience, line) for audience in ("signer", "engineer") for line in explain(names["certificate"], audience)
    ]
    rows = [(shown(line, audience), line.ask) for audience, line in lines if line.ask]
    return "".join([READING, ABOUT, table(("line", "what it means, what to ask"), rows), REST])


def shown(line: Sentence, audience: str) -> str:
    who = " (for the engineer)" if audience == "engineer" else ""
    return line.text if line.mark == "promise" else f"**{line.mark}**{who}: {line.text}"


def fields() -> str:
    """The page for programs: all records that a certificate is made of, and all assumptions."""
    said = [f"- `{name}`: {words}\n" for name, words in documented(Certificate)]
    said += [f"- `queries[].{name}`: {words}\n" for name, words in documented(AnsweredQuery)]
    parts = [FIELDS, "## The fields\n\n", *said, CHECKED]
    for title, union in (("Relations", AnyRelation), ("Norms", AnyNorm)):
        kinds = [
            (f"`{kind.__struct_config__.tag}`", ", ".join(f"`{one}`" for one in kind.__struct_fields__), first(kind))
            for kind in typing.get_args(union)
        ]
        parts += [f"\n## {title}\n\n", table(("kind", "its fields", "what it is"), kinds)]
    for vouched, title in ((False, "Trusted"), (True, "Enforced")):
        chosen = [code for code in Code if code.enforced is vouched]
        parts += [f"\n## {title} assumptions\n\n"]
        if vouched:
            names = ", ".join(f"`{code.value}`" for code in chosen)
            parts += [textwrap.fill(ENFORCED.format(names), WIDTH, break_on_hyphens=False), "\n"]
        else:
            parts += ["Each with what to ask whoever vouches for it.\n\n"]
            parts += [f"- `{code.value}`: {assumed(code)}\n" for code in chosen]
    return "".join(parts)


def assumed(code: Code) -> str:
    """An assumption, who has to read it if it is not whoever signs, and what to ask."""
    who = "(for the engineer) " if code.reader == "engineer" else ""
    asked = f" *{code.question}*" if code.question else ""
    return f"{who}{code.sentence}{asked}"


def first(kind: type[Record]) -> str:
    """The first paragraph of a record's docstring."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())


def documented(kind: type[Record]) -> list[tuple[str, str]]:
    """A record's fields, and the sentences under them."""
    [body] = [node.body for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef)]
    found = []
    for here, below in zip(body, [*body[1:], None], strict=True):
        if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name):
            below = below.value if isinstance(below, ast.Expr) else None
            said = below.value if isinstance(below, ast.Constant) else ""
            found.append((here.target.id, " ".join(str(said).split())))
    return found


PAGES = {"reading-a-certificate.md": reading, "certificate-fields.md": fields}

if __name__ == "__main__":
    for name, written in PAGES.items():
        (DOCS / name).write_text(written(), encoding="utf-8")
