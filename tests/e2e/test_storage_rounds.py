#!/usr/bin/env python3
"""Rounds of faults of volume services in the middle of their work: three real ones on one directory, which clean for each other by themselves.

In each round some requests are made, mostly while the directory stands still (fsfreeze), so that they are in somebody's hands; then services
are killed or stopped, or the master's, and it goes on. In the end of each no row is left, no status of work, no data without a record, no
record without its data, and what is in each that was not touched is what was in it. FETTLE_ROUNDS sets how many rounds, FETTLE_SEED which
ones, FETTLE_LONG=1 makes it 100.
"""
import collections
import contextlib
import os
import random
import time

import e2e
import test_volumes as stored
from e2e import fettlelib, title, wait_until

FULL_GIB = 60
ROUNDS = int(os.environ.get('FETTLE_ROUNDS', '100' if e2e.LONG else '10'))
SEED = int(os.environ.get('FETTLE_SEED', '20261127'))
NODES = ('node1', 'node2', 'node3')
BACKEND, DOWN_S, PATIENCE_S = 'dir1', 3, 60
PLACES = (0, 5 << 20, (1 << 30) - 16)  # where each has its mark, of 16 bytes
BLANK = bytes(16)
FAULTS = ('a kill', 'two kills', 'a stop', 'a stop and a kill', 'a kill of the master\'s wconfd', 'a kill of the watcher', 'nothing')
AT_REST = {'available', 'error', 'error_extending', 'error_deleting'}
lab = None


# --- what is there ---

def at_rest():
    """No row is left, and no status of work."""
    found = [*stored.volumes().values(), *stored.snapshots().values()]
    return not lab.query('worker', ['uuid']) and all(one['status'] in AT_REST for one in found)


def content(kind, found):
    return stored.read(stored.data(kind, found), 16, *PLACES) if found['data'] else None


def contents():
    """{UUID: its marks} of all that has data."""
    kinds = (('volumes', stored.volumes()), ('snapshots', stored.snapshots()))
    return {one['uuid']: content(kind, one) for kind, known in kinds for one in known.values() if one['data']}


class Round:
    """What is asked for in one round: of each volume one thing at most. `marks`: what each has in it, by name."""

    def __init__(self, number, chance, marks):
        self.number, self.chance, self.marks = number, chance, marks
        self.free = [one for one in stored.volumes().values() if one['name'] in marks]
        self.asked = collections.Counter()
        chance.shuffle(self.free)

    def ask(self, what, kind, *words):
        code, _, err = lab.run(kind, *words, '--no-wait', check=False)
        assert code == 0, (self.number, kind, words, code, err)
        self.asked[what] += 1

    def take(self, status='available'):
        found = next((one for one in self.free if one['status'] == status), None)
        if found:
            self.free.remove(found)
        return found

    def create(self, number):
        name = f'v{self.number}-{number}'
        self.ask('create', 'volume', 'create', name, '--size', '1', '--backend', BACKEND)
        self.marks[name] = BLANK

    def extend(self, _number):
        found = self.take()
        if found:
            self.ask('extend', 'volume', 'extend', found['name'], '--size', str(found['size'] + 1))

    def delete(self, _number):
        found = self.take('error') or self.take('error_extending') or self.take()
        if found:
            self.ask('delete', 'volume', 'delete', found['name'], '--cascade')

    def snapshot(self, number):
        found = self.take()
        name = f's{self.number}-{number}'
        if found:
            self.ask('snapshot', 'snapshot', 'create', name, '--volume', found['name'])
            self.marks[name] = self.marks[found['name']]

    def restore(self, number):
        """A volume of a snapshot whose own volume is left alone in this round."""
        name = f'r{self.number}-{number}'
        found = next((one for one in stored.snapshots().values() if one['status'] == 'available'
                      and any(free['name'] == one['volume'] for free in self.free)), None)
        if found:
            self.free = [one for one in self.free if one['name'] != found['volume']]
            self.ask('create from a snapshot', 'volume', 'create', name, '--snapshot', found['name'])
            self.marks[name] = self.marks[found['name']]

    def unsnapshot(self, _number):
        found = next((one for one in stored.snapshots().values() if one['status'] in ('available', 'error')
                      and any(free['name'] == one['volume'] for free in self.free)), None)
        if found:
            self.free = [one for one in self.free if one['name'] != found['volume']]
            self.ask('delete a snapshot', 'snapshot', 'delete', found['name'])

    def requests(self):
        """What its disk may promise is not enough for all that many rounds would make."""
        held = sum(one['size'] for known in (stored.volumes(), stored.snapshots()) for one in known.values())
        acts = [self.delete, self.unsnapshot] if held > FULL_GIB else [self.create, self.create, self.extend, self.delete, self.snapshot, self.snapshot, self.restore, self.unsnapshot]
        for number in range(7):
            self.chance.choice(acts)(number)


# --- what breaks ---


def strike(fault, chance):
    """The nodes whose services stand still from now on."""
    first, second = chance.sample(NODES, 2)
    if fault == 'a kill of the master\'s wconfd':
        lab.lab('kill', f'wconfd@{lab.master}')
    elif fault == 'a kill of the watcher':
        lab.lab('kill', f'watcher@{lab.master}')
    for node, verb in {'a kill': ((first, 'kill'),), 'two kills': ((first, 'kill'), (second, 'kill')), 'a stop': ((first, 'pause'),),
                       'a stop and a kill': ((first, 'pause'), (second, 'kill'))}.get(fault, ()):
        lab.lab(verb, f'volumed@{node}')
    return [first] if fault.startswith('a stop') else []


def up(*nodes):
    states = stored.services()
    return all(states.get(f'{node}@{BACKEND}') == 'up' for node in nodes)


def in_hands():
    """Somebody has taken something; or all is done already."""
    rows = lab.query('worker', ['service'])
    return not rows or any(row['service'] for row in rows)


def one_round(number, chance, marks):
    fault, frozen = chance.choice(FAULTS), chance.random() < 0.7
    now = Round(number, chance, marks)
    with fettlelib.standing_still(stored.place(BACKEND)) if frozen else contextlib.nullcontext():
        now.requests()
        if frozen:
            wait_until('something is in somebody\'s hands', in_hands, PATIENCE_S)
        time.sleep(chance.random() * 0.3)
        stopped = strike(fault, chance)
    wait_until('somebody serves', lab.find_master, PATIENCE_S)
    lab.luxi_connection = None
    wait_until('all is at rest', at_rest, PATIENCE_S)
    before = contents()
    for node in stopped:
        lab.lab('resume', f'volumed@{node}')
    wait_until('all serve', lambda: up(*NODES), PATIENCE_S)
    assert at_rest(), (number, fault)
    # What one that went on has made is nobody's, and goes with a sweep.
    if stopped:
        lab.lab('kill', f'volumed@{chance.choice(NODES)}')
    stored.check(BACKEND)
    assert contents() == before, (number, fault, before, contents())
    for kind, known in (('volumes', stored.volumes()), ('snapshots', stored.snapshots())):
        for one in known.values():
            assert not one['data'] or content(kind, one) == [marks[one['name']]] * len(PLACES), (number, fault, one)
    print(f'# round {number}: {fault}{", in mid-work" if frozen else ""}: ' + ', '.join(f'{count} {what}' for what, count in now.asked.items()),
          flush=True)
    return now.asked


def mark_all(marks):
    """Volumes that have none yet get a mark of their own."""
    for name, found in stored.volumes().items():
        if found['status'] == 'available' and marks[name] == BLANK and not any(s['volume'] == name for s in stored.snapshots().values()):
            marks[name] = found['uuid'].replace('-', '')[:16].encode()
            stored.write(stored.data('volumes', found), marks[name], *PLACES)


@title('/storage-rounds/nothing-is-left-and-nothing-is-harmed#CLN-02,CLN-23,CLN-26,CLN-61')
def test_rounds():
    marks, asked = {}, collections.Counter()
    for number in range(4):
        lab.cli('volume', 'create', f'v{number}', '--size', '1', '--backend', BACKEND)
        marks[f'v{number}'] = BLANK
    mark_all(marks)
    for number in range(ROUNDS):
        asked.update(one_round(number, random.Random(SEED + number), marks))
        mark_all(marks)
    print('#', ', '.join(f'{count} {what}' for what, count in sorted(asked.items())), flush=True)
    assert len(asked) >= 5 and sum(asked.values()) >= 3 * ROUNDS, asked
    for name in stored.volumes():
        lab.cli('volume', 'delete', name, '--cascade')
    stored.check(BACKEND)
    assert not stored.files(BACKEND)


@title('/storage-rounds/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


@contextlib.contextmanager
def backend():
    with fettlelib.disk_of_its_own(stored.place(BACKEND), 128) as path:
        lab.cli('backend', 'add', BACKEND, '--nodes', ','.join(NODES), '--path', path, *stored.THIN)
        wait_until('all serve', lambda: up(*NODES), PATIENCE_S)
        yield
        lab.cli('backend', 'remove', BACKEND)


if __name__ == '__main__':
    with e2e.new_lab(options=('--watcher-interval-ms', '500')) as lab:
        stored.lab, stored.folder = lab, os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', str(DOWN_S), '--auto-cleanup-enabled', 'yes',
                '--auto-cleanup-checks', '1')
        with backend():
            e2e.run(test_rounds, test_logs)
