#!/usr/bin/env python3
"""Live migration of counting guests (moves.py): every template, and every way to end it."""
import os
import re
import signal
import subprocess
import time

import e2e
import moves
from e2e import fettlelib, title, wait_until
from moves import check_counts, counts, create, images, migrate, one_process, other, place, remove, starts

lab = None

NO_BRIDGE = '; make that bridge there, give the card another link, or take a node that has it'
NO_ROOM = '; make room there, or take another node: fettle node list'
FULL_MIB = 26  # of an image without holes: a copy of it takes a while
SLOW_MIB_PER_S = 1
JOB = re.compile(r' \(job \d+\)$')

# What follows makes "busy" of tick-fast: 18 times a second, also while it waits for its disk, it changes a byte of each page from 64
# to 576 KiB.
BUSY_KIB = 512
BUSY_ADDRESS = 0x7d90
CALL_POLL = b'\xe8\x0a\x00\xe3'           # call poll; jcxz loop1 (tests/helper/tick.asm)
HOOK = bytes.fromhex('fa c7067000 a17d'    # cli; mov word [0x70], tick: the vector of the timer's interrupt 0x1c
                     'c7067200 0000 fb'    # mov word [0x72], 0; sti
                     'e9 0000')            # jmp poll
TICK = bytes.fromhex('06 53 bb0010'        # push es; push bx; mov bx, 0x1000
                     '8ec3 26fe060000'     # page: mov es, bx; inc byte [es:0]
                     '80c701 80ff90 72f1'  # add bh, 1; cmp bh, 0x90; jb page
                     '5b 07 cf')           # pop bx; pop es; iret


# --- guests ---

def check_moved(name, uuid, old, new, boots):
    """It goes on on `new` where it stopped on `old`, without a boot, and nowhere else."""
    last = max(counts(name, uuid, old))
    e2e.wait_counting(lab, name, uuid, new, last)
    first = min(n for n in counts(name, uuid, new) if n > last)
    # The console may have been cut in the middle of one line.
    assert first <= last + 2, f'{name}: {last} was the last count on {old}, {first} the first on {new}'
    assert starts(name, uuid, new) == boots, f'{name} was booted on {new}'
    one_process(name, uuid)
    assert max(counts(name, uuid, old)) == last, f'{name} went on counting on {old}'
    check_counts(name, uuid)


def there_and_back(name, uuid, target=True):
    for _ in range(2):
        old = place(name)
        new = other(old)
        boots = starts(name, uuid, new)
        migrate(name, *(('--target-node', new) if target else ()))
        assert place(name) == new
        check_moved(name, uuid, old, new, boots)
    e2e.verify_clean(lab)


# --- every template ---

@title('/migrate/mirror#SAF-17')
def test_mirror():
    """Afterwards the mirror runs the other way, and both copies hold what was printed."""
    uuid = create('mirror', 'mirror', disks=[{'size': 8}])
    there_and_back('mirror', uuid, target=False)
    migrate('mirror')
    e2e.wait_healthy(lab, 'mirror')
    row = lab.instance('mirror', 'pnode', 'snodes', 'replica')
    assert (row['pnode'], row['snodes']) == ('node3', ['node2']), row
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='mirror', wait=240)
    printed = check_counts('mirror', uuid)
    found = [fettlelib.image_count(os.path.join(lab.root(node), 'var', 'disks', name)) for node, name in
             (('node3', f'{uuid}.disk0.raw'), ('node2', f'{uuid}.{row["replica"]}.disk0.raw'))]
    assert min(found) >= printed, f'printed {printed}, its copies have {found}'
    remove('mirror')


@title('/migrate/file-raw#SAF-17')
def test_file_raw():
    check_file('raw')


@title('/migrate/file-qcow2#SAF-17')
def test_file_qcow2():
    check_file('qcow2')


def check_file(form):
    """The disks are copied, both of them; nothing is left where it came from."""
    uuid = create('file', 'file', disks=[{'size': 8, 'format': form}, {'size': 4, 'format': form}])
    there_and_back('file', uuid)
    left, here = images('node3', uuid), images('node2', uuid)
    assert not left, f'left behind on node3: {left}'
    assert here == [f'{uuid}.disk0.{form}', f'{uuid}.disk1.{form}'], here
    remove('file')


@title('/migrate/sharedfile#SAF-17')
def test_sharedfile():
    uuid = create('shared', 'sharedfile', disks=[{'size': 8}])
    there_and_back('shared', uuid)
    remove('shared')


@title('/migrate/diskless#SAF-17')
def test_diskless():
    uuid = create('bare', 'diskless')
    for _ in range(2):
        old, before = place('bare'), lab.qemu_processes(uuid)
        migrate('bare', '--target-node', other(old))
        assert place('bare') == other(old)
        one_process('bare', uuid)
        assert lab.qemu_processes(uuid) != before
    e2e.verify_clean(lab)
    remove('bare')


# --- displays ---

GREET = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10).recv(12).decode(), end='')"
LISTEN = ("import socket, sys; s = socket.create_server(('0.0.0.0', int(sys.argv[1]))); print('listening', flush=True); "
          "sys.stdin.read()")


def greeting(node, port):
    """What a viewer on that node reads first; None if nobody listens there."""
    try:
        return lab.exec(node, 'python3', '-c', GREET, str(port))
    except fettlelib.CommandFailed as failure:
        assert 'ConnectionRefusedError' in str(failure), failure
        return None


def taken(node, port):
    """A process that is none of ours listens at the port of that node."""
    process = subprocess.Popen(lab.exec_words(node, 'python3', '-c', LISTEN, str(port)), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    assert process.stdout.readline() == b'listening\n'
    return process


@title('/migrate/display-goes-along#SAF-17')
def test_display():
    for name in ('shown', 'twin'):
        create(name, 'diskless', vnc_bind_address='127.0.0.1')
    port, other_port = (lab.instance(name, 'network_port')['network_port'] for name in ('shown', 'twin'))
    assert (port, other_port) == (11000, 11001)
    assert greeting('node2', port) == greeting('node2', other_port) == 'RFB 003.008\n'
    migrate('shown', '--target-node', 'node3')
    assert lab.instance('shown', 'network_port', 'hv/vnc_bind_address') == {'network_port': port, 'hv/vnc_bind_address': '127.0.0.1'}
    assert greeting('node3', port) == 'RFB 003.008\n'
    assert greeting('node2', port) is None
    lab.cli('instance', 'failover', 'shown', '--target-node', 'node2', '--shutdown-timeout', '0')
    assert greeting('node2', port) == 'RFB 003.008\n'
    remove('shown')
    remove('twin')


@title('/migrate/display-whose-port-is-taken')
def test_display_taken():
    """Neither a migration nor a start leaves anything behind, and each says what to do; the watcher gives it up."""
    uuid = create('shown', 'diskless', vnc_bind_address='127.0.0.1')
    pids = lab.qemu_processes(uuid)
    why = ('instance shown: another process of this host listens on port 11000, where its display has to be; end that '
           'process (ss -ltnp shows it), or give the instance another port while it is stopped: fettle instance modify '
           '--network-port PORT shown')
    with taken('node3', 11000) as process:
        expect_error(26, f'the migration of instance "shown" to node3 failed: node3: {why}; it stays on node2',
                     'instance', 'migrate', 'shown', '--target-node', 'node3')
        assert lab.qemu_processes(uuid) == pids and place('shown') == 'node2'
        assert greeting('node2', 11000) == 'RFB 003.008\n'
        process.stdin.close()
    lab.cli('instance', 'shutdown', 'shown', '--timeout', '0')
    with taken('node2', 11000) as process:
        expect_error(26, f'node2: {why}', 'instance', 'startup', 'shown')
        wait_until('the watcher gives it up', lambda: any(
            'It should run and does not; 3 starts did not help' in row['summary']
            for row in lab.query('decision', ['summary'], ['=', 'subject_name', 'shown'])), 60)
        assert not lab.qemu_processes(uuid)
        lab.cli('instance', 'shutdown', 'shown', '--timeout', '0')
        lab.cli('instance', 'modify', 'shown', '--network-port', '14999')
        lab.cli('instance', 'startup', 'shown')
        assert greeting('node2', 14999) == 'RFB 003.008\n'
        process.stdin.close()
    said = lab.cli('instance', 'console', '--vnc', 'shown')
    address = lab.json('node', 'list', 'node2', '-o', 'pip')[0]['pip']
    assert said == (f'Screen of shown: on node node2, port 14999, for viewers on that node itself (127.0.0.1)\n'
                    f'By a tunnel, which stays open as long as you look:\n'
                    f'    ssh -N -L 14999:127.0.0.1:14999 root@{address}\n'
                    f'    vncviewer 127.0.0.1::14999\n'), said
    e2e.verify_clean(lab)
    remove('shown')


# --- every end but the good one ---

def fill_image():
    """An image that boots and has no holes, on every node."""
    filling = os.urandom((FULL_MIB - 2) << 20)
    for number in range(1, lab.nodes + 1):
        folder = os.path.join(lab.root(f'node{number}'), 'var', 'images')
        with open(os.path.join(folder, 'tick-fast.raw'), 'rb') as file:
            boot = file.read()
        with open(os.path.join(folder, 'full.raw'), 'wb') as file:
            file.write(boot.ljust(1 << 20, b'\0') + filling)


def begin_slow(node, **more):
    """Submits a migration of `full` that takes long, and waits until data flow."""
    job = lab.submit({'OP_ID': 'OP_INSTANCE_MIGRATE', 'instance_name': 'full', 'target_node': other(node),
                      'bandwidth': SLOW_MIB_PER_S, **more})
    def begun():
        status, result = lab.job_status(job)
        assert status in ('queued', 'waiting', 'running'), (status, result)
        return any(entry[2] == 'progress' for entry in log_of(job))
    wait_until('the copy has begun', begun, 60)
    return job


def log_of(job):
    return lab.query('job', ['oplog'], ['=', 'id', job])[0]['oplog'][0]


def check_stays(uuid, node, pids, name='full'):
    """The same process goes on on the node, and nothing is left on the other."""
    e2e.wait_counting(lab, name, uuid, node, max(counts(name, uuid, node)))
    assert lab.qemu_processes(uuid) == pids, (lab.qemu_processes(uuid), pids)
    assert place(name) == node
    assert not images(other(node), uuid), images(other(node), uuid)
    check_counts(name, uuid)
    e2e.verify_clean(lab)


@title('/migrate/cancel#SAF-17')
def test_cancel():
    uuid, pids = e2e.uuid_of(lab, 'full'), lab.qemu_processes(e2e.uuid_of(lab, 'full'))
    job = begin_slow('node2')
    lab.cli('job', 'cancel', str(job))
    status, result = lab.wait_job(job)
    assert status == 'canceled', (status, result)
    assert result[0][1][0] == 'the migration of instance "full" to node3 was canceled; it stays on node2', result
    check_stays(uuid, 'node2', pids)


@title('/migrate/timeout#SAF-17')
def test_timeout():
    uuid, pids = e2e.uuid_of(lab, 'full'), lab.qemu_processes(e2e.uuid_of(lab, 'full'))
    expect_error(7, 'the migration of instance "full" to node3 failed: it took longer than it was allowed to; '
                    'it stays on node2',
                 'instance', 'migrate', 'full', '--target-node', 'node3', '--timeout', '2', '--bandwidth',
                 str(SLOW_MIB_PER_S))
    check_stays(uuid, 'node2', pids)


@title('/migrate/cleanup-after-the-death-of-its-job#SAF-17,LUX-36')
def test_cleanup():
    """Until somebody cleans up, nothing else touches the instance; the guest itself does not notice."""
    uuid, pids = e2e.uuid_of(lab, 'full'), lab.qemu_processes(e2e.uuid_of(lab, 'full'))
    lab.lab('pause', 'watcher@node1')
    try:
        job = begin_slow('node2')
        os.kill(wait_until('the job has a process', lambda: e2e.job_pid(lab, job)), signal.SIGKILL)
        assert lab.wait_job(job)[0] == 'error'
        expect_error(5, 'a migration of instance "full" has not been settled; say: fettle instance migrate full --cleanup',
                     'instance', 'migrate', 'full', '--target-node', 'node3')
        lab.cli('instance', 'migrate', 'full', '--cleanup')
        row = lab.instance('full', 'pnode', 'task_state')
        assert row == {'pnode': 'node2', 'task_state': ''}, row
    finally:
        lab.lab('resume', 'watcher@node1')
    check_stays(uuid, 'node2', pids)
    assert 'no migration is on record; full is on node2' in lab.run('instance', 'migrate', 'full', '--cleanup')[2]


@title('/migrate/bandwidth-is-kept-to#SAF-17')
def test_bandwidth():
    """As long as the limit makes it, but for the first second."""
    uuid = e2e.uuid_of(lab, 'full')
    began = time.monotonic()
    migrate('full', '--target-node', 'node3', '--bandwidth', '2')
    took = time.monotonic() - began
    assert took > FULL_MIB / 2 - 1, f'{FULL_MIB} MiB at 2 MiB/s took {took:.1f} s'
    check_moved('full', uuid, 'node2', 'node3', 0)


def busy_image(node):
    folder = os.path.join(lab.root(node), 'var', 'images')
    with open(os.path.join(folder, 'tick-fast.raw'), 'rb') as file:
        image = bytearray(file.read())
    begin = BUSY_ADDRESS - 0x7c00
    called, end = image.index(CALL_POLL) + 3, begin + len(HOOK) + len(TICK)
    poll = called + image[called - 2]
    assert not any(image[begin:end]) and BUSY_ADDRESS + len(HOOK) == 0x7da1, 'the guest has grown'
    image[begin:end] = HOOK[:-2] + (poll - begin - len(HOOK)).to_bytes(2, 'little', signed=True) + TICK
    image[called - 2:called] = (begin - called).to_bytes(2, 'little')
    with open(os.path.join(folder, 'busy.raw'), 'wb') as file:
        file.write(image)


@title('/migrate/downtime-limit#SAF-17')
def test_downtime():
    """What the guest changes all the time takes half a second to send: that is too long, or it is not."""
    busy_image('node2')
    uuid = create('busy', 'sharedfile', disks=[{'size': 8}], os_type='busy')
    e2e.wait_counting(lab, 'busy', uuid, 'node2', above=1)
    pids = lab.qemu_processes(uuid)
    job = lab.submit({'OP_ID': 'OP_INSTANCE_MIGRATE', 'instance_name': 'busy', 'target_node': 'node3',
                      'bandwidth': SLOW_MIB_PER_S, 'downtime_ms': 1})
    with fettlelib.QmpListener(os.path.join(lab.root('node2'), 'run', 'guests', uuid, 'rescue.sock')) as qmp:
        def sent_again():
            assert lab.job_status(job)[0] in ('queued', 'waiting', 'running'), lab.job_status(job)
            ram = qmp.execute('query-migrate').get('ram', {})
            return ram.get('dirty-sync-count', 0) >= 4 and ram['transferred'] >> 10
        sent = wait_until('its memory was sent again and again', sent_again, 60)
        assert sent > 3 * BUSY_KIB, f'{sent} KiB were sent'
        assert qmp.execute('query-migrate-parameters')['downtime-limit'] == 1
    lab.cli('job', 'cancel', str(job))
    status, result = lab.wait_job(job)
    assert status == 'canceled', (status, result)
    check_stays(uuid, 'node2', pids, 'busy')
    migrate('busy', '--target-node', 'node3', '--bandwidth', str(SLOW_MIB_PER_S), '--downtime-ms', '2000')
    check_moved('busy', uuid, 'node2', 'node3', 0)
    remove('busy')


# --- bad input ---

def expect_error(code, message, *args):
    """The command must fail with this exit code and message; which job it was does not matter."""
    got, out, err = lab.run(*args, check=False, timeout=180)
    line = JOB.sub('', err.strip().splitlines()[-1] if err.strip() else out.strip())
    if got != code or line != f'fettle: {message}':
        raise AssertionError(f'{" ".join(args)}: expected exit code {code} and\n  fettle: {message}\ngot {got} and\n  {line}')


@title('/migrate/refused-with-the-reason#SAF-17')
def test_refusals():
    create('pair', 'mirror', disks=[{'size': 8}])
    create('bare', 'diskless')
    for code, message, *args in (
            (3, 'instance "nobody" does not exist', 'nobody'),
            (3, 'node "node9" does not exist', 'bare', '--target-node', 'node9'),
            (2, 'instance "bare" is on node2 already', 'bare', '--target-node', 'node2'),
            (2, 'instance "pair" is on node2 already', 'pair', '--target-node', 'node2'),
            (2, 'instance "pair" can go to node3 only, where its replica is, not to node1; or first: '
                'fettle instance replace-disks pair --remote-node=node1', 'pair', '--target-node', 'node1')):
        expect_error(code, message, 'instance', 'migrate', *args)
    lab.cli('instance', 'shutdown', 'bare', '--timeout', '0')
    expect_error(5, 'instance "bare" does not run on node2, so there is nothing to migrate; use instance failover, or '
                    '--allow-failover', 'instance', 'migrate', 'bare', '--target-node', 'node3')
    remove('bare')
    remove('pair')


@title('/migrate/no-kernel-there#SAF-16,SAF-17')
def test_no_kernel():
    """A guest with a kernel of its own is neither moved nor stopped for a node that does not have it."""
    with open(os.path.join(lab.root('node2'), 'var', 'images', 'own.kernel'), 'wb') as file:
        file.truncate(1 << 20)
    uuid = create('own', 'diskless', kernel_path='own.kernel')
    one_process('own', uuid)
    before = lab.qemu_processes(uuid)
    for verb in ('failover', 'migrate'):
        expect_error(3, 'kernel_path: kernel "own.kernel" does not exist on node "node3"; put it into var/images there',
                     'instance', verb, 'own', '--target-node', 'node3')
    assert lab.qemu_processes(uuid) == before and lab.instance('own', 'status')['status'] == 'running'
    remove('own')


@title('/migrate/no-room')
def test_no_room():
    create('little', 'file', disks=[{'size': 8}])
    lab.lab('disk-fill', 'node3', '--leave', '0')
    try:
        expect_error(6, 'instance "little" cannot go to node3: it has 0 MiB of disk left, 8 MiB are needed' + NO_ROOM,
                     'instance', 'migrate', 'little', '--target-node', 'node3')
    finally:
        lab.lab('disk-unfill', 'node3')
    remove('little')


@title('/migrate/no-memory')
def test_no_memory():
    """Two guests that each want more than half of what a node has."""
    total = min(row['mtotal'] for row in lab.query('node', ['mtotal']))
    for name, node in (('wide', 'node2'), ('broad', 'node3')):
        lab.cli('instance', 'create', name, '--disk-template', 'diskless', '--memory', str(total * 6 // 10), '--pnode', node)
    pids = lab.qemu_processes(e2e.uuid_of(lab, 'wide'))
    code, _, err = lab.run('instance', 'migrate', 'wide', '--target-node', 'node3', check=False)
    want = rf'fettle: instance "wide" cannot go to node3: it has \d+ MiB of memory left, {total * 6 // 10} MiB are needed' + NO_ROOM
    assert code == 6 and re.fullmatch(want, JOB.sub('', err.strip().splitlines()[-1])), (code, err)
    assert place('wide') == 'node2' and lab.qemu_processes(e2e.uuid_of(lab, 'wide')) == pids
    remove('wide')
    remove('broad')


@title('/migrate/disk-full-in-the-middle-of-the-copy#SAF-17')
def test_disk_full():
    """It fails with the reason, the guest goes on where it was, and the other node is as it was before."""
    uuid, node = e2e.uuid_of(lab, 'full'), place('full')
    pids = lab.qemu_processes(uuid)
    job = begin_slow(node)
    lab.lab('disk-fill', other(node), '--leave', '0')
    try:
        status, result = lab.wait_job(job, 120)
    finally:
        lab.lab('disk-unfill', other(node))
    want = f'the migration of instance "full" to {other(node)} failed: .*No space left on device.*; it stays on {node}'
    assert status == 'error' and re.fullmatch(want, result[0][1][0]), (status, result)
    check_stays(uuid, node, pids)


@title('/migrate/bridge-missing-and-mac-taken')
def test_network():
    lab.exec('node2', 'ip', 'link', 'add', 'br9', 'type', 'bridge')
    lab.cli('instance', 'create', 'card', '--disk-template', 'diskless', '--memory', '8', '--pnode', 'node2', '--net',
            'mac=aa:00:00:00:00:09,link=br9')
    create_more = ('instance', 'create', 'more', '--disk-template', 'diskless', '--memory', '8', '--pnode', 'node3', '--net')
    expect_error(26, 'instance "card" cannot go to node3: it has no bridge "br9"' + NO_BRIDGE,
                 'instance', 'migrate', 'card', '--target-node', 'node3')
    expect_error(26, '--pnode: node "node3" has no bridge "br9"' + NO_BRIDGE, *create_more, 'mac=auto,link=br9')
    expect_error(4, '--net: mac: aa:00:00:00:00:09 is taken by instance "card"; choose another, or mac=auto', *create_more,
                 'mac=aa:00:00:00:00:09,link=br0')
    assert lab.instance('more', 'name') is None
    remove('card')
    lab.exec('node1', 'ip', 'link', 'add', 'br9', 'type', 'bridge')
    lab.cli('instance', 'create', 'two', '--disk-template', 'mirror', '--disk', 'size=8', '--memory', '8', '--no-start',
            '--pnode', 'node2', '--snode', 'node1', '--net', 'mac=auto,link=br9')
    expect_error(26, 'node "node3" cannot take the replica of instance "two": it has no bridge "br9"' + NO_BRIDGE,
                 'instance', 'replace-disks', 'two', '--remote-node', 'node3')
    remove('two')
    lab.exec('node1', 'ip', 'link', 'del', 'br9')
    lab.exec('node2', 'ip', 'link', 'del', 'br9')


@title('/migrate/image-that-rests-on-a-file-outside')
def test_backing_file():
    var = os.path.join(lab.root('node2'), 'var')
    before = sorted(os.listdir(os.path.join(var, 'disks')))
    secret, image = os.path.join(var, 'secret.raw'), os.path.join(var, 'images', 'leaky.qcow2')
    with open(secret, 'wb') as file:
        file.write(b'a host keeps this for itself'.ljust(65536))
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-b', secret, '-F', 'raw', image], check=True)
    expect_error(2, f'--os-type: node2: image "leaky": its backing file "{secret}" is outside of {var}/images',
                 'instance', 'create', 'leak', '--disk-template', 'file', '--disk', 'size=8', '--memory', '8', '--pnode',
                 'node2', '--os-type', 'leaky')
    assert lab.instance('leak', 'name') is None
    assert sorted(os.listdir(os.path.join(var, 'disks'))) == before, 'something was left behind'


@title('/migrate/newer-qemu-on-one-side#SAF-17')
def test_newer_qemu():
    """What a newer QEMU wrote an older one may misread; the other way is fine."""
    real = subprocess.run(['qemu-system-x86_64', '--version'], capture_output=True, text=True, check=True).stdout
    version = re.search(r'version (\S+)', real).group(1)
    programs = os.path.join(lab.directory, 'node2.programs')
    os.makedirs(programs, exist_ok=True)
    wrapper = os.path.join(programs, 'qemu-system-x86_64')
    qemu = subprocess.run(['sh', '-c', 'command -v qemu-system-x86_64'], capture_output=True, text=True, check=True).stdout
    with open(wrapper, 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\n[ "$1" = --version ] && echo "QEMU emulator version 99.1.0" && exit 0\n'
                   f'exec {qemu.strip()} "$@"\n')
    os.chmod(wrapper, 0o755)
    restart_noded('node2')
    try:
        uuid = create('newer', 'diskless')
        expect_error(5, f'instance "newer" cannot migrate from QEMU 99.1.0 on node2 to {version} on node3, which is older; '
                        'upgrade node3, or use instance failover',
                     'instance', 'migrate', 'newer', '--target-node', 'node3')
        older = f'has QEMU {version}, and the guest runs under 99.1.0, which is newer'
        expect_error(6, f'no node can be the new node of instance "newer": node1 {older}; node2 is its node now; node3 {older}',
                     'instance', 'migrate', 'newer')
        lab.cli('repair', 'policy', 'instance', 'newer', 'migrate')
        blocked = {row['instance']: row['reason'] for row in lab.json('plan', 'drain', 'node2')['blocked']}
        assert older in blocked['newer'], blocked
        one_process('newer', uuid)
        remove('newer')
        create('older', 'diskless', nodes=('node3',))
        migrate('older', '--target-node', 'node2')
        assert place('older') == 'node2'
        remove('older')
    finally:
        os.unlink(wrapper)
        restart_noded('node2')


def restart_noded(node):
    lab.lab('kill', f'noded@{node}')
    e2e.verify_clean(lab, 60)


# --- a whole node ---

def empty(verb, node, names):
    """`node migrate` or `node evacuate`, to the end of the jobs that it gives out: one for each of these."""
    said = lab.json('node', verb, node)
    assert said['result']['failed'] == [] and len(said['result']['jobs']) == len(names), said
    assert [job['status'] for job in said['jobs']] == ['success'] * len(names), said
    row, = lab.query('node', ['pinst_list', 'sinst_list'], ['=', 'name', node])
    return row['pinst_list'], row['sinst_list']


def check_emptied(node, guests, printed):
    """Nothing is left on the node; every guest goes on elsewhere, in one process, without a boot, and no count was lost."""
    for name, uuid in guests.items():
        now = place(name)
        assert now != node, f'{name} is on {node}'
        e2e.wait_counting(lab, name, uuid, now, printed[name])
        one_process(name, uuid)
        check_counts(name, uuid)
        assert sum(starts(name, uuid, f'node{number}') for number in range(1, lab.nodes + 1)) == 1, f'{name} was booted anew'
        assert not images(node, uuid), images(node, uuid)


def highest(guests):
    return {name: check_counts(name, uuid) for name, uuid in guests.items()}


@title('/migrate/a-whole-node-and-its-replicas#SAF-17')
def test_whole_node():
    """`node migrate` takes the guests, `node evacuate` what is left: a replica; and from a full node both."""
    node = place('full')
    away, third = other(node), 'node1'
    guests = {'pair': create('pair', 'mirror', disks=[{'size': 8}], nodes=(node, away)),
              'shared': create('shared', 'sharedfile', disks=[{'size': 8}], nodes=(node,)),
              'local': create('local', 'file', disks=[{'size': 8}], nodes=(node,))}
    migrate('full', '--target-node', third)
    for name in ('pair', 'shared', 'local'):
        assert place(name) == node
    printed = highest(guests)
    assert empty('migrate', node, guests) == ([], ['pair'])
    for name in guests:
        e2e.wait_counting(lab, name, guests[name], place(name), printed[name])
    assert lab.instance('pair', 'pnode', 'snodes') == {'pnode': away, 'snodes': [node]}
    printed = highest(guests)
    assert empty('evacuate', node, ['pair']) == ([], [])
    assert lab.instance('pair', 'pnode', 'snodes') == {'pnode': away, 'snodes': [third]}
    check_emptied(node, guests, printed)
    e2e.verify_clean(lab)
    # Now a node with the guest of a mirror on it, and what came to it besides.
    there = [name for name in guests if place(name) == away]
    printed = highest(guests)
    assert empty('evacuate', away, there) == ([], [])
    assert lab.instance('pair', 'pnode', 'snodes') == {'pnode': third, 'snodes': [node]}
    check_emptied(away, guests, printed)
    e2e.wait_healthy(lab, 'pair')
    assert lab.run('node', 'verify', away)[0] == 0
    e2e.verify_clean(lab)
    for name in guests:
        remove(name)


@title('/migrate/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--replica-lost-ms', '2000', '--watcher-interval-ms', '500')) as lab:
        moves.lab = lab
        lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
        fill_image()
        create('full', 'file', disks=[{'size': FULL_MIB}], os_type='full')
        e2e.run(test_mirror, test_file_raw, test_file_qcow2, test_sharedfile, test_diskless, test_display, test_display_taken, test_cancel,
                test_timeout, test_cleanup, test_bandwidth, test_downtime, test_refusals, test_no_kernel, test_no_room, test_no_memory,
                test_disk_full, test_network, test_backing_file, test_newer_qemu, test_whole_node, test_logs)
