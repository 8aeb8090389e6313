"""Fork server of forks.py: imports TensorFlow once and forks a child for each request, which saves seconds a process.

stdin: a JSON line {"argv", "log"} for each child; stdout: "pid N", later "exit N CODE".
"""

import atexit
import json
import os
import runpy
import signal
import sys
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy
import tensorflow
from tensorflow.python.client import timeline

out = os.dup(1)


def reap(*_):
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        os.write(out, b"exit %d %d\n" % (pid, os.waitstatus_to_exitcode(status)))


def child(request):
    """Becomes the program `argv`; never returns."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.setsid()
        os.close(out)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        sys.argv = request["argv"]
        sys.path[0] = os.path.dirname(sys.argv[0])
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
            code = 0
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else int(e.code is not None)
        except BaseException:
            traceback.print_exc()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code & 255)


signal.signal(signal.SIGCHLD, reap)
print("ready", flush=True)
for line in sys.stdin:
    # "pid N" must be out before "exit N": a reader may have seen an older process with this number.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    pid = os.fork()
    if pid == 0:
        child(json.loads(line))
    os.write(out, b"pid %d\n" % pid)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
