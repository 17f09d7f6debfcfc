"""JupyterHub on one machine: every person is a Unix user, the grader is a service. docs/deploy.md explains it.

To be read from /etc/jupyterhub by the jupyterhub of the environment that everybody works in.
"""

import sys
from pathlib import Path

BIN = Path(sys.executable).parent
STUDENTS = Path(__file__).parent / "students"
COURSE, ASSIGNMENT, INSTRUCTOR = "/srv/course", "ch18", "instructor"
PATH = f"{BIN}:/usr/local/bin:/usr/bin:/bin"

c = get_config()  # noqa: F821  (JupyterHub's loader provides it)

c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # a web server with TLS goes in front
c.JupyterHub.db_url = "sqlite:////srv/jupyterhub/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = "/srv/jupyterhub/cookie_secret"
c.ConfigurableHTTPProxy.pid_file = "/srv/jupyterhub/proxy.pid"

# Who may come in: members of these Unix groups, with their Unix passwords. Another authenticator goes here.
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.allowed_groups = {"students", INSTRUCTOR}

# Each server runs as its owner.
c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
c.Spawner.cmd = [str(BIN / "jupyterhub-singleuser")]
c.Spawner.default_url = "/lab"
c.Spawner.args = ["--KernelManager.transport=ipc"]  # by TCP, everybody on the machine could listen in


def prepare(spawner):
    """The instructor works in the course; students see no tools for instructors."""
    instructor = spawner.user.name == INSTRUCTOR
    spawner.environment = {"PATH": PATH, "JUPYTER_CONFIG_PATH": COURSE if instructor else str(STUDENTS)}
    spawner.notebook_dir = COURSE if instructor else ""


c.Spawner.pre_spawn_hook = prepare

# Submissions are graded as they come, as the instructor, each notebook in a sandbox.
c.JupyterHub.services = [
    {
        "name": "grader",
        "user": INSTRUCTOR,
        "cwd": COURSE,
        "command": [str(BIN / "autograder"), "grade", ASSIGNMENT, "--watch"],
        "environment": {"PATH": PATH},
    }
]
