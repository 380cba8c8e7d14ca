"""`quietq serve` refuses what cannot be served, before anything is opened."""

import os
import socket
import sys
from types import SimpleNamespace

import pytest
from keys import make_keys

from quietq import InvalidInput, MissingExtra
from quietq.publishing.server.run import serve


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("serve", "Missing argument"),
        ("serve nothing.qq", "There is no file 'nothing.qq'."),
        ("serve {agent} {agent}", "hold the same release"),
        ("serve {agent} --port 70000", "--port must be at most 65535, not 70000."),
        ("serve {agent} --port -1", "--port must be a whole number of at least 0, not -1."),
        ("serve {agent} --workers 0", "--workers must be a whole number of at least 1, not 0."),
        ("serve {agent} --host no.such.host.invalid", "Port 8080 of 'no.such.host.invalid' cannot be opened"),
        ("serve {agent} --host 192.0.2.1", "cannot be opened"),
        ("serve {agent} --port 0 --allow-host a:80", "--allow-host must be a name such as quietq.example"),
        ("serve {agent} --token-file nothing", "There is no file 'nothing' with a token."),
        ("serve {agent} --key nothing.pub", "There is no key 'nothing.pub'."),
    ],
)
def test_what_cannot_be_served(quietq, files, arguments, sentence):
    code, out, err = quietq(arguments.format(agent=files["agent"]))
    assert (code, out) == (2, "")
    assert err.startswith("quietq: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_an_empty_host_is_not_every_address(files):
    with pytest.raises(InvalidInput, match="--host must be an address of this machine"):
        serve([files["agent"]], "", 0, 1, None)


def test_a_port_that_is_taken(quietq, files):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = quietq(f"serve {files['agent']} --port {port}")
    assert (code, err) == (2, f"quietq: Port {port} of '127.0.0.1' cannot be opened: Address already in use.\n")


@pytest.mark.parametrize("missing", ["fastapi", "prometheus_client", "uvicorn"])
def test_a_missing_extra_is_named(quietq, files, monkeypatch, missing):
    for name in [name for name in sys.modules if name.startswith("quietq.publishing.server.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    code, _, err = quietq(f"serve {files['agent']}")
    assert (code, err) == (2, f"quietq: {MissingExtra.of('serve', 'Serving needs FastAPI and uvicorn')}\n")


def test_what_the_key_did_not_sign_is_not_served(quietq, files):
    make_keys(files["agent"].with_name("key"))
    code, out, err = quietq(f"serve {files['agent']} --key {files['agent'].with_name('key.pub')} --port 0")
    assert (code, out) == (2, "")
    assert err == "quietq: 'agent.qq' cannot be served: it is whole, but nobody signed it.\n"


def test_workers_that_cannot_start_stop_the_server(quietq, files, monkeypatch):
    class Supervisor:
        def __init__(self, config, sockets):
            self.processes = [SimpleNamespace(exitcode=3)]  # as uvicorn ends a worker whose start failed

        def run(self):
            pass

    monkeypatch.setattr("quietq.publishing.server.run.Multiprocess", Supervisor)
    # It would close all handlers there are; one that absl may have left behind closes what pytest captures with.
    monkeypatch.setattr("uvicorn.Config.configure_logging", lambda self: None)
    monkeypatch.setattr("os.environ", dict(os.environ))
    code, _, err = quietq(f"serve {files['agent']} --port 0")
    assert (code, err.splitlines()[-1]) == (
        2, "quietq: A worker could not start, so the server has stopped; the log says why.",
    )  # fmt: skip
