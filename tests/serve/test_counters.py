"""What the server counts."""

from reliablenet.serve.counters import Counters


def test_names_of_columns_are_written_as_prometheus_reads_them():
    counters = Counters()
    counters.were_odd(2, {('a "b"\\c\nd', "unseen"): 2})
    counters.were_odd(1, {('a "b"\\c\nd', "unseen"): 1, ("x", "outside"): 1})
    lines = [line for line in counters.text().splitlines() if "_odd_" in line and line[0] != "#"]
    assert lines == [
        'reliablenet_odd_values_total{column="a \\"b\\"\\\\c\\nd",what="unseen"} 3',
        'reliablenet_odd_values_total{column="x",what="outside"} 1',
        "reliablenet_odd_rows_total 3",
    ]
