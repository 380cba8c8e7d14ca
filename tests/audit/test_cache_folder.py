"""Where outcomes of audits are kept, and that nothing fails for want of a place."""

import pytest

pytest.importorskip("jax")

from quietq.paper.attacks.on_trainings import cache_folder


@pytest.fixture(autouse=True)
def _unset(monkeypatch):
    for name in ("QUIETQ_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "below"), [("QUIETQ_CACHE", ""), ("XDG_CACHE_HOME", "quietq"), ("HOME", ".cache/quietq")]
)
def test_the_nearest_is_taken_and_made(monkeypatch, tmp_path, name, below):
    monkeypatch.setenv(name, str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here" / below
    assert (tmp_path / "here" / below).is_dir()


@pytest.mark.parametrize("name", ["XDG_CACHE_HOME", "HOME"])
def test_a_user_without_a_folder_has_no_cache(monkeypatch, name):
    monkeypatch.setenv(name, "/dev/null")  # no folder can be made in it, whoever asks
    assert cache_folder() is None


def test_nothing_is_kept_if_nothing_is_to_be(monkeypatch):
    monkeypatch.setenv("QUIETQ_CACHE", "")
    assert cache_folder() is None


def test_a_place_that_was_asked_for_and_cannot_be_had_is_told(monkeypatch):
    monkeypatch.setenv("QUIETQ_CACHE", "/dev/null")
    with pytest.warns(UserWarning, match="QUIETQ_CACHE must name a folder .*, not '/dev/null': nothing is kept"):
        assert cache_folder() is None
