"""Processes forked from one that has TensorFlow imported (preload.py)."""

import json
import os
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))


class Forked(object):
    """A process forked by preload.py, with the part of Popen's interface that is used here."""

    def __init__(self, preload, pid):
        self.preload, self.pid = preload, pid

    def poll(self):
        return self.preload.codes.get(self.pid)

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout=None):
        with self.preload.changed:
            if not self.preload.changed.wait_for(lambda: self.poll() is not None, timeout):
                raise subprocess.TimeoutExpired("forked", timeout)
        return self.poll()


class Preload(object):
    def __init__(self, python):
        command = [python, os.path.join(HERE, "preload.py")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if self.process.stdout.readline().strip() != "ready":
            sys.exit("%s cannot import tensorflow" % python)
        self.codes, self.pids = {}, []
        self.changed, self.one = threading.Condition(), threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            with self.changed:
                if words[0] == "pid":
                    self.codes.pop(int(words[1]), None)
                    self.pids.append(int(words[1]))
                else:
                    self.codes[int(words[1])] = int(words[2])
                self.changed.notify_all()

    def spawn(self, argv, log):
        with self.one:
            self.process.stdin.write(json.dumps({"argv": argv, "log": log}) + "\n")
            self.process.stdin.flush()
            with self.changed:
                self.changed.wait_for(lambda: self.pids)
                return Forked(self, self.pids.pop(0))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
