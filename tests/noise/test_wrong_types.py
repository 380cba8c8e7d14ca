"""Wrong types get one sentence too. In a process of its own: here beartype would be faster."""

import json
import subprocess
import sys

import pytest

EXPRESSIONS = {
    "GaussianProcessMechanism(3, 1.0, budget)": "kernel must be a kernel",
    "GaussianProcessMechanism(kernel, 1.0, 0.9)": "budget must be a Budget",
    "GaussianProcessMechanism(kernel, '1', budget)": "sensitivity must be a finite number, not '1'",
    "GaussianProcessMechanism(kernel, 1.0, budget, relation=3)": "relation must be a relation",
    "GaussianProcessMechanism.for_relation(relation, (0.9, 1e-4))": "budget must be a Budget",
    "GaussianProcessMechanism.for_relation('people', budget)": "relation must be a relation",
    "GaussianProcessMechanism.for_relation(relation, budget, assumption='checked')": "assumption must be an Assumption",
    "GaussianProcessMechanism.for_relation(relation, budget, account=budget)": "account must be an Accountant",
    "FiniteRankMechanism(FeatureKernel(abs, 2), 1.0, budget).apply({'secret': 1})": "weights must be real numbers",
    "FiniteRankMechanism(FeatureKernel(abs, 2), 1.0, budget).apply(['1', '2'])": "weights must be real numbers",
    "FiniteRankMechanism(FeatureKernel(abs, 2), 1.0, budget).apply([[1], [1, 2]])": "weights must be real numbers",
    "FiniteRankMechanism(kernel, 1.0, budget)": "kernel must be FeatureKernel or BandLimited, not Exponential",
    "Ratings.read([], box=(0, 1), low=0, high=1, people=2, features=FeatureKernel(abs, 2))": "public feature map, not",
    "Accountant(0.9)": "budget must be a Budget",
    "PublishedTheorem(0.9)": "budget must be a Budget",
    "SortedPath(4.0)": "kernel must be Exponential, not float",
    "Exponential(kernel)": "betas must be a finite number, not Exponential",
    "Exponential((4.0, kernel), summed=True)": "betas must be a finite number, not Exponential",
    "Exponential([4.0], summed=1)": "summed must be True or False, not 1",
    "Exponential('ab')": "betas must be a finite number, not 'ab'",
    "RkhsBall(1.0, 'kernel')": "kernel must be a kernel",
    "FeatureKernel([1.0], 1)": "phi must be a function",
    "WorldModel(circles=3)": "circles must be pairs of numbers of coordinates, such as ((0, 1),), not 3",
    "WorldModel(step_rewards=3)": "step_rewards must be a range, low below high, not 3",
    "WorldModel(circles=(0, 1))": "circles must be pairs of numbers of coordinates, such as ((0, 1),), not (0, 1)",
    "Box('a', 'b')": "must be a tuple of numbers",
    "Certificate(method=3, standing='none')": "method must be printable text in one line, not 3",
    "Certificate(method='x', standing='none', assumptions='abc')": "assumptions is of another type than it must be",
    "Certificate(method='x', standing='none', assumptions=('abc',))": "assumptions is of another type than it must be",
    "Certificate(method='x', standing='none', remarks='abc')": "remarks is of another type than it must be",
    "Certificate(method='x', standing='none', remarks=(1,))": "remarks must be printable text in one line, not 1",
    "Certificate(method='x', standing='none', relation='abc')": "relation is of another type than it must be",
    "Certificate(method='x', standing='none', reproducible=1)": "reproducible must be True or False",
    "Certificate(method='x', standing='none', queries=(3,))": "queries is of another type than it must be",
    "Certificate(method='x', standing='none', budget=(0.9, 1e-4))": "budget is of another type than it must be",
    "Certificate(method='x', standing='sure')": "standing is of another type than it must be",
    "Certificate(method='x', standing='none', schema=3)": "schema is of another type than it must be",
    "Assumption(3)": "code is of another type than it must be",
    "Assumption('chosen-without-data', True)": "values must be a list of numbers and texts, not True",
    "Code.REWARDS_CLIPPED('x')": "values of the assumption 'rewards-clipped' do not fit its sentence",
    "Code.CALLER(1)": "values of the assumption 'vouched-by-caller' do not fit its sentence",
}

LEVELS = """
import numpy as np
from quietq import *
from quietq.noise import Box, SeededEntropy
from quietq.paper import BandLimited, FeatureKernel, FiniteRankMechanism, PublishedTheorem, SortedPath
from quietq.released import PrivateTable
from quietq.noise.box import grid_points
from quietq.noise.grid_path import check_grid, draw_grid, look_up
kernel, box = Exponential(4.0), Box.of((0, 1))
x = np.linspace(0, 1, 50)
for kind in (np.uint8, np.uint32, np.int32, np.int64):
    n = kind(10)
    assert np.array_equal(
        draw_grid(kernel, n, (), SeededEntropy(1)), draw_grid(kernel, 10, (), SeededEntropy(1))
    )
    values = draw_grid(kernel, 10, (), SeededEntropy(1))
    assert np.array_equal(grid_points(box, n), grid_points(box, 10)) and check_grid(kernel, n) == (1025,)
    assert np.array_equal(look_up(values, box, n, x), look_up(values, box, 10, x))
    mechanism = GaussianProcessMechanism(kernel, 0.1, Budget(0.9, 1e-4), levels=n)
    private = mechanism.simulate(np.sin, seed=1)
    same = GaussianProcessMechanism(kernel, 0.1, Budget(0.9, 1e-4), levels=10).simulate(np.sin, seed=1)
    assert np.array_equal(private.values, same.values) and type(mechanism.levels) is type(private.levels) is int
    assert type(PrivateTable(values, n, box, private.certificate).levels) is int
    try:
        check_grid(kernel, kind(40))
        raise AssertionError("a table of 2^40 values")
    except InvalidInput:
        pass
assert type(FeatureKernel(np.cos, np.int64(3), np.int64(1)).norm.rank) is int
"""
SCRIPT = """
import json, sys
import quietq, quietq.noise, quietq.privacy
from quietq import *
from quietq.privacy import Assumption, Code
budget, kernel, relation = Budget(0.9, 1e-4), Exponential(4.0), people(50, 0, 0.5, 1)
answers = {}
for expression in json.load(sys.stdin):
    try:
        answers[expression] = f"accepted: {eval(expression)!r}"
    except InvalidInput as error:
        answers[expression] = str(error)
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers():
    command = [sys.executable, "-W", "error", "-c", LEVELS + SCRIPT]
    done = subprocess.run(command, input=json.dumps(list(EXPRESSIONS)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_wrong_types_are_refused_in_one_sentence(answers, expression):
    assert EXPRESSIONS[expression] in answers[expression]
    assert "\n" not in answers[expression]


def test_numpys_integers_are_integers(answers):
    """In 32 bits -levels and 2**levels would wrap around and change the noise's law: LEVELS would have failed."""
    assert set(answers) == set(EXPRESSIONS)
