"""The page at `/`, in a real browser, against a real server."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Visitor, chromium, serving_here
from kinds import ITEMS, STATES
from serving import moving

from quietq import Box, Budget, Certificate, Exponential, GaussianProcessMechanism, people
from quietq.publishing import publish
from quietq.publishing.server.application import PAGE
from quietq.released import PrivateNetwork, load, open_release

BUDGET = Budget(0.9, 1e-4)
TOKEN = "a-token-of-many-letters"
HOSTILE_NAME = "<img src=x onerror=document.title='bad'>.qq"
HOSTILE_TEXT = "<script>document.title='bad'</script><img src=x onerror=document.title='bad'>"


def agent_of(box: Box, certificate, actions: int) -> PrivateNetwork:
    weights = np.random.default_rng(5).normal(size=(1, actions, 5**box.dimension))
    return PrivateNetwork("splines", 5, (weights,), (), "values", box, certificate).issued()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """A certified agent of one coordinate and of two, a hostile one, and one that is not private."""
    folder = tmp_path_factory.mktemp("releases")
    line = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), BUDGET, levels=5).apply(lambda s: s)
    parts = Exponential((4.0, 2.0), summed=True)
    plane = GaussianProcessMechanism(parts, 0.02, BUDGET, domain=[(0, 1), (2, 5)], levels=4).apply([lambda s: s] * 2)
    simulated = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), BUDGET, levels=5).simulate(np.sin, 7)
    hostile = Certificate.from_dict({**line.certificate.to_dict(), "remarks": [HOSTILE_TEXT]})
    made = {
        "agent.qq": agent_of(line.box, line.certificate, 2),
        "plane.qq": agent_of(plane.box, plane.certificate, 3),
        HOSTILE_NAME: agent_of(line.box, hostile, 2),
        "moving.qq": moving(plane.box),
    }
    for name, thing in made.items():
        publish(thing, folder / name)
    publish(simulated, folder / "simulated.qq", not_private=True)
    return {name: folder / name for name in (*made, "simulated.qq")}


@pytest.fixture(scope="module")
def url(files, kinds) -> Iterator[str]:
    with serving_here(*files.values(), *kinds.values()) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(browser, url) -> Visitor:
    return Visitor(browser.new_page(), url)


@pytest.fixture
def visit(browser, url, shared) -> Iterator[Callable[..., Visitor]]:
    """Opens the page, with options in a context of its own; whatever is done, it asks nobody else and has no error."""
    visitors: list[Visitor] = []

    def new(address: str = url, **options: object) -> Visitor:
        alone = options or address != url
        visitors.append(Visitor(browser.new_page(**options), address) if alone else shared)
        return visitors[-1]

    yield new
    for visitor in visitors:
        visitor.behaved()
        if visitor is not shared:
            visitor.page.close()


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)]


def test_all_scripts_of_the_page_are_used_and_none_writes_markup():
    used = ["page.js"]
    for name in used:
        script = (PAGE / name).read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)
        found = re.findall(r'^import .* from "\./(.*)";$', script, re.MULTILINE)
        assert len(found) == script.count("import ")
        used += [each for each in found if each not in used]
    assert {file.name for file in PAGE.iterdir()} == {*used, "index.html", "page.css"}


def test_a_typed_state_is_answered_with_the_digits_of_the_release(visit, files):
    page = visit().open("agent.qq")
    release = open_release(files["agent.qq"])
    for state, ask in (("0.3", lambda: page.get_by_role("button", name="Ask").click()),
                       ("0.71", lambda: page.keyboard.press("Enter"))):  # fmt: skip
        page.get_by_label("state, from 0 to 1").fill(state)
        ask()
        page.wait_for_selector(f"#answer p:has-text('At {state},')")
        shown = [float(text) for text in page.locator("#answer td:nth-child(2)").all_inner_texts()]
        values = release.values(np.array([[float(state)]]))
        assert shown == values[0].tolist()
        assert f"the best action is action {values.argmax()}" in page.inner_text("#answer")


def test_a_policy_whose_actions_are_numbers_shows_them(visit, files):
    page = visit().open("moving.qq")
    assert "agent, 2 values" in page.inner_text("#facts")
    assert [each for each in page.locator("#view-mode option").all_inner_texts() if "best" in each] == []
    page.get_by_role("button", name="Ask").click()
    page.wait_for_selector("#answer table")
    action = open_release(files["moving.qq"]).values(np.array([[0.5, 3.5]]))[0]
    assert page.locator("#answer th").all_inner_texts() == ["action[0]", "action[1]"]
    assert [float(text) for text in page.locator("#answer td:nth-child(2)").all_inner_texts()] == action.tolist()
    assert "nothing else private was used" in page.inner_text("#assumptions")


def test_a_state_outside_is_refused_in_words(visit):
    page = visit().open("agent.qq")
    page.fill("#state-0", "1.5")
    page.press("#state-0", "Enter")
    page.wait_for_selector("#ask-error:has-text('1.5')")
    assert "must lie within [0, 1]" in page.inner_text("#ask-error")
    assert page.get_attribute("#state-0", "aria-invalid") == "true"
    page.fill("#state-0", "")
    page.press("#state-0", "Enter")
    page.wait_for_selector("#ask-error:has-text('state must be a number')")
    page.fill("#state-0", "0.5")
    page.press("#state-0", "Enter")
    page.wait_for_selector("#answer table")
    assert page.inner_text("#ask-error") == ""
    assert page.get_attribute("#state-0", "aria-invalid") == "false"


def test_pointer_and_keys_read_values(visit, files):
    page = visit().open("agent.qq")
    release = open_release(files["agent.qq"])
    area = page.locator("#plot svg").bounding_box()
    readings = []
    for share in (0.3, 0.6):
        page.mouse.move(area["x"] + share * area["width"], area["y"] + area["height"] / 3)
        readings.append(page.inner_text("#readout"))
    assert readings[0] != readings[1]
    page.focus("#plot")
    page.keyboard.press("Home")
    assert page.inner_text("#readout").startswith("state 0 ")
    for key, state in (("ArrowRight", 0.002), ("PageUp", 0.052), ("ArrowLeft", 0.05), ("End", 1.0)):
        page.keyboard.press(key)
        reading = page.inner_text("#readout")
        values = release.values(np.array([[state]]))[0]
        named = f"state {state:g} action 0: {values[0]:.6g} action 1: {values[1]:.6g} best: action {values.argmax()}"
        assert numbers(reading) == pytest.approx(numbers(named), rel=1e-5)
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer p:has-text('At 1,')")


def test_lines_and_regions_are_those_of_the_policy(visit, files):
    page = visit().open("agent.qq")
    assert page.locator("#plot path.line").count() == 2
    actions = open_release(files["agent.qq"]).policy(np.linspace(0, 1, 501)[:, None])
    changes = int((np.diff(actions) != 0).sum())
    assert page.locator("#plot rect.region").count() == changes + 1
    page.get_by_text("As a table").click()
    assert page.locator("#table tbody tr").count() == 11
    best = [row.split("action ")[-1] for row in page.locator("#table tbody tr").all_inner_texts()]
    assert [int(action) for action in best] == actions[::50].tolist()


def test_two_coordinates_are_a_map_or_lines(visit, files):
    page = visit().open("plane.qq")
    assert page.locator("#plot image").count() == 1
    page.focus("#plot")
    page.keyboard.press("Home")
    for _ in range(70):
        page.keyboard.press("ArrowDown")
    corner = numbers(page.inner_text("#readout"))
    state = [1 / 128, 2 + 3 / 128]
    values = open_release(files["plane.qq"]).values(np.array([state]))[0]
    assert corner[1::2][:2] == pytest.approx(state, rel=1e-5)
    assert corner[5:10:2] == pytest.approx(values.tolist(), rel=1e-5)
    assert corner[10] == values.argmax()
    page.select_option("#view-mode", "lines")
    page.wait_for_selector("#plot path.line")
    assert page.locator("#plot path.line").count() == 3
    before = page.get_attribute("#plot path.line", "d")
    page.fill("#view-rest-1", "100")
    page.wait_for_function(
        "(before) => document.querySelector('#plot path.line').getAttribute('d') !== before", arg=before
    )
    page.fill("#state-0", "0.25")
    page.fill("#state-1", "4.5")
    page.press("#state-1", "Enter")
    page.wait_for_selector("#answer table")
    shown = [float(text) for text in page.locator("#answer td:nth-child(2)").all_inner_texts()]
    assert shown == open_release(files["plane.qq"]).values(np.array([[0.25, 4.5]]))[0].tolist()


def test_the_certificate_is_told_with_assumptions(visit, files):
    page = visit().open("agent.qq")
    certificate = open_release(files["agent.qq"]).certificate
    assert page.inner_text("#badge") == "certified (ε = 0.9, δ = 0.0001)"
    assert not page.is_visible("#not-private")
    assert page.is_visible("#signed")
    assert page.inner_text("#signed") == "nobody signed this"
    assert "any one of 50 people" in page.inner_text("#plain")
    assert "at most 55.7 of 100" in page.inner_text("#plain")
    rows = page.locator("#assumptions tr").all_inner_texts()
    assert [row.split("\t") for row in rows] == [
        [each.text, mark]
        for mark in ("trusted", "enforced")
        for each in certificate.assumptions
        if each.enforced == (mark == "enforced")
    ]
    assert page.text_content("#text") == str(certificate)
    answer = page.request.get(page.evaluate("document.getElementById('raw').href"))
    assert answer.json()["certificate"] == certificate.to_dict()


def test_what_is_not_private_says_so_all_over(visit):
    page = visit().open("simulated.qq")
    assert page.inner_text("#not-private").startswith("NOT PRIVATE")
    assert page.inner_text("#badge") == "NOT PRIVATE"
    assert page.title().startswith("NOT PRIVATE")
    assert page.inner_text("#plain").startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in page.get_attribute("#plot", "aria-label")
    page.press("#state-0", "Enter")
    page.wait_for_selector("#answer table")
    assert "NOT PRIVATE" in page.inner_text("#answer")
    page.mouse.wheel(0, 5000)
    page.wait_for_function("scrollY > 200")
    assert page.evaluate("document.getElementById('not-private').getBoundingClientRect().top") >= 0
    page.get_by_role("button", name="agent.qq").click()
    page.wait_for_selector("#badge:has-text('certified')")
    assert not page.is_visible("#not-private")


def test_hostile_names_and_texts_stay_text(visit):
    page = visit().open("onerror")
    assert page.inner_text("#name") == HOSTILE_NAME
    assert HOSTILE_TEXT in page.inner_text("#remarks")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    assert page.title() == f"{HOSTILE_NAME} – quietq"


def test_the_token_is_asked_for_and_not_kept(visit, files):
    with serving_here(files["agent.qq"], token=TOKEN) as address:
        page = visit(address).page
        page.goto(f"{address}/")
        for given, told in (("two words", "no spaces"), ("a-wrong-token-of-letters", "access token")):
            page.get_by_label("Access token").fill(given)
            page.keyboard.press("Enter")
            page.wait_for_selector(f"#token-error:has-text('{told}')")
        assert not page.is_visible("#content")
        page.get_by_label("Access token").fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        page.wait_for_selector("#plain p")
        assert not page.is_visible("#token-form")
        with page.expect_download() as saved:  # a plain link would carry no token
            page.click("#raw")
        assert "certificate" in json.loads(Path(saved.value.path()).read_text())
        assert TOKEN not in page.evaluate(
            "JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])"
        )
        page.reload()
        page.wait_for_selector("#token-form:visible")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1600), ("dark", 360)])
def test_it_fits_and_follows_the_colour_scheme(visit, tmp_path, scheme, width):
    page = visit(viewport={"width": width, "height": 800}, color_scheme=scheme).open("plane.qq")
    for summary in page.locator("summary:visible").all():
        summary.click()
    for mode in ("best", "0", "lines"):
        page.select_option("#view-mode", mode)
        page.wait_for_selector("#plot path.line" if mode == "lines" else "#plot image")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(numbers(ground)) < 200) == (scheme == "dark")
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 20_000


def test_five_coordinates_are_slices_with_the_digits_of_the_release(visit, kinds):
    page = visit().open("five.qq")
    release = open_release(kinds["five"])
    assert page.locator("#plot image").count() == 1
    assert page.locator("#view input[type=number]").count() == page.locator("#view input[type=range]").count() == 3
    page.select_option("#view-across", "2")
    page.select_option("#view-up", "4")
    for axis, number in ((0, "0.123456789"), (1, "0.9"), (3, "0.25")):
        before = page.get_attribute("#plot image", "href")
        page.fill(f"#view-exact-{axis}", number)
        page.press(f"#view-exact-{axis}", "Enter")
        page.wait_for_function(  # a map is asked about as it is shown
            "(before) => document.querySelector('#plot image').getAttribute('href') !== before", arg=before
        )
    page.focus("#plot")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer table")
    state = [float(page.input_value(f"#state-{axis}")) for axis in range(5)]
    assert (state[0], state[1], state[3]) == (0.123456789, 0.9, 0.25)
    assert state[2] == 1 / 128
    shown = [float(text) for text in page.locator("#answer td:nth-child(2)").all_inner_texts()]
    assert shown == release.values(np.array([state]))[0].tolist()
    page.fill("#view-exact-0", "7")
    page.press("#view-exact-0", "Enter")
    assert page.get_attribute("#view-exact-0", "aria-invalid") == "true"
    page.select_option("#view-mode", "lines")
    page.wait_for_selector("#plot path.line")
    assert page.locator("#view input[type=range]").count() == 4


def test_a_catalogue_is_a_table_of_its_items(visit, kinds):
    page = visit().open("catalogue.qq", shown="#table td")
    values = open_release(kinds["catalogue"]).values(np.arange(len(ITEMS), dtype=float)[:, None])[:, 0]
    assert page.locator("#table th[scope=row]").all_inner_texts() == list(ITEMS)  # names are text, never markup
    shown = [float(text) for text in page.locator("#table td").all_inner_texts()]
    assert shown == pytest.approx(values.tolist(), rel=1e-5)
    assert not page.is_visible("#plot")
    assert not page.is_visible("#view")
    for typed, place in (("cherry & <b>cream</b>", 2), ("banana", 1), ("7", 7)):
        page.get_by_label("item, by its name or its place from 0 to 59").fill(typed)
        page.get_by_role("button", name="Ask").click()
        page.wait_for_selector(f"#answer p:has-text('At {ITEMS[place]} (place {place}):')")
        assert float(page.inner_text("#answer td:nth-child(2)")) == values[place]
    page.fill("#state-0", "durian")
    page.press("#state-0", "Enter")
    page.wait_for_selector("#ask-error:has-text('no item of that name')")


def test_evaluated_policies_are_a_table_and_their_intervals_are_told(visit, kinds):
    page = visit().open("evaluated.qq", shown="#table td")
    released: Any = load(kinds["evaluated"])
    shown = {row.split("\t")[0]: numbers(row) for row in page.locator("#table tbody tr").all_inner_texts()}
    assert shown == {name: [pytest.approx(one.value, rel=1e-5)] for name, one in released.values.items()}
    assert not page.is_visible("#asking")
    for name, one in released.values.items():
        assert f"{name} {one.value:.4g} (from {one.low:.4g} to {one.high:.4g})" in page.inner_text("#plain")


def test_a_world_is_maps_of_what_a_step_changes(visit, kinds):
    page = visit().open("cart.qq")
    assert "What a step does" in page.inner_text("#values-title")
    choices = page.locator("#view-mode option").all_text_contents()
    assert choices[0] == "change of place after left, as a map"
    assert len(choices) == 9
    named = [*STATES[:3], "coordinate 3 (0)"]
    assert page.locator("#view-across option").all_text_contents() == named
    assert page.locator("#view i, #view b, #asking i").count() == 0  # names are text, never markup
    page.get_by_text("As a table").click()
    first, *cells = [float(text) for text in page.locator("#table tbody tr").nth(0).locator("th, td").all_inner_texts()]
    across = [float(text) for text in page.locator("#table th[scope=col]").all_inner_texts()[1:]]
    states = np.array([[x, first, 0.0, 0.0] for x in across])
    changes = open_release(kinds["cart"]).values(states)[:, 0] - states[:, 0]
    assert cells == pytest.approx(changes.tolist(), abs=1e-5)


def test_a_policy_of_four_coordinates_says_what_it_does_where(visit, kinds):
    page = visit().open("driver.qq")
    assert "how probable each action is" in page.inner_text("#values-title")
    assert "most probable" in page.inner_text("#legend")
    page.fill("#state-1", "1.5")
    page.press("#state-1", "Enter")
    page.wait_for_selector("#answer table")
    values = open_release(kinds["driver"]).values(np.array([[0.0, 1.5, 0.0, 0.0]]))[0]
    assert f"the most probable action is action {values.argmax()}" in page.inner_text("#answer")
    assert [float(text) for text in page.locator("#answer td:nth-child(2)").all_inner_texts()] == values.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize("name", ["cart", "pushed", "driver", "catalogue", "evaluated", "five"])
def test_every_view_fits(visit, name, scheme, width):
    visitor = visit(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = visitor.open(f"{name}.qq", shown="#table td" if name in ("catalogue", "evaluated") else "#plot svg")
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    if page.is_visible("#asking"):
        page.get_by_role("button", name="Ask").click()
        page.wait_for_selector("#answer table")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for choice in page.locator("#view-mode option").all() if page.is_visible("#view") else []:
        page.select_option("#view-mode", choice.get_attribute("value"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_policies_of_stable_baselines(visit, tmp_path, kinds):
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    from quietq.worlds.world_vec_env import WorldVecEnv

    world: Any = load(kinds["cart"])
    files = [kinds["cart"]]
    for kind in ("PPO", "DQN"):
        options = {"n_steps": 16} if kind == "PPO" else {"learning_starts": 50}
        model = getattr(stable_baselines3, kind)("MlpPolicy", WorldVecEnv(world, 4, steps=20), **options).learn(200)
        publish(model, tmp_path / f"{kind}.qq", trained_on=world)
        files.append(tmp_path / f"{kind}.qq")
    with serving_here(*files) as address:
        visitor = visit(address)
        for kind in ("PPO", "DQN"):
            page = visitor.open(f"{kind}.qq")
            page.get_by_role("button", name="Ask").click()
            page.wait_for_selector("#answer table")
            action = open_release(tmp_path / f"{kind}.qq").policy(np.zeros((1, 4)))[0]
            assert f"action is {world.spaces.action_names[action]}" in page.inner_text("#answer")
