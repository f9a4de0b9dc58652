#!/usr/bin/env python3
"""fettle-rapid in a lab: its certificate, its users on record and in a file, who may what, a luxid that is away, another master; and that it opens
LuxiD's sockets alone. What it answers to which path is test_rest.py's."""
import gzip
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import e2e
import rest
from e2e import fettlelib, title, wait_until

OPTIONS = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '2')
MASTER_IP = fettlelib.address(200)
UNKNOWN = (401, 'No permission -- see authorization schemes')
lab = None
master = standby = None


def users_file(node='node1'):
    return os.path.join(lab.root(node), 'var', 'rapi', 'users')


def put_users(text, node='node1'):
    with open(users_file(node) + '.new', 'w', encoding='utf-8') as file:
        file.write(text)
    os.rename(users_file(node) + '.new', users_file(node))


def log_of(node):
    with open(os.path.join(lab.directory, 'log', node, 'rapid.log'), encoding='utf-8') as file:
        return file.read()


def status(method, path, user=None, body=None):
    return master.ask(method, path, body, user)[0]


# --- its certificate ---

def shown(front=None):
    """The certificate, in PEM."""
    front = front or master
    line = front.line(ssl._create_unverified_context())  # pylint: disable=protected-access
    try:
        line.connect()
        return ssl.DER_cert_to_PEM_cert(line.sock.getpeercert(True)).strip()
    finally:
        line.close()


def text_of(certificate):
    return subprocess.run(['openssl', 'x509', '-noout', '-text'], input=certificate, capture_output=True, text=True, check=True).stdout


@title('/rapid/certificate')
def test_certificate():
    wait_until('both listen', lambda: hung_up(lambda: shown(master) and shown(standby)), 60)
    assert master.refused('GET', '/version', '') == UNKNOWN  # by who was taken for that node, with the authority
    for front in (master, standby):
        text = text_of(shown(front))
        assert 'TLS Web Server Authentication' in text and 'TLS Web Client Authentication' not in text, text
        assert f'DNS:{front.node}' in text, text
    assert shown(master) != shown(standby)


def believes(front, name):
    """Whether a client believes that it is REST of that name or address, which has the authority's certificate and nothing else."""
    with socket.create_connection(('127.0.0.1', front.port), timeout=rest.PATIENCE_S) as plain:
        try:
            front.context().wrap_socket(plain, server_hostname=name).close()
            return True
        except ssl.SSLCertVerificationError as error:
            assert 'mismatch' in str(error) or 'not valid for' in str(error), error
            return False


def both_believed(name, are=True):
    return all(believes(front, name) == are for front in (master, standby))


@title('/rapid/a-certificate-for-the-clusters-names#SAF-100')
def test_names():
    """Whichever candidate serves there: nobody has to be given a certificate, also after the address has changed."""
    cluster = lab.json('cluster', 'info')['name']
    wait_until('both listen', lambda: both_believed(cluster), 60)
    assert both_believed('localhost') and both_believed('127.0.0.1')
    assert believes(master, 'node1') and believes(master, fettlelib.address(1)) and believes(standby, fettlelib.address(2))
    assert both_believed('rest.example.org', False) and not believes(master, 'node2') and not believes(standby, fettlelib.address(1))
    assert both_believed(MASTER_IP, False)
    lab.cli('cluster', 'modify', '--master-ip', f'{MASTER_IP}/{fettlelib.PREFIX}', '--master-netdev', 'br0')
    wait_until('both have certificates for it', lambda: both_believed(MASTER_IP), 60)
    assert both_believed(cluster) and believes(standby, 'node2')
    host = f'[{MASTER_IP}]' if ':' in MASTER_IP else MASTER_IP
    ask = ('curl', '--silent', '--show-error', '--max-time', '20', '--cacert', os.path.join(lab.root('node2'), 'etc', 'ca.crt'))

    def answered():
        return hung_up(lambda: lab.exec('node2', *ask, f'https://{host}:5080/version')) or ''
    wait_until('a client is answered there', lambda: UNKNOWN[1] in answered(), 60)
    lab.cli('cluster', 'modify', '--master-ip', 'none')
    wait_until('both have certificates without it', lambda: both_believed(MASTER_IP, False), 60)
    assert both_believed(cluster)


def of_rest():
    """What `cluster verify` says of certificates for REST."""
    return [line for line in lab.run('cluster', 'verify', check=False)[1].splitlines() if 'REST' in line]


def tells(what):
    """Of node2, which looks for its certificate when it starts."""
    lab.lab('kill', 'noded@node2')
    wait_until(f'verify tells {what}', lambda: any(line.startswith(f'node node2: {what}, and gets no other: ') for line in of_rest()), 60)


@title('/rapid/verify-tells-of-a-certificate-that-cannot-be-made#SAF-92')
def test_no_certificate():
    path, before = os.path.join(lab.root('node2'), 'var', 'rapi', 'rapi.pem'), shown(standby)
    keys = [os.path.join(lab.root(node), 'etc', 'ca.key') for node in ('node1', 'node2')]
    assert not of_rest()
    os.remove(path)
    os.makedirs(os.path.join(path, 'in the way'))
    tells('has no certificate for REST')
    assert shown(standby) == before  # which is shown on
    for key in keys:  # nobody can sign
        os.rename(key, key + '.away')
    shutil.rmtree(path)
    strange = strange_certificate()
    with open(path + '.new', 'w', encoding='utf-8') as file:
        file.write(strange)
    os.chmod(path + '.new', 0o640)
    os.rename(path + '.new', path)
    tells('shows clients of REST a certificate that is of no authority of the cluster any more')
    for key in keys:
        os.rename(key + '.away', key)
    wait_until('it makes another one', lambda: shown(standby) not in strange and shown(standby) != before, 60)
    wait_until('verify tells nothing', lambda: not of_rest(), 60)


def strange_certificate():
    """Of nobody, for rest.example.org, with its key."""
    key, certificate = os.path.join(lab.directory, 'x.key'), os.path.join(lab.directory, 'x.crt')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', certificate,
                    '-subj', '/CN=rest.example.org', '-days', '30'], check=True, capture_output=True)
    text = ''
    for name in (certificate, key):
        with open(name, encoding='utf-8') as part:
            text += part.read()
    return text


@title('/rapid/the-operators-certificate')
def test_own_certificate():
    given, before = os.path.join(lab.root('node1'), 'etc', 'rapi.pem'), shown()
    with open(given + '.new', 'w', encoding='utf-8') as file:
        file.write(strange_certificate())
    os.rename(given + '.new', given)
    assert 'CN = rest.example.org' in text_of(shown())  # with the next connection
    with open(given, 'w', encoding='utf-8') as file:
        file.write('nonsense')
    assert 'CN = rest.example.org' in text_of(shown()) and 'the certificate has changed, and the one before is shown on' in log_of('node1')
    os.remove(given)
    assert shown() == before


# --- its users ---

def cli_user(*words, typed=''):
    return lab.run('rapi', 'user', *words, typed=typed)[1]


@title('/rapid/users-on-record')
def test_on_record():
    said = cli_user('add', 'alice', '--write', typed='one\n')
    assert said == 'User alice may read and change everything by REST. A node\'s own file of users goes before it.\n', said
    assert cli_user('add', 'bob', typed='two\n').startswith('User bob may read everything by REST.')
    assert lab.json('rapi', 'user', 'list') == [{'name': 'alice', 'write': True}, {'name': 'bob', 'write': False}]
    e2e.expect_cli_error(lab, 4, 'fettle: REST user "bob" exists already; change it with: fettle rapi user modify', 'rapi', 'user', 'add', 'bob',
                         '--password-file', '/etc/hostname')
    e2e.expect_cli_error(lab, 3, 'fettle: rapi_user "carol" does not exist', 'rapi', 'user', 'remove', 'carol')
    e2e.expect_cli_error(lab, 2, 'fettle: nothing to change: name at least one flag; see "fettle rapi user modify --help"', 'rapi', 'user',
                         'modify', 'bob')
    wait_until('alice is known', lambda: status('GET', '/2/info', 'alice:one') == 200)
    wait_until('bob is known', lambda: status('GET', '/2/info', 'bob:two') == 200)
    code, headers, body = master.ask('GET', '/2/info', user='')
    assert (code, body['explain']) == UNKNOWN and headers['WWW-Authenticate'] == 'Basic realm="Ganeti Remote API"', (code, headers, body)
    assert master.refused('GET', '/2/info', 'alice:two') == UNKNOWN
    assert master.refused('PUT', '/2/tags?tag=x', 'bob:two') == (403, 'user "bob" may only read')
    cli_user('modify', 'bob', '--write')
    wait_until('bob may write', lambda: status('PUT', '/2/tags?tag=of-bob', 'bob:two') == 200)
    cli_user('modify', 'bob', '--password', '--read', typed='three\n')
    wait_until('his password is another one', lambda: status('GET', '/2/info', 'bob:three') == 200)
    assert master.refused('PUT', '/2/tags?tag=x', 'bob:three')[0] == 403
    cli_user('remove', 'bob')
    wait_until('bob is gone', lambda: status('GET', '/2/info', 'bob:three') == 401)
    master.user = 'alice:one'


@title('/rapid/hashes-are-shown-to-nobody')
def test_hashes():
    path = os.path.join(lab.directory, 'x.json')
    lab.cli('cluster', 'export', '--to', path)
    with open(path, encoding='utf-8') as file:
        assert '$y$' not in file.read()
    lab.cli('cluster', 'export', '--to', path, '--with-secrets')
    with open(path, encoding='utf-8') as file:
        assert file.read().count('$y$') == 1  # alice's
    assert '$y$' not in cli_user('list') + lab.run('rapi', 'user', 'list', '--json')[1]


@title('/rapid/the-file-of-users')
def test_file():
    put_users('# ours\nalice other read\ndave {CLEARTEXT}four write\nbroken\n\neve {SHA}x\n')
    wait_until('dave is known', lambda: status('GET', '/2/info', 'dave:four') == 200)
    lines = [line.split('fettle-rapid: ', 1)[1] for line in log_of('node1').splitlines() if 'rapi/users' in line]
    assert lines == ['rapi/users: line 4: two fields are needed, a name and a password',
                     'rapi/users: line 6: a password stands in clear, or behind {CLEARTEXT}, {HA1} or {CRYPT}'], lines
    assert master.refused('GET', '/2/info', 'alice:one') == UNKNOWN  # the file goes before the record, on its node
    assert master.refused('PUT', '/2/tags?tag=x', 'alice:other')[0] == 403
    os.remove(users_file())
    wait_until('the file is gone', lambda: status('GET', '/2/info', 'alice:one') == 200)
    assert master.refused('GET', '/2/info', 'dave:four') == UNKNOWN


@title('/rapid/anonymous-reads')
def test_anonymous():
    lab.cli('cluster', 'modify', '--rapi-anonymous-reads', 'yes')
    wait_until('anybody may read', lambda: status('GET', '/2/info', '') == 200)
    assert status('GET', '/version', '') == 200
    assert master.refused('PUT', '/2/tags?tag=x', '') == UNKNOWN
    assert master.refused('GET', '/2/info', 'nobody:x') == UNKNOWN
    lab.cli('cluster', 'modify', '--rapi-anonymous-reads', 'no')
    wait_until('nobody may', lambda: status('GET', '/2/info', '') == 401)


@title('/rapid/whose-a-job-is')
def test_job_user():
    job = master.ask('PUT', '/2/tags?tag=of-alice')[2]
    lab.wait_job(job)
    assert lab.query('job', ['user'], ['=', 'id', job]) == [{'user': 'rapi:alice'}]


@title('/rapid/metrics-count-its-requests')
def test_metrics():
    def counted():
        return int(re.search(r'^fettle_rapid_requests_total{service="ganeti",status="2xx"} (\d+)$', master.get('/metrics'), re.M).group(1))
    before = counted()
    master.get('/2/nodes')
    assert counted() == before + 1
    e2e.promtool_takes(master.get('/metrics'))


@title('/rapid/long-lists-as-gzip')
def test_gzip():
    def raw(encodings):
        line = master.line()
        try:
            line.request('GET', '/2/jobs?bulk=1', headers={**rest.basic(master.user), **({'Accept-Encoding': encodings} if encodings else {})})
            answer = line.getresponse()
            return answer.status, answer.getheader('Content-Encoding'), answer.getheader('Vary'), answer.read()
        finally:
            line.close()
    lab.call('SubmitManyJobs', [[{'OP_ID': 'OP_TEST_DELAY', 'duration': 0.001, 'on_master': True, 'on_nodes': [], 'no_locks': True}]] * 200)
    plain, packed = raw(None), raw('gzip, deflate')
    assert plain[:3] == (200, None, 'Accept-Encoding') and packed[:3] == (200, 'gzip', 'Accept-Encoding'), (plain[:3], packed[:3])
    assert len(plain[3]) > 65536 and len(packed[3]) < len(plain[3]) / 4, (len(plain[3]), len(packed[3]))
    assert {job['id'] for job in json.loads(plain[3])} == {job['id'] for job in json.loads(gzip.decompress(packed[3]))}


@title('/rapid/wrong-passwords-of-an-address')
def test_barred():
    other = rest.Rest(lab)
    other.source, other.user, began = '127.0.0.9', 'alice:wrong', time.monotonic()
    codes = [other.ask('GET', '/2/info')[0] for _ in range(10)]
    code, headers, body = other.ask('GET', '/2/info', user='alice:one')
    if time.monotonic() - began < 60:  # else the minute was over
        assert codes == [401] * 10 and (code, body['code']) == (429, 429) and 1 <= int(headers['Retry-After']) <= 60, (codes, code, headers, body)
    assert status('GET', '/2/info') == 200  # of another address


# --- luxid ---

@title('/rapid/luxid-is-away#RAP-02')
def test_away():
    """It is started again at once; in the moments between there is none."""
    seen = set()

    def refused():
        try:
            lab.lab('kill', 'luxid@node1')
        except fettlelib.CommandFailed as error:
            assert 'does not run' in str(error), error  # it is about to be started again
        for path in ('/2/info', '/2/nodes', '/2/jobs', '/2/instances?bulk=1'):
            code, _, body = master.ask('GET', path)
            if code != 200:
                seen.add((code, body['explain']))
        return (502, 'luxid does not answer') in seen
    wait_until('it was refused for that', refused, 60, 0)
    assert not [code for code, _ in seen if code not in (502, 503, 504)], seen
    wait_until('luxid is back', lambda: status('GET', '/2/nodes') == 200, 60)


@title('/rapid/not-the-master#RAP-01')
def test_standby():
    for path in ('/2/info', '/2/instances', '/2/jobs', '/', '/version', '/2/features', '/fettle/v1/openapi.json'):
        for user in ('alice:one', ''):
            found = standby.refused('GET', path, user)
            assert found == (503, 'node2 is not the master; the master is node1'), (path, user, found)
    assert standby.refused('PUT', '/2/tags?tag=x', 'alice:one')[0] == 503


@title('/rapid/luxids-sockets-alone#RAP-02')
def test_sockets():
    log = os.path.join(lab.directory, 'rapid.trace')
    lab.lab('kill', 'luxid@node1')  # so that new connections are made
    wait_until('luxid is back', lambda: status('GET', '/2/nodes') == 200, 60)
    lab.lab('kill', 'luxid@node1')
    wait_until('luxid is back again', lambda: lab.call('QueryClusterInfo'), 60)
    with subprocess.Popen(['strace', '-f', '-qq', '-e', 'trace=socket,connect', '-o', log, '-p', str(master.daemon()['pid'])],
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tracer:
        try:
            wait_until('it is looked at', lambda: e2e.is_traced(master.daemon()['pid']), 60)

            def asked():
                for path in ('/2/info', '/2/nodes?bulk=1', '/fettle/v1/openapi.json'):
                    master.ask('GET', path)
                lab.wait_job(master.ask('PUT', '/2/tags?tag=traced')[2])
                with open(log, encoding='utf-8') as file:
                    return all(name in file.read() for name in ('ganeti-query',))
            wait_until('it has connected', asked, 60, 1)
        finally:
            tracer.send_signal(signal.SIGINT)
    with open(log, encoding='utf-8') as file:
        calls = [line.split(None, 1)[1] for line in file if 'resumed' not in line]
    for call in calls:
        if call.startswith('socket('):
            assert re.match(r'socket\(AF_UNIX, SOCK_STREAM', call), call
        elif call.startswith('connect('):
            assert re.search(r'sun_path="[^"]*/run/(luxid\.sock|ganeti-query)"', call), call


@title('/rapid/another-master#RAP-01')
def test_other_master():
    name = lab.json('cluster', 'info')['name']
    lab.lab('power', 'node1', 'off')
    lab.master = 'node2'
    lab.run('cluster', 'master-failover', '--alone', '--statement', 'test: its power is off', typed=name + '\n')
    standby.user = 'alice:one'
    wait_until('REST of the new master answers', lambda: standby.ask('GET', '/2/info')[0] == 200, 60)
    assert standby.get('/2/info')['master'] == 'node2'
    lab.lab('power', 'node1', 'on')
    wait_until('the old one names it', lambda: hung_up(lambda: master.refused('GET', '/2/info', 'alice:one')) ==
               (503, 'node1 is not the master; the master is node2'), 60)


def hung_up(ask):
    try:
        return ask()
    except (OSError, StopIteration, KeyError, fettlelib.CommandFailed):
        return None


@title('/rapid/new-keys')
def test_new_keys():
    """The authority is another one: the node makes its certificate anew, and nobody has to restart anything."""
    before = shown(standby)
    lab.run('cluster', 'renew-keys', '--yes', timeout=300)
    wait_until('another certificate is shown', lambda: shown(standby) != before, 120)
    assert standby.get('/version') == 2  # which is believed by the node's own file of authorities


@title('/rapid/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


def main():
    global lab, master, standby
    with e2e.new_lab(options=OPTIONS) as lab:
        master, standby = rest.Rest(lab), rest.Rest(lab, 'node2')
        e2e.run(test_certificate, test_names, test_no_certificate, test_own_certificate, test_on_record, test_hashes, test_file, test_anonymous,
                test_job_user, test_metrics, test_gzip, test_barred, test_away, test_standby, test_sockets,
                *([test_other_master, test_new_keys] if e2e.LONG else []), test_logs)


main()
