#!/usr/bin/env python3
"""Daemons with the users, capabilities and system calls of their units, and no others: a guest from its beginning to its end there, and who
asks REST. What a unit lacks shows here. The other suites of this folder run like this in the long suite (FETTLE_LAB_UNITS=1)."""
import json
import os
import pwd
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
os.environ['FETTLE_LAB_UNITS'] = '1'
import e2e  # noqa: E402  pylint: disable=wrong-import-position
import rest  # noqa: E402  pylint: disable=wrong-import-position
import sandbox  # noqa: E402  pylint: disable=wrong-import-position
import units  # noqa: E402  pylint: disable=wrong-import-position
from e2e import fettlelib, title, wait_until  # noqa: E402  pylint: disable=wrong-import-position

lab = None


def status_of(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        return dict(re.findall(r'^(\w+):\t(.*)$', file.read(), re.M))


def capabilities(daemon):
    """Of its unit, as the kernel writes them."""
    values = sandbox.read(os.path.join(e2e.ROOT, f'etc/systemd/fettle-{daemon}.service.in'))
    names = {word.removeprefix('CAP_') for word in values['CapabilityBoundingSet'][0].split()}
    return sum(1 << number for number, name in enumerate(sandbox.CAPABILITIES) if name in names)


@title('/attack/units/in-force#SAF-107')
def test_in_force():
    seen = set()
    for node in lab.status()['nodes']:
        for row in node['daemons']:
            about = status_of(row['pid'])
            user = pwd.getpwnam(units.USERS.get(row['name'], 'root'))
            assert about['Uid'].split() == [str(user.pw_uid)] * 4, (row['name'], about['Uid'])
            # The lab makes REST its user, who cannot take more away, but has nothing and gets nothing.
            for field in ('CapPrm', 'CapEff') if row['name'] == 'rapid' else ('CapBnd', 'CapPrm', 'CapEff'):
                assert int(about[field], 16) == capabilities(row['name']), (row['name'], field, about[field])
            assert (about['NoNewPrivs'], about['Seccomp']) == ('1', '2'), row['name']
            seen.add(row['name'])
    assert seen == set(units.DAEMONS) - {'apid'}  # which runs where somebody has set it up


@title('/attack/units/a-guest-from-start-to-end')
def test_guest():
    """Every kind of guest; a console, a reset, a migration, a failover, larger disks, a lost replica, a stop."""
    uuid = e2e.create(lab, 'web1')
    lab.cli('repair', 'policy', 'instance', 'web1', 'fix-storage')
    for name, template in (('alone', 'file'), ('common', 'sharedfile')):
        e2e.create(lab, name, template)
    lab.do('OP_INSTANCE_CREATE', instance_name='none', pnode='node1', disk_template='diskless', memory=8, disks=[],
           vnc_bind_address='127.0.0.1')
    e2e.wait_healthy(lab, 'web1', 120)
    e2e.wait_counting(lab, 'web1', uuid, 'node2', 3, 60)
    assert 'COUNT' in lab.run('instance', 'console', 'web1', typed='=', check=False)[1]
    lab.do('OP_INSTANCE_REBOOT', instance_name='web1', reboot_type='hard', wait=120)
    e2e.wait_healthy(lab, 'web1', 120)
    lab.do('OP_INSTANCE_MIGRATE', instance_name='web1', wait=120)
    e2e.wait_healthy(lab, 'web1', 120)
    e2e.wait_counting(lab, 'web1', uuid, 'node3', lab.printed('web1', uuid, 'node3'), 60)
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='web1', wait=120)
    lab.do('OP_INSTANCE_GROW_DISK', instance_name='web1', disk=0, amount=8, wait=120)
    lab.do('OP_INSTANCE_STARTUP', instance_name='web1', wait=120)
    e2e.wait_healthy(lab, 'web1', 120)
    lab.lab('link', 'node2', 'down')
    wait_until('its replica is given up', lambda: lab.instance('web1', 'replica.state')['replica.state'] == 'stale', 60)
    lab.lab('link', 'node2', 'up')
    e2e.wait_mended(lab, 'web1')
    lab.do('OP_INSTANCE_FAILOVER', instance_name='web1', wait=120)
    e2e.wait_mended(lab, 'web1')
    e2e.verify_clean(lab)
    for name in ('web1', 'alone', 'common', 'none'):
        lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0, wait=120)
    e2e.verify_clean(lab)


@title('/attack/units/rest-is-served')
def test_rest():
    """Its user reaches LuxiD, and reads what its node has for it."""
    asked = rest.Rest(lab)
    asked.user = 'alice:one'
    lab.run('rapi', 'user', 'add', 'alice', '--write', typed='one\n')
    wait_until('REST answers', lambda: is_answered(asked), 60)
    assert asked.get('/2/info')['master'] == 'node1'
    lab.wait_job(asked.ask('PUT', '/2/tags?tag=of-alice')[2])
    uid = int(status_of(asked.daemon()['pid'])['Uid'].split()[0])
    assert uid != 0
    invite = {'OP_ID': 'OP_NODE_INVITE', 'node_name': 'node9', 'primary_ip': '192.0.2.9', 'secret_hash': '0' * 64}
    for user in ({}, {'user': 'rapi:alice'}, {'user': 'rapi:nobody-at-all'}):
        said = said_as(uid, {'method': 'SubmitJob', 'args': [[invite]], **user})
        assert said['success'] is False and 'ops[0].OP_ID: OP_NODE_INVITE is not taken of the REST daemon' in str(said['result']), (user, said)


def said_as(uid, request):
    """What luxid answers a process of that user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            frames = fettlelib.Frames(os.path.join(lab.root('node1'), 'run', 'luxid.sock'))
            frames.send(request)
            os.write(writing, json.dumps(frames.receive()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding='utf-8') as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def is_answered(asked):
    try:
        return asked.ask('GET', '/2/info')[0] == 200
    except OSError:
        return False


@title('/attack/units/what-is-stored#SAF-110')
def test_stored():
    """Programs as another user; images by TLS from the other node."""
    folder, image, saved = (os.path.join(lab.directory, name) for name in ('shared/dir1', 'image.qcow2', 'saved.qcow2'))
    os.mkdir(folder, 0o755)
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', image, '1G'], check=True)
    subprocess.run(['qemu-io', '-c', 'write -q -P 7 0 1M', image], check=True, stdout=subprocess.DEVNULL)
    lab.cli('backend', 'add', 'dir1', '--nodes', 'node2', '--path', folder, '--images', 'yes', '--backups', 'yes', '--overcommit', '100000')
    wait_until('dir1 is served', lambda: [one['state'] for one in lab.query('storage_service', ['state'], ['=', 'host', 'node2@dir1'])] == ['up'], 60)
    lab.cli('image', 'create', 'one', '--file', image, '--disk-format', 'qcow2')
    lab.cli('image', 'save', 'one', '--file', saved)
    with open(image, 'rb') as sent, open(saved, 'rb') as got:
        assert sent.read() == got.read()
    lab.cli('volume', 'create', 'data1', '--size', '1', '--image', 'one')
    lab.cli('backup', 'create', 'data1', '--name', 'b1')
    lab.cli('backup', 'restore', 'b1', '--new', 'data2')
    for name in ('data1', 'data2'):
        data = lab.query('volume', ['data'], ['=', 'name', name])[0]['data']
        path = os.path.join(folder, 'volumes', data)
        with open(path, 'rb') as file:
            assert file.read(1 << 20) == bytes([7]) * (1 << 20), name
        # The source of the backup can be read by the programs still, by descriptors alone.
        assert (os.stat(path).st_uid, os.stat(path).st_mode & 0o777) == (0, 0o640 if name == 'data1' else 0o600), name
    assert os.stat(os.path.join(folder, 'volumes')).st_mode & 0o777 == 0o700
    assert lab.cli('backend', 'verify', 'dir1'), 'nothing was said'


@title('/attack/units/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--candidates', '3', '--replica-lost-ms', '1000', '--watcher-interval-ms', '500')) as lab:
        e2e.run(test_in_force, test_rest, test_stored, test_guest, test_logs)
