"""Signals end the server, but one that was ignored when it started, as nohup does, stays ignored."""

import os
import select
import signal

from quietq.server import supervisor


def test_a_signal_is_told():
    before = signal.getsignal(signal.SIGHUP)
    with supervisor._told_to_stop() as told:
        assert not select.select([told], [], [], 0)[0]
        os.kill(os.getpid(), signal.SIGHUP)
        assert select.select([told], [], [], 10)[0]
    assert signal.getsignal(signal.SIGHUP) is before


def test_what_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with supervisor._told_to_stop() as told:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not select.select([told], [], [], 0.1)[0]
    finally:
        signal.signal(signal.SIGHUP, before)
