"""Ports that nobody listens on and that no outgoing connection takes."""

import itertools
import random
import socket
import threading

FIRST = 10000
lock, given = threading.Lock(), set()


def quiet_ports():
    """Ports below those that the system gives to outgoing connections, beginning anywhere."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
            end = int(f.read().split()[0])
    except (OSError, ValueError):
        return []
    ports = range(FIRST, max(end, FIRST))
    start = random.randrange(len(ports)) if ports else 0
    return itertools.chain(ports[start:], ports[:start])


def is_free(port):
    """Whether a server could listen there now."""
    try:
        socket.create_server(("", port)).close()
        return True
    except OSError:
        return False


def any_port():
    with socket.create_server(("", 0)) as s:
        return s.getsockname()[1]


def free_ports(count):
    """Each is given once in this process; another process may still take one before it is used."""
    with lock:
        ports = list(itertools.islice((p for p in quiet_ports() if p not in given and is_free(p)), count))
        while len(ports) < count:
            port = any_port()
            if port not in ports and port not in given:
                ports.append(port)
        given.update(ports)
        return ports
