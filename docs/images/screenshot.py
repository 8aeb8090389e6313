#!/usr/bin/env python3
"""Runs `tensorfleet demo` on a terminal of its own and writes what it showed near the end as an SVG.

    docs/images/screenshot.py docs/images/demo.svg target/release/tensorfleet demo --kill-a-ps
"""

import fcntl
import html
import os
import pty
import re
import struct
import sys
import termios

COLUMNS, ROWS = 100, 26
WIDTH, HEIGHT = 8.4, 18  # of a character
LEFT, TOP = 16, 58  # of the first one
MOMENT = 0.85  # of all that was shown

STYLES = {
    "1": "font-weight:bold",
    "2": "fill-opacity:.6",
    "31": "fill:#ff7b72",
    "32": "fill:#7ee787",
    "33": "fill:#e3b341",
    "35": "fill:#d2a8ff",
    "36": "fill:#79c0ff",
}


def output_of(command):
    """All that the command writes to its terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            piece = b""
        if not piece:
            os.waitpid(pid, 0)
            return written.decode()
        written += piece


def screens(written):
    """What stood on the screen after each update: lines by row."""
    rows = {}
    for update in written.split("\x1b[?2026l"):
        for row, line in re.findall(r"\x1b\[(\d+);1H(.*?)\x1b\[K", update, re.S):
            rows[int(row) - 1] = line
        yield dict(rows)


def spans(line):
    """Pieces of a line, each with its style."""
    style = ""
    for index, piece in enumerate(re.split(r"\x1b\[([\d;]*)m", line)):
        if index % 2:
            style = ";".join(STYLES[code] for code in piece.split(";") if code in STYLES)
        elif piece:
            yield style, re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", piece)


def text(row, line):
    """One line of the picture: every piece stands at its column, and curves are dots, whatever fonts there are."""
    column, drawn = 0, []
    for style, piece in spans(line):
        style = f' style="{style}"' if style else ""
        for run in re.findall(r"[\u2800-\u28ff]+|[^\u2800-\u28ff]+", piece):
            start = column + len(run) - len(run.lstrip(" "))
            shown = run.strip(" ")
            if "\u2800" <= run[0] <= "\u28ff":
                drawn.append(f'<path d="{dots(column, row, run)}"{style}/>')
            elif shown:
                place = f'x="{LEFT + start * WIDTH:.1f}" y="{TOP + row * HEIGHT}"'
                length = f'textLength="{len(shown) * WIDTH:.1f}"'
                drawn.append(f'<text {place} {length} xml:space="preserve"{style}>{html.escape(shown)}</text>')
            column += len(run)
    return "\n".join(drawn)


def dots(column, row, run):
    """The dots of Braille characters."""
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
    path = []
    for index, character in enumerate(run):
        for bit, (x, y) in enumerate(places):
            if ord(character) - 0x2800 >> bit & 1:
                left = LEFT + (column + index + x / 2) * WIDTH + 1
                top = TOP + (row - 0.75 + y / 4) * HEIGHT + 1
                path.append(f"M{left:.1f} {top:.1f}h2.6v2.6h-2.6z")
    return "".join(path)


def main():
    path, command = sys.argv[1], sys.argv[2:]
    shown = list(screens(output_of(command)))
    rows = shown[int(len(shown) * MOMENT)]
    lines = [rows.get(row, "") for row in range(max(rows) + 1)]
    while not lines[-1].strip():
        lines.pop()
    width, height = 2 * LEFT + COLUMNS * WIDTH, 64 + len(lines) * HEIGHT
    typed = html.escape("$ " + " ".join([os.path.basename(command[0]), *command[1:]]))
    drawn = "\n".join(filter(None, (text(row, line) for row, line in enumerate(lines))))
    with open(path, "w", encoding="utf-8") as picture:
        picture.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
            f'font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="14" fill="#d6dde6">\n'
            f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#10151c"/>\n'
            f'<text x="{LEFT}" y="30" fill="#8b949e">{typed}</text>\n{drawn}\n</svg>\n'
        )


main()
