#!/usr/bin/env python3
"""What an ordinary node that was taken over can do to the cluster: with its certificate, that of a candidate, of a removed node, and as a
job's process. Nothing that is not its own is changed, the guests of others run on with their disks, and no secret comes its way.

The attacker speaks to the node daemons of others itself, from the node's network, and says of its role what it likes.
"""
import json
import os
import re
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
import bus  # noqa: E402  pylint: disable=wrong-import-position
import e2e  # noqa: E402  pylint: disable=wrong-import-position
from e2e import title, wait_until  # noqa: E402  pylint: disable=wrong-import-position

NOWHERE = '00000000-0000-4000-8000-00000000dead'

lab = None
uuid = None  # of web1, on node2 with its replica on node3


def id_of(node):
    return bus.id_of(lab, node)


def record_of(node):
    with open(os.path.join(lab.root(node), 'var/node/guests', f'{uuid}.json'), encoding='utf-8') as file:
        return json.load(file)


# --- the attacker ---

def ask(target, role, method, args=None, to='noded', as_node='node4', certificate=None):
    """As that role of a node, with its certificate, of a daemon of another."""
    return bus.ask(lab, as_node, target, role, method, args or {}, to, certificate)


def ask_here(role, method, args=None):
    """As a process of the master's node, of its wconfd."""
    own, stamp = id_of('node1'), bus.announced(lab, 'node1')
    question = {'v': 1, 'history': stamp['history'], 'epoch': stamp['epoch'], 'id': 77, 'from': f'{own}/{role}', 'to': f'{own}/wconfd',
                'method': method, 'args': args or {}}
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.path.join(lab.root('node1'), 'run/wconfd.sock'))
        return bus.exchange(link, question, question['from'])


def refused(answer, code, message):
    assert answer.get('error') == {'code': code, 'message': message}, answer


def only_master(method, node='node4'):
    return (f'node "{node}" is not the master; only the master\'s luxid, jobs and watcher may call {method}')


def only_candidates(method):
    return f'node "node4" is no master candidate; only candidates may call {method}'


def owner(job='luxid'):
    """A stranger's: of a process of the master that lives and may well hold locks."""
    names = os.listdir(os.path.join(lab.root('node1'), 'run/livelocks'))
    return {'job': job, 'livelock': next(name for name in names if name.startswith('luxid-'))}


def images():
    """Paths of all images of web1 on node2 and node3."""
    return sorted(os.path.join(top, name) for node in ('node2', 'node3') for top, _, names in os.walk(os.path.join(lab.root(node), 'var'))
                  for name in names if uuid in os.path.join(top, name) and 'disk' in os.path.join(top, name))


class untouched:  # pylint: disable=invalid-name
    """Around a move: the guest goes on, in the same process, with the same record and images."""
    def __enter__(self):
        self.before = (lab.qemu_processes(uuid), images(), self.row())

    @staticmethod
    def row():
        row = lab.instance('web1', 'pnode', 'snodes', 'status', 'replica.state')
        return json.dumps(row, sort_keys=True)

    def __exit__(self, kind, *_):
        if kind:
            return
        assert (lab.qemu_processes(uuid), images(), self.row()) == self.before
        e2e.wait_counting(lab, 'web1', uuid, 'node2', lab.printed('web1', uuid, 'node2') + 1, 60)


def secrets_of():
    """What nobody but the named may have: ConfD's key, and the key with which web1's mirror reaches its replica."""
    document = json.loads(lab.cli('cluster', 'export', '--with-secrets'))
    return {'confd': document['objects']['secret']['confd']['value'], 'replica': record_of('node2')['target']['psk']}


# --- an ordinary node ---

@title('/attack/ordinary-node/whole-configuration#SAF-100,SAF-101')
def test_configuration():
    with untouched():
        for role, method in (('watcher', 'snapshot'), ('luxid', 'snapshot'), ('job/5', 'wait_changes'), ('watcher', 'wait_changes')):
            refused(ask('node1', role, method, {'serial': 0} if method == 'wait_changes' else {}, 'wconfd'), 'permission_denied',
                    only_master(method))
        refused(ask('node1', 'noded', 'wait_changes', {'serial': 0}, 'wconfd'), 'permission_denied',
                'wconfd/wait_changes: role "noded" may not call it')
        for method, args in (('snapshot', {}), ('wait_changes', {'serial': 0}), ('commit_ids', {'after': 0}), ('authority_key', {})):
            refused(ask('node1', 'wconfd', method, args, 'wconfd'), 'permission_denied', only_candidates(method))
        for method, args in (('snapshot', {}), ('wait_changes', {'serial': 0})):
            refused(ask('node1', 'scheduler', method, args, 'wconfd'), 'permission_denied', only_candidates(method))


@title('/attack/ordinary-node/changes-as-a-copy-that-was#SAF-101')
def test_follow():
    """It is none, whatever it says that its copy has; and no commit waits for it, or counts it."""
    message = 'node node4 is no master candidate: it keeps no copy of the configuration'
    with untouched():
        serial = lab.call('QueryClusterInfo')['serial']
        for has in range(1, serial + 1, max(1, serial // 20)):
            refused(ask('node1', 'wconfd', 'follow', {'history': 1, 'serial': has, 'digest': '0'}, 'wconfd'), 'permission_denied', message)


@title('/attack/ordinary-node/commit-under-a-stranger-s-lock#SAF-100,SAF-101')
def test_commit():
    changes = [{'op': 'put', 'kind': 'secret', 'key': 'confd', 'version': 1, 'object': {'value': '00' * 32}}]
    with untouched():
        for role, method in (('job/5', 'commit'), ('job/5', 'change_node'), ('luxid', 'change_jobs'), ('watcher', 'record_repairs')):
            refused(ask('node1', role, method, {'owner': owner(), 'commit_id': NOWHERE, 'changes': changes}, 'wconfd'),
                    'permission_denied', only_master(method))
        locks = {'owner': owner(), 'locks': [{'name': 'cluster/BGL', 'mode': 'exclusive'}]}
        refused(ask('node1', 'job/5', 'update_locks', locks, 'wconfd'), 'permission_denied', only_master('update_locks'))
        refused(ask('node1', 'luxid', 'list_all_locks', {}, 'wconfd'), 'permission_denied', only_master('list_all_locks'))
        refused(ask('node1', 'cli', 'update_locks', locks, 'wconfd'), 'permission_denied',
                'node "node4" may not call update_locks: it is for this node\'s own commands')
        refused(ask('node1', 'noded', 'update_locks', locks, 'wconfd'), 'permission_denied',
                'wconfd/update_locks: role "noded" may not call it')


@title('/attack/ordinary-node/another-s-guest#SAF-100')
def test_guest():
    generation = record_of('node2')['generation']
    of_it = {'instance': uuid, 'generation': generation}
    with untouched():
        for role, method, args in (('luxid', 'console_write', {'instance': uuid, 'data': 'eA=='}),
                                   ('luxid', 'console_read', {'instance': uuid}), ('job/5', 'guest_reset', of_it),
                                   ('job/5', 'guest_stop', {**of_it, 'timeout_ms': 0}), ('job/5', 'mirror_detach', of_it),
                                   ('job/5', 'disks_remove', {'instance': uuid, 'generation': generation})):
            refused(ask('node2', role, method, args), 'permission_denied', only_master(method))


@title('/attack/ordinary-node/replica-of-another#SAF-100,SAF-101')
def test_replica():
    held, target = record_of('node3'), record_of('node2')['target']
    of_it = {'instance': uuid, 'replica': held['replica'], 'generation': held['replica_generation']}
    with untouched():
        refused(ask('node3', 'job/5', 'replica_open', {**of_it, 'disks': held['replica_disks']}), 'permission_denied',
                only_master('replica_open'))
        refused(ask('node3', 'job/5', 'replica_close', of_it), 'permission_denied', only_master('replica_close'))
        # Whoever has got hold of the key speaks for the holder no more than anybody else.
        refused(ask('node3', 'noded', 'replica_settle', {**of_it, 'target': target}), 'permission_denied',
                f'replica {held["replica"]} is mirrored to by node {id_of("node2")}, which holds generation '
                f'{held["replica_generation"]} of instance {uuid}; node {id_of("node4")} may not settle it')
        state = {**of_it, 'sync': 1, 'state': 'in-sync'}
        refused(ask('node1', 'noded', 'set_replica_state', state, 'wconfd'), 'permission_denied',
                f'instance web1: node4 does not hold generation {held["replica_generation"]}, node2 does')
        refused(ask('node1', 'noded', 'set_migrated', {'instance': uuid, 'generation': held['replica_generation'], 'migration': NOWHERE,
                                                       'clean': True}, 'wconfd'), 'permission_denied',
                f'instance web1: node4 does not hold generation {held["replica_generation"]}, node2 does')
        for role in ('run', 'start', 'export', 'mirror', 'incoming', 'new-disks'):
            item = {'role': role, 'instance': uuid, 'generation': held['replica_generation'], 'replica': held['replica']}
            answer = ask('node1', 'noded', 'confirm', {'items': [item]}, 'wconfd')['result']['items'][0]
            assert answer['answer'] == 'refused' and answer['holder'] == '', (role, answer)


@title('/attack/ordinary-node/promise-of-a-member-s-process#SAF-100')
def test_member():
    with untouched():
        for method in ('member_stop', 'member_remove', 'member_aside', 'member_prepare'):
            refused(ask('node2', 'wconfd', method), 'permission_denied', only_candidates(method))
            refused(ask('node2', 'job/5', method), 'permission_denied', f'noded/{method}: role "job" may not call it')


# --- others ---

@title('/attack/ordinary-node/as-a-candidate#SAF-100,SAF-101')
def test_candidate():
    """A candidate is no master either; but it has everything to become one, by design."""
    refused(ask('node1', 'watcher', 'snapshot', {}, 'wconfd', 'node3'), 'permission_denied', only_master('snapshot', 'node3'))
    refused(ask('node2', 'job/5', 'guest_reset', {'instance': uuid, 'generation': 1}, as_node='node3'), 'permission_denied',
            only_master('guest_reset', 'node3'))
    piece = ask('node1', 'wconfd', 'snapshot', {}, 'wconfd', 'node3')['result']
    assert any(change['kind'] == 'secret' for change in piece['changes']), 'a candidate has no whole copy'


@title('/attack/ordinary-node/as-a-job#SAF-101')
def test_job():
    """What the master's own processes are sent has no secret, and an owner that does not live gets nothing."""
    for role in ('job/5', 'luxid', 'watcher', 'scheduler'):
        for method, args in (('snapshot', {}), ('wait_changes', {'serial': 0}), ('snapshot', {'job': 5})):
            answer = ask_here(role, method, args)['result']
            kinds = {change['kind'] for change in answer['changes']}
            assert 'instance' in kinds and 'secret' not in kinds, (role, method, kinds)
    dead = {'job': '5', 'livelock': 'job-5-1-0000000000000000'}
    locks = {'owner': dead, 'locks': [{'name': 'cluster/BGL', 'mode': 'exclusive'}]}
    refused(ask_here('job/5', 'update_locks', locks), 'wrong_state',
            'job 5 does not live: nobody holds its lock file job-5-1-0000000000000000; nothing is locked or changed for it')
    value = {'op': 'put', 'kind': 'secret', 'key': 'confd', 'version': 1, 'object': {'value': '00' * 32}}
    refused(ask_here('job/5', 'commit', {'owner': owner('5'), 'commit_id': NOWHERE, 'changes': [value]}), 'permission_denied',
            'secret confd: job may not change it; no commit may')


@title('/attack/ordinary-node/secrets-in-files-and-answers#SAF-101')
def test_secrets():
    """Of each secret only those files have it that are of whom it is for; no job, log, report or query has any."""
    allowed = {'confd': r'/node[123]/var/(confd\.key|store\.db[^/]*)$',
               'replica': r'/node2/(var/node/guests/|run/guests/)|/node3/(run/exports/|run/psk|var/node/guests/)'}
    for what, secret in secrets_of().items():
        found = []
        for top, _, names in os.walk(lab.directory):
            for name in names:
                path = os.path.join(top, name)
                if os.path.isfile(path) and not os.path.islink(path) and '/disks/' not in path and not name.endswith('.img'):
                    with open(path, 'rb') as file:
                        if secret.encode() in file.read():
                            found.append(path)
        strange = [path for path in found if not re.search(allowed[what], path)]
        assert found and not strange, (what, strange)
        told = json.dumps([lab.query('instance', ['name', 'status', 'replica.state']), ask('node2', 'wconfd', 'node_report', {}, 'noded', 'node1')])
        assert secret not in told, what


@title('/attack/ordinary-node/as-a-removed-node#SAF-100')
def test_removed():
    kept = os.path.join(lab.directory, 'kept')
    os.makedirs(os.path.join(kept, 'etc'))
    for name in ('node.crt', 'node.key', 'node.json'):
        with open(os.path.join(lab.root('node4'), 'etc', name), 'rb') as file, open(os.path.join(kept, 'etc', name), 'wb') as copy:
            copy.write(file.read())
    me = id_of('node4')
    lab.cli('node', 'remove', 'node4')
    message = (f'node {me} is no member of this cluster: it was never added, or it was removed and its certificate is revoked; it joins with '
               'a token of `fettle node invite`')
    for target in ('node1', 'node2', 'node3'):
        wait_until(f'{target} has heard of it', lambda at=target: ask(at, 'noded', 'engine_status', certificate=kept).get('error'))
        for role, method, to in (('watcher', 'snapshot', 'wconfd'), ('noded', 'confirm', 'wconfd'), ('job/5', 'disks_remove', 'noded'),
                                 ('wconfd', 'follow', 'wconfd'), ('wconfd', 'announce', 'noded')):
            refused(ask(target, role, method, {}, to, certificate=kept), 'permission_denied', message)


@title('/attack/ordinary-node/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(4, ('--candidates', '3', '--replica-lost-ms', '1000', '--watcher-interval-ms', '500')) as lab:
        uuid = e2e.create(lab, 'web1')
        e2e.wait_healthy(lab, 'web1', 120)
        e2e.run(test_configuration, test_follow, test_commit, test_guest, test_replica, test_member, test_candidate, test_job, test_secrets, test_removed,
                test_logs)
