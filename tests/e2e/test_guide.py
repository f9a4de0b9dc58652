#!/usr/bin/env python3
"""The README and the guide, as they are written: every block of commands is run, in order, each page in a lab of its own.

How a block is to be run stands in HTML comments, which no reader sees, right above it (several are taken together):

    <!-- guide: lab OPTIONS -->      at the top of a page: its lab. Without it the page makes one itself, or runs nothing.
    <!-- guide: words one=node1 -->  at the top of a page: what the page's names are in that lab.
    <!-- guide: first COMMANDS -->   what is done before, and is not shown.
    <!-- guide: no, REASON -->       it is not run.
    <!-- guide: shape -->            forms with placeholders: each command and flag in it has to exist.
    <!-- guide: shows -->            what the last command has printed, or the part of it that stands here: digits stand for digits, … for anything.
    <!-- guide: ends N -->           the last command ends with that exit code.
    <!-- guide: type TEXT -->        what the last command reads.

A line of a block is a command; its comment is cut off by the shell. `make` and the PATH of the build are the test's own, /var/tmp/lab is the test's
folder, and `sleep` waits until jobs and repairs have ended. `make check` runs the pages in CHEAP, the long suite all of them.
"""
import glob
import json
import os
import re
import shlex
import subprocess
import tempfile

import e2e
from e2e import fettlelib, title

CHEAP = ('README.md', 'first-steps.md', 'command-line.md', 'instances.md', 'lab.md')
LAB = '/var/tmp/lab'
MARK = re.compile(r'^<!-- guide: (.*) -->$')


class Block:
    def __init__(self, line, marks, lines):
        self.line, self.marks, self.lines = line, marks, lines

    def mark(self, word):
        """What stands behind a mark of that kind; None: it has none."""
        for mark in self.marks:
            if re.match(rf'{word}\b', mark):
                return mark[len(word):].strip(' ,')
        return None


def blocks_of(path):
    """The marks at the top of a page, and its blocks: indented by four spaces, or fenced."""
    with open(path, encoding='utf-8') as file:
        lines = file.read().split('\n')
    top, blocks, marks, at, begun = [], [], [], 0, False
    while at < len(lines):
        line, found = lines[at], MARK.match(lines[at])
        if found:
            (marks if begun else top).append(found.group(1))
        elif line.startswith('```') or (line.startswith('    ') and not lines[at - 1].strip() or line.startswith('    ') and MARK.match(lines[at - 1])):
            end = at + 1
            if line.startswith('```'):
                while lines[end] != '```':
                    end += 1
                blocks.append(Block(at + 1, marks, lines[at + 1:end]))
                end += 1
            else:
                while end < len(lines) and (lines[end].startswith('    ') or (not lines[end].strip() and lines[end + 1:end + 2] and lines[end + 1].startswith('    '))):
                    end += 1
                blocks.append(Block(at + 1, marks, [one[4:] for one in lines[at:end]]))
            marks, at, begun = [], end, True
            continue
        elif line.strip():
            marks, begun = [], True
        at += 1
    return top, blocks


def commands_of(lines):
    """Lines that end with a backslash go on in the next."""
    return [line for line in re.sub(r'\\\n\s*', '', '\n'.join(lines)).split('\n') if line.strip()]


class Session:
    """A shell in which the commands of a page are given one after the other."""

    def __init__(self, page, folder):
        self.page, self.folder, self.said, self.code, self.words, self.root = page, folder, '', 0, {}, None
        environment = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0', 'PATH': f'{e2e.build()}/src/cli:{os.environ["PATH"]}', 'LC_ALL': 'C.UTF-8'}
        environment.pop('FETTLE_ROOT', None)
        self.shell = subprocess.Popen(['bash'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=folder)

    def close(self):
        self.shell.stdin.close()
        self.shell.wait()

    def own(self, text):
        """The page's words in the words of the test."""
        for word, mine in self.words.items():
            text = re.sub(rf'(?<![\w./-]){re.escape(word)}(?![\w.-])', lambda _, mine=mine: mine, text)
        return text.replace(LAB, os.path.join(self.folder, 'lab'))

    def give(self, command, typed=None):
        source = f'<<<{shlex.quote(typed)}' if typed is not None else '</dev/null'
        self.shell.stdin.write(f'eval {shlex.quote(command)} {source}\nguide_code=$?; echo; echo "@@ended $guide_code"\n')
        self.shell.stdin.flush()
        lines = []
        while not (lines and lines[-1].startswith('@@ended ')):
            line = self.shell.stdout.readline()
            assert line, f'{self.page}: the shell has ended in: {command}'
            lines.append(line)
        self.code = int(lines.pop().split()[1])
        self.said = ''.join(lines)[:-1]
        return self.code

    def rest(self):
        """Until no job runs and no repair is under way: what `sleep` in the guide is for."""
        def at_rest():
            jobs = self.ask('job list --json --status pending,running,canceling')
            repairs = [one for one in self.ask('repair list --json') if one['state'] == 'pending']
            rows = self.ask('instance list --json')
            whole = all(not row['status'].startswith('ERROR') and (row['disk_template'] != 'mirror' or row['replica.state'] == 'in-sync') for row in rows)
            return not jobs and not repairs and whole

        self.give('sleep 2')
        e2e.wait_until('jobs and repairs end', at_rest, 120)

    def ask(self, words):
        self.give(f'fettle {words} 2>/dev/null')
        return json.loads(self.said)

    def run(self, command, typed=None):
        command = self.own(command)
        if re.match(r'(make|export PATH=)\b', command):
            return
        if re.match(r'sleep \d+', command):
            self.rest()
            return
        if re.search(r'fettle lab up', command):
            command = re.sub('fettle lab up', 'fettle lab up --replica-lost-ms 1000 --watcher-interval-ms 500', command)
        self.give(command, typed)


def check_shape(session, block):
    """Each command that a form names is one, with the flags that stand in it."""
    for command in commands_of(block.lines):
        bare = re.sub(r'\s+#.*$', '', command)
        found = re.match(r'fettle ([a-z-]+)(?: ([a-z-]+(?:\|[a-z-]+)*))?', bare)
        if not found or found.group(1).isupper():
            continue
        for verb in (found.group(2) or '').split('|'):
            assert session.give(f'fettle {found.group(1)} {verb} --help') == 0, f'{session.page}, line {block.line}: {command}: {session.said}'
            for flag in re.findall(r'(?<![\w-])--[a-z][a-z-]*', bare):
                known = session.said.replace('--[no-]', '--')
                renamed = {'--disks': '--disk', '--nics': '--net'}.get(flag, flag)
                assert re.search(rf'{renamed}\b', known), f'{session.page}, line {block.line}: {command}: no {flag}'


def shown_pattern(text):
    """As a regular expression: digits for digits, spaces for spaces, … for anything."""
    parts = []
    for piece in re.split(r'(\d+|\s+|…)', text.strip()):
        parts.append(r'\d+' if piece.isdigit() else r'\s+' if piece.isspace() else r'[\s\S]*?' if piece == '…' else re.escape(piece))
    return ''.join(parts)


def run_block(session, block):
    where = f'{session.page}, line {block.line}'
    if block.mark('no') is not None:
        assert block.mark('no'), f'{where}: why is it not run?'
        return
    if block.mark('shape') is not None:
        check_shape(session, block)
        return
    if block.mark('shows') is not None:
        text = session.own('\n'.join(block.lines))
        assert re.search(shown_pattern(text), session.said), f'{where} is not what was shown:\n{session.said}'
        return
    for mark in block.marks:
        if mark.startswith('first '):
            session.run(mark[len('first '):])
            assert session.code == 0, f'{where}: {mark}: exit code {session.code}: {session.said}'
    commands = commands_of(block.lines)
    for number, command in enumerate(commands, 1):
        last = number == len(commands)
        expected = int(block.mark('ends') or 0) if last else 0
        session.run(command, block.mark('type') if last else None)
        assert session.code == expected, f'{where}: {command}: exit code {session.code}, not {expected}: {session.said}'


def run_page(path):
    page = os.path.basename(path)
    top, blocks = blocks_of(path)
    with tempfile.TemporaryDirectory(prefix='fettle-guide-', dir='/var/tmp') as folder:
        os.chmod(folder, 0o755)
        session = Session(page, folder)
        try:
            for mark in top:
                if mark.startswith('words '):
                    session.words = dict(word.split('=', 1) for word in shlex.split(mark)[1:])
                if mark == 'lab' or mark.startswith('lab '):
                    session.run(f'fettle lab up --dir {LAB} {mark[4:]}')
                    assert session.code == 0, session.said
                    session.run(f'export FETTLE_ROOT={LAB}/node1')
            for block in blocks:
                run_block(session, block)
        finally:
            session.give(session.own(f'unset FETTLE_ROOT; fettle lab down --dir {LAB}'))
            print(f'# {page}: {session.said.strip()}', flush=True)
            session.close()


def pages():
    guide = sorted(glob.glob(os.path.join(e2e.ROOT, 'docs', 'guide', '*.md')))
    return [path for path in [os.path.join(e2e.ROOT, 'README.md'), *guide] if blocks_of(path)[1]]


def test_of(path):
    @title(f'/guide/{os.path.basename(path)}')
    def test():
        run_page(path)
    return test


@title('/guide/no-block-is-passed-over')
def test_blocks():
    """Every block has commands that are run, or says why not; the marks are words that are known."""
    known = re.compile(r'(lab|words|first|no|shape|shows|ends|type)\b')
    for path in pages():
        top, blocks = blocks_of(path)
        for block in blocks:
            assert all(known.match(mark) for mark in block.marks + top), (path, block.line, block.marks)
        runs = [block for block in blocks if all(block.mark(word) is None for word in ('no', 'shape', 'shows'))]
        makes = any('fettle lab up' in line for block in runs for line in block.lines)
        assert not runs or makes or any(mark.split()[0] == 'lab' for mark in top), f'{path}: in which lab is line {runs[0].line} run?'


if __name__ == '__main__':
    assert fettlelib
    e2e.run(test_blocks, *[test_of(path) for path in pages() if e2e.LONG or os.path.basename(path) in CHEAP])
