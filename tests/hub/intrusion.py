"""What a student might try. This source runs in a kernel of the student's own server, as that Unix user."""

import json  # noqa: F401  (the caller prints with it)
import os
import pwd
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

EXCHANGE = Path("/srv/exchange/causal-attention")


def outcome(attempt, *arguments):
    """ "done", or the name of the exception."""
    try:
        attempt(*arguments)
    except Exception as error:
        return type(error).__name__
    return "done"


def shell(commands):
    """Exit code and output of shell commands."""
    done = subprocess.run(["sh", "-ec", commands], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def read(paths):
    """For each path "read", or the name of the exception."""

    def look(path):
        os.listdir(path) if os.path.isdir(path) else Path(path).read_bytes()

    return {path: outcome(look, path).replace("done", "read") for path in paths}


def connect(user):
    """Whether the gradebook opens, as oneself or as another user of the database."""
    import psycopg

    url = f"postgresql://{user + '@' if user else ''}/attention?host=/var/run/postgresql"
    return outcome(lambda: psycopg.connect(url).execute("SELECT name FROM assignment")).replace("done", "connected")


def disturb_exchange():
    """Attempts to change what others rely on."""
    released = EXCHANGE / "outbound" / "ch18"
    return {
        "write in the assignment": outcome((released / "1_averaging.ipynb").write_text, ""),
        "add to the assignment": outcome((released / "more.ipynb").write_text, ""),
        "move the course away": outcome(EXCHANGE.rename, EXCHANGE.with_name("gone")),
        "put a page among the feedback": outcome((EXCHANGE / "feedback" / "page.html").write_text, ""),
    }


def hand_in_as(student):
    """A submission in another's name, newer than any."""
    folder = EXCHANGE / "inbound" / f"{student}+ch18+2099-12-31 23:59:59.000000 UTC+forged"
    folder.mkdir()
    (folder / "1_averaging.ipynb").write_text((EXCHANGE / "outbound" / "ch18" / "1_averaging.ipynb").read_text())
    (folder / "timestamp.txt").write_text("2099-12-31 23:59:59.000000 UTC")
    (folder / "submission_secret.txt").write_text("known")


def processes():
    """Of the processes of others: how many there are, gave their environment, took a signal."""
    others = [each for each in Path("/proc").glob("[0-9]*") if each.stat().st_uid != os.getuid()]
    return {
        "others": len(others),
        "environments read": sum(outcome((each / "environ").read_bytes) == "done" for each in others),
        "signals sent": sum(outcome(os.kill, int(each.name), 0) == "done" for each in others),
    }


def ports_of(user, path):
    """What answers on each port on which a user's processes listen: the status of a web server, or the type of a ZeroMQ socket."""
    uid = str(pwd.getpwnam(user).pw_uid)
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()[1:]]
    ports = [int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[7] == uid]

    def ask(port):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            try:
                connection.recv(10, socket.MSG_WAITALL)  # ZeroMQ speaks first
            except TimeoutError:
                return web(port)
            connection.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(52, b"\0"))
            connection.recv(54, socket.MSG_WAITALL)
            connection.sendall(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB")
            said = connection.recv(200).partition(b"Socket-Type")[2]
            return said[4 : 4 + said[3]].decode()

    def web(port):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60).status
        except urllib.error.HTTPError as error:
            return error.code

    return [ask(port) for port in ports]
