"""The audit coin is exact, independent, checkable, and its key is kept well."""

import hashlib
import hmac
import stat

import numpy as np
import pytest
from scipy import stats

from reliablenet.errors import DataFileError, InvalidParameterError
from reliablenet.monitor.coin import AuditCoin, make_key, parse_key, read_key

KEY = bytes(range(32))


def test_anybody_with_the_key_can_check_a_pick():
    coin = AuditCoin(KEY, 0.3)
    for name in ("a-00000000", "a-00000001", "é"):
        digest = hmac.new(KEY, name.encode(), hashlib.sha256).hexdigest()
        assert coin.picks(name) == (int(digest, 16) / 2**256 < 0.3)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_many_are_picked_as_one_by_one(share):
    coin, names = AuditCoin(KEY, share), [f"a-{count:08x}" for count in range(500)]
    digests = [hmac.digest(KEY, name.encode(), "sha256") for name in names]
    expected = [int.from_bytes(digest) / 2**256 < share for digest in digests]
    assert coin.picks_each(names) == [coin.picks(name) for name in names] == expected


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 1.0])
def test_the_share_picked_is_the_share_asked_for(share):
    coin, n = AuditCoin(KEY, share), 20_000
    picked = sum(coin.picks(f"run-{count:08x}") for count in range(n))
    low, high = stats.binom.interval(1 - 1e-6, n, share) if 0 < share < 1 else (n * share,) * 2
    assert low <= picked <= high


def test_the_probability_is_that_of_the_float():
    """Compared as whole numbers of 256 bits, so that not even the last bit of a share is lost."""
    smallest = 2.0**-200
    coin = AuditCoin(KEY, smallest)
    assert coin._limit == 2**56
    assert AuditCoin(KEY, 1.0)._limit == 2**256
    assert AuditCoin(KEY, 0.0)._limit == 0


def test_neighbours_and_other_keys_are_independent():
    tosses = np.array([AuditCoin(KEY, 0.5).picks(f"r-{i:08x}") for i in range(20_000)])
    other = np.array([AuditCoin(KEY[::-1], 0.5).picks(f"r-{i:08x}") for i in range(20_000)])
    for left, right in ((tosses[1:], tosses[:-1]), (tosses, other)):
        agreements = int((left == right).sum())
        assert stats.binomtest(agreements, len(left), 0.5).pvalue > 1e-6


def test_a_higher_share_picks_all_that_a_lower_one_picks():
    names = [f"r-{i}" for i in range(2_000)]
    low, high = AuditCoin(KEY, 0.1), AuditCoin(KEY, 0.4)
    assert all(high.picks(name) for name in names if low.picks(name))


@pytest.mark.parametrize("share", [-0.1, 1.1, 10, float("nan"), "0.1", True])
def test_a_share_outside_its_domain_is_refused(share):
    with pytest.raises(InvalidParameterError, match="`share` of AuditCoin must lie in"):
        AuditCoin(KEY, share)


@pytest.mark.parametrize("key", [b"", b"short", "0" * 32])
def test_a_short_key_is_refused(key):
    with pytest.raises(InvalidParameterError, match="`key` of AuditCoin must be 32 bytes"):
        AuditCoin(key, 0.1)


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path):
    path = tmp_path / "decisions.db.key"
    key = make_key(path)
    assert make_key(path) == read_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert make_key(tmp_path / "other.key") != key


def test_the_key_is_never_shown():
    coin = AuditCoin(KEY, 0.1)
    assert KEY.hex() not in repr(coin)
    assert repr(KEY) not in repr(coin)
    assert coin.commitment != hashlib.sha256(KEY).hexdigest()


def test_a_file_without_a_key_is_refused(tmp_path):
    with pytest.raises(DataFileError, match="There is no audit key"):
        read_key(tmp_path / "none")
    (tmp_path / "bad").write_text("xyz")
    with pytest.raises(DataFileError, match="must be 64 hexadecimal digits; got 3 characters"):
        read_key(tmp_path / "bad")
    with pytest.raises(DataFileError, match="64 hexadecimal digits"):
        parse_key("00" * 31, "the environment")
