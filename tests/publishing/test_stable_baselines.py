"""Models of Stable-Baselines3 leave as their policies, act as they did, and carry the certificate of their reward."""

import json
import os
import subprocess
import sys
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
import polars as pl
import pytest
from gymnasium.spaces import Box as Space, Discrete, MultiDiscrete
from releases import edit, make, record_of

import quietq as qq
from quietq.privacy import Code
from quietq.publishing import publish
from quietq.released import PrivatePolicy, open_release

sb3 = pytest.importorskip("stable_baselines3")
import torch  # noqa: E402

from quietq.publishing.stable_baselines import policy_of  # noqa: E402

torch.set_num_threads(1)
REWARD: Any = make("table")  # on [-1, 3]
SMALL = {"net_arch": [8, 6]}


class Place(gymnasium.Env):
    """Two numbers to look at, of which the reward takes the first; any actions."""

    def __init__(self, actions: gymnasium.Space, low: float = -1.0, high: float = 3.0, shape: tuple = (2,)) -> None:
        self.observation_space, self.action_space = Space(low, high, shape), actions

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 3, size=self.observation_space.shape).astype(np.float32), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        return self.reset()[0], 0.0, False, bool(self.np_random.random() < 0.1), {}


NUMBERS = Space(np.array([-1.0, 0.0], np.float32), np.array([1.0, 5.0], np.float32))


def place(actions: gymnasium.Space = NUMBERS, reward: Any = REWARD, **options: Any) -> Any:
    return qq.PrivateReward(Place(actions, **options), reward, state=0)


def model_of(name: str, env: Any, shaken: bool = True, **options: Any) -> Any:
    options = {"seed": 0, "device": "cpu"} | options | {"policy_kwargs": dict(options.get("policy_kwargs", SMALL))}
    model = getattr(sb3, name)("MlpPolicy", env, **options)
    for number in model.policy.parameters() if shaken else ():  # fresh networks hardly differ from 0
        number.data += 0.5 * torch.randn(number.shape, generator=torch.Generator().manual_seed(1))
    return model


def observations(count: int = 200) -> np.ndarray:
    return np.random.default_rng(2).uniform(-1, 3, size=(count, 2)).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "actions", "options"),
    [
        ("PPO", Discrete(3), {}),
        ("A2C", Discrete(3), {"policy_kwargs": {"net_arch": [], "share_features_extractor": False}}),
        ("DQN", Discrete(3), {}),
        ("PPO", NUMBERS, {"policy_kwargs": SMALL | {"activation_fn": torch.nn.ReLU}}),
        ("PPO", NUMBERS, {"use_sde": True, "policy_kwargs": SMALL | {"squash_output": True}}),
        ("A2C", NUMBERS, {"policy_kwargs": SMALL}),
        ("SAC", NUMBERS, {}),
        ("TD3", NUMBERS, {}),
        ("DDPG", NUMBERS, {}),
    ],
)
def test_acts_as_the_model_does(tmp_path, name, actions, options):
    model = model_of(name, place(actions), **options)
    written = publish(model, tmp_path / "policy.qq", trained_on=REWARD)
    release = open_release(tmp_path / "policy.qq")
    policy, seen = release.function, observations()
    assert isinstance(policy, PrivatePolicy)
    assert (release.hash, release.what, release.privacy) == (written, "agent", "certified")
    expected, _ = model.predict(seen, deterministic=True)
    for found in (policy.predict(seen)[0], release.policy(seen.astype(np.float64)).astype(expected.dtype)):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert np.abs(found - expected).max() < 1e-4  # whole numbers are the same
    one, state = policy.predict(seen[0])
    assert state is None
    assert one.shape == expected[0].shape
    assert len(np.unique(expected)) > 1
    assert policy.choices == (3 if isinstance(actions, Discrete) else None)
    assert b"pickle" not in (tmp_path / "policy.qq").read_bytes()


@pytest.mark.filterwarnings("ignore:.*are mostly noise")
def test_a_model_of_a_simulated_reward_is_checked_by_simulation_alone():
    seen = {name: [0.0, 1.0] for name in ("x", "y", "good")}
    rows = pl.DataFrame({"who": ["a", "b"], "step": [0, 0], "act": [0, 1], **seen})
    people = qq.Sessions.read(
        rows, person="who", step="step", state=["x", "y"], next_state=[], action="act", actions=[0, 1, 2],
        reward="good", box=[(-1, 3)] * 2, people=2,
    )  # fmt: skip
    drawn = make("table", simulate=0)
    model, account = model_of("PPO", place(Discrete(3), drawn)), qq.Accountant(qq.Budget(1.0, 1e-5))
    with pytest.raises(qq.InvalidInput, match="that is not private cannot be checked"):
        qq.check(model, people, qq.Budget(1.0, 1e-5), trained_on=drawn, account=account)
    assert account.spending.spent_mu == 0
    assert qq.check(model, people, qq.Budget(1.0, 1e-5), trained_on=drawn, simulate=0).share is None


def test_a_policy_of_probabilities_draws_and_others_say_that_they_do_not():
    model = model_of("PPO", place(Discrete(3)))
    policy, where = policy_of(model, REWARD), observations(1)[0]
    drawn = np.bincount(policy.predict(np.tile(where, (20_000, 1)), deterministic=False)[0], minlength=3)
    probabilities = model.policy.get_distribution(torch.as_tensor(where[None])).distribution.probs[0].detach().numpy()
    assert np.abs(drawn / 20_000 - probabilities).max() < 5 * 0.5 / 20_000**0.5
    assert (np.sort(probabilities)[:2] > 0.01).all()
    for name, actions in (("DQN", Discrete(3)), ("SAC", NUMBERS)):
        with pytest.raises(qq.InvalidInput, match="deterministic must be True"):
            policy_of(model_of(name, place(actions)), REWARD).predict(where, deterministic=False)


def test_a_trained_model_carries_the_certificate_of_its_reward(tmp_path, quietq):
    env = place(Discrete(2))
    model = model_of("PPO", env, shaken=False, n_steps=32, batch_size=32, n_epochs=1).learn(32)
    for trained_on in (REWARD, env):
        publish(model, tmp_path / "policy.qq", trained_on=trained_on)
        certificate = qq.load(tmp_path / "policy.qq").certificate
        stated = trained_on.certificate.to_dict()
        trusted = [*stated["assumptions"], Code.TRAINED().to_dict()]
        assert certificate.to_dict() == {**stated, "assumptions": trusted}
    code, told, _ = quietq("verify policy.qq")
    assert code == 0
    assert "PrivatePolicy(tanh 2-8-6-2, log-probabilities" in told
    assert f"- trusted: {Code.TRAINED().text}" in told
    assert quietq("publish policy.qq --out copy.qq")[0] == 0
    assert (tmp_path / "copy.qq").read_bytes() == (tmp_path / "policy.qq").read_bytes()


@pytest.mark.parametrize("clip", [1.0, np.inf])
def test_observations_are_normalised_as_they_were(tmp_path, clip):
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    env = VecNormalize(DummyVecEnv([place]), clip_obs=clip)
    model = model_of("SAC", env, shaken=False, learning_starts=20).learn(30)
    publish(model, tmp_path / "policy.qq", trained_on=REWARD)
    policy: Any = qq.load(tmp_path / "policy.qq")
    seen = observations()
    expected, _ = model.predict(env.normalize_obs(seen), deterministic=True)
    assert np.abs(policy.predict(seen)[0] - expected).max() < 1e-4


def test_an_environments_own_reward_made_private_as_it_goes_covers_a_policy_too(tmp_path):
    env = qq.PrivateReward.of(Place(Discrete(2)), qq.SupBall(0.01), qq.Budget(0.9, 1e-4), rewards=50)
    model = model_of("DQN", env, shaken=False, learning_starts=10).learn(20)
    publish(model, tmp_path / "policy.qq", trained_on=env)
    certificate = qq.load(tmp_path / "policy.qq").certificate
    assert certificate is not None
    assert (certificate.standing, certificate.assumptions[-1]) == ("certified", Code.TRAINED())


def test_what_is_not_certified_is_refused_or_marked(tmp_path):
    simulated = make("table", simulate=1)
    model = model_of("DQN", place(Discrete(2), simulated))
    with pytest.raises(qq.InvalidInput, match="Only a certified release can be published"):
        publish(model, tmp_path / "policy.qq", trained_on=simulated)
    assert not os.listdir(tmp_path)
    publish(model, tmp_path / "policy.qq", trained_on=simulated, not_private=True)
    assert repr(qq.load(tmp_path / "policy.qq")).startswith("NOT PRIVATE: PrivatePolicy(")


def test_what_it_was_trained_on_must_be_said(tmp_path):
    model = model_of("DQN", place(Discrete(2)))
    for trained_on, words in (
        (None, "say with trained_on"),
        (lambda s: s, "not function"),
        (Place(Discrete(2)), "not Place"),
    ):
        with pytest.raises(qq.InvalidInput, match=words):
            publish(model, tmp_path / "policy.qq", trained_on=trained_on, not_private=True)
    with pytest.raises(qq.InvalidInput, match="for models of Stable-Baselines3"):
        publish(REWARD, tmp_path / "policy.qq", trained_on=REWARD)
    elsewhere = model_of("DQN", Place(Discrete(2)))
    with pytest.warns(qq.PrivacyWarning, match="your word alone"):
        publish(elsewhere, tmp_path / "policy.qq", trained_on=REWARD)


def test_a_model_that_cannot_tell_what_it_was_trained_on(tmp_path):
    """It was loaded without its environment, or that was closed: it is published, and there is a warning."""
    env = place(Discrete(2))
    model = model_of("DQN", env)
    publish(model, tmp_path / "policy.qq", trained_on=REWARD)
    model.save(tmp_path / "model.zip")
    publish(type(model).load(tmp_path / "model.zip", env=env), tmp_path / "policy.qq", trained_on=REWARD)
    with pytest.warns(qq.PrivacyWarning, match=r"no environment, .*loaded without env=.* nor whether .* normalised"):
        publish(type(model).load(tmp_path / "model.zip"), tmp_path / "loaded.qq", trained_on=REWARD)
    with (
        mock.patch.object(model.get_env(), "get_attr", side_effect=EOFError),  # as of a process that has ended
        pytest.warns(qq.PrivacyWarning, match="may be closed, does not say that it is one of trained_on"),
    ):
        publish(model, tmp_path / "closed.qq", trained_on=REWARD)
    certificates = [qq.load(tmp_path / f"{name}.qq").certificate for name in ("policy", "loaded", "closed")]
    assert certificates[0] == certificates[1] == certificates[2]


def test_observations_without_bounds_need_a_box(tmp_path):
    model = model_of("DQN", place(Discrete(2), low=-np.inf, high=np.inf))
    with pytest.raises(qq.InvalidInput, match="no bounds, or no width, in coordinate 0 and 1: give `box`"):
        publish(model, tmp_path / "policy.qq", trained_on=REWARD)
    with pytest.raises(qq.InvalidInput, match="for each of 2 coordinates"):
        publish(model, tmp_path / "policy.qq", trained_on=REWARD, box=(0, 1))
    publish(model, tmp_path / "policy.qq", trained_on=REWARD, box=[(-1, 1), (-1e6, 1e6)])
    policy: Any = qq.load(tmp_path / "policy.qq")
    assert policy.predict([0.5, 1e5])[0] == model.predict(np.array([0.5, 1e5], np.float32), deterministic=True)[0]
    assert policy.predict([1.0 + 1e-7, 0.0])[0] == policy.predict([1.0, 0.0])[0]  # as float32 may round an end
    for outside in (1.5, np.nan, np.inf):
        with pytest.raises(qq.InvalidInput, match="within"):
            policy.predict([outside, 0.0])


def test_what_cannot_be_read_is_refused_by_name(tmp_path, monkeypatch):
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.torch_layers import FlattenExtractor

    class Own(ActorCriticPolicy):
        pass

    class Doubled(FlattenExtractor):
        pass

    def refuses(model: Any, words: str) -> None:
        with pytest.raises(qq.InvalidInput, match=words):
            publish(model, tmp_path / "policy.qq", trained_on=REWARD)
        assert not os.listdir(tmp_path)

    refuses(sb3.PPO(Own, place()), r"MlpPolicy of PPO, A2C, DQN, SAC, TD3 and DDPG, not Own: train it with")
    refuses(
        model_of("PPO", place(), policy_kwargs={"features_extractor_class": Doubled}),
        "not with Doubled",
    )
    refuses(model_of("PPO", place(), policy_kwargs={"activation_fn": torch.nn.GELU}), "not a GELU there")
    refuses(model_of("SAC", place(), use_sde=True), "not a Sequential there")
    refuses(model_of("PPO", place(MultiDiscrete([2, 2]))), "Discrete from 0, or a Box of one axis, not MultiDiscrete")
    grid = qq.PrivateReward(Place(NUMBERS, shape=(2, 2)), REWARD, state=0)
    refuses(model_of("PPO", grid), "observations must be a Box of one axis")
    changed = model_of("PPO", place())
    forward = changed.policy.action_net.forward
    monkeypatch.setattr(changed.policy.action_net, "forward", lambda x: forward(x) + 1)
    refuses(changed, "acts differently from the model")
    diverged = model_of("DQN", place(Discrete(2)))
    diverged.policy.q_net.q_net[0].weight.data[0, 0] = torch.nan
    refuses(diverged, "its training diverged")


def test_a_policy_whose_certificate_trusts_nobody_for_its_training_does_not_load(tmp_path):
    path = tmp_path / "policy.qq"
    publish(make("moving policy"), path)
    stated = record_of(path)["certificate"]
    trusted = Code.TRAINED().to_dict()
    without = [one for one in stated["assumptions"] if one != trusted]
    assert len(without) == len(stated["assumptions"]) - 1
    for forged, words in (
        (without, "what it trusts training for"),
        ([*without, {**trusted, "enforced": True}], "unknown field `enforced`"),  # who vouches follows from the code
        ([*without, {"text": Code.TRAINED().text, "enforced": True}], "unknown field `text`"),
        ([*without, {**trusted, "code": "trained-on-release-enforced"}], "Invalid enum value"),
    ):
        edit(path, certificate=stated | {"assumptions": forged})
        with pytest.raises(qq.InvalidRelease, match=words):
            qq.load(path)


def test_it_loads_and_acts_without_torch_or_gymnasium(tmp_path):
    publish(make("moving policy"), tmp_path / "policy.qq")
    code = f"""
import json, sys
import quietq
print(json.dumps(quietq.load({str(tmp_path / "policy.qq")!r}).predict([0.1, 0.2])[0].tolist()))
assert not {{"torch", "gymnasium", "jax"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert len(json.loads(done.stdout)) == 3
