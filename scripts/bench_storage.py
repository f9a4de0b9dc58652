"""What storage services cost: cleaning and a volume's work in memory, volumes on a directory in a lab."""
import hashlib
import os
import shutil
import subprocess
import tempfile
import time

import fettlelib
from bench_queue import ms, resident_mb, timed

NODES = ('node1', 'node2', 'node3')
RATES = {'cleanup_floor_rows_per_s': ('1/s', ''), 'cleanup_rows_per_s': ('1/s', '>= 2500'), 'cleanup_request_ms': ('ms', '<= 150'),
         'volume_work_floor_us': ('us', ''), 'volume_work_us': ('us', '<= 2 volume_work_floor_us'), 'volumes_10000_mb': ('MB', '<= 25')}
FILLED_MIB = 64
IDLE_S = 20
IMAGE_MIB = 1024


def in_memory(build, figures):
    """tests/bench/bench_storage.c prints medians of processor time; what its processes say of themselves is not of interest."""
    out = subprocess.run([os.path.join(build, 'tests/bench/bench_storage')], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True).stdout
    values = {name: float(value) for name, value in (line.split() for line in out.splitlines() if not line.startswith('<'))}
    figures.floors.update(values)
    for name, value in values.items():
        figures.add(name, value, *RATES[name], digits=0)
    figures.add('cleanup_rows_of_floor', values['cleanup_rows_per_s'] / values['cleanup_floor_rows_per_s'], 'share', '>= 0.4')


def make_file(path):
    """As a volume is made by hand: the file, its size, both on disk."""
    with open(path, 'wb') as file:
        file.truncate(1 << 30)
        os.fsync(file.fileno())
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def serve(lab):
    """The place of the back end, which is there from now on."""
    place = os.path.join(lab.directory, 'shared', 'bench')
    if os.path.isdir(place):
        return place
    os.mkdir(place, 0o755)
    lab.cli('cluster', 'modify', '--report-interval', '1')
    lab.cli('backend', 'add', 'bench', '--nodes', ','.join(NODES), '--path', place, '--overcommit', '100000', '--backups', 'yes')
    fettlelib.wait_until('all serve', lambda: [row['state'] for row in lab.query('storage_service', ['state', 'backend'])
                                               if row['backend']] == ['up'] * len(NODES), 60)
    return place


def on_a_directory(lab, figures, runs):
    place = serve(lab)
    made, created, deleted, commits = [], [], [], []
    for number in range(runs):
        made.append(ms(timed(lambda path=os.path.join(place, f'by-hand-{number}'): make_file(path))))
        before = lab.call('QueryClusterInfo')['serial']
        created.append(ms(timed(lambda: lab.cli('volume', 'create', 'v', '--size', '1', '--backend', 'bench'))))
        commits.append(lab.call('QueryClusterInfo')['serial'] - before)
        deleted.append(ms(timed(lambda: lab.cli('volume', 'delete', 'v'))))
    figures.floors['floor_volume_file_ms'] = sorted(made)[runs // 2]
    figures.add('floor_volume_file_ms', made, 'ms')
    figures.add('volume_create_dir_ms', created, 'ms', '<= 10 + 8 floor_fdatasync_ms + 1.5 floor_volume_file_ms + 2 floor_exec_ms')
    figures.add('volume_delete_dir_ms', deleted, 'ms')
    figures.add('volume_create_commits', commits, '', '<= 5', digits=0)
    before = lab.call('QueryClusterInfo')['serial']
    time.sleep(IDLE_S)
    figures.add(f'beat_commits_{IDLE_S}_s', lab.call('QueryClusterInfo')['serial'] - before, '', '<= 0', digits=0)
    pid = next(daemon['pid'] for node in lab.status()['nodes'] if node['name'] == 'node2' for daemon in node['daemons']
               if daemon['name'] == 'volumed')
    figures.add('volumed_rss_mb', resident_mb(pid), 'MB', '<= 12', 1)


def data_of(lab, place, volume):
    """The file of a volume."""
    return os.path.join(place, 'volumes', lab.query('volume', ['name', 'data'], ['=', 'name', volume])[0]['data'])


def fill(path):
    """Half of it can be compressed."""
    with open(path, 'r+b') as file:
        for _ in range(FILLED_MIB):
            file.write(os.urandom(512 << 10) + bytes(512 << 10))
        os.fsync(file.fileno())


def convert(source, target, *options):
    subprocess.run(['qemu-img', 'convert', *options, source, target], check=True)
    with open(target, 'rb') as file:
        os.fsync(file.fileno())


def mib_per_s(seconds):
    return [FILLED_MIB / one for one in seconds]


def backups(lab, figures, runs):
    """Of a volume of 1 GiB with 64 MiB of data; rates are of these."""
    place = serve(lab)
    packed, unpacked = os.path.join(place, 'packed'), os.path.join(place, 'unpacked')
    lab.cli('volume', 'create', 'full', '--size', '1', '--backend', 'bench')
    path = data_of(lab, place, 'full')
    fill(path)
    floors, made, floors_back, restored = [], [], [], []
    for number in range(runs):
        floors.append(timed(lambda: convert(path, packed, '-c', '-f', 'raw', '-O', 'qcow2')))
        made.append(timed(lambda name=f'b{number}': lab.cli('backup', 'create', 'full', '--name', name)))
        floors_back.append(timed(lambda: convert(packed, unpacked, '-f', 'qcow2', '-O', 'raw')))
        restored.append(timed(lambda name=f'b{number}': lab.cli('backup', 'restore', name, '--new', f'of-{name}')))
        lab.cli('volume', 'delete', f'of-b{number}')
        lab.cli('backup', 'delete', f'b{number}')
        os.unlink(packed)
        os.unlink(unpacked)
    for name, floor, values in (('backup_mib_s', floors, made), ('restore_mib_s', floors_back, restored)):
        figures.floors[f'floor_{name}'] = sorted(mib_per_s(floor))[runs // 2]
        figures.add(f'floor_{name}', mib_per_s(floor), 'MiB/s')
        figures.add(name, mib_per_s(values), 'MiB/s', f'>= 0.7 floor_{name}')


def rate(seconds):
    return IMAGE_MIB / seconds


def hash_file(path):
    sums = [hashlib.sha512(), hashlib.md5()]
    with open(path, 'rb') as file:
        for piece in iter(lambda: file.read(1 << 20), b''):
            for one in sums:
                one.update(piece)


def by_nbd(path, folder):
    """NBD alone: into a file of the same size, flushed, by QEMU's own client."""
    target, socket = os.path.join(folder, 'nbd-target'), os.path.join(folder, 'nbd-socket')
    with open(target, 'wb') as file:
        file.truncate(IMAGE_MIB << 20)
    with subprocess.Popen(['qemu-nbd', '-f', 'raw', '-k', socket, target]) as server:
        fettlelib.wait_until('it listens', lambda: os.path.exists(socket), 30)
        subprocess.run(['qemu-img', 'convert', '-n', '-f', 'raw', '-O', 'raw', path, f'nbd+unix:///?socket={socket}'], check=True)
        server.wait()
    os.remove(target)


def write_file(path, folder):
    target = os.path.join(folder, 'by-hand')
    subprocess.run(['dd', f'if={path}', f'of={target}', 'bs=1M', 'conv=fsync', 'status=none'], check=True)
    os.remove(target)


def images(lab, figures, folder, runs):
    """Of random bytes, as nothing of them may be left out; the disks of a lab are too small for them."""
    path = os.path.join(folder, 'image')
    with open(path, 'wb') as file:
        for _ in range(IMAGE_MIB):
            file.write(os.urandom(1 << 20))
    for name, node in (('near', 'node1'), ('far', 'node2')):
        os.mkdir(os.path.join(folder, name), 0o755)
        lab.cli('backend', 'add', name, '--images', 'yes', '--nodes', node, '--path', os.path.join(folder, name), '--overcommit', '100000')
        fettlelib.wait_until(f'{name} is served', lambda name=name: [row['state'] for row in lab.query('storage_service', ['state', 'backend'])
                                                                     if row['backend'] == name] == ['up'], 60)
    floors = {'hashes': [], 'nbd': [], 'disk': []}
    rates = {'image_stream_mib_s': [], 'image_stream_tls_mib_s': [], 'image_save_mib_s': []}
    for number in range(runs):
        floors['hashes'].append(rate(timed(lambda: hash_file(path))))
        floors['nbd'].append(rate(timed(lambda: by_nbd(path, folder))))
        floors['disk'].append(rate(timed(lambda: write_file(path, folder))))
        for name, backend in (('image_stream_mib_s', 'near'), ('image_stream_tls_mib_s', 'far')):
            rates[name].append(rate(timed(lambda backend=backend: lab.cli('image', 'create', 'i', '--file', path, '--disk-format', 'raw',
                                                                         '--backend', backend))))
            if backend == 'near':
                saved = os.path.join(folder, 'saved')
                rates['image_save_mib_s'].append(rate(timed(lambda: lab.cli('image', 'save', 'i', '--file', saved, '--force'))))
                os.remove(saved)
            lab.cli('image', 'delete', 'i', '--yes')
    for name, values in floors.items():
        figures.add(f'floor_image_{name}_mib_s', values, 'MiB/s', digits=0)
    figures.floors['floor_image_stream_mib_s'] = min(sorted(values)[runs // 2] for values in floors.values())
    for name, values in rates.items():
        figures.add(name, values, 'MiB/s', '>= 0.5 floor_image_stream_mib_s' if name == 'image_stream_mib_s' else '', digits=0)


def measure(build, figures, runs):
    if not figures.wants('volumes', 'backups', 'images'):
        return
    with fettlelib.Lab(build) as lab:
        figures.part('volumes', 120, on_a_directory, lab, figures, runs)
        figures.part('backups', 120, backups, lab, figures, min(runs, 5))
        folder = tempfile.mkdtemp(prefix='fettle-bench-images-', dir='/var/tmp')
        try:
            figures.part('images', 120, images, lab, figures, folder, 3)
        finally:
            shutil.rmtree(folder)


def in_a_pool(build, figures, runs):
    """Beside `rbd create` by hand, of which a volume needs a marker read and a mark made as well."""
    with fettlelib.Lab(build, nodes=1, options=('--ceph',)) as lab:
        conf = os.path.join(lab.directory, 'ceph', 'ceph.conf')
        inside = [lab.fettle, 'lab', 'exec', 'node1', '--dir', lab.directory, '--', 'rbd', '-c', conf, '-n', 'client.fettle']
        lab.cli('cluster', 'modify', '--report-interval', '1')
        lab.cli('backend', 'add', 'pool', '--kind', 'rbd', '--nodes', 'node1', '--pool', 'rbd', '--conf', conf, '--overcommit', '100000')
        fettlelib.wait_until('it serves', lambda: 'up' in [row['state'] for row in lab.query('storage_service', ['state', 'backend'])
                                                           if row['backend']], 60)
        by_hand, created = [], []
        for number in range(runs):
            by_hand.append(ms(timed(lambda name=f'by-hand-{number}': subprocess.run([*inside, 'create', '--size', '1G', name], check=True))))
            created.append(ms(timed(lambda name=f'v{number}': lab.cli('volume', 'create', name, '--size', '1', '--backend', 'pool'))))
        figures.floors['floor_rbd_create_ms'] = sorted(by_hand)[runs // 2]
        figures.add('floor_rbd_create_ms', by_hand, 'ms')
        figures.add('volume_create_rbd_ms', created, 'ms', '<= 5 floor_rbd_create_ms')
