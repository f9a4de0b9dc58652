"""Figures of guests that move and of replicas that are copied; used by scripts/bench."""
import os
import shutil
import signal
import subprocess
import tempfile
import time

import fettlelib
from fettlelib import wait_until

COPY_MIB = 256
MOVING_MIB = 64
NBD_PORT = 10900
ADDRESS = '10.99.0.150'


def whole(lab, name):
    row = lab.instance(name, 'replica.state', 'task_state', 'status')
    return row['status'] == 'running' and row['replica.state'] == 'in-sync' and not row['task_state']


def wait_whole(lab, name):
    wait_until(f'{name} is whole', lambda: whole(lab, name), 120)


def gone(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
            return file.read().rsplit(')', 1)[1].split()[0] == 'Z'
    except OSError:
        return True


def live_migration(lab, figures, runs):
    """From the submission until the process that was left has ended."""
    lab.do('OP_INSTANCE_CREATE', instance_name='moving', disk_template='mirror', disks=[{'size': MOVING_MIB}],
           memory=MOVING_MIB, os_type='tick-fast', pnode='node2', snode='node3')
    uuid = lab.instance('moving', 'uuid')['uuid']
    times = []
    for _ in range(runs):
        wait_whole(lab, 'moving')
        pid, = lab.qemu_processes(uuid)
        start = time.perf_counter()
        job = lab.submit({'OP_ID': 'OP_INSTANCE_MIGRATE', 'instance_name': 'moving'})
        wait_until('the source is gone', lambda p=pid: gone(p), 60, step=0.002)
        times.append((time.perf_counter() - start) * 1000)
        status, result = lab.wait_job(job)
        assert status == 'success', result
    figures.add('live_migration_ms', times, 'ms', '<= 800', digits=0)
    lab.do('OP_INSTANCE_REMOVE', instance_name='moving', shutdown_timeout=0)


def fill(path):
    """Every block of the image must be copied then, except of its beginning, which boots."""
    with open(path, 'r+b') as file:
        file.seek(1 << 20)
        for _ in range(COPY_MIB - 1):
            file.write(os.urandom(1 << 20))


class PlainServer:
    """nbdkit with its own plugin for files on node3: the program, the key and the cipher that exports of ours have, and
    nothing else."""

    def __init__(self, lab):
        self.address = lab.query('node', ['pip'], ['=', 'name', 'node3'])[0]['pip']
        self.target = os.path.join(lab.root('node3'), 'var', 'disks', 'plain.raw')
        self.keys = tempfile.mkdtemp(prefix='fettle-bench-')
        key, ciphers = os.path.join(self.keys, 'keys.psk'), os.path.join(self.keys, 'ciphers')
        with open(key, 'w', encoding='utf-8') as file:
            file.write(f'qemu:{os.urandom(32).hex()}\n')
        with open(ciphers, 'w', encoding='utf-8') as file:
            file.write('[overrides]\ntls-disabled-cipher = CHACHA20-POLY1305\n')
        subprocess.run(['qemu-img', 'create', '-q', '-f', 'raw', self.target, f'{COPY_MIB}M'], check=True)
        words = lab.exec_words('node3', 'env', f'GNUTLS_SYSTEM_PRIORITY_FILE={ciphers}', 'nbdkit', '-f', '--tls=require',
                               f'--tls-psk={key}', '-i', self.address, '-p', str(NBD_PORT), 'file', self.target)
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        wait_until('nbdkit listens', lambda: f':{NBD_PORT} ' in lab.exec('node3', 'ss', '-ltn'))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()
        os.unlink(self.target)
        shutil.rmtree(self.keys)


def plain_copy(lab, source):
    """MiB per second of `qemu-img convert` from an image of node2 to an export of node3: over the same network, as safe
    from listeners, and on stable storage when it ends, since it ends with a flush."""
    with PlainServer(lab) as server:
        os.sync()
        start = time.perf_counter()
        lab.exec('node2', 'qemu-img', 'convert', '-U', '-n', '-t', 'writeback', '--object',
                 f'tls-creds-psk,id=key,endpoint=client,dir={server.keys},username=qemu',
                 '--image-opts', '--target-image-opts', f'driver=raw,file.filename={source}',
                 f'driver=raw,file.driver=nbd,file.host={server.address},file.port={NBD_PORT},file.tls-creds=key')
        return COPY_MIB / (time.perf_counter() - start)


def resync(lab, figures, runs):
    """A new replica while the guest runs: from `syncing` on record to `in-sync` on record."""
    lab.do('OP_INSTANCE_CREATE', instance_name='copied', disk_template='mirror', disks=[{'size': COPY_MIB}], memory=8,
           os_type='tick', pnode='node2', snode='node3', start=False, wait=300)
    uuid = lab.instance('copied', 'uuid')['uuid']
    source = os.path.join(lab.root('node2'), 'var', 'disks', f'{uuid}.disk0.raw')
    fill(source)
    lab.do('OP_INSTANCE_STARTUP', instance_name='copied')
    rates, plain = [], []
    for _ in range(runs):
        plain.append(plain_copy(lab, source))
        wait_whole(lab, 'copied')
        old = lab.instance('copied', 'replica')['replica']
        os.sync()
        job = lab.submit({'OP_ID': 'OP_INSTANCE_REPLACE_DISKS', 'instance_name': 'copied',
                          'remote_node': 'node1' if lab.instance('copied', 'snodes')['snodes'] == ['node3'] else 'node3'})
        def state(wanted, before=old):
            row = lab.instance('copied', 'replica', 'replica.state')
            return row['replica'] != before and row['replica.state'] in wanted
        wait_until('the copy begins', lambda: state(('syncing', 'in-sync')), 60, step=0.001)
        start = time.perf_counter()
        wait_until('the copy ends', lambda: state(('in-sync',)), 300, step=0.001)
        rates.append(COPY_MIB / (time.perf_counter() - start))
        status, result = lab.wait_job(job)
        assert status == 'success', result
    figures.add('floor_nbd_copy_mib_per_s', plain, 'MiB/s', digits=0)
    figures.add('resync_mib_per_s', rates, 'MiB/s', digits=0)
    figures.add('resync_share_of_floor', [a / b for a, b in zip(rates, plain)], '', '>= 0.8')
    lab.do('OP_INSTANCE_REMOVE', instance_name='copied', shutdown_timeout=0)


def still(events):
    """Milliseconds between the last STOP and the RESUME after it, as QEMU stamped them; None: there was none."""
    def at(event):
        return event['timestamp']['seconds'] * 1000 + event['timestamp']['microseconds'] / 1000
    stops = [at(event) for event in events if event['event'] == 'STOP']
    resumes = [at(event) for event in events if event['event'] == 'RESUME']
    return resumes[-1] - stops[-1] if stops and resumes and resumes[-1] >= stops[-1] else None


def incremental(lab, figures, runs):
    """How long a counting guest stands still when its replica, that was away, gets the last blocks."""
    lab.do('OP_INSTANCE_CREATE', instance_name='parted', disk_template='mirror', disks=[{'size': MOVING_MIB}], memory=8,
           os_type='tick-fast', pnode='node2', snode='node3')
    uuid = lab.instance('parted', 'uuid')['uuid']
    pauses = []
    for _ in range(runs):
        wait_whole(lab, 'parted')
        time.sleep(2)  # until it is remembered what is written
        lab.lab('link', 'node3', 'down')
        wait_until('the replica is stale', lambda: lab.instance('parted', 'replica.state')['replica.state'] == 'stale', 60)
        time.sleep(1)
        with fettlelib.QmpListener(os.path.join(lab.root('node2'), 'run', 'guests', uuid, 'rescue.sock')) as listener:
            lab.lab('link', 'node3', 'up')
            time.sleep(1)  # until the nodes have found each other again
            lab.do('OP_INSTANCE_REPLACE_DISKS', instance_name='parted', mode='replace_auto')
            wait_whole(lab, 'parted')
            pause = still(listener.events())
        assert pause is not None, 'the guest was not held for its last blocks: everything was copied'
        pauses.append(pause)
    figures.add('incremental_resync_pause_ms', pauses, 'ms', '<= 30', digits=1)
    lab.do('OP_INSTANCE_REMOVE', instance_name='parted', shutdown_timeout=0)


def ping_gaps(lab, figures, runs, folder):
    """The longest time without an answer of a Linux guest that migrates live, and that is failed over with its boot."""
    fettlelib.install_linux(lab, folder)
    lab.cli('instance', 'create', 'pinged', '--disk-template', 'mirror', '--disk', 'size=16', '--memory', '128', '--pnode',
            'node2', '--snode', 'node3', '--net', 'mac=auto,link=br0', *fettlelib.linux_flags(ADDRESS))
    ping = fettlelib.Ping(lab, ADDRESS)
    def gap_of(opcode, settle, **params):
        wait_whole(lab, 'pinged')
        wait_until('the guest answers', lambda: ping.answered_since(time.time() - 0.5), 120)
        mark = ping.now()
        lab.do(opcode, instance_name='pinged', wait=120, **params)
        done = time.time()
        wait_until('the guest answers again', lambda: ping.answered_since(done), 120)
        time.sleep(settle)
        return ping.longest_gap(mark) * 1000
    try:
        figures.add('ping_gap_ms_migration', [gap_of('OP_INSTANCE_MIGRATE', 1) for _ in range(runs)], 'ms', '<= 1000', 0)
        figures.add('ping_gap_ms_failover', gap_of('OP_INSTANCE_FAILOVER', 0, shutdown_timeout=0), 'ms', digits=0)
    finally:
        ping.stop()
    lab.do('OP_INSTANCE_REMOVE', instance_name='pinged', shutdown_timeout=0)


def measure(build, figures, runs, guest_folder, only):
    """In a lab of its own, whose nodes have room for a big replica."""
    parts = {
        'live_migration': lambda lab: live_migration(lab, figures, runs),
        'resync': lambda lab: resync(lab, figures, max(3, runs)),
        'incremental': lambda lab: incremental(lab, figures, 3),
        'ping_gaps': lambda lab: ping_gaps(lab, figures, runs, guest_folder),
    }
    assert not only or only in parts, f'{only}: known are {", ".join(parts)}'
    with fettlelib.Lab(build, options=('--disks-mib', '1024')) as lab:
        for name, part in parts.items():
            if only in ('', name):
                part(lab)
