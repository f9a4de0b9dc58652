#!/usr/bin/env python3
"""Images, by real processes: what a volume had becomes a file with its sums, that other volumes, on other back ends too; what is read is not deleted,
what is protected not either; and who dies in mid-work leaves nothing behind."""
import hashlib
import os
import re
import subprocess

import e2e
import test_volumes as v
from e2e import fettlelib, title, wait_until

lab = None
PLACES = (0, 5 << 20, (1 << 30) - 4)


def images():
    fields = ['name', 'uuid', 'status', 'why', 'gib', 'backend', 'data', 'disk_format', 'size', 'virtual_size', 'checksum', 'os_hash_value', 'operation']
    return {one['name']: one for one in lab.query('image', fields)}


def path_of(found):
    return os.path.join(v.place(found['backend']), 'images', found['data'])


def check(backend):
    """What is on record is there, and nothing else is."""
    def agree():
        named = {one['data'] for one in v.volumes(backend).values()}
        named |= {one['data'] for one in images().values() if one['backend'] == backend}
        return set(v.files(backend, ('volumes', 'images'))) == named - {None}
    wait_until(f'{backend} has what is on record', agree, v.PATIENCE_S)


@title('/images/of-a-volume#SAF-60')
def test_upload():
    v.add_backend('dir1', 'node1', 'node2')
    lab.cli('volume', 'create', 'data1', '--size', '1')
    v.write(v.data('volumes', v.volumes()['data1']), b'good', *PLACES)
    v.refused('no back end may hold images; allow one: fettle backend modify dir1 --images yes', 'image', 'create', 'tick', '--volume', 'data1')
    lab.cli('backend', 'modify', 'dir1', '--images', 'yes')
    v.refused('--volume is missing', 'image', 'create', 'tick')
    v.refused('volume "data9" does not exist', 'image', 'create', 'tick', '--volume', 'data9')
    v.refused('disk_format: must be one of raw, qcow2', 'image', 'create', 'tick', '--volume', 'data1', '--disk-format', 'vmdk')
    assert lab.cli('image', 'create', 'tick', '--volume', 'data1') == 'Image tick is made of volume data1.\n'
    v.refused('an image tick exists already: ', 'image', 'create', 'tick', '--volume', 'data1')
    found = images()['tick']
    with open(path_of(found), 'rb') as file:
        whole = file.read()
    sums = hashlib.md5(whole).hexdigest(), hashlib.sha512(whole).hexdigest()
    assert (found['status'], found['size'], found['virtual_size'], found['gib']) == ('active', len(whole), 1 << 30, 1), found
    assert (found['checksum'], found['os_hash_value'], found['disk_format']) == (*sums, 'qcow2'), found
    said = lab.cli('image', 'list')
    assert re.search(rf'^tick +active +1 +dir1 +qcow2 +{found["uuid"]}$', said, re.M), said
    said = lab.cli('image', 'info', 'tick')
    assert re.search(rf'^Image tick\n  Status +active\n(.*\n)*  For volumes +of 1 GiB or more\n(.*\n)*  SHA-512 +{sums[1]}\n', said), said
    assert 'Now: image tick is active.\n' in lab.cli('why', 'image', 'tick')
    said = lab.cli('recovery', 'collect', 'image', 'tick')
    assert re.search(rf'^Image tick\n(.*\n)*.*{found["data"]}: .*whole$', said, re.M), said
    check('dir1')


@title('/images/volumes-of-one#SAF-120')
def test_create():
    v.add_backend('dir2', 'node2')
    v.write(v.data('volumes', v.volumes()['data1']), b'late', *PLACES)
    assert lab.cli('volume', 'create', 'root1', '--image', 'tick', '--backend', 'dir1') == 'Volume root1 is available.\n'
    assert lab.cli('volume', 'create', 'root2', '--image', 'tick', '--backend', 'dir2', '--size', '2') == 'Volume root2 is available.\n'
    for name, size in (('root1', 1), ('root2', 2)):
        assert v.volumes()[name]['size'] == size
        assert v.read(v.data('volumes', v.volumes()[name]), 4, *PLACES) == [b'good'] * 3
    lab.cli('image', 'modify', 'tick', '--min-disk', '3', '--protected', 'yes', '--properties', 'os=debian')
    v.refused('size: 2 GiB is smaller than image tick, which needs 3 GiB', 'volume', 'create', 'x', '--image', 'tick', '--size', '2')
    v.refused('image "tock" does not exist', 'volume', 'create', 'x', '--image', 'tock')
    v.refused('image tick is protected; first: fettle image modify tick --protected no', 'image', 'delete', 'tick')
    v.refused('nothing to change: name at least one flag', 'image', 'modify', 'tick')
    v.refused('visibility: must be private, public, shared or community, not "all"', 'image', 'modify', 'tick', '--visibility', 'all')
    lab.cli('image', 'modify', 'tick', '--min-disk', '1', '--protected', 'no')
    check('dir1')
    check('dir2')


@title('/images/whoever-can-write-there-has-no-other-file-read')
def test_hostile():
    path = path_of(images()['tick'])
    with open(path, 'rb') as file:
        was = file.read()
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-u', '-b', '/etc/passwd', '-F', 'raw', path, '1G'], check=True)
    code, _, err = lab.run('volume', 'create', 'evil', '--image', 'tick', '--backend', 'dir1', check=False)
    assert code != 0 and 'refers to another file, "/etc/passwd", and is to rest on none' in err, (code, err)
    said = lab.run('cluster', 'verify', check=False)[1]
    assert re.search(r'image tick: its data .* has \d+ of \d+ bytes on back end dir1; .*fettle image reset-state tick --status killed', said), said
    with open(path, 'wb') as file:
        file.write(was)
    lab.cli('volume', 'delete', 'evil')
    check('dir1')


@title('/images/killed-in-mid-work#CLN-58,62')
def test_killed():
    with v.disk('dir3'):
        lab.cli('backend', 'modify', 'dir3', '--images', 'yes')
        with fettlelib.standing_still(v.place('dir3')):
            lab.json('volume', 'create', 'root3', '--image', 'tick', '--backend', 'dir3', '--no-wait')
            wait_until('it is being read', lambda: v.volumes()['root3']['status'] == 'downloading', v.PATIENCE_S)
            v.refused('image tick is being read by volume root3; wait, or reset that', 'image', 'delete', 'tick')
            lab.lab('kill', 'volumed@node1')
        wait_until('it is cleaned', lambda: v.volumes()['root3']['status'] == 'error', v.PATIENCE_S)
        lab.cli('volume', 'delete', 'root3')
        lab.cli('volume', 'create', 'data3', '--size', '1', '--backend', 'dir3')
        with fettlelib.standing_still(v.place('dir3')):
            lab.json('image', 'create', 'tock', '--volume', 'data3', '--no-wait')
            wait_until('node1 has taken it', lambda: v.volumes()['data3']['worker'] == 'node1@dir3', v.PATIENCE_S)
            lab.lab('kill', 'volumed@node1')
        wait_until('it is cleaned', lambda: images()['tock']['operation'] is None, v.PATIENCE_S)
        assert (images()['tock']['status'], images()['tock']['data']) == ('queued', None), images()
        assert v.volumes()['data3']['status'] == 'available'
        check('dir3')
        lab.cli('image', 'delete', 'tock')
        lab.cli('volume', 'delete', 'data3')
        check('dir3')


@title('/images/outlive-and-go')
def test_delete():
    lab.cli('volume', 'delete', 'data1')
    assert lab.cli('image', 'delete', 'tick') == 'Image tick is deleted.\n'
    assert images() == {}
    v.refused('image "tick" does not exist', 'image', 'delete', 'tick')
    check('dir1')


@title('/images/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        v.lab, v.folder = lab, os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        e2e.run(test_upload, test_create, test_hostile, test_killed, test_delete, test_logs)
