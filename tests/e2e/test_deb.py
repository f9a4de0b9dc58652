#!/usr/bin/env python3
"""The Debian package: what is in it, its systemd units, and its life – installed, run, removed, purged – in an overlay
of this machine with processes, network and mounts of its own, so that nothing here is touched."""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile

import e2e
import sandbox
from e2e import title, wait_until

SERVICES = ('noded', 'wconfd', 'luxid', 'watcher', 'rconfd', 'volumed', 'mond', 'rapid')  # of every node
OUTSIDE = ('mond', 'rapid')  # who are asked from outside, as users of their own
INSIDE = [name for name in SERVICES if name not in OUTSIDE]
CANDIDATE = ('wconfd', 'luxid', 'watcher')
package = None
front_end = None  # the package fettle-api
# A boot sector whose guest never ends to migrate at 1 MiB/s: 18 times a second it changes a byte of each page from 64 to 576 KiB.
BUSY = bytes.fromhex('fb'                   # sti
                     'bb0010'               # again: mov bx, 0x1000
                     '8ec3 26fe060000'      # page: mov es, bx; inc byte [es:0]
                     '80c701 80ff90 72f1'   # add bh, 1; cmp bh, 0x90; jb page
                     'f4 ebeb')             # hlt; jmp again
work = tempfile.mkdtemp(prefix='fettle-deb-', dir='/var/tmp')


def command(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more).stdout


def unpacked(which=None):
    """A package's files, in a folder."""
    folder = os.path.join(work, os.path.basename(which or package).split('_')[0])
    if not os.path.isdir(folder):
        command('dpkg-deb', '-R', which or package, folder)
    return folder


def units():
    return [path for which in (package, front_end) for path in glob.glob(os.path.join(unpacked(which), 'usr/lib/systemd/system/*'))]


def unit(name):
    """A unit as {key: [values]}, over all sections."""
    return next(sandbox.read(path) for path in units() if os.path.basename(path) == name)


def fields_of(which):
    return dict(line.split(': ', 1) for line in command('dpkg-deb', '-f', which).splitlines() if ': ' in line and not line.startswith(' '))


@title('/deb/builds-with-sane-contents')
def test_contents():
    global package, front_end
    out = command(os.path.join(e2e.ROOT, 'scripts/deb'), e2e.build() + '-deb', work, timeout=1500)
    package, front_end = out.split()
    fields = fields_of(package)
    assert fields['Package'] == 'fettle' and re.fullmatch(r'\d+\.\d+\.\d+-1', fields['Version']), fields
    for needed in ('libc6', 'libglib2.0-0', 'libjansson4', 'libsqlite3-0', 'glib-networking', 'nbdkit', 'openssl',
                   'qemu-system-x86', 'qemu-utils', 'iproute2', 'libnbd0'):
        assert needed in re.split(r'[ ,]+', fields['Depends']), (needed, fields['Depends'])
    root = unpacked()
    for path in ('usr/bin/fettle', 'usr/lib/fettle/fettle-job',
                 'usr/lib/fettle/fettle-failstop.so', 'usr/lib/fettle/fettle-relay.so', 'usr/lib/fettle/fettle-lab',
                 'usr/sbin/fettle-noded',
                 'usr/lib/tmpfiles.d/fettle.conf', 'usr/share/doc/fettle/guide/install.md', 'usr/share/doc/fettle/copyright',
                 'usr/share/doc/fettle/changelog.Debian.gz',
                 *(f'usr/lib/fettle/fettle-{name}' for name in SERVICES)):
        assert os.path.exists(os.path.join(root, path)), path
    check_files(package)
    check_front_end(fields['Version'])


def check_front_end(version):
    """What is the front end's is in a package of its own."""
    fields, root = fields_of(front_end), unpacked(front_end)
    assert (fields['Package'], fields['Version']) == ('fettle-api', version), fields
    depends = re.split(r', ', fields['Depends'])
    assert f'fettle (= {version})' in depends, depends
    for library in ('libsoup-3.0-0', 'libcrypt1', 'libgnutls30', 'libsqlite3-0'):
        assert any(one.split()[0] == library for one in depends), (library, depends)
    for path in ('usr/lib/fettle/fettle-apid', 'usr/lib/systemd/system/fettle-apid.service', 'usr/share/man/man8/fettle-apid.8.gz'):
        assert os.path.exists(os.path.join(root, path)) and not os.path.exists(os.path.join(unpacked(), path)), path
    # It is unpacked before its user is made, and then the other daemons are started anew.
    assert os.listdir(os.path.join(root, 'usr/lib/systemd/system')) == ['fettle-apid.service']
    check_files(front_end)


def check_files(which):
    root = unpacked(which)
    for line in command('dpkg-deb', '-c', which).splitlines():
        mode, owner, path = line.split()[0], line.split()[1], line.split()[5]
        assert owner == 'root/root' and path.startswith('./') and (path == './' or path.startswith('./usr')), line
        assert mode[0] == 'l' or 'w' not in mode[4:], line
    with open(os.path.join(root, 'DEBIAN/md5sums'), encoding='utf-8') as file:
        sums = dict(reversed(line.rstrip('\n').split('  ', 1)) for line in file)
    files = [os.path.relpath(os.path.join(top, name), root) for top, _, names in os.walk(root) for name in names
             if not os.path.islink(os.path.join(top, name)) and not top.endswith('DEBIAN')]
    assert sorted(files) == sorted(sums)
    for path in files:
        with open(os.path.join(root, path), 'rb') as file:
            assert hashlib.md5(file.read()).hexdigest() == sums[path], path
    for script in ('postinst', 'prerm', 'postrm'):
        command('sh', '-n', os.path.join(root, 'DEBIAN', script))


@title('/deb/units-are-valid-and-sandboxed')
def test_units():
    folder = os.path.join(work, 'units')
    os.mkdir(folder)
    for path in units():
        shutil.copy(path, folder)
    for path in glob.glob(os.path.join(folder, '*.service')):
        with open(path, encoding='utf-8') as file:
            text = file.read()
        with open(path, 'w', encoding='utf-8') as file:  # the programs where they are unpacked
            which = front_end if path.endswith('-apid.service') else package
            file.write(text.replace('/usr/lib/fettle/', os.path.join(unpacked(which), 'usr/lib/fettle') + '/'))
    found = subprocess.run(['systemd-analyze', 'verify', '--man=no', *sorted(glob.glob(os.path.join(folder, '*.*[et]')))],
                           capture_output=True, text=True, check=False)
    complaints = [line for line in found.stderr.splitlines() if 'fettle' in line]
    assert found.returncode == 0 and not complaints, (found.returncode, found.stderr)
    for name in (*SERVICES, 'apid'):
        values = unit(f'fettle-{name}.service')
        assert values['ExecStart'] == [f'/usr/lib/fettle/fettle-{name}'], values
        assert values['Restart'] == ['always'] and values['NoNewPrivileges'] == ['yes'], values
        assert values['ProtectSystem'] == ['full' if name in ('noded', 'volumed') else 'strict'], values
        # Guests and jobs outlive their daemon; a guest killed for memory does not take it along.
        assert (values.get('KillMode') == ['process']) == (name in ('noded', 'luxid')), values
        assert (values.get('OOMPolicy') == ['continue']) == (name in ('noded', 'luxid')), values
        assert 'PrivateTmp' not in values or name not in ('noded', 'luxid'), values
        assert ('-/etc/fettle/ca.key' in values.get('InaccessiblePaths', [''])[0].split()) == (name != 'wconfd'), values
        # Clients reach a front end from outside, and it is nobody there; a volume service's programs are a user of their own.
        capabilities = {'volumed': 'CAP_CHOWN CAP_KILL CAP_SETGID CAP_SETUID', 'apid': 'CAP_NET_BIND_SERVICE'}.get(name, '')
        assert name == 'noded' or values['CapabilityBoundingSet'] == [capabilities], values
        assert values.get('User') == {'apid': ['fettle-apid'], 'mond': ['fettle-mond'], 'rapid': ['fettle-rapid']}.get(name), values
        # Members of etcd are reached by wconfd itself, images of a volume service at ports.
        assert (values.get('PrivateNetwork') == ['yes']) == (name not in ('noded', 'rconfd', 'wconfd', 'volumed', 'apid', 'mond', 'rapid')), values
        assert values['SystemCallErrorNumber'] == ['EPERM'], values
        limit = {'noded': '45', 'wconfd': '25', 'volumed': '30'}.get(name, '20')
        found = subprocess.run(['systemd-analyze', 'security', '--offline=yes', f'--threshold={limit}', '--no-pager',
                                os.path.join(folder, f'fettle-{name}.service')], capture_output=True, text=True,
                               check=False)
        assert found.returncode == 0, found.stdout + found.stderr


def installed_units():
    """All units of both packages as they lie beside each other on a host."""
    folder = os.path.join(work, 'installed')
    if not os.path.isdir(folder):
        os.mkdir(folder)
        for path in units():
            shutil.copy(path, folder)
    return glob.glob(os.path.join(folder, '*.service'))


class Machine:
    """This machine under an overlay: what is written there goes with it. No systemd runs in it."""
    MOUNTS = '''
mount --rbind /dev "$0/merged/dev"
mount -t tmpfs none "$0/merged/run"
mount -t tmpfs none "$0/merged/tmp"
'''

    def __enter__(self):
        folder = tempfile.mkdtemp(prefix='machine-', dir=work)
        os.chmod(folder, 0o755)
        self.outer, self.pid, self.inside = e2e.overlaid(folder, self.MOUNTS)
        self.root = os.path.join(folder, 'merged')
        self.daemons = {}
        shutil.copy(sandbox.__file__, os.path.join(machine_upper(self), 'sandbox.py'))
        with open(os.path.join(machine_upper(self), 'plan.json'), 'w', encoding='utf-8') as file:
            json.dump(sandbox.plan(installed_units()), file)
        return self

    def __exit__(self, *_):
        self.outer.kill()
        self.outer.wait()

    def run(self, *words, check=True):
        done = subprocess.run([*self.inside, 'env', '-u', 'FETTLE_BUILD', 'LC_ALL=C.UTF-8', *words], capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL, timeout=120)
        if check and done.returncode != 0:
            raise AssertionError((words, done.returncode, done.stdout, done.stderr))
        return done

    def sh(self, text, check=True):
        return self.run('sh', '-c', text, check=check)

    def start(self, name, *more, again=False):
        """A daemon with its unit's capabilities, system calls, read-only file system and network (sandbox.py says what is missing).
        `again`: it is started whenever it has ended."""
        values = unit(f'fettle-{name}.service')
        lines = [f'install -d -m 0700 -o {values["User"][0]} /run/{folder}' for folder in values.get('RuntimeDirectory', [])]
        lines += [f'mount --bind {path} {path}' for path in values['ReadWritePaths'][0].replace('-/', '/').split()]
        lines += ['mount --bind /srv /srv', 'mount -o remount,bind,ro /']
        program = f'python3 /sandbox.py run /plan.json fettle-{name}.service {values["ExecStart"][0]} {" ".join(more)}'
        lines.append(f'while :; do {program} || :; sleep 0.2; done' if again else f'exec {program}')
        apart = ['unshare', '--mount'] + (['--net'] if values.get('PrivateNetwork') == ['yes'] else [])
        log = open(os.path.join(work, f'{name}{"".join(more).replace("/", "-")}.log'), 'ab')
        self.daemons[name] = subprocess.Popen([*self.inside, *apart, 'sh', '-ec', '\n'.join(lines)], stdout=log,
                                              stderr=log, stdin=subprocess.DEVNULL)

    def pids(self, program):
        return self.sh(f'pgrep -f "^{program}"', check=False).stdout.split()

    def alive(self, program):
        """Processes that are more than what is left to be reaped of them."""
        return self.sh(f"ps -eo stat=,args= | grep -E '^[^Z ]+ +{program}'", check=False).stdout.splitlines()

    def fettle(self, *words):
        return self.run('fettle', *words)

    def clean(self):
        return self.run('fettle', 'cluster', 'verify', check=False).returncode == 0


def row(machine, name):
    rows = json.loads(machine.fettle('instance', 'list', name, '-o', 'status,replica.state', '--json').stdout)
    return rows[0]


def add_node(machine, name, address, more=()):
    """It has a root folder of its own. `more`: of a candidate."""
    token = machine.fettle('node', 'invite', name, '--primary-ip', address).stdout.strip()
    machine.run('mkdir', '-p', f'/srv/{name}')
    out = machine.run('fettle-noded', 'join', token, '--root', f'/srv/{name}').stdout
    assert out.endswith(f'Start its daemon, anew if it runs: fettle-noded --root /srv/{name}\n'), out
    for daemon in ('noded', 'rconfd', 'volumed'):  # what `cluster verify` looks for on each node
        machine.start(daemon, '--root', f'/srv/{name}')
    for daemon in more:
        machine.start(daemon, '--root', f'/srv/{name}', again=True)
    wait_until(f'{name} has come', machine.clean, 30, step=0.3)


def form_cluster(machine, again=False, services=SERVICES):
    """The steps of docs/guide/install.md."""
    machine.fettle('cluster', 'init', 'prod', '--node-name', 'one', '--primary-ip', '10.77.0.1', '--accelerator', 'tcg')
    for name in services:
        machine.start(name, again=again)
    wait_until('the cluster is as it should be', machine.clean, 30, step=0.3)
    add_node(machine, 'two', '10.77.0.2')


def log_of(name):
    with open(os.path.join(work, f'{name}.log'), encoding='utf-8', errors='replace') as file:
        return file.read()


def state_of_guest(machine, name):
    """What the first node keeps of a guest."""
    uuid = json.loads(machine.fettle('instance', 'list', name, '-o', 'uuid', '--json').stdout)[0]['uuid']
    return json.loads(machine.run('cat', f'/run/fettle/guests/{uuid}/state.json').stdout)


def short_outage(machine):
    """The replica is away for a moment, and gets what was written meanwhile: for that the node daemon opens images that QEMU has open."""
    wait_until('it is known what is written', lambda: state_of_guest(machine, 'web')['incremental']['written'] > 0, 60, step=0.3)
    machine.sh("pkill -KILL -f '^nbdkit.*/srv/two/'")
    wait_until('the replica is stale', lambda: row(machine, 'web')['replica.state'] == 'stale', 60, step=0.3)
    machine.fettle('instance', 'replace-disks', 'web')
    wait_until('web is in sync again', lambda: row(machine, 'web')['replica.state'] == 'in-sync', 60, step=0.3)
    said = log_of('noded')
    assert 'its replica gets what was written since they were in sync' in said, said
    assert 'everything is copied to its replica' not in said, said


def silent_target(machine):
    """A migration to a process that falls silent, at its first word or later, is cancelled; the guest goes on. (It has no card: two nodes
    of one machine cannot both have its tap device.)"""
    machine.fettle('instance', 'create', 'mover', '--disk-template', 'mirror', '--disk', 'size=8', '--memory', '64', '--os-type',
                   'busy.raw', '--pnode', 'one', '--snode', 'two')
    guests = machine.pids('qemu-system-x86_64')
    job = machine.fettle('instance', 'migrate', 'mover', '--bandwidth', '1', '--submit').stdout.split()[-1]
    def sent():
        status = json.loads(machine.fettle('job', 'list', '-o', 'id,status,opresult', '--json').stdout)
        assert all(row['status'] in ('waiting', 'running', 'success') for row in status), status
        return state_of_guest(machine, 'mover')['migration']['sent']
    wait_until('it is being sent', sent, 60, step=0.05)
    target = [pid for pid in machine.pids('qemu-system-x86_64') if pid not in guests]
    assert len(target) == 1, target
    machine.run('kill', '-STOP', *target)
    machine.fettle('job', 'cancel', job)
    ended = machine.run('fettle', 'job', 'wait', job, check=False)
    assert 'was canceled; it stays on one' in ended.stdout + ended.stderr, (ended.stdout, ended.stderr)
    wait_until('that process has ended', lambda: machine.pids('qemu-system-x86_64') == guests, 30, step=0.3)
    wait_until('all is well', lambda: machine.clean() and row(machine, 'mover') == {'status': 'running', 'replica.state': 'in-sync'}, 60,
               step=0.3)
    machine.fettle('instance', 'shutdown', 'mover', '--timeout', '0')
    machine.fettle('instance', 'remove', 'mover')


@title('/deb/installs-runs-removes-and-purges')
def test_life():
    with Machine() as machine:
        shutil.copy(package, os.path.join(machine_upper(machine), 'fettle.deb'))
        said = machine.run('dpkg', '-i', '/fettle.deb').stdout
        assert 'fettle: systemd does not run here, so nothing was started.' in said, said
        assert 'fettle-noded join.' in said, said
        assert machine.fettle('--version').stdout.startswith('fettle '), 'no version'
        enabled = machine.run('systemctl', 'is-enabled', 'fettle.target', check=False).stdout.strip()
        assert enabled == 'enabled', enabled
        form_cluster(machine)
        for folder in ('var/lib/fettle/images', 'srv/two/var/images'):
            with open(os.path.join(machine_upper(machine), folder, 'busy.raw'), 'wb') as file:
                file.write(BUSY.ljust(510, b'\0') + b'\x55\xaa' + bytes((1 << 20) - 512))
        # A mirrored guest: QEMU, the exports' plugin and the job's programs are found where they are installed.
        machine.fettle('instance', 'create', 'web', '--disk-template', 'mirror', '--disk', 'size=8', '--memory', '64',
                       '--os-type', 'busy.raw', '--pnode', 'one', '--snode', 'two', '--net', 'mac=auto,link=br0')
        wait_until('web is in sync', lambda: list(row(machine, 'web').values()) == ['running', 'in-sync'], 60, step=0.3)
        guests = machine.pids('qemu-system-x86_64')
        assert len(guests) == 1, guests
        # With the unit's capabilities the node daemon can make the card's tap device, and connect it.
        taps = machine.sh('ip -o link show master br0').stdout.splitlines()
        assert len(taps) == 1 and 'LOWER_UP' in taps[0], taps
        short_outage(machine)
        silent_target(machine)
        # An upgrade: the same package again, and the node daemon anew; the guest does not notice.
        machine.run('dpkg', '-i', '/fettle.deb')
        for pid in machine.pids('/usr/lib/fettle/fettle-noded$'):
            machine.run('kill', pid)
        wait_until('the node daemon has ended', lambda: not machine.alive('/usr/lib/fettle/fettle-noded$'), 30)
        machine.start('noded')
        wait_until('all is well after the restart', machine.clean, 30, step=0.3)
        assert machine.pids('qemu-system-x86_64') == guests
        removed = machine.run('dpkg', '-r', 'fettle').stdout
        assert 'fettle: guests still run on this host' in removed, removed
        assert not machine.sh('ls /usr/lib/fettle /usr/bin/fettle /usr/sbin/fettle-noded /usr/share/doc/fettle '
                              '/usr/lib/systemd/system/fettle*', check=False).stdout
        assert machine.sh('ls /etc/fettle').stdout.split() == ['ca.crt', 'ca.key', 'node.crt', 'node.json', 'node.key']
        machine.sh('; '.join(f'pkill -x fettle-{name}' for name in SERVICES), check=False)
        # As the package says: a guest whose replica is gone waits for it, and ends by no gentler signal (SAF-15).
        advice = re.search("end what is left: (pkill -KILL -f '[^']*')$", removed, re.M)
        assert advice, removed
        assert machine.pids('qemu-system-x86_64') == guests
        machine.sh(advice[1])
        # The second node of this machine has its folders elsewhere, which the package does not know.
        machine.sh("pkill -KILL -f '^(qemu-system|nbdkit).*/srv/two/'", check=False)
        wait_until('every process has ended', lambda: not machine.alive('(/usr/lib/fettle/|qemu-system|nbdkit)'), 30)
        purged = machine.run('dpkg', '-P', 'fettle').stdout
        assert 'fettle: images are left in /var/lib/fettle' in purged, purged
        assert machine.sh('find /etc/fettle /var/log/fettle /run/fettle 2>/dev/null', check=False).stdout == ''
        assert machine.sh('ls /var/lib/fettle').stdout.split() == ['disks', 'images']
        assert machine.sh('ls /etc/systemd/system/multi-user.target.wants/fettle.target', check=False).returncode != 0
        # Without images nothing at all is left.
        machine.run('dpkg', '-i', '/fettle.deb')
        machine.sh('rm -rf /var/lib/fettle/disks /var/lib/fettle/images')
        machine.run('dpkg', '-P', 'fettle')
        assert machine.sh('ls -d /var/lib/fettle /etc/fettle', check=False).stdout == ''


ASK = """
import json, ssl, sys, urllib.error, urllib.request
url, authority, password, method, path, body = sys.argv[1:]
def ask(method, path, body=None, **headers):
    request = urllib.request.Request(url + path, method=method, data=body and body.encode(), headers={'Content-Type': 'application/json', **headers})
    return urllib.request.urlopen(request, timeout=60, context=ssl.create_default_context(cafile=authority or None))
user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': password}
login = {'auth': {'identity': {'methods': ['password'], 'password': {'user': user}}}}
answer = ask('POST', '/identity/v3/auth/tokens', json.dumps(login))
project = json.load(answer)['token']['project']['id']
kind = {'Content-Type': 'application/octet-stream'} if path.endswith('/file') else {}
answer = ask(method, path.replace('PROJECT', project), body or None, **{'X-Auth-Token': answer.headers['X-Subject-Token'], **kind})
print(answer.status, answer.read().decode())
"""


def ask(machine, made, *request, authority='/etc/fettle/ca.crt', check=True):
    """What a front end of that machine answers: its status and its body."""
    done = machine.run('python3', '-c', ASK, made['url'], authority, made['password'], *request, check=check)
    if not check:
        return done.returncode, done.stderr
    status, _, text = done.stdout.removesuffix('\n').partition(' ')
    return int(status), json.loads(text) if text[:1] == '{' else text


def start_front_end(machine, *more):
    machine.start('apid', *more)
    run = f'{more[1]}/run' if more else '/run/fettle'
    wait_until('the front end is ready', lambda: machine.sh(f'ls {run}/api/apid.ready', check=False).returncode == 0, 30, step=0.3)


def stop_front_end(machine):
    machine.sh("pkill -f '^/usr/lib/fettle/fettle-apid$'")
    wait_until('the front end has ended', lambda: not machine.alive('/usr/lib/fettle/fettle-apid$'), 30, step=0.3)


def volumes_served(machine, made):
    return ask(machine, made, 'GET', '/volume/v3/PROJECT/volumes', '', check=False)[0] == 0


def is_said(machine, text):
    done = machine.run('fettle', 'cluster', 'verify', check=False)
    return text in done.stdout + done.stderr


def is_enabled(machine):
    return machine.run('systemctl', 'is-enabled', 'fettle-apid.service', check=False).stdout.strip()


def change(path, pattern, text):
    with open(path, encoding='utf-8') as file:
        changed, times = re.subn(pattern, text, file.read(), flags=re.M)
    assert times, (path, pattern)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(changed)


def packed_before(folder):
    """A package of what is there, of an earlier version."""
    change(os.path.join(folder, 'DEBIAN/control'), '^Version: .*', 'Version: 0.0.9-1')
    return command('dpkg-deb', '--root-owner-group', '-Znone', '--build', folder, folder + '.deb') and folder + '.deb'


def before_both():
    """A package of an earlier version, which had the front end in it."""
    folder = os.path.join(work, 'before')
    for which in (package, front_end):
        shutil.copytree(os.path.join(unpacked(which), 'usr'), os.path.join(folder, 'usr'), symlinks=True, dirs_exist_ok=True)
    shutil.copytree(os.path.join(unpacked(), 'DEBIAN'), os.path.join(folder, 'DEBIAN'))
    shutil.rmtree(os.path.join(folder, 'usr/share/doc/fettle-api'))
    return packed_before(folder)


def before_outside():
    """One that had neither REST nor monitoring, nor their users."""
    folder = os.path.join(work, 'before-outside')
    shutil.copytree(unpacked(), folder, symlinks=True)
    for name in OUTSIDE:
        os.unlink(os.path.join(folder, f'usr/lib/fettle/fettle-{name}'))
        os.unlink(os.path.join(folder, f'usr/lib/systemd/system/fettle-{name}.service'))
    change(os.path.join(folder, 'usr/lib/systemd/system/fettle.target'), ' fettle-(mond|rapid).service', '')
    change(os.path.join(folder, 'DEBIAN/postinst'), r'^for user in [^;]*; do\n(?:    .*\n)*done\n', '')
    for script in ('postinst', 'prerm'):
        change(os.path.join(folder, 'DEBIAN', script), ' fettle-(mond|rapid).service', '')
    return packed_before(folder)


OF_FRONT_END = ['/etc/fettle/api-keys', '/etc/fettle/apid.conf', '/etc/fettle/apid.pem', '/var/lib/fettle/api', '/var/log/fettle/api']
GONE = 'fettle-apid is down: it has not run since the node\'s boot; if that node is to have no front end of the API: fettle api remove --node one'


@title('/deb/front-end-of-the-api#SAF-100#SAF-107')
def test_front_end():
    with Machine() as machine:
        for name, path in (('before', before_both()), ('fettle', package), ('fettle-api', front_end)):
            shutil.copy(path, os.path.join(machine_upper(machine), f'{name}.deb'))
        made = upgrade(machine)
        start_front_end(machine)
        assert machine.sh('ps -o user:20= -C fettle-apid').stdout.split() == ['fettle-apid']
        wait_until('it serves', lambda: volumes_served(machine, made), 60, step=0.3)
        code, said = ask(machine, made, 'GET', '/volume/v3/PROJECT/volumes', '', authority='', check=False)
        assert code and 'CERTIFICATE_VERIFY_FAILED' in said, said
        local_image(machine, made)
        off_master(machine, made)
        removed_and_back(machine, made)
        purged(machine)


def upgrade(machine):
    """From a version that had both in one package, and made a front end of root's: its settings and users stay."""
    machine.run('dpkg', '-i', '/before.deb')
    form_cluster(machine)
    made = json.loads(machine.fettle('api', 'init', '--user', 'root', '--json').stdout)
    assert made['url'] == 'https://10.77.0.1:8774' and 'cacert: /etc/fettle/ca.crt\n' in made['clouds'], made
    said = machine.run('dpkg', '-i', '/fettle.deb').stdout
    assert 'Its daemon is in a package of its own now: install fettle-api, too.' in said, said
    said = machine.run('dpkg', '-i', '/fettle-api.deb').stdout
    assert "The files of the front end are its user's now; its settings and users are as they were." in said, said
    assert 'no front end yet' not in said, said
    assert machine.sh('find /etc /var /srv -user fettle-apid | sort').stdout.split() == [
        '/etc/fettle/api-keys', '/etc/fettle/apid.pem', '/var/lib/fettle/api', '/var/lib/fettle/api/api.db', '/var/log/fettle/api']
    assert is_enabled(machine) == 'enabled'
    return made


def local_image(machine, made):
    """Bytes go to a member of the same host, by a socket that its user may open."""
    machine.sh('mkdir -m 755 /srv/images')
    machine.fettle('backend', 'add', 'dir1', '--kind', 'dir', '--nodes', 'one', '--path', '/srv/images', '--overcommit', '100000')
    machine.fettle('backend', 'modify', 'dir1', '--images', 'yes')
    wanted = json.dumps({'name': 'tick', 'disk_format': 'raw', 'container_format': 'bare'})
    wait_until('its member is up', lambda: '"up"' in machine.fettle('storage-service', 'list', '-o', 'state', '--json').stdout, 60, step=0.3)
    _, image = ask(machine, made, 'POST', '/image/v2/images', wanted)
    assert ask(machine, made, 'PUT', f'/image/v2/images/{image["id"]}/file', 'x' * 4096)[0] == 204
    assert ask(machine, made, 'GET', f'/image/v2/images/{image["id"]}/file', '')[1] == 'x' * 4096


def off_master(machine, first):
    """On another node: on record by a person at the master, made at the node itself. Each listens at its node's address."""
    def on_two(*words, check=True):
        return machine.run('fettle', '--root', '/srv/two', *words, check=check)
    refused = on_two('api', 'init', check=False)
    assert 'fettle: node "two" is not on record for a front end of the API: give `fettle api init --node two` on the master first' \
        in refused.stderr, refused.stderr
    assert machine.sh('ls /srv/two/etc').stdout.split() == ['ca.crt', 'node.crt', 'node.json', 'node.key']
    said = machine.fettle('api', 'init', '--node', 'two').stdout
    assert said == 'Node two may have a front end of the API. Make it there: fettle api init\n', said
    made = json.loads(on_two('api', 'init', '--json').stdout)
    assert made['url'] == 'https://10.77.0.2:8774', made
    start_front_end(machine, '--root', '/srv/two')
    wait_until('the other one serves', lambda: volumes_served(machine, made), 60, step=0.3)
    assert volumes_served(machine, first)
    assert machine.sh('ps -o user:20= -C fettle-apid').stdout.split() == ['fettle-apid'] * 2
    refused = on_two('api', 'remove', '--yes', check=False)
    assert 'give `fettle api remove --node two` on the master first' in refused.stderr, refused.stderr
    machine.fettle('api', 'remove', '--node', 'two', '--yes')
    on_two('api', 'remove', '--yes')
    machine.sh("pkill -f '^/usr/lib/fettle/fettle-apid --root'")


def removed_and_back(machine, made):
    """What a package that was removed has left is there when it comes back, and so is its front end."""
    machine.run('dpkg', '-r', 'fettle-api')
    stop_front_end(machine)
    assert machine.sh(f'ls -d {" ".join(OF_FRONT_END)}').stdout.split() == OF_FRONT_END
    assert machine.sh('ls /usr/lib/fettle/fettle-apid', check=False).stdout == '' and is_enabled(machine) != 'enabled'
    wait_until('it is missed', lambda: is_said(machine, 'fettle api remove --node one'), 60, step=0.3)
    said = machine.run('dpkg', '-i', '/fettle-api.deb').stdout
    assert 'no front end yet' not in said and is_enabled(machine) == 'enabled', said
    start_front_end(machine)
    wait_until('it serves as before', lambda: volumes_served(machine, made), 60, step=0.3)
    wait_until('all is well', machine.clean, 60, step=0.3)


def purged(machine):
    """What a purge leaves is on the master: that this node may have a front end."""
    stop_front_end(machine)
    said = machine.run('dpkg', '-P', 'fettle-api').stdout
    assert 'fettle-api: this node is on record for a front end of the API still; on the master: fettle api remove --node one' in said, said
    assert machine.sh(f'ls -d {" ".join(OF_FRONT_END)} /run/fettle/api /usr/lib/fettle/fettle-apid', check=False).stdout == ''
    left = machine.sh('find /etc /var/lib /var/log /run -user fettle-apid').stdout
    assert left == '', left
    wait_until('it is missed', lambda: is_said(machine, GONE), 60, step=0.3)
    machine.fettle('api', 'remove', '--node', 'one', '--yes')
    wait_until('it is not missed any more', machine.clean, 60, step=0.3)
    said = machine.run('dpkg', '-i', '/fettle-api.deb').stdout
    assert 'fettle-api: this host has no front end yet. Make one with: fettle api init.' in said, said
    said = machine.run('dpkg', '-P', 'fettle-api').stdout
    assert 'on record' not in said, said


def anew(machine, name):
    """As a package does where systemd runs, which starts it again."""
    program = f'/usr/lib/fettle/fettle-{name}$'
    before = machine.pids(program)
    machine.run('kill', *before)
    wait_until(f'another {name} runs', lambda: set(machine.pids(program)) - set(before), 60, step=0.3)


def rest_status(machine, path, *more):
    """0: nobody listens there, or he is not believed."""
    words = ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '--cacert', '/etc/fettle/ca.crt', *more, f'https://10.77.0.1:5080{path}']
    return int(machine.run(*words, check=False).stdout or 0)


@title('/deb/rest-and-monitoring-come-with-an-upgrade#MON-05,RAP-01,RAP-02')
def test_outside():
    with Machine() as machine:
        for name, path in (('before', before_outside()), ('fettle', package)):
            shutil.copy(path, os.path.join(machine_upper(machine), f'{name}.deb'))
        machine.run('dpkg', '-i', '/before.deb')
        assert machine.sh('getent passwd fettle-mond fettle-rapid', check=False).stdout == ''
        form_cluster(machine, again=True, services=INSIDE)
        machine.run('dpkg', '-i', '/fettle.deb')
        for name in INSIDE:
            anew(machine, name)
        for name in OUTSIDE:
            machine.start(name, again=True)
        served(machine)
        # A later version of both: they are started anew, and so is what they ask.
        machine.run('dpkg', '-i', '/fettle.deb')
        for name in (*INSIDE, *OUTSIDE):
            anew(machine, name)
        served(machine)
        nothing_of_them_left(machine)


def served(machine):
    """Each as its own user; REST with the certificate that the node has made for it, and by LuxiD, which lets that user in."""
    def is_its_user(name):
        return machine.sh(f'ps -o user:20= -C fettle-{name}', check=False).stdout.split() == [f'fettle-{name}']
    for name in OUTSIDE:
        wait_until(f'{name} is its user', lambda one=name: is_its_user(one), 30, step=0.3)
    wait_until('REST wants a user', lambda: rest_status(machine, '/version') == 401, 60, step=0.3)
    machine.sh("[ -e /etc/alice ] || { echo secret >/etc/alice; fettle rapi user add alice --password-file /etc/alice; }")
    wait_until('REST answers', lambda: rest_status(machine, '/2/nodes', '-u', 'alice:secret') == 200, 60, step=0.3)
    assert rest_status(machine, '/2/nodes', '-u', 'alice:other') == 401
    def configured():
        told = machine.run('curl', '-sf', 'http://10.77.0.1:1815/1/report/instance/inst-status-fettle', check=False).stdout
        return told and json.loads(told)['data']['status']['code'] == 0
    wait_until('monitoring has asked ConfD', configured, 60, step=0.3)
    owners = machine.sh("stat -c '%U:%G %a %n' /var/lib/fettle/rapi/rapi.pem /var/lib/fettle/mond/node.json /run/fettle/stats").stdout
    assert owners.splitlines() == ['root:fettle-rapid 640 /var/lib/fettle/rapi/rapi.pem', 'root:fettle-mond 640 /var/lib/fettle/mond/node.json',
                                   'root:fettle-mond 750 /run/fettle/stats'], owners
    wait_until('all is well', machine.clean, 60, step=0.3)


def nothing_of_them_left(machine):
    """The users stay: nobody else shall get their numbers."""
    machine.run('dpkg', '-r', 'fettle')
    machine.sh("pkill -KILL -f '^sh -ec '")  # who would start them again
    machine.sh('; '.join(f'pkill -x fettle-{name}' for name in (*INSIDE, *OUTSIDE)), check=False)
    wait_until('every process has ended', lambda: not machine.alive('/usr/lib/fettle/'), 60)
    machine.run('dpkg', '-P', 'fettle')
    assert machine.sh('getent passwd fettle-mond fettle-rapid').stdout.count('/nologin') == 2
    left = machine.sh('find /etc /var/lib /var/log /run -user fettle-mond -o -group fettle-mond -o -user fettle-rapid -o -group fettle-rapid').stdout
    assert left == '', left


@title('/deb/members-of-etcd-in-the-sandbox')
def test_engine():
    with Machine() as machine:
        shutil.copy(package, os.path.join(machine_upper(machine), 'fettle.deb'))
        machine.run('dpkg', '-i', '/fettle.deb')
        form_cluster(machine, again=True)
        # The watcher makes candidates of both as soon as there are two.
        for name in CANDIDATE:
            machine.start(name, '--root', '/srv/two', again=True)
        add_node(machine, 'three', '10.77.0.3', CANDIDATE)
        for node in ('two', 'three'):
            machine.fettle('node', 'modify', node, '--master-candidate', 'yes')
        machine.fettle('cluster', 'engine', 'etcd', '--yes')
        wait_until('all is well with etcd', machine.clean, 60, step=0.3)
        said = machine.fettle('cluster', 'engine', 'status').stdout
        assert said.startswith('engine: etcd, active\n'), said
        assert machine.sh('ps -o user= -C etcd').stdout.split() == ['etcd'] * 3
        machine.fettle('cluster', 'engine', 'sqlite', '--yes')
        wait_until('all is well without', machine.clean, 60, step=0.3)
        wait_until('the members have ended', lambda: not machine.sh('pgrep -x etcd', check=False).stdout, 30, step=0.3)


def machine_upper(machine):
    """The machine's root as it is seen from here: by way of its process."""
    return f'/proc/{machine.pid}/root{machine.root}'


def show_logs():
    for path in glob.glob(os.path.join(work, '*.log')):
        with open(path, encoding='utf-8', errors='replace') as file:
            for line in file.read().splitlines()[-12:]:
                print(f'# {os.path.basename(path)}: {line}')


try:
    e2e.run(test_contents, test_units, test_life, test_front_end, test_outside, test_engine)
except SystemExit as end:
    if end.code:
        show_logs()
    raise
finally:
    shutil.rmtree(work, ignore_errors=True)
