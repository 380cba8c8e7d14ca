"""Plans beside what came: correlations that `quietq plan` expects, and those of rewards of other laws."""

from functools import partial

import numpy as np

from benchmarks.families import BUDGET, KINDS, MADE_OF, REPORTED, ROWS
from benchmarks.study import Case, Numbers, Study, own_files
from quietq.feedback.synthetic import Survey
from quietq.mechanisms.plan import expected


def study() -> Study:
    made_of = (*MADE_OF, *own_files("plan"))
    cases = [
        Case({"people": people, "d": d}, partial(_measure, people, d), made_of)
        for people in (1000, 300)
        for d in (2, 4, 8)
    ]
    remarks = (
        f"A plan of five draws is held against one draw of each of the {len(REPORTED)} reported families, 20 ratings",
        "for each person, epsilon = 1, delta = 1e-5.",
    )
    return Study("plan", "d", cases, remarks, draws=3)


def _measure(people: int, d: int, draw: int) -> Numbers:
    plan = expected(Survey("ratings", ROWS, d), people, BUDGET, seed=draw).correlation
    came = [KINDS["ratings"](family, d, people, draw, "uniform")["correlation"] for family in REPORTED]
    return {
        "correlation that the plan expects": plan,
        "share of families at least as good as the plan (higher is better)": float(np.mean(np.array(came) >= plan)),
        "mean correlation of the families, less the plan's": float(np.mean(came) - plan),
        "least correlation of a family, less the plan's": min(came) - plan,
    }
