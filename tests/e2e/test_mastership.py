#!/usr/bin/env python3
"""The engine etcd on three candidates: a lost master is replaced by itself, and one that is well hands over when it is told to."""
import json
import os
import re
import threading
import time

import e2e
import fettlelib
from e2e import title, wait_until

NODES = ('node1', 'node2', 'node3')
FAILOVER = ('cluster', 'master-failover')
NOT_MASTER, WRONG_INPUT, WRONG_STATE, UNKNOWN_ENTITY, CANCELED = 9, 2, 5, 3, 17
lab = None
uuid = None  # of the guest, on node2 and node3


def store(node):
    return e2e.store_of(lab, node)


def equal(*nodes):
    """Whether the stores of these nodes are copies with the same content."""
    return e2e.equal_copies(lab, *nodes) and all(store(node).get('role') == '1' for node in nodes)


def others(node):
    return [one for one in NODES if one != node]


def serving(*nodes):
    """The node whose luxid and wconfd answer, of these; lab.master from then on."""
    for node in nodes or NODES:
        lab.master = node
        if lab.run('cluster', 'info', check=False, timeout=30)[0] == 0:
            lab.luxi_connection = None
            return node
    return None


def new_master(*nodes):
    lab.luxi_connection = None
    return wait_until('somebody is master', lambda: serving(*nodes), 30, step=0.2)


def epoch():
    return lab.json('cluster', 'info')['epoch']


def said(node, pattern):
    """When wconfd of a node has said this, in seconds since midnight; the last time."""
    with open(os.path.join(lab.root(node), 'log', 'wconfd.log'), encoding='utf-8') as file:
        found = re.findall(r'T(\d\d):(\d\d):([\d.]+)Z [^\n]*' + pattern, file.read())
    return found and int(found[-1][0]) * 3600 + int(found[-1][1]) * 60 + float(found[-1][2])


class Load:
    """Jobs and changes, one after the other, from every candidate that answers; remembers what was answered."""

    def __init__(self):
        self.jobs, self.tags, self.over = [], [], False
        self.threads = [threading.Thread(target=self.submit), threading.Thread(target=self.change)]
        for thread in self.threads:
            thread.start()

    def call(self, method, *args):
        """An answer, or None when nobody gave one."""
        for node in NODES:
            try:
                luxi = fettlelib.Luxi(os.path.join(lab.root(node), 'run', 'luxid.sock'), timeout=10)
                try:
                    return luxi.call(method, *args)
                finally:
                    luxi.close()
            except (OSError, fettlelib.LuxiError, ConnectionError):
                continue
        time.sleep(0.05)
        return None

    def submit(self):
        while not self.over:
            job = self.call('SubmitJob', [{'OP_ID': 'OP_TEST_DELAY', 'duration': 0.2}])
            if job is not None:
                self.jobs.append(job)
            time.sleep(0.05) # no more than a slow machine runs, or all of it only waits

    def change(self):
        for number in range(1000000):
            job = None if self.over else self.call('SubmitJob', [
                {'OP_ID': 'OP_TAGS_SET', 'kind': 'cluster', 'tags': [f't{number}'], 'priority': -20}])
            if self.over:
                return
            if job is None:
                continue
            for _ in range(200):
                row = self.call('QueryJobs', [job], ['status'])
                if row and row[0][0] == 'success':
                    self.tags.append(f't{number}')
                if row and row[0][0] in ('success', 'error', 'canceled') or self.over:
                    break
                time.sleep(0.05)

    def end(self):
        self.over = True
        for thread in self.threads:
            thread.join()


@title('/mastership/own-copy#SAF-07,WCF-04,RCF-01')
def test_copies():
    new_master()
    lab.cli('tag', 'add', 'cluster', 'one')
    wait_until('all stores are copies and equal', lambda: equal(*NODES), 20)
    answered = json.loads(lab.exec('node1', lab.fettle, '--root', lab.root('node1'), 'confd', 'master', '--json'))['candidates']
    assert [one['name'] for one in answered if one['answered']] == list(NODES), answered
    others = sorted(set(NODES) - {lab.master})
    wait_until('the master has heard of both', lambda: have_newest() == others, 30)
    document = lab.json('cluster', 'export')
    assert document['store'] == 'follows' and document['epoch'] == epoch(), (document['store'], document['epoch'])


def have_newest():
    """Who has the newest change, by `cluster flush`."""
    found = lab.json('cluster', 'flush')
    assert all(copy['serial'] >= found['serial'] for copy in found['copies'] if copy['reachable']), found
    return sorted(copy['name'] for copy in found['copies'] if copy['reachable'])


@title('/mastership/wconfd-killed#SAF-01,SAF-30')
def test_killed():
    master, before = new_master(), epoch()
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 4})
    wait_until('the job runs', lambda: lab.job_status(job)[0] == 'running')
    lab.lab('kill', f'wconfd@{master}')
    new_master()
    if (lab.master, epoch()) == (master, before):
        assert lab.wait_job(job, 60)[0] == 'success', 'its master has gone on'
    else:
        assert lab.wait_job(job, 60)[0] == 'error', 'its master is another one'
    assert e2e.running_copies(lab, uuid) == 1


@title('/mastership/power-cut#SAF-01,SAF-04,SAF-06,SAF-07,SAF-30')
def test_power_cut():
    old, before = new_master(), epoch()
    e2e.wait_counting(lab, 'web1', uuid, 'node2')
    load = Load()
    try:
        wait_until('it is busy', lambda: len(load.jobs) > 20 and len(load.tags) > 2, 60)
        lab.lab('power', old, 'off')
        master = new_master(*others(old))
        count = len(load.jobs), len(load.tags)
        wait_until('it goes on', lambda: len(load.jobs) > count[0] + 5 and len(load.tags) > count[1] + 1, 60)
    finally:
        load.end()
    assert epoch() > before and lab.json('cluster', 'info')['master'] == master
    tags = set(lab.cli('tag', 'list', 'cluster').split())
    assert set(load.tags) <= tags, f'lost: {set(load.tags) - tags}'
    known = {int(row['id']) for row in lab.query('job', ['id'])}
    assert {int(job) for job in load.jobs} <= known, f'lost: {sorted(set(map(int, load.jobs)) - known)}'
    if old == 'node1':
        e2e.wait_counting(lab, 'web1', uuid, 'node2', above=lab.printed('web1', uuid, 'node2'))
    lab.lab('power', old, 'on')
    wait_until('the old one follows', lambda: equal(*NODES), 60)
    wait_until('nobody is waited for', lambda: lab.json('cluster', 'info')['nodes_pending'] == [], 60)
    def settled():
        return all(row['status'] in ('success', 'error') for row in lab.query('job', ['status']))
    wait_until('all jobs have ended', settled, 120)
    e2e.wait_healthy(lab, 'web1')
    assert e2e.running_copies(lab, uuid) == 1


@title('/mastership/cut-off#SAF-06,SAF-08')
def test_cut_off():
    old = new_master()
    lab.lab('link', old, 'down')
    new = new_master(*others(old))
    stepped = wait_until('the old one has stepped down', lambda: said(old, 'stepping down: '), 20)
    begun = said(new, 'master of history ')
    assert stepped < begun, f'{old} stepped down at {stepped}, {new} began at {begun}'
    lab.master = old
    try:
        wait_until('it knows that it is not', lambda: lab.run('node', 'list', check=False)[0] == NOT_MASTER, 30)
    finally:
        lab.master = new
        lab.lab('link', old, 'up')
    wait_until('the old one follows', lambda: equal(*NODES), 60)
    e2e.wait_healthy(lab, 'web1')
    assert e2e.running_copies(lab, uuid) == 1


def refused(message, code, *flags, typed=None):
    found, _, err = lab.run(*FAILOVER, *flags, *([] if typed else ['--yes']), check=False, typed=typed or '')
    assert found == code and err.endswith('fettle: ' + message + '\n'), (found, err)


@title('/mastership/hand-over#SAF-01,SAF-06,SAF-08')
def test_hand_over():
    old, before = new_master(), epoch()
    heir, third = others(old)
    refused('node "node9" does not exist', UNKNOWN_ENTITY, '--to', 'node9')
    refused(f'node "{old}" is the master already', WRONG_STATE, '--to', old)
    refused('that is not what was to be typed; nothing was done; --yes does not ask', CANCELED, typed='yes\n')
    refused('alone, statement: are for the engine sqlite; with etcd nobody is master without a majority of its members, and '
            'nothing of what they have is lost', WRONG_INPUT, '--alone', '--statement', 'x')
    lab.lab('power', third, 'off')
    code, _, err = lab.run(*FAILOVER, '--to', third, '--yes', check=False)
    assert code == WRONG_STATE and f'wconfd of node {third} does not answer: ' in err, (code, err)
    lab.lab('power', third, 'on')
    wait_until('all follow', lambda: equal(*NODES), 60)
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 300})
    wait_until('the job runs', lambda: lab.job_status(job)[0] == 'running')
    assert e2e.job_processes(lab, old), 'the test does not see its process'
    text = lab.run(*FAILOVER, '--to', heir, '--yes')[1]
    assert re.search(rf'^Node {heir} becomes the master, with serial \d+\.$', text, re.M), text
    assert new_master(heir) == heir and epoch() > before
    status, result = lab.wait_job(job, 120)
    assert status == 'error' and 'which ended with its master\'s restart or loss' in result[0], (status, result)
    wait_until('its process is ended', lambda: not e2e.job_processes(lab, old), 20)
    wait_until('all follow', lambda: equal(*NODES), 60)
    # Asked on a candidate without a name: that one is meant.
    lab.master = third
    assert f'Node {third} becomes the master' in lab.run(*FAILOVER, '--yes')[1]
    assert new_master(third) == third
    wait_until('all follow', lambda: equal(*NODES), 60)
    assert e2e.running_copies(lab, uuid) == 1


@title('/mastership/engine-file#WCF-04')
def test_engine_file():
    master = new_master()
    other = others(master)[0]
    path = os.path.join(lab.root(other), 'etc', 'engine.json')
    with open(path, encoding='utf-8') as file:
        whole = file.read()
    try:
        with open(path, 'w', encoding='utf-8') as file:
            file.write('{"kind": "etcd", "token": "x"}')
        reason = f'{path}: token: must be a UUID for etcd, not "x"; put back the file as it was'
        wait_until('it says so', lambda: said(other, re.escape('cannot become master: ' + reason)), 20)
        lab.cli('tag', 'add', 'cluster', 'two')
        wait_until('it keeps its copy all the same', lambda: equal(*NODES), 20)
        refused(f'node {other} cannot become the master now: {reason}', WRONG_STATE, '--to', other)
    finally:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(whole)
    wait_until('it can become master again', lambda: lab.run(*FAILOVER, '--to', other, '--yes', check=False)[0] == 0, 20, step=1)
    assert new_master(other) == other


@title('/mastership/no-restore')
def test_restore():
    new_master()
    backup = os.path.join(lab.directory, 'backup')
    lab.cli('cluster', 'backup', '--to', backup)
    name = lab.json('cluster', 'info')['name']
    code, _, err = lab.run('cluster', 'restore', backup, '--confirm', name, check=False)
    assert code != 0 and err.strip().endswith(
        f'fettle: the configuration of this cluster is in etcd ({lab.root(lab.master)}/etc/engine.json), which a store that is put '
        'back does not replace. Go back to the engine sqlite first (fettle cluster engine sqlite); if etcd is lost for good, end '
        'the daemons of all candidates and remove that file there. Nothing was changed'), (code, err)
    e2e.check_logs(lab)


@title('/mastership/lost-for-good#SAF-07')
def test_lost_for_good():
    new_master()
    lab.cli('tag', 'add', 'cluster', 'last')
    # Copies that are equal may all be from before that: no commit in etcd waits for them.
    lab.cli('cluster', 'flush')
    wait_until('all follow', lambda: equal(*NODES), 60)
    # All of them stand first: a master that looks after its members would give the file back.
    daemons = [f'{daemon}@{node}' for daemon in ('wconfd', 'noded') for node in NODES]
    for daemon in daemons:
        lab.lab('pause', daemon)
    for node in NODES:
        os.remove(os.path.join(lab.root(node), 'etc', 'engine.json'))
    for daemon in daemons:
        lab.lab('kill', daemon)
    wait_until('a person makes one the master', lambda: lab.run(*FAILOVER, '--yes', check=False)[0] == 0, 60, step=1)
    # The one before may answer questions for a moment more.
    wait_until('its store is the engine', lambda: serving() and store(lab.master).get('role') == '0', 60, step=0.2)
    assert 'last' in lab.cli('tag', 'list', 'cluster').split()
    assert re.search(r'^  engine +sqlite$', lab.cli('cluster', 'info'), re.M), lab.cli('cluster', 'info')
    lab.cli('tag', 'add', 'cluster', 'after')
    e2e.check_logs(lab)


def tests(made):
    global lab, uuid  # pylint: disable=global-statement
    lab = made
    new_master()
    lab.cli('instance', 'create', 'web1', '--disk-template', 'mirror', '--disk', 'size=8', '--memory', '8', '--os-type',
            'tick', '--pnode', 'node2', '--snode', 'node3')
    uuid = e2e.uuid_of(lab, 'web1')
    lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:fix-storage')
    e2e.run(test_copies, test_killed, test_hand_over, test_cut_off, test_engine_file, test_restore, test_power_cut, test_lost_for_good)


if __name__ == '__main__':
    with e2e.new_lab(options=('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3', '--engine',
                              'etcd')) as fresh:
        tests(fresh)
