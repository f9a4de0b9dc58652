"""`make demo GUEST=linux`: a node is emptied by live migration while its Linux guests are pinged, then another loses power."""
import os
import re
import time

import fettlelib
from fettlelib import wait_until

GUESTS = [('web1', 'node3', 'node2', fettlelib.address(101)), ('web2', 'node3', 'node1', fettlelib.address(102))]
DRAINED, VICTIM = 'node3', 'node2'
PATIENCE_S = 180  # to boot, or to move, when the guests are emulated on a busy machine
START = re.compile(rb'START (\d+)')


class Steps:
    """Tells where each instance is whenever that changes, until something holds."""

    def __init__(self, lab, timeline):
        self.lab, self.timeline, self.seen = lab, timeline, {}

    def tell(self):
        for name, *_ in GUESTS:
            row = self.lab.instance(name, 'pnode', 'snodes', 'replica.state', 'task_state')
            replica = f'replica on {row["snodes"][0]} {row["replica.state"]}' if row['snodes'] else 'no replica'
            state = f'on {row["pnode"]}, {replica}' + (f', {row["task_state"]}' if row['task_state'] else '')
            if self.seen.get(name) != state:
                self.timeline.say(name, state)
            self.seen[name] = state

    def until(self, what, condition):
        def holds():
            self.tell()
            return condition()
        wait_until(what, holds, PATIENCE_S)
        self.tell()


def whole(lab, name, avoid):
    """Runs, with a replica in sync, neither on the node to avoid, and nothing is being done with it."""
    row = lab.instance(name, 'pnode', 'snodes', 'replica.state', 'task_state', 'status')
    return (row['status'] == 'running' and row['replica.state'] == 'in-sync' and not row['task_state']
            and avoid not in [row['pnode'], *row['snodes']])


def create(lab):
    for name, primary, secondary, address in GUESTS:
        lab.cli('instance', 'create', name, '--disk-template', 'mirror', '--disk', 'size=16', '--memory', '128', '--pnode',
                primary, '--snode', secondary, '--net', 'mac=auto,link=br0', *fettlelib.linux_flags(address), '--submit')


def boots(lab, name, uuid, node):
    """The counts that the guest found on its disk each time it booted on a node."""
    try:
        with open(lab.console_path(name, uuid, node), 'rb') as file:
            return [int(n) for n in START.findall(file.read())]
    except FileNotFoundError:
        return []


def empty_a_node(lab, timeline, pings):
    print(f'\n{DRAINED} is to be emptied: fettle node modify {DRAINED} --drained yes')
    timeline.zero = time.monotonic()
    steps = Steps(lab, timeline)
    steps.tell()
    marks = {name: ping.now() for name, ping in pings.items()}
    lab.cli('node', 'modify', DRAINED, '--drained', 'yes')
    steps.until(f'{DRAINED} is empty', lambda: all(whole(lab, name, DRAINED) for name, *_ in GUESTS))
    time.sleep(1)
    gaps = {name: ping.longest_gap(marks[name]) for name, ping in pings.items()}
    for name, gap in gaps.items():
        if boots(lab, name, lab.instance(name, 'uuid')['uuid'], lab.instance(name, 'pnode')['pnode']):
            raise AssertionError(f'{name} did not move alive, it booted anew')
        timeline.say(name, f'longest time without an answer to ping while it moved: {gap * 1000:.0f} ms')
    return gaps


def cut_power(lab, timeline, pings):
    lab.cli('node', 'modify', DRAINED, '--drained', 'no')
    name = next(n for n, *_ in GUESTS if lab.instance(n, 'pnode')['pnode'] == VICTIM)
    uuid = lab.instance(name, 'uuid')['uuid']
    print(f'\n{DRAINED} is in use again. The power of {VICTIM}, where {name} runs, is cut.')
    timeline.zero = time.monotonic()
    mark = pings[name].now()
    lab.lab('power', VICTIM, 'off')
    printed = lab.printed_anywhere(name, uuid)
    timeline.say('operator:', f'{VICTIM} is dead')
    lab.cli('node', 'modify', VICTIM, '--offline', 'yes', '--statement', 'demo: the power was cut')
    steps = Steps(lab, timeline)
    steps.until(f'{name} is whole again', lambda: all(whole(lab, n, VICTIM) for n, *_ in GUESTS))
    wait_until(f'{name} answers', lambda: pings[name].answered_since(time.time() - 0.5), PATIENCE_S)
    gap = pings[name].longest_gap(mark)
    timeline.say(name, f'answers again: {gap:.1f} s without an answer, its boot included')
    now = lab.instance(name, 'pnode')['pnode']
    found = wait_until(f'{name} reads its disk', lambda: boots(lab, name, uuid, now), PATIENCE_S)[-1]
    if found < printed:
        raise AssertionError(f'{name} had printed {printed}, its disk has {found} after the power cut')
    timeline.say(name, f'had printed count {printed}; its disk had {found} when it booted')
    return gap


def play(lab, timeline, folder):
    """Returns the longest ping gaps in seconds: of each guest in its live migration, and of the failover."""
    print('Three nodes, two Linux guests with mirrored disks on one of them; a policy tag allows failover.')
    fettlelib.install_linux(lab, folder)
    lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
    create(lab)
    pings = {name: fettlelib.Ping(lab, address) for name, _, _, address in GUESTS}
    try:
        for name, primary, secondary, address in GUESTS:
            wait_until(f'{name} answers', lambda p=pings[name]: p.answered_since(0), PATIENCE_S)
            wait_until(f'{name} is whole', lambda n=name: whole(lab, n, ''), PATIENCE_S)
            timeline.say(name, f'runs on {primary}, mirrored to {secondary}, answers at {address}')
        moved = empty_a_node(lab, timeline, pings)
        failover = cut_power(lab, timeline, pings)
    finally:
        for ping in pings.values():
            ping.stop()
    print(f'\nLongest time without an answer: live migration {max(moved.values()) * 1000:.0f} ms, failover {failover:.1f} s.')
    return moved, failover
