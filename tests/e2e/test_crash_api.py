#!/usr/bin/env python3
"""Death of a front end of the API at each of its calls to the outside (io/crash.h), and of the commands that make its secrets, one after the other.

Whatever the moment, the next one answers, what was asked for was done wholly or not at all, nothing is left over, and the same request
again does the rest.
FETTLE_LONG=1 walks all of each operation, otherwise a point in the middle of some.
"""
import itertools
import os
import shutil
import stat
import tempfile

import api
import e2e
import test_api_images as images
import test_images as i
import test_volumes as v
from e2e import fettlelib, title, wait_until

lab = None
front = None
token = None
folder = None
numbers = itertools.count(1)
DATA = os.urandom(3 << 20) + b'end'
SAMPLES = {'create': 4, 'upload': 9, 'cleanup': 3}  # the points of the short form


def ask(method, path, body=None, **headers):
    """None: there was no answer."""
    try:
        status, _, answer = front.ask(method, path, body, token, {name.replace('_', '-'): value for name, value in headers.items()})
        return status, answer
    except api.HUNG_UP:
        return None


def volume_path(*names):
    return '/'.join(['/volume/v3', front.project, *names])


def serves():
    said = ask('GET', volume_path('volumes'))
    return said and said[0] == 200


def one_volume(name):
    found = [one for one in lab.query('volume', ['name', 'uuid', 'status', 'operation']) if one['name'] == name]
    assert len(found) <= 1, found
    return found[0] if found else None


# --- what is asked; each ends with all of it done, and nothing of it left ---

def token_once():
    def act():
        try:
            return front.login()[0]
        except api.HUNG_UP:
            return None

    def after(said):
        assert said in (None, 201) and act() == 201, said
    return act, after


def create():
    name = f'v{next(numbers)}'

    def act():
        said = ask('POST', volume_path('volumes'), {'volume': {'name': name, 'size': 1}})
        return said and said[0]

    def after(said):
        wait_until('its work has ended', lambda: v.is_settled(name), v.PATIENCE_S)
        assert one_volume(name) or said is None, f'{name} was accepted and is not there'
        if not one_volume(name):
            assert act() == 202
            wait_until('it is made', lambda: v.is_settled(name), v.PATIENCE_S)
        assert one_volume(name)['status'] == 'available', one_volume(name)
        v.check('dir1')
        lab.cli('volume', 'delete', name)
    return act, after


def delete():
    name = f'v{next(numbers)}'
    lab.cli('volume', 'create', name, '--size', '1', '--backend', 'dir1')
    uuid = one_volume(name)['uuid']
    wait_until('the front end knows it', lambda: ask('GET', volume_path('volumes', uuid))[0] == 200, v.PATIENCE_S)

    def act():
        said = ask('DELETE', volume_path('volumes', uuid))
        return said and said[0]

    def after(said):
        wait_until('its work has ended', lambda: v.is_settled(name), v.PATIENCE_S)
        assert not one_volume(name) or said is None, one_volume(name)
        if one_volume(name):
            assert one_volume(name)['status'] == 'available' and act() == 202
            wait_until('it is gone', lambda: not one_volume(name), v.PATIENCE_S)
        v.check('dir1')
    return act, after


def put(image):
    try:
        return images.put(image, DATA)[0]
    except api.HUNG_UP:
        return None


def upload():
    name = f'i{next(numbers)}'
    image = images.made(name)

    def act():
        return put(image)

    def after(said):
        wait_until('it is decided', lambda: images.status_of(name) in ('queued', 'active'), v.PATIENCE_S)
        i.check('dir1')
        assert images.status_of(name) == 'active' or said is None, f'{name} was taken, and is not active'
        if images.status_of(name) == 'queued':
            wait_until('it can be repeated', lambda: put(image) == 204, v.PATIENCE_S)
        assert ask('GET', f'/image/v2/images/{image}/file') == (200, DATA)
        assert ask('DELETE', f'/image/v2/images/{image}')[0] == 204
        wait_until('it is gone', lambda: name not in i.images(), v.PATIENCE_S)
        i.check('dir1')
    return act, after


def download():
    if 'kept' not in i.images():
        assert put(images.made('kept')) == 204
    image = i.images()['kept']['uuid']

    def act():
        said = ask('GET', f'/image/v2/images/{image}/file')
        assert said is None or said == (200, DATA)
        return said

    def after(_):
        assert ask('GET', f'/image/v2/images/{image}/file') == (200, DATA)
    return act, after


ATTACHING = {'OpenStack_API_Version': 'volume 3.44'}


def attachments():
    return [one for one in ask('GET', volume_path('attachments'), **ATTACHING)[1]['attachments'] if one['volume_id'] == one_volume('held')['uuid']]


def attach():
    body = {'attachment': {'volume_uuid': one_volume('held')['uuid'], 'instance_uuid': e2e.uuid_of(lab, 'resting')}}
    said = ask('POST', volume_path('attachments'), body, **ATTACHING)
    return said and said[0]


def let_go():
    for one in attachments():
        assert ask('DELETE', volume_path('attachments', one['id']), **ATTACHING)[0] == 200
    wait_until('it is nobody\'s', lambda: one_volume('held')['status'] == 'available' and not attachments(), v.PATIENCE_S)


def attachment_create():
    let_go()

    def after(said):
        assert len(attachments()) == 1 or (said is None and not attachments())
        if not attachments():
            assert attach() == 200
        assert [one['status'] for one in attachments()] == ['reserved'], attachments()
        let_go()
    return attach, after


def attachment_complete():
    let_go()
    assert attach() == 200
    one = attachments()[0]['id']

    def act():
        said = ask('POST', volume_path('attachments', one, 'action'), {'os-complete': {}}, **ATTACHING)
        return said and said[0]

    def after(_):
        def done():
            act()
            return [found['status'] for found in attachments()] == ['attached']
        wait_until('it is attached', done, v.PATIENCE_S)
        assert lab.query('volume', ['instance'], ['=', 'name', 'held'])[0]['instance'] == 'resting'
        lab.cli('volume', 'detach', 'held')
        let_go()
    return act, after


def asked():
    lab.cli('tag', 'add', 'cluster', f't{next(numbers)}')  # who is asked has all of before then
    return [row['host'] for row in lab.query('storage_service', ['host', 'cleanup']) if row['cleanup']]


def working():
    return {one['worker'] for one in lab.query('image', ['worker']) if one['worker']}


def cleanup():
    """Of two services that are down in mid-work, which nobody else can do: so what was asked stays on record."""
    down = {'node1@dir1', 'node2@dir1'}
    started = [images.Upload(images.made(f'half{next(numbers)}'), 8 << 20) for _ in range(5)]  # each has three at a time
    for one in started:
        one.send(DATA)
    wait_until('both are at work', lambda: working() == down, v.PATIENCE_S)
    for node in (1, 2):
        lab.lab('pause', f'volumed@node{node}')
    for one in started:
        one.gone()
    wait_until('they count as down', lambda: {host for host, state in v.services().items() if state == 'down'} >= down, v.PATIENCE_S)

    def act():
        return ask('POST', volume_path('workers', 'cleanup'), {}, OpenStack_API_Version='volume 3.24')

    def after(said):
        on_record = set(asked())
        assert on_record in (set(), down), on_record
        assert on_record or said is None, said
        status, answer = act()
        assert status == 202 and {one['host'] for one in answer['unavailable']} >= down, answer
        assert set(asked()) == down, asked()
        for node in (1, 2):
            lab.lab('resume', f'volumed@node{node}')
        wait_until('nothing is left of them', lambda: not working() and all(one['status'] != 'saving' for one in i.images().values()), v.PATIENCE_S)
        for one in i.images().values():
            if one['name'].startswith('half'):
                assert one['status'] == 'queued' and ask('DELETE', f'/image/v2/images/{one["uuid"]}')[0] == 204, one
        wait_until('they are up', lambda: set(v.services().values()) == {'up'}, v.PATIENCE_S)
        i.check('dir1')
    return act, after


# --- one front end after the other ---

def armed(at, name):
    since, once = (os.path.join(folder, f'{word}-{name}-{at}') for word in ('since', 'once'))
    lab.lab('restart', 'apid@node1', f'FETTLE_CRASH_AT={at}', f'FETTLE_CRASH_SINCE={since}', f'FETTLE_CRASH_ONCE={once}')
    wait_until('the front end serves', serves, v.PATIENCE_S)
    return since, once


def walk(name, begin, sample=None):
    for at in itertools.count(1) if e2e.LONG else (sample,):
        act, after = begin()
        since, once = armed(at, name)
        with open(since, 'w', encoding='utf-8'):
            pass
        said = act()
        died = os.path.exists(once)
        try:
            wait_until('the front end serves', serves, v.PATIENCE_S)
            after(said)
        except Exception as error:
            raise AssertionError(f'{name}: the front end, ended at its point {at}{"" if died else " (not reached)"}: {error}') from error
        if not died:
            assert at > 2 and e2e.LONG, f'{name} has not come to point {at}'
            print(f'# {name}: {at - 1} crash points', flush=True)
            return
        assert at < 200, f'{name} has no end'


def walker(name, begin, ids=''):
    return title(f'/crash-api/{name}{ids}')(lambda: walk(name, begin, SAMPLES.get(name)))


# --- commands ---

def dies(at, name, *words):
    """Whether it has come to that."""
    once = os.path.join(folder, f'once-{name}-{at}')
    lab.run(*words, check=False, env={'FETTLE_CRASH_AT': str(at), 'FETTLE_CRASH_ONCE': once})
    return os.path.exists(once)


def walk_command(name, step, *words):
    for at in itertools.count(1):
        died = dies(at, name, *words)
        try:
            step(died)
        except Exception as error:
            raise AssertionError(f'{" ".join(words)}, ended at its point {at}{"" if died else " (not reached)"}: {error}') from error
        if not died:
            assert at > 1
            print(f'# {name}: {at - 1} crash points', flush=True)
            return


@title('/crash-api/init#SAF-100')
def test_init():
    port = str(fettlelib.free_port())
    words = ('api', 'init', '--node', 'node2', '--listen', port)

    def step(died):
        """What is there is named, and can be taken away; then it is made."""
        if died:
            code, out, err = lab.run(*words, '--json', check=False)
            assert code == 0 or 'has a front end already' in err, err
        if not died or code != 0:
            lab.cli('api', 'remove', '--node', 'node2', '--yes')
            out = lab.cli(*words, '--json')
        other = api.Front(lab, 'node2', int(port), api.json.loads(out)['password'])
        wait_until('its administrator can log in', other.can_log_in, v.PATIENCE_S)
        lab.cli('api', 'remove', '--node', 'node2', '--yes')
    walk_command('init', step, *words)


@title('/crash-api/rotate-keys')
def test_rotate():
    def step(_):
        global token
        path = os.path.join(lab.root('node1'), 'etc', 'api-keys')
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert serves(), 'the token of before is good for nothing'
        lab.cli('api', 'rotate-keys')
        token = front.login()[1]
        assert serves()
    walk_command('rotate', step, 'api', 'rotate-keys')


@title('/crash-api/reset-password')
def test_reset():
    def step(_):
        global token
        front.password = lab.json('api', 'reset-password', 'admin')['password']
        status, token, _ = front.login()
        assert status == 201
        images.TOKEN = token
    walk_command('reset', step, 'api', 'reset-password', 'admin')


@title('/crash-api/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


def begin_all():
    global front, token
    v.add_backend('dir1', 'node1', 'node2')
    lab.cli('backend', 'modify', 'dir1', '--images', 'yes')
    lab.do('OP_INSTANCE_CREATE', instance_name='resting', pnode='node1', disk_template='diskless', disks=[], memory=8, os_type='tick', start=False)
    front = images.front = api.init(lab)
    wait_until('somebody can log in', front.can_log_in, v.PATIENCE_S)
    _, token, body = front.login()
    images.TOKEN, front.project = token, body['token']['project']['id']
    wait_until('the front end serves', serves, v.PATIENCE_S)
    assert ask('POST', volume_path('volumes'), {'volume': {'name': 'held', 'size': 1}})[0] == 202
    wait_until('it is made', lambda: v.is_settled('held'), v.PATIENCE_S)


if __name__ == '__main__':
    folder = tempfile.mkdtemp(prefix='fettle-crash-', dir='/var/tmp')
    try:
        with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
            i.lab = v.lab = images.lab = lab
            v.folder = os.path.join(lab.directory, 'shared')
            lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
            begin_all()
            sampled = [walker('create', create, '#SAF-30'), walker('upload', upload, '#SAF-60'), walker('cleanup', cleanup, '#CLN-25')]
            others = [walker('token', token_once), walker('delete', delete), walker('download', download),
                      walker('attachment-create', attachment_create), walker('attachment-complete', attachment_complete),
                      test_init, test_rotate, test_reset]
            e2e.run(*sampled, *(others if e2e.LONG else ()), test_logs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
