"""The search index of a laptop's folder made anew by the command line."""

import subprocess
import sys
from pathlib import Path

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.adapters.sqlite_sessions import SESSIONS_SCHEMA, SqliteSessions
from ctrlb.domain.rows import Dataset
from ctrlb.domain.words import parse_term
from ctrlb.laptop import ENV_FILE, lock_folder
from tests.contract.session_rows import NOW_US, ran, said
from tests.template import ROOT

DATASET = Dataset("local", "agent_sessions")
OTHER = Dataset("local", "other")


def rebuild(folder: Path, dataset: str = "agent_sessions") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ctrlb", "index", "rebuild", "--dataset", dataset, "--data", str(folder)]
    environment = {"PYTHONPATH": "shared"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def found(folder: Path, dataset: Dataset = DATASET) -> tuple[list[int], list[int]]:
    """The seqs of the rows that search and find_command find."""
    database = SqliteDatabase(folder / "sessions.db", SESSIONS_SCHEMA)
    sessions = SqliteSessions(database)
    hits = sessions.search(
        dataset,
        parse_term("words"),
        user="ann",
        session_id=None,
        tool=None,
        order="oldest",
        one_per_session=False,
        offset=0,
        limit=100,
    )
    commands = sessions.commands(dataset, "make", user=None, offset=0, limit=100)
    database.close()
    return [row.seq for row in hits.rows], [row.seq for row in commands.rows]


def filled(folder: Path) -> None:
    database = SqliteDatabase(folder / "sessions.db", SESSIONS_SCHEMA)
    sessions = SqliteSessions(database)
    for dataset in (DATASET, OTHER):
        rows = [said("one", seq, f"words {seq}") for seq in range(5)] + [ran("one", 5, "make words")]
        sessions.write(dataset, "ann", rows, NOW_US)
    database.write(lambda connection: connection.execute("DELETE FROM session_commands WHERE dataset = 1").fetchall())
    database.write(lambda connection: connection.execute("DROP TABLE words_1").fetchall())
    database.write(lambda connection: connection.execute("CREATE VIRTUAL TABLE words_1 USING fts5(runs)").fetchall())
    database.close()
    (folder / ENV_FILE).touch()


def test_an_index_that_is_broken_is_whole_again(tmp_path: Path) -> None:
    filled(tmp_path)
    done = rebuild(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "6 rows are in the new index" in done.stderr
    assert found(tmp_path) == found(tmp_path, OTHER) == ([0, 1, 2, 3, 4, 5], [5])


def test_a_server_on_the_folder_is_to_be_stopped_first(tmp_path: Path) -> None:
    filled(tmp_path)
    with lock_folder(tmp_path):
        done = rebuild(tmp_path)
    assert done.returncode == 1
    assert "another server is running on the folder" in done.stderr


def test_a_dataset_that_nobody_uploaded_to_is_refused_by_name(tmp_path: Path) -> None:
    filled(tmp_path)
    done = rebuild(tmp_path, "agent_session")
    assert (done.returncode, done.stderr) == (1, "ctrlb: nothing was uploaded to a dataset agent_session\n")
