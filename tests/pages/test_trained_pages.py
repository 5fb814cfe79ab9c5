"""A page keeps its promises under another rounding, and breaks them where it is wrong."""

from __future__ import annotations

import pytest
from trained_pages import alike, disagreements

ROWS = 450

PAGE = """# A page

Certified with alpha 0.05, in prose.

```python
print(train())
```

```text
fixed - 3 errors in 900 rows bound JCW by 0.0086, within alpha 0.05
acts on 65.3%
```

```console
$ reliablenet plan --alpha 0.05
832 certification rows show, with a chance of at least 90%, that a rule which acts wrongly on 3% keeps 5%.
$ reliablenet train loans.csv --out model.rnet
Certified: the model acts on 59% of rows, and wrongly on at most 5% of all rows (confidence 95%).
  because  1 error in 153 rows bound JCW by 0.0307, within alpha 0.05
  acts     at confidence 0.846 or more
  network  tabular, 6 inputs, 15,856 weights
$ reliablenet predict model.rnet today.csv
Acts on 112 of 200 rows (56%), defers 88.
label,confidence,accepted
no,0.508297337265954,False
no,0.9713177078238643,True
yes,0.8253769781017766,False
```

```text
ConstraintWarning: Training left most of the budget unspent: selection-fold JCW is
0.0000 of alpha = 0.05, with coverage 0.43 and a multiplier of 21.3.
 epoch   tau   psi  multiplier
    10   NaN   NaN       0.000
    16 0.500 0.186      20.634
weights kept of epoch 14
from a second fit of 23 epochs on all 1,807 rows
30 epochs at most
   reliablenet             0.607  0.569  0.038    34/900  0.0500   0.026   yes
   Use reliablenet: probably more than boosting, by 0.038 (ahead in 93.7% of 1,000 resamples).
```
"""


def changed(*pairs: tuple[str, str]) -> str:
    text = PAGE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def test_a_page_agrees_with_itself() -> None:
    assert disagreements(PAGE, PAGE, ROWS) == []


@pytest.mark.parametrize(
    "pairs",
    [
        [("3 errors in 900", "4 errors in 900"), ("0.0086", "0.0102")],
        [("65.3%", "66%")],
        [("acts on 59% of", "acts on 59.6% of"), ("0.846", "0.8428")],
        [("1 error in 153", "2 errors in 153"), ("0.0307", "0.0406")],
        [("acts on 59%", "acts on 60%"), ("confidence 0.846 or", "confidence 0 or")],
        [("112 of 200 rows (56%), defers 88", "117 of 200 rows (58.5%), defers 83")],
        [("no,0.508297337265954", "yes,0.517080482936557")],
        [("yes,0.8253769781017766,False", "yes,0.8482599001404500,True")],
        [("JCW is\n0.0000 of", "JCW is 0.0022\nof"), ("a multiplier of 21.3", "a\nmultiplier of 20.5")],
        [("0.186      20.634", "0.191      19.802"), ("of epoch 14", "of epoch 11")],
        [("fit of 23 epochs", "fit of 21 epochs")],
        [("0.607  0.569  0.038", "0.602  0.564  0.038"), ("93.7%", "97.9%"), ("probably", "clearly")],
    ],
)  # fmt: skip
def test_another_rounding_keeps_the_promises(pairs) -> None:
    today = changed(*pairs)
    assert disagreements(PAGE, today, ROWS) == []
    assert disagreements(today, PAGE, ROWS) == []


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("3 errors in 900", "40 errors in 900")], "3, today 40: no such count"),
        ([("65.3%", "30%")], "65.3, today 30: no such share"),
        ([("0.0086", "0.086")], "no such share"),
        ([("900 rows", "901 rows")], "900, today 901: no such fixed"),
        ([("within alpha 0.05", "within alpha 0.06")], "0.05, today 0.06: no such fixed"),
        ([("of alpha = 0.05", "of alpha = 0.04")], "0.05, today 0.04: no such fixed"),
        ([("at most 5%", "at most 6%")], "5, today 6: no such fixed"),
        ([("confidence 95%", "confidence 90%")], "95, today 90: no such fixed"),
        ([("832 cert", "833 cert")], "832, today 833: no such fixed"),
        ([("on 3% keeps", "on 4% keeps")], "3, today 4: no such fixed"),
        ([("15,856", "15,857")], "no such fixed"),
        ([("    16 0.500", "    16 0.400")], "0.500, today 0.400: no such fixed"),
        ([("30 epochs", "31 epochs")], "no such fixed"),
        ([("of 1,000", "of 2,000")], "no such fixed"),
        ([("of epoch 14", "of epoch 99")], "no such epoch"),
        ([("fit of 23 epochs", "fit of 99 epochs")], "no such epoch"),
        ([("multiplier of 21.3", "multiplier of 2.13")], "no such multiplier"),
        ([("112 of 200", "12 of 200")], "112, today 12: no such count"),
        ([("34/900", "134/900")], "no such count"),
        ([("0.846", "0.146")], "no such threshold"),
        ([("no,0.971", "yes,0.971")], "another decision"),
        ([("0.9713177078238643", "0.6713177078238643")], "another decision"),
        ([("0.9713177078238643,True", "0.9713177078238643,False")], "another rule"),
        ([("0.508297337265954,False", "0.518297337265954,True")], "no threshold"),
        ([("Certified:", "Not certified:")], "other words"),
        ([("within alpha", "beyond alpha")], "other words"),
        ([("0.026   yes", "0.026   no")], "other words"),
        ([("fixed - ", "monotone - ")], "other words"),
        ([("reliablenet plan --alpha 0.05", "reliablenet plan --alpha 0.04")], "prose, code"),
        ([("in prose", "in verse")], "prose, code"),
        ([("with alpha 0.05,", "with alpha 0.04,")], "prose, code"),
        ([("print(train())", "print(test())")], "prose, code"),
    ],
)  # fmt: skip
def test_a_wrong_page_breaks_them(pairs, said) -> None:
    today = changed(*pairs)
    for one, other in ((PAGE, today), (today, PAGE)):
        assert disagreements(one, other, ROWS)
    assert said in " ".join(disagreements(PAGE, today, ROWS))


def test_counts_are_judged_by_the_rows_they_are_of() -> None:
    assert alike(3, 4, 900)
    assert not alike(3, 40, 900)
    assert alike(3, 10, 10)  # ten rows tell next to nothing
    assert not alike(300, 1000, 1000)
    assert not alike(11, 3, 10)  # more than there are


def test_the_rows_nearest_to_a_share_count() -> None:
    page = "```text\nacts on 60.0%\n20 of 40 rows\n{}\n9 of 4000 rows\nacts on 60.0%\n```\n"
    page = page.format("many words between " * 9)
    assert disagreements(page, page.replace("60.0%\n20", "50.0%\n20"), ROWS) == []
    assert disagreements(page, page.replace("60.0%\n```", "50.0%\n```"), ROWS)


def test_without_rows_on_the_page_those_given_count() -> None:
    page = "```text\nloss 0.30\n```\n"
    assert disagreements(page, page.replace("0.30", "0.40"), 100) == []
    assert disagreements(page, page.replace("0.30", "0.40"), 10_000)
