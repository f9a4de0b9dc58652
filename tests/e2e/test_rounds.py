#!/usr/bin/env python3
"""Rounds of faults at masters and candidates, real processes in a lab, while changes and jobs are submitted.

After each round: no answered change is lost, no job is there twice or was begun twice, one node is master, (history, epoch, serial) has not gone
back, all copies come to the same. The engine is the argument: `sqlite`, or `etcd`, where the candidates find the next master
themselves; with sqlite the person who makes another node the master is this test, when the power of the old one is cut.
FETTLE_ROUNDS sets how many rounds, FETTLE_SEED which ones, FETTLE_LONG=1 makes it 100; FETTLE_FAULTS="A FAULT;ANOTHER" takes these.
"""
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import statistics
import sys
import time

import e2e
from e2e import fettlelib, title, wait_until
from load import FINAL, Load

ENGINE = sys.argv[1] if len(sys.argv) > 1 else 'sqlite'
SEED = int(os.environ.get('FETTLE_SEED', '20261122'))
NODES = ('node1', 'node2', 'node3')
FAULTS = ['power of the master', 'link of the master', 'kill of the master', 'pause of the master', 'kill of a candidate',
          'link of a candidate', 'power of a candidate', 'pause of a candidate']
if ENGINE == 'etcd':
    FAULTS += ['member of the master', 'link of the master, then its power', 'two links', 'member of a candidate',
               'frozen member of the master', 'frozen member of a candidate']
if 'FETTLE_FAULTS' in os.environ:
    FAULTS = [FAULTS[FAULTS.index(fault)] for fault in os.environ['FETTLE_FAULTS'].split(';')]
ROUNDS = int(os.environ.get('FETTLE_ROUNDS', '100' if e2e.LONG else str(len(FAULTS))))
PAUSE_S = 6  # longer than a lease
LEASE_S = 5
EPOCH = re.compile(r'^(\S+Z) .*master of history (\d+), epoch (\d+)', re.M)

lab = None
failovers = []  # seconds without a master that answers
highest = (0, 0, 0)


def read(node, question):
    """Rows of a candidate's store; [] while it is made anew."""
    path = os.path.join(lab.root(node), 'var', 'store.db')
    try:
        with contextlib.closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5)) as db:
            return db.execute(question).fetchall()
    except sqlite3.OperationalError:
        return []


def meta(node):
    return dict(read(node, 'SELECT key, value FROM meta'))


def keys(node):
    """Tags and jobs in a candidate's store."""
    return {key.rsplit('/', 1)[1] for key, in read(node, "SELECT '/' || key FROM objects WHERE kind IN ('tag', 'job')")}


def others(node):
    return [one for one in NODES if one != node]


def answers(node):
    """Whether this node's daemons are those of the master; lab.master from then on."""
    known, lab.master = lab.master, node
    if lab.run('node', 'list', check=False)[0] == 0:
        lab.luxi_connection = None
        return True
    lab.master = known
    return False


def serves(*nodes):
    """The first that is the master, of these."""
    return next((node for node in nodes or [lab.master] if answers(node)), None)


def person():
    """Makes another node the master, as often as it is refused for the moment."""
    lab.luxi_connection, lab.master = None, others(lab.master)[0]
    last = []
    def done():
        last[:] = lab.run('cluster', 'master-failover', '--yes', check=False)
        found = re.search(r'^Node (\S+) becomes the master', last[1], re.M)
        if last[0] == 0 and found:
            lab.master = found.group(1)
        return last[0] == 0
    try:
        wait_until('the person makes a candidate the master', done, 60, step=0.3)
    except TimeoutError as error:
        raise AssertionError(f'{error}: {last[2]}') from error


def next_master(old):
    """Until another one than the lost master serves; the clients of the load find it themselves."""
    begun = time.monotonic()
    if ENGINE == 'sqlite':
        person()
    wait_until('another one is master', lambda: serves(*others(old)), 60)
    failovers.append(time.monotonic() - begun)


def cut(nodes, seconds):
    """Cuts the links of nodes; if the master's is among them etcd's next one must be another."""
    old = lab.master
    for node in nodes:
        lab.lab('link', node, 'down')
    if ENGINE == 'etcd' and nodes == [old]:
        next_master(old)
    else:
        time.sleep(seconds)


def find_member(node):
    """The process of a node's etcd; None: there is none."""
    mark = os.path.join(lab.root(node), 'var', 'etcd').encode()
    for entry in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            with open(f'/proc/{entry}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
            if words[0].endswith(b'etcd') and any(mark in word for word in words):
                return int(entry)
    return None


def member_of(node):
    """The same; what an earlier round ended is there again soon."""
    return wait_until(f'a member of etcd runs on {node}', lambda: find_member(node))


def kill_member(node):
    """Its noded starts it again."""
    os.kill(member_of(node), signal.SIGKILL)


def freeze_member(node):
    """It is there and answers nobody, for longer than a lease; then it goes on where it was."""
    member = os.pidfd_open(member_of(node))
    try:
        signal.pidfd_send_signal(member, signal.SIGSTOP)
        time.sleep(PAUSE_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(member, signal.SIGCONT)
        os.close(member)


def play(fault, chance):
    old = lab.master
    victim = old if 'of the master' in fault else chance.choice(others(old))
    if fault.startswith('power'):
        lab.lab('power', victim, 'off')
        if victim == old:
            next_master(old)
        time.sleep(chance.random())
        lab.lab('power', victim, 'on')
    elif fault.startswith('kill'):
        lab.lab('kill', f'wconfd@{victim}')
    elif fault.startswith('member'):
        kill_member(victim)
    elif fault.startswith('frozen'):
        freeze_member(victim)
    elif fault.startswith('pause'):
        lab.lab('pause', f'wconfd@{victim}')
        time.sleep(PAUSE_S)
        lab.lab('resume', f'wconfd@{victim}')
    elif fault == 'two links':
        cut([old, victim], LEASE_S + 3 * chance.random())
        for node in (old, victim):
            lab.lab('link', node, 'up')
    else:
        cut([victim], 2 + chance.random())
        if fault.endswith('its power'):
            lab.lab('power', victim, 'off')
            time.sleep(chance.random())
            lab.lab('power', victim, 'on')
        lab.lab('link', victim, 'up')
    wait_until('somebody serves', lambda: serves(lab.master, *(NODES if ENGINE == 'etcd' else ())), 60)


def check_there(load):
    """What was answered until now is in every copy, sooner or later."""
    wanted = set(load.answered) | {str(job) for job in list(load.jobs.values())}  # a client adds to it meanwhile
    def missing():
        return {node: sorted(wanted - keys(node))[:9] for node in NODES}
    try:
        wait_until('', lambda: not any(missing().values()), 60)
    except TimeoutError as error:
        raise AssertionError(f'answered, but not there: {missing()}') from error


def info():
    """What the master says of itself; None: nobody says anything at this moment."""
    code, out, _ = lab.run('cluster', 'info', '--json', check=False) if serves(lab.master, *NODES) else (1, '', '')
    return json.loads(out) if code == 0 else None


def check_master():
    """One is, and says so; with etcd every store is a copy."""
    global highest  # pylint: disable=global-statement
    said = wait_until('somebody serves', info, 60)
    def engines():
        return [node for node in NODES if meta(node).get('role') == '0']
    wait_until(f'no store but that of the master {lab.master} is the engine (with etcd not even that)',
               lambda: engines() == ([] if ENGINE == 'etcd' else [lab.master]), 60)
    now = said['history'], said['epoch'], said['serial']
    assert said['master'] == lab.master, f'{lab.master} says that {said["master"]} is the master'
    assert now >= highest and now[2] >= highest[2], f'{now} after {highest}'
    highest = now


def check_epochs():
    """Each epoch had one node, and later masters later epochs."""
    begun = []
    for node in NODES:
        with open(os.path.join(lab.root(node), 'log', 'wconfd.log'), encoding='utf-8') as file:
            begun += [(when, (int(history), int(epoch)), node) for when, history, epoch in EPOCH.findall(file.read())]
    assert begun, 'nobody has ever said that it is the master'
    nodes = {(epoch, node) for _, epoch, node in begun}
    assert len(nodes) == len({epoch for epoch, _ in nodes}), f'two nodes under one epoch: {sorted(nodes)}'
    order = [epoch for _, epoch, _ in sorted(begun)]
    assert order == sorted(order), f'epochs went back: {order}'


def check_jobs(load):
    """Every answered job is there once, and has ended; a change that was answered, as it was answered."""
    def rows():
        return {row['id']: row for row in lab.query('job', ['id', 'status', 'request_id'])}
    wait_until('all jobs have ended', lambda: all(row['status'] in FINAL for row in rows().values()), 120, step=0.5)
    found = rows()
    by_request = {}
    for job, row in found.items():
        by_request.setdefault(row['request_id'], []).append(job)
    for request, job in load.jobs.items():
        assert by_request.get(request) == [job], f'{request} was answered as job {job}, there are {by_request.get(request)}'
    for tag, job in load.answered.items():
        assert found[job]['status'] == 'success', f'the change {tag} was answered, its job {job} is {found[job]["status"]}'
    ended = [job for job, row in found.items() if row['status'] == 'success']
    load.starts.check([job for job in ended if (found[job]['request_id'] or '').startswith('job-')])
    return len(ended)


def check(load):
    load.starts.check([])
    check_there(load)
    check_master()


@title(f'/mastership/{ENGINE}#SAF-01,SAF-04,SAF-06,SAF-07,SAF-08,SAF-30,WCF-16')
def test_rounds():
    chance = random.Random(SEED)
    load = Load(lab)
    try:
        for number in range(ROUNDS):
            fault = FAULTS[number % len(FAULTS)]
            try:
                play(fault, chance)
                check(load)
            except (AssertionError, TimeoutError, fettlelib.CommandFailed) as error:
                raise AssertionError(f'round {number}, {fault}: {error}') from error
    finally:
        load.end()
    wait_until('all copies are equal', lambda: e2e.equal_copies(lab, *NODES), 60)
    check(load)
    ended = check_jobs(load)
    check_epochs()
    assert len(load.answered) >= ROUNDS and ended >= ROUNDS, f'{len(load.answered)} changes, {ended} jobs are no load'
    print(f'# {ROUNDS} rounds, {len(load.jobs)} jobs and {len(load.answered)} changes answered, {load.repeated} times nobody '
          f'answered; failovers: {len(failovers)}'
          + (f', median {statistics.median(failovers):.1f} s, worst {max(failovers):.1f} s' if failovers else ''), flush=True)


@title('/mastership/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


def main():
    global lab  # pylint: disable=global-statement
    options = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '1000', '--candidates', '3', '--engine', ENGINE)
    with e2e.new_lab(options=options) as lab:
        wait_until('somebody serves', lambda: serves(*NODES), 60)
        wait_until('all copies are there', lambda: e2e.equal_copies(lab, *NODES), 60)
        e2e.run(test_rounds, test_logs)


if __name__ == '__main__':
    main()
