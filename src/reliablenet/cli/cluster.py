"""Certificates of a folder of Parquet on a Dask cluster: each file is counted by a worker, and the counts merge here."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from reliablenet._dask import connected, map_cluster
from reliablenet.certificate.labels import LabelsSeen
from reliablenet.certificate.merging import Look, Part
from reliablenet.cli.predictions import Predictions
from reliablenet.errors import ClusterError, DataFileError, InvalidDataError
from reliablenet.tables.files import TableFile
from reliablenet.tables.folder import has_rows, parquet_files

if TYPE_CHECKING:
    from reliablenet.certificate import Certificate, RuleCertificate
    from reliablenet.cli.model_rows import FreshRows
    from reliablenet.metrics.breakdowns import Breakdown


@contextmanager
def folder_on(address: str, file: TableFile) -> Iterator[FolderOnCluster | None]:
    """Yield a folder on the cluster with this address; None if none is asked for."""
    if not address:
        yield None
        return
    if not file.path.is_dir():
        if not file.path.exists():
            raise DataFileError(f"There is no folder {file.path}.")
        raise typer.BadParameter(f"--dask is for a folder of Parquet; {file.name} is a file.")
    with connected(address) as client:
        yield FolderOnCluster(client, file.path)


class FolderOnCluster:
    """The files of a folder, each looked at by a worker that sees it under the same name.

    Parameters
    ----------
    client : distributed.Client
    folder : Path
    """

    def __init__(self, client: Any, folder: Path) -> None:
        self._client = client
        files = parquet_files(folder.resolve())
        self._files = {path.name: (number, path) for number, path in enumerate(files)}

    def _each(self, function: Callable[..., Any], held: Any) -> list[Any]:
        return list(map_cluster(self._client, function, held, self._files))

    def run_predictions(self, given: Predictions) -> Callable[[Look[Any]], list[Part[Any]]]:
        """Return how to look at predictions; labels are judged when all of them are known."""
        labels = LabelsSeen()

        def run(look: Look[Any]) -> list[Part[Any]]:
            found = self._each(_count_predictions, (given, look))
            for _, seen in found:
                labels.merge(seen)
            given.check_labels(labels)
            return [part for part, _ in found]

        return run

    def breakdown(
        self, given: Predictions, certificate: Certificate | RuleCertificate
    ) -> Breakdown | None:
        """Count who bears the mistakes of a certified rule; the first rows say how columns are cut."""
        cells = given.cells(certificate)
        if cells is None:
            return None
        found: Breakdown | None = None
        for part in self._each(_count_cells, (given, cells)):
            found = part if found is None else found if part is None else found + part
        return found

    def run_fresh(self, fresh: FreshRows) -> Callable[[Look[Any]], list[Part[Any]]]:
        """Return how to look at rows that a model is certified on; what else is seen of them is merged once."""
        looks = 0

        def run(look: Look[Any]) -> list[Part[Any]]:
            nonlocal looks
            held = (fresh.model, fresh.target, fresh.group, look)
            found = self._each(_count_fresh, held)
            for _, seen in found if looks == 0 else ():
                fresh.merge(seen)
            looks += 1
            return [part for part, _ in found]

        return run


def _count_predictions(
    held: tuple[Predictions, Look[Any]], number: int, path: Path
) -> tuple[Part[Any], LabelsSeen]:
    check_visible(path)
    given, look = held
    labels = LabelsSeen()
    with naming(path):
        part = look(replace(given, path=TableFile(path)).read(labels), number)
    return part, labels


def _count_cells(held: tuple[Predictions, Any], number: int, path: Path) -> Breakdown | None:
    check_visible(path)
    given, cells = held
    with naming(path):
        return replace(given, path=TableFile(path)).count_cells(cells)


def _count_fresh(
    held: tuple[Any, str, str, Look[Any]], number: int, path: Path
) -> tuple[Part[Any], FreshRows]:
    from reliablenet.cli.model_rows import FreshRows

    check_visible(path)
    model, target, group, look = held
    fresh = FreshRows(model, TableFile(path), target, group)
    with naming(path):
        part = look(fresh.read() if has_rows(path) else (), number)
    return part, fresh.counted()


def check_visible(*paths: Path) -> None:
    """Raise where this process, on another machine perhaps, does not see a file or folder."""
    for path in paths:
        if not path.exists():
            raise ClusterError(
                f"The worker on {socket.gethostname()} does not see {path}. Files must be where every worker "
                "finds them under the same name."
            )


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say in which file of a folder the rows are that cannot be used."""
    try:
        yield
    except InvalidDataError as error:
        if path.name in str(error):
            raise
        raise InvalidDataError(f"{path.name}: {error}") from error
