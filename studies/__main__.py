"""Run studies by name or by room: python -m studies [--list] [NAME ...] [--only TEXT] [--drop-others] [--anew]."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path

from studies.runner import Study, StudyError

ROOMS = ("speed", "default", "guarantees", "quality")


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line names; return 1 if a study complains."""
    parser = argparse.ArgumentParser("python -m studies", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="studies or rooms")
    parser.add_argument("--list", action="store_true", help="say what there is and what it costs")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="measure the blocks with TEXT in their settings"
    )
    parser.add_argument(
        "--drop-others", action="store_true", help="forget the records of other settings"
    )
    parser.add_argument("--anew", action="store_true", help="forget all records")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        show(find(chosen.names or list(ROOMS)))
        return 0
    if not chosen.names:
        parser.error("name a study or a room; --list shows them")
    complaints = []
    try:
        for study in find(chosen.names):
            complaints += study.run(chosen.only, chosen.anew, chosen.drop_others)
    except StudyError as error:
        sys.exit(str(error))
    for complaint in complaints:
        print(complaint)
    return int(bool(complaints))


def find(names: list[str]) -> list[Study]:
    """Return the studies of these names, and of all rooms among them."""
    places = [
        (room, module.name)
        for room in ROOMS
        for module in pkgutil.iter_modules([str(Path(__file__).with_name(room))])
    ]
    found: list[Study] = []
    for name in names:
        modules = [
            importlib.import_module(f"studies.{room}.{module}")
            for room, module in places
            if name in (room, module)
        ]
        studies = [module.STUDY for module in modules if hasattr(module, "STUDY")]
        if not studies:
            sys.exit(
                f"There is no study and no room {name!r}; `python -m studies --list` shows all."
            )
        found += [study for study in studies if study not in found]
    return found


def show(studies: list[Study]) -> None:
    """Print a line for each study: its name, what it asks, its cost and its state."""
    width = max(len(study.name) for study in studies)
    room = ""
    for study in studies:
        if study.room != room:
            room = study.room
            print(f"{room}/")
        print(
            f"  {study.name:{width}}  {study.about}\n  {'':{width}}  {study.cost}; {study.state()}"
        )


if __name__ == "__main__":
    sys.exit(main())
