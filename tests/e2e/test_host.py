#!/usr/bin/env python3
"""A real installation's defaults, without the lab: `cluster init`, five daemons, the first guest, with every kind of /dev/kvm.

The host is this machine under an overlay, with processes, network, mounts and devices of its own, so that nothing here is touched.
"""
import json
import os
import shutil
import subprocess
import tempfile

import e2e
from e2e import title, wait_until

OF_EACH_ROOT = ('noded', 'wconfd', 'luxid', 'watcher', 'rconfd', 'volumed')
SERVICES = (*OF_EACH_ROOT, 'mond', 'rapid')  # which listen on all addresses of the host
# A boot sector that says A on the serial line and halts: mov dx, 0x3f8; mov al, 'A'; out dx, al; sti; again: hlt; jmp again.
SAYS = bytes.fromhex('baf803 b041 ee fb f4 ebfd')
MOUNTS = '''
mount -t tmpfs none "$0/merged/run"
mount -t tmpfs none "$0/merged/tmp"
mount -t tmpfs none "$0/merged/dev"
mkdir "$0/merged/dev/net" "$0/merged/dev/shm"
chmod 1777 "$0/merged/dev/shm"
for name in null zero full random urandom tty net/tun; do
    touch "$0/merged/dev/$name"
    mount --bind "/dev/$name" "$0/merged/dev/$name"
done
ln -s /proc/self/fd "$0/merged/dev/fd"
'''
# Stands in for QEMU, which it becomes at last: "kvm" is what `kvm` says below.
STAND_IN = '''#!/bin/sh
case "$*" in
*isa-debug-exit*"-accel kvm"* | *"-accel kvm"*isa-debug-exit*) {kvm} ;;
*isa-debug-exit*) sleep 0.5; exit 33 ;;
esac
echo "$*" >>/run/asked
exec /usr/bin/qemu-system-x86_64 $(for word; do case "$word" in kvm) echo tcg ;; host) echo qemu64 ;; *) echo "$word" ;; esac; done)
'''


class Host:
    def __init__(self, kvm=None, device=True):
        """`kvm`: what the stand-in for QEMU does when it is tried out; None: this machine's QEMU. `device`: whether there is /dev/kvm,
        which is not a real one."""
        self.top = tempfile.mkdtemp(prefix='fettle-host-', dir='/var/tmp')
        os.chmod(self.top, 0o755)  # guests are no root
        self.folder = os.path.join(self.top, 'host')
        os.mkdir(self.folder)
        self.outer, _, self.inside = e2e.overlaid(self.folder, MOUNTS)
        self.daemons = {}
        if device:
            self.run('touch', '/dev/kvm')
        if kvm:
            self.write('/usr/local/bin/qemu-system-x86_64', STAND_IN.replace('{kvm}', kvm).encode())
            self.run('chmod', '755', '/usr/local/bin/qemu-system-x86_64')
            self.run('touch', '/run/asked')
            self.run('chmod', '666', '/run/asked')  # guests are no root

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.outer.kill()
        self.outer.wait()
        shutil.rmtree(self.top)

    def run(self, *words, check=True, data=None):
        done = subprocess.run([*self.inside, 'env', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
                               'ASAN_OPTIONS=detect_leaks=0', *words], capture_output=True, check=False, timeout=120,
                              **({'stdin': subprocess.DEVNULL} if data is None else {'input': data}))
        done.stdout, done.stderr = done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')
        if check and done.returncode != 0:
            raise AssertionError((words, done.returncode, done.stdout, done.stderr))
        return done

    def write(self, path, data):
        self.run('sh', '-c', f'mkdir -p "$(dirname {path})" && cat >{path}', data=data)

    def fettle(self, *words, check=True):
        return self.run(os.path.join(e2e.build(), 'src/cli/fettle'), *words, check=check)

    def form(self):
        """The steps of docs/guide/install.md."""
        self.fettle('cluster', 'init', 'prod', '--node-name', 'one', '--primary-ip', '10.77.0.1')
        self.write('/var/lib/fettle/images/says.raw', SAYS + bytes(510 - len(SAYS)) + b'\x55\xaa' + bytes((1 << 20) - 512))
        for name in SERVICES:
            self.daemons[name] = self.start(name)
        self.wait_verified('the cluster is as it should be', 60)

    def start(self, name, *words):
        program = os.path.join(e2e.build(), f'src/daemons/{name}/fettle-{name}')
        with open(self.log(name), 'ab') as log:
            return subprocess.Popen([*self.inside, 'env', 'PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', program, *words], stdout=log,
                                    stderr=log, stdin=subprocess.DEVNULL)

    def add_node(self, name, address):
        """It has a root folder of its own."""
        root = f'/srv/{name}'
        token = self.fettle('node', 'invite', name, '--primary-ip', address).stdout.strip()
        self.run('mkdir', '-p', root)
        join = os.path.join(e2e.build(), 'src/daemons/noded/fettle-noded'), 'join', token, '--root', root
        # A busy machine may not answer in time; then nothing was changed.
        wait_until(f'{name} joins', lambda: self.run(*join, check=False).returncode == 0, 120)
        self.run('mkdir', '-p', f'{root}/var/images')
        self.run('cp', '/var/lib/fettle/images/says.raw', f'{root}/var/images')
        self.start_node(name)
        self.wait_verified(f'{name} has come', 60)

    def start_node(self, name):
        for service in OF_EACH_ROOT:
            self.daemons[f'{service}@{name}'] = self.start(service, '--root', f'/srv/{name}')

    def cut(self, name):
        """Every process of a node with a root folder of its own is gone at once."""
        self.run('pkill', '-KILL', '-f', f'/srv/{name}', check=False)
        for service in OF_EACH_ROOT:
            self.daemons.pop(f'{service}@{name}').wait(30)

    def row(self, name, *fields):
        return json.loads(self.fettle('instance', 'list', name, '-o', ','.join(fields), '--json').stdout)[0]

    def verify(self):
        done = self.fettle('cluster', 'verify', check=False)
        return done.returncode, done.stdout

    def wait_verified(self, what, timeout):
        try:
            wait_until(what, lambda: self.verify()[0] == 0, timeout, step=0.3)
        except TimeoutError as error:
            raise AssertionError(f'{error}; {self.verify()[1]}') from error

    def first_guest(self):
        """It runs, and no daemon has ended."""
        self.fettle('instance', 'create', 'web', '--disk-template', 'file', '--disk', 'size=8', '--memory', '8', '--os-type', 'says.raw')
        rows = json.loads(self.fettle('instance', 'list', 'web', '-o', 'status,uuid', '--json').stdout)
        assert rows[0]['status'] == 'running', rows
        console = f'/var/log/fettle/guests/web-{rows[0]["uuid"]}.console'
        wait_until('the guest has said something', lambda: 'A' in self.run('cat', console, check=False).stdout, 60, step=0.2)
        ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
        assert not ended, f'daemons that have ended: {ended}: {self.logs()}'

    def log(self, name):
        return os.path.join(self.top, f'{name}.log')

    def logs(self):
        text = ''
        for name in SERVICES:
            with open(self.log(name), encoding='utf-8', errors='replace') as file:
                text += file.read()
        return text

    def accelerator(self):
        """Of the guest's process."""
        words = self.run('sh', '-c', "tr '\\0' ' ' </proc/$(pgrep -f '^[^ ]*qemu-system.*-name')/cmdline").stdout.split()
        return words[words.index('-accel') + 1]

    def check_logs(self):
        text = self.logs()
        assert not e2e.REPORT.search(text), text


def noted(why):
    return f'note: node one: has /dev/kvm, and its guests run without it: {why}. If that is how it shall be: fettle cluster modify ' \
        '--accelerator tcg\n'


def refused(host, name, address, why):
    done = host.fettle('cluster', 'init', 'prod', '--node-name', name, '--primary-ip', address, check=False)
    assert done.returncode != 0 and done.stderr == f'fettle: {why}\n', (done.returncode, done.stderr)


@title('/host/no-kvm#SAF-28')
def test_none():
    with Host(device=False) as host:
        refused(host, 'one', '203.0.113.9', 'primary_ip: this host has no address 203.0.113.9; give one of its own, at which the other nodes '
                'will reach it (see: ip address)')
        refused(host, 'one', '0.0.0.0', 'primary_ip: "0.0.0.0" is no IP address of a node')
        assert not host.run('ls', '/etc/fettle', check=False).stdout  # nothing that the next one would go on with
        host.run('mkdir', '-p', '/etc/fettle', '/var/lib/fettle')
        for left in ('/etc/fettle/ca.key', '/var/lib/fettle/store.db'):
            host.write(left, b'of another cluster')
            refused(host, 'one', '10.77.0.1', f'{left} is there, but no /etc/fettle/node.json: another cluster has left it; if that '
                    'cluster is over, move it away, else put node.json back')
            assert host.run('cat', left).stdout == 'of another cluster'
            host.run('rm', left)
        # Refused by whoever makes the store: what was made for it goes again.
        host.run('mount', '-t', 'tmpfs', '-o', 'size=8k', 'none', '/var/lib/fettle')
        assert host.fettle('cluster', 'init', 'prod', '--node-name', 'one', '--primary-ip', '10.77.0.1', check=False).returncode != 0
        assert not host.run('ls', '/etc/fettle').stdout
        host.run('umount', '/var/lib/fettle')
        host.form()
        refused(host, 'two', '10.77.0.1', 'this host is node "one" at 10.77.0.1 by /etc/fettle/node.json, not "two" at 10.77.0.1; if no '
                'cluster uses that, remove it with node.* and ca.* beside it')
        host.first_guest()
        assert host.accelerator() == 'tcg'
        assert host.verify() == (0, 'The cluster is as it should be.\n'), host.verify()
        host.check_logs()


@title('/host/kvm-that-works#SAF-28')
def test_works():
    with Host(kvm='exit 33') as host:
        host.form()
        host.first_guest()
        asked = host.run('cat', '/run/asked').stdout
        assert asked.count('-accel kvm') == 1, asked
        assert host.verify()[0] == 0 and 'kvm' not in host.verify()[1], host.verify()
        host.check_logs()


@title('/host/kvm-that-does-not#SAF-28')
def test_useless():
    """A file that is no device of KVM: verify says so, until that is how it shall be."""
    with Host() as host:
        host.form()
        host.first_guest()
        assert host.accelerator() == 'tcg'
        code, said = host.verify()
        assert code == 0 and 'note: node one: has /dev/kvm, and its guests run without it: a guest does not boot under it: ' in said, said
        for verb, message in ((('modify',), '--accelerator: must be one of auto, tcg, kvm, not "turbo"'),
                              (('init', 'c2', '--node-name', 'one', '--primary-ip', '10.77.0.1'),
                               '--accelerator: must be one of auto, tcg, kvm')):
            done = host.fettle('cluster', *verb, '--accelerator', 'turbo', check=False)
            assert (done.returncode, done.stderr) == (2, f'fettle: {message}\n'), (done.returncode, done.stderr)
        host.fettle('cluster', 'modify', '--accelerator', 'tcg')
        wait_until('the node knows', lambda: 'kvm' not in host.verify()[1], 60, step=0.3)
        host.check_logs()


@title('/host/kvm-that-hangs#SAF-28')
def test_hangs():
    """The trial has no end: the node daemon answers meanwhile, and the guest runs without it."""
    with Host(kvm='while :; do sleep 0.1; done') as host:
        host.form()
        job = host.fettle('instance', 'create', 'web', '--disk-template', 'file', '--disk', 'size=8', '--memory', '8', '--os-type', 'says.raw',
                          '--submit').stdout.split()[-1]
        wait_until('it is tried out', lambda: host.run('pgrep', '-f', 'isa-debug-exit', check=False).stdout, 60, step=0.1)
        answered = 0
        while host.run('pgrep', '-f', 'isa-debug-exit', check=False).stdout:
            rows = json.loads(host.fettle('node', 'list', '-o', 'name,mfree', '--json').stdout)
            answered += rows[0]['mfree'] is not None
            assert host.daemons['noded'].poll() is None, f'the node daemon has ended: {host.daemons["noded"].poll()}'
        assert answered, 'the node has not answered during the trial'
        host.fettle('job', 'wait', job)
        assert host.daemons['noded'].poll() is None, host.logs()
        assert host.accelerator() == 'tcg'
        assert host.verify() == (0, noted('when it was tried out, a guest did not boot under it within 10000 ms, which may be the load; it '
                                          'is tried again') + 'The cluster is as it should be.\n'), host.verify()
        host.check_logs()


@title('/host/the-first-screen-with-a-real-installation')
def test_first_screen():
    """What the README's first screen does in a lab: a node is lost, its guest is mended, moves, and runs on."""
    with Host(device=False) as host:
        host.form()
        host.add_node('two', '10.77.0.2')
        host.add_node('three', '10.77.0.3')
        host.fettle('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
        host.fettle('instance', 'create', 'web1', '--disk-template', 'mirror', '--disks', 'size=16', '--memory', '8', '--os-type', 'says.raw',
                    '--pnode', 'three', '--snode', 'two')
        wait_until('the replica is in sync', lambda: host.row('web1', 'replica.state')['replica.state'] == 'in-sync', 120, step=0.3)
        host.cut('three')
        host.fettle('node', 'modify', 'three', '--offline', 'yes', '--statement', 'I pulled the plug')
        wait_until('web1 is whole again', lambda: (row := host.row('web1', 'status', 'pnode', 'snodes', 'replica.state'))['status'] == 'running'
                   and (row['pnode'], row['snodes'], row['replica.state']) == ('two', ['one'], 'in-sync'), 300, step=0.5)
        assert 'three' in host.fettle('why', 'web1').stdout
        host.start_node('three')
        host.fettle('node', 'modify', 'three', '--offline', 'no')
        host.fettle('instance', 'migrate', 'web1')
        assert host.row('web1', 'pnode', 'status') == {'pnode': 'one', 'status': 'running'}, host.row('web1', 'pnode', 'status')
        host.wait_verified('everything is as it should be', 120)
        host.check_logs()


e2e.run(test_none, test_works, test_useless, test_hangs, test_first_screen)
