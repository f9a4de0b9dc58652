#!/usr/bin/env python3
"""Rounds of faults at masters and candidates, real processes in a lab, while changes are submitted as jobs.

After each round: no answered change is lost, no job ran twice, one node is master, (history, epoch, serial) has not gone
back, all copies are equal. With the engine sqlite the person who makes another node the master is this test, when the
power of the old one is cut. FETTLE_ROUNDS sets how many rounds, FETTLE_LONG=1 makes it 100.
"""
import contextlib
import os
import random
import re
import sqlite3
import statistics
import threading
import time

import e2e
from e2e import fettlelib, title, wait_until

ROUNDS = int(os.environ.get('FETTLE_ROUNDS', '100' if e2e.LONG else '6'))
NODES = ('node1', 'node2', 'node3')
FAULTS = ('power of the master', 'kill of the master', 'pause of the master', 'kill of a candidate', 'link of a candidate',
          'power of a candidate')
PAUSE_S = 6  # longer than a lease
LOST = (OSError, fettlelib.LuxiError, ValueError)

lab = None
failovers = []  # seconds without a master that answers
highest = (0, 0, 0)


def store(node):
    """The meta rows of a candidate's store, and its tags."""
    path = os.path.join(lab.root(node), 'var', 'store.db')
    try:
        with contextlib.closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5)) as db:
            with db:
                meta = dict(db.execute('SELECT key, value FROM meta'))
                tags = [key.rsplit('/', 1)[1] for key, in db.execute("SELECT key FROM objects WHERE kind='tag'")]
        return meta, tags
    except sqlite3.OperationalError:
        return {}, []


class Load(threading.Thread):
    """Sets tags, one job after the other; what was answered is kept."""

    def __init__(self):
        super().__init__(daemon=True)
        self.answered, self.unknown = {}, set()
        self.ending = False
        self.next = 0

    def run(self):
        while not self.ending:
            self.next += 1
            tag = f'load-{self.next}'
            try:
                line = fettlelib.Luxi(os.path.join(lab.root(lab.master), 'run', 'luxid.sock'), timeout=20)
                with contextlib.closing(line):
                    self.one(line, tag)
            except LOST:
                self.unknown.add(tag)
                time.sleep(0.2)

    def one(self, line, tag):
        job = line.call('SubmitJob', [{'OP_ID': 'OP_TAGS_SET', 'kind': 'cluster', 'name': '', 'tags': [tag],
                                       'request_id': tag}])
        while not self.ending:
            (status, _), = line.call('QueryJobs', [job], ['status', 'opresult'])
            if status in ('success', 'error', 'canceled'):
                if status == 'success':
                    self.answered[tag] = job
                return
            time.sleep(0.05)


def serves():
    return lab.run('node', 'list', check=False)[0] == 0


def person():
    """Makes another node the master, as often as it is refused for the moment."""
    others = [node for node in NODES if node != lab.master]
    lab.luxi_connection, lab.master = None, others[0]
    def done():
        code, said, _ = lab.run('cluster', 'master-failover', '--yes', check=False)
        found = re.search(r'^Node (\S+) becomes the master', said, re.M)
        if code == 0 and found:
            lab.master = found.group(1)
        return code == 0
    wait_until('the person makes a candidate the master', done, 60, step=0.3)
    wait_until('it serves', serves, 60)


def play(fault, chance):
    old = lab.master
    victim = old if 'master' in fault else chance.choice([node for node in NODES if node != old])
    start = time.monotonic()
    if fault.startswith('power'):
        lab.lab('power', victim, 'off')
        if victim == old:
            person()
            failovers.append(time.monotonic() - start)
        time.sleep(chance.random())
        lab.lab('power', victim, 'on')
        if victim != lab.master and victim == old:
            wait_until('its store is put away or followed', lambda: store(victim)[0].get('role') == '1', 60)
    elif fault.startswith('kill'):
        lab.lab('kill', f'wconfd@{victim}')
    elif fault.startswith('pause'):
        lab.lab('pause', f'wconfd@{victim}')
        time.sleep(PAUSE_S)
        lab.lab('resume', f'wconfd@{victim}')
    else:
        lab.lab('link', victim, 'down')
        time.sleep(2 + chance.random())
        lab.lab('link', victim, 'up')
    wait_until('it serves', serves, 60)


def equal():
    seen = {tuple(store(node)[0].get(key) for key in ('history', 'serial', 'versions')) for node in NODES}
    return len(seen) == 1 and None not in next(iter(seen))


def check(load):
    global highest  # pylint: disable=global-statement
    answered = dict(load.answered)  # what comes later is not looked for yet
    def all_there():
        return all(set(answered) <= set(store(node)[1]) for node in NODES)
    try:
        wait_until('', all_there, 60)
    except TimeoutError as error:
        missing = {node: sorted(set(answered) - set(store(node)[1])) for node in NODES}
        raise AssertionError(f'answered, but not there: {missing}') from error
    engines = [node for node in NODES if store(node)[0].get('role') == '0']
    assert engines == [lab.master], f'engines are {engines}, the master is {lab.master}'
    meta = store(lab.master)[0]
    now = tuple(int(meta[key]) for key in ('history', 'epoch', 'serial'))
    assert now >= highest and now[2] >= highest[2], f'{now} after {highest}'
    highest = now


def check_jobs(load):
    """Every answered job is there once, and ended as it was answered."""
    for tag, job in load.answered.items():
        rows = lab.query('job', ['id', 'status'], ['=', 'request_id', tag])
        assert [(row['id'], row['status']) for row in rows] == [(job, 'success')], (tag, job, rows)


@title('/mastership/sqlite#SAF-01,SAF-06,SAF-07,SAF-30,WCF-16')
def test_rounds():
    chance = random.Random(20261122)
    load = Load()
    load.start()
    try:
        for number in range(ROUNDS):
            fault = FAULTS[number % len(FAULTS)]
            try:
                play(fault, chance)
                check(load)
            except (AssertionError, TimeoutError, fettlelib.CommandFailed) as error:
                raise AssertionError(f'round {number}, {fault}: {error}') from error
    finally:
        load.ending = True
        load.join(60)
    wait_until('all copies are equal', equal, 60)
    check(load)
    check_jobs(load)
    assert len(load.answered) >= ROUNDS, f'{len(load.answered)} changes in {ROUNDS} rounds are no load'
    print(f'# {ROUNDS} rounds, {len(load.answered)} changes answered, {len(load.unknown)} unanswered; failovers: '
          f'{len(failovers)}, median {statistics.median(failovers):.1f} s, worst {max(failovers):.1f} s', flush=True)


@title('/mastership/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--replica-lost-ms', '1000', '--watcher-interval-ms', '1000', '--candidates', '3')) as lab:
        wait_until('all copies are there', equal, 60)
        e2e.run(test_rounds, test_logs)
