#!/usr/bin/env python3
"""Volume services that are dead, and who cleans for them, by real processes: on request, by itself, and when the dead one lives after all.

Death is a process that stands still (SIGSTOP): it gives no sign of life, and no supervisor starts it again. What it was doing is held by a
directory that stands still (fsfreeze).
"""
import contextlib
import os
import re

import e2e
from e2e import fettlelib, title, wait_until

PATIENCE_S = 30
THIN = ('--overcommit', '100000')   # the disks of a lab are small, and volumes of tests blank
DOWN_S = 3
lab = None
folder = None   # the places of all back ends


def services():
    return {row['host']: row['state'] for row in lab.query('storage_service', ['host', 'state'])}


def is_up(*hosts):
    return all(services().get(host) == 'up' for host in hosts)


def volume(name):
    """Its fields; None: it is gone."""
    fields = ['name', 'uuid', 'status', 'why', 'data', 'operation', 'worker', 'backend']
    found = lab.query('volume', fields, ['=', 'name', name])
    return found[0] if found else None


def settle(name):
    wait_until(f'the work on {name} has ended', lambda: volume(name) is None or volume(name)['operation'] is None, PATIENCE_S)
    return volume(name)


def files(backend):
    path = os.path.join(folder, backend, 'volumes')
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


@contextlib.contextmanager
def disk(name):
    """A back end of node1 and node2 on a disk of its own."""
    with fettlelib.disk_of_its_own(os.path.join(folder, name), 64) as place:
        lab.cli('backend', 'add', name, '--nodes', 'node1,node2', '--path', place, *THIN)
        wait_until(f'{name} is served', lambda: is_up(f'node1@{name}', f'node2@{name}'), PATIENCE_S)
        yield place
        lab.cli('backend', 'remove', name)


def die(place, *words):
    """node2's service dies while it does that: it is the only one that may take it, and its back end stands still until it is dead."""
    lab.lab('pause', 'volumed@node1')
    with fettlelib.standing_still(place):
        row = lab.json('volume', *words, '--no-wait')['worker']
        wait_until('it is known', lambda: lab.call('QueryClusterInfo')['serial'] >= row, PATIENCE_S)
        wait_until('node2 has taken it', lambda: volume('v')['worker'] == 'node2@dir1', PATIENCE_S)
        lab.lab('pause', 'volumed@node2')
    lab.lab('resume', 'volumed@node1')
    wait_until('node2 is down', lambda: services()['node2@dir1'] == 'down' and is_up('node1@dir1'), PATIENCE_S)


def refusals():
    """How often node2's service said that its work was another's."""
    with open(os.path.join(lab.root('node2'), 'log', 'volumed.log'), encoding='utf-8', errors='replace') as file:
        return file.read().count(': left alone: ')


def revive():
    """It lives after all: it is refused, and serves on."""
    lab.lab('resume', 'volumed@node2')
    wait_until('node2 is up', lambda: is_up('node2@dir1'), PATIENCE_S)
    lab.lab('pause', 'volumed@node1')
    assert lab.cli('volume', 'create', 'next', '--size', '1', '--backend', 'dir1') == 'Volume next is available.\n'
    lab.lab('resume', 'volumed@node1')
    lab.cli('volume', 'delete', 'next')


@title('/cleanup/nothing-to-clean#CLN-35')
def test_nothing():
    assert lab.cli('cleanup') == 'cleaning: -\nunavailable: -\nNo service is down; see: fettle storage-service list\n'
    assert 'No service is down that all of this fits;' in lab.cli('cleanup', '--host', 'nope')
    for words, message in ((('--service-id', 'x'), 'service_id'), (('--binary', 'nova-compute'), 'binary'),
                           (('--resource-id', 'x'), 'resource_id'), (('--is-up', 'maybe'), 'is_up')):
        code, _, err = lab.run('cleanup', *words, check=False)
        assert code == 2 and message in err, (words, code, err)


@title('/cleanup/on-request-by-another-member#CLN-23,CLN-28,CLN-38,CLN-44')
def test_asked():
    with disk('dir1') as place:
        die(place, 'create', 'v', '--size', '1', '--backend', 'dir1')
        said = lab.cli('why', 'volume', 'v')
        assert 'node2@dir1 is down since' in said and 'fettle cleanup --host node2@dir1' in said, said
        said = lab.cli('cleanup')
        assert said.startswith('cleaning: node2@dir1 by node1@dir1 (1 row)\nunavailable: -\n'), said
        found = settle('v')
        assert found['status'] == 'error' and found['data'] is None, found
        said = lab.cli('why', 'volume', 'v')
        assert re.search(r'cinder-volume node1@dir1: volume v: creating -> error', said) and 'Now: volume v is error' in said, said
        said = lab.cli('why', 'storage-service', 'node2@dir1')
        assert 'cinder-volume node1@dir1 has cleaned for cinder-volume node2@dir1' in said and 'done by node1@dir1: 1 of 1' in said, said
        before = refusals()
        revive()
        assert refusals() == before + 1, refusals()
        assert volume('v')['status'] == 'error' and volume('v')['data'] is None
        lab.cli('volume', 'delete', 'v')
        # What it made, and the other one had removed before or not: nothing names it, and the next start sweeps it.
        lab.lab('kill', 'volumed@node1')
        wait_until('nothing is left', lambda: files('dir1') == [], PATIENCE_S)


@title('/cleanup/by-itself#CLN-47,CLN-49')
def test_automatic():
    lab.cli('cluster', 'modify', '--auto-cleanup-enabled', 'yes', '--auto-cleanup-checks', '1')
    with disk('dir1') as place:
        lab.cli('volume', 'create', 'v', '--size', '1', '--backend', 'dir1')
        die(place, 'extend', 'v', '--size', '2')
        found = settle('v')
        assert found['status'] in ('available', 'error_extending'), found
        revive()
        lab.cli('volume', 'delete', 'v')
        wait_until('nothing is left', lambda: files('dir1') == [], PATIENCE_S)
    lab.cli('cluster', 'modify', '--auto-cleanup-enabled', 'no')


@title('/cleanup/a-back-end-is-chosen#CLN-25')
def test_chosen():
    for name, node in (('one', 'node1'), ('two', 'node2')):
        os.mkdir(os.path.join(folder, name), 0o755)
        lab.cli('backend', 'add', name, '--nodes', node, '--path', os.path.join(folder, name), *THIN)
        wait_until(f'{name} is served', lambda name=name, node=node: is_up(f'{node}@{name}'), PATIENCE_S)
    assert lab.cli('volume', 'create', 'any', '--size', '1') == 'Volume any is available.\n'
    assert volume('any')['backend'] in ('one', 'two')
    lab.cli('volume', 'delete', 'any')
    code, _, err = lab.run('volume', 'create', 'huge', '--size', '64T', check=False)
    assert code == 24 and 'volume huge: error: no back end for 65536 GiB: one holds ' in err, (code, err)
    lab.cli('volume', 'delete', 'huge')


@title('/cleanup/a-service-is-disabled')
def test_disabled():
    assert lab.cli('storage-service', 'disable', 'node1@one', '--reason', 'disk is old') == 'node1@one takes no new work.\n'
    assert lab.cli('volume', 'create', 'any', '--size', '1') == 'Volume any is available.\n'
    assert volume('any')['backend'] == 'two'
    row = lab.json('volume', 'create', 'waits', '--size', '1', '--backend', 'one', '--no-wait')['worker']
    wait_until('it is known', lambda: lab.call('QueryClusterInfo')['serial'] >= row, PATIENCE_S)
    said = lab.cli('why', 'volume', 'waits')
    assert re.search(r'waits for a member of one since .*: node1@one \(up, disabled\)', said), said
    assert lab.cli('storage-service', 'enable', 'node1@one') == 'node1@one takes work.\n'
    assert settle('waits')['status'] == 'available'
    code, _, err = lab.run('storage-service', 'disable', 'node9@one', check=False)
    assert code == 3 and 'storage service "node9@one" does not exist' in err, (code, err)
    said = lab.cli('storage-service', 'list')
    assert re.search(r'^cinder-scheduler +node1 +up ', said, re.M), said


@title('/cleanup/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        folder = os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', str(DOWN_S))
        e2e.run(test_nothing, test_asked, test_automatic, test_chosen, test_disabled, test_logs)
