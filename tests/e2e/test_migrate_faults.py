#!/usr/bin/env python3
"""Faults at random moments of live migrations: power, links, node daemons, jobs, QEMUs; of guests that count (moves.py).

After each round there is one copy that counts on, no count was lost or printed twice, record and hosts agree, and the
cluster has mended itself; a repair that asks for a person is counted. FETTLE_LONG=1 makes 200 rounds, FETTLE_ROUNDS sets
how many, FETTLE_SEED which ones.
"""
import itertools
import os
import random
import signal
import time

import e2e
import moves
from e2e import title
from moves import check_counts, create, migrate, one_process, place, remove

ROUNDS = int(os.environ.get('FETTLE_ROUNDS', '200' if e2e.LONG else '3'))
ROUNDS_OF_A_GUEST = 10
PATIENCE_S = 30  # for the rounds of the short run: what is left over then is not begun
SEED = int(os.environ.get('FETTLE_SEED', str(random.randrange(1 << 30))))
FAULTS = ('power', 'power', 'link', 'link', 'noded', 'job', 'qemu')
TEMPLATES = ('mirror', 'file', 'mirror', 'sharedfile')
chance = random.Random(SEED)
lab = None
helped = 0  # repairs that asked for a person


def power(node):
    """The power is cut; half of the time somebody says so before it comes back."""
    lab.lab('power', node, 'off')
    told = chance.random() < 0.5
    if told:
        lab.cli('node', 'modify', node, '--offline', 'yes', '--statement', 'test: the power was cut')
        time.sleep(chance.random() * 3)
    lab.lab('power', node, 'on')
    if told:
        lab.cli('node', 'modify', node, '--offline', 'no')
    return 'declared offline' if told else 'it came back'


def link(node):
    lab.lab('link', node, 'down')
    pause = chance.random() * 4
    time.sleep(pause)
    lab.lab('link', node, 'up')
    return f'for {pause:.2f} s'


def kill_noded(node):
    lab.lab('kill', f'noded@{node}')
    return ''


def kill_job(job):
    pid = e2e.job_pid(lab, job)
    try:
        if pid != 0:
            os.kill(pid, signal.SIGKILL)
            return ''
    except ProcessLookupError:
        pass
    return 'it had ended'


def kill_qemu(uuid, node):
    for pid in lab.qemu_processes(uuid):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                if f'/{node}/'.encode() in file.read():
                    os.kill(pid, signal.SIGKILL)
        except (OSError, ProcessLookupError):
            pass
    return ''


def strike(kind, node, job, uuid):
    if kind == 'job':
        return kill_job(job)
    if kind == 'qemu':
        return kill_qemu(uuid, node)
    return {'power': power, 'link': link, 'noded': kill_noded}[kind](node)


def mend(name):
    global helped  # pylint: disable=global-statement
    helped += e2e.wait_mended(lab, name)


def ends(name):
    """Where it is, and where it shall go."""
    row = lab.instance(name, 'pnode', 'snodes', 'disk_template')
    if row['disk_template'] == 'mirror':
        return row['pnode'], row['snodes'][0]
    return row['pnode'], chance.choice([node for node in ('node1', 'node2', 'node3') if node != row['pnode']])


def one_round(number, name, uuid, kind, length):
    source, target = ends(name)
    node = chance.choice((source, target))
    if node == lab.master and kind in ('power', 'link'):
        node = target if node == source else source
    moment = chance.random() * length
    printed = check_counts(name, uuid)
    began = time.monotonic()
    job = lab.submit({'OP_ID': 'OP_INSTANCE_MIGRATE', 'instance_name': name, 'target_node': target})
    time.sleep(max(0, moment - (time.monotonic() - began)))
    detail = strike(kind, node, job, uuid)
    where = '' if kind == 'job' else f' at the {"source" if node == source else "target"} {node}'
    what = f'{kind}{where} after {moment:.3f} s{", " + detail if detail else ""}'
    try:
        status = lab.wait_job(job, 240)[0]
        mend(name)
        now = place(name)
        e2e.wait_counting(lab, name, uuid, now, max(printed, lab.printed(name, uuid, now)), 120)
        one_process(name, uuid)
        check_counts(name, uuid)
        e2e.verify_clean(lab, 120)
    except Exception as error:
        raise AssertionError(f'round {number}, {name}, {source} to {target}, {what} (seed {SEED}): {error}') from error
    print(f'# round {number}, {name}: {source} to {target}, {what}: job {status}, runs on {now}, whole after '
          f'{time.monotonic() - began:.1f} s', flush=True)


def hunt(name, template, rounds):
    """Rounds with one guest. A migration that nobody disturbs tells how long one takes."""
    uuid = create(name, template, disks=[{'size': 8}], os_type='tick-fast' if template == 'mirror' else 'tick')
    began = time.monotonic()
    migrate(name, *(() if template == 'mirror' else ('--target-node', 'node3')))
    length = (time.monotonic() - began) * 1.2
    mend(name)
    for number, kind in rounds:
        one_round(number, name, uuid, kind, length)
    print(f'# {name}: {check_counts(name, uuid)} counts printed, none twice', flush=True)
    remove(name)


def kinds():
    """Of each fault about as many; which comes when is left to chance."""
    while True:
        yield from chance.sample(FAULTS, len(FAULTS))


@title(f'/migrate/faults-at-random-moments-{ROUNDS}-rounds#SAF-17,SAF-19,SAF-20')
def test_faults():
    began, number = time.monotonic(), 0
    faults = kinds()
    for template in itertools.cycle(TEMPLATES):
        if number >= ROUNDS or (not e2e.LONG and number > 1 and time.monotonic() - began > PATIENCE_S):
            break
        count = min(ROUNDS_OF_A_GUEST if ROUNDS > len(TEMPLATES) else 1, ROUNDS - number)
        hunt(f'{template}{number}', template, [(number + i + 1, next(faults)) for i in range(count)])
        number += count
    print(f'# {number} rounds in {time.monotonic() - began:.0f} s, a person was asked {helped} times', flush=True)
    assert helped <= max(1, number // 10), f'a person was asked {helped} times in {number} rounds'


@title('/migrate/no-sanitizer-report-after-faults')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    print(f'# seed {SEED}')
    with e2e.new_lab(options=('--replica-lost-ms', '2000', '--watcher-interval-ms', '500')) as lab:
        moves.lab = lab
        lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
        e2e.run(test_faults, test_logs)
