#!/usr/bin/env python3
"""Volumes and snapshots in the middle of work that nobody has, on real files: what recovery makes of them. And what `cluster verify` says
of data that no record knows, and of records whose data is not there.

A restore of the store to the middle of each operation puts them there: `repair continue` ends their rows.
"""
import os

import e2e
import test_archive as archive
from e2e import title, wait_until

GIB = 1 << 30
PATIENCE_S = 30
WHOLE = 'user.fettle.whole'
STRAY = '12345678-0000-4000-8000-000000000001.9999999'   # later than all that is on record, as after a restore: no sweep takes it
lab = None
folder = None   # the place of dir1


def found(kind):
    return {one['name']: one for one in lab.query(kind, ['name', 'uuid', 'status', 'why', 'size', 'data'])}


def path_of(data, kind='volume'):
    return os.path.join(folder, kind + 's', data)


def make_whole(path):
    """As its service would have made it, of 1 GiB."""
    with open(path, 'xb') as file:
        file.truncate(GIB)
    os.setxattr(path, WHOLE, f'{path.rsplit(".", 1)[1]} {GIB}'.encode())


def make_half(path):
    with open(path, 'xb') as file:
        file.truncate(GIB)


# name: what was asked for, what is done to its file, what it becomes: its status, its size, whether it has data; rule, alert.
CASES = {
    'whole': (('create', '--size', '1'), make_whole, ('available', 1, True), 'RCV-73', False),
    'half': (('create', '--size', '1'), make_half, ('error', 1, False), 'RCV-73', False),
    'stays': (('delete', '--yes'), None, ('available', 1, True), 'RCV-73', True),
    'goes': (('delete', '--yes'), os.unlink, None, 'RCV-73', False),
    'torn': (('delete', '--yes'), lambda path: os.truncate(path, 4096), ('error_deleting', 1, True), 'RCV-73', True),
    'larger': (('extend', '--size', '2'), lambda path: os.truncate(path, 2 * GIB), ('available', 2, True), 'RCV-74', False),
    'as-before': (('extend', '--size', '2'), None, ('available', 1, True), 'RCV-74', False),
    'between': (('extend', '--size', '2'), lambda path: os.truncate(path, GIB + 4096), ('error_extending', 1, True), 'RCV-74', True)}
SNAPSHOTS = {
    'kept': (('create', '--volume', 'mine'), make_whole, ('available', 1, True), 'RCV-78', False),
    'lost': (('delete', '--yes'), os.unlink, None, 'RCV-78', False)}
ALL = (('volume', CASES), ('snapshot', SNAPSHOTS))


def settled():
    return all(not one['status'].endswith('ing') or one['status'].startswith('error') for kind in ('volume', 'snapshot') for one in found(kind).values())


def events(uuid):
    return {(one['event'], one['rule'], one['new']) for one in lab.query('event', ['event', 'rule', 'new'], ['=', 'subject', uuid])}


def check(kind, cases, before):
    now = found(kind)
    for name, (members, _, then, rule, alert) in cases.items():
        one = now.get(name)
        is_now = one and (one['status'], one['size'], bool(one['data']))
        assert is_now == then, (name, one)
        told = events(before[name]['uuid'])
        word = then[0] if then else 'gone'
        assert ('recovered', rule, word) in told, (name, told)
        assert alert == (('alert', rule, word) in told), (name, told)
        if one and one['status'] == 'available':
            assert one['data'] == before[name]['data'], (name, one)


def restore_to_there():
    """Nobody does the work of before."""
    lab.cli('cluster', 'backup', '--to', archive.path('backup'))
    name = archive.cluster_name()
    lab.lab('kill', 'volumed@node1')
    archive.wreck_store()
    archive.restore_surely(name)
    for daemon in ('luxid', 'watcher'):
        lab.lab('restart', f'{daemon}@node1')
    lab.luxi_connection = None
    wait_until('the cluster answers again', lambda: lab.run('cluster', 'info', check=False)[0] == 0, 60)


@title('/recovery-storage/restored-in-mid-operation#RCV-06,RCV-17,RCV-73,RCV-74,RCV-78,SAF-122')
def test_judged():
    lab.cli('volume', 'create', 'mine', '--size', '1')
    for kind, cases in ALL:
        for name, (words, *_) in cases.items():
            if words[0] != 'create':
                lab.cli(kind, 'create', name, *(('--size', '1') if kind == 'volume' else ('--volume', 'mine')))
    lab.lab('pause', 'volumed@node1')
    for kind, cases in ALL:
        for name, (words, *_) in cases.items():
            lab.cli(kind, words[0], name, *words[1:], '--no-wait')
    before = {kind: found(kind) for kind, _ in ALL}
    for kind, cases in ALL:
        for name, case in cases.items():
            one = before[kind][name]
            one['data'] = one['data'] or one['uuid'] + '.7'
            if case[1]:
                case[1](path_of(one['data'], kind))
    restore_to_there()
    held = {kind: {name: one['status'] for name, one in found(kind).items()} for kind, _ in ALL}
    assert held == {kind: {name: one['status'] for name, one in before[kind].items()} for kind, _ in ALL}, held
    lab.cli('repair', 'continue', '--statement', 'compared')
    wait_until('all are settled', settled, PATIENCE_S)
    for kind, cases in ALL:
        check(kind, cases, before[kind])


@title('/recovery-storage/what-is-told#RCV-30,RCV-33')
def test_told():
    said = lab.cli('recovery', 'list')
    assert 'torn' in said and 'between' in said and 'whole' not in said, said
    said = lab.cli('recovery', 'show', 'volume', 'torn')
    assert 'Volume torn' in said and 'RCV-73' in said and 'not whole' in said, said
    said = lab.cli('recovery', 'collect', 'volume', 'mine')
    assert f'{found("volume")["mine"]["data"]}: 1024 MiB, whole' in said, said
    code, _, err = lab.run('recovery', 'plan', 'volume', 'mine', check=False)
    assert code != 0 and 'volume "mine": nothing is stuck; it is available' in err, err
    said = lab.cli('why', 'volume', 'stays')
    assert 'it was not deleted' in said, said
    said = lab.cli('why', 'snapshot', 'kept')
    assert 'Now: snapshot kept is available, of volume mine.' in said, said
    # Its file is put right by hand, and it is judged anew.
    os.truncate(path_of(found('volume')['torn']['data']), GIB)
    lab.cli('recovery', 'retry', 'volume', 'torn')
    wait_until('it is judged anew', lambda: found('volume')['torn']['status'] == 'available', PATIENCE_S)
    lab.cli('volume', 'reset-state', 'between', '--status', 'error')
    assert 'between' not in lab.cli('recovery', 'list')


@title('/recovery-storage/verify#RCV-17,RCV-19')
def test_verify():
    lost, short = found('volume')['mine'], found('volume')['whole']
    os.unlink(path_of(lost['data']))
    os.truncate(path_of(short['data']), GIB // 2)
    with open(path_of(STRAY), 'wb') as file:
        file.truncate(GIB)
    said = lab.run('cluster', 'verify', check=False)[1]
    for line in (f'volume mine: its data {lost["data"]} is not there on back end dir1',
                 f'volume whole: its data {short["data"]} has 512 MiB of 1 GiB on back end dir1',
                 f'back end dir1: has data of a volume that no record knows: volumes/{STRAY}, 1024 MiB'):
        assert line in said, (line, said)
    assert 'volume stays' not in said and os.path.exists(path_of(STRAY)), said
    os.unlink(path_of(STRAY))
    os.truncate(path_of(short['data']), GIB)
    with open(path_of(lost['data']), 'wb') as file:
        file.truncate(GIB)
    said = lab.run('cluster', 'verify', check=False)[1]
    assert not any(name in said for name in (lost['data'], short['data'], STRAY)), said
    # Its service stands still: the command does not, and says what it could not look at.
    lab.lab('pause', 'volumed@node1')
    said = lab.run('cluster', 'verify', check=False)[1]
    lab.lab('resume', 'volumed@node1')
    assert 'back end dir1: what it has could not be compared with the record: node node1: no answer' in said or \
        'does not serve back end dir1: its volume service is down' in said, said


@title('/recovery-storage/half-made-data-is-discarded#RCV-23')
def test_discarded():
    """Claims of before the restore's leap: no sweep knows whether they are of this line of commits."""
    half, whole = '12345678-0000-4000-8000-000000000002.8', '12345678-0000-4000-8000-000000000003.8'
    make_half(path_of(half))
    make_whole(path_of(whole))
    lab.cli('cluster', 'modify', '--recovery-interval-period', '1')
    lab.lab('restart', 'watcher@node1')
    told = {f'volumes/{half}', f'volumes/{whole}'}
    wait_until('both are told', lambda: told <= {one['subject_name'] for one in lab.query('event', ['subject_name'], ['=', 'event', 'finding'])}, 60)
    assert lab.json('recovery', 'plan')['rows'] == []
    lab.lab('pause', 'watcher@node1')
    lab.cli('cluster', 'modify', '--recovery-rectify-unstable', 'all')
    said = lab.cli('recovery', 'plan')
    assert half in said and 'it goes: it is not marked whole' in said and whole not in said, said
    assert os.path.exists(path_of(half)) and said.count('it goes') == 1, said  # what a record without data may come to stays
    lab.lab('resume', 'watcher@node1')
    lab.lab('restart', 'watcher@node1')
    wait_until('what is half made is trash', lambda: 'RCV-23' in {rule for _, rule, _ in events(half.split('.', maxsplit=1)[0])}, 60)
    lab.lab('restart', 'volumed@node1')  # a sweep comes once an hour, and at its start
    wait_until('and goes', lambda: not os.path.exists(path_of(half)), 60)
    assert os.path.exists(path_of(whole))
    assert lab.json('recovery', 'plan')['rows'] == [], lab.json('recovery', 'plan')
    os.unlink(path_of(whole))
    lab.cli('cluster', 'modify', '--recovery-rectify-unstable', 'no')


@title('/recovery-storage/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=1, options=('--watcher-interval-ms', '500')) as lab:
        archive.lab, archive.folder = lab, lab.directory
        folder = os.path.join(lab.directory, 'shared', 'dir1')
        os.mkdir(folder, 0o755)
        lab.cli('cluster', 'modify', '--report-interval', '1', '--recovery-resync-interval', '2')
        lab.cli('backend', 'add', 'dir1', '--nodes', 'node1', '--path', folder, '--overcommit', '100000')
        wait_until('dir1 is served', lambda: [one['state'] for one in lab.query('storage_service', ['state'], ['=', 'host', 'node1@dir1'])] == ['up'],
                   PATIENCE_S)
        e2e.run(test_judged, test_told, test_verify, test_discarded, test_logs)
