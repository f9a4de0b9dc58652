#!/usr/bin/env python3
"""Images by a real front end: stock clients put one in, by a file and by a pipe, and get it out; and whoever dies in the middle of the bytes leaves
nothing behind."""
import hashlib
import http.client
import os
import random
import subprocess
import threading

import api
import e2e
import test_images as i
import test_volumes as v
from e2e import title, wait_until

lab = None
front = None
TOKEN = None
MIB = 1 << 20
PIECE = random.Random(7).randbytes(MIB)


def ask(method, path, body=None, **headers):
    return front.ask(method, '/image/v2' + path, body, TOKEN, {name.replace('_', '-'): value for name, value in headers.items()})


def made(name, disk_format='raw'):
    status, _, image = ask('POST', '/images', {'name': name, 'disk_format': disk_format, 'container_format': 'bare'})
    assert (status, image['status']) == (201, 'queued'), image
    return image['id']


def status_of(name):
    return i.images()[name]['status']


class Upload:
    """PUT of the bytes of an image, as far as the test says."""

    def __init__(self, image, length=None):
        self.connection = http.client.HTTPConnection('127.0.0.1', front.port, timeout=api.PATIENCE_S)
        self.chunked = length is None
        self.connection.putrequest('PUT', f'/image/v2/images/{image}/file')
        self.connection.putheader('X-Auth-Token', TOKEN)
        self.connection.putheader('Content-Type', 'application/octet-stream')
        self.connection.putheader(*(('Transfer-Encoding', 'chunked') if self.chunked else ('Content-Length', str(length))))
        self.connection.endheaders()

    def send(self, data):
        self.connection.send(b'%x\r\n%s\r\n' % (len(data), data) if self.chunked else data)

    def end(self):
        if self.chunked:
            self.connection.send(b'0\r\n\r\n')
        with self.connection.getresponse() as answer:
            return answer.status, answer.read()

    def gone(self):
        self.connection.close()


def comes(image):
    """Some of its bytes are on the disk: whoever sends them has been let in."""
    folder = os.path.join(v.place('dir1'), 'images')
    return os.path.isdir(folder) and any(entry.name.startswith(image) and entry.stat().st_blocks for entry in os.scandir(folder))


def put(image, data, chunked=False):
    """Who sends more than is wanted may be hung up on before he hears why: (None, b'')."""
    upload = Upload(image, None if chunked else len(data))
    try:
        for at in range(0, len(data), 100000):
            upload.send(data[at:at + 100000])
        return upload.end()
    except (BrokenPipeError, ConnectionResetError):
        return None, b''


@title('/api-images/by-stock-clients#SAF-60')
def test_stock():
    global front, TOKEN
    v.add_backend('dir1', 'node1', 'node2')
    lab.cli('backend', 'modify', 'dir1', '--images', 'yes')
    front = api.init(lab)
    TOKEN = front.login()[1]
    source, copy = (os.path.join(lab.directory, name) for name in ('tick.raw', 'tock.raw'))
    with open(source, 'wb') as file:
        file.write(PIECE * 3 + bytes(MIB) + PIECE[:1000])
    with open(source, 'rb') as file:
        whole = file.read()
    front.client('openstack', 'image', 'create', 'tick', '--file', source, '--disk-format', 'raw', '--property', 'os_distro=none', '--tag', 't')
    shown = front.openstack('image', 'show', 'tick')
    assert (shown['status'], shown['size'], shown['checksum']) == ('active', len(whole), hashlib.md5(whole).hexdigest()), shown
    assert shown['properties']['os_hash_value'] == hashlib.sha512(whole).hexdigest(), shown
    front.client('openstack', 'image', 'save', 'tick', '--file', copy)
    with open(copy, 'rb') as file:
        assert file.read() == whole
    with open(source, 'rb') as file:
        front.client('glance', 'image-create', '--name', 'piped', '--disk-format', 'raw', '--container-format', 'bare', stdin=file)
    assert i.images()['piped']['os_hash_value'] == hashlib.sha512(whole).hexdigest()
    front.client('openstack', 'volume', 'create', '--size', '1', '--image', 'tick', 'data1')
    wait_until('it is made', lambda: v.volumes()['data1']['status'] == 'available', v.PATIENCE_S)
    with open(v.data('volumes', v.volumes()['data1']), 'rb') as file:
        assert file.read(len(whole)) == whole
    assert [one['Name'] for one in front.openstack('image', 'list', '--tag', 't')] == ['tick']
    front.client('openstack', 'image', 'delete', 'piped')
    wait_until('it is gone', lambda: 'piped' not in i.images(), v.PATIENCE_S)
    i.check('dir1')


@title('/api-images/bytes-in-and-out')
def test_bytes():
    data = PIECE * 5 + b'end'
    image = made('bytes')
    assert ask('GET', f'/images/{image}/file')[0] == 204
    assert put(image, data, chunked=True)[0] == 204
    assert put(image, data)[0] == 409  # heard, though all of it is sent first
    assert put(image, b'few')[0] == 409
    assert ask('GET', f'/images/{image}/file')[2] == data
    status, headers, part = ask('GET', f'/images/{image}/file', Range='bytes=1048570-2097160')
    assert (status, headers['Content-Range'], part) == (206, f'bytes 1048570-2097160/{len(data)}', data[1048570:2097161])
    assert ask('GET', f'/images/{image}/file', Range='bytes=-3')[2] == b'end'
    assert ask('GET', f'/images/{image}/file', Range=f'bytes={len(data)}-')[0] == 416


@title('/api-images/bytes-that-are-no-good')
def test_no_good():
    image = made('bad1', 'qcow2')
    chain = os.path.join(lab.directory, 'chain.qcow2')
    subprocess.run(['qemu-img', 'create', '-q', '-u', '-f', 'qcow2', '-b', '/etc/shadow', '-F', 'raw', chain, '1M'], check=True)
    with open(chain, 'rb') as file:
        status, body = put(image, file.read())
    assert status == 400 and b'/etc/shadow' in body, (status, body)
    wait_until('it is queued', lambda: status_of('bad1') == 'queued', v.PATIENCE_S)
    status, body = put(made('bad2', 'qcow2'), PIECE)
    assert status == 400 and b'no qcow2' in body, (status, body)
    image = made('bad3', 'qcow2')
    upload = Upload(image, 32 * MIB)
    for _ in range(24):
        upload.send(PIECE)
    wait_until('it comes', lambda: status_of('bad3') == 'saving' and comes(image), v.PATIENCE_S)
    upload.gone()
    wait_until('it is queued again', lambda: status_of('bad3') == 'queued', v.PATIENCE_S)
    i.check('dir1')
    good = os.path.join(lab.directory, 'good.qcow2')
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', good, '1G'], check=True)
    with open(good, 'rb') as file:
        whole = file.read()
    status, body = put(image, whole)
    assert status == 409 and b'what is sent now may be the rest of that; delete it and make another one' in body, (status, body)
    status, body = put(made('good', 'qcow2'), whole)
    assert (status, status_of('good')) == (204, 'active'), body


@title('/api-images/who-dies-in-the-middle-leaves-nothing')
def test_deaths():
    image = made('half')

    def begin():
        upload = Upload(image, 64 * MIB)
        for _ in range(24): # more than may be on its way
            upload.send(PIECE)
        wait_until('it comes', lambda: status_of('half') == 'saving' and comes(image), v.PATIENCE_S)
        return upload

    upload = begin()
    lab.lab('kill', 'apid@node1')
    wait_until('nothing is left', lambda: status_of('half') == 'queued', v.PATIENCE_S)
    upload.gone()
    i.check('dir1')
    wait_until('the front end is back', front.can_log_in, v.PATIENCE_S)
    upload = begin()
    owner = i.images()['half']
    lab.lab('kill', 'volumed@node1')
    lab.lab('kill', 'volumed@node2')
    status = None

    def rest():
        nonlocal status
        try:
            for _ in range(40):
                upload.send(PIECE)
            status = upload.end()[0]
        except OSError as error:
            status = error
    sender = threading.Thread(target=rest)
    sender.start()
    wait_until('nothing is left', lambda: status_of('half') == 'queued', v.PATIENCE_S)
    sender.join(api.PATIENCE_S)
    assert status == 503, (status, owner)
    i.check('dir1')
    assert put(image, PIECE)[0] == 409
    wait_until('it can be repeated', lambda: put(image, PIECE * 64)[0] == 204, v.PATIENCE_S)


@title('/api-images/pipe-that-breaks-is-not-sent-again')
def test_pipe():
    image = made('pipe')
    upload = Upload(image)
    for _ in range(4):
        upload.send(PIECE)
    wait_until('it comes', lambda: status_of('pipe') == 'saving' and comes(image), v.PATIENCE_S)
    for node in ('node1', 'node2'):
        lab.lab('kill', f'volumed@{node}')
    upload.send(PIECE)
    status, body = upload.end()
    assert status == 409 and b'nothing of the image is kept: send all of it again' in body, (status, body)
    status, body = put(image, PIECE, chunked=True)
    assert status == 409 and b'what is sent now may be the rest of that' in body, (status, body)
    assert status_of('pipe') == 'queued'
    i.check('dir1')


@title('/api-images/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        i.lab = v.lab = lab
        v.folder = os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        e2e.run(test_stock, test_bytes, test_no_good, test_deaths, test_pipe, test_logs)
