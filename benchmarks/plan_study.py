"""Plans beside what came: correlations that `quietq plan` expects, and those of rewards of other laws."""

import argparse
from dataclasses import replace

import numpy as np

from benchmarks import families
from benchmarks.family_study import BUDGET, KINDS, MADE_OF
from benchmarks.study import ROOT, Case, Numbers, Study
from quietq.feedback.synthetic import Survey
from quietq.mechanisms.plan import expected

DIMENSIONS, PEOPLE = (2, 4, 8), (1000, 300)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(draws=3)
    parser.add_argument("--people", type=int, nargs="+", choices=PEOPLE, default=PEOPLE)
    parser.add_argument("--dimension", type=int, nargs="+", choices=DIMENSIONS, default=DIMENSIONS)


def study(options: argparse.Namespace) -> Study:
    cases = [
        replace(_case(people, d), wanted=people in options.people and d in options.dimension)
        for people in PEOPLE
        for d in DIMENSIONS
    ]
    remarks = (
        f"A plan of five draws is held against one draw of each of the {len(families.REPORTED)} reported families, 20",
        "ratings for each person, epsilon = 1, delta = 1e-5.",
    )
    return Study("plan", "d", cases, remarks)


def _case(people: int, d: int) -> Case:
    made_of = (*MADE_OF, *(ROOT / "benchmarks" / f"{one}.py" for one in ("family_study", "plan_study")))
    return Case({"people": people, "d": d}, lambda draw: _measure(people, d, draw), made_of)


def _measure(people: int, d: int, draw: int) -> Numbers:
    plan = expected(Survey("ratings", families.ROWS, d), people, BUDGET, seed=draw).correlation
    came = [KINDS["ratings"](family, d, people, draw, "uniform")["correlation"] for family in families.REPORTED]
    return {
        "correlation that the plan expects": plan,
        "share of families at least as good as the plan (higher is better)": float(np.mean(np.array(came) >= plan)),
        "mean correlation of the families, less the plan's": float(np.mean(came) - plan),
        "least correlation of a family, less the plan's": min(came) - plan,
    }
