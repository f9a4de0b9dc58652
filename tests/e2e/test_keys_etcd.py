#!/usr/bin/env python3
"""`fettle cluster renew-keys` with the engine etcd, in place: a guest runs, a client commits, the master stays the master, and no member takes a
key of before afterwards. FETTLE_LONG=1: with a silent node, with a member that dies in the round, and with the master lost in each phase."""
import glob
import json
import os
import shutil
import subprocess
import tempfile

import e2e
import test_keys
from e2e import fettlelib, title, wait_until
from test_keys import NODES, content, etc, keys, over, renew

CLIENT_PORT, PEER_PORT = 2379, 2380

lab = None
folder = None


# --- what is there ---

def members():
    code, out, _ = lab.run('cluster', 'engine', 'status', '--json', check=False)
    return [member for member in json.loads(out)['members'] if member['healthy'] and not member['learner']] if code in (0, 1) and out else []


def all_well():
    return len(members()) == 3


def process(node, daemon):
    with open(os.path.join(lab.root(node), 'run', 'services', f'{daemon}.json'), encoding='utf-8') as file:
        return json.load(file)['pid']


def assert_members_renewed():
    trusted = {content(etc(node, 'etcd/authority.crt')) for node in NODES}
    assert len(trusted) == 1 and trusted.pop().count('BEGIN CERTIFICATE') == 1, 'members do not trust the same issuer alone'
    for node in NODES:
        for name in ('member', 'client'):
            said = subprocess.run(['openssl', 'verify', '-CAfile', etc(node, 'etcd/authority.crt'), etc(node, f'etcd/{name}.crt')],
                                  capture_output=True, text=True, check=False)
            assert said.returncode == 0, (node, name, said.stderr)
    assert not glob.glob(f'{lab.directory}/node*/etc/etcd/*-next.*'), 'keys are left between'


class Old:
    """What a candidate had before, and whether members take it: by the client port those who ask, by the other one members."""

    def __init__(self, node):
        self.node = node  # a member looks whether the address is that of the certificate, too
        self.folder = tempfile.mkdtemp(dir=folder)
        for name in ('client.crt', 'client.key', 'member.crt', 'member.key'):
            shutil.copy(etc(node, f'etcd/{name}'), self.folder)

    def is_taken(self, node, whose):
        port, page = (CLIENT_PORT, 'health') if whose == 'client' else (PEER_PORT, 'members')
        words = ['curl', '--silent', '--insecure', '--http1.1', '--max-time', '20', '--output', '/dev/null', '--write-out', '%{http_code}', '--cert',
                 f'{self.folder}/{whose}.crt', '--key', f'{self.folder}/{whose}.key', f'https://{fettlelib.address(int(node[4:]))}:{port}/{page}']
        return subprocess.run(lab.exec_words(self.node, *words), capture_output=True, text=True, check=False).stdout == '200'

    def takers(self):
        return [(node, whose) for node in NODES for whose in ('client', 'member') if self.is_taken(node, whose)]


# --- tests ---

@title('/keys-etcd/in-place#SAF-94')
def test_in_place():
    wait_until('all members are well', all_well, 120)
    before, olds, master = content(etc('node1', 'ca.crt')), [Old(node) for node in NODES], lab.master
    assert all(len(old.takers()) == 6 for old in olds), [old.takers() for old in olds]
    pid = process(master, 'wconfd')
    with e2e.Commits(lab, 'in-place') as commits:
        code, out, err = renew(check=False)
    assert code == 0 and out.splitlines()[-1].startswith('The keys of the cluster are new'), (code, out, err)
    print(f'# {len(commits.answered)} commits meanwhile', flush=True)
    commits.check()
    assert lab.find_master() and lab.master == master and process(master, 'wconfd') == pid, 'the master did not stay the master'
    wait_until('all members are well', all_well, 120)
    test_keys.assert_renewed(before)
    assert_members_renewed()
    taken = [old.takers() for old in olds]
    assert not any(taken), f'what is old is taken: {taken}'
    assert all(len(Old(node).takers()) == 6 for node in NODES), 'what is new is not taken'
    test_keys.assert_guests_well()


def wait_named(node, *phases):
    wait_until(f'{node} is named', lambda: keys()[0] in phases and any(text.startswith(f'node {node}: ') for text in keys()[1]), 120)


def assert_over(before):
    wait_until('the renewal is over', over, 240)
    wait_until('all members are well', all_well, 120)
    test_keys.assert_renewed(before)
    wait_until('members have the new keys alone', members_renewed, 120)


def members_renewed():
    try:
        assert_members_renewed()
    except AssertionError:
        return False
    return True


@title('/keys-etcd/silent-node#SAF-94')
def test_silent():
    before = content(etc('node1', 'ca.crt'))
    other = next(node for node in NODES if node != lab.master)
    lab.lab('pause', f'noded@{other}')
    with test_keys.Renewal() as renewal:
        wait_named(other, 'spread')
        lab.lab('resume', f'noded@{other}')
    assert renewal.said[0] == 0, renewal.said
    assert_over(before)


@title('/keys-etcd/member-dies-in-the-round#SAF-94')
def test_member_dies():
    """Its node daemon starts it again, and nobody else is started anew meanwhile."""
    before = content(etc('node1', 'ca.crt'))
    other = next(node for node in NODES if node != lab.master)
    with e2e.Commits(lab, 'dies') as commits, test_keys.Renewal() as renewal:
        while renewal.said is None:
            for phase in ('spread', 'drop'):
                wait_until(f'{phase} has begun', lambda at=phase: renewal.said is not None or keys()[0] == at, 120)
                with open(os.path.join(lab.root(other), 'run', 'etcd.json'), encoding='utf-8') as file:
                    pid = json.load(file)['pid']
                subprocess.run(['kill', '-KILL', str(pid)], check=False)
    assert renewal.said[0] == 0, renewal.said
    commits.check()
    assert_over(before)


@title('/keys-etcd/deaths-of-node-daemons#SAF-94')
def test_deaths():
    """Where a key goes to its reader, gets its name, and where the member is ended: the walk of all points is test_members_crash.c."""
    for node in (lab.master, next(node for node in NODES if node != lab.master)):
        for at in ('keys: give away', 'keys: rename', 'process: signal'):
            before = content(etc('node1', 'ca.crt'))
            assert test_keys.armed('noded', f'{node}-{at}'.replace(' ', '-'), at=at, node=node), f'noded of {node} did not die at "{at}"'
            assert_over(before)
    test_keys.assert_guests_well()


def lose_master(phase):
    before = content(etc('node1', 'ca.crt'))
    renew_begin = test_keys.Renewal()
    with renew_begin:
        wait_until(f'{phase} has begun', lambda: renew_begin.said is not None or keys()[0] == phase, 120)
        lost = lab.master
        lab.lab('power', lost, 'off')
        wait_until('another is master', lambda: lab.find_master() and lab.master != lost, 120)
        lab.lab('power', lost, 'on')
    assert_over(before)


@title('/keys-etcd/master-lost#SAF-95')
def test_master_lost():
    for phase in ('spread', 'reissue', 'drop'):
        lose_master(phase)


def main():
    global lab, folder  # pylint: disable=global-statement
    options = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3', '--root-mib', '2048')
    with tempfile.TemporaryDirectory(prefix='fettle-keys-etcd-', dir='/var/tmp') as folder, e2e.new_lab(options=options) as lab:
        test_keys.lab, test_keys.folder = lab, folder
        test_keys.uuid = e2e.create(lab, 'mirrored')
        e2e.create(lab, 'other')
        e2e.lab_engine(lab, 'etcd')
        wait_until('somebody serves', lab.find_master, 120)
        e2e.run(test_in_place, *([test_silent, test_member_dies, test_deaths, test_master_lost] if e2e.LONG else []))


if __name__ == '__main__':
    main()
