#!/usr/bin/env python3
"""`fettle cluster renew-keys` in a lab: under running guests and a migration, with a node that is silent, with the master killed at its crash
points (FETTLE_LONG=1: at FETTLE_SAMPLE of them), lost in the middle, and a node that was offline through it all. What is old is refused."""
import glob
import hashlib
import json
import os
import shutil
import subprocess
import tempfile

import e2e
from e2e import fettlelib, title, wait_until

LONG = os.environ.get('FETTLE_LONG') == '1'
SAMPLE = int(os.environ.get('FETTLE_SAMPLE', '40')) if LONG else 2
NODES = ('node1', 'node2', 'node3')

lab = None
folder = None
uuid = None


# --- what is there ---

def etc(node, name):
    return os.path.join(lab.root(node), 'etc', name)


def content(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def keys():
    """(phase, what it waits for); a word that is no phase while nobody is master."""
    code, out, _ = lab.run('cluster', 'info', '--json', check=False)
    info = json.loads(out)['keys'] if code == 0 else {'renewal': 'unknown', 'waits': []}
    return info['renewal'], info['waits']


def over():
    return lab.find_master() and keys()[0] == 'none'


def issuers(node):
    """(of its certificate, of all that it trusts)"""
    with open(etc(node, 'ca.crt'), encoding='utf-8') as file:
        trusted = file.read().count('BEGIN CERTIFICATE')
    said = subprocess.run(['openssl', 'verify', '-CAfile', etc(node, 'ca.crt'), etc(node, 'node.crt')], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return trusted


def assert_keys_on_record():
    for node in json.loads(lab.cli('cluster', 'export'))['objects']['node'].values():
        words = ['openssl', 'x509', '-in', etc(node['name'], 'node.crt'), '-noout', '-pubkey']
        key = subprocess.run(words, capture_output=True, check=True).stdout
        assert node['key_hash'] == hashlib.sha256(key).hexdigest(), f'{node["name"]} has another key than the one on record'


def assert_renewed(before):
    """One authority, the same everywhere, that was not there before; every node and candidate has what belongs to it."""
    now = {content(etc(node, 'ca.crt')) for node in NODES}
    assert len(now) == 1 and now != {before}, f'{len(now)} lists of authorities'
    assert all(issuers(node) == 1 for node in NODES), {node: issuers(node) for node in NODES}
    def settled():
        return len({content(etc(node, 'ca.key')) for node in NODES}) == 1 and not glob.glob(f'{lab.directory}/node*/etc/*-next.*')
    wait_until('all candidates have its key', settled, 60)
    assert_keys_on_record()


def assert_guests_well():
    for name in ('mirrored', 'other'):
        e2e.wait_healthy(lab, name)
    e2e.wait_counting(lab, 'mirrored', uuid, lab.instance('mirrored', 'pnode')['pnode'])


def renew(*words, check=True):
    return lab.run('cluster', 'renew-keys', '--yes', *words, check=check, timeout=300)


class Renewal(e2e.Beside):
    """Beside a `with` block, whose end waits for it."""

    said = None

    def run(self):
        self.said = renew(check=False)


# --- what is old ---

class Old:
    """The identity of a node as it was: a copy of its files."""

    def __init__(self, node):
        self.folder = tempfile.mkdtemp(dir=folder)
        for name in ('ca.crt', 'node.crt', 'node.key'):
            shutil.copy(etc(node, name), self.folder)

    @staticmethod
    def refusals(node):
        return content(os.path.join(lab.directory, 'log', node, 'noded.log')).count('it is signed by another CA')

    def knock(self, node, by='node2'):
        """At the node daemon there, which says whom it refuses; of one that it lets in it ends what makes no sense."""
        words = ['-connect', f'{fettlelib.address(int(node[4:]))}:1811', '-cert', f'{self.folder}/node.crt', '-key', f'{self.folder}/node.key',
                 '-quiet']
        subprocess.run(['timeout', '60', *lab.exec_words(by, 'openssl', 's_client', *words)], input='{}\x03', capture_output=True, text=True,
                       check=False)

    def is_let_in(self, node):
        before = self.refusals(node)
        self.knock(node)
        return self.refusals(node) == before

    def assert_refused(self, node):
        before = self.refusals(node)
        self.knock(node)
        wait_until(f'what is old is refused by {node}', lambda: self.refusals(node) > before, 30)


# --- tests ---

@title('/keys/renewed-under-guests-with-a-silent-node#SAF-94')
def test_under_guests():
    global uuid  # pylint: disable=global-statement
    uuid = e2e.create(lab, 'mirrored')
    e2e.create(lab, 'other')
    assert_guests_well()
    before, old, confd = content(etc('node1', 'ca.crt')), Old('node3'), content(os.path.join(lab.root('node1'), 'var', 'confd.key'))
    assert old.is_let_in('node1'), 'the attempt itself is wrong'
    lab.cli('node', 'invite', 'node9', '--primary-ip', fettlelib.address(9))
    lab.lab('pause', 'noded@node3')
    with Renewal() as renewal:
        wait_until('node3 is named', lambda: any(text.startswith('node node3: ') for text in keys()[1]), 60)
        assert keys()[0] == 'spread', keys()
        lab.lab('resume', 'noded@node3')
        lab.do('OP_INSTANCE_MIGRATE', instance_name='mirrored', wait=120)
    code, out, err = renewal.said
    assert code == 0 and 'waits for node node3: ' in out and out.splitlines()[-1].startswith('The keys of the cluster are new'), renewal.said
    assert_renewed(before)
    assert_guests_well()
    for node in ('node1', 'node3'):
        old.assert_refused(node)
    wait_until('ConfD has another key', lambda: content(os.path.join(lab.root('node1'), 'var', 'confd.key')) != confd, 30)
    assert 'node9' not in lab.cli('node', 'invite', '--list'), 'an invitation names the old authority'
    e2e.verify_clean(lab)


def walk_words(name, at=None, log=None):
    since, once = os.path.join(folder, 'since'), os.path.join(folder, f'once-{name}')
    if os.path.exists(since):
        os.remove(since)
    words = [f'FETTLE_CRASH_SINCE={since}', f'FETTLE_CRASH_ONCE={once}']
    return once, words + ([f'FETTLE_CRASH_AT={at}'] if at else []) + ([f'FETTLE_CRASH_LOG={log}'] if log else [])


def armed(daemon, name, at=None, log=None, node=None):
    """Renewals with that daemon of the master, or of another node, armed, until it has died; whether it did. How many points one renewal has depends on how busy
    the machine is, as some of them come by the second: the one that is armed may be reached in the next renewal only."""
    once, words = walk_words(name, at, log)
    lab.lab('restart', f'{daemon}@{node or lab.master}', *words)
    wait_until('the master serves', lab.find_master, 60)
    with open(os.path.join(folder, 'since'), 'w', encoding='utf-8'):
        pass
    for _ in range(4 if at else 1):
        renew_through()
        if os.path.exists(once):
            return True
    return False


def renew_through():
    before = content(etc('node1', 'ca.crt'))
    renew(check=False)
    def begun():
        return lab.find_master() and (keys()[0] not in ('none', 'unknown') or content(etc('node1', 'ca.crt')) != before or renew(check=False)[0] == 0)
    wait_until('it was begun', begun, 120)
    wait_until('the renewal is over', over, 120)
    assert_renewed(before)


def walk(daemon):
    log = os.path.join(folder, f'log-{daemon}')
    armed(daemon, f'count-{daemon}', log=log)
    with open(log, encoding='utf-8', errors='replace') as file:
        count = len(file.read().splitlines())
    step = max(1, count / SAMPLE)
    places = sorted({1 + int(i * step) for i in range(int(count / step))})
    deaths = sum(armed(daemon, f'{daemon}-{at}', at=at) for at in places)
    print(f'# {deaths} deaths of {daemon} at {len(places)} of {count} crash points', flush=True)
    assert deaths == len(places), f'only {deaths} of {len(places)} armed points were reached'
    assert_guests_well()


@title('/keys/deaths-of-the-master#SAF-94')
def test_deaths_wconfd():
    walk('wconfd')


@title('/keys/deaths-of-a-node-daemon#SAF-94')
def test_deaths_noded():
    walk('noded')


@title('/keys/master-lost-in-the-middle#SAF-95')
def test_master_lost():
    """Its key was to sign, and nobody else has it: the next master makes another one."""
    before = content(etc('node1', 'ca.crt'))
    lab.lab('pause', 'noded@node3')
    with Renewal():
        wait_until('node3 is named', lambda: any(text.startswith('node node3: ') for text in keys()[1]), 60)
        lost = lab.master
        lab.lab('power', lost, 'off')
    lab.lab('resume', 'noded@node3')
    lab.master = 'node2'
    lab.cli_again('cluster', 'master-failover', '--yes', seconds=90)
    wait_until('another is master', lab.find_master, 60)
    wait_until(f'{lost} is named', lambda: any(text.startswith(f'node {lost}: ') for text in keys()[1]), 60)
    lab.lab('power', lost, 'on')
    wait_until('the renewal is over', over, 120)
    assert_renewed(before)
    assert_guests_well()


@title('/keys/a-node-that-was-offline-comes-back#SAF-96')
def test_offline():
    before = content(etc('node1', 'ca.crt'))
    away = 'node3'
    lab.lab('power', away, 'off')
    lab.cli('node', 'modify', away, '--offline', 'yes', '--statement', 'the power is off')
    code, out, _ = renew()
    assert code == 0 and f'node {away} was offline and has the old keys: nobody believes it. When it is back: fettle node invite {away} --primary-ip ' \
        f'{fettlelib.address(3)} --port ' in out, (code, out)
    assert content(etc('node1', 'ca.crt')) != before
    lab.lab('power', away, 'on')
    assert 'Old keys' in lab.cli('node', 'info', away)
    token = lab.cli('node', 'invite', away, '--primary-ip', fettlelib.address(3)).strip()
    noded = os.path.join(lab.build, 'src', 'daemons', 'noded', 'fettle-noded')
    said = subprocess.run(lab.exec_words(away, noded, 'join', '--new-keys', '--root', lab.root(away)), input=token + '\n', capture_output=True,
                          text=True, check=False)
    assert said.returncode == 0 and ', with new keys.\nStart its daemon, anew if it runs: ' in said.stdout, said
    lab.lab('restart', f'noded@{away}')
    lab.cli_again('node', 'modify', away, '--offline', 'no', seconds=90)
    wait_until('it has missed nothing any more', lambda: 'Old keys' not in lab.cli('node', 'info', away), 60)
    assert_renewed(before)
    for name in ('mirrored', 'other'):
        if lab.instance(name, 'replica.state')['replica.state'] != 'in-sync':
            lab.do('OP_INSTANCE_REPLACE_DISKS', instance_name=name)
    assert_guests_well()


@title('/keys/bad-input')
def test_bad_input():
    e2e.expect_cli_error(lab, 2, 'fettle: too many arguments; usage: fettle cluster renew-keys [--yes]', 'cluster', 'renew-keys', 'now')
    rows = json.loads(lab.cli('cluster', 'keys', '--json'))
    assert {'authority', 'node', 'ConfD', 'etcd member'} <= {row['key'] for row in rows}, rows
    noded = os.path.join(lab.build, 'src', 'daemons', 'noded', 'fettle-noded')
    token = lab.cli('node', 'invite', 'node9', '--primary-ip', fettlelib.address(9)).strip()
    host = tempfile.mkdtemp(dir=folder)
    for root, words, expected in ((host, ['--new-keys'], 'this host is no node yet: it joins without --new-keys'),
                                  (lab.root('node2'), [], 'if the keys of the cluster were renewed while it was away, add --new-keys'),
                                  (lab.root('node2'), ['--new-keys'], 'is for a new host, and this one is a node already; if it was removed, move its '
                                   'etc/node.json away first')):
        said = subprocess.run(lab.exec_words('node2', noded, 'join', *words, '--root', root), input=token + '\n', capture_output=True, text=True, check=False)
        assert said.returncode == 5 and expected in said.stderr, (words, said)


def main():
    global lab, folder  # pylint: disable=global-statement
    with tempfile.TemporaryDirectory(prefix='fettle-keys-', dir='/var/tmp') as folder:
        options = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3')
        with e2e.new_lab(options=options) as lab:
            e2e.run(test_bad_input, test_under_guests, test_deaths_wconfd, test_deaths_noded, test_master_lost, test_offline)
            e2e.check_logs(lab)


if __name__ == '__main__':
    main()
