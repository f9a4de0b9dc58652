#!/usr/bin/env python3
"""Disks of real guests: growing, activating, making anew, reinstalling, importing, several at once, a short outage."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import e2e
from e2e import fettlelib, title, wait_until

lab = None


def create(name, template='mirror', **more):
    return e2e.create(lab, name, template, **more)


def remove(name):
    lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)


def image(node, name):
    return os.path.join(lab.root(node), 'var', 'disks', name)


def copies(name, uuid, disk=0):
    """Both images of a mirrored disk, as long as its record stands: (on the primary, on the secondary)."""
    row = lab.instance(name, 'pnode', 'snodes', 'replica')
    return (image(row['pnode'], f'{uuid}.disk{disk}.raw'),
            image(row['snodes'][0], f'{uuid}.{row["replica"]}.disk{disk}.raw'))


def same(paths):
    return subprocess.run(['cmp', '--quiet', *paths], check=False).returncode == 0


def starts(name, uuid, node):
    """The counts that the guest found on its disk each time it booted on a node."""
    try:
        with open(lab.console_path(name, uuid, node), 'rb') as file:
            lines = file.read().split(b'\r\n')[:-1]
    except FileNotFoundError:
        return []
    return [int(line.split(b'START ')[1]) for line in lines if b'START ' in line]


def stop(name):
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name=name, wait=240)


def end_with_equal_copies(name, uuid, pids):
    """It has run in the same processes to its end, and both copies have what it printed on node2. It is removed."""
    assert lab.qemu_processes(uuid) == pids, 'the guest was restarted'
    stop(name)
    printed = lab.printed(name, uuid, 'node2')
    assert min(map(fettlelib.image_count, copies(name, uuid))) >= printed
    assert same(copies(name, uuid))
    remove(name)


@title('/disks/grow-a-running-mirror')
def test_grow():
    uuid = create('grown')
    e2e.wait_counting(lab, 'grown', uuid, 'node2')
    pids = lab.qemu_processes(uuid)
    lab.cli('instance', 'grow-disk', 'grown', '0', '4')
    e2e.wait_healthy(lab, 'grown')
    assert [os.path.getsize(path) >> 20 for path in copies('grown', uuid)] == [12, 12]
    e2e.wait_counting(lab, 'grown', uuid, 'node2', lab.printed('grown', uuid, 'node2'))
    end_with_equal_copies('grown', uuid, pids)


@title('/disks/activate-and-deactivate')
def test_activate():
    """A stopped instance's replica is brought up to date, then nothing holds the disks any more."""
    uuid = create('still', start=False)
    lab.cli('instance', 'activate-disks', 'still')
    lab.cli('instance', 'deactivate-disks', 'still')
    assert not lab.qemu_processes(uuid)
    assert same(copies('still', uuid))
    lab.cli('instance', 'startup', 'still')
    e2e.wait_counting(lab, 'still', uuid, 'node2')
    e2e.verify_clean(lab)
    remove('still')


@title('/disks/recreate-and-reinstall#SAF-22')
def test_recreate():
    """New disks are blank; the image is put onto them again; what was there before never comes back."""
    uuid = create('blank', 'file')
    e2e.wait_counting(lab, 'blank', uuid, 'node2')
    stop('blank')
    lab.lab('power', 'node2', 'off')
    lab.cli('node', 'modify', 'node2', '--offline', 'yes', '--statement', 'test: it burnt down')
    lab.cli('instance', 'recreate-disks', 'blank')
    lab.lab('power', 'node2', 'on')
    lab.cli('node', 'modify', 'node2', '--offline', 'no')
    node = lab.instance('blank', 'pnode')['pnode']
    assert node != 'node2'
    with open(image(node, f'{uuid}.disk0.raw'), 'rb') as file:
        assert not any(file.read()), 'the new disk is not blank'
    lab.cli('instance', 'reinstall', 'blank')
    lab.cli('instance', 'startup', 'blank')
    wait_until('it boots', lambda: starts('blank', uuid, node) == [0], 60)
    assert starts('blank', uuid, 'node2') == [0], 'the old disk was booted again'
    remove('blank')


@title('/disks/recreate-is-refused-while-a-copy-has-the-data#SAF-22')
def test_recreate_refused():
    # A button that is pressed before the guest looks at it is lost.
    e2e.wait_counting(lab, 'dear', create('dear'), 'node2')
    stop('dear')
    code, _, err = lab.run('instance', 'recreate-disks', 'dear', check=False)
    want = 'the replica on node3 has the data of instance "dear"; nothing is lost: fettle instance failover dear'
    assert code == 11 and want in err, (code, err)
    remove('dear')


def put(path, offset, data):
    with open(path, 'r+b') as file:
        file.seek(offset)
        file.write(data)


def get(path, offset, length):
    with open(path, 'rb') as file:
        file.seek(offset)
        return file.read(length)


@title('/disks/short-outage-of-the-secondary#SAF-13')
def test_outage():
    """Longer than a replica may be away: recorded stale first, then attached again, both copies equal in the end.

    Only what was written meanwhile is copied: blocks of the replica that the guest never writes get another content
    while it is away, which a copy of everything would mend."""
    uuid = create('parted')
    e2e.wait_counting(lab, 'parted', uuid, 'node2')
    pids = lab.qemu_processes(uuid)
    wait_until('it is remembered what is written', lambda: lab.remembers(uuid, 'node2'), 60)
    lab.lab('link', 'node3', 'down')
    wait_until('the replica is recorded as lost',
               lambda: lab.instance('parted', 'replica.state')['replica.state'] == 'stale', 60)
    e2e.wait_counting(lab, 'parted', uuid, 'node2', lab.printed('parted', uuid, 'node2') + 5)
    replica, rest = copies('parted', uuid)[1], 1 << 20
    marked = os.path.getsize(replica) - rest
    put(replica, rest, b'\xa5' * marked)
    lab.lab('link', 'node3', 'up')
    e2e.wait_healthy(lab, 'parted', 120)
    assert get(replica, rest, marked) == b'\xa5' * marked, 'what was never written was copied'
    put(replica, rest, bytes(marked))
    end_with_equal_copies('parted', uuid, pids)


@contextlib.contextmanager
def in_place_of(program, node, script):
    """While it lasts a node finds this shell script where it looks for a program."""
    path = os.path.join(lab.directory, f'{node}.programs', program)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\n{script}\n')
    os.chmod(path, 0o755)
    try:
        yield
    finally:
        os.unlink(path)


def slow_qemu_img(node, rate):
    """While it lasts qemu-img converts so many bytes in a second on a node, without work in between."""
    real = shutil.which('qemu-img')
    return in_place_of('qemu-img', node, f'[ "$1" != convert ] || {{ shift; exec {real} convert -r {rate} "$@"; }}\nexec {real} "$@"')


# --- a copy that is canceled ---

COPY_MIB = 24


def slow_exports(node):
    """While it lasts exports that are opened on a node take a MiB in a second."""
    return in_place_of('nbdkit', node, f'exec {shutil.which("nbdkit")} --filter=rate "$@" rate=8M')


def full_image(node):
    """The guest, on an image without zeros: all of it has to be copied."""
    folder = os.path.join(lab.root(node), 'var', 'images')
    with open(os.path.join(folder, 'tick-fast.raw'), 'rb') as file:
        content = file.read()
    with open(os.path.join(folder, 'packed.raw'), 'wb') as file:
        file.write(content + os.urandom((COPY_MIB << 20) - len(content)))


def wait_copying(job):
    """Until its copy is under way."""
    def copies_now():
        assert lab.job_status(job)[0] in ('queued', 'waiting', 'running'), lab.job_status(job)
        log = lab.query('job', ['oplog'], ['=', 'id', job])[0]['oplog'][0]
        return [entry[3] for entry in log if entry[2] == 'progress' and 0 < entry[3]['done'] < entry[3]['total']]
    wait_until('the copy is under way', copies_now, 60)


def cancel_copy(job):
    """Once it is under way; what the job then says."""
    wait_copying(job)
    lab.cli('job', 'cancel', str(job))
    status, result = lab.wait_job(job, 60)
    assert status == 'canceled', (status, result)
    return result[0][1][0]


def exports_of(node, uuid):
    """Processes that export replicas of an instance."""
    found = []
    for entry in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{entry}/cmdline', 'rb') as file:
            words = file.read().split(b'\0')
            if any(word.startswith(b'file=' + os.path.join(lab.root(node), 'var', 'disks', uuid).encode()) for word in words):
                found.append(int(entry))
    return found


@title('/disks/cancel-of-a-copy#LUX-08,SAF-18')
def test_cancel_copy():
    full_image('node2')
    before = [sorted(os.listdir(image(node, ''))) for node in ('node2', 'node3')]
    more = {'disks': [{'size': COPY_MIB}], 'os_type': 'packed'}
    with slow_exports('node3'):
        job = lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'begun', **e2e.TICK, 'disk_template': 'mirror',
                          'pnode': 'node2', 'snode': 'node3', **more})
        assert cancel_copy(job) == 'the creation was undone, nothing of instance "begun" is left: Job canceled by request'
    assert 'begun' not in [row['name'] for row in lab.query('instance', ['name'])]
    assert [sorted(os.listdir(image(node, ''))) for node in ('node2', 'node3')] == before
    e2e.verify_clean(lab)
    uuid = create('packed', **more)
    e2e.wait_counting(lab, 'packed', uuid, 'node2')
    pids = lab.qemu_processes(uuid)
    with slow_exports('node3'):
        job = lab.submit({'OP_ID': 'OP_INSTANCE_REPLACE_DISKS', 'instance_name': 'packed', 'mode': 'replace_on_secondary'})
        assert cancel_copy(job) == ('the copy was given up; until there is another instance "packed" has no redundancy: '
                                    'fettle instance replace-disks packed')
    row = lab.instance('packed', 'replica.state', 'replica.why', 'task_state', 'mirror.state')
    assert row == {'replica.state': 'stale', 'replica.why': 'its copy was canceled', 'task_state': '', 'mirror.state': 'none'}, row
    with fettlelib.QmpListener(os.path.join(lab.root('node2'), 'run', 'guests', uuid, 'rescue.sock')) as qmp:
        assert qmp.execute('query-block-jobs') == []
    wait_until('nothing exports the replica', lambda: not exports_of('node3', uuid), 10)
    e2e.wait_counting(lab, 'packed', uuid, 'node2', lab.printed('packed', uuid, 'node2'))
    lab.cli('instance', 'replace-disks', 'packed')
    e2e.wait_healthy(lab, 'packed')
    end_with_equal_copies('packed', uuid, pids)


def kill_job(job):
    os.kill(wait_until('the job has a process', lambda: e2e.job_pid(lab, job)), signal.SIGKILL)
    status, result = lab.wait_job(job, 60)
    assert status == 'error', (status, result)


def wait_settled(name):
    wait_until(f'{name} has no mark', lambda: not ((row := lab.instance(name, 'task_state')) and row['task_state']), 60)


def wait_settling_job(name):
    """There was one, and it has done what it was to do."""
    def states():
        return [row['status'] for row in lab.query('job', ['summary', 'status']) if row['summary'] == [f'INSTANCE_SETTLE({name})']]
    wait_until(f'a job has settled {name}', lambda: states() == ['success'], 60)


def wait_recovered(name, rule, state):
    """One message that it was, by that rule, and no job was needed."""
    def told():
        rows = lab.query('event', ['subject_name', 'event', 'rule', 'new'])
        return [(row['rule'], row['new']) for row in rows if row['subject_name'] == name and row['event'] == 'recovered']
    wait_until(f'{name} is recovered', told, 60)
    assert told() == [(rule, state)], told()
    assert not [row for row in lab.query('job', ['summary']) if row['summary'] == [f'INSTANCE_SETTLE({name})']]


@title('/disks/job-of-a-creation-dies-in-the-first-copy#SAF-23,RCV-22,RCV-27,RCV-47')
def test_creation_dies():
    """The guest goes on, and so does its copy."""
    full_image('node2')
    with slow_exports('node3'):
        job = lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'orphan', **e2e.TICK, 'disk_template': 'mirror',
                          'pnode': 'node2', 'snode': 'node3', 'disks': [{'size': COPY_MIB}], 'os_type': 'packed'})
        wait_copying(job)
        uuid = e2e.uuid_of(lab, 'orphan')
        pids = lab.qemu_processes(uuid)
        count = e2e.wait_counting(lab, 'orphan', uuid, 'node2')
        kill_job(job)
        wait_settled('orphan')
        row = lab.instance('orphan', 'status', 'admin_state', 'replica.state', 'mirror.state', 'pnode')
        assert row == {'status': 'running', 'admin_state': 'up', 'replica.state': 'syncing', 'mirror.state': 'syncing', 'pnode': 'node2'}, row
        assert lab.qemu_processes(uuid) == pids != []
        wait_recovered('orphan', 'RCV-47', 'active')
        e2e.wait_counting(lab, 'orphan', uuid, 'node2', count)
    e2e.wait_healthy(lab, 'orphan')
    e2e.verify_clean(lab)
    end_with_equal_copies('orphan', uuid, pids)


@title('/disks/job-of-a-removal-dies#SAF-23,RCV-70')
def test_removal_dies():
    """A guest that does not listen to the button is not ended by a removal whose job is dead, and is to run again."""
    uuid = create('clung', os_type='')
    pids = lab.qemu_processes(uuid)
    job = lab.submit({'OP_ID': 'OP_INSTANCE_REMOVE', 'instance_name': 'clung'})
    wait_until('the guest is asked', lambda: lab.instance('clung', 'task_state')['task_state'] == 'removing', 60)
    time.sleep(1)
    kill_job(job)
    wait_settled('clung')
    row = lab.instance('clung', 'status', 'admin_state', 'replica.state')
    assert row == {'status': 'running', 'admin_state': 'up', 'replica.state': 'in-sync'}, row
    assert lab.qemu_processes(uuid) == pids != []
    wait_recovered('clung', 'RCV-70', 'active')
    e2e.verify_clean(lab)
    remove('clung')


@title('/disks/job-of-a-creation-dies-in-its-import#SAF-23')
def test_import_dies():
    """What is half made goes, and the copy that nobody waits for is given up."""
    pack('node2', 'long')
    before = sorted(os.listdir(image('node2', '')))
    with slow_qemu_img('node2', '1M'):
        job = lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'begun', **e2e.TICK, 'disk_template': 'file',
                          'pnode': 'node2', 'disks': [{'size': COPY_MIB}], 'os_type': 'long'})
        wait_copying(job)
        kill_job(job)
        wait_settling_job('begun')
        assert 'begun' not in [row['name'] for row in lab.query('instance', ['name'])]
        assert sorted(os.listdir(image('node2', ''))) == before
    e2e.verify_clean(lab)


def door_file(node):
    """When a node last began to refuse a dead job; None: it never has."""
    path = os.path.join(lab.root(node), 'var', 'node', 'ended_jobs.json')
    return os.stat(path).st_mtime_ns if os.path.exists(path) else None


@title('/disks/what-a-dead-job-has-left-is-told-first#RCV-15,RCV-33,SAF-81')
def test_plan():
    """By a node that does not answer, too; and nobody's request is refused, no work given up, for having been asked. Then the watcher does it."""
    def planned():
        answer = json.loads(lab.cli('--json', 'recovery', 'plan', 'instance', 'told'))
        return answer['notes'], answer['rows'][0]
    pack('node2', 'long')
    lab.cli('queue', 'pause-watcher', '600')
    before = door_file('node2')
    with slow_qemu_img('node2', '1M'):
        job = lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'told', **e2e.TICK, 'disk_template': 'file',
                          'pnode': 'node2', 'disks': [{'size': COPY_MIB}], 'os_type': 'long'})
        wait_copying(job)
        busy = f'disks_create for job {job} is under way'
        row = json.loads(lab.cli('--json', 'recovery', 'collect', 'instance', 'told'))
        host, = row['hosts']
        assert (row['outcome'], row['next'], host['answer']) == ('left', f'when job {job} ends', 'busy') and host['why'].startswith(busy), row
        kill_job(job)
        lab.lab('pause', 'noded@node2')
        notes, row = planned()
        assert notes[0].startswith('The watcher is paused until '), notes
        assert (row['outcome'], row['why'], row['owner_state'], row['rule']) == ('unknown', 'node2 gave no answer', 'dead', 'RCV-35'), row
        assert re.fullmatch(r'it ended at \S+ \S+ UTC \(error\)', row['owner_why']), row
        lab.lab('resume', 'noded@node2')
        row = wait_until('its node answers', lambda: (row := planned()[1])['why'].startswith(f'node2: {busy}') and row, 60)
        assert row['outcome'] == 'unknown' and row['why'].endswith('; the next pass has that given up, and looks then'), row
        page = lab.cli('recovery', 'show', 'instance', 'told')
        assert re.search(fr'^  Task +creating, set by job {job} at ', page, re.M) and re.search(r'^  That job +dead: it ended at ', page, re.M), page
        assert re.search(fr'^  Outcome +not known yet: node2: {busy}', page, re.M) and re.search(r'^  Held up +The watcher is paused', page, re.M), page
        assert door_file('node2') == before
        lab.cli('queue', 'pause-watcher', '0')
        wait_settling_job('told')
    assert 'told' not in [row['name'] for row in lab.query('instance', ['name'])] and door_file('node2') != before
    e2e.verify_clean(lab)


@title('/disks/import-tells-how-far-it-is')
def test_progress():
    """To who waits for it, line by line, and in the job's log."""
    with open(os.path.join(lab.root('node2'), 'var', 'images', 'filled.raw'), 'wb') as file:
        file.write(os.urandom(8 << 20))
    with slow_qemu_img('node2', '1M'):
        _, _, said = lab.run('instance', 'create', 'filled', '--disk-template', 'file', '--disk', 'size=8,format=qcow2', '--memory',
                             '8', '--os-type', 'filled', '--pnode', 'node2', '--no-start')
    lines = re.findall(r'^image filled: (\d+) % \((\d+) of 8 MiB\)$', said, re.M)
    far = [int(percent) for percent, _ in lines]
    assert far and far == sorted(set(far)) and all(0 < percent <= 100 for percent in far), said
    assert all(int(mib) * 100 // 8 // 10 * 10 == int(percent) for percent, mib in lines), said
    log = lab.query('job', ['summary', 'oplog'])
    entries = [entry for row in log if row['summary'] == ['INSTANCE_CREATE(filled)'] for entry in row['oplog'][0]]
    assert [entry[3]['what'] for entry in entries if entry[2] == 'progress'] == ['image filled'], entries
    remove('filled')


@title('/disks/import-of-a-qcow2-image')
def test_import():
    """A qcow2 image that rests on another in the same folder becomes a disk that rests on nothing."""
    folder = os.path.join(lab.root('node2'), 'var', 'images')
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-b', os.path.join(folder, 'tick-fast.raw'), '-F', 'raw',
                    os.path.join(folder, 'layered.qcow2'), '4M'], check=True)
    for form in ('raw', 'qcow2'):
        uuid = create('imported', 'file', disks=[{'size': 8, 'format': form}], os_type='layered')
        e2e.wait_counting(lab, 'imported', uuid, 'node2')
        said = subprocess.run(['qemu-img', 'info', '-U', '-f', form, image('node2', f'{uuid}.disk0.{form}')],
                              capture_output=True, text=True, check=True).stdout
        assert 'backing file' not in said and 'virtual size: 8 MiB' in said, said
        remove('imported')


def pack(node, name):
    """The full image as one that qemu-img has to convert."""
    folder = os.path.join(lab.root(node), 'var', 'images')
    full_image(node)
    subprocess.run(['qemu-img', 'convert', '-c', '-f', 'raw', '-O', 'qcow2', os.path.join(folder, 'packed.raw'),
                    os.path.join(folder, f'{name}.qcow2')], check=True)


@title('/disks/cancel-of-an-import#LUX-08')
def test_cancel_import():
    """A creation leaves nothing of it; an instance that was to be reinstalled has the disk that it had."""
    pack('node2', 'long')
    uuid = create('kept', 'file', disks=[{'size': COPY_MIB}])
    e2e.wait_counting(lab, 'kept', uuid, 'node2')
    stop('kept')
    before = sorted(os.listdir(image('node2', '')))
    with slow_qemu_img('node2', '1M'):
        job = lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'begun', **e2e.TICK, 'disk_template': 'file',
                          'pnode': 'node2', 'disks': [{'size': COPY_MIB}], 'os_type': 'long'})
        assert cancel_copy(job) == 'the creation was undone, nothing of instance "begun" is left: Job canceled by request'
        assert 'begun' not in [row['name'] for row in lab.query('instance', ['name'])]
        assert sorted(os.listdir(image('node2', ''))) == before
        job = lab.submit({'OP_ID': 'OP_INSTANCE_REINSTALL', 'instance_name': 'kept', 'os_type': 'long'})
        assert cancel_copy(job) == 'disk 0 of instance "kept" has what it had before: Job canceled by request'
    assert sorted(os.listdir(image('node2', ''))) == before
    assert lab.instance('kept', 'os', 'task_state') == {'os': e2e.TICK['os_type'], 'task_state': ''}
    e2e.verify_clean(lab)
    lab.cli('instance', 'startup', 'kept')
    wait_until('it boots from its own disk', lambda: len(found := starts('kept', uuid, 'node2')) > 1 and found[-1] > 0, 60)
    remove('kept')


@title('/disks/cancel-of-a-shutdown#LUX-08,SAF-11')
def test_cancel_shutdown():
    """A guest without anything that listens to the button runs on, mirrored, and is on record as before."""
    uuid = create('deaf', os_type='')
    e2e.wait_healthy(lab, 'deaf')
    pids = lab.qemu_processes(uuid)
    for opcode in ('OP_INSTANCE_SHUTDOWN', 'OP_INSTANCE_FAILOVER', 'OP_INSTANCE_REMOVE'):
        job = lab.submit({'OP_ID': opcode, 'instance_name': 'deaf'})
        wait_until('the job waits for the guest', lambda j=job: lab.job_status(j)[0] == 'running' and
                   lab.instance('deaf', 'task_state')['task_state'], 60)
        lab.cli('job', 'cancel', str(job))
        status, result = lab.wait_job(job, 60)
        said = 'deaf was asked to shut down and had not done so; it runs on, on node2. It may still obey, and is on record as stopped then'
        assert (status, result[0][1][:2]) == ('canceled', [f'{said}: Job canceled by request', 'canceled']), (status, result)
        code, _, err = lab.run('job', 'watch', str(job), check=False)
        assert code and f'job {job} was canceled: {said}\n' in err, (code, err)
        assert lab.qemu_processes(uuid) == pids
        row = lab.instance('deaf', 'status', 'admin_state', 'task_state', 'replica.state', 'pnode')
        assert row == {'status': 'running', 'admin_state': 'up', 'task_state': '', 'replica.state': 'in-sync', 'pnode': 'node2'}, row
    e2e.verify_clean(lab)
    lab.do('OP_INSTANCE_REMOVE', instance_name='deaf', shutdown_timeout=0)


@title('/disks/several-are-promoted-together#SAF-16')
def test_several():
    """Three disks, a power cut: the secondary goes on with all of them."""
    uuid = create('many', disks=[{'size': 8}, {'size': 2}, {'size': 3}])
    e2e.wait_counting(lab, 'many', uuid, 'node2')
    lab.lab('power', 'node2', 'off')
    printed = lab.printed('many', uuid, 'node2')
    lab.cli('node', 'modify', 'node2', '--offline', 'yes', '--statement', 'test: the power was cut')
    e2e.wait_counting(lab, 'many', uuid, 'node3', printed, 120)
    assert starts('many', uuid, 'node3')[-1] >= printed
    e2e.wait_healthy(lab, 'many', 120)
    assert [os.path.getsize(copies('many', uuid, disk)[1]) >> 20 for disk in range(3)] == [8, 2, 3]
    lab.lab('power', 'node2', 'on')
    lab.cli('node', 'modify', 'node2', '--offline', 'no')
    wait_until('one copy runs', lambda: len(lab.qemu_processes(uuid)) == 1, 60)
    remove('many')


def modify(name, *args):
    return lab.cli('instance', 'modify', name, *args)


def modify_refused(message, name, *args):
    code, _, err = lab.run('instance', 'modify', name, *args, check=False)
    assert code != 0 and message in err, (code, err)


def kept_in_sync(name):
    row = lab.instance(name, 'replica.state', 'clean')
    return row == {'replica.state': 'in-sync', 'clean': True}


@title('/disks/one-comes-and-goes-under-a-mirror#SAF-13,SAF-16')
def test_come_and_go():
    """Added while it rests, it is in both copies: the next start copies nothing, and a power cut loses neither disk."""
    uuid = create('wider')
    e2e.wait_counting(lab, 'wider', uuid, 'node2')
    e2e.wait_healthy(lab, 'wider')
    modify_refused('is not stopped, and a running guest keeps the devices', 'wider', '--add-disk', 'size=3')
    stop('wider')
    modify('wider', '--add-disk', 'size=3', '--add-disk', 'size=2')
    assert kept_in_sync('wider')
    assert [[os.path.getsize(path) >> 20 for path in copies('wider', uuid, disk)] for disk in range(3)] == \
        [[8, 8], [3, 3], [2, 2]]
    put(copies('wider', uuid, 2)[0], 0, b'not yet known to anybody')
    put(copies('wider', uuid, 2)[1], 0, b'not yet known to anybody')
    modify_refused('Instance wider loses disk 2 and what is on it, for good. Nobody can be asked here: say --yes',
                   'wider', '--remove-disk', '2')
    gone = [*copies('wider', uuid, 2)]
    modify('wider', '--remove-disk', '2', '--add-disk', 'size=4', '--yes')
    assert [os.path.getsize(path) >> 20 for path in gone] == [4, 4], 'a disk that is added is a new one'
    assert not any(get(gone[0], 0, 64)) and same(gone), 'what was removed is there again'
    modify('wider', '--remove-disk=-1', '--yes')
    assert not any(os.path.exists(path) for path in gone)
    assert kept_in_sync('wider')
    lab.cli('instance', 'startup', 'wider')
    e2e.wait_counting(lab, 'wider', uuid, 'node2')
    e2e.wait_healthy(lab, 'wider')
    lab.lab('power', 'node2', 'off')
    printed = lab.printed('wider', uuid, 'node2')
    lab.cli('node', 'modify', 'node2', '--offline', 'yes', '--statement', 'test: the power was cut')
    e2e.wait_counting(lab, 'wider', uuid, 'node3', printed, 120)
    e2e.wait_healthy(lab, 'wider', 120)
    lab.lab('power', 'node2', 'on')
    lab.cli('node', 'modify', 'node2', '--offline', 'no')
    wait_until('one copy runs', lambda: len(lab.qemu_processes(uuid)) == 1, 60)
    e2e.verify_clean(lab, 60)
    remove('wider')


@title('/disks/a-resting-mirror-with-a-new-disk-fails-over#SAF-16')
def test_new_disk_fails_over():
    """Its replica has never been opened with the new disk, and is a copy of it all the same."""
    uuid = create('early')
    e2e.wait_counting(lab, 'early', uuid, 'node2')
    e2e.wait_healthy(lab, 'early')
    stop('early')
    modify('early', '--add-disk', 'size=3')
    lab.cli('instance', 'failover', 'early')
    assert lab.instance('early', 'pnode')['pnode'] == 'node3'
    lab.cli('instance', 'startup', 'early')
    e2e.wait_counting(lab, 'early', uuid, 'node3')
    e2e.verify_clean(lab, 60)
    remove('early')


@title('/disks/one-comes-and-goes-in-files')
def test_come_and_go_in_files():
    """Raw, qcow2 and in the shared folder; a guest boots with what is there."""
    for template, form in (('file', 'raw'), ('file', 'qcow2'), ('sharedfile', 'raw')):
        uuid = create('wide', template, start=False)
        folder = 'shared' if template == 'sharedfile' else 'disks'
        path = os.path.join(lab.root('node2'), 'var', folder, f'{uuid}.disk1.{form}')
        modify('wide', '--add-disk', f'size=3,format={form}')
        said = subprocess.run(['qemu-img', 'info', '-U', '-f', form, path], capture_output=True, text=True, check=True)
        assert 'virtual size: 3 MiB' in said.stdout, said.stdout
        lab.cli('instance', 'startup', 'wide')
        e2e.wait_counting(lab, 'wide', uuid, 'node2')
        stop('wide')
        modify('wide', '--remove-disk', '1', '--yes')
        assert not os.path.exists(path), path
        e2e.verify_clean(lab, 60)
        remove('wide')


@title('/disks/a-node-shows-what-takes-its-space')
def test_node_page():
    uuid = create('shown')
    e2e.wait_counting(lab, 'shown', uuid, 'node2')
    e2e.wait_healthy(lab, 'shown')
    shown = {node: [row for row in lab.query('node', ['name', 'images'], ['=', 'name', node])[0]['images']
                    if row['instance'] == 'shown'] for node in ('node2', 'node3')}
    generation, replica = lab.instance('shown', 'generation', 'replica').values()
    for node, role, name in (('node2', 'primary', ''), ('node3', 'replica', replica)):
        row, = shown[node]
        assert row.pop('space') > 0, row
        assert row == {'instance': 'shown', 'instance_uuid': uuid, 'role': role, 'replica': name,
                       'generation': generation, 'disks': [0]}, row
    page = lab.cli('node', 'info', 'node3')
    assert re.search(r'^  shown +replica +\d+ +0 +\d+$', page, re.MULTILINE), page
    assert max(map(len, page.splitlines())) < 80, page
    remove('shown')


@title('/disks/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab, 60)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--replica-lost-ms', '2000', '--watcher-interval-ms', '500')) as lab:
        lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
        e2e.run(test_grow, test_activate, test_recreate, test_recreate_refused, test_outage, test_cancel_copy, test_creation_dies, test_removal_dies,
                test_import_dies, test_plan, test_progress, test_import, test_cancel_import, test_cancel_shutdown, test_several, test_come_and_go,
                test_new_disk_fails_over, test_come_and_go_in_files, test_node_page, test_logs)
