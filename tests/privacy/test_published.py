"""The paper's theorem by its own numbers: errata 2, 3 and 4."""

import pytest

from quietq import Budget, InvalidInput, SupBall
from quietq.paper import PublishedTheorem

AT = Budget(0.9, 5e-5)


def test_the_papers_parameters_miss_the_condition():
    check = PublishedTheorem(AT).check(sigma=0.32)
    assert not check.holds
    assert (round(check.left, 1), round(check.right)) == (4.6, 353)
    assert check.delta_path == 1
    assert any("fails" in sentence and "353" in sentence for sentence in check.failures)


def test_nor_do_they_with_the_appendix_value_of_k():
    check = PublishedTheorem(AT, bound=23).check(sigma=0.32)
    assert (check.left, round(check.right)) == (46, 131)
    assert not check.holds


@pytest.mark.parametrize(("with_square_root", "bound", "sigma"), [(False, 178, 2.35), (True, 763, 21)])
def test_smallest_k_that_would_do(with_square_root, bound, sigma):
    repaired = PublishedTheorem(AT, with_square_root=with_square_root).smallest()
    assert round(repaired.bound) == bound
    assert repaired.sigma == pytest.approx(sigma, rel=3e-3)
    check = repaired.check()
    assert check.holds
    assert check.delta_path <= 5e-5
    smaller = PublishedTheorem(AT, with_square_root=with_square_root, bound=repaired.bound * 0.999).check()
    assert smaller.delta_path > 5e-5


def test_constants_as_printed():
    theorem = PublishedTheorem(AT)
    assert theorem.v == pytest.approx(6.19e-5, rel=1e-3)  # the paper's appendix E.3
    assert theorem.sensitivity == pytest.approx((theorem.v**2 + theorem.v) * 16)


def test_certificate_is_a_claim_that_names_what_failed():
    certificate = PublishedTheorem(AT).certificate(sigma=0.32)
    assert certificate.standing == "claimed"
    assert any("2k is 4.6, the right side 353" in remark for remark in certificate.remarks)
    assert certificate.mu is None
    assert (certificate.epsilon, certificate.delta) == (0.9, 1e-4)  # as the paper has it
    assert certificate.relation == SupBall(1.0)


def test_impossible_parameters_are_refused():
    with pytest.raises(InvalidInput, match="delta must be above 0"):
        PublishedTheorem(Budget(0.9, 0))
    with pytest.raises(InvalidInput, match=r"^delta_path must be above 0"):
        PublishedTheorem(AT, delta_path=0.0)
    with pytest.raises(InvalidInput, match="batch"):
        PublishedTheorem(AT, batch=0)
    with pytest.raises(InvalidInput, match="learning_rate"):
        PublishedTheorem(AT, learning_rate=-1.0)
