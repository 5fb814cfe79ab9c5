"""Records as text: what is sealed is read again, and nothing else is."""

from __future__ import annotations

import hashlib
import json
import math
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from rule_examples import make

from reliablenet.certificate.sealing import (
    check_derived,
    digest,
    lasting,
    read_values,
    seal,
    unseal,
)
from reliablenet.errors import InvalidDataError

FORMATS = ("thing/2", "thing/1")
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.dictionaries(st.text(), PLAIN | st.lists(PLAIN), max_size=5)


@given(VALUES)
def test_what_was_sealed_is_read_again(values):
    values = values | {"format": "thing/2"}
    values.pop("sha256", None)
    read = read_values(seal(values), FORMATS, "thing")
    assert unseal(read, values, "thing") == values
    assert read["sha256"] == digest(values)


def test_the_hash_is_that_of_the_values_in_the_order_of_their_names():
    text = '{"a":[1,"ä"],"b":0.5}'
    assert json.loads(text) == {"b": 0.5, "a": [1, "ä"]}
    expected = hashlib.sha256(b'{"a":[1,"\\u00e4"],"b":0.5}').hexdigest()
    assert digest({"b": 0.5, "a": [1, "ä"]}) == digest({"a": [1, "ä"], "b": 0.5}) == expected


def test_a_sealed_text_is_readable_and_strict():
    assert seal({"a": 1}) == f'{{\n  "a": 1,\n  "sha256": "{digest({"a": 1})}"\n}}'
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
            seal({"a": number})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        (b"\xff\xfe\x00", "codec can't decode"),
        (None, "the JSON object must be"),
        ("[" * 100_000, "maximum recursion depth"),
    ],
    ids=["empty", "open", "bytes", "none", "deep"],
)  # fmt: skip
def test_what_is_no_json_is_said_to_be_none(text, why):
    with pytest.raises(InvalidDataError, match=f"^This is not the JSON of a thing: .*{why}"):
        read_values(text, FORMATS, "thing")


@pytest.mark.parametrize(
    "text", ["[]", "3", "null", "{}", '{"format": "other/1"}', '{"format": 1}']
)
def test_another_format_is_refused_with_the_newest_named(text):
    with pytest.raises(InvalidDataError) as caught:
        read_values(text, FORMATS, "thing")
    assert str(caught.value) == "This is not a thing of the format 'thing/2'."


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_that_is_known_is_read(form):
    assert read_values(json.dumps({"format": form}).encode(), FORMATS, "thing") == {"format": form}


def test_values_that_are_missing_are_named():
    with pytest.raises(InvalidDataError) as caught:
        unseal({"a": 1}, (name for name in "abc"), "thing")
    assert str(caught.value) == "The thing lacks ['b', 'c']."


@pytest.mark.parametrize(
    "change", [{"a": 2}, {"more": 1}, {"sha256": "0" * 64}, {"sha256": None}], ids=str
)
def test_values_that_do_not_match_their_hash_are_refused(change):
    values = json.loads(seal({"a": 1, "b": 2}))
    with pytest.raises(InvalidDataError) as caught:
        unseal(values | change, "ab", "thing")
    assert str(caught.value) == "The thing was altered: its values do not match its hash."


def test_only_the_entries_asked_for_are_returned():
    values = json.loads(seal({"a": 1, "b": 2, "verdict": "good"}))
    assert unseal(values, (name for name in "ba"), "thing") == {"b": 2, "a": 1}
    del values["sha256"]
    with pytest.raises(InvalidDataError, match="was altered"):
        unseal(values, "ab", "thing")


def test_what_does_not_follow_from_the_counts_is_named():
    certificate = SimpleNamespace(certified=False, share=0.5)
    check_derived(
        {"certified": False, "share": 0.5, "other": 3}, certificate, ("certified", "share")
    )
    for told, shown in (
        ({"certified": False, "share": 0.6}, "0.6"),
        ({"certified": False}, "None"),
    ):
        with pytest.raises(InvalidDataError) as caught:
            check_derived(told, certificate, ("certified", "share"))
        assert str(caught.value) == (
            f"The certificate's 'share' ({shown}) does not follow from its counts (0.5): "
            "the text was altered."
        )


def test_what_lasts_of_a_certificate_is_what_no_version_words_or_computes_anew():
    one, two = make("several").to_dict(), make("several").to_dict()
    two |= {"verdict": "in", "reason": "other", "notes": ["words"], "promise_text": "of it"}
    two["sha256"] = "0"
    two["parts"][0] |= {"upper_bound": 0.1, "error_accepted_interval": [0.0, 1.0], "reason": ""}
    assert lasting(one) == lasting(two)
    two["parts"][0]["errors"] += 1
    assert lasting(one) != lasting(two)
    assert lasting({"a": [{"verdict": 1, "b": 2}], "verdict": 3}) == {"a": [{"b": 2}]}
