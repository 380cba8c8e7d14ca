"""Signals end the server, but one that was ignored when it started, as nohup does, stays ignored."""

import os
import select
import signal

import pytest

from quietq.server import supervisor


@pytest.fixture
def hangup():
    """SIGHUP as a terminal leaves it, however the tests were started (nohup has it ignored)."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield signal.SIGHUP
    signal.signal(signal.SIGHUP, before)


def test_a_signal_is_told(hangup):
    with supervisor._told_to_stop() as told:
        assert not select.select([told], [], [], 0)[0]
        os.kill(os.getpid(), hangup)
        assert select.select([told], [], [], 10)[0]
    assert signal.getsignal(hangup) is signal.SIG_DFL


def test_what_nohup_ignores_stays_ignored(hangup):
    signal.signal(hangup, signal.SIG_IGN)
    with supervisor._told_to_stop() as told:
        os.kill(os.getpid(), hangup)
        assert not select.select([told], [], [], 0.1)[0]
    assert signal.getsignal(hangup) is signal.SIG_IGN
