"""What the API costs: core/api in memory, and a front end of a lab, beside bare libsoup, one password, hashes and the disk."""
import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import bench_member
import bench_storage
import bench_wconfd
import fettlelib
from bench_queue import ms, resident_mb, timed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'e2e'))
import api  # noqa: E402

CLIENTS = 16
VOLUMES = 960  # a page of them, beside one of so many more:
MORE = 10000
GETS = 300
DOWN_S = 3
READERS, WRITERS = 3, 5  # streams that stand still; a member has three at once
UNITS = {'api_get_cpu_us': ('us', ''), 'api_list_1000_cpu_ms': ('ms', ''), 'api_list_short_cpu_ms': ('ms', ''), 'floor_api_json_ms': ('ms', ''),
         'api_get_cpu_us_10000': ('us', ''), 'api_list_1000_cpu_ms_10000': ('ms', ''), 'api_list_short_cpu_ms_10000': ('ms', '')}


def tokens(build, figures):
    """tests/bench/bench_token.c prints medians of processor time."""
    out = subprocess.run([os.path.join(build, 'tests/bench/bench_token')], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True).stdout
    values = {name: float(value) for name, value in (line.split() for line in out.splitlines() if not line.startswith('<'))}
    figures.add('floor_aead_us', values['floor_aead_us'], 'us')
    figures.add('token_check_us', values['token_check_us'], 'us', '<= 50')


def in_memory(build, figures):
    """tests/bench/bench_api.c prints medians of processor time, of core/api alone; what it says besides is not of interest."""
    out = subprocess.run([os.path.join(build, 'tests/bench/bench_api')], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True).stdout
    values = {name: float(value) for name, value in (line.split() for line in out.splitlines() if not line.startswith('<'))}
    for name, value in values.items():
        figures.add(name, value, *UNITS[name])
    for name in ('api_get_cpu_us', 'api_list_1000_cpu_ms'):
        figures.add(f'{name}_times_1000', values[f'{name}_10000'] / values[name], 'times', '<= 1.25')


class Asking:
    """A client that keeps its connection."""

    def __init__(self, port, token=''):
        self.connection = http.client.HTTPConnection('127.0.0.1', port, timeout=120)
        self.connection.connect()
        self.connection.sock.setsockopt(6, 1, 1)  # TCP_NODELAY
        self.headers = {'X-Auth-Token': token, 'Content-Type': 'application/json', 'OpenStack-API-Version': 'volume 3.70'}

    def ask(self, method, path, body=None, good=(200, 201, 202, 204), headers=()):
        with contextlib.suppress(BrokenPipeError):  # what is refused is answered before its end
            self.connection.request(method, path, body=body, headers={**self.headers, **dict(headers)})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status in good, (method, path, answer.status, text[:300])
        return text


@contextlib.contextmanager
def bare(build, text):
    """libsoup alone, which answers with these bytes: its port."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        with subprocess.Popen([os.path.join(build, 'tests/bench/bench_http'), file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as server:
            yield int(server.stdout.readline().split()[1])
            server.stdin.close()


def beside_bare(build, client, path, times):
    """Times of one path, and of bare libsoup with the same bytes, in turn."""
    text = client.ask('GET', path)
    with bare(build, text) as port:
        other = Asking(port)
        values, floors = [], []
        for _ in range(times):
            values.append(timed(lambda: client.ask('GET', path)))
            floors.append(timed(lambda: other.ask('GET', path)))
    return values, floors


def logins(front, figures):
    """Beside one password that is checked by the same library."""
    library = ctypes.CDLL('libcrypt.so.1')
    floors = sorted(ms(timed(lambda: library.crypt(b'secret', b'$y$j9T$7l.Dd0H1fZ2m0p1Vw0rC/.'))) for _ in range(9))
    figures.floors['floor_yescrypt_ms'] = floors[len(floors) // 2]
    figures.add('floor_yescrypt_ms', floors, 'ms')
    figures.add('token_issue_ms', [ms(timed(front.login)) for _ in range(15)], 'ms', '<= 10 + 1 floor_yescrypt_ms')


def creates(front, base, token, count):
    """Each of the clients makes its volumes one after the other; what members do with them goes on beside. So many a second."""
    def work():
        client = Asking(front.port, token)
        for _ in range(count // CLIENTS):
            client.ask('POST', f'{base}/volumes', json.dumps({'volume': {'size': 1}}))
    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - begun)


def looks(build, front, token, base, figures, more):
    """One volume, and a page of them in full."""
    client = Asking(front.port, token)
    some = json.loads(client.ask('GET', f'{base}/volumes?limit=1'))['volumes'][0]['id']
    for name, path, times in (('api_get_us', f'{base}/volumes/{some}', GETS),
                              (f'api_list_{VOLUMES}_ms', f'{base}/volumes/detail?limit={VOLUMES}', 15)):
        values, floors = beside_bare(build, client, path, times)
        factor, unit = (1e6, 'us') if name.endswith('_us') else (1e3, 'ms')
        middle = sorted(factor * value for value in floors)[len(floors) // 2]
        figures.floors[f'floor_{name}{more}'] = middle
        figures.add(f'floor_{name}{more}', [factor * value for value in floors], unit)
        figures.add(name + more, [factor * value for value in values], unit,
                    f'<= 3 floor_{name}{more}' if unit == 'us' else '<= 40')
        yield name, sorted(values)[len(values) // 2]


def requests(build, lab, front, figures, folder):
    """With a back end in memory (bench_member.py) on node1, whose own service stands still meanwhile, and that of node2."""
    _, token, answer = front.login()
    project = answer['token']['project']['id']
    base = f'/volume/v3/{project}'
    client = Asking(front.port, token)
    client.ask('PUT', f'{base}/os-quota-sets/{project}', json.dumps({'quota_set': {'volumes': -1, 'gigabytes': -1}}))
    os.mkdir(os.path.join(folder, 'volumes'), 0o755)
    lab.cli('backend', 'add', 'volumes', '--kind', 'dir', '--nodes', 'node1,node2', '--path', os.path.join(folder, 'volumes'),
            '--overcommit', '100000')
    fettlelib.wait_until('it is served', lambda: states(lab) == ['up', 'up'], 60)
    for node in ('node1', 'node2'):
        lab.lab('pause', f'volumed@{node}')
    backend = next(row['uuid'] for row in lab.query('backend', ['name', 'uuid']) if row['name'] == 'volumes')
    member = bench_member.Member(lab.root('node1'), 'node1', backend)
    try:
        figures.add('volume_creates_per_s', creates(front, base, token, VOLUMES), '1/s', '>= 300', 0)
        fettlelib.wait_until('they are made', lambda: not lab.query('worker', ['id']), 240)
        few = dict(looks(build, front, token, base, figures, ''))
        member.ends = False
        figures.add(f'volume_creates_per_s_{MORE}', creates(front, base, token, MORE), '1/s', digits=0)
        fettlelib.wait_until('all are taken', lambda: len(member.taken) >= MORE, 240)
        many = dict(looks(build, front, token, base, figures, f'_{MORE}'))
        for name, value in many.items():
            figures.add(f'{name}_times_{VOLUMES}', value / few[name], 'times', '<= 1.25')
        figures.add('api_resident_mb_volumes', resident_mb(apid_of(lab)), 'MB', '<= 60', 1)
    finally:
        member.stop()
    cleanups(lab, front, token, base, figures)


def states(lab, backend='volumes'):
    return [row['state'] for row in lab.query('storage_service', ['host', 'state', 'backend']) if row['backend'] == backend]


def cleanups(lab, front, token, base, figures):
    """Of all the rows that node1's dead service has, by node2's, which does not begin before it has been measured."""
    lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', str(DOWN_S))
    lab.lab('resume', 'volumed@node2')
    fettlelib.wait_until('one is down, the other up', lambda: sorted(states(lab)) == ['down', 'up'], 120)
    lab.lab('pause', 'volumed@node2')
    asking, client = bench_wconfd.Client(lab.root('node1'), 'apid'), Asking(front.port, token)
    client.headers['OpenStack-API-Version'] = 'volume 3.24'
    times, alone = [], []
    for _ in range(5):
        alone.append(ms(timed(lambda: asking.call('request_cleanup', {'commit_id': str(uuid.uuid4())}))))
        times.append(ms(timed(lambda: client.ask('POST', f'{base}/workers/cleanup', '{}'))))
    asking.close()
    lab.lab('resume', 'volumed@node2')
    figures.add('floor_cleanup_request_ms', alone, 'ms')
    figures.add('cleanup_post_ms', times, 'ms', '<= 200')


def apid_of(lab):
    return next(d['pid'] for n in lab.status()['nodes'] if n['name'] == 'node1' for d in n['daemons'] if d['name'] == 'apid')


def serve_images(lab, folder, node):
    """The one back end of images is there, and nowhere else."""
    path = os.path.join(folder, node)
    os.mkdir(path, 0o755)
    if lab.query('backend', ['name'], ['=', 'name', 'images']):
        lab.cli('backend', 'remove', 'images', '--yes')
    lab.cli('backend', 'add', 'images', '--images', 'yes', '--nodes', node, '--path', path, '--overcommit', '100000')
    fettlelib.wait_until('it is served', lambda: states(lab, 'images') == ['up'], 60)


def make_image(front, token):
    wish = json.dumps({'name': 'i', 'disk_format': 'raw', 'container_format': 'bare'})
    made = json.loads(Asking(front.port, token).ask('POST', '/image/v2/images', wish))
    return f'/image/v2/images/{made["id"]}'


def put_image(front, token, place, path):
    with open(path, 'rb') as file:
        Asking(front.port, token).ask('PUT', f'{place}/file', file, headers={
            'Content-Type': 'application/octet-stream', 'Content-Length': str(bench_storage.IMAGE_MIB << 20)})


def get_image(front, token, place):
    client, found = Asking(front.port, token), hashlib.md5()
    client.connection.request('GET', f'{place}/file', headers=client.headers)
    with client.connection.getresponse() as answer:
        while piece := answer.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def both_ways(front, token, path, rates, names):
    """The image that it has made, which the caller deletes."""
    place = make_image(front, token)
    rates.setdefault(names[0], []).append(bench_storage.rate(timed(lambda: put_image(front, token, place, path))))
    found = []
    rates.setdefault(names[1], []).append(bench_storage.rate(timed(lambda: found.append(get_image(front, token, place)))))
    assert found[0] == json.loads(Asking(front.port, token).ask('GET', place))['checksum']
    return place


def servers_of(lab):
    """The processes by which members take and give bytes."""
    members = {d['pid'] for n in lab.status()['nodes'] for d in n['daemons'] if d['name'] == 'volumed'}
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
            name, _, rest = file.read().partition('(')[2].rpartition(')')
            if name == 'qemu-nbd' and int(rest.split()[1]) in members:
                found.append(int(pid))
    return found


def standing(lab, front, token, place, figures):
    """Streams that come in, to members that stand still, and such as go out, to clients that read nothing."""
    lab.cli('backend', 'modify', 'images', '--node', 'node1', '--node', 'node2', '--node', 'node3')
    fettlelib.wait_until('all serve', lambda: states(lab, 'images') == ['up'] * 3, 60)
    before, readers, writers = resident_mb(apid_of(lab)), [], []
    for _ in range(READERS):
        readers.append(Asking(front.port, token))
        readers[-1].connection.request('GET', f'{place}/file', headers=readers[-1].headers)
        readers[-1].answer = readers[-1].connection.getresponse()
        assert readers[-1].answer.status == 200, readers[-1].answer.status
    for _ in range(WRITERS):
        writers.append(Asking(front.port, token).connection)
        writers[-1].putrequest('PUT', f'{make_image(front, token)}/file')
        for name, value in (('X-Auth-Token', token), ('Content-Type', 'application/octet-stream'), ('Content-Length', str(1 << 30))):
            writers[-1].putheader(name, value)
        writers[-1].endheaders()
    fettlelib.wait_until('all have a server', lambda: len(servers_of(lab)) == READERS + WRITERS, 60)
    servers, left, most, piece = servers_of(lab), list(writers), before, os.urandom(1 << 20)
    for server in servers:
        os.kill(server, signal.SIGSTOP)
    for writer in writers:
        writer.sock.settimeout(2)
    while left:
        with contextlib.suppress(TimeoutError):
            left[0].sock.sendall(piece)
            left.append(left[0])
        most = max(most, resident_mb(apid_of(lab)))
        left.pop(0)
    for connection in writers + [reader.connection for reader in readers]:
        connection.close()
    for server in servers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGCONT)
    figures.add('image_stream_rss_mb', most - before, 'MB', '<= 16', 1)


def images(lab, front, figures, folder):
    """On one host, of random bytes; the slowest of hashes on one core, NBD alone and the disk is the floor. And between two, by TLS."""
    path = os.path.join(folder, 'image')
    with open(path, 'wb') as file:
        for _ in range(bench_storage.IMAGE_MIB):
            file.write(os.urandom(1 << 20))
    serve_images(lab, folder, 'node1')
    token, rates = front.login()[1], {}
    floors = {'hashes': [], 'nbd': [], 'disk': []}
    for _ in range(3):
        for name, function in (('hashes', lambda: bench_storage.hash_file(path)), ('nbd', lambda: bench_storage.by_nbd(path, folder)),
                               ('disk', lambda: bench_storage.write_file(path, folder))):
            floors[name].append(bench_storage.rate(timed(function)))
        place = both_ways(front, token, path, rates, ('image_upload_mib_s', 'image_download_mib_s'))
        fettlelib.wait_until('nobody has it', lambda: not servers_of(lab), 60)
        Asking(front.port, token).ask('DELETE', place)
    for name, values in floors.items():
        figures.add(f'floor_api_image_{name}_mib_s', values, 'MiB/s', digits=0)
    figures.floors['floor_api_image_mib_s'] = min(sorted(values)[1] for values in floors.values())
    for name, values in rates.items():
        figures.add(name, values, 'MiB/s', '>= 0.5 floor_api_image_mib_s', 0)
    over_tls(lab, front, token, figures, folder)


def over_tls(lab, front, token, figures, folder):
    client, rates = Asking(front.port, token), {}
    def left():
        found = json.loads(client.ask('GET', '/image/v2/images'))['images']
        for image in found:
            client.ask('DELETE', f'/image/v2/images/{image["id"]}', good=(204, 404, 409))
        return found
    fettlelib.wait_until('no image is left', lambda: not left() and not lab.query('worker', ['id']), 120, step=1)
    serve_images(lab, folder, 'node2')
    place = both_ways(front, token, os.path.join(folder, 'image'), rates, ('image_upload_tls_mib_s', 'image_download_tls_mib_s'))
    for name, values in rates.items():
        figures.add(name, values, 'MiB/s', digits=0)
    standing(lab, front, token, place, figures)


def idle(lab, front, figures):
    figures.add('api_resident_mb', resident_mb(apid_of(lab)), 'MB', '<= 25', 1)
    logins(front, figures)


def in_a_lab(build, figures):
    folder = tempfile.mkdtemp(prefix='fettle-bench-api-', dir='/var/tmp')
    os.chmod(folder, 0o755)
    try:
        with fettlelib.Lab(build) as lab:
            front = api.init(lab)
            fettlelib.wait_until('it answers', front.can_log_in, 60)
            figures.part('api_idle', 60, idle, lab, front, figures)
            figures.part('api_images', 240, images, lab, front, figures, folder)
            figures.part('api_volumes', 180, requests, build, lab, front, figures, folder)
    finally:
        shutil.rmtree(folder)


def measure(build, figures):
    figures.part('api', 60, in_memory, build, figures)
    figures.part('tokens', 30, tokens, build, figures)
    if figures.wants('api_idle', 'api_images', 'api_volumes'):
        figures.whole('lab of the API', in_a_lab, build, figures)
