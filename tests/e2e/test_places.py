#!/usr/bin/env python3
"""Where guests can be: what they are booted from, the folder that all nodes mount, who is told of a routed card; and what a stopped
one is made of."""
import json
import os
import re
import shutil
import struct

import e2e
from e2e import fettlelib, title, wait_until

lab = None
JOB = re.compile(r' \(job \d+\)$')
KERNEL = 'own.kernel'
# A kernel that does nothing, for ever: its multiboot header says where it is loaded and begun, and there stands hlt; jmp.
MAGIC, FLAGS, BASE = 0x1badb002, 0x10000, 0x100000
IDLE = struct.pack('<8I', MAGIC, FLAGS, -(MAGIC + FLAGS) & 0xffffffff, BASE, BASE, 0, 0, BASE + 32) + b'\xf4\xeb\xfd'


def expect_error(code, message, *args):
    """The command must fail with this exit code and message (a pattern); which job it was does not matter."""
    got, out, err = lab.run(*args, check=False, timeout=180)
    line = JOB.sub('', err.strip().splitlines()[-1] if err.strip() else out.strip())
    assert got == code and re.fullmatch(f'fettle: {message}', line), (args, got, line)


def remove(name):
    lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)


def place(name):
    return lab.instance(name, 'pnode')['pnode']


def kernel_on(node):
    return os.path.join(lab.root(node), 'var', 'images', KERNEL)


def command_line(uuid):
    """Of the one process of a guest."""
    pid, = lab.qemu_processes(uuid)
    with open(f'/proc/{pid}/cmdline', encoding='utf-8') as file:
        return file.read().split('\0')


# --- what a stopped one is made of ---

@title('/places/modify')
def test_modify():
    """What is changed holds from the next start on, on both sides of a migration."""
    lab.do('OP_INSTANCE_CREATE', instance_name='web', pnode='node2', snode='node3', **e2e.TICK)
    uuid = e2e.uuid_of(lab, 'web')
    change = ('--memory', '16', '--vcpus', '2', '--add-net', 'mac=aa:00:00:00:00:77,link=br0')
    expect_error(5, 'instance "web" is not stopped, and a running guest keeps the devices that it was started with; stop it first: '
                    'fettle instance shutdown web', 'instance', 'modify', 'web', *change)
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='web', timeout=0)
    counted = lab.printed('web', uuid, 'node2')
    said = lab.run('instance', 'modify', 'web', *change)[2]
    assert 'network card 0 of web is aa:00:00:00:00:77' in said, said
    lab.cli('instance', 'startup', 'web')
    for node in ('node2', 'node3'):
        counted = e2e.wait_counting(lab, 'web', uuid, node, counted)
        words = command_line(uuid)
        assert words[words.index('-m') + 1] == '16' and words[words.index('-smp') + 1] == '2', words
        assert any('mac=aa:00:00:00:00:77' in word for word in words), words
        if node == 'node2':
            lab.cli('instance', 'migrate', 'web')
    total = min(row['mtotal'] for row in lab.query('node', ['mtotal']))
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='web', timeout=0)
    expect_error(6, rf'--memory: node3 has \d+ MiB of memory left, instance "web" needs {total * 4 - 16} MiB more', 'instance', 'modify',
                 'web', '--memory', str(total * 4))
    lab.cli('instance', 'modify', 'web', '--remove-net', '0', '--memory', '8')
    lab.cli('instance', 'startup', 'web')
    e2e.wait_counting(lab, 'web', uuid, 'node3', counted)
    assert not any('aa:00:00:00:00:77' in word for word in command_line(uuid))
    remove('web')


# --- what they are booted from ---

@title('/places/kernel#ARP-57')
def test_kernel():
    """A node without its kernel is none that a guest is made on, or goes to; a repair waits for the file, and goes on by itself."""
    with open(kernel_on('node2'), 'wb') as file:
        file.write(IDLE.ljust(8192))
    lab.cli('instance', 'create', 'own', '--disk-template', 'diskless', '--memory', '8', '--kernel-path', KERNEL)
    uuid = e2e.uuid_of(lab, 'own')
    assert place('own') == 'node2'
    lacks = rf'node1 does not have "{KERNEL}" in var/images; node2 is its (primary )?node now; node3 does not have "{KERNEL}" in var/images'
    expect_error(6, f'no node can be the new node of instance "own": {lacks}', 'instance', 'migrate', 'own')
    expect_error(6, f'no node can be the secondary node: node1 does not have "{KERNEL}" in var/images; node2 is to be the primary node; '
                    f'node3 does not have "{KERNEL}" in var/images', 'instance', 'create', 'two', '--disk-template', 'mirror', '--disk',
                 'size=8', '--memory', '8', '--kernel-path', KERNEL)
    lab.cli('node', 'modify', 'node2', '--drained', 'yes')
    wait_until('the repair waits', lambda: re.search(lacks, lab.cli('why', 'own')), 30)
    plan = json.loads(lab.cli('plan', 'drain', 'node2', '--json'))
    assert [blocked for blocked in plan['blocked'] if blocked['instance'] == 'own' and re.search(lacks, blocked['reason'])], plan
    shutil.copy(kernel_on('node2'), kernel_on('node3'))
    wait_until('it is where its kernel is', lambda: place('own') == 'node3', 60)
    wait_until('it runs there', lambda: lab.instance('own', 'status')['status'] == 'running', 30)
    assert len(lab.qemu_processes(uuid)) == 1
    lab.cli('node', 'modify', 'node2', '--drained', 'no')
    wait_until('nothing is left to be repaired', lambda: not any('pending' in tag for tag in lab.instance('own', 'tags')['tags']), 30)
    remove('own')
    os.unlink(kernel_on('node2'))
    os.unlink(kernel_on('node3'))


# --- the folder that all nodes mount ---

@title('/places/shared-folder-is-counted')
def test_shared_folder():
    huge = ('--disk-template', 'sharedfile', '--disk', 'size=12T', '--memory', '8', '--no-start')
    lab.do('OP_INSTANCE_CREATE', instance_name='small', **{**e2e.TICK, 'disk_template': 'sharedfile'})
    hint = 'make it larger, or allow more than it has: fettle cluster modify --disk-ratio'
    expect_error(6, rf'the shared folder has \d+ MiB left, instance "huge" needs 12582912 MiB; {hint}', 'instance', 'create', 'huge', *huge)
    assert lab.instance('huge', 'name') is None
    expect_error(6, rf'the shared folder has \d+ MiB left, disk 0 of instance "small" needs 12582904 MiB; {hint}', 'instance', 'grow-disk',
                 'small', '0', '12T', '--absolute')
    remove('small')


# --- who is told of a routed card ---

ROUTED = '10.99.0.77'


def neighbour(node):
    """The card behind the guest's address, as a host knows it."""
    entries = json.loads(lab.exec(node, 'ip', '-json', 'neigh', 'show', 'to', ROUTED) or '[]')
    return entries[0].get('lladdr') if entries else None


def card(node):
    return json.loads(lab.exec(node, 'ip', '-json', 'link', 'show', 'dev', 'br0'))[0]['address']


@title('/places/routed-card-is-announced')
def test_routed():
    """Whoever has its address from proxy ARP has the new node's as soon as the guest has moved, without asking."""
    for number, node in enumerate(('node1', 'node2', 'node3'), 1):
        if fettlelib.SIX:  # the card's network is another one than that of the nodes
            lab.exec(node, 'ip', 'address', 'add', f'10.99.0.{number}/24', 'dev', 'br0')
    for node in ('node2', 'node3'):
        lab.exec(node, 'sh', '-c', 'cd /proc/sys/net/ipv4 && echo 1 >conf/br0/proxy_arp && echo 1 >conf/br0/forwarding')
    lab.cli('instance', 'create', 'routed', '--disk-template', 'diskless', '--memory', '8', '--pnode', 'node2', '--net',
            f'mac=auto,mode=routed,ip={ROUTED}')

    def asked():
        lab.exec('node1', 'sh', '-c', f'ping -n -c 1 -W 1 {ROUTED} || true')
        return neighbour('node1') == card('node2')
    wait_until('its address leads to node2', asked, 30)
    lab.exec('node1', 'ip', 'neigh', 'change', ROUTED, 'lladdr', card('node2'), 'dev', 'br0', 'nud', 'stale')
    lab.cli('instance', 'migrate', 'routed', '--target-node', 'node3')
    wait_until('its address leads to node3', lambda: neighbour('node1') == card('node3'), 15)
    lab.exec('node1', 'ip', 'neigh', 'change', ROUTED, 'lladdr', card('node3'), 'dev', 'br0', 'nud', 'stale')
    lab.cli('instance', 'failover', 'routed', '--target-node', 'node2', '--shutdown-timeout', '0')
    wait_until('its address leads to node2 again', lambda: neighbour('node1') == card('node2'), 15)
    remove('routed')


@title('/places/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--replica-lost-ms', '2000', '--watcher-interval-ms', '500')) as lab:
        lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
        e2e.run(test_modify, test_kernel, test_shared_folder, test_routed, test_logs)
