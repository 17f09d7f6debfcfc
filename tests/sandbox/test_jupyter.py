"""The kernel as Jupyter's own programs see it, unchanged, and messages that no kernel would send."""

from __future__ import annotations

import json
import os
import socket

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_client.session import Session
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError
from nbgrader.preprocessors import Execute

from autograder.sandbox.files import read_files
from autograder.sandbox.manager import kernel_manager_class
from autograder.sandbox.messages import is_output, is_sound_output, read_message


def of_cells(*sources: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def test_usual_notebook_features(fresh):
    assert fresh.run("import asyncio\nawait asyncio.sleep(0)\nprint('waited')") == "waited\n"
    assert fresh.run("%timeit -n1 -r1 pass").endswith("loop each)\n")
    assert fresh.run("import os; os.write(1, b'raw'); None") == "raw"
    assert fresh.run("import sys; print('warned', file=sys.stderr)") == "warned\n"
    assert fresh.run("input()").startswith("StdinNotImplementedError")
    assert fresh.run("x = 1").strip() == ""
    assert (
        fresh.run(
            "from IPython.display import display, HTML\nh = display(HTML('a'), display_id='i'); h.update(HTML('b'))"
        )
        == ""
    )
    fresh.run("if")
    assert fresh.run("x") == ""


@pytest.mark.parametrize("magic", ["", "%matplotlib inline\n"])
def test_plots_are_shown(fresh, magic):
    fresh.run(magic + "import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    outputs = fresh.client.nb.cells[0].outputs
    shown = [sorted(output.data) for output in outputs if output.output_type == "display_data"]
    assert shown == [["image/png", "text/plain"]]


@pytest.mark.parametrize("way", ["bubblewrap-cold", "bubblewrap-warm"], indirect=True)
def test_shell_lines(fresh):
    assert fresh.run("!echo from the shell").strip() == "from the shell"
    assert (
        fresh.value("import subprocess\nsubprocess.run(['echo', 'x'], capture_output=True, text=True).stdout") == "x\n"
    )
    assert (
        fresh.run("import multiprocessing as m\np = m.Process(target=print, args=('child',)); p.start(); p.join()")
        == "child\n"
    )


def test_nbclient_starts_and_ends_a_sandbox_by_itself(warm_parent, limits, tmp_path):
    (tmp_path / "data.txt").write_text("given")
    node = of_cells("print(open('data.txt').read())", "1 / 0")
    node.metadata.kernelspec = {"name": "no-such-kernel", "display_name": "?"}
    client = NotebookClient(
        node,
        kernel_manager_class=kernel_manager_class(limits, warm_parent),
        resources={"metadata": {"path": str(tmp_path)}},
        allow_errors=True,
    )
    client.execute()
    assert node.cells[0].outputs[0].text == "given\n"
    assert node.cells[1].outputs[0].ename == "ZeroDivisionError"
    assert os.listdir(tmp_path) == ["data.txt"]


def test_nbclients_own_timeout(fresh):
    fresh.client.timeout = 1
    with pytest.raises(CellTimeoutError):
        fresh.run("import time; time.sleep(30)")


def test_nbclients_own_interrupt(fresh):
    fresh.client.timeout = 1
    fresh.client.interrupt_on_timeout = True
    assert fresh.run("import time; time.sleep(30)").startswith("KeyboardInterrupt")
    assert fresh.value("1 + 1") == 2


def test_nbgraders_execute_unchanged(warm_parent, limits):
    node = of_cells("import os; print(os.getuid() != 0, os.path.exists('/work'))", "assert False, 'no'")
    execute = Execute(kernel_manager_class=kernel_manager_class(limits, warm_parent), shutdown_kernel="immediate")
    node, _ = execute.preprocess(node, {})
    assert node.cells[0].outputs[0].text.startswith("True")
    assert node.cells[1].outputs[0].ename == "AssertionError"


def test_a_graceful_shutdown_and_a_restart(limits, warm_parent):
    import asyncio

    async def restart() -> list[bool]:
        manager = kernel_manager_class(limits, warm_parent)()
        await manager.start_kernel()
        first = manager.sandbox
        alive = [await manager.is_alive()]
        await manager.restart_kernel(now=True)
        alive += [first.alive(), await manager.is_alive()]
        await manager.shutdown_kernel()
        return [*alive, await manager.is_alive()]

    assert asyncio.run(restart()) == [True, False, True, False]


def test_the_agents_socket(fresh):
    """The judge connects to a path; the kernel answers on a file that it was given."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(fresh.box.agent_path))
        sock.sendall(b"ping")
        source = (
            "import os, socket\nlistener = socket.socket(fileno=int(os.environ['AUTOGRADER_AGENT_FD']))\n"
            "connection, _ = listener.accept(); connection.sendall(connection.recv(4) + b' pong')"
        )
        assert fresh.run(source) == ""
        sock.settimeout(10)
        assert sock.recv(64) == b"ping pong"


FORGED = [
    ("stream", {}),
    ("stream", {"name": "stdout"}),
    ("stream", {"name": ["stdout"], "text": {}}),
    ("display_data", {"data": [], "metadata": {}}),
    ("execute_result", {"data": {}, "metadata": {}, "execution_count": "1"}),
    ("error", {"ename": "E", "evalue": "", "traceback": "lines"}),
    ("status", {}),
    ("clear_output", {}),
    ("comm_msg", {"data": {"state": 1}}),
    ("no_such_message", {}),
]


def test_forged_messages_do_no_harm(fresh):
    """A notebook holds the session's key and can send what it likes, malformed or plain rubbish."""
    source = f"""
import json
kernel = get_ipython().kernel
for kind, content in json.loads({json.dumps(json.dumps(FORGED))}):
    kernel.session.send(kernel.iopub_socket, kind, content, parent=kernel.get_parent())
kernel.iopub_socket.send_multipart([b'rubbish'])
kernel.iopub_socket.send_multipart([b'<IDS|MSG>', b'', b'{{', b'{{}}', b'{{}}', b'{{}}'])
print('honest')
"""
    assert fresh.run(source) == "honest\n"
    assert fresh.value("1 + 1") == 2


def test_half_of_a_surrogate_pair_can_be_saved():
    session = Session(key=KEY)
    content = rb'{"name": "stdout", "text": "\ud83d|\uD83D\uDE00", "\udc00": 1}'
    message = read_message(session, session.serialize(session.msg("stream") | {"content": content}))
    assert message["content"] == {"name": "stdout", "text": "?|😀", "?": 1}


KEY = b"key"
frames = st.lists(
    st.binary(max_size=40) | st.sampled_from([b"<IDS|MSG>", b"{}", b"[]", b'{"msg_type": 1}']), max_size=9
)


@given(frames)
def test_rubbish_is_no_message(parts):
    assert read_message(Session(key=KEY), parts) is None
    assert is_output(parts) in (True, False)


@given(
    st.sampled_from([kind for kind, _ in FORGED]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda v: st.lists(v) | st.dictionaries(st.text(), v),
        max_leaves=8,
    ),
)
def test_signed_rubbish_is_no_output(kind, content):
    """What passes has text where text is read, whatever was sent."""
    session = Session(key=KEY)
    sent = session.serialize(session.msg(kind, content={"content": content}) | {"content": session.pack(content)})
    message = read_message(session, sent)
    if message is not None and is_sound_output(message) and kind == "stream":
        assert isinstance(message["content"]["text"], str)
    assert message is None or isinstance(message["content"], dict)


def test_files_are_read_without_following_links(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.txt").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "big").write_bytes(bytes(1000))
    assert read_files(tmp_path, most_bytes=100) == {"deep/a.txt": b"12345"}
