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
import re
import textwrap
import typing
from pathlib import Path

from quietq.privacy.assumptions import Code
from quietq.privacy.certificate import AnsweredQuery, Certificate
from quietq.privacy.explain import Sentence, explain
from quietq.privacy.norms import AnyNorm
from quietq.privacy.records import Record
from quietq.privacy.relations import AnyRelation

DOCS = Path(__file__).parents[1] / "docs"
WIDTH = 120

READING = """# Reading a certificate

For the person who must sign off a release. You need no mathematics: this page, the certificate, and ten minutes with the
engineer who made it.

A certificate is a *statement*, not a proof and not a signature: anybody can write such a file. What the library guarantees
is that what it releases itself carries a true one, **if the assumptions marked as trusted hold**. Those are what you sign
for, and each needs a name and a paper. **Trusted**: no code can see it, so somebody has to vouch for it. **Enforced**:
quietq's code makes sure of it, and there is nothing to ask, if an unmodified quietq made the file: see who signed it, `quietq verify FILE --key KEY`. A
**note** promises nothing. What stands under *For the engineer* only the engineer can judge.
"""

EXAMPLES = (
    (
        "A reward",
        "An engineer made this reward of 300 people's ratings of rooms, by warmth and light, and charged it to an account. "
        "The ratings are synthetic; the certificate does not depend on them.",
        """\
import numpy as np
import polars as pl
import quietq as qq

rng = np.random.default_rng(0)
rooms = pl.DataFrame({"person": np.repeat(np.arange(300), 10), "warmth": rng.uniform(15, 25, 3000),
                      "light": rng.random(3000), "rating": rng.uniform(1, 5, 3000)})
people = qq.Ratings.read(rooms, state=["warmth", "light"], box=[(15, 25), (0, 1)], low=1, high=5, people=300)
budget = qq.Budget(epsilon=1, delta=1e-5)
certificate = qq.privatise(people, budget, account=qq.Accountant(budget)).certificate
""",
    ),
    (
        "A world",
        "Of 1,000 people's sessions a private world was made. A tenth of the budget was kept for a later check: an odd ε is "
        "a share of a whole budget, by the squares of μ.",
        """\
steps = pl.DataFrame({"person": np.repeat(np.arange(1000), 5), "step": np.tile(np.arange(5), 1000),
                      "level": rng.random(5000), "next": rng.random(5000), "dose": rng.choice(["low", "high"], 5000),
                      "reward": rng.random(5000), "stopped": np.tile([0, 0, 0, 0, 1], 1000)})
people = qq.Sessions.read(steps, state=["level"], next_state=["next"], action="dose", actions=["low", "high"],
                          reward="reward", low=0, high=1, end="stopped", box=[(0, 1)], people=1000)
whole = qq.Budget(epsilon=1, delta=1e-5)
for_world, for_check = whole.split(0.9, 0.1)
certificate = qq.privatise(people, for_world, account=qq.Accountant(whole)).certificate
""",
    ),
    (
        "Live traffic",
        "A [bandit](bandits.md) shows one of three things to each visitor, and learns from their answers. The certificate is "
        "made before anybody comes, and covers everybody who will.",
        """\
from quietq.online import Episodes

certificate = Episodes(3, qq.Budget(epsilon=0.5, delta=0), visits=2).certificate
""",
    ),
)

REST = """
## If something proves wrong later

A certificate is not edited. Write down what is still promised, charge the difference, and tell whoever was told the old number.

| what proved wrong | what is still promised |
|---|---|
| fewer people gave something than were declared | the same: the others count as neutral |
| one person had k names, or came k times as often | to that person k·μ, and for pure noise k·ε |
| there was another release about the same people | both together: √(Σμ²), or the sums of ε and of δ |
| a bound, the box or the budget was chosen by the data; a seed was used | nothing that a number could state |

## The three standings

`certified`: there is a theorem, and the code enforces its conditions but for those listed as trusted. `claimed`: the paper's
theorem, which does not hold. `none`: nothing is promised. Only what is certified may be published.

## Before you sign, ask

1. Is the standing `certified`, and is `reproducible` false?
2. Does *Promised to look alike* describe the people you want to protect? Can one of them appear twice?
3. Where do box, range, slope, number of people and budget come from, if not from the data?
4. What else was released about the same people? `quietq ledger show` has the sum.
5. Does anything leave besides what the certificate covers? Not covered is whatever lies under `not_private`, what was chosen by
   looking at the data, seeds, logs, backups and the raw data itself, and what is true of the whole group
   ([what is protected](what-is-protected.md)).

All assumptions, and every field of `certificate.to_json()`, are in [every field of a certificate](certificate-fields.md); why it
holds is in [the theory](theory.md), and what happened when we attacked it in [the audits](audit.md).
"""

FIELDS = """# Every field of a certificate

For whoever reads certificates by program, `private.certificate.to_json()`. How to read one as a person is in
[reading a certificate](reading-a-certificate.md).

"""

CHECKED = """
## What is checked

A certified certificate is checked when it is made, before anything is drawn or spent, and again when it is read:

- each query's `sensitivity` is at least what the relation comes to in its `norm`, and its `family` is one of that norm;
- of Gaussian noise, the root of the sum of squares of `sensitivity`/`size` is at most the μ of the `budget`; of pure noise, `delta`
  is 0 and the sum of `sensitivity`/`size` at most `epsilon`; noise that follows the data fulfils its theorem at this budget;
- the `domain` has the norm's dimension;
- who vouches for the relation, how the noise was drawn and rounded, that settings were chosen without the data, that random bits are
  fair, and whether the release was charged are all among the `assumptions`, and numbers that both they and the rest state agree.

That shows that the parts fit each other. It cannot show that the noise was drawn, that an account was charged, how many people
stand behind a ball of rewards, or that an `expected_error` is right: whoever changes all parts alike has written another
statement, which takes a signature to tell from yours.
"""


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def reading() -> str:
    """The page for whoever signs: three certificates, each line of which is explained where it first occurs."""
    parts, names, known = [READING], {}, set()
    for title, about, code in EXAMPLES:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, title, "exec"), names)
        certificate = names["certificate"]
        rows = []
        for audience in ("signer", "engineer"):
            new = [line for line in explain(certificate, audience) if opening(line) not in known]
            rows += [(shown(line, audience), line.ask) for line in new]
            known |= {opening(line) for line in new}
        parts += [
            f"\n## {title}, line by line\n\n{textwrap.fill(about, WIDTH)}\n\n```python\n{code}print(certificate)\n```\n\n",
            "" if len(parts) == 1 else "Lines that read as those above are left out.\n\n",
            table(("line", "what it means, what to ask"), rows),
        ]
    return "".join([*parts, REST])


def shown(line: Sentence, audience: str) -> str:
    who = " (for the engineer)" if audience == "engineer" else ""
    # What a certificate says of the size of a world's steps is estimated from its own draw, new each time.
    text = re.sub(r"\d\.\d+", "…", line.text) if line.text.startswith("Steps of ") else line.text
    return text if line.mark == "promise" else f"**{line.mark}**{who}: {text}"


def opening(line: Sentence) -> str:
    """How a line begins: lines of the same meaning begin alike."""
    return line.text[:30]


def fields() -> str:
    """The page for programs: all records that a certificate is made of, and all assumptions."""
    rows = [(f"`{name}`", said) for name, said in documented(Certificate)]
    rows += [(f"`queries[].{name}`", said) for name, said in documented(AnsweredQuery)]
    parts = [FIELDS, "## The fields\n\n", table(("field", "what it says"), rows), CHECKED]
    for title, union in (("Relations", AnyRelation), ("Norms", AnyNorm)):
        kinds = [
            (f"`{kind.__struct_config__.tag}`", ", ".join(f"`{one}`" for one in kind.__struct_fields__), first(kind))
            for kind in typing.get_args(union)
        ]
        parts += [f"\n## {title}\n\n", table(("kind", "its fields", "what it is"), kinds)]
    for vouched, title in ((False, "Trusted"), (True, "Enforced")):
        chosen = [code for code in Code if code.enforced is vouched]
        said = [(f"`{code.value}`", code.reader, " ".join([code.sentence, code.question]).strip()) for code in chosen]
        parts += [f"\n## {title} assumptions\n\n", table(("code", "for", "what it says, what to ask"), said)]
    return "".join(parts)


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
