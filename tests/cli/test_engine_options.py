"""The options of a cluster: its certificates, and the warning of one without a key."""

import argparse
from types import SimpleNamespace

import pytest
from cluster_processes import make_certificate

from weft.cli.options import add_workers, check_cluster, started
from weft.tasks.engine import EngineError

TLS, TCP = "tls://host:8786", "tcp://host:8786"


def parsed(*words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_workers(parser)
    return parser.parse_args([*map(str, words)])


def test_a_cluster_without_a_key_is_said_before_any_work(capsys):
    check_cluster(parsed("--cluster", TCP))
    said = capsys.readouterr().err
    assert said.startswith(
        f"weft: warning: {TCP} has no key: any host that reaches the scheduler can run code"
    )
    check_cluster(parsed())
    assert capsys.readouterr().err == ""


def test_a_cluster_gets_the_certificates(tmp_path, capsys, monkeypatch):
    cert, key = make_certificate(tmp_path, "mine")
    args = parsed("--cluster", TLS, "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key)
    check_cluster(args)
    assert capsys.readouterr().err == ""
    found = {}

    def engine(work, address, **options):
        found.update(options, address=address)
        raise EngineError("as far as this")

    monkeypatch.setattr("weft.tasks.engine.Engine", engine)
    with pytest.raises(EngineError, match="as far as this"):
        started(None, args, SimpleNamespace(say=print))
    assert found["address"] == TLS
    assert found["security"].require_encryption
    assert found["security"].tls_client_key == str(key)


@pytest.mark.parametrize("words, text", [
    (["--cluster", TLS], f"{TLS} needs --tls-ca, --tls-cert, --tls-key (docs/explore.md)"),
    (["--cluster", TLS, "--tls-ca", "a", "--tls-key", "b"], f"{TLS} needs --tls-cert (docs/"),
    (["--cluster", TCP, "--tls-key", "b"], "--tls-key must be with --cluster tls://host:port"),
    (["--tls-ca", "b"], "--tls-ca must be with --cluster tls://host:port"),
])
def test_certificates_must_suit_the_address(words, text):
    with pytest.raises(EngineError) as caught:
        check_cluster(parsed(*words))
    assert str(caught.value).startswith(text)


def test_rejects_what_is_no_certificate(tmp_path):
    cert, key = make_certificate(tmp_path, "mine")
    words = "--cluster", TLS, "--tls-ca", cert, "--tls-cert"
    with pytest.raises(FileNotFoundError, match="none.pem"):
        check_cluster(parsed(*words, tmp_path / "none.pem", "--tls-key", key))
    (tmp_path / "text").write_text("no key\n")
    for wrong in (tmp_path / "text", make_certificate(tmp_path, "another")[1]):
        with pytest.raises(EngineError, match="must be a certificate of an authority, a certif"):
            check_cluster(parsed(*words, cert, "--tls-key", wrong))


@pytest.mark.parametrize("address", ["host:8786", "inproc://host/1/2", "tcp://", "tls://host"])
def test_rejects_another_address(address):
    with pytest.raises(argparse.ArgumentError, match="cluster must be tls://host:port or tcp://"):
        parsed("--cluster", address)
