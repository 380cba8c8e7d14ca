"""Prometheus is told how much was asked, never what."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from serving import Asked


@pytest.fixture
def fresh(files):
    return Asked(files)


def samples(asked):
    families = text_string_to_metric_families(asked.get("/metrics").text)
    found = [sample for family in families for sample in family.samples]
    return {(sample.name, tuple(sorted(sample.labels.values()))): sample.value for sample in found}


def test_requests_and_states_are_counted(fresh):
    for _ in range(3):
        fresh.get(fresh.url("agent"), params={"state": 0.5})
    fresh.post(fresh.url("plane", "policy"), json={"states": [[0.5, 3.0]] * 5})
    fresh.get(fresh.url("agent"), params={"state": 2})
    found = samples(fresh)
    route = "/v1/releases/{id}/values"
    assert found["quietq_requests_total", tuple(sorted((route, "GET", "200")))] == 3
    assert found["quietq_requests_total", tuple(sorted((route, "GET", "422")))] == 1
    assert found["quietq_request_seconds_count", (route,)] == 4
    assert found["quietq_states_total", tuple(sorted((fresh.entries["agent"].record.id, "values")))] == 3
    assert found["quietq_states_total", tuple(sorted((fresh.entries["plane"].record.id, "actions")))] == 5
    assert found["quietq_release", tuple(sorted((fresh.entries["open"].record.id, "function", "NOT PRIVATE")))] == 1


def test_nothing_that_was_asked_becomes_a_label(fresh):
    fresh.get("/secret-address")
    fresh.get("/v1/releases/secret-id/values?state=0.123456")
    fresh("SECRET", "/v1/releases")
    fresh.get(fresh.url("agent"), params={"state": 0.123456})
    text = fresh.get("/metrics").text
    assert "secret" not in text.lower()
    assert "0.123456" not in text
    labels = {name for name, _ in samples(fresh)}
    assert 'route="other"' in text
    assert 'method="other"' in text
    assert "quietq_requests_total" in labels
