#!/usr/bin/env python3
"""A cluster whose nodes have IPv6 addresses and no others: mirrors, live migrations, displays, ConfD, consoles, refusals.

The long run has more of it: whole suites in labs of this kind (meson.build, FETTLE_LAB_IPV6).
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

os.environ['FETTLE_LAB_IPV6'] = '1'
import e2e  # noqa: E402
import moves  # noqa: E402
from e2e import fettlelib, title, wait_until  # noqa: E402

lab = None
ENVIRONMENT, ALREADY_EXISTS = 26, 4
WITHOUT = 'mount -t tmpfs none /proc/sys/net/ipv6 && exec "$@"'
GREETING = '''
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as link:
    print(link.recv(12).decode().strip())
'''


@title('/ipv6/a-machine-without-it')
def test_without():
    with tempfile.TemporaryDirectory(prefix='fettle-six-', dir='/var/tmp') as parent:
        folder = os.path.join(parent, 'lab')
        fettle = os.path.join(e2e.build(), 'src', 'cli', 'fettle')
        done = subprocess.run(['unshare', '--mount', 'sh', '-c', WITHOUT, 'sh', fettle, 'lab', 'up', '--ipv6', '--dir', folder],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert not os.path.exists(folder)
    found = done.returncode, done.stderr
    assert found == (ENVIRONMENT, 'fettle: --ipv6: the kernel of this machine has no IPv6 (/proc/sys/net/ipv6/conf is missing; was it '
                     'booted with ipv6.disable=1?), so a lab here has IPv4 addresses\n'), found


@title('/ipv6/no-other-addresses')
def test_addresses():
    for node in ('node1', 'node2', 'switch'):
        four = json.loads(lab.exec(node, 'ip', '-4', '-json', 'address', 'show', 'dev', 'br0'))
        assert not [one for one in four if one], (node, four)
    rows = lab.query('node', ['name', 'pip'])
    assert sorted((row['name'], row['pip']) for row in rows) == [('node1', 'fd99::1'), ('node2', 'fd99::2')], rows
    # One address, however it is written.
    code, _, err = lab.run('node', 'invite', 'new', '--primary-ip', 'fd99:0:0::2', check=False)
    found = code, re.sub(r' \(job \d+\)$', '', err.strip())
    assert found == (ALREADY_EXISTS, 'fettle: primary_ip: fd99::2 port 1811 is the address of node "node2"'), found


@title('/ipv6/mirror-and-live-migration#SAF-13,SAF-17')
def test_mirror():
    """A mirror comes into sync, goes with its guest, and both copies hold what was printed."""
    uuid = moves.create('mirror', 'mirror', disks=[{'size': 8}], nodes=('node1', 'node2'))
    e2e.wait_healthy(lab, 'mirror')
    moves.migrate('mirror')
    assert moves.place('mirror') == 'node2'
    e2e.wait_counting(lab, 'mirror', uuid, 'node2')
    e2e.wait_healthy(lab, 'mirror')
    moves.one_process('mirror', uuid)
    replica = lab.instance('mirror', 'replica')['replica']
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='mirror', timeout=0, wait=120)
    printed = moves.check_counts('mirror', uuid)
    found = [fettlelib.image_count(os.path.join(lab.root(node), 'var', 'disks', name)) for node, name in
             (('node2', f'{uuid}.disk0.raw'), ('node1', f'{uuid}.{replica}.disk0.raw'))]
    assert min(found) >= printed, (printed, found)
    moves.remove('mirror')


@title('/ipv6/file-migration#SAF-17')
def test_file():
    uuid = moves.create('file', 'file', disks=[{'size': 8}], nodes=('node1', 'node2'))
    moves.migrate('file', '--target-node', 'node2')
    e2e.wait_counting(lab, 'file', uuid, 'node2')
    moves.one_process('file', uuid)
    moves.check_counts('file', uuid)
    code, out, err = lab.run('instance', 'console', 'file', typed='=', check=False)
    assert code == 0 and '=' in out and not err, (code, out, err)
    moves.remove('file')


@title('/ipv6/display')
def test_display():
    lab.do('OP_INSTANCE_CREATE', instance_name='screen', disk_template='diskless', disks=[], memory=8, pnode='node2',
           vnc_bind_address='::')
    shown = lab.cli('instance', 'console', '--vnc', 'screen')
    port = lab.instance('screen', 'network_port')['network_port']
    assert f'    vncviewer [fd99::2]::{port}\n' in shown, shown
    said = lab.exec('node1', sys.executable, '-c', GREETING, 'fd99::2', str(port))
    assert said.startswith('RFB 003.'), said
    moves.remove('screen')


@title('/ipv6/confd')
def test_confd():
    def answers():
        return lab.run('confd', 'ping', check=False)[0] == 0
    wait_until('ConfD answers', answers)
    said = json.loads(lab.cli('confd', 'node-ips'))
    assert said == ['fd99::1', 'fd99::2'], said
    assert lab.cli('confd', 'ping', '--candidates', '[fd99::1]:1814') == lab.cli('confd', 'ping', '--candidates', 'fd99::1')


@title('/ipv6/logs')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


with e2e.new_lab(nodes=2) as lab:
    moves.lab = lab
    e2e.run(test_without, test_addresses, test_mirror, test_file, test_display, test_confd, test_logs)
