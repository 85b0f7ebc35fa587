"""Settings of the front door: what is set is used, or refused by its name; and no value of a secret is ever shown."""

from pathlib import Path

import pytest

from perdure import Settings
from perdure.app.entry import EntrySettings, entry_from_environment, is_loopback
from perdure.core import limits
from perdure.core.errors import ConfigurationError

TOKENS = {"PERDURE_JWT_JWKS": "https://issuer.test/keys", "PERDURE_JWT_ISSUER": "i", "PERDURE_JWT_AUDIENCE": "a"}


def test_nothing_set_asks_nobody() -> None:
    entry = entry_from_environment({})
    assert (entry, entry.authenticates) == (EntrySettings(), False)
    assert entry.limits.request_bytes_max == limits.REQUEST_BYTES_MAX
    assert entry_from_environment({"PERDURE_AUTH": "none"}) == entry


def test_what_is_set_is_there(tmp_path: Path) -> None:
    given = {
        "PERDURE_AUTH": "keys, JWT",
        **TOKENS,
        "PERDURE_JWT_ALGORITHMS": "ES256, EdDSA",
        "PERDURE_JWT_CLAIM": "email",
        "PERDURE_JWT_SCOPE": "agent.use",
        "PERDURE_CARD_KEY": "very-secret",
        "PERDURE_REQUESTS_PER_S": "2.5",
        "PERDURE_STREAMS_MAX": "7",
    }
    entry = Settings.from_environment(given, home=tmp_path).entry
    assert entry.keys
    assert entry.jwt is not None
    assert (entry.jwt.algorithms, entry.jwt.claim, entry.jwt.scope) == (("ES256", "EdDSA"), "email", "agent.use")
    assert (entry.limits.requests_per_s, entry.limits.streams_max) == (2.5, 7)
    assert "very-secret" not in repr(entry)


BAD: dict[str, tuple[dict[str, str], str, str]] = {
    "an unknown way": ({"PERDURE_AUTH": "password"}, "PERDURE_AUTH", "keys,jwt or none"),
    "none and some": ({"PERDURE_AUTH": "none,keys"}, "PERDURE_AUTH", "keys,jwt or none"),
    "an empty way": ({"PERDURE_AUTH": ""}, "PERDURE_AUTH", "keys,jwt or none"),
    "tokens that nobody asks for": (TOKENS, "PERDURE_JWT_JWKS", "does not name jwt"),
    "an algorithm that nobody asks for": ({"PERDURE_JWT_ALGORITHMS": "ES256"}, "PERDURE_JWT_ALGORITHMS", "name jwt"),
    "no key set": ({"PERDURE_AUTH": "jwt"}, "PERDURE_JWT_JWKS", "is not set"),
    "no audience": ({"PERDURE_AUTH": "jwt", **TOKENS, "PERDURE_JWT_AUDIENCE": ""}, "PERDURE_JWT_AUDIENCE", "not set"),
    "keys in clear": ({"PERDURE_AUTH": "jwt", **TOKENS, "PERDURE_JWT_JWKS": "http://issuer.test/"}, "JWKS", "https"),
    "keys from nowhere": ({"PERDURE_AUTH": "jwt", **TOKENS, "PERDURE_JWT_JWKS": "keys.json"}, "JWKS", "absolute"),
    "a password in it": ({"PERDURE_AUTH": "jwt", **TOKENS, "PERDURE_JWT_JWKS": "https://u:se@i/"}, "JWKS", "password"),
    "a shared secret": ({"PERDURE_AUTH": "jwt", **TOKENS, "PERDURE_JWT_ALGORITHMS": "HS256"}, "ALGORITHMS", "some of"),
    "no signature": ({"PERDURE_AUTH": "jwt", **TOKENS, "PERDURE_JWT_ALGORITHMS": "none"}, "ALGORITHMS", "some of"),
    "a scope with a quote": ({"PERDURE_AUTH": "jwt", **TOKENS, "PERDURE_JWT_SCOPE": 'a" b'}, "SCOPE", "match"),
    "no number": ({"PERDURE_STREAMS_MAX": "many"}, "PERDURE_STREAMS_MAX", "integer"),
    "too few": ({"PERDURE_REQUESTS_PER_S": "0"}, "PERDURE_REQUESTS_PER_S", "greater than 0"),
}


@pytest.mark.parametrize(("given", "name", "fix"), BAD.values(), ids=BAD)
def test_what_cannot_be_meant_is_refused_by_its_name(given: dict[str, str], name: str, fix: str) -> None:
    with pytest.raises(ConfigurationError, match=fix) as refused:
        entry_from_environment(given)
    assert name in refused.value.field


def test_this_machine_alone() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.9.1", "localhost", "::1", "[::1]")))
    assert not any(map(is_loopback, ("", "0.0.0.0", "::", "10.0.0.1", "localhost.evil.test", "127.0.0.1.evil.test")))
