"""DM Control's cart-pole, to be balanced or swung up: its published XML and smooth reward.

An action is held for four steps of 0.01 s, so an episode of 1,000 steps has 250 actions, and returns lie in [0, 1000].
Its own integrator is written for many copies at once, and MuJoCo itself moves those whose slider may reach its end.
Beside DM Control 1.0.50, with the same actions from the same states, states are the same to 1e-15 in MuJoCo.
"""

from functools import cached_property

import numpy as np
from mujoco import MjData, MjModel, rollout  # pyright: ignore[reportAttributeAccessIssue]

from benchmarks.systems import Array, Outcome, Rng, System
from quietq.released.world_model import WorldModel

XML = """
<mujoco>
  <option timestep="0.01" integrator="RK4"> <flag contact="disable"/> </option>
  <worldbody>
    <body pos="0 0 1">
      <joint type="slide" limited="true" axis="1 0 0" range="-1.8 1.8" solreflimit=".08 1" damping="5e-4" name="cart"/>
      <geom type="box" size="0.2 0.15 0.1" mass="1"/>
      <body>
        <joint type="hinge" axis="0 1 0" damping="2e-6"/>
        <geom type="capsule" fromto="0 0 0 0 0 1" size="0.045" mass=".1"/>
      </body>
    </body>
  </worldbody>
  <actuator> <motor joint="cart" gear="10" ctrllimited="true" ctrlrange="-1 1"/> </actuator>
</mujoco>
"""
"""What the suite's cartpole.xml says of bodies and joints."""
REPEAT, STEP = 4, 0.01
"""For how many steps of the suite an action is held, and how long they are."""
INERTIA = 0.0344245927672956
"""Of the pole, a capsule, about its hinge, as MuJoCo has it."""


class DMCartPole(System):
    """States are place, cosine and sine of the pole's angle (upright is 0), speed and turn.

    People push as the task asks to some degree, else towards the middle, and always at random besides.
    """

    box = [(-2.2, 2.2), (-1.1, 1.1), (-1.1, 1.1), (-6.0, 6.0), (-14.0, 14.0)]  # noqa: RUF012
    action_box = [(-1.0, 1.0)]  # noqa: RUF012
    low, high, steps, recorded, ends = 0.0, 1.0 * REPEAT, 250, 100, False

    @property
    def model(self) -> WorldModel:
        return WorldModel(degree=2, circles=((1, 2),))

    @cached_property
    def compiled(self) -> MjModel:
        return MjModel.from_xml_string(XML)

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        towards_middle = -states[:, 0] - 0.5 * states[:, 3]
        skilled = np.where(rng.random(len(states)) < people[:, 0], self.skilled(states), towards_middle)
        return np.clip(skilled + rng.uniform(-1, 1, len(states)), -1, 1)[:, None]

    def skilled(self, states: Array) -> Array:
        raise NotImplementedError

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        place, cosine, sine, speed, turn = states.T
        physical = np.stack([place, np.arctan2(sine, cosine), speed, turn], axis=1)
        control = np.clip(actions[:, 0], -1, 1)
        found = held(physical, control)
        # Where the slider may end it is for MuJoCo to say what happens.
        if (near := (np.abs(found[..., 0]) > 1.75).any(axis=1)).any():
            timed = np.insert(physical[near], 0, 0.0, axis=1)
            controls = np.repeat(control[near, None, None], REPEAT, axis=1)
            exact, _ = rollout.rollout(self.compiled, MjData(self.compiled), timed, controls)
            found[near] = np.asarray(exact)[..., 1:]
        place, angle, speed, turn = np.moveaxis(found, -1, 0)
        seen = np.stack([place, np.cos(angle), np.sin(angle), speed, turn], axis=-1)
        return Outcome(seen[:, -1], reward(seen, control[:, None]).sum(axis=1), np.zeros(len(states), bool))


def held(states: Array, control: Array) -> Array:
    """Place, angle, speed and turn after each step for which an action is held, by Runge and Kutta's rule."""
    found = []
    for _ in range(REPEAT):
        k1 = slope(states, control)
        k2 = slope(states + STEP / 2 * k1, control)
        k3 = slope(states + STEP / 2 * k2, control)
        k4 = slope(states + STEP * k3, control)
        states = states + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        found.append(states)
    return np.stack(found, axis=1)


def slope(states: Array, control: Array) -> Array:
    """Lagrange's equations of a cart of mass 1 and a pole of mass 0.1, whose middle is 0.5 from the hinge."""
    _, angle, speed, turn = states.T
    sine, cosine = np.sin(angle), np.cos(angle)
    pull = 10 * control - 5e-4 * speed + 0.05 * turn**2 * sine
    tip = 9.81 * 0.05 * sine - 2e-6 * turn
    spread = 1.1 * INERTIA - (0.05 * cosine) ** 2
    quicker = (INERTIA * pull - 0.05 * cosine * tip) / spread
    faster = (1.1 * tip - 0.05 * cosine * pull) / spread
    return np.stack([speed, turn, quicker, faster], axis=1)


def reward(states: Array, control: Array) -> Array:
    """The suite's smooth reward of a step, in [0, 1]: its Gaussian tolerances are 0.1 at their margin."""
    upright = (1 + states[..., 1]) / 2
    centred = (1 + 0.1 ** (states[..., 0] / 2) ** 2) / 2
    small = (4 + np.maximum(0.0, 1 - control**2)) / 5
    slow = (1 + 0.1 ** (states[..., 4] / 5) ** 2) / 2
    return upright * centred * small * slow


def reward_of_step(states: Array, actions: Array, after: Array) -> Array:
    return REPEAT * reward(after, actions[..., 0])


class Balance(DMCartPole):
    name, recorded = "cartpole-balance", 50

    def start(self, rng: Rng, people: Array) -> Array:
        place, angle = rng.uniform([-0.1, -0.034], [0.1, 0.034], (len(people), 2)).T
        return np.column_stack([place, np.cos(angle), np.sin(angle), 0.01 * rng.standard_normal((len(people), 2))])

    def skilled(self, states: Array) -> Array:
        """Where the pole falls to, and so that the cart comes back."""
        return 0.1 * states[:, 0] + 0.25 * states[:, 3] + 3.5 * states[:, 2] + 0.9 * states[:, 4]


class SwingUp(DMCartPole):
    name, ahead = "cartpole-swingup", 30

    @property
    def model(self) -> WorldModel:
        """The published reward is declared: polynomials of it mislead who looks ahead to where few people were."""
        return WorldModel(degree=2, circles=((1, 2),), reward=reward_of_step)

    def start(self, rng: Rng, people: Array) -> Array:
        place, angle, speed, turn = 0.01 * rng.standard_normal((4, len(people)))
        return np.stack([place, -np.cos(angle), -np.sin(angle), speed, turn], axis=1)

    def skilled(self, states: Array) -> Array:
        """So that the pole swings as wide as to the top: its energy is turn^2/6 + g cosine/2, for mass and length 1."""
        wider = 9.81 / 2 * (1 - states[:, 1]) - states[:, 4] ** 2 / 6
        return -np.sign(states[:, 4] * states[:, 1]) * np.sign(wider) - states[:, 0] - 0.5 * states[:, 3]
