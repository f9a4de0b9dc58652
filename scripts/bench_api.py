"""What the API costs: core/api in memory, and a front end of a lab, beside bare libsoup, one password, hashes and the disk."""
import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import bench_storage
import fettlelib
from bench_queue import ms, resident_mb, timed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'e2e'))
import api  # noqa: E402

CLIENTS = 16
VOLUMES = 320
GETS = 300
IMAGE_MIB = 256
UNITS = {'api_get_cpu_us': ('us', ''), 'api_list_1000_cpu_ms': ('ms', ''), 'api_list_short_cpu_ms': ('ms', ''), 'floor_api_json_ms': ('ms', ''),
         'api_get_cpu_us_10000': ('us', ''), 'api_list_1000_cpu_ms_10000': ('ms', ''), 'api_list_short_cpu_ms_10000': ('ms', '')}


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


def creates(front, base, token, figures):
    """Each of the clients makes its volumes one after the other; what members do with them goes on beside."""
    def work(count):
        client = Asking(front.port, token)
        for _ in range(count):
            client.ask('POST', f'{base}/volumes', json.dumps({'volume': {'size': 1}}))
    threads = [threading.Thread(target=work, args=(VOLUMES // CLIENTS,)) for _ in range(CLIENTS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    figures.add('volume_creates_per_s', VOLUMES / (time.perf_counter() - begun), '1/s', '>= 300', 0)


def requests(build, lab, front, figures):
    _, token, answer = front.login()
    project = answer['token']['project']['id']
    base = f'/volume/v3/{project}'
    client = Asking(front.port, token)
    client.ask('PUT', f'{base}/os-quota-sets/{project}', json.dumps({'quota_set': {'volumes': -1, 'gigabytes': -1}}))
    creates(front, base, token, figures)
    some = json.loads(client.ask('GET', f'{base}/volumes?limit=1'))['volumes'][0]['id']
    fettlelib.wait_until('they are made', lambda: not lab.query('worker', ['id']), 240)
    for name, path, times in (('api_get_us', f'{base}/volumes/{some}', GETS), (f'api_list_{VOLUMES}_ms', f'{base}/volumes/detail', 15)):
        values, floors = beside_bare(build, client, path, times)
        factor, unit = (1e6, 'us') if name.endswith('_us') else (1e3, 'ms')
        figures.floors[f'floor_{name}'] = sorted(factor * value for value in floors)[len(floors) // 2]
        figures.add(f'floor_{name}', [factor * value for value in floors], unit)
        figures.add(name, [factor * value for value in values], unit, f'<= 3 floor_{name}' if unit == 'us' else '')
    figures.add('api_resident_mb_volumes', resident_mb(apid_of(lab)), 'MB', '<= 60', 1)


def apid_of(lab):
    return next(d['pid'] for n in lab.status()['nodes'] if n['name'] == 'node1' for d in n['daemons'] if d['name'] == 'apid')


def images(lab, front, figures, folder):
    """On one host, of random bytes; the slowest of hashes on one core, NBD alone and the disk is the floor."""
    path = os.path.join(folder, 'image')
    with open(path, 'wb') as file:
        for _ in range(IMAGE_MIB):
            file.write(os.urandom(1 << 20))
    os.mkdir(os.path.join(folder, 'images'), 0o755)
    lab.cli('backend', 'add', 'images', '--images', 'yes', '--nodes', 'node1', '--path', os.path.join(folder, 'images'), '--overcommit', '100000')
    fettlelib.wait_until('it is served', lambda: [row['state'] for row in lab.query('storage_service', ['state', 'backend'])
                                                  if row['backend'] == 'images'] == ['up'], 60)
    token = front.login()[1]
    before, most = resident_mb(apid_of(lab)), 0
    floors = {'hashes': [], 'nbd': [], 'disk': []}
    rates = {'image_upload_mib_s': [], 'image_download_mib_s': []}
    for _ in range(3):
        for name, function in (('hashes', lambda: bench_storage.hash_file(path)), ('nbd', lambda: bench_storage.by_nbd(path, folder)),
                               ('disk', lambda: bench_storage.write_file(path, folder))):
            floors[name].append(IMAGE_MIB / timed(function))
        wish = json.dumps({'name': 'i', 'disk_format': 'raw', 'container_format': 'bare'})
        made = json.loads(Asking(front.port, token).ask('POST', '/image/v2/images', wish))
        place = f'/image/v2/images/{made["id"]}'
        with open(path, 'rb') as file:
            took = timed(lambda file=file, place=place: Asking(front.port, token).ask(
                'PUT', f'{place}/file', file, headers={'Content-Type': 'application/octet-stream', 'Content-Length': str(IMAGE_MIB << 20)}))
        rates['image_upload_mib_s'].append(IMAGE_MIB / took)
        most = max(most, resident_mb(apid_of(lab)))
        got = []
        took = timed(lambda place=place, got=got: got.append(Asking(front.port, token).ask('GET', f'{place}/file')))
        assert hashlib.md5(got[0]).hexdigest() == json.loads(Asking(front.port, token).ask('GET', place))['checksum']
        rates['image_download_mib_s'].append(IMAGE_MIB / took)
        most = max(most, resident_mb(apid_of(lab)))
        Asking(front.port, token).ask('DELETE', place)
    for name, values in floors.items():
        figures.add(f'floor_api_image_{name}_mib_s', values, 'MiB/s', digits=0)
    figures.floors['floor_api_image_mib_s'] = min(sorted(values)[1] for values in floors.values())
    for name, values in rates.items():
        figures.add(name, values, 'MiB/s', '>= 0.5 floor_api_image_mib_s', 0)
    figures.add('image_stream_rss_mb', most - before, 'MB', '<= 16', 1)


def in_a_lab(build, figures):
    folder = tempfile.mkdtemp(prefix='fettle-bench-api-', dir='/var/tmp')
    try:
        with fettlelib.Lab(build, nodes=1) as lab:
            front = api.init(lab)
            fettlelib.wait_until('it answers', front.can_log_in, 60)
            figures.add('api_resident_mb', resident_mb(apid_of(lab)), 'MB', '<= 25', 1)
            logins(front, figures)
            images(lab, front, figures, folder)
            os.mkdir(os.path.join(folder, 'volumes'), 0o755)
            lab.cli('backend', 'add', 'volumes', '--kind', 'dir', '--nodes', 'node1', '--path', os.path.join(folder, 'volumes'),
                    '--overcommit', '100000')
            fettlelib.wait_until('it is served', lambda: [row['state'] for row in lab.query('storage_service', ['state', 'backend'])
                                                          if row['backend'] == 'volumes'] == ['up'], 60)
            requests(build, lab, front, figures)
    finally:
        shutil.rmtree(folder)


def measure(build, figures):
    figures.part('api', 60, in_memory, build, figures)
    figures.part('api_lab', 180, in_a_lab, build, figures)
