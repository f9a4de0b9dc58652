#!/usr/bin/env python3
"""Who may read what a running cluster has on its hosts: every file and folder of a lab, with guests of every kind, against a table."""
import os
import re
import stat
import subprocess

import e2e
from e2e import title

lab = None
OPTIONS = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3', '--engine', 'etcd')
UUID = r'[0-9a-f-]{36}'
# What is below the folder of a node, and its mode. What matches nothing is a failure: whoever makes a new file says here who may read it.
TABLE = [
    # Folders that the users of guests, exports and members of etcd pass through; in var/images lies what people put there, var/disks and
    # var/shared are mounted by the lab.
    ('|etc|var|run|log|var/images|var/shared|var/disks', 0o755),
    (f'etc/etcd|run/guests|run/exports|run/guests/{UUID}(/(relay|psk|psk-server))?', 0o711),
    # The groups of monitoring and of REST, which are root's where the host has no such users.
    ('run/stats|var/(mond|rapi)', 0o750),
    (f'run/stats/(node|volumed|{UUID})\\.stats|var/mond/node\\.json|var/rapi/rapi\\.pem', 0o640),
    # What is no secret: certificates, where this node is and what the engine is, what nbdkit is told of ciphers, whose shared folder it is.
    ('run/transfers', 0o711),
    (r'run/transfers/dh-params\.pem|etc/(ca|node)\.crt|etc/etcd/(authority|client|member)\.crt|etc/(node|engine)\.json', 0o644),
    (f'run/exports/{UUID}\\.tls|var/shared/fettle-shared', 0o644),
    # Root's, or of the one user whom they are for.
    (f'lost\\+found|(etc|var|run)/.*lost\\+found|run/(authority|vouchers|livelocks|mond|rapid|queue|services)|log/guests', 0o700),
    (r'var/(disks/aside|etcd|etcd/member|etcd/member/(snap|wal)|node|node/guests|queue|ssconf)', 0o700),
    (r'etc/(ca|node)\.key|etc/etcd/(client|member)\.key|var/confd\.key', 0o600),
    (r'log/\w+\.log|log/guests/.*\.console', 0o600),
    (f'run/exports/{UUID}\\.(ctl[0-9]+|json|log[0-9]+|psk)', 0o600),
    (f'run/guests/{UUID}/((con|qmp|rescue)\\.sock|pid|state\\.json|stderr\\.log|relay/(sock|keys\\.psk|log|state\\.json))', 0o600),
    (r'run/(etcd\.json|ganeti-query|locks\.journal|\w+\.(ready|sock|status)|livelocks/[\w-]+|queue/job-[0-9]+)|run/(mond|rapid)/[\w.-]+|run/services/\w+\.json',
     0o600),
    (f'var/(disks|shared)/({UUID}\\.)?{UUID}\\.disk[0-9]+\\.raw|var/images/tick(-fast)?\\.raw', 0o600),
    (r'var/etcd/member/(snap/db|snap/[0-9a-f-]+\.snap|wal/[0-9a-f-]+\.(wal|tmp))', 0o600),
    (f'var/node/(guests/{UUID}|member|state)\\.json|var/queue/.+|var/ssconf/\\w+', 0o600),
    (r'var/store\.db(\.lock|(\.new)?(-shm|-wal)?)', 0o600),
]


def kind_of(status):
    return 'folder' if stat.S_ISDIR(status.st_mode) else 'socket' if stat.S_ISSOCK(status.st_mode) else 'file'


def walk(root):
    """(name below it, status) of everything."""
    yield '', os.lstat(root)
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            try:
                yield os.path.relpath(path, root), os.lstat(path)
            except FileNotFoundError:
                continue  # it has come and gone


def wrong(root):
    found = []
    for name, status in walk(root):
        expected = next((mode for pattern, mode in TABLE if re.fullmatch(pattern, name)), None)
        mode = stat.S_IMODE(status.st_mode)
        if not stat.S_ISLNK(status.st_mode) and mode != expected:
            found.append(f'{name} ({kind_of(status)} of {status.st_uid}): {mode:04o}, not {expected if expected is None else oct(expected)}')
    return found


def check():
    found = {f'node{node}': wrong(lab.root(f'node{node}')) for node in (1, 2, 3)}
    assert not any(found.values()), '\n'.join(f'{node}: {line}' for node, lines in found.items() for line in lines)


@title('/modes/of-a-running-lab#SAF-107')
def test_running():
    lab.do('OP_INSTANCE_CREATE', instance_name='mirrored', pnode='node2', snode='node3', **e2e.TICK)
    for template in ('file', 'sharedfile'):
        lab.do('OP_INSTANCE_CREATE', instance_name=template, pnode='node1', **{**e2e.TICK, 'disk_template': template})
    lab.do('OP_INSTANCE_CREATE', instance_name='diskless', pnode='node1', disk_template='diskless', memory=8, vnc_bind_address='127.0.0.1')
    lab.do('OP_INSTANCE_CREATE', instance_name='still', pnode='node3', snode='node1', start=False, **e2e.TICK)
    lab.do('OP_INSTANCE_CREATE', instance_name='moved', pnode='node1', snode='node2', **e2e.TICK)
    for name in ('mirrored', 'moved'):
        e2e.wait_healthy(lab, name)
    lab.do('OP_INSTANCE_MIGRATE', instance_name='moved')
    e2e.wait_healthy(lab, 'moved')
    lab.cli('node', 'invite', 'host9', '--primary-ip', e2e.fettlelib.address(9))
    check()


def modes_while(path, *words):
    """Modes of whatever has that name, or begins with it, while a command runs, and after it."""
    folder, base = os.path.split(path)
    seen, command = set(), subprocess.Popen([lab.fettle, '--root', lab.root('node1'), *words], stdout=subprocess.DEVNULL, umask=0)
    while True:
        ended = command.poll() is not None
        for name in os.listdir(folder):
            if base in name:
                try:
                    seen.add(stat.S_IMODE(os.lstat(os.path.join(folder, name)).st_mode))
                except FileNotFoundError:
                    pass
        if ended:
            assert command.returncode == 0, command.returncode
            return seen


@title('/modes/of-what-commands-write#SAF-107')
def test_written():
    for words in (('cluster', 'backup', '--to'), ('cluster', 'export', '--to')):
        path = os.path.join(lab.directory, words[1])
        assert modes_while(path, *words, path) == {0o600}, words


@title('/modes/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


def main():
    global lab
    with e2e.new_lab(options=OPTIONS) as lab:
        e2e.run(test_running, test_written, test_logs)


main()
