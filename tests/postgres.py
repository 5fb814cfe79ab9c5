"""A PostgreSQL server of Debian's package, started on a socket of its own and gone afterwards."""

import getpass
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg

SERVICE_USER = "postgres"
SETTINGS = "-c listen_addresses= -c fsync=off -c max_connections=60"  # the tests kill processes, not machines


def find_programs() -> Path | None:
    """Return the folder of `initdb`, where Debian puts it or on the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if on_path := shutil.which("initdb"):
        folders.append(Path(on_path).parent)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def why_not() -> str:
    """Return why no PostgreSQL can be started here, or nothing."""
    if find_programs() is None:
        return "There is no PostgreSQL here: `make database` installs it from Debian's packages."
    if os.geteuid() == 0:  # it refuses to run as root
        try:
            pwd.getpwnam(SERVICE_USER)
        except KeyError:
            return f"PostgreSQL does not run as root, and there is no user {SERVICE_USER}."
    return ""


class Postgres:
    """A server on a socket in a folder of its own."""

    def __enter__(self) -> "Postgres":
        self.programs = find_programs()
        self.user = SERVICE_USER if os.geteuid() == 0 else getpass.getuser()
        self.folder = Path(
            tempfile.mkdtemp(prefix="rn-pg-", dir="/tmp")
        )  # a socket's name must be short
        if os.geteuid() == 0:
            shutil.chown(self.folder, SERVICE_USER)
        try:
            self._run(
                "initdb",
                "--no-sync",
                "--auth=trust",
                "--username",
                self.user,
                "--pgdata",
                self.data,
            )
            self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        log, options = str(self.folder / "log"), f"-k {self.folder} {SETTINGS}"
        self._run("pg_ctl", "start", "--wait", "-D", self.data, "-l", log, "-o", options)

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "stop", "--wait", "-D", self.data, "-m", mode)

    def new_database(self) -> str:
        """Return the URL of an empty database."""
        name = f"d{secrets.token_hex(6)}"
        where = {"host": str(self.folder), "user": self.user, "dbname": "postgres"}
        with psycopg.connect(**where, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return f"postgresql://{self.user}@/{name}?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", SERVICE_USER, "--", *command]
        # Not pipes: the server would keep them open.
        subprocess.run(
            command,
            check=True,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )
