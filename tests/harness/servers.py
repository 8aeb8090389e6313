"""Clusters of servers, each task started by a command template.

Words of a template, each already quoted for the shell:
  {cluster_json}  {"ps": ["localhost:1"], "worker": {"1": "localhost:2"}}: a list if the indices have no gaps
  {job} {task} {address} {port} {workdir}
  {config}        file with a text-format ConfigProto of the server, or nothing; cases that need one are skipped
                  if the template does not have the word
A server is up when its port accepts.
"""

import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time

from ports import free_ports, is_free

HERE = os.path.dirname(os.path.abspath(__file__))
REFERENCE = "%s %s/tf_server.py --cluster {cluster_json} --job {job} --task {task} --config={config}" % (
    shlex.quote(sys.executable),
    shlex.quote(HERE),
)


class PortTaken(RuntimeError):
    """A server did not start because somebody else listens on its port."""


class Cluster(object):
    """`jobs` is {job: number of tasks or their indices}; only tasks of the jobs in `only`, if any, get a server, those
    of the jobs in `reference` a server of TensorFlow's."""

    def __init__(self, jobs, template, preload, workdir, config="", only=(), reference=()):
        self.template, self.preload, self.workdir, self.reference = template, preload, workdir, reference
        self.indices = {job: list(range(n)) if isinstance(n, int) else n for job, n in jobs.items()}
        self.tasks = [(job, i) for job, n in self.indices.items() for i in n if not only or job in only]
        self.choose_addresses()
        self.processes, self.starts, self.clients, self.channel = {}, 0, {}, None
        self.config = ""
        if config:
            self.config = os.path.join(workdir, "config.pbtxt")
            with open(self.config, "w") as f:
                f.write(config)

    def choose_addresses(self):
        ports = iter(free_ports(sum(len(n) for n in self.indices.values())))
        self.addresses = {job: {i: "localhost:%d" % next(ports) for i in n} for job, n in self.indices.items()}

    def json(self):
        dense = lambda tasks: list(tasks) == list(range(len(tasks)))
        return {job: list(n.values()) if dense(n) else n for job, n in self.addresses.items()}

    def start_all(self, attempts=3):
        """On other ports if somebody else was faster on one of them."""
        for left in reversed(range(attempts)):
            for job, task in self.tasks:
                self.launch(job, task)
            try:
                for job, task in self.tasks:
                    self.wait_until_up(job, task)
                return
            except PortTaken:
                if not left:
                    raise
                for job, task in self.tasks:
                    self.kill(job, task)
                self.choose_addresses()

    def start(self, job, task):
        self.launch(job, task)
        self.wait_until_up(job, task)

    def launch(self, job, task):
        address = self.addresses[job][task]
        words = {
            "cluster_json": shlex.quote(json.dumps(self.json())),
            "job": job,
            "task": str(task),
            "address": address,
            "port": address.rsplit(":", 1)[1],
            "workdir": shlex.quote(self.workdir),
            "config": shlex.quote(self.config) if self.config else "",
        }
        template = REFERENCE if job in self.reference else self.template
        command = template
        for word, value in words.items():
            command = command.replace("{%s}" % word, value)
        self.starts += 1
        log = os.path.join(self.workdir, "server_%s_%d_%d.log" % (job, task, self.starts))
        if template == REFERENCE:
            self.processes[job, task] = self.preload.spawn(shlex.split(command)[1:], log)
        else:
            with open(log, "w") as f:
                process = subprocess.Popen("exec " + command, shell=True, stdout=f, stderr=subprocess.STDOUT)
            self.processes[job, task] = process

    def wait_until_up(self, job, task, limit=60):
        process, port = self.processes[job, task], int(self.addresses[job][task].rsplit(":", 1)[1])
        end = time.time() + limit
        while True:
            if process.poll() is not None:
                error = RuntimeError if is_free(port) else PortTaken
                raise error("server %s %d ended with %s at its start" % (job, task, process.poll()))
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                if time.time() > end:
                    raise RuntimeError("server %s %d is not up after %ds" % (job, task, limit))
                time.sleep(0.02)

    def kill(self, job, task):
        process = self.processes[job, task]
        if process.poll() is None:
            process.kill()
        process.wait()

    def dead(self):
        """`job:task(code)` of the servers that ended."""
        codes = [(job, task, process.poll()) for (job, task), process in self.processes.items()]
        return ["%s:%d(%s)" % c for c in codes if c[2] is not None]

    def stop(self):
        for client in self.clients.values():
            client.kill()
        for job, task in self.processes:
            self.kill(job, task)
        if self.channel:
            self.channel.close()

    def control(self):
        """The address of the line commands in `obey`."""
        if not self.channel:
            self.channel = socket.create_server(("127.0.0.1", 0))
            threading.Thread(target=self.listen, daemon=True).start()
        return "127.0.0.1:%d" % self.channel.getsockname()[1]

    def listen(self):
        while True:
            try:
                connection, _ = self.channel.accept()
            except OSError:
                return
            with connection, connection.makefile("rw") as f:
                try:
                    f.write("ok %s\n" % self.obey(*f.readline().split(None, 1)))
                except Exception as e:
                    f.write("error %s\n" % e)

    def obey(self, verb, rest):
        """`kill|start|restart JOB TASK` for servers; `spawn ARGV_AND_LOG`, `poll PID`, `end PID` for more clients."""
        if verb == "spawn":
            client = self.preload.spawn(**json.loads(rest))
            self.clients[client.pid] = client
            return client.pid
        if verb == "poll":
            return self.clients[int(rest)].poll()
        if verb == "end":
            return self.clients[int(rest)].kill()
        job, task = rest.split()
        if verb in ("kill", "restart"):
            self.kill(job, int(task))
        if verb in ("start", "restart"):
            self.start(job, int(task))
