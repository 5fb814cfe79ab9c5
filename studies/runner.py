"""How a study is run: block by block, written down after each, taken up again where it was stopped.

The result of a study is results/ROOM/NAME.json, a JSON list with one record a line. Each record begins with the
settings that it was measured with, so that results of different settings are never mixed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from reliablenet._files import write_atomically

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
JOBS = 2

Record = dict[str, Any]


class StudyError(Exception):
    """A study that cannot go on, and what to do about it."""


@dataclass(frozen=True)
class Block:
    """A part of a study that is measured and written down in one step, or in several.

    Parameters
    ----------
    setting
        The fields that each of its records begins with. They tell it from other blocks.
    step
        Gets the records that are known, none at first, and returns more of them or longer ones.
    complete
        Tells from its records whether nothing is left to measure.
    """

    setting: Record
    step: Callable[[list[Record]], list[Record]]
    complete: Callable[[list[Record]], bool] = bool

    @classmethod
    def once(cls, setting: Record, measure: Callable[[], Record | list[Record]]) -> Block:
        """Return a block that is measured in one step."""

        def step(known: list[Record]) -> list[Record]:
            found = measure()
            return [found] if isinstance(found, dict) else found

        return cls(setting, step)

    def owns(self, record: Record) -> bool:
        """Tell whether a record was measured with the settings of this block."""
        return all(name in record and record[name] == value for name, value in _plain(self.setting))

    def measure(self, known: list[Record]) -> Iterator[list[Record]]:
        """Yield the block's records after each step that was left."""
        while not self.complete(known):
            known = [self.setting | record for record in self.step(known)]
            yield known

    def finish(self, known: list[Record]) -> list[Record]:
        """Return the block's records when nothing is left."""
        return [known, *self.measure(known)][-1]


@dataclass(frozen=True)
class Study:
    """A question, what its answer costs, and the blocks that are measured for it.

    Parameters
    ----------
    room, name
        Where it stands: studies/ROOM/NAME.py, and its result is results/ROOM/NAME.json.
    about
        What it asks, in a line.
    cost
        How long it takes on two cores, and what else it needs.
    blocks
        Returns the blocks, in the order of the records.
    parallel
        Whether blocks may be measured side by side, each in a process of its own.
    complaints
        Returns what the records should not be, for studies that can fail.
    """

    room: str
    name: str
    about: str
    cost: str
    blocks: Callable[[], Sequence[Block]]
    parallel: bool = False
    complaints: Callable[[list[Record]], list[str]] = lambda records: []

    @property
    def path(self) -> Path:
        """The file of the result."""
        return RESULTS / self.room / f"{self.name}.json"

    def state(self) -> str:
        """Say how much of the result is there."""
        if not self.path.exists():
            return "not run"
        blocks = self.blocks()
        try:
            known = share_out(blocks, self.read())
        except StudyError:
            return "of other settings"
        done = sum(block.complete(part) for block, part in zip(blocks, known, strict=True))
        return "complete" if done == len(blocks) else f"{done} of {len(blocks)} blocks"

    def read(self) -> list[Record]:
        """Return the records of earlier runs, none if there was none."""
        return read_records(self.room, self.name) if self.path.exists() else []

    def run(self, only: str = "", anew: bool = False, drop_others: bool = False) -> list[str]:
        """Measure what is missing, write it down as it goes, and return the complaints.

        Parameters
        ----------
        only
            Measure the blocks again whose settings hold this text, and no others.
        anew
            Forget all earlier records first.
        drop_others
            Forget the earlier records of other settings, which are refused otherwise.
        """
        blocks = self.blocks()
        records = [] if anew else self.read()
        if drop_others:
            records = [one for one in records if any(block.owns(one) for block in blocks)]
        known = share_out(blocks, records, str(self.path))
        if only:
            wanted = [place for place, block in enumerate(blocks) if only in str(block.setting)]
            if not wanted:
                raise StudyError(
                    f"No block of {self.name} has {only!r} in its settings; it has, for example, {blocks[0].setting}."
                )
            for place in wanted:
                known[place] = []
        else:
            wanted = list(range(len(blocks)))
        start, jobs = time.perf_counter(), JOBS if self.parallel else 1
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for records in run_blocks(blocks, known, wanted, jobs):
            write_records(self.path, records)
            print(
                f"{self.name}: {len(records)} records, {time.perf_counter() - start:.0f} s",
                flush=True,
            )
        return self.complaints(self.read())


def run_blocks(
    blocks: Sequence[Block],
    known: Sequence[list[Record]] | None = None,
    wanted: Sequence[int] | None = None,
    jobs: int = 1,
) -> Iterator[list[Record]]:
    """Yield the records of all blocks after each step.

    Parameters
    ----------
    blocks
        The blocks.
    known
        The earlier records of each block; none where it is not given.
    wanted
        The places of the blocks to measure; all where it is not given.
    jobs
        How many processes measure blocks side by side.
    """
    parts = [list(part) for part in known] if known is not None else [[] for _ in blocks]
    places = range(len(blocks)) if wanted is None else wanted
    open_ = [place for place in places if not blocks[place].complete(parts[place])]
    steps: Iterator[tuple[int, list[Record]]]
    if jobs == 1:
        steps = ((place, found) for place in open_ for found in blocks[place].measure(parts[place]))
    else:
        steps = Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_finished)(place, blocks[place], parts[place]) for place in open_
        )
    for place, found in steps:
        parts[place] = found
        yield [record for part in parts for record in part]


def _finished(place: int, block: Block, known: list[Record]) -> tuple[int, list[Record]]:
    return place, block.finish(known)


def share_out(
    blocks: Sequence[Block], records: Sequence[Record], source: str = "The result"
) -> list[list[Record]]:
    """Return the records of each block; refuse records that belong to none."""
    parts: list[list[Record]] = [[] for _ in blocks]
    for record in records:
        owner = next((place for place, block in enumerate(blocks) if block.owns(record)), None)
        if owner is None:
            raise StudyError(
                f"{source} holds a record of other settings ({_difference(blocks, record)}). One result has one "
                "set of settings. `--drop-others` forgets such records, `--anew` all; to keep them, move the file away."
            )
        parts[owner].append(record)
    return parts


def _difference(blocks: Sequence[Block], record: Record) -> str:
    """Say in what a record differs from the block that is nearest to it."""
    missed = [
        [
            f"{name} is {record.get(name, 'missing')!r}, today {value!r}"
            for name, value in _plain(block.setting)
            if name not in record or record[name] != value
        ]
        for block in blocks
    ]
    return "; ".join(sorted(missed, key=len)[0]) if missed else "nothing is measured today"


def _plain(setting: Record) -> Iterator[tuple[str, Any]]:
    """Yield names and values as they come back from a file: tuples are lists there."""
    yield from json.loads(json.dumps(setting)).items()


def read_records(room: str, name: str) -> list[Record]:
    """Return the records of a result."""
    path = RESULTS / room / f"{name}.json"
    try:
        records: list[Record] = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise StudyError(f"{path} is no JSON ({error}). Move it away and run {name}.") from None
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise StudyError(f"{path} must hold a JSON list of records. Move it away and run {name}.")
    return records


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Write records, one a line, so that the file is always whole."""
    lines = ",\n".join(json.dumps(record) for record in records)
    write_atomically(path, f"[\n{lines}\n]\n".encode())
