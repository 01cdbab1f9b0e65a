"""Several processes of torch.distributed on this machine, for tests."""

import os
import socket
import subprocess
import sys


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def start(script, world, *arguments):
    """Starts a script as so many ranks; gives the processes."""
    port = free_port()
    found = []
    for rank in range(world):
        environment = {
            **os.environ,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "RANK": str(rank),
            "WORLD_SIZE": str(world),
            "LOCAL_RANK": str(rank),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-c", script, *map(str, arguments)]
        found.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    return found


def finish(processes, timeout=300):
    """What each said on standard output and standard error, and its status."""
    told = [process.communicate(timeout=timeout) for process in processes]
    return [(out, err, process.returncode) for (out, err), process in zip(told, processes)]


def run(script, world, *arguments):
    """Runs a script as so many ranks, all of which must succeed; gives their standard outputs."""
    done = finish(start(script, world, *arguments))
    for out, err, status in done:
        assert status == 0, err
    return [out for out, _, _ in done]
