#!/usr/bin/env python3
"""Images out of files and into files, by real processes: on the node of the member, and on another one; and what is left when the sender or
the volume service dies in the middle.
"""
import hashlib
import os
import signal
import subprocess

import e2e
from e2e import fettlelib, title, wait_until

PATIENCE_S = 30
THIN = ('--overcommit', '100000')
MIB = 1 << 20
lab = None
folder = None   # the places of all back ends


def place(name):
    return os.path.join(folder, name)


def services():
    return {row['host']: row['state'] for row in lab.query('storage_service', ['host', 'state'])}


def add_backend(name, node):
    os.mkdir(place(name), 0o755)
    lab.cli('backend', 'add', name, '--kind', 'dir', '--images', 'yes', '--nodes', node, '--path', place(name), *THIN)
    wait_until(f'{node}@{name} is up', lambda: services().get(f'{node}@{name}') == 'up', PATIENCE_S)


def images():
    fields = ['name', 'uuid', 'status', 'why', 'size', 'os_hash_value', 'checksum', 'data', 'operation']
    return {one['name']: one for one in lab.query('image', fields)}


def files(backend):
    path = os.path.join(place(backend), 'images')
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def make_file(name, mib, odd=0):
    """Bytes, a hole, and bytes."""
    path = os.path.join(folder, name)
    with open(path, 'wb') as file:
        file.write(os.urandom(MIB))
        file.seek((mib - 1) * MIB)
        file.write(os.urandom(MIB + odd))
    return path


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def check_left(backend, names):
    """Only data of these images is there."""
    wait_until(f'{backend} has what is on record',
               lambda: files(backend) == sorted(images()[name]['data'] for name in names if name in images()), PATIENCE_S)


def start(*words, **options):
    return subprocess.Popen([lab.fettle, '--root', lab.root('node1'), *words], env=lab.environment(), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


@title('/image-streams/on-the-node-and-on-another#SAF-60')
def test_both_ways():
    for name, backend, odd in (('here', 'near', 0), ('there', 'far', 87)):
        path = make_file(name, 6, odd)
        assert lab.cli('image', 'create', name, '--file', path, '--disk-format', 'raw', '--backend', backend) == f'Image {name} is active.\n'
        found = images()[name]
        content = read(path)
        assert found['size'] == len(content) and found['os_hash_value'] == hashlib.sha512(content).hexdigest(), found
        assert found['checksum'] == hashlib.md5(content).hexdigest(), found
        kept = os.path.join(place(backend), 'images', found['data'])
        assert read(kept) == content
        assert os.stat(kept).st_blocks * 512 < 5 * MIB, 'the hole is none any more'
        saved = path + '.saved'
        said = lab.cli('image', 'save', name, '--file', saved)
        assert said == f'Image {name} is saved as {saved}, {len(content)} bytes.\n', said
        assert read(saved) == content
        code, _, err = lab.run('image', 'save', name, '--file', saved, check=False)
        assert code == 4 and f'{saved} is there already; --force replaces it' in err, (code, err)
        lab.cli('image', 'save', name, '--file', saved, '--force')
        check_left(backend, [name])
    wait_until('no transfer is left', lambda: not transfers(), PATIENCE_S)


def transfers():
    """Processes that serve something of this lab's back ends."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if os.path.basename(os.readlink(f'/proc/{pid}/exe')) != 'qemu-nbd':
                continue
            opened = [os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')]
        except OSError:
            continue
        if any(name.startswith(folder) for name in opened):
            found.append(pid)
    return found


@title('/image-streams/from-a-pipe')
def test_pipe():
    content = os.urandom(MIB + 5)
    sender = start('image', 'create', 'piped', '--file', '-', '--disk-format', 'raw', '--backend', 'far', stdin=subprocess.PIPE)
    os.write(sender.stdin.fileno(), content[:1000])
    wait_until('it is saving', lambda: images().get('piped', {}).get('status') == 'saving', PATIENCE_S)
    sender.stdin.close()
    sender.wait()
    assert sender.returncode == 0, sender.stderr.read()
    assert images()['piped']['size'] == 1000
    check_left('far', ['there', 'piped'])


@title('/image-streams/what-is-none')
def test_refused():
    path = make_file('plain', 2)
    empty = os.path.join(folder, 'empty')
    open(empty, 'wb').close()
    for words, message in (
            (('--file', path), '--disk-format is missing'),
            (('--file', path, '--volume', 'data1'), '--volume and --file exclude each other'),
            (('--file', path, '--no-wait'), '--no-wait: it is this command that sends the file'),
            (('--file', empty, '--disk-format', 'raw'), f'--file: {empty} is empty'),
            (('--file', folder, '--disk-format', 'raw'), f'--file: {folder} is a directory'),
            (('--file', path + '.none', '--disk-format', 'raw'), f'--file: cannot read {path}.none: No such file or directory'),
            (('--file', path, '--disk-format', 'qcow2'), 'is no qcow2 file')):
        code, _, err = lab.run('image', 'create', 'wrong', *words, '--backend', 'far', check=False)
        assert code != 0 and message in err, (words, err)
    assert 'image wrong is not made, and its record is removed' in err, err
    wait_until('nothing is left of it', lambda: 'wrong' not in images(), PATIENCE_S)
    check_left('far', ['there', 'piped'])


def has_come(name, backend):
    """Something of it is in its file."""
    paths = [os.path.join(place(backend), 'images', data) for data in files(backend) if data.startswith(images()[name]['uuid'])]
    return any(os.stat(path).st_blocks for path in paths)


def begin(name, backend):
    """A sender that has sent something, and does not go on."""
    sender = start('image', 'create', name, '--file', '-', '--disk-format', 'raw', '--backend', backend, stdin=subprocess.PIPE)
    for _ in range(2 * MIB // 4096):
        os.write(sender.stdin.fileno(), os.urandom(4096))
    wait_until(f'{name} is being sent', lambda: has_come(name, backend), PATIENCE_S)
    return sender


@title('/image-streams/sender-ends')
def test_sender_ends():
    sender = begin('left', 'far')
    sender.send_signal(signal.SIGINT)
    _, err = sender.communicate()
    assert sender.returncode == 130 and 'image left is not made, and its record is removed: interrupted' in err, (sender.returncode, err)
    wait_until('it is gone', lambda: 'left' not in images(), PATIENCE_S)
    sender = begin('killed', 'far')
    sender.kill()
    sender.communicate()
    wait_until('it is queued', lambda: images()['killed']['status'] == 'queued', PATIENCE_S)
    assert images()['killed']['why'] == 'its sender has gone before the end', images()['killed']
    check_left('far', ['there', 'piped'])
    wait_until('no transfer is left', lambda: not transfers(), PATIENCE_S)
    lab.cli('image', 'delete', 'killed', '--yes')


@title('/image-streams/service-dies#SAF-52')
def test_service_dies():
    sender = begin('orphan', 'far')
    lab.lab('kill', 'volumed@node2')
    wait_until('its transfer has died with it', lambda: not transfers(), PATIENCE_S)
    os.write(sender.stdin.fileno(), os.urandom(1000))
    sender.stdin.close()
    sender.wait()
    err = sender.stderr.read()
    assert sender.returncode != 0 and 'image orphan is not made' in err, err
    wait_until('node2@far is up', lambda: services().get('node2@far') == 'up', PATIENCE_S)
    wait_until('it is gone', lambda: 'orphan' not in images(), PATIENCE_S)
    check_left('far', ['there', 'piped'])


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        folder = os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        add_backend('near', 'node1')
        add_backend('far', 'node2')
        e2e.run(test_both_ways, test_pipe, test_refused, test_sender_ends, test_service_dies)
