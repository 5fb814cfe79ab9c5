"""UNSW-NB15: is a network flow an attack? Trained on four families of attacks, tested on five others.

N. Moustafa and J. Slay, MilCIS 2015; free for academic research.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from reliablenet._checks import parameter_error
from reliablenet.datasets.dataset import Dataset
from reliablenet.datasets.sources import FOLDER_VARIABLE, data_folders, find
from reliablenet.errors import DataFileError
from reliablenet.tables.folds import Fold, cut_paper_folds, cut_rows

PAGE = "https://research.unsw.edu.au/projects/unsw-nb15-dataset"
FOLDER = "unsw_nb15"
# Releases disagree on which of the two is called which.
NAMES = ("UNSW_NB15_testing-set.csv", "UNSW_NB15_training-set.csv")
SMALL, LARGE = 82_332, 175_341
CHOICES = {"auto": (SMALL, LARGE), "small": (SMALL,), "both": (SMALL, LARGE)}
SEEN = ("Generic", "Exploits", "Fuzzers", "DoS")
UNSEEN = ("Reconnaissance", "Analysis", "Backdoor", "Shellcode", "Worms")
# Rows of normal traffic, of the seen and of the unseen families in each partition.
FAMILY_ROWS = {
    SMALL: (37_000, 18_871, 11_132, 6_062, 4_089, 3_496, 677, 583, 378, 44),
    LARGE: (56_000, 40_000, 33_393, 18_184, 12_264, 10_491, 2_000, 1_746, 1_133, 130),
}
CATEGORIES = ("proto", "service", "state")
NOT_FEATURES = ("id", "attack_cat", "label")
HEADER = (
    b"id,dur,proto,service,state,spkts,dpkts,sbytes,dbytes,rate,sttl,dttl,sload,dload,sloss,"
    b"dloss,sinpkt,dinpkt,sjit,djit,swin,stcpb,dtcpb,dwin,tcprtt,synack,ackdat,smean,dmean,"
    b"trans_depth,response_body_len,ct_srv_src,ct_state_ttl,ct_dst_ltm,ct_src_dport_ltm,"
    b"ct_dst_sport_ltm,ct_dst_src_ltm,is_ftp_login,ct_ftp_cmd,ct_flw_http_mthd,ct_src_ltm,"
    b"ct_srv_dst,is_sm_ips_ports,attack_cat,label"
)
HELD_OUT_SHARE = 0.20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def load(random_state: int = 0, partitions: str = "auto") -> Dataset:
    """Load UNSW-NB15 in the paper's folds: normal traffic and four families the source domain.

    A label of 1 is an attack. A fifth of the normal rows is set apart before anything else and makes
    up the shift, together with the five families that training never sees. Rows keep their number
    in the smaller partition, then in the larger one, as their index.

    Parameters
    ----------
    random_state : int
        Decides which normal rows are set apart, and the folds.
    partitions : {"auto", "small", "both"}
        The partition of 82,332 rows, or that and the one of 175,341; "auto" takes the second if it
        is in a data folder. They are told apart by their number of rows, whatever their names, and
        may be compressed with gzip.

    Returns
    -------
    Dataset
        Its groups are the attacks of each unseen family, without normal traffic, so that JCW on them
        is the share of attacks that are confidently missed. ``info`` says which files it used, by
        the hash of their text, and how many rows each partition had.
    """
    table, origin = read(partitions)
    family = table["attack_cat"].to_numpy(dtype=object)
    X = table.drop(columns=list(NOT_FEATURES))
    y = (family != "Normal").astype(np.intp)
    random = np.random.RandomState(random_state)
    normal = np.flatnonzero(y == 0)
    held_out = round(HELD_OUT_SHARE * len(normal))
    _, rows = cut_rows(y[normal], (len(normal) - held_out, held_out), random)
    shifted = np.isin(family, UNSEEN)
    groups = {name: family == name for name in UNSEEN}
    shifted[normal[rows]] = True
    source = ~shifted
    return Dataset(
        name="unsw_nb15",
        folds=cut_paper_folds(X[source], y[source], random),
        shifts={"unseen attacks": Fold(X[shifted], y[shifted])},
        groups={name: Fold(X[mask], y[mask]) for name, mask in groups.items()},
        info={
            **origin,
            "rows": len(y),
            "source": f"80 % of normal traffic, and {', '.join(SEEN)}",
            "target": "1 = attack, 0 = normal traffic",
        },
    )


def read(partitions: str = "auto") -> tuple[pd.DataFrame, dict[str, object]]:
    """Return the records with all 45 columns, and the files, hashes and rows of the partitions."""
    if partitions not in CHOICES:
        raise parameter_error("partitions", "unsw_nb15", f"be one of {list(CHOICES)}", partitions)
    found = find_partitions()
    for rows in CHOICES[partitions]:
        if rows not in found and (rows == SMALL or partitions == "both"):
            held = ", ".join(f"{path} ({n:,} rows)" for n, (path, _) in found.items()) or "none"
            raise DataFileError(
                f"UNSW-NB15 needs its partition of {rows:,} rows; found {held}. Get it from {PAGE} "
                f"and put it, named {NAMES[0]} or {NAMES[1]} (or .csv.gz), into "
                f"{data_folders()[0] / FOLDER}; or set {FOLDER_VARIABLE} to a folder that holds "
                f"{FOLDER}/{NAMES[0]}."
            )
    used = {rows: found[rows] for rows in CHOICES[partitions] if rows in found}
    bodies = [_body(content, path) for path, content in used.values()]
    table = pd.read_csv(
        BytesIO(b"\n".join([HEADER, *bodies])),
        dtype=dict.fromkeys((*CATEGORIES, "attack_cat"), "category"),
        keep_default_na=False,  # a service called "-" is none, and nothing is missing
    )
    _check_families(table, used)
    hashes = {
        f"{FOLDER}/{path.name}": hashlib.sha256(content).hexdigest()  # of the text, unpacked
        for path, content in used.values()
    }
    return table, {"files": hashes, "partitions": list(used)}


def find_partitions() -> dict[int, tuple[Path, bytes]]:
    """Return path and content of the files in the data folders by their number of rows."""
    found: dict[int, tuple[Path, bytes]] = {}
    for name in NAMES:
        path = find([f"{FOLDER}/{name}", f"{FOLDER}/{name}.gz"])
        if path is not None:
            content = _content(path)
            found.setdefault(content.rstrip().count(b"\n"), (path, content))
    return found


def _content(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataFileError(f"{path} is damaged: {error}. Replace it by a fresh copy.") from error


def _body(content: bytes, path: Path) -> bytes:
    """Return all lines but the header, which must be the one expected."""
    header, body = content.removeprefix(BYTE_ORDER_MARK).rstrip().split(b"\n", 1)
    if header.rstrip() != HEADER:
        raise DataFileError(
            f"The first line of {path} must name the 45 columns of UNSW-NB15 from id to label; got "
            f"{header[:60].decode(errors='replace')!r}. Get the file from {PAGE}."
        )
    return body


def _check_families(table: pd.DataFrame, used: dict[int, tuple[Path, bytes]]) -> None:
    start = 0
    for rows, (path, _) in used.items():
        counts = table["attack_cat"].iloc[start : start + rows].value_counts()
        got = tuple(int(counts.get(name, 0)) for name in ("Normal", *SEEN, *UNSEEN))
        if got != FAMILY_ROWS[rows]:
            raise DataFileError(
                f"{path} must hold {FAMILY_ROWS[rows]} rows of normal traffic and of the nine "
                f"families {', '.join(SEEN + UNSEEN)}; got {got}. Replace it by a fresh copy from "
                f"{PAGE}."
            )
        start += rows
