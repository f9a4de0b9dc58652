#!/usr/bin/env python3
"""Hosts that fail in part, at random moments, below guests that write all the time: disks that fail or are full, guests that hang, a state
that cannot be written; one fault, or a second one before the first is over, never so that no whole copy is left.

No count that a guest has printed is lost, as it prints one only after its disk has it. While nobody helps, every guest that some node can run
counts on; when an operator has ended the faults, all is as before. FETTLE_LONG=1 makes 30 rounds, FETTLE_ROUNDS sets how many, FETTLE_SEED
which ones.
"""
import contextlib
import os
import random
import signal
import time

import e2e
import moves
from e2e import fettlelib, title, wait_until
from moves import check_counts, create, one_process

ROUNDS = int(os.environ.get('FETTLE_ROUNDS', '30' if e2e.LONG else '5'))
SEED = int(os.environ.get('FETTLE_SEED', str(random.randrange(1 << 30))))
NODES = ('node1', 'node2', 'node3')
GUESTS = {'busy': ('mirror', ('node2', 'node3'), 'tick-fast'), 'left': ('mirror', ('node3', 'node1'), 'tick'),
          'right': ('mirror', ('node1', 'node2'), 'tick'), 'alone': ('file', ('node3',), 'tick'), 'shared': ('sharedfile', ('node2',), 'tick')}
PATIENCE_S = None if e2e.LONG or 'FETTLE_ROUNDS' in os.environ else 75  # of the short run: what is left over then is not begun
TAIL = 4096  # of a console, which has the last count
chance = random.Random(SEED)
lab = None
uuids = {}
helped = 0  # repairs that asked for a person


class Fault:
    """What was done, and what an operator does about it. Disks of `disks` cannot be written, the state of `state` neither; the guest `held`
    cannot go on by itself."""

    def __init__(self, what, disks=None, state=None, held=None, end=lambda: None):
        self.what, self.disks, self.state, self.held, self.end = what, disks, state, held, end


# --- faults, each of a node or of a guest on it ---

def places():
    """{guest: [its node, that of its replica]}"""
    return {row['name']: [row['pnode'], *(row['snodes'] or [])] for row in lab.query('instance', ['name', 'pnode', 'snodes'])}


def power_cycle(node):
    """Half of the time somebody says meanwhile that the node is dead."""
    lab.lab('power', node, 'off')
    told = node != lab.master and chance.random() < 0.5
    if told:
        lab.cli('node', 'modify', node, '--offline', 'yes', '--statement', 'test: the power was cut')
        time.sleep(chance.random() * 3)
    lab.lab('power', node, 'on')
    if told:
        lab.cli('node', 'modify', node, '--offline', 'no')


def disks_fail(node):
    lab.lab('disk-fail', node)
    return Fault(f'the disks of {node} fail', disks=node, end=lambda: power_cycle(node))


def disks_full(node):
    lab.lab('disk-fill', node, '--leave', '0')
    return Fault(f'the disks of {node} are full', disks=node, end=lambda: lab.lab('disk-unfill', node))


def state_full(node):
    lab.lab('state-fill', node)
    return Fault(f'the state of {node} is full', state=node, end=lambda: lab.lab('state-unfill', node))


def state_read_only(node):
    lab.lab('state-readonly', node)
    return Fault(f'the state of {node} is read-only', state=node, end=lambda: power_cycle(node))


def signal_guest(name, number):
    for pid in lab.qemu_processes(uuids[name]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def some_guest(node):
    return chance.choice([name for name, place in places().items() if place[0] == node] or list(GUESTS))


def guest_hangs(node):
    """It goes on, or is killed by somebody who has waited for long enough."""
    name = some_guest(node)
    signal_guest(name, signal.SIGSTOP)
    return Fault(f'{name} hangs', held=name, end=lambda: signal_guest(name, chance.choice((signal.SIGCONT, signal.SIGKILL))))


def guest_killed(node):
    name = some_guest(node)
    signal_guest(name, signal.SIGKILL)
    return Fault(f'{name} is killed', held=name if GUESTS[name][0] == 'file' else None)


def noded_killed(node):
    lab.lab('kill', f'noded@{node}')
    return Fault(f'the node daemon of {node} is killed')


def power_cut(node):
    power_cycle(node)
    return Fault(f'the power of {node} is cut for a moment')


FAULTS = (disks_fail, disks_full, guest_hangs, state_read_only, state_full)
# What may come on top: on any node; on the same one. Two nodes whose disks fail or stand still may leave no whole copy, if one of them fails.
ANYWHERE = {disks_fail: (guest_hangs, guest_killed, noded_killed),
            disks_full: (guest_hangs, guest_killed, noded_killed, power_cut, disks_full),
            guest_hangs: (disks_fail, disks_full, power_cut),
            state_read_only: (guest_hangs, noded_killed, disks_full),
            state_full: (guest_hangs, noded_killed, disks_full)}
THERE = {disks_fail: (power_cut, state_read_only), disks_full: (disks_fail, state_full), guest_hangs: (guest_killed, state_full),
         state_read_only: (disks_fail, guest_killed, power_cut), state_full: (disks_fail, guest_killed)}


def strike(kind, node):
    """One fault, and half of the time another one. A master that cannot write puts nothing on record: what comes on top then waits for it."""
    faults = [kind(node)]
    if chance.random() < 0.5:
        time.sleep(chance.random() * 8)
        more = [(second, chance.choice(NODES)) for second in ANYWHERE[kind]] + [(second, node) for second in THERE[kind]]
        more = [one for one in more if one != (kind, node) and not blind(kind, node) and not blind(*one)]
        second, where = chance.choice(more or [(guest_hangs, node)])
        faults.append(second(where))
    return faults


def blind(kind, node):
    return kind in (state_read_only, state_full) and node == lab.master


# --- what must be so ---

def last_count(name):
    """What the guest has printed last, wherever it ran."""
    found = [0]
    for node in NODES:
        with contextlib.suppress(FileNotFoundError), open(lab.console_path(name, uuids[name], node), 'rb') as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            found += map(int, fettlelib.COUNT.findall(file.read()))
    return max(found)


def held(faults):
    """Those guests of which no node has a copy that it could run, or whom only a person can tell from one that is at work."""
    names = {fault.held for fault in faults if fault.held}
    disks, state = {fault.disks for fault in faults if fault.disks}, {fault.state for fault in faults if fault.state}
    for name, place in (places() if disks else {}).items():
        if place[0] in disks and (GUESTS[name][0] == 'file' or (GUESTS[name][0] == 'mirror' and place[1:2] and place[1] in disks | state)):
            names.add(name)
    return names


def count_on(names):
    before = {name: last_count(name) for name in names}
    for name, count in before.items():
        wait_until(f'{name} counts beyond {count}', lambda name=name, count=count: last_count(name) > count, 120)


def mend(name):
    global helped  # pylint: disable=global-statement
    helped += e2e.wait_mended(lab, name)


def check_images(name, printed):
    """The copies that are said to be whole have what was printed."""
    row = lab.instance(name, 'pnode', 'snodes', 'replica', 'disk_template')
    own = 'shared' if row['disk_template'] == 'sharedfile' else 'disks'
    copies = [(row['pnode'], own, f'{uuids[name]}.disk0.raw')]
    if row['disk_template'] == 'mirror':
        copies.append((row['snodes'][0], own, f'{uuids[name]}.{row["replica"]}.disk0.raw'))
    for node, folder, image in copies:
        count = fettlelib.image_count(os.path.join(lab.root(node), 'var', folder, image))
        assert count >= printed, f'{name} had printed {printed}, {image} on {node} has {count}'


def all_whole():
    for name in GUESTS:
        mend(name)
    count_on(GUESTS)
    for name, uuid in uuids.items():
        one_process(name, uuid)
        check_counts(name, uuid)
    e2e.verify_clean(lab, 120)


def one_round(number, kind):
    node, words = chance.choice([*NODES, *(place[0] for place in places().values())]), [kind.__name__]
    began = time.monotonic()
    time.sleep(chance.random() * 2)
    try:
        faults = strike(kind, node)
        words = [fault.what for fault in faults]
        if chance.random() < 0.5:
            words.append('nobody helps')
            time.sleep(chance.random() * 4)
            count_on(set(GUESTS) - held(faults))
        else:
            time.sleep(chance.random() * 4)
        lasted = time.monotonic() - began
        for fault in reversed(faults):
            fault.end()
        all_whole()
    except Exception as error:
        raise AssertionError(f'round {number}, {node}, {", ".join(words)} (seed {SEED}): {error}') from error
    print(f'# round {number}: {", ".join(words)}: ended after {lasted:.1f} s, whole after {time.monotonic() - began:.1f} s', flush=True)


def kinds():
    """Of each fault about as many; which comes when is left to chance."""
    while True:
        yield from chance.sample(FAULTS, len(FAULTS))


@title(f'/faults/hosts-that-fail-in-part-{ROUNDS}-rounds#SAF-13,SAF-24,SAF-25,SAF-27,SAF-92')
def test_faults():
    for name, (template, nodes, os_type) in GUESTS.items():
        uuids[name] = create(name, template, disks=[{'size': 8}], nodes=nodes, os_type=os_type)
    all_whole()
    began, number = time.monotonic(), 0
    for number, kind in zip(range(1, ROUNDS + 1), kinds()):
        one_round(number, kind)
        if PATIENCE_S and time.monotonic() - began > PATIENCE_S:
            break
    counts = {name: last_count(name) for name in GUESTS}
    print(f'# {number} rounds in {time.monotonic() - began:.0f} s, {counts} printed, a person was asked {helped} times', flush=True)
    assert helped <= max(1, number // 10), f'a person was asked {helped} times in {number} rounds'
    for name, uuid in uuids.items():
        lab.do('OP_INSTANCE_SHUTDOWN', instance_name=name, wait=240)
        check_counts(name, uuid)
        check_images(name, last_count(name))


@title('/faults/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    print(f'# seed {SEED}')
    with e2e.new_lab(options=('--replica-lost-ms', '5000', '--watcher-interval-ms', '500')) as lab:
        moves.lab = lab
        lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
        lab.cli('cluster', 'modify', '--repair-storm-percent', '100')  # all nodes fail within the hour
        e2e.run(test_faults, test_logs)
