#!/usr/bin/env python3
"""Front ends of the API as a real installation has them: a user of its own, TLS, on another node than the master, two of them over one store
of users; and what each says of files that are no good."""
import concurrent.futures
import os
import pwd
import shutil
import socket
import sqlite3
import ssl
import stat
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import api
import bus
import e2e
import test_volumes as v
from e2e import fettlelib, title, wait_until

lab = None
front = None
other = None  # on the master; there in one test
USER = pwd.getpwnam('nobody')
NODE = 'node2'  # no master, and what it has of keys opens nothing of the others'
CLIENTS = 32


def path_of(*names):
    return os.path.join(lab.root(NODE), *names)


def authority():
    return path_of('etc', 'ca.crt')


def is_good(at, token):
    """None: that is not to be told, as it has no copy yet."""
    return {200: True, 401: False}.get(at.ask('GET', f'/volume/v3/{front.project}/volumes', token=token)[0])


def as_user(*words):
    """A program as the front end's user, in its node's network; its exit code and what it said."""
    done = subprocess.run(['ip', 'netns', 'exec', lab.namespace(NODE), 'setpriv', f'--reuid={USER.pw_uid}', f'--regid={USER.pw_gid}',
                           '--clear-groups', *words], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def restart():
    lab.lab('kill', f'apid@{NODE}')


def ready():
    return os.path.exists(path_of('run', 'api', 'apid.ready'))


@title('/api-fronts/a-user-of-its-own-and-tls-off-the-master#SAF-100#SAF-107')
def test_init():
    global front
    port = fettlelib.free_port()
    made = lab.json('api', 'init', '--node', NODE, '--listen', str(port), '--tls', 'yes', '--user', USER.pw_name)
    assert made['url'] == f'https://127.0.0.1:{port}' and f'cacert: {authority()}' in made['clouds'], made
    front = api.Front(lab, NODE, port, made['password'])
    front.base, front.authority = made['url'], authority()
    for name, mode in (('etc/api-keys', 0o600), ('etc/apid.pem', 0o600), ('var/api', 0o700), ('var/api/api.db', 0o600), ('run/api', 0o700),
                       ('run/api/apid.json', 0o600), ('log/api', 0o700), ('log/api/audit.log', 0o600)):
        about = os.lstat(path_of(*name.split('/')))
        assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (USER.pw_uid, mode), (name, about)
    about = os.lstat(path_of('run', 'noded.sock'))
    assert (about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode)) == (0, USER.pw_gid, 0o660), about
    pid = bus.pid_of(lab, 'apid', NODE)
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        lines = dict(line.split(':', 1) for line in file.read().splitlines())
    assert lines['Uid'].split() == [str(USER.pw_uid)] * 4 and not lines['Groups'].strip(), lines
    assert not int(lines['CapEff'], 16), lines['CapEff']
    rows = [row for row in lab.query('service', ['name', 'node', 'state']) if row['name'] == 'apid']
    assert [row['node'] for row in rows] == [NODE], rows


@title('/api-fronts/its-user-can-open-nothing-of-others#SAF-100#SAF-104')
def test_user():
    for name in ('etc/node.key', 'var/node/state.json', 'run/wconfd.sock', 'run/volumed.sock', 'log/noded.log'):
        code, said = as_user('python3', '-c', 'import socket, sys\n' + (
            'socket.socket(socket.AF_UNIX).connect(sys.argv[1])' if name.endswith('.sock') else 'open(sys.argv[1])'), path_of(*name.split('/')))
        assert code == 1 and 'PermissionError' in said, (name, said)
    node = bus.id_of(lab, NODE)
    for role in ('noded', 'cli', 'job/5', 'wconfd'):
        code, said = as_user('python3', '-c', 'import socket, sys\nline = socket.socket(socket.AF_UNIX)\nline.connect(sys.argv[1])\n'
                             'line.sendall(sys.argv[2].encode() + b"\\3")\nline.settimeout(30)\nprint(line.recv(65536))',
                             path_of('run', 'noded.sock'), bus.hello(node, role)[:-1].decode())
        assert code == 0 and f"the API's user may come as apid, not as {role.split('/')[0]}" in log_or(said), (role, said)


def log_or(said):
    """What the other side said, or wrote down."""
    with open(path_of('log', 'noded.log'), encoding='utf-8', errors='replace') as file:
        return said + file.read()


@title('/api-fronts/stock-clients-by-the-authority-and-not-without#CLN-01')
def test_clients():
    status, token, body = front.login()
    assert status == 201, body
    front.project = body['token']['project']['id']
    assert {one['url'][:8] for entry in body['token']['catalog'] for one in entry['endpoints']} == {'https://'}, body
    assert front.openstack('token', 'issue')['project_id'] == front.project
    try:
        urllib.request.urlopen(front.base + '/identity/v3', timeout=api.PATIENCE_S)
        raise AssertionError('it was believed without the authority')
    except urllib.error.URLError as error:
        assert isinstance(error.reason, ssl.SSLCertVerificationError), error
    clouds = os.path.join(lab.directory, 'clouds.yaml')
    with open(clouds, encoding='utf-8') as file:
        kept = file.read()
    with open(clouds, 'w', encoding='utf-8') as file:
        file.write(''.join(line for line in kept.splitlines(True) if 'cacert' not in line))
    said = front.client('openstack', 'token', 'issue', code=1)
    with open(clouds, 'w', encoding='utf-8') as file:
        file.write(kept)
    assert 'certificate verify failed' in said, said
    wait_until('it has its copy', lambda: is_good(front, token), v.PATIENCE_S)


@title('/api-fronts/what-it-shows-is-no-node#SAF-100')
def test_certificate():
    """It is a server's alone: nobody in the cluster takes it for a node's."""
    said = subprocess.run(['openssl', 'x509', '-in', path_of('etc', 'apid.pem'), '-noout', '-subject', '-ext', 'extendedKeyUsage,subjectAltName'],
                          capture_output=True, text=True, check=True).stdout
    assert 'CN = api\n' in said and 'Client' not in said and f'DNS:{NODE}' in said, said
    line = bus.network_socket(lab, NODE)
    line.connect((bus.config_of(lab, 'node1')['address'], bus.config_of(lab, 'node1')['port']))
    context = bus.tls()
    context.load_cert_chain(path_of('etc', 'apid.pem'))
    try:
        secure = context.wrap_socket(line)
        secure.sendall(bus.hello(bus.id_of(lab, NODE), 'noded'))
        secure.settimeout(60)
        assert secure.recv(65536) == b'', 'the bus greets it'
    except (ssl.SSLError, ConnectionError):
        pass
    pid, before = bus.pid_of(lab, 'apid', NODE), shown_by(front)
    assert renew_certificate(NODE) != before
    assert os.lstat(path_of('etc', 'apid.pem')).st_uid == USER.pw_uid
    assert front.login()[0] == 201 and bus.pid_of(lab, 'apid', NODE) == pid, 'it was started anew'


def shown_by(at):
    """The certificate that a new connection is shown."""
    return ssl.get_server_certificate(('127.0.0.1', at.port), timeout=api.PATIENCE_S)


def renew_certificate(node):
    """That of the node's front end, which shows it to the next connection; that certificate."""
    said = subprocess.run([lab.fettle, '--root', lab.root(node), 'api', 'renew-certificate'], capture_output=True, text=True, check=True).stdout
    assert said == 'There is another certificate, with a key of its own. New connections are shown it.\n', said
    with open(os.path.join(lab.root(node), 'etc', 'apid.pem'), encoding='utf-8') as file:
        made = file.read()
    at = next(one for one in (front, other) if one and one.node == node)
    shown = shown_by(at)
    assert made.startswith(shown), (made, shown)
    return shown


def of_another_authority():
    """Nodes whose front end shows a certificate that is of nobody whom the cluster trusts, as verify has it."""
    said = lab.run('cluster', 'verify', check=False)[1]
    return {node for node in ('node1', NODE)
            if f'node {node}: the certificate of its front end of the API is of no authority of the cluster any more' in said}


@title('/api-fronts/new-keys-of-the-cluster#SAF-100')
def test_keys():
    """One is on the master, one elsewhere: both serve all along, and show the new authority's certificate when they are told to."""
    global other
    clouds = os.path.join(lab.directory, 'clouds.yaml')
    shutil.copy(clouds, clouds + '.kept')  # that of the last one lies there
    port = fettlelib.free_port()
    made = lab.json('api', 'init', '--node', 'node1', '--listen', str(port), '--tls', 'yes', '--user', USER.pw_name)
    other = api.Front(lab, 'node1', port, made['password'])
    other.base, other.authority = made['url'], os.path.join(lab.directory, 'before.crt')
    shutil.copy(authority(), other.authority)
    front.authority = other.authority
    for at in (front, other):
        wait_until(f'that of {at.node} serves', lambda at=at: serves(at), v.PATIENCE_S)
    with Asked() as asked:
        out = lab.cli('cluster', 'renew-keys', '--yes')
        asked.wait_for_answers()
    for node in ('node1', NODE):
        assert f"node {node} has a front end of the API, which shows the certificate that it had. If that is of the cluster's authority: " \
            'fettle api renew-certificate there, and give its clients the new ca.crt\n' in out, out
    wait_until('verify tells both', lambda: of_another_authority() == {'node1', NODE}, v.PATIENCE_S)
    for at in (front, other):
        assert serves(at), 'the one before is not shown on'
        renew_certificate(at.node)
        assert not serves(at), 'it is believed by the authority before'
        at.authority = authority()
        wait_until(f'that of {at.node} serves', lambda at=at: serves(at), v.PATIENCE_S)
        at.ask('POST', f'/volume/v3/{at.project}/types', {'volume_type': {'name': f'of {at.node}'}}, at.login()[1])
    wait_until('verify tells none', lambda: not of_another_authority(), v.PATIENCE_S)
    lab.cli('api', 'remove', '--node', 'node1', '--yes')
    os.replace(clouds + '.kept', clouds)
    other = None


class Asked(e2e.Beside):
    """Clients ask both, one request after the other, until a `with` block ends: each is answered."""

    def __init__(self):
        super().__init__()
        self.answered, self.error = 0, None

    def run(self):
        while not self.over and not self.error:
            for at in (front, other):
                try:
                    assert serves(at), at.node
                    self.answered += 1
                except Exception as error:  # pylint: disable=broad-except
                    self.error = error

    def wait_for_answers(self):
        """One of each that was asked from now on."""
        before = self.answered
        wait_until('they are answered', lambda: self.error or self.answered > before + 3, v.PATIENCE_S)
        assert not self.error, self.error


def serves(at):
    """Whether it lets a client in by the authority that he has, and tells him of the cluster."""
    try:
        status, token, body = at.login()
    except (urllib.error.URLError, OSError):
        return False
    assert status == 201, body
    at.project = body['token']['project']['id']
    return at.ask('GET', f'/volume/v3/{at.project}/volumes', token=token)[0] == 200


@title('/api-fronts/images-of-its-own-node')
def test_image():
    v.add_backend('dir1', 'node1', NODE)
    lab.cli('backend', 'modify', 'dir1', '--images', 'yes')
    with tempfile.NamedTemporaryFile() as file:
        file.write(os.urandom(3 << 20))
        file.flush()
        for number in range(4):  # either member may be asked
            front.client('openstack', 'image', 'create', f'tick{number}', '--disk-format', 'raw', '--file', file.name)
            front.client('openstack', 'image', 'save', f'tick{number}', '--file', file.name + '.back')
            with open(file.name, 'rb') as sent, open(file.name + '.back', 'rb') as got:
                assert sent.read() == got.read()
            os.unlink(file.name + '.back')


@title('/api-fronts/an-earlier-one-of-roots')
def test_given():
    """Its files are given to its user by a second `api init`."""
    for name in ('etc/api-keys', 'etc/apid.pem', 'var/api', 'var/api/api.db', 'log/api'):
        os.chown(path_of(*name.split('/')), 0, 0)
    os.chown(path_of('run', 'noded.sock'), 0, 0)
    code, said = as_user(os.path.join(e2e.build(), 'src/daemons/apid/fettle-apid'), '--root', lab.root(NODE))
    assert code == 5 and said.strip().endswith(f'{path_of("var")}/api is of user 0, and this is user {USER.pw_uid}: give its files to '
                                               'fettle-apid by: fettle api init'), (code, said)
    unreadable_certificate()
    out = lab.cli('api', 'init', '--node', NODE, '--user', USER.pw_name)
    assert "The files of the front end are its user's now; its settings and users are as they were." in str(out), out
    restart()
    wait_until('it serves', lambda: ready() and front.can_log_in(), v.PATIENCE_S)
    assert os.lstat(path_of('var', 'api', 'api.db')).st_uid == USER.pw_uid
    said = e2e_error('api', 'init', '--node', NODE, '--user', USER.pw_name)
    assert 'has a front end already' in said, said
    # Somebody was ended between making a certificate and giving it.
    os.chown(path_of('etc', 'apid.pem'), 0, 0)
    lab.cli('api', 'init', '--node', NODE, '--user', USER.pw_name)
    assert os.lstat(path_of('etc', 'apid.pem')).st_uid == USER.pw_uid


def unreadable_certificate():
    """The operator's, which root could read: it is told before anything changes."""
    conf = path_of('etc', 'apid.conf')
    with open(conf, encoding='utf-8') as file:
        before = file.read()
    with open(conf, 'w', encoding='utf-8') as file:
        file.write(before.replace(path_of('etc', 'apid.pem'), path_of('etc', 'node.key')))
    said = e2e_error('api', 'init', '--node', NODE, '--user', USER.pw_name)
    assert f'{path_of("etc", "node.key")} cannot be read by user {USER.pw_uid}, whose the front end is' in said, said
    assert os.lstat(path_of('etc', 'api-keys')).st_uid == 0
    with open(conf, 'w', encoding='utf-8') as file:
        file.write(before)


def e2e_error(*words):
    code, _, said = lab.run(*words, check=False)
    assert code, words
    return said


class Second:
    """Another front end of that node, over the same users, at a port of its own."""

    def __enter__(self):
        self.socket = socket.create_server(('127.0.0.1', 0), backlog=128)
        self.front = api.Front(lab, NODE, self.socket.getsockname()[1], front.password)
        self.front.base = f'https://127.0.0.1:{self.front.port}'
        self.front.authority, self.front.project = authority(), front.project
        os.set_inheritable(self.socket.fileno(), True)
        environment = {**os.environ, 'FETTLE_LISTEN_FD': str(self.socket.fileno())}
        self.log = open(path_of('log', 'apid-second.log'), 'wb')
        self.process = subprocess.Popen(['ip', 'netns', 'exec', lab.namespace(NODE), 'setpriv', f'--reuid={USER.pw_uid}', f'--regid={USER.pw_gid}',
                                         '--clear-groups', os.path.join(e2e.build(), 'src/daemons/apid/fettle-apid'), '--root', lab.root(NODE)],
                                        env=environment, pass_fds=[self.socket.fileno()], stdout=self.log, stderr=self.log)
        return self.front

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(60) == 0
        self.log.close()
        self.socket.close()


@title('/api-fronts/two-over-one-store')
def test_two():
    with Second() as second:
        wait_until('the second one serves', second.can_log_in, v.PATIENCE_S)
        admin = front.login()[1]
        wait_until('it has its copy', lambda: is_good(second, admin), v.PATIENCE_S)
        token = front.login()[1]
        assert is_good(second, token) and is_good(front, token)
        second.ask('DELETE', '/identity/v3/auth/tokens', token=admin, headers={'X-Subject-Token': token}.items())
        assert is_good(second, token) is False
        began = time.monotonic()
        wait_until('it is revoked at the first one', lambda: is_good(front, token) is False, v.PATIENCE_S)
        print(f'# revoked at the other one after {time.monotonic() - began:.2f} s')
        old = front.login()[1]
        subprocess.run([lab.fettle, '--root', lab.root(NODE), 'api', 'rotate-keys'], check=True, stdout=subprocess.DEVNULL)
        fresh = second.login()[1]
        assert is_good(front, old) and is_good(front, fresh) and is_good(second, old)
        assert os.lstat(path_of('etc', 'api-keys')).st_uid == USER.pw_uid
        both_lock(second)
        exact_quota(second)


def both_lock(second):
    """Failures at both count together."""
    user = {'user': {'name': 'ann', 'password': 'right', 'default_project_id': front.project}}
    status, _, body = front.ask('POST', '/identity/v3/users', user, front.login()[1])
    assert status == 201, body

    def login(at, password):
        named = {'name': 'ann', 'domain': {'id': 'default'}, 'password': password}
        return at.ask('POST', '/identity/v3/auth/tokens', {'auth': {'identity': {'methods': ['password'], 'password': {'user': named}}}})[0]
    wait_until('the other one knows her', lambda: login(second, 'right') == 201, v.PATIENCE_S)
    began = time.monotonic()
    tried = [login(at, 'guess') for at in (front, second, front, second, front)]
    found = [login(at, 'right') for at in (front, second)]
    assert tried == [401] * 5
    if time.monotonic() - began < 60:  # else the minute was over
        assert found == [401, 401], found


def exact_quota(second):
    """32 clients at both want a volume each, and half of them may have one."""
    token = front.login()[1]
    status, _, body = front.ask('PUT', f'/volume/v3/{front.project}/os-quota-sets/{front.project}', {'quota_set': {'volumes': CLIENTS // 2}}, token)
    assert status == 200, body

    def create(number):
        at = (front, second)[number % 2]
        answer = at.ask('POST', f'/volume/v3/{front.project}/volumes', {'volume': {'size': 1, 'name': f'vol{number}'}}, token)
        return answer[0], answer[2]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(create, range(CLIENTS)))
    codes = sorted(code for code, _ in answers)
    assert codes == [202] * (CLIENTS // 2) + [413] * (CLIENTS // 2), answers
    assert len(v.volumes()) == CLIENTS // 2, v.volumes()


@title('/api-fronts/goes-on-under-the-next-master')
def test_failover():
    token = front.login()[1]
    assert is_good(front, token)
    lab.lab('power', 'node1', 'off')
    lab.master = NODE
    lab.cli('cluster', 'master-failover', '--yes', '--alone', '--statement', 'the lab has cut the power of node1')
    wait_until('it is heard by the next master',
               lambda: front.ask('POST', f'/volume/v3/{front.project}/types', {'volume_type': {'name': 'fast'}}, token)[0] in (200, 409),
               v.PATIENCE_S)  # 409: a try before, whose answer was lost
    assert 'fast' in front.client('openstack', 'volume', 'type', 'list')


# What is torn, and the words with which the front end ends; each is put right afterwards.
def damages():
    keys, store, conf = path_of('etc', 'api-keys'), path_of('var', 'api', 'api.db'), path_of('etc', 'apid.conf')

    def torn():
        for end in ('-wal', '-shm'):
            if os.path.exists(store + end):
                os.unlink(store + end)
        os.truncate(store, os.path.getsize(store) // 2)

    def later():
        with sqlite3.connect(store) as db:
            db.execute('PRAGMA user_version=7')

    def unknown():
        with open(conf, 'a', encoding='utf-8') as file:
            file.write('\nlisten_on = 5\n')
    with open(conf, encoding='utf-8') as file:
        line = len(file.read().splitlines()) + 2
    yield conf, unknown, f'{conf}, line {line}: there is no setting "listen_on"'
    yield keys, lambda: os.chmod(keys, 0o644), f'{keys}: others may read it (mode 0644), and who has can make tokens of anybody; ' \
        f'run `chmod 600 {keys}`, then `fettle api rotate-keys` twice'
    yield keys, lambda: os.unlink(keys), f'{keys}: there are no keys for tokens; run `fettle api init`, or copy the file from another front end'
    yield store, lambda: os.unlink(store), f'{store}: there are no identities; run `fettle api init`'
    yield store, later, f'{store}: it is of format 7, and this version knows format 1; run the version that wrote it'
    yield store, torn, f'{store}: '


@title('/api-fronts/files-that-are-no-good')
def test_files():
    for path, harm, words in damages():
        with open(path, 'rb') as file:
            kept, about = file.read(), os.stat(path)
        harm()
        code, said = as_user(os.path.join(e2e.build(), 'src/daemons/apid/fettle-apid'), '--root', lab.root(NODE))
        with open(path, 'wb') as file:
            file.write(kept)
        os.chmod(path, stat.S_IMODE(about.st_mode))
        os.chown(path, about.st_uid, about.st_gid)
        assert code and f'fettle-apid: {words}' in said, (code, said, words)
        if words == f'{path}: ':
            assert 'put it back from a copy, or set it aside with its -wal and make a new one by `fettle api init`' in said, said


@title('/api-fronts/removed#SAF-100')
def test_remove():
    lab.cli('api', 'remove', '--node', NODE, '--yes')
    wait_until('it has ended', lambda: not any(row['name'] == 'apid' for node in lab.status()['nodes'] if node['name'] == NODE
                                               for row in node['daemons']), v.PATIENCE_S)
    assert not os.path.exists(path_of('etc', 'apid.pem'))
    about = os.lstat(path_of('run', 'noded.sock'))
    assert (about.st_gid, stat.S_IMODE(about.st_mode)) == (0, 0o600), about


@title('/api-fronts/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500', '--candidates', '2')) as lab:
        v.lab, v.folder = lab, os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        longer = (test_certificate, test_keys, test_image, test_given, test_two, test_files) if e2e.LONG else ()
        e2e.run(test_init, test_user, test_clients, *longer, test_failover, test_remove, test_logs)
