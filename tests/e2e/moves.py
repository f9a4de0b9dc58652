"""What the tests of live migration share: counting guests, and that none of their counts was lost or printed twice.

A test sets `moves.lab`. The guest prints a count only after its disk has it. So over the consoles of all nodes together
each count stands once: a copy too many would print the same counts, and a guest that goes on from less than was printed
would print them again.
"""
import os

import e2e
from e2e import fettlelib, wait_until

lab = None


def create(name, template, *, disks=(), nodes=('node2', 'node3'), **more):
    """A running guest that counts (diskless: that only runs); returns its UUID."""
    more = {'os_type': 'tick', **more} if disks else more
    if template == 'mirror':
        more['snode'] = nodes[1]
    lab.do('OP_INSTANCE_CREATE', instance_name=name, disk_template=template, disks=list(disks), memory=8,
           pnode=nodes[0], **more)
    uuid = e2e.uuid_of(lab, name)
    if disks:
        e2e.wait_counting(lab, name, uuid, nodes[0])
    return uuid


def remove(name):
    lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)


def place(name):
    return lab.instance(name, 'pnode')['pnode']


def other(node):
    return 'node3' if node == 'node2' else 'node2'


def counts(name, uuid, node):
    try:
        with open(lab.console_path(name, uuid, node), 'rb') as file:
            return [int(n) for n in fettlelib.COUNT.findall(file.read())]
    except FileNotFoundError:
        return []


def check_counts(name, uuid):
    """No count was printed twice, anywhere: none was lost, and never did two copies run."""
    seen = {}
    for number in range(1, lab.nodes + 1):
        node = f'node{number}'
        for count in counts(name, uuid, node):
            if count in seen:
                raise AssertionError(f'{name} printed {count} on {seen[count]} and again on {node}')
            seen[count] = node
    return max(seen, default=0)


def starts(name, uuid, node):
    try:
        with open(lab.console_path(name, uuid, node), 'rb') as file:
            return file.read().count(b'START ')
    except FileNotFoundError:
        return 0


def one_process(name, uuid):
    wait_until(f'one process of {name}', lambda: len(lab.qemu_processes(uuid)) == 1, 30)


def migrate(name, *options, timeout=180):
    return lab.cli('instance', 'migrate', name, *options, timeout=timeout)


def images(node, uuid):
    folder = os.path.join(lab.root(node), 'var', 'disks')
    return sorted(name for name in os.listdir(folder) if name.startswith(uuid))
