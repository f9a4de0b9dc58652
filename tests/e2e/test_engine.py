#!/usr/bin/env python3
"""`fettle cluster engine status` beside three real members of etcd, with no daemon of ours: what it shows of healthy, lost and
unknown members, and without etcd."""
import json
import os
import signal
import subprocess
import tempfile
import uuid

import e2e
from e2e import fettlelib, title, wait_until

CLUSTER = str(uuid.uuid4())
NODES = [str(uuid.uuid4()) for _ in range(3)]
USAGES = 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n'
# LeakSanitizer falls over itself ("Tracer caught signal 11") when GIO's threads end together with the process.
ENVIRONMENT = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'}
WRONG_STATE, PERMISSION, UNREACHABLE = 5, 8, 19
world = None


def openssl(*words):
    subprocess.run(['openssl', *words], check=True, capture_output=True)


class World:
    """A node's folder, an authority, three members."""

    def __init__(self, root):
        self.root, self.etc, self.processes = root, f'{root}/etc', {}
        os.makedirs(f'{self.etc}/etcd')
        os.makedirs(f'{root}/run/livelocks')
        openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', f'{self.etc}/ca.key',
                '-out', f'{self.etc}/etcd/authority.crt', '-days', '2', '-subj', f'/O={CLUSTER}/CN=ca')
        self.sign('member', f'{USAGES}extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=IP:127.0.0.1\n')
        self.sign('client', f'{USAGES}extendedKeyUsage=clientAuth\n')
        ports = [fettlelib.free_port() for _ in range(6)]
        self.members = [{'node': NODES[i], 'name': f'node{i + 1}', 'peer_url': f'https://127.0.0.1:{ports[2 * i]}',
                         'client_url': f'https://127.0.0.1:{ports[2 * i + 1]}'} for i in range(3)]
        self.write('node.json', {'node_uuid': NODES[0], 'name': 'node1', 'cluster_uuid': CLUSTER, 'address': '127.0.0.1'})

    def sign(self, whose, extensions):
        base = f'{self.etc}/etcd/{whose}'
        with open(f'{base}.ext', 'w', encoding='utf-8') as file:
            file.write(extensions)
        openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', f'{base}.key', '-out',
                f'{base}.req', '-subj', f'/O={CLUSTER}/CN=etcd-{whose}')
        openssl('x509', '-req', '-in', f'{base}.req', '-CA', f'{self.etc}/etcd/authority.crt', '-CAkey', f'{self.etc}/ca.key', '-set_serial',
                str(uuid.uuid4().int), '-days', '2', '-extfile', f'{base}.ext', '-out', f'{base}.crt')

    def write(self, name, content):
        with open(f'{self.etc}/{name}', 'w', encoding='utf-8') as file:
            json.dump(content, file)

    def configure(self, members):
        self.write('engine.json', {'kind': 'etcd', 'state': 'active', 'token': str(uuid.uuid4()), 'members': members})

    def start(self, index):
        member = self.members[index]
        stem = f'{self.etc}/etcd/member'
        words = ['setpriv', '--pdeathsig', 'KILL', 'etcd', '--name', member['name'], '--data-dir', f'{self.root}/etcd{index}']
        for kind, prefix in (('client', ''), ('peer', 'peer-')):
            words += [f'--listen-{kind}-urls={member[kind + "_url"]}', f'--{prefix}cert-file={stem}.crt', f'--{prefix}key-file={stem}.key',
                      f'--{prefix}trusted-ca-file={self.etc}/etcd/authority.crt', f'--{prefix}client-cert-auth']
        words += [f'--advertise-client-urls={member["client_url"]}', f'--initial-advertise-peer-urls={member["peer_url"]}',
                  '--initial-cluster=' + ','.join(f'{m["name"]}={m["peer_url"]}' for m in self.members), '--logger=zap']
        self.processes[index] = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self, index):
        process = self.processes.pop(index, None)
        if process:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def run(self, *words, **options):
        run = fettlelib.run_command([f'{e2e.build()}/src/cli/fettle', '--root', self.root, 'cluster', 'engine', *words], 60,
                                    env=ENVIRONMENT, **options)
        return run.returncode, run.stdout, run.stderr

    def status(self, *flags):
        return self.run('status', *flags)

    def json(self):
        code, out, err = self.status('--json')
        assert out and not err, (code, err)
        return code, json.loads(out)


@title('/engine/sqlite')
def sqlite():
    code, out, err = world.status()
    assert (code, err) == (0, ''), (code, err)
    assert out.splitlines()[0] == 'engine: sqlite', out
    code, said = world.json()
    assert code == 0 and said == {'engine': 'sqlite', 'state': 'active', 'members': [], 'advice': []}, said
    code, out, err = world.run('renew', 'node2', '--yes')
    assert (code, out, err) == (WRONG_STATE, '', 'fettle: the engine is sqlite: there are no members of etcd; a damaged copy of a '
                                                 'candidate is made anew by itself\n'), (code, out, err)


@title('/engine/all-healthy')
def all_healthy():
    world.configure(world.members)
    for index in range(3):
        world.start(index)
    wait_until('all are well', lambda: world.json()[0] == 0, 60)
    code, said = world.json()
    members = said['members']
    assert code == 0 and said['advice'] == [] and said['engine'] == 'etcd', (code, said)
    assert [m['name'] for m in members] == ['node1', 'node2', 'node3'], members
    assert all(m['healthy'] and m['version'].startswith('3.') and m['store_bytes'] > 0 and m['lag'] < 100 for m in members), members
    leaders = [m['id'] for m in members if m['leads']]
    assert len(leaders) == 1 and all(m['leader'] == leaders[0] for m in members), members
    code, out, err = world.status()
    lines = out.splitlines()
    assert code == 0 and err == '' and lines[0] == 'engine: etcd, active' and len(lines) == 5, (out, err)
    assert sum(' leader ' in line for line in lines) == 1 and sum(' follower ' in line for line in lines) == 2, out


@title('/engine/renew-without-a-master')
def renew_alone():
    """Nobody would let the member in again, so it does not leave; and the key is root's."""
    code, out, err = world.run('renew', 'node2', '--yes')
    assert (code, out) == (UNREACHABLE, '') and 'fettle-wconfd of this node does not answer' in err, (code, out, err)
    assert world.json()[1]['advice'] == []
    os.chmod(world.root, 0o755)
    code, out, err = world.run('renew', 'node2', '--yes', user='nobody', group='nogroup', extra_groups=())
    assert (code, out) == (PERMISSION, '') and 'cannot be read here; run this command as root on a candidate' in err, (code, out, err)


@title('/engine/losses')
def losses():
    world.stop(2)
    wait_until('the loss is seen', lambda: [m['healthy'] for m in world.json()[1]['members']] == [True, True, False], 60)
    code, said = world.json()
    assert code == 1 and len(said['advice']) == 1 and said['advice'][0].startswith('node3: '), said
    assert 'Connection refused' in said['advice'][0], said
    world.stop(1)
    wait_until('the majority is gone', lambda: not world.json()[1]['members'][0]['healthy'], 60)
    code, said = world.json()
    assert code == 1 and said['advice'][-1] == (
        '0 of 3 members with a vote are healthy, and 2 are needed: nothing can be changed until more of them run and reach each '
        'other'), said
    world.start(1)
    world.start(2)
    wait_until('they are back', lambda: world.json()[0] == 0, 60)


@title('/engine/differences')
def differences():
    world.configure(world.members[:2])
    code, said = world.json()
    assert code == 1 and said['advice'] == [
        f'node3 ({world.members[2]["peer_url"]}) is a member of etcd, but not in etc/engine.json of this node'], said
    world.write('engine.json', {'kind': 'etcd', 'token': 'x'})
    code, out, err = world.status()
    assert code == 23 and out == '', (code, out)
    assert err == (f'fettle: {world.etc}/engine.json: token: must be a UUID for etcd, not "x"; put back the file as it was\n'), err
    world.configure(world.members)
    os.rename(f'{world.etc}/etcd/client.key', f'{world.etc}/etcd/away')
    code, out, err = world.status()
    assert code == PERMISSION and 'cannot be read here; run this command as root on a candidate' in err, (code, err)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='fettle-engine-') as folder:
        world = World(folder)
        try:
            e2e.run(sqlite, all_healthy, renew_alone, losses, differences)
        finally:
            for each in range(3):
                world.stop(each)
