#!/usr/bin/env python3
"""Snapshots and backups of volumes that a guest writes to, by real processes: each is one moment, whatever dies in the middle, and the
guest goes on and keeps nothing of it (SAF-59).
"""
import contextlib
import os
import struct

import e2e
import moves
import test_backups as b
import test_volume_attach as a
import test_volumes as v
from e2e import fettlelib, title, wait_until

PATIENCE_S = 30
RING_FIRST, RING_LEN = 8, 1024  # sectors: tests/helper/tick.asm
FILL_AT, FILL_BYTES = 16 << 20, 32 << 20
lab = None


def printed(name='ticker'):
    return lab.printed(name, e2e.uuid_of(lab, name), moves.place(name))


def goes_on(name='ticker'):
    e2e.wait_counting(lab, name, e2e.uuid_of(lab, name), moves.place(name), printed(name))


def entry(file, sector):
    file.seek(sector * 512)
    magic, count, check = struct.unpack('<4sII', file.read(12))
    if magic != b'TICK':
        return None
    assert check == count ^ 0xffffffff, f'sector {sector} is torn'
    return count


def moment(path):
    """The last count of a guest's volume, which has each one before it and none of later."""
    with open(path, 'rb') as file:
        last = entry(file, 1)
        ring = [entry(file, RING_FIRST + (n & (RING_LEN - 1))) for n in range(max(last - RING_LEN + 2, 1), last + 1)]
        ahead = entry(file, RING_FIRST + ((last + 2) & (RING_LEN - 1)))
    assert ring == list(range(max(last - RING_LEN + 2, 1), last + 1)), (last, ring)
    assert ahead is None or ahead < last, (last, ahead)
    return last


def filling(path):
    with open(path, 'rb') as file:
        file.seek(FILL_AT)
        return file.read(FILL_BYTES)


def make_guest(name, backend, fill):
    """One that counts on a volume of that back end, which has more in it."""
    moves.create(name, 'diskless')
    lab.cli('instance', 'shutdown', name, '--timeout', '0')
    lab.cli('volume', 'create', f'{name}-boot', '--size', '1', '--backend', backend)
    path = v.data('volumes', v.volumes()[f'{name}-boot'])
    with open(os.path.join(lab.root('node2'), 'var', 'images', 'tick.raw'), 'rb') as image, open(path, 'r+b') as file:
        file.write(image.read(512))
        file.seek(512)
        file.write(bytes(512 * (RING_FIRST + RING_LEN)))  # no room is needed for what it writes
        file.seek(FILL_AT)
        file.write(os.urandom(fill))
        os.fsync(file.fileno())
    lab.cli('volume', 'attach', f'{name}-boot', name)
    lab.cli('instance', 'startup', name)
    e2e.wait_counting(lab, name, e2e.uuid_of(lab, name), 'node2', 2)
    return path


def monitor(name='ticker'):
    return a.monitor(moves.place(name), e2e.uuid_of(lab, name))


def nothing_left(name='ticker'):
    with monitor(name) as qmp:
        nodes = [node['node-name'] for node in qmp.execute('query-named-block-nodes', {'flat': True})]
        return not qmp.execute('query-jobs') and not [node for node in nodes if node.startswith('p')]


def is_over(name):
    found = v.snapshots()[name]
    return found['operation'] is None and found


@contextlib.contextmanager
def copying(name):
    """A snapshot of that name whose copy stands still in the middle. Yields how QEMU calls its job."""
    with monitor() as qmp:
        lab.json('snapshot', 'create', name, '--volume', 'ticker-boot', '--no-wait')
        jobs = wait_until('it is copied', lambda: qmp.execute('query-jobs'), PATIENCE_S, step=0.001)
        qmp.execute('job-pause', {'id': jobs[0]['id']})
    yield jobs[0]['id']


def fails(name, why):
    found = wait_until(f'the work on {name} is over', lambda: is_over(name), PATIENCE_S)
    assert found['status'] == 'error' and why in found['why'], found
    lab.cli('snapshot', 'delete', name)
    v.check('dir1')


@title('/points/snapshot-under-load-is-one-moment#SAF-59')
def test_snapshot(path):
    before = printed()
    assert lab.cli('snapshot', 'create', 's1', '--volume', 'ticker-boot') == 'Snapshot s1 is available.\n'
    last = moment(v.data('snapshots', v.snapshots()['s1']))
    assert before <= last <= printed() + 1, (before, last, printed())
    assert filling(v.data('snapshots', v.snapshots()['s1'])) == filling(path)
    assert nothing_left() and lab.query('volume', ['status'], ['=', 'name', 'ticker-boot'])[0]['status'] == 'in-use'
    goes_on()
    lab.cli('volume', 'create', 'again', '--snapshot', 's1')
    assert moment(v.data('volumes', v.volumes()['again'])) == last
    lab.cli('volume', 'delete', 'again', '--yes')
    lab.cli('snapshot', 'delete', 's1')
    v.check('dir1')


@title('/points/backup-under-load-is-restored#SAF-59')
def test_backup(path):
    before = printed()
    assert lab.cli('backup', 'create', 'ticker-boot', '--name', 'b1') == 'Backup b1 is available.\n'
    after = printed()
    assert nothing_left()
    goes_on()
    b.check('dir1')
    lab.cli('backup', 'restore', 'b1', '--new', 'again')
    restored = v.data('volumes', v.volumes()['again'])
    assert before <= moment(restored) <= after + 1 and filling(restored) == filling(path)
    lab.cli('volume', 'delete', 'again', '--yes')
    lab.cli('backup', 'delete', 'b1')


@title('/points/node-daemon-dies-in-mid-copy#SAF-59')
def test_noded():
    before = printed()
    with copying('s2') as job:
        lab.lab('kill', 'noded@node2')
        goes_on()
        with monitor() as qmp:
            qmp.execute('job-resume', {'id': job})
    found = wait_until('it is over', lambda: is_over('s2'), PATIENCE_S)
    assert found['status'] == 'available', found
    assert before <= moment(v.data('snapshots', found)) < printed()
    assert nothing_left()
    lab.cli('snapshot', 'delete', 's2')


@title('/points/member-dies-in-mid-copy#SAF-59')
def test_volumed():
    with copying('s3'):
        owner = wait_until('somebody has it', lambda: v.snapshots()['s3']['worker'], PATIENCE_S)
        lab.lab('kill', f'volumed@{owner.split("@")[0]}')
        fails('s3', 'has ended')
    wait_until('nothing of it is left', nothing_left, PATIENCE_S)
    goes_on()


@title('/points/reset-in-mid-copy#SAF-59')
def test_reset():
    with copying('s4'):
        owner = wait_until('somebody has it', lambda: v.snapshots()['s4']['worker'], PATIENCE_S)
        lab.cli('snapshot', 'reset-state', 's4', '--status', 'error')
        lab.cli('snapshot', 'delete', 's4')
    wait_until('the claim is over', nothing_left, PATIENCE_S)
    goes_on()
    lab.lab('restart', f'volumed@{owner.split("@")[0]}')  # what is nobody's is swept at its start
    v.check('dir1')


@title('/points/guest-moves-in-mid-copy#SAF-59')
def test_migrate():
    with copying('s5'):
        moves.migrate('ticker', '--target-node', 'node1')
        fails('s5', 'its guest ended, moved or gave it up while it was copied')
    assert moves.place('ticker') == 'node1' and nothing_left()
    goes_on()
    lab.cli('snapshot', 'create', 's6', '--volume', 'ticker-boot')
    moment(v.data('snapshots', v.snapshots()['s6']))
    lab.cli('snapshot', 'delete', 's6')


@title('/points/guest-ends-in-mid-copy#SAF-59,SAF-120')
def test_ends(path):
    with copying('s7'):
        lab.cli('instance', 'shutdown', 'ticker', '--timeout', '0')
        fails('s7', 'its guest ended, moved or gave it up while it was copied')
    assert lab.cli('snapshot', 'create', 's8', '--volume', 'ticker-boot') == 'Snapshot s8 is available.\n'
    assert moment(v.data('snapshots', v.snapshots()['s8'])) == fettlelib.image_count(path)
    lab.cli('snapshot', 'delete', 's8')
    lab.cli('instance', 'startup', 'ticker')
    goes_on()


@title('/points/no-room-for-the-copy#SAF-59')
def test_full():
    with a.small_disk('small') as place:
        make_guest('tight', 'small', 24 << 20)
        pids = lab.qemu_processes(e2e.uuid_of(lab, 'tight'))
        a.fill(place)
        code, _, err = lab.run('snapshot', 'create', 'sx', '--volume', 'tight-boot', check=False)
        assert code != 0 and 'No space left on device' in err, (code, err)
        assert v.snapshots()['sx']['status'] == 'error'
        assert nothing_left('tight') and lab.qemu_processes(e2e.uuid_of(lab, 'tight')) == pids
        goes_on('tight')
        assert lab.instance('tight', 'status')['status'] == 'running'
        os.unlink(os.path.join(place, 'filler'))
        lab.cli('snapshot', 'delete', 'sx')
        v.check('small')
        moves.remove('tight')
        lab.cli('volume', 'delete', 'tight-boot', '--yes')


@title('/points/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2) as lab:
        a.lab = b.lab = v.lab = moves.lab = lab
        v.folder = os.path.join(lab.directory, 'shared')
        v.add_backend('dir1', 'node1', 'node2')
        lab.cli('backend', 'modify', 'dir1', '--backups', 'yes')
        boot = make_guest('ticker', 'dir1', FILL_BYTES)
        e2e.run(e2e.named(test_snapshot, boot), e2e.named(test_backup, boot), test_noded, test_volumed, test_reset, test_migrate,
                e2e.named(test_ends, boot), test_full, test_logs)
