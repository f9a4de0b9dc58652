#!/usr/bin/env python3
"""Hosts join a cluster with one-time tokens, from namespaces of their own beside a lab; removed ones stay out."""
import base64
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import termios
import time

import e2e
from e2e import fettlelib, title, wait_until

lab = None
NODED = os.path.join(e2e.build(), 'src/daemons/noded/fettle-noded')
NIL_NOTE = 'make another with `fettle node invite`'
GONE = 'is not known to this cluster: it was withdrawn or replaced, or has ended long ago'


class Host:
    """A machine that belongs to no cluster: a root folder, a namespace plugged into the lab's switch."""

    def __init__(self, number):
        self.switch = switch_of_lab()
        self.name, self.address = f'host{number}', fettlelib.address(number)
        self.netns = self.switch[:-3] + f'-h{number}'
        self.root = tempfile.mkdtemp(prefix='fh', dir='/var/tmp')
        os.chmod(self.root, 0o755)  # guests run as nobody
        self.daemons = []
        ip('netns', 'add', self.netns)
        ip('-n', self.switch, 'link', 'add', f'h{number}', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', self.netns)
        ip('-n', self.switch, 'link', 'set', f'h{number}', 'master', 'br0', 'up')
        ip('-n', self.netns, 'link', 'set', 'lo', 'up')
        ip('-n', self.netns, 'addr', 'add', *fettlelib.address_words(self.address), 'dev', 'eth0')
        ip('-n', self.netns, 'link', 'set', 'eth0', 'up')

    def run(self, *command, typed=None):
        done = fettlelib.run_command(['nsenter', f'--net=/run/netns/{self.netns}', *command], 60, typed)
        return done.returncode, done.stdout, done.stderr

    def join(self, token):
        return self.run(NODED, 'join', '--root', self.root, typed=token + '\n')

    def join_by_argument(self, *token):
        return self.run(NODED, 'join', *token, '--root', self.root)

    def start(self, *daemons):
        """Those that run on every node, if none is named."""
        for daemon in daemons or ('noded', 'rconfd', 'volumed'):
            self.start_one(daemon)

    def start_one(self, daemon):
        log = open(os.path.join(self.root, f'{daemon}.log'), 'ab')
        program = os.path.join(e2e.build(), 'src/daemons', daemon, f'fettle-{daemon}')
        self.daemons.append(subprocess.Popen(['nsenter', f'--net=/run/netns/{self.netns}', program, '--root', self.root],
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def log(self):
        with open(os.path.join(self.root, 'noded.log'), encoding='utf-8', errors='replace') as file:
            return file.read()

    def config(self):
        with open(os.path.join(self.root, 'etc/node.json'), encoding='utf-8') as file:
            return json.load(file)

    def stop(self):
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            daemon.wait(20)
        self.daemons = []

    def remove(self):
        self.stop()
        for path in glob.glob(os.path.join(self.root, '*.log')):
            with open(path, encoding='utf-8', errors='replace') as file:
                for line in file:
                    assert not e2e.REPORT.search(line), (path, line)
        subprocess.run(['ip', 'netns', 'delete', self.netns], check=False)
        shutil.rmtree(self.root, ignore_errors=True)


def switch_of_lab():
    """Name of the namespace with the lab's bridge (src/lab/layout.c)."""
    return 'ft' + hashlib.sha256(lab.directory.encode()).hexdigest()[:6] + '-sw'


def ip(*words):
    subprocess.run(['ip', *words], check=True)


def with_host(number):
    """A test that gets a fresh host, which goes with it."""
    def wrap(function):
        def run():
            host = Host(number)
            try:
                function(host)
            finally:
                host.remove()
        run.title = function.title
        return run
    return wrap


def invite(host, *more):
    code, out, err = lab.run('node', 'invite', host.name, '--primary-ip', host.address, *more)
    assert code == 0 and out.count('\n') == 1 and out.startswith('fettle1.'), (out, err)
    assert 'fettle-noded join\n' in err and out.strip() not in err, err
    return out.strip()


def raw(token):
    text = token[len('fettle1.'):]
    return bytearray(base64.urlsafe_b64decode(text + '=' * (-len(text) % 4)))


def seal(body):
    """A token of these bytes, with a checksum that fits."""
    body = bytes(body[:-4])
    return 'fettle1.' + base64.urlsafe_b64encode(body + hashlib.sha256(body).digest()[:4]).decode().rstrip('=')


def uuid_in(token):
    hexes = raw(token)[10:26].hex()
    return '-'.join((hexes[:8], hexes[8:12], hexes[12:16], hexes[16:20], hexes[20:]))


def expect(host, code, message, token):
    """Refused with exactly this, and nothing is left behind."""
    found = host.join(token)
    pattern = re.escape(message).replace('TIME', r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC')
    assert found[0] == code and found[1] == '' and re.fullmatch(f'fettle-noded: {pattern}\n', found[2]), (found, message)
    assert os.listdir(host.root) == [], os.listdir(host.root)


def nodes():
    return {row['name'] for row in lab.query('node', ['name'])}


def everything_stored():
    with open(os.path.join(lab.root('node1'), 'var/store.db'), 'rb') as file:
        text = file.read()
    for path in glob.glob(os.path.join(lab.root('node1'), 'var', '**'), recursive=True) + \
            glob.glob(os.path.join(lab.directory, 'log', '**'), recursive=True):
        if os.path.isfile(path):
            with open(path, 'rb') as file:
                text += file.read()
    return text


@with_host(51)
@title('/join/a-host-becomes-a-node-and-carries-a-guest')
def test_join(host):
    token = invite(host)
    at = token.find('-') if '-' in token else 70
    code, out, err = host.join_by_argument(token[:at], token[at:])  # as a terminal may break it, and before a dash
    assert code == 0, err
    assert out.startswith(f'This host is node "{host.name}" of the cluster '), out
    assert sorted(os.listdir(os.path.join(host.root, 'etc'))) == ['ca.crt', 'node.crt', 'node.json', 'node.key']
    assert not os.path.exists(os.path.join(host.root, 'etc/ca.key'))
    host.start()
    e2e.verify_clean(lab)
    shutil.copy(os.path.join(lab.root('node1'), 'var/images/tick.raw'), os.path.join(host.root, 'var/images'))
    lab.do('OP_INSTANCE_CREATE', instance_name='web', pnode=host.name, snode='node2', **e2e.TICK)
    e2e.wait_healthy(lab, 'web')
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='web', timeout=0)
    lab.do('OP_INSTANCE_REMOVE', instance_name='web')
    secret = bytes(raw(token)[58:90])
    stored = everything_stored()
    assert secret.hex().encode() not in stored and token.encode() not in stored, 'the secret was kept'
    assert hashlib.sha256(secret).hexdigest().encode() in stored
    # The same command again, and a second host with the same token.
    code, _, err = host.join(token)
    assert code == 5 and err.startswith(f'fettle-noded: this host is node "{host.name}" of the cluster '), err
    second = Host(52)
    try:
        expect(second, 5, f'token {uuid_in(token)} was used by node {host.name} at TIME; {NIL_NOTE}', token)
    finally:
        second.remove()
    lab.cli('node', 'remove', host.name)


@with_host(53)
@title('/join/refusals-are-exact-and-leave-nothing')
def test_refusals(host):
    token = invite(host)
    expect(host, 2, 'the token is damaged: its checksum does not fit; copy the whole line that `fettle node invite` '
           'printed', token[:-9])
    expect(host, 2, 'this is no token: tokens begin with fettle1.; copy the whole line that `fettle node invite` printed',
           'abc')
    body = raw(token)
    fingerprint = body[26:58].hex()
    body[26] ^= 1
    expect(host, 8, f'{fettlelib.address(1)} port 1811: the node there is of an authority with the fingerprint {fingerprint}, the '
           f'token names {body[26:58].hex()}: it belongs to another cluster, or its keys were renewed since (make another token), or somebody is in between; nothing was '
           'sent, nothing was written', seal(body))
    body = raw(token)
    body[10] ^= 1
    expect(host, 3, f'token {uuid_in(seal(body))} {GONE}; {NIL_NOTE}',
           seal(body))
    body = raw(token)
    body[-5] = ord('9')  # the address that ends in 9, where nobody is
    code, _, err = host.join(seal(body))
    assert code == 19 and err.startswith(f'fettle-noded: {fettlelib.address(9)} port 1811: '), err
    body = raw(token)
    body[-5] = ord('2')  # a node that is not the master
    found = host.join(seal(body))
    assert found[0] == 19 and 'this node is not the master, which alone lets hosts join' in found[2], found
    assert os.listdir(host.root) == []
    code, _, err = host.run('env', f'FETTLE_CLOCK_AHEAD_MS={3 * 365 * 86400 * 1000}', NODED, 'join', token, '--root', host.root)
    assert code == 2 and re.fullmatch(r'fettle-noded: the clock of this host shows \d{4}-\d\d-\d\d [0-9:]{8} UTC, the master\'s '
                                      r'\d{4}-\d\d-\d\d [0-9:]{8} UTC; set the one that is wrong, then run the same command '
                                      r'again\n', err), (code, err)
    body = raw(token)
    body[58] ^= 1
    for count in range(1, 6):
        expect(host, 8, f'token {uuid_in(token)}: the secret is wrong (try {count} of 5, then the token is void)',
               seal(body))
    expect(host, 8, f'token {uuid_in(token)} is void: it came with a wrong secret 5 times; {NIL_NOTE}', token)
    short = invite(host, '--expires-s', '1')
    time.sleep(2.1)
    expect(host, 5, f'token {uuid_in(short)} expired at TIME; {NIL_NOTE}', short)
    code, _, err = host.run(NODED, 'join', '--root', host.root)
    assert (code, err) == (2, 'fettle-noded: the token is missing: it is read from standard input; see fettle-noded join '
                           '--help\n'), (code, err)
    code, _, err = host.join('x' * 1025)
    assert (code, err) == (2, 'fettle-noded: standard input is too long to be a token\n'), (code, err)
    # Whatever stands behind the dash that a broken token goes on with: it is no option.
    for piece in ('-h', '-hA8', '-?'):
        code, out, err = host.run(NODED, 'join', 'fettle1.AAAA', piece)
        assert code == 2 and out == '' and err.startswith('fettle-noded: the token '), (piece, code, out, err)
    body = raw(token)
    body[57:90] = body[57:58] + b'\xef\xbe\xfb' * 10 + b'\x00\x00'  # a secret of nothing but dashes, 40 of them
    dashes = seal(body)
    code, out, err = host.join_by_argument(dashes[:90], dashes[90:])
    assert dashes[90:].startswith('--') and code == 3 and out == '' and GONE in err, (dashes, code, out, err)
    code, out, err = host.join_by_argument(dashes[:90], dashes[91:])
    assert (code, out, err) == (2, '', 'fettle-noded: what begins with -- behind the token is neither an option nor a part of '
                                'it; see fettle-noded join --help\n'), (code, out, err)
    code, out, err = host.run(NODED, 'join', '--roto', token)
    assert (code, out, err) == (2, '', 'fettle-noded: Unknown option --roto; see fettle-noded join --help\n'), (code, out, err)
    for word in ('-h', '--help'):
        code, out, err = host.run(NODED, 'join', word)
        assert (code, err) == (0, '') and '--root=DIR' in out and '--help' in out, (code, out, err)
    assert host.name not in nodes()


@with_host(58)
@title('/join/the-token-is-not-shown#SAF-109')
def test_secret(host):
    token = invite(host)
    # As an argument it is gone from the title while the process waits for an answer that does not come.
    body = raw(token)
    body[-5] = ord('9')
    astray = seal(body)
    process = subprocess.Popen(['nsenter', f'--net=/run/netns/{host.netns}', NODED, 'join', astray, '--root', host.root],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    titles = []

    def is_gone():
        with open(f'/proc/{process.pid}/cmdline', encoding='utf-8') as file:
            titles.append(file.read())
        return 'fettle-noded' in titles[-1] and '*' * len(astray) in titles[-1]
    wait_until('the token is hidden', is_gone, 10, step=0.01)
    assert astray not in titles[-1] and process.poll() is None, titles
    process.kill()
    process.wait()
    # A terminal asks for it, and does not show it; what it was before it is again.
    master, slave = os.openpty()
    before = termios.tcgetattr(slave)
    process = subprocess.Popen([NODED, 'join', '--root', host.root], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    prompt = b'Token (it is not shown): '
    assert process.stderr.read(len(prompt)) == prompt
    assert not termios.tcgetattr(slave)[3] & termios.ECHO
    os.write(master, b'fettle1.AAAA\n')
    _, err = process.communicate()
    assert process.returncode == 2 and err.startswith(b'\nfettle-noded: the token '), err
    assert termios.tcgetattr(slave) == before
    os.write(slave, b'END')
    assert os.read(master, 1000) == b'END'
    process = subprocess.Popen([NODED, 'join', '--root', host.root], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr.read(len(prompt)) == prompt
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == -signal.SIGTERM and termios.tcgetattr(slave) == before, process.returncode
    os.close(slave)
    os.close(master)
    assert host.join(token)[0] == 0
    lab.cli('node', 'remove', host.name)


@with_host(54)
@title('/join/invitations-are-checked-and-node-add-prints-one')
def test_invite(host):
    for code, message, *args in (
            (4, 'node "node2" exists already', 'node2', '--primary-ip', host.address),
            (4, f'primary_ip: {fettlelib.address(2)} port 1811 is the address of node "node2"', 'new', '--primary-ip', fettlelib.address(2)),
            (2, 'primary_ip: "nowhere" is no IP address', 'new', '--primary-ip', 'nowhere'),
            (3, 'nodegroup "attic" does not exist', 'new', '--primary-ip', host.address, '--group', 'attic')):
        found, out, err = lab.run('node', 'invite', *args, check=False)
        line = re.sub(r' \(job \d+\)$', '', err.strip().splitlines()[-1])
        assert (found, out, line) == (code, '', f'fettle: {message}'), (args, found, out, err)
    first = invite(host)
    code, out, _ = lab.run('node', 'add', host.name, '--primary-ip', host.address)
    assert code == 0 and out.startswith('fettle1.'), out
    # A new invitation ends the earlier one of the same name.
    expect(host, 3, f'token {uuid_in(first)} {GONE}; {NIL_NOTE}', first)
    answer = lab.json('node', 'invite', host.name, '--primary-ip', host.address)
    assert answer['node'] == host.name and answer['expires'] > time.time(), answer
    assert host.join(answer['token'])[0] == 0
    lab.cli('node', 'remove', host.name)


@with_host(59)
@title('/join/invitations-are-listed-and-withdrawn')
def test_list(host):
    def listed(*more):
        rows = lab.json('node', 'invite', '--list', *more)
        return {row['name']: row for row in rows if row['name'] in (host.name, 'late', 'guessed')}

    def notes():
        code, out, _ = lab.run('cluster', 'verify', '--json')
        assert code == 0, out
        return [line for line in json.loads(out)['notes'] if line.startswith('invitation of ')]
    assert listed() == {} and not [line for line in notes() if 'late' in line or 'guessed' in line]
    before = time.time()
    token = invite(host, '--expires-s', '600')
    row = listed()[host.name]
    assert row['state'] == 'open' and row['pip'] == host.address and row['uuid'] == uuid_in(token), row
    assert row['author'] == f'root@{os.uname().nodename}' and before - 1 <= row['made'] <= time.time() + 1, row
    assert row['expires'] == row['made'] + 600, row
    code, out, _ = lab.run('node', 'invite', '--list')
    when = time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(row['expires']))
    line = next(line for line in out.splitlines() if line.startswith(host.name + ' '))
    assert out.split()[:5] == ['Node', 'PrimaryIP', 'State', 'Author', 'Until'], out
    assert when in line and row['author'] in line and ' open ' in line, out
    assert secret_of(token) not in everything_stored()
    # By its author's word, by UUID, and what cannot be withdrawn.
    for code, message, *args in (
            (3, 'there is no invitation "nobody"; see fettle node invite --list', 'nobody'),
            (2, 'INVITATION: is missing; see "fettle node invite --withdraw --help"'),
            (2, '"more": one word too many; see "fettle node invite --withdraw --help"', 'one', 'more')):
        found, out, err = lab.run('node', 'invite', '--withdraw', *args, check=False)
        line = re.sub(r' \(job \d+\)$', '', err.strip().splitlines()[-1])
        assert (found, out, line) == (code, '', f'fettle: {message}'), (args, found, out, err)
    code, _, err = lab.run('node', 'invite', '--list', host.name, check=False)
    assert (code, err) == (2, 'fettle: too many arguments; usage: fettle node invite --list\n'), (code, err)
    code, _, err = lab.run('node', 'invite', '--list', '-o', 'secret_hash', check=False)
    assert code == 2 and err.startswith('fettle: -o: invitation has no field "secret_hash"; see fettle query-fields inv'), err
    assert lab.cli('node', 'invite', '--withdraw', host.name) == \
        f'The invitation of {host.name} is withdrawn; its token lets nobody in any more.\n'
    expect(host, 3, f'token {uuid_in(token)} {GONE}; {NIL_NOTE}', token)
    token = invite(host, '--author', 'anna')
    assert listed()[host.name]['author'] == 'anna'
    lab.cli('node', 'invite', '--withdraw', uuid_in(token))
    assert listed() == {}
    # What nobody needs any more, or somebody tries to guess, is told by the check of the cluster.
    lab.cli('node', 'invite', 'late', '--primary-ip', fettlelib.address(88), '--expires-s', '1')
    guessed = lab.cli('node', 'invite', 'guessed', '--primary-ip', fettlelib.address(89)).strip()
    body = raw(guessed)
    body[58] ^= 1
    for _ in range(2):
        assert host.join(seal(body))[0] == 8
    wait_until('it has ended', lambda: listed()['late']['state'] == 'expired', 10)
    when = time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(listed()['late']['expires']))
    assert f'invitation of late: ended at {when} and was not used; forget it with: fettle node invite --withdraw late' \
        in notes(), notes()
    assert 'invitation of guessed: hosts came with a wrong secret 2 times; if that was none of yours: fettle node invite ' \
        '--withdraw guessed' in notes(), notes()
    for _ in range(3):
        assert host.join(seal(body))[0] == 8
    assert listed()['guessed']['state'] == 'void'
    assert 'invitation of guessed: hosts came with a wrong secret 5 times, so it is void; if that was none of yours: ' \
        'fettle node invite --withdraw guessed' in notes(), notes()
    for name in ('late', 'guessed'):
        lab.cli('node', 'invite', '--withdraw', name)
    assert listed() == {} and not [line for line in notes() if 'late' in line or 'guessed' in line]
    # A used one is no invitation any more.
    token = invite(host)
    assert host.join(token)[0] == 0
    code, _, err = lab.run('node', 'invite', '--withdraw', host.name, check=False)
    line = re.sub(r' \(job \d+\)$', '', err.strip().splitlines()[-1])
    assert (code, line) == (5, f'fettle: invitation {uuid_in(token)} was used: the host is node "{host.name}" '
                            f'({host.config()["node_uuid"]}), or was; a member leaves by fettle node remove'), (code, err)
    assert listed() == {}
    lab.cli('node', 'remove', host.name)


def secret_of(token):
    return bytes(raw(token)[58:90]).hex().encode()


def speak(host, address, question):
    """Connects from the host's namespace with its certificate, says hello as its noded; what comes back."""
    script = r'''
import json, socket, ssl, sys
etc, address, node, question = sys.argv[1:5]
context = ssl.create_default_context(cafile=etc + "/ca.crt")
context.check_hostname = False
context.load_cert_chain(etc + "/node.crt", etc + "/node.key")
with context.wrap_socket(socket.create_connection((address, 1811), 10)) as link:
    link.sendall(json.dumps({"hello": {"versions": [1, 1], "from": node + "/noded"}}).encode() + b"\x03")
    link.sendall(question.encode() + b"\x03")
    link.settimeout(5)
    try:
        while True:
            data = link.recv(65536)
            if not data:
                break
            sys.stdout.write(data.decode().replace("\x03", "\n"))
            sys.stdout.flush()
    except (TimeoutError, OSError):
        pass
'''
    return host.run('python3', '-c', script, os.path.join(host.root, 'etc'), address, host.config()['node_uuid'],
                    json.dumps(question))


@with_host(55)
@title('/join/a-removed-node-can-do-nothing-any-more')
def test_removed(host):
    assert host.join(invite(host))[0] == 0
    host.start()
    e2e.verify_clean(lab)
    me = host.config()['node_uuid']
    members = json.load(open(os.path.join(host.root, 'var/node/state.json'), encoding='utf-8'))
    announce = {'v': 1, 'history': members['history'], 'epoch': members['epoch'] + 7, 'id': 1, 'from': f'{me}/wconfd',
                'to': '', 'method': 'announce', 'args': {**members, 'epoch': members['epoch'] + 7, 'master_node': me}}
    report = {'v': 1, 'history': members['history'], 'epoch': members['epoch'], 'id': 1, 'from': f'{me}/job/1',
              'method': 'node_report', 'args': {}}
    del announce['to']
    found = speak(host, fettlelib.address(2), {**report, 'from': f'{me}/noded', 'method': 'engine_status'})
    assert '"member"' in found[1], found  # a member may ask that
    found = speak(host, fettlelib.address(2), report)  # and this only who may become master
    assert f'node \\"{host.name}\\" is no master candidate; only candidates may call node_report' in found[1], found
    lab.cli('node', 'remove', host.name)
    refusal = f'node {me} is no member of this cluster: it was never added, or it was removed and its certificate is ' \
        'revoked; it joins with a token of `fettle node invite`'

    def shut_out():
        for address in (fettlelib.address(1), fettlelib.address(2)):
            for question in (report, announce):
                lines = [json.loads(line) for line in speak(host, address, question)[1].splitlines()]
                assert [line.get('welcome', {}).get('error') for line in lines] == \
                    [{'code': 'permission_denied', 'message': refusal}], lines
    wait_until('node2 has heard of it', lambda: refusal in speak(host, fettlelib.address(2), report)[1])
    shut_out()
    wait_until('the removed host says so', lambda: f'no link to node node1: refused by the peer: {refusal}' in host.log(), 20)
    for daemon in ('noded@node1', 'noded@node2', 'wconfd@node1'):
        lab.lab('kill', daemon)
    e2e.verify_clean(lab)
    shut_out()
    # Nor by name: its certificate is never taken again, but the host may come back as a new node.
    code, _, err = lab.run('node', 'add', host.name, '--primary-ip', host.address, '--node-uuid', me, check=False)
    line = re.sub(r' \(job \d+\)$', '', err.strip().splitlines()[-1])
    assert (code, line) == (8, f'fettle: node {host.name} ({me}): its certificate was revoked when it was removed; the '
                            'host gets a new one with a token of `fettle node invite`'), (code, err)
    token = invite(host)
    code, _, err = host.join(token)
    assert code == 5 and f'move {host.root}/etc/node.json away first; ' in err and 'add --new-keys' in err, err
    host.stop()
    os.rename(os.path.join(host.root, 'etc/node.json'), os.path.join(host.root, 'node.json.old'))
    assert host.join(token)[0] == 0
    assert host.config()['node_uuid'] != me
    host.start()
    e2e.verify_clean(lab)
    lab.cli('node', 'remove', host.name)


@with_host(58)
@title('/join/killed-at-every-step-and-repeated')
def test_killed(host):
    """The joining command dies before its n-th call to the outside, for every n; repeated, it makes this host the node."""
    steps = 0
    while True:
        steps += 1
        token = invite(host)
        code, _, err = host.run('env', f'FETTLE_CRASH_AT={steps}', NODED, 'join', token, '--root', host.root)
        if code == 0:
            break
        assert code in (-9, 137), (steps, code, err)
        code, out, err = host.join(token)
        lost = not os.path.exists(os.path.join(host.root, 'etc/node.json'))
        assert not lost and (code == 0 or (code == 5 and f'is node "{host.name}"' in err)), (steps, code, out, err)
        rows = lab.query('node', ['name', 'uuid'], ['=', 'name', host.name])
        assert [row['uuid'] for row in rows] == [host.config()['node_uuid']], (steps, rows)
        left = sorted(os.listdir(os.path.join(host.root, 'etc')))
        assert [name for name in left if not name.startswith(('.', 'join-'))] == \
            ['ca.crt', 'node.crt', 'node.json', 'node.key'], (steps, left)
        lab.cli('node', 'remove', host.name)
        shutil.rmtree(host.root)
        os.mkdir(host.root, 0o755)
    assert steps > 5, steps
    print(f'# {steps - 1} steps')
    lab.cli('node', 'remove', host.name)


@with_host(56)
@title('/join/a-cluster-is-made-outside-of-a-lab-and-another-cluster-s-token-is-refused')
def test_cluster_of_its_own(host):
    """The steps of docs/guide/install.md, with --root."""
    code, out, err = host.run(lab.fettle, '--root', host.root, 'cluster', 'init', 'other', '--node-name', host.name,
                              '--primary-ip', host.address, '--accelerator', 'tcg')
    assert code == 0, (out, err)
    host.start('noded', 'wconfd', 'luxid', 'watcher', 'rconfd', 'volumed')
    wait_until('luxid listens', lambda: os.path.exists(os.path.join(host.root, 'run/luxid.ready')), 30)
    wait_until('the cluster is as it should be',
               lambda: host.run(lab.fettle, '--root', host.root, 'cluster', 'verify')[0] == 0, 30)
    guest = Host(57)
    try:
        code, out, err = host.run(lab.fettle, '--root', host.root, 'node', 'invite', guest.name, '--primary-ip',
                                  guest.address)
        assert code == 0, err
        own = out.strip()
        # The token of the other cluster at the master of the lab, and the other way round.
        body = raw(own)
        astray = seal(body[:90] + fettlelib.address(1).encode() + b'....')
        found = guest.join(astray)
        assert found[0] == 8 and 'it belongs to another cluster, or its keys were renewed since (make another token), or somebody is in between' in found[2], found
        assert os.listdir(guest.root) == []
        assert guest.join(own)[0] == 0
        guest.start()
        wait_until('both nodes are there',
                   lambda: host.run(lab.fettle, '--root', host.root, 'cluster', 'verify')[0] == 0, 30)
        found = guest.join(invite(guest))
        assert found[0] == 5 and f'of the cluster {guest.config()["cluster_uuid"]} already' in found[2], found
    finally:
        guest.remove()


def main():
    global lab  # pylint: disable=global-statement
    with e2e.new_lab(nodes=2) as lab:
        def test_logs():
            e2e.check_logs(lab)
        test_logs.title = '/join/no-report-in-any-log'
        e2e.run(test_join, test_refusals, test_secret, test_invite, test_list, test_removed, test_killed, test_cluster_of_its_own, test_logs)


if __name__ == '__main__':
    main()
