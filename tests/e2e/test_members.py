#!/usr/bin/env python3
"""Members of etcd under node daemons in a lab: restarts, kills, a power cut, the end of a node that has one; what engine status says."""
import json
import os

import e2e
from e2e import fettlelib, title, wait_until

lab = None
NODES = ('node1', 'node2', 'node3')


def status():
    """(exit code, what engine status says), asked on the master's node, where members can be reached."""
    command = (lab.fettle, '--root', lab.root(lab.master), 'cluster', 'engine', 'status', '--json')
    try:
        return 0, json.loads(lab.exec(lab.master, *command))
    except fettlelib.CommandFailed as failed:
        return failed.code, json.loads(failed.out or '{"members": [], "advice": []}')


def pid_of(node):
    """The process of its member, as its node daemon has noted it; 0: none."""
    try:
        with open(os.path.join(lab.root(node), 'run', 'etcd.json'), encoding='utf-8') as file:
            return json.load(file)['pid']
    except FileNotFoundError:
        return 0


def lives(pid):
    return pid and os.path.exists(f'/proc/{pid}')


def healthy():
    code, said = status()
    return code == 0 and len(said['members']) == 3 and not said['advice']


def serves():
    """Whoever is the master, which changes where etcd has to wait for a processor; lab.master from then on."""
    for node in NODES:
        lab.master = node
        if lab.run('node', 'list', check=False)[0] == 0:
            return True
    return False


def changes(tag):
    def done():
        return serves() and lab.run('tag', 'add', 'cluster', tag, check=False)[0] == 0
    wait_until('a change is made', done, 60)


@title('/members-lab/founded')
def test_founded():
    e2e.lab_engine(lab, 'etcd')
    wait_until('all are healthy', healthy, 60)
    wait_until('the master serves', serves, 60)
    assert all(lives(pid_of(node)) for node in NODES)


@title('/members-lab/outlives-the-node-daemon#SAF-07')
def test_noded():
    before = pid_of('node3')
    lab.lab('kill', 'noded@node3')
    wait_until('the node daemon is back', lambda: os.path.exists(os.path.join(lab.root('node3'), 'run', 'noded.ready')), 20)
    assert pid_of('node3') == before and lives(before)
    wait_until('all are healthy', healthy, 30)


@title('/members-lab/killed-and-started-again')
def test_killed():
    for _ in range(2):
        before = wait_until('it runs', lambda: pid_of('node3'), 60)
        os.kill(before, 9)
        wait_until('it is started again', lambda before=before: pid_of('node3') != before and lives(pid_of('node3')), 60)
    wait_until('all are healthy', healthy, 30)
    changes('written')


@title('/members-lab/power-cut#SAF-07')
def test_power():
    lab.lab('power', 'node3', 'off')
    def told():
        code, said = status()
        return code == 1 and any('node3' in line for line in said['advice'])
    wait_until('status says so', told, 20, step=1)
    changes('without-node3')  # a majority is left
    lab.lab('power', 'node3', 'on')
    wait_until('all are healthy', healthy, 60)


@title('/members-lab/a-node-with-a-member-is-not-removed')
def test_remove():
    wait_until('the master serves', serves, 60)
    code, _, err = lab.run('node', 'remove', 'node3', '--yes', check=False)
    assert code and 'node "node3" is a candidate of a cluster with the engine etcd, and so has a member of it' in err, (code, err)
    wait_until('all are healthy', healthy, 30)
    e2e.check_logs(lab)


def main():
    global lab  # pylint: disable=global-statement
    with e2e.new_lab(options=('--watcher-interval-ms', '500', '--candidates', '3')) as lab:
        e2e.run(test_founded, test_noded, test_killed, test_power, test_remove)


if __name__ == '__main__':
    main()
