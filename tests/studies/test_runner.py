"""A study is measured block by block, goes on where it was stopped, and never mixes settings."""

from __future__ import annotations

import json
from functools import partial

import pytest

from studies import runner
from studies.__main__ import ROOMS, find, main
from studies.runner import Block, Study, StudyError, read_records, run_blocks, share_out


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    return tmp_path


def square(number):
    return {"square": number**2}


def squares(numbers, **settings):
    return [Block.once({"number": n} | settings, partial(square, n)) for n in numbers]


def study(blocks, **options):
    return Study("speed", "squares", "What are squares?", "nothing", lambda: blocks, **options)


def count_up(known, step=2, wanted=5):
    before = known[0]["draws"] if known else 0
    return [{"draws": min(before + step, wanted)}]


def growing(wanted=5, measure=count_up):
    return Block(
        {"name": "a"},
        partial(measure, wanted=wanted),
        lambda k: bool(k) and k[0]["draws"] >= wanted,
    )


def test_the_result_is_a_list_with_one_record_a_line_that_begins_with_its_settings(results):
    assert study(squares([1, 2], unit="m")).run() == []
    text = (results / "speed" / "squares.json").read_text()
    assert text.splitlines()[1:-1] == [
        '{"number": 1, "unit": "m", "square": 1},',
        '{"number": 2, "unit": "m", "square": 4}',
    ]
    assert json.loads(text) == read_records("speed", "squares")


def test_what_is_there_is_not_measured_again(results):
    study(squares([1, 2])).run()

    def fail():
        raise AssertionError("measured again")

    known = [Block.once({"number": n}, fail) for n in (1, 2)]
    study([*known, *squares([3])]).run()
    assert [record["square"] for record in read_records("speed", "squares")] == [1, 4, 9]


def test_a_study_that_was_stopped_goes_on_after_its_last_step(results):
    calls = []

    def interrupted(known, wanted):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(known)
        return count_up(known, wanted=wanted)

    with pytest.raises(KeyboardInterrupt):
        study([growing(9, interrupted)]).run()
    assert read_records("speed", "squares") == [{"name": "a", "draws": 4}]
    whole = study([growing(9)])
    assert whole.state() == "0 of 1 blocks"
    whole.run()
    assert read_records("speed", "squares") == [{"name": "a", "draws": 9}]
    assert whole.state() == "complete"


def test_results_of_other_settings_are_refused_and_left_alone(results):
    study(squares([1, 2], unit="m")).run()
    before = (results / "speed" / "squares.json").read_bytes()
    other = study(squares([1, 2], unit="ft"))
    assert other.state() == "of other settings"
    with pytest.raises(StudyError, match=r"squares\.json.*unit is 'm', today 'ft'.*--anew"):
        other.run()
    assert (results / "speed" / "squares.json").read_bytes() == before
    other.run(anew=True)
    assert {record["unit"] for record in read_records("speed", "squares")} == {"ft"}


def test_records_of_other_settings_are_dropped_if_that_is_asked_for(results):
    study(squares([1, 2])).run()
    fewer = study([Block.once({"number": 2}, dict), *squares([3])])
    with pytest.raises(StudyError, match="--drop-others"):
        fewer.run()
    fewer.run(drop_others=True)
    assert [record["square"] for record in read_records("speed", "squares")] == [4, 9]


def test_settings_are_compared_as_they_come_back_from_a_file():
    (block,) = [Block.once({"sizes": (1, 2)}, dict)]
    assert block.owns({"sizes": [1, 2], "found": 3})
    assert not block.owns({"found": 3})


def test_only_measures_the_named_blocks_again(results):
    study(squares([1, 2])).run()
    again = [Block.once({"number": n}, lambda: {"square": -1}) for n in (1, 2)]
    study(again).run(only="'number': 2")
    assert [record["square"] for record in read_records("speed", "squares")] == [1, -1]
    with pytest.raises(StudyError, match=r"No block of squares has 'cube'"):
        study(again).run(only="cube")


def test_blocks_side_by_side_come_out_in_order():
    *_, found = run_blocks(squares(range(6)), jobs=2)
    assert [record["square"] for record in found] == [0, 1, 4, 9, 16, 25]


def test_complaints_are_about_all_records(results):
    found = study(squares([1, 2]), complaints=lambda records: [str(r["square"]) for r in records])
    assert found.run() == ["1", "4"]
    assert found.run() == ["1", "4"]


@pytest.mark.parametrize("text", ["{}", "[1]", "[", '{"a": {"b": 1}}'])
def test_a_file_that_is_no_list_of_records_is_refused(results, text):
    (results / "speed").mkdir()
    (results / "speed" / "squares.json").write_text(text)
    with pytest.raises(StudyError, match=r"squares\.json .*Move it away"):
        study(squares([1])).run()


def test_every_study_stands_where_it_says_and_none_keeps_results_of_its_own():
    studies = find(list(ROOMS))
    places = {
        (path.parent.name, path.stem)
        for path in (runner.ROOT / "studies").glob("*/*.py")
        if "STUDY = Study(" in path.read_text()
    }
    assert {(one.room, one.name) for one in studies} == places
    assert len({one.name for one in studies}) == len(studies) > 20
    inputs = {path.name for path in (runner.ROOT / "studies").rglob("*.json")}
    assert inputs == {"mutation_equivalent.json"}


def test_every_result_belongs_to_a_study_and_can_be_read():
    known = {one.path for one in find(list(ROOMS))}
    stored = {path for room in ROOMS for path in (runner.RESULTS / room).glob("*")}
    assert stored <= known
    for path in stored:
        assert read_records(path.parent.name, path.stem), path


def test_the_output_of_an_older_run_can_be_taken_over():
    """Records of a simulation begun before its blocks grew: what matches its settings is kept."""
    old = [{"name": "a", "draws": 3}]
    (known,) = share_out([growing(5)], old)
    assert growing(5).finish(known) == [{"name": "a", "draws": 5}]


def test_the_command_line_names_what_is_missing(capsys):
    with pytest.raises(SystemExit, match="no study and no room 'gaps'"):
        main(["gaps"])
    with pytest.raises(SystemExit):
        main([])
    assert "name a study or a room" in capsys.readouterr().err
    assert main(["--list", "ties"]) == 0
    assert "a minute; complete" in capsys.readouterr().out
