"""Names in a sentence: all of them, or the first and how many more there are."""

import pytest

from reliablenet._listing import listed


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], 3, ""),
        (["age"], 3, "'age'"),
        ("abc", 3, "'a', 'b', 'c'"),
        ("abcd", 3, "'a', 'b', 'c' and 1 more"),
        (range(2000), 1, "0 and 1,999 more"),
    ],
)
def test_the_first_names_are_listed_and_the_others_are_counted(names, most, text):
    assert listed(names, most) == listed(iter(names), most) == text


def test_names_may_stand_without_quotes_and_only_those_shown_are_written():
    written = []

    def write(name: str) -> str:
        written.append(name)
        return name.upper()

    assert listed(["age", "sex", "ward"], 2, write) == "AGE, SEX and 1 more"
    assert written == ["age", "sex"]
