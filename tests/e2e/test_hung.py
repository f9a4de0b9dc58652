#!/usr/bin/env python3
"""What hangs on a node that answers: guests whose process stands still, a shared folder whose server is dead. The node answers, its other
guests are listed and looked after, what hangs is named with its age, and nobody is told to declare the node dead (SAF-90, SAF-91)."""
import contextlib
import ctypes
import os
import re
import signal
import tempfile

import e2e
from e2e import title, wait_until

lab = None
HUNG = ['hung1', 'hung2', 'hung3']
LATE = r'does not answer, last heard \d+ (s|min) ago'


@contextlib.contextmanager
def hung_folder(path):
    """A file system whose server never says a word: whoever looks at it waits. Its end lets them go, with an error."""
    libc = ctypes.CDLL(None, use_errno=True)
    server = os.open('/dev/fuse', os.O_RDWR)
    options = f'fd={server},rootmode=40000,user_id=0,group_id=0,allow_other'.encode()
    if libc.mount(b'hung', path.encode(), b'fuse.hung', 0, options) != 0:
        raise OSError(ctypes.get_errno(), 'mount of fuse')
    try:
        yield
    finally:
        os.close(server)
        if libc.umount2(path.encode(), 2) != 0:
            raise OSError(ctypes.get_errno(), 'umount of fuse')


@contextlib.contextmanager
def hung_guests(names):
    pids = [pid for name in names for pid in lab.qemu_processes(e2e.uuid_of(lab, name))]
    assert len(pids) == len(names), pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def statuses():
    """Of one list: {name: status}, and the lines below the table."""
    out = lab.cli('instance', 'list')
    rows = dict(re.findall(r'^(\w+) +(\w+) +node2 ', out, re.M))
    return rows, re.findall(r'^(\w+): (.*)$', out, re.M)


def answers():
    return lab.query('node', ['mtotal'], ['=', 'name', 'node2'])[0]['mtotal'] is not None


def verify():
    return lab.run('cluster', 'verify', check=False)[1]


@title('/hung/guests#SAF-90,SAF-91')
def test_guests():
    for name in [*HUNG, 'well']:
        lab.do('OP_INSTANCE_CREATE', instance_name=name, disk_template='diskless', disks=[], memory=8, pnode='node2')
    with hung_guests(HUNG):
        for _ in range(5):  # also while their monitors are being asked again
            rows, below = statuses()
            assert rows == {name: 'running' for name in [*HUNG, 'well']}, rows
            assert sorted(name for name, _ in below) == HUNG, below
            assert all(re.fullmatch('its guest ' + LATE, words) for _, words in below), below
            assert answers()
        found = verify()
        for name in HUNG:
            assert re.search(f'instance {name}: {LATE}', found), found
        assert 'node2: does not answer' not in found, found
        said = lab.cli('why', 'hung1')
        assert re.search(f'its guest on node2 {LATE}', said) and '--offline' not in said, said
        code, _, err = lab.run('node', 'modify', 'node2', '--offline', 'yes', '--statement', 'it hangs', check=False)
        assert code != 0 and 'node "node2" still answers, so it is not dead' in err, err
        # The others are served as ever.
        lab.cli('instance', 'shutdown', 'well', '--timeout', '0')
        lab.cli('instance', 'startup', 'well')
        # One that does not hear its button is ended when its time is over.
        code, out, err = lab.run('instance', 'shutdown', 'hung3', '--timeout', '1')
        assert code == 0 and out.startswith('Instance hung3 is stopped'), (code, out)
        assert 'the guest did not shut down by itself and was ended' in err, err
        assert not lab.qemu_processes(e2e.uuid_of(lab, 'hung3')) and statuses()[0]['hung3'] == 'ADMIN_down'
        # A node daemon that begins beside them, however many they are, is there after one of their silences.
        lab.lab('kill', 'noded@node2')
        wait_until('it answers again', answers, 30)
        assert statuses()[0]['well'] == 'running'
    wait_until('all answer', lambda: not statuses()[1], 30)
    e2e.verify_clean(lab)


@title('/hung/shared-folder#SAF-90,SAF-91')
def test_folder():
    lab.do('OP_INSTANCE_CREATE', instance_name='own', disk_template='file', disks=[{'size': 8}], memory=8, os_type='tick', pnode='node2')
    lab.do('OP_INSTANCE_CREATE', instance_name='shared', disk_template='sharedfile', disks=[{'size': 8}], memory=8, os_type='tick', pnode='node1')
    with hung_folder(os.path.join(lab.root('node2'), 'var', 'shared')):
        for _ in range(5):
            out = lab.cli('node', 'list')
            assert re.search(r'^node2: shared: no answer, last heard \d+ s ago$', out, re.M), out
            assert answers() and statuses()[0]['well'] == 'running'
        assert re.search(r'node node2: shared: no answer, last heard \d+ s ago', verify()), verify()
        assert re.search(r'^node2 answers, but for shared: no answer', lab.cli('why', 'node2'), re.M)
        code, _, err = lab.run('instance', 'migrate', 'shared', '--target-node', 'node2', check=False)
        assert code != 0 and 'cannot go to node2: it does not get an answer from the shared folder; try again when it does' in err, err
        for name in ('well', 'own'):  # their disks, if any, are elsewhere
            lab.cli('instance', 'shutdown', name, '--timeout', '0')
            lab.cli('instance', 'startup', name)
    wait_until('it answers', lambda: 'node2: shared' not in lab.cli('node', 'list'), 30)
    lab.cli('instance', 'migrate', 'shared', '--target-node', 'node2')
    e2e.verify_clean(lab)


@contextlib.contextmanager
def hung_tools(*names):
    """The node daemon of node2 finds programs of these names first that never end by themselves."""
    with tempfile.TemporaryDirectory(prefix='fettle-hung-') as folder:
        for name in names:
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.write('#!/bin/sh\nexec sleep 1000\n')
            os.chmod(file.name, 0o755)
        lab.lab('restart', 'noded@node2', f'PATH={folder}:{os.environ["PATH"]}')
        wait_until('it answers', answers, 30)
        try:
            yield
        finally:
            lab.lab('restart', 'noded@node2')


@title('/hung/tools#SAF-90,SAF-91')
def test_tools():
    """Neither what tells of bridges comes to an end, nor what makes an image."""
    with hung_tools('ip', 'qemu-img'):
        job = lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'made', 'disk_template': 'file', 'memory': 8,
                          'disks': [{'size': 8, 'format': 'qcow2'}], 'os_type': 'tick', 'pnode': 'node2'})
        wait_until('the job makes its images', lambda: 'making' in lab.cli('job', 'info', str(job)) or
                   lab.job_status(job)[0] == 'running')
        wait_until('its bridges are late', lambda: re.search(r'^node2: bridges: ', lab.cli('node', 'list'), re.M), 30)
        for _ in range(5):
            assert answers() and statuses()[0]['well'] == 'running'
        found = verify()
        assert re.search('node node2: bridges: (no answer|not known)', found) and 'node2: does not answer' not in found, found
        lab.cli('instance', 'shutdown', 'well', '--timeout', '0')
        lab.cli('instance', 'startup', 'well')
        lab.cli('job', 'cancel', str(job))
    if lab.wait_job(job, 120)[0] == 'success':  # it was said to the next node daemon again before it was given up
        lab.cli('instance', 'remove', 'made')
    wait_until('nothing is left of it', lambda: not lab.query('instance', ['name'], ['=', 'name', 'made']), 60)
    wait_until('all is told', lambda: 'node2: bridges' not in lab.cli('node', 'list'), 30)
    e2e.verify_clean(lab)


@title('/hung/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        e2e.run(test_guests, test_folder, test_tools, test_logs)
