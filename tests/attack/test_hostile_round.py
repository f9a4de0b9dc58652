#!/usr/bin/env python3
"""Everything at once: an ordinary node with its certificate and one guest's user, both hostile, make random known moves while a client
commits and guests count. All along, and at the end: nothing on record or on disk changes that is not theirs, no guest stops, no master
falls, no file of root's is touched, no secret comes their way.

FETTLE_SEED sets which moves, FETTLE_MOVES how many; FETTLE_LONG=1 makes it thirty times as many, some ten minutes. What daemons
themselves write while nobody attacks, and so is left out of what may not change on disk, is OWN.
"""
import collections
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
import bus  # noqa: E402  pylint: disable=wrong-import-position
import e2e  # noqa: E402  pylint: disable=wrong-import-position
import hostile  # noqa: E402  pylint: disable=wrong-import-position
import test_confd as confd  # noqa: E402  pylint: disable=wrong-import-position
from e2e import title, wait_until  # noqa: E402  pylint: disable=wrong-import-position

SEED = os.environ.get('FETTLE_SEED', '20261126')
MOVES = int(os.environ.get('FETTLE_MOVES', '2400' if e2e.LONG else '80'))  # of the node; of the user ten times as many
NODES = ('node1', 'node2', 'node3', 'node4')
GUESTS = {'web1': 'node2', 'web2': 'node3', 'web3': 'node1'}  # that nobody may touch, and where they run
EVIL = 'evil'  # whose user attacks, on node2
SMALL = 1 << 20

# Written by daemons in their work: logs, the store and its copies, announcements and reports, jobs and locks, what is said of services and
# of how a mirror goes.
OWN = (r'log/.*|var/store\.db.*|var/node/state\.json|var/ssconf/.*|var/queue/.*|run/(queue|livelocks|services|vouchers|authority)(/.*)?|'
       r'run/(\w+\.(status|ready)|locks\.journal)|run/guests/[^/]+/(relay/)?state\.json|run/exports/[^/]+\.log\d+|(.*/)?\.[^/]+')

# What an ordinary node may ask, and what everybody on a host may read.
# Of what it does not know the claim, it ends nothing and begins nothing (points.c).
ANSWERED = {'noded/promise_epoch', 'noded/engine_status', 'noded/point_look', 'noded/point_open', 'noded/point_close',
            'noded/volume_grown', 'wconfd/ca_info', 'wconfd/confirm', 'wconfd/wait_role', 'wconfd/ping'}
PUBLIC = r'/etc/((ca|node)\.crt|node\.json)$|/run/exports/[^/]+\.tls$|/fettle-shared$'

lab = None
folder = None  # of this test, root's alone, with what may not be touched
uuids = {}
theirs = set()  # UUIDs of the instance whose user attacks, and of the replicas that it has had


# --- what may not change ---

def record():
    """All but what the client changes, jobs, and the instance whose user attacks."""
    objects = json.loads(lab.cli('cluster', 'export', '--with-secrets'))['objects']
    objects['replica'] = {key: one for key, one in objects['replica'].items() if one['instance'] != uuids[EVIL]}
    del objects['instance'][uuids[EVIL]]
    for kind in ('tag', 'job', 'counter', 'decision', 'service'):
        objects.pop(kind, None)
    return objects


FIGURES = re.compile(r'/run/stats/[^/]+\.stats$')  # for monitoring: they come, change and go with what guests do


def of_file(path):
    """Images of the other guests, whose writes never rest, only by whose they are."""
    about = os.lstat(path)
    found = [about.st_uid, stat.S_IMODE(about.st_mode), stat.S_IFMT(about.st_mode)]
    if stat.S_ISREG(about.st_mode) and not re.search(r'\.disk\d+\.raw$', path):
        found.append(about.st_mtime_ns)
        if about.st_size < SMALL:
            with open(path, 'rb') as file:
                found.append(hashlib.sha256(file.read()).hexdigest())
    return found


def files():
    """Of root's, in the folders of all nodes and in this test's own; but of the instance whose user attacks, and of its replicas."""
    found = {}
    theirs.update({uuids[EVIL], lab.instance(EVIL, 'replica.uuid')['replica.uuid']} - {None})
    for top in (*map(lab.root, NODES), folder):
        for at, folders, names in os.walk(top):
            for name in folders + names:
                path = os.path.join(at, name)
                if re.fullmatch(OWN, os.path.relpath(path, top)) or any(one in path for one in theirs) or FIGURES.search(path):
                    continue
                try:
                    what = of_file(path)
                except FileNotFoundError:
                    continue  # it has come and gone
                if what[0] == 0:
                    found[os.path.relpath(path, lab.directory)] = what
    return found


def masterships():
    return {node: {key: bus.announced(lab, node)[key] for key in ('history', 'epoch', 'master_node')} for node in NODES}


def processes():
    """Daemons, and the guests that nobody may touch."""
    daemons = {f'{row["name"]}@{node["name"]}': (row['pid'], row['restarts']) for node in lab.status()['nodes'] for row in node['daemons']}
    return daemons, {name: lab.qemu_processes(uuids[name]) for name in GUESTS}


def differences(before, now, at=''):
    if isinstance(before, dict) and isinstance(now, dict):
        return [one for key in sorted({*before, *now}) for one in differences(before.get(key), now.get(key), f'{at}/{key}')]
    return [] if before == now else [f'{at}: {before} -> {now}']


class Same:
    """What is so now stays so."""

    def __init__(self):
        self.before = self.now()
        self.counts = {name: lab.printed(name, uuids[name], node) for name, node in GUESTS.items()}

    @staticmethod
    def now():
        return {'record': record(), 'files': files(), 'masterships': masterships(), 'processes': processes()}

    def check(self):
        found = differences(self.before, self.now())
        assert not found, '\n'.join(found[:30])
        for name, node in GUESTS.items():
            self.counts[name] = e2e.wait_counting(lab, name, uuids[name], node, self.counts[name] + 1, 60)


# --- the client ---

class Client(threading.Thread):
    """Commits a tag after the other by a job, and sometimes a setting."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ending, self.tags, self.failure = False, [], None
        self.start()

    def run(self):
        try:
            with lab.luxi_new() as line:
                while not self.ending:
                    self.one(line, f'client{len(self.tags)}')
        except BaseException as error:  # pylint: disable=broad-except
            self.failure = error

    def one(self, line, tag):
        job = line.call('SubmitJob', [{'OP_ID': 'OP_TAGS_SET', 'kind': 'cluster', 'name': '', 'tags': [tag]}])
        wait_until(f'tag {tag} is there', lambda: self.over(line, job), 60, step=0.02)
        self.tags.append(tag)

    @staticmethod
    def over(line, job):
        status, result = line.call('QueryJobs', [job], ['status', 'opresult'])[0]
        assert status not in ('error', 'canceled'), result
        return status == 'success'


# --- the round ---

def known():
    """What the attackers know, or can guess: values by the names of fields."""
    nodes = [bus.id_of(lab, node) for node in NODES]
    told = bus.announced(lab, 'node1')
    return {'instance': [uuids[name] for name in GUESTS], 'generation': [1, 2, 3], 'node': nodes, 'node_uuid': nodes, 'primary_node': nodes,
            'replica': [lab.instance(name, 'replica.uuid')['replica.uuid'] for name in ('web1', 'web2')], 'master_node': nodes,
            'livelock': os.listdir(os.path.join(lab.root('node1'), 'run/livelocks')), 'job': ['5', 'luxid'], 'mode': ['exclusive', 'shared'],
            'name': ['web1', 'node2', 'cluster/BGL', 'instance/web1'], 'level': ['cluster', 'instance', 'node'],
            'kind': ['secret', 'instance', 'node', 'cluster', 'tag'], 'key': ['confd', uuids['web1'], nodes[0]], 'version': [0, 1, 2],
            'wait_ms': [0], 'timeout_ms': [0], 'history': [told['history']], 'epoch': [told['epoch']], 'os_type': ['tick'],
            'disks': [[{'size': 8}]]}


def aims():
    """Files, folders and sockets of root's: those of the lab, the test's own, those of the host that a guest's user would like."""
    found = [os.path.join(folder, name) for name in ('secret', 'tree', 'tree/1')]
    for node in NODES:
        for at, folders, names in os.walk(lab.root(node)):
            found += [os.path.join(at, name) for name in folders + names if os.lstat(os.path.join(at, name)).st_uid == 0]
    return [path for path in found if uuids[EVIL] not in path]


def pids():
    """Of root's: daemons, and one that has nothing to do with it. Who is of the same user it can end (security.md)."""
    return [os.getpid(), *(row['pid'] for node in lab.status()['nodes'] for row in node['daemons'] if row['state'] == 'running')]


def check_answers(speaker):
    """An ordinary node is answered what it may ask, without a secret, and nothing is promised or confirmed to it."""
    secrets = [value['value'] for value in json.loads(lab.cli('cluster', 'export', '--with-secrets'))['objects']['secret'].values()]
    with open(os.path.join(lab.root('node1'), 'etc/ca.key'), encoding='utf-8') as file:
        secrets.append(file.read().split('\n')[1])
    results = {what: answers['result'] for what, answers in speaker.answers.items() if 'result' in answers}
    codes = collections.Counter(code for answers in speaker.answers.values() for code, given in answers.items() for _ in given)
    print(f'# node: {dict(codes)}; results of {sorted(results)}', flush=True)
    assert set(results) <= ANSWERED, sorted(set(results) - ANSWERED)
    for what, given in results.items():
        text = json.dumps(given)
        assert not any(secret in text for secret in secrets), what
    assert not any(answer['granted'] for answer in results.get('noded/promise_epoch', []))
    for answer in results.get('wconfd/confirm', []):
        assert all(item['answer'] == 'refused' and not item.get('holder') for item in answer['items']), answer


def check_done(user):
    """Of all that the user tried it could read what everybody may, and end its own relay."""
    print(f'# user: {dict(collections.Counter(words[0] for words in user.done))}', flush=True)
    strange = [words for words in user.done if not (words[0] == 'read' and re.search(PUBLIC, words[1]) or
                                                    words[0] == 'end' and words[1] in user.relays)]
    assert not strange, strange[:10]


@title('/attack/hostile-round#SAF-100,SAF-101,SAF-102,SAF-103,SAF-104,SAF-107,SAF-109')
def test_round():
    print(f'# FETTLE_SEED={SEED} FETTLE_MOVES={MOVES}', flush=True)
    same, client = Same(), Client()
    speaker = hostile.Speaker(lab, 'node4', SEED, known())
    qemu = lab.qemu_processes(uuids[EVIL])[0]
    relay = os.path.join(lab.root('node2'), 'run/guests', uuids[EVIL], 'relay')
    user = hostile.User(SEED, os.stat(f'/proc/{qemu}').st_uid, relay, aims(), pids())
    attacks = [hostile.Attack(speaker, MOVES), hostile.Attack(user, 10 * MOVES)]
    try:
        while any(attack.is_alive() for attack in attacks):
            same.check()
    finally:
        for one in (client, *attacks):
            one.ending = True
            one.join()
        user.end()
    print(f'# {speaker.asked} and {user.asked} moves, {len(client.tags)} commits', flush=True)
    for one in (client, *attacks):
        if one.failure:
            raise one.failure
    same.check()
    lost = set(client.tags) - set(lab.cli('tag', 'list', 'cluster').split())
    assert client.tags and not lost, lost
    check_answers(speaker)
    check_done(user)
    e2e.verify_clean(lab)


@title('/attack/hostile-round/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='fettle-round-', dir='/var/tmp') as folder:
        os.chmod(folder, 0o711)
        os.mkdir(os.path.join(folder, 'tree'))
        for name in ('secret', *(f'tree/{number}' for number in range(20))):
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as made:
                made.write('of root\n')
            os.chmod(os.path.join(folder, name), 0o600)
        with e2e.new_lab(4, ('--candidates', '3', '--replica-lost-ms', '1000', '--watcher-interval-ms', '500')) as lab:
            confd.lab = lab
            lab.do('OP_INSTANCE_CREATE', instance_name='web1', pnode='node2', snode='node3', **e2e.TICK)
            lab.do('OP_INSTANCE_CREATE', instance_name='web2', pnode='node3', snode='node1', **e2e.TICK)
            lab.do('OP_INSTANCE_CREATE', instance_name='web3', pnode='node1', **{**e2e.TICK, 'disk_template': 'file'})
            lab.do('OP_INSTANCE_CREATE', instance_name=EVIL, pnode='node2', snode='node1', **e2e.TICK)
            uuids = {name: e2e.uuid_of(lab, name) for name in (*GUESTS, EVIL)}
            for name in ('web1', 'web2', EVIL):
                e2e.wait_healthy(lab, name, 120)
            e2e.verify_clean(lab)
            e2e.run(test_round, test_logs)
