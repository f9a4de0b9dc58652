"""Figures of guests that move or write and of replicas that are copied; used by scripts/bench."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

import fettlelib
from bench_queue import job_process
from fettlelib import wait_until

COPY_MIB = 256
MOVING_MIB = 64
WRITTEN_MIB = 8
NBD_PORT = 10900
ADDRESS = fettlelib.address(150)


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
    figures.add('live_migration_ms', times, 'ms', '<= 8 floor_cpu_ms', digits=0)
    lab.do('OP_INSTANCE_REMOVE', instance_name='moving', shutdown_timeout=0)


def fill(path):
    """Every block of the image must be copied then, except of its beginning, which boots."""
    with open(path, 'r+b') as file:
        file.seek(1 << 20)
        for _ in range(COPY_MIB - 1):
            file.write(os.urandom(1 << 20))


class PlainServer:
    """nbdkit on node3: the program, the key and the cipher that exports of ours have, and nothing else. By itself with
    its own plugin for files."""

    def __init__(self, lab, mib=COPY_MIB, plugin=('file', 'file={}')):
        self.address = lab.query('node', ['pip'], ['=', 'name', 'node3'])[0]['pip']
        self.target = os.path.join(lab.root('node3'), 'var', 'disks', 'plain.raw')
        self.keys = tempfile.mkdtemp(prefix='fettle-bench-')
        key, ciphers = os.path.join(self.keys, 'keys.psk'), os.path.join(self.keys, 'ciphers')
        with open(key, 'w', encoding='utf-8') as file:
            file.write(f'qemu:{os.urandom(32).hex()}\n')
        with open(ciphers, 'w', encoding='utf-8') as file:
            file.write('[overrides]\ntls-disabled-cipher = CHACHA20-POLY1305\n')
        subprocess.run(['qemu-img', 'create', '-q', '-f', 'raw', self.target, f'{mib}M'], check=True)
        words = lab.exec_words('node3', 'env', f'GNUTLS_SYSTEM_PRIORITY_FILE={ciphers}', 'nbdkit', '-f', '--tls=require',
                               f'--tls-psk={key}', '-i', self.address, '-p', str(NBD_PORT),
                               *(word.format(self.target) for word in plugin))
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
        wait_until('it is remembered what is written', lambda: lab.remembers(uuid, 'node2'))
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
    figures.add('incremental_resync_pause_ms', pauses, 'ms', '<= 0.3 floor_cpu_ms', digits=1)
    lab.do('OP_INSTANCE_REMOVE', instance_name='parted', shutdown_timeout=0)


class BareGuest:
    """The guest that counts flat out in a QEMU of its own on node2, with nothing of ours around it."""

    def __init__(self, lab, server):
        self.folder = tempfile.mkdtemp(prefix='fettle-bench-')
        self.image = os.path.join(lab.root('node2'), 'var', 'disks', 'bare.raw')
        shutil.copy(os.path.join(lab.root('node2'), 'var', 'images', 'tick-fast.raw'), self.image)
        os.truncate(self.image, WRITTEN_MIB << 20)
        path = os.path.join(self.folder, 'qmp')
        disk = {'driver': 'raw', 'node-name': 'd0', 'file': {'driver': 'file', 'filename': self.image}}
        words = lab.exec_words('node2', 'qemu-system-x86_64', '-M', 'pc', '-m', '8', '-accel', 'tcg', '-nodefaults',
                               '-no-user-config', '-display', 'none', '-serial', 'null', '-qmp',
                               f'unix:{path},server=on,wait=off', '-object',
                               f'tls-creds-psk,id=key,endpoint=client,dir={server.keys},username=qemu', '-blockdev',
                               json.dumps(disk), '-device', 'virtio-blk-pci,drive=d0,id=vd0,bootindex=1')
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        wait_until('the bare guest listens', lambda: os.path.exists(path))
        self.qmp = fettlelib.QmpListener(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.qmp.execute('quit')
        self.process.wait()
        os.unlink(self.image)
        shutil.rmtree(self.folder)

    def mirror(self, server, export):
        """Straight to the server, as a mirror of ours goes by way of its relay."""
        address = {'type': 'inet', 'host': server.address, 'port': str(NBD_PORT)}
        self.qmp.execute('blockdev-add', {'driver': 'nbd', 'node-name': 't0', 'server': address, 'export': export,
                                          'tls-creds': 'key'})
        self.qmp.execute('blockdev-mirror', {'job-id': 'm0', 'device': 'd0', 'target': 't0', 'sync': 'full',
                                             'copy-mode': 'write-blocking'})
        wait_until('the bare mirror is ready', lambda: self.qmp.execute('query-block-jobs')[0]['ready'])


def write_us(qmp, samples=6, seconds=0.5):
    """Microseconds from a guest's write of one sector to its answer, by QEMU's own clock, on the average of each sample."""
    def totals():
        row, = [row['stats'] for row in qmp.execute('query-blockstats') if 'vd0' in row.get('qdev', '')]
        return row['wr_operations'], row['wr_total_time_ns']
    wait_until('the guest writes', lambda: totals()[0] > 100)
    found = []
    for _ in range(samples):
        writes, nanoseconds = totals()
        time.sleep(seconds)
        more, longer = totals()
        found.append((longer - nanoseconds) / (more - writes) / 1000)
    return found


def writes(lab, figures, runs, build):
    """What a guest waits for one write: local, mirrored straight to an export, mirrored as ours are, through the relay."""
    lab.do('OP_INSTANCE_CREATE', instance_name='writes', disk_template='mirror', disks=[{'size': WRITTEN_MIB}], memory=8,
           os_type='tick-fast', pnode='node2', snode='node3', start=False)
    uuid = lab.instance('writes', 'uuid')['uuid']
    export = (os.path.join(os.path.abspath(build), 'src', 'backend', 'storage', 'fettle-failstop.so'), 'file={}',
              'history=1', 'replica=r', 'generation=1', 'disk=0')
    local, straight, ours = [], [], []
    for _ in range(runs):
        with PlainServer(lab, WRITTEN_MIB, export) as server, BareGuest(lab, server) as guest:
            local += write_us(guest.qmp)
            guest.mirror(server, '1.r.1.0')
            straight += write_us(guest.qmp)
        lab.do('OP_INSTANCE_STARTUP', instance_name='writes')
        wait_whole(lab, 'writes')
        with fettlelib.QmpListener(os.path.join(lab.root('node2'), 'run', 'guests', uuid, 'rescue.sock')) as qmp:
            ours += write_us(qmp)
        lab.do('OP_INSTANCE_SHUTDOWN', instance_name='writes', timeout=0)
    figures.add('floor_guest_write_local_us', local, 'us', digits=0)
    figures.add('floor_guest_write_mirror_us', straight, 'us', digits=0)
    figures.add('guest_write_us', ours, 'us', digits=0)
    figures.add('guest_write_of_floor', statistics.median(ours) / statistics.median(straight), '')
    lab.do('OP_INSTANCE_REMOVE', instance_name='writes', shutdown_timeout=0)


def writes_in_memory(build, figures, runs):
    """In a lab whose disks cost nothing: what is measured is the way, not the machine's disk."""
    folder = tempfile.mkdtemp(prefix='fettle-bench-', dir='/dev/shm')
    os.chmod(folder, 0o711)  # guests run as somebody else
    try:
        with fettlelib.Lab(build, directory=os.path.join(folder, 'lab')) as lab:
            writes(lab, figures, runs, build)
    finally:
        shutil.rmtree(folder)


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


def settle(lab, figures, runs):
    """From the kill of the job that was to remove a guest, which does not listen to its button, until its mark is off the record; the
    guest has run throughout."""
    lab.do('OP_INSTANCE_CREATE', instance_name='clung', disk_template='diskless', memory=8, pnode='node2')
    uuid = lab.instance('clung', 'uuid')['uuid']
    pids, times = lab.qemu_processes(uuid), []
    for _ in range(runs):
        job = lab.submit({'OP_ID': 'OP_INSTANCE_REMOVE', 'instance_name': 'clung'})
        wait_until('it is marked', lambda: lab.instance('clung', 'task_state')['task_state'] == 'removing', step=0.01)
        pid = wait_until('the job has a process', lambda j=job: job_process(lab, j))
        start = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        wait_until('its mark is off the record', lambda: not lab.instance('clung', 'task_state')['task_state'], step=0.002)
        times.append((time.perf_counter() - start) * 1000)
        row = lab.instance('clung', 'status')
        assert row['status'] == 'running' and lab.qemu_processes(uuid) == pids != [], row
    figures.add('recovery_settle_ms', times, 'ms', '<= 1500', digits=0)
    lab.do('OP_INSTANCE_REMOVE', instance_name='clung', shutdown_timeout=0)


def measure(build, figures, runs, guest_folder):
    """In a lab of its own, whose nodes have room for a big replica."""
    parts = {
        'live_migration': lambda lab: live_migration(lab, figures, runs),
        'resync': lambda lab: resync(lab, figures, max(3, runs)),
        'incremental': lambda lab: incremental(lab, figures, 3),
        'settle': lambda lab: settle(lab, figures, max(5, runs)),
        'ping_gaps': lambda lab: ping_gaps(lab, figures, runs, guest_folder),
    }
    figures.part('writes', 120, writes_in_memory, build, figures, max(3, runs))
    if not figures.wants(*parts):
        return
    with fettlelib.Lab(build, options=('--disks-mib', '1024')) as lab:
        for name, part in parts.items():
            figures.part(name, 150, part, lab)
