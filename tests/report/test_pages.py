"""Pages stand alone, escape what they are given, and say what they may say."""

import html.parser
import math
from statistics import NormalDist

import pytest
from msgspec.structs import replace

from quietq.audit import audit_mechanism
from quietq.cli.report.page import listing, paragraph, picture, table, write_page, write_release_report
from quietq.mechanisms.candidates import privatise
from quietq.privacy import Budget, Certificate, LipschitzBall
from quietq.privacy.errors import InvalidInput
from quietq.privacy.explain import guess

NASTY = "<script>alert('x')</script> & \"quoted\""


class Reader(html.parser.HTMLParser):
    """What a browser would do with it: elements that are opened and closed, and what is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href") and value]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text())
    assert reader.open == []
    return reader


@pytest.fixture
def drawn(tmp_path) -> str:
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG and so on")
    return picture(path, f"caption {NASTY}", f"alternative {NASTY}")


def test_a_page_stands_alone_and_escapes_everything(tmp_path, drawn):
    parts = [paragraph(NASTY), drawn, table((NASTY, "n"), [(NASTY, 1234), (None, 0.123456)]), listing(NASTY)]
    page = read(write_page(tmp_path / "page.html", NASTY, NASTY, {NASTY: parts, "b": []}))
    assert "script" not in page.tags
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in page.fetched)
    assert page.text.count("alert('x')") >= 8
    assert "1,234" in page.text
    assert "0.123" in page.text


def certificate(budget: Budget, noise: str) -> Certificate:
    people = LipschitzBall(radius=1 / 944, lipschitz=2 / 944, people=944)
    return privatise(lambda x: 0 * x, budget, relation=people, noise=noise).certificate  # type: ignore[arg-type]


def report(path, stated: Certificate, drawn: str):
    finding = audit_mechanism(1.0, 2000)
    return write_release_report(
        path, title="t", lead="l", certificate=stated, range_of_one=2.0, finding=finding, pictures=[drawn]
    )


def test_a_release_report_says_what_is_promised_and_not_how_well_it_does(tmp_path, drawn):
    page = read(report(tmp_path / "report.html", certificate(Budget(0.5, 1e-5), "path"), drawn))
    for words in ("any one of 944 people", "epsilon = 0.5", "in at most 52.9", "0.9% of the range", "not on this page"):
        assert words in page.text
    assert "NOT PRIVATE" not in page.text


def test_only_what_is_certified_has_a_release_report(tmp_path, drawn):
    with pytest.raises(InvalidInput, match="for a certified release"):
        report(tmp_path / "report.html", Certificate(method="m", standing="none"), drawn)


def test_a_guess_is_right_as_often_as_the_promise_allows():
    pure = certificate(Budget(math.log(3), 0), "k-norm")
    assert guess(pure) == pytest.approx(0.75)  # randomised response attains it
    claimed = replace(pure, standing="claimed", budget=Budget(math.log(3), 0.1), remarks=("Nobody proved it.",))
    assert guess(claimed) == pytest.approx(0.775)
    budget = Budget(0.9, 1e-4)
    assert guess(certificate(budget, "path")) == pytest.approx(NormalDist().cdf(budget.mu / 2))


def test_a_table_of_many_columns_names_each_value(tmp_path):
    """So that a narrow page can show a row as a block; two columns stay side by side."""
    many, few = table(("a", "b's", "c"), [(1, "x", None)]), table(("a", "b"), [(1, "x")])
    text = write_page(tmp_path / "page.html", "t", "l", {"s": [many, few]}).read_text()
    assert text.count("<table class='many'>") == text.count("<table>") == 1
    assert "<td data-heading='b&#x27;s'>x</td>" in text
    with pytest.raises(ValueError, match="longer"):
        table(("a", "b"), [(1,)])


def test_pictures_and_pages_have_one_family():
    from quietq.cli.report.page import STYLE
    from quietq.cli.report.pictures import FAMILY

    families = [line for line in STYLE.read_text().splitlines() if "font:" in line]
    assert len(families) == 2  # words, and what is read letter by letter
    assert all(f'"{FAMILY}' in line for line in families)


def test_a_picture_has_that_family_whatever_matplotlib_is_set_to(tmp_path):
    import matplotlib as mpl

    from quietq.cli.report.pictures import FAMILY, new_figure, plain, save

    with mpl.rc_context({"font.family": ["serif"], "svg.fonttype": "none"}):
        figure = new_figure()
        panel = figure.subplots()
        panel.plot([0, 1], [0, 1], label="line")
        panel.legend()
        plain(panel, "across", "up")
        save(figure, tmp_path / "picture.svg", "heading", "below")
    text = (tmp_path / "picture.svg").read_text()
    assert text.count(f"'{FAMILY}'") == text.count("<text") > 8
