#!/usr/bin/env python3
"""The configuration as a document, as a backup and as small files: out, changed, back in, wrecked, restored, on real guests."""
import copy
import glob
import json
import os
import shutil
import stat
import tempfile
import time

import bus
import e2e
from e2e import ROOT, fettlelib, title, wait_until

lab = None
folder = None
THREE_YEARS_S = 3 * 365 * 86400
SSCONF = ('cluster_name', 'cluster_uuid', 'master_node', 'master_ip', 'node_list', 'node_primary_ips', 'master_candidates',
          'master_candidates_ips', 'online_nodes', 'offline_nodes', 'serial')


def path(name):
    return os.path.join(folder, name)


def load(name):
    with open(path(name), encoding='utf-8') as file:
        return json.load(file)


def save(name, document):
    with open(path(name), 'w', encoding='utf-8') as file:
        json.dump(document, file)
    return path(name)


def export(name, *flags):
    lab.cli('cluster', 'export', '--to', path(name), *flags)
    return load(name)


def serial():
    return export('serial.json')['serial']


def only(objects):
    assert len(objects) == 1, objects
    return next(iter(objects.values()))


def expect(code, message, *args):
    e2e.expect_cli_error(lab, code, 'fettle: ' + message, *args)


# --- documents ---

@title('/archive/export')
def test_export():
    first = export('first.json')
    assert stat.S_IMODE(os.stat(path('first.json')).st_mode) == 0o600
    again = export('again.json')
    # Jobs, decisions and services may come in between; everything else is the same text in the same order.
    for document in (first, again):
        for past in ('taken', 'serial'):
            document.pop(past)
        document['objects'].pop('decision', None)
        document['objects'].pop('service', None)
    assert json.dumps(first) == json.dumps(again)
    assert first['format'] == 'fettle-configuration' and first['version'] == 1
    assert set(first['objects']) >= {'cluster', 'nodegroup', 'node', 'instance', 'replica', 'counter', 'job'}
    assert 'secret' not in first['objects']
    secrets = export('secrets.json', '--with-secrets')
    assert secrets['secrets'] and secrets['objects']['secret']['confd']['value']
    assert secrets['objects']['rapi_user'] == {}  # that there is none is said, too
    printed = json.loads(lab.cli('cluster', 'export'))
    assert printed['objects']['instance'] == first['objects']['instance']


@title('/archive/export-change-import')
def test_import():
    uuid = e2e.uuid_of(lab, 'web1')
    before = export('before.json')
    lab.cli('cluster', 'modify', '--max-running-jobs', '7')
    lab.cli('tag', 'add', 'instance', 'web1', 'late')
    lab.cli('instance', 'reboot', 'web1', '--reboot-type', 'full', '--shutdown-timeout', '0')
    e2e.wait_healthy(lab, 'web1')
    generation = lab.instance('web1', 'generation')['generation']
    plan = lab.cli('cluster', 'import', path('before.json'), '--dry-run')
    assert 'change cluster ' in plan and 'max_running_jobs: 7 -> 20' in plan, plan
    assert 'remove tag late of instance web1\n' in plan, plan
    assert '2 changes would be made; none was.\n' in plan, plan
    expect(2, 'changes would be made: 2; none was: look at them with --dry-run, then give --yes', 'cluster', 'import',
           path('before.json'))
    said = lab.cli('cluster', 'import', path('before.json'), '--yes')
    assert said.endswith('2 changes are made.\n'), said
    after = export('after.json')
    assert only(after['objects']['cluster']) == only(before['objects']['cluster'])
    # The guest was not asked about its generation: what runs is not a matter of a file.
    assert lab.instance('web1', 'generation')['generation'] == generation
    assert e2e.running_copies(lab, uuid) == 1
    said = lab.cli('cluster', 'import', path('before.json'), '--yes')
    assert said.endswith('Nothing to change: the cluster is as the file says.\n'), said
    e2e.verify_clean(lab)


@title('/archive/users-of-rest')
def test_rest_users():
    """They stay, unless the file has a word of them."""
    lab.run('rapi', 'user', 'add', 'alice', typed='one\n')
    users = lab.cli('rapi', 'user', 'list')
    without = export('without-users.json')
    assert 'alice' in users and 'rapi_user' not in without['objects'], (users, without['objects'].keys())
    said = lab.cli('cluster', 'import', path('without-users.json'), '--yes')
    assert said.endswith('Nothing to change: the cluster is as the file says.\n'), said
    export('users.json', '--with-secrets')
    lab.cli('rapi', 'user', 'remove', 'alice')
    said = lab.cli('cluster', 'import', path('users.json'), '--yes')
    assert 'add rapi_user alice\n' in said and lab.cli('rapi', 'user', 'list') == users, said
    said = lab.cli('cluster', 'import', path('secrets.json'), '--yes')
    assert 'remove rapi_user alice\n' in said and 'alice' not in lab.cli('rapi', 'user', 'list'), said


@title('/archive/bad-documents')
def test_bad_documents():
    good = export('good.json')
    at = good['serial']
    file = path('bad.json')

    def refused(message, change):
        document = json.loads(json.dumps(good))
        change(document)
        save('bad.json', document)
        expect(2, f'{file}: {message}', 'cluster', 'import', file, '--yes')

    uuid, web1 = next((u, i) for u, i in good['objects']['instance'].items() if i['name'] == 'web1')
    refused('instance web1: memory: must be at least 1 (MiB); nothing was changed',
            lambda d: d['objects']['instance'][uuid].update(memory=0))
    refused(f'instance web1 ({uuid}): is not in the file; an import removes no instance; use `fettle instance remove`, or put '
            'it into the file; nothing was changed', lambda d: d['objects']['instance'].pop(uuid))
    refused('version: is 2; this version of Fettle reads 1 and older: import it with the newer Fettle that wrote it',
            lambda d: d.update(version=2))
    refused('objects.gadget: is no kind of object', lambda d: d['objects'].update(gadget={}))
    other = '00000000-0000-4000-8000-000000000001'
    own = only(good['objects']['cluster'])
    refused(f'cluster.uuid: is {other} (x), and this is the cluster {own["uuid"]} ({own["name"]}); a document goes back only '
            'into the cluster that it came from', lambda d: d.update(cluster={'uuid': other, 'name': 'x'}))
    save('bad.json', {**good, 'more': 'x' * (16 << 20)})
    code, _, err = lab.run('cluster', 'import', file, '--yes', check=False)
    assert code == 22 and err.startswith(f'fettle: {file}: has 16') and 'Import in parts: ' in err, err
    with open(path('good.json'), encoding='utf-8') as source, open(file, 'w', encoding='utf-8') as target:
        target.write(source.read()[:-20])
    code, _, err = lab.run('cluster', 'import', file, '--yes', check=False)
    assert code == 21 and err.startswith(f'fettle: {file}: '), err
    assert web1 and serial() == at


@title('/archive/import-waits-for-nobody')
def test_import_refused():
    document = export('busy.json')
    only(document['objects']['cluster'])['max_running_jobs'] = 9
    file = save('busy.json', document)
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 4, 'on_master': True})
    wait_until('the job runs', lambda: lab.job_status(job)[0] == 'running')
    code, _, err = lab.run('cluster', 'import', file, '--yes', check=False)
    assert code == 5 and f'job {job} is under way; nothing is imported while jobs run.' in err, err
    lab.wait_job(job)
    assert only(export('busy2.json')['objects']['cluster'])['max_running_jobs'] == 20


def verify_clean():
    """But for the pool of candidates, which the documents that are imported here ask for, and this lab has no daemons for."""
    def clean():
        code, out = e2e.verify(lab)[:2]
        problems = [line for line in out.splitlines()[:-1] if not line.startswith('note: ')]
        return code == 0 or all(line.startswith('cluster: 1 of 3 master candidates is usable') for line in problems)
    wait_until('cluster verify is clean', clean, 60)


@title('/archive/import-ganeti')
def test_ganeti():
    sample = os.path.join(ROOT, 'tests/fuzz/corpus/ganeti')
    at = serial()
    code, out, err = lab.run('cluster', 'import-ganeti', os.path.join(sample, 'problems.json'), '--yes', check=False)
    assert code == 2 and '"rbd" has no counterpart here' in err and err.rstrip().endswith('nothing was changed'), err
    code, out, err = lab.run('--json', 'cluster', 'import-ganeti', os.path.join(sample, 'problems.json'), check=False)
    assert code == 2 and not out and json.loads(err)['error']['message'].count('; ') >= 6, err
    plan = lab.cli('cluster', 'import-ganeti', os.path.join(sample, '3.0.json'), '--dry-run')
    assert 'add instance mail.example.org\n' in plan and 'note: cluster: max_tracked_jobs has no counterpart here: 25\n' in plan
    assert serial() == at
    lab.cli('cluster', 'import-ganeti', os.path.join(sample, '3.0.json'), '--yes')
    wait_until('luxid has been told', lambda: lab.instance('mail.example.org', 'name'))
    row = lab.instance('mail.example.org', 'disk_template', 'be/memory', 'status', 'pnode', 'tags')
    assert row == {'disk_template': 'mirror', 'be/memory': 1024, 'status': 'ADMIN_down', 'pnode': 'node1',
                   'tags': ['owner:ops']}, row
    assert 'nightly-backup' in lab.cli('queue', 'filter', 'list')
    public = lab.cli('network', 'info', 'public')
    assert '203.0.113.7' in public and '203.0.113.2-203.0.113.5' in public, public
    # Back to where it was, for the tests that follow.
    for name in ('mail.example.org', 'web.example.org', 'probe'):
        lab.do('OP_INSTANCE_REMOVE', instance_name=name, ignore_failures=True)
    lab.cli('node', 'modify', 'node2', '--drained', 'no')
    lab.cli('cluster', 'modify', '--candidate-pool-size', '3')
    lab.cli('network', 'remove', 'public')
    lab.cli('queue', 'filter', 'remove', '78000000-0000-4000-8000-000000000001')
    verify_clean()


# What one thing in a config.data is spoilt to (the document, its first instance), and what is said of it.
NAME_RULE = "name: must be a name: 1 to 63 of a-z, 0-9, '.' and '-' (no upper case), the first a letter or digit"
HOSTILE = (
    (lambda d, i: i.update(name='../../etc/passwd'), f'instance ../../etc/passwd: {NAME_RULE}'),
    (lambda d, i: i.update(name='a\x1b[2J\nb'), f'instance a [2J b: {NAME_RULE}'),
    (lambda d, i: i.update(name=5), f'instance : {NAME_RULE}'),
    (lambda d, i: i['beparams'].update(maxmem=1 << 62), 'instance mail.example.org: memory: must be at most 16777216 (MiB)'),
    (lambda d, i: i['beparams'].update(vcpus=-1), 'instance mail.example.org: vcpus: must be at least 1'),
    (lambda d, i: i.update(primary_node=i['uuid']),
     'instance mail.example.org: primary_node: "7c000000-0000-4000-8000-000000000001" is no node of this cluster'),
    (lambda d, i: i.update(disks=[i['uuid']]), 'instance mail.example.org: disks[0]: the file has no disk "7c000000-0000-4000-8000-000000000001"'),
    (lambda d, i: i.update(disks=i['disks'] * 3000), 'instance mail.example.org: disks: must have at most 16 elements, has 3000'),
    (lambda d, i: i.update(nics=i['nics'] * 3000), 'instance mail.example.org: nics: must have at most 8 elements, has 3000'),
    (lambda d, i: d.update(instances=[i]), 'instances: is missing, or is no object; this is no config.data of Ganeti'),
    (lambda d, i: d.update(version='9' * 30), 'version: is missing; this is no config.data of Ganeti'),
    (lambda d, i: d.update(more=json.loads('[' * 100 + ']' * 100)), 'JSON is nested deeper than 32 levels'),
)


def refused_ganeti(file, message):
    code, out, err = lab.run('cluster', 'import-ganeti', file, '--yes', check=False)
    said = f'fettle: {file}: {message}'
    assert code in (2, 21, 22) and err in (f'{said}\n', f'{said}; nothing was changed\n'), (code, err[:600], message)
    assert '\x1b' not in out


@title('/archive/import-ganeti-hostile#SAF-108')
def test_hostile_ganeti():
    """A config.data that somebody wrote: what is wrong is said, no control character of it reaches the terminal, nothing is changed."""
    with open(os.path.join(ROOT, 'tests/fuzz/corpus/ganeti/3.0.json'), encoding='utf-8') as sample:
        good = json.load(sample)
    at = serial()
    for spoil, message in HOSTILE:
        document = copy.deepcopy(good)
        spoil(document, next(iter(document['instances'].values())))
        refused_ganeti(save('hostile.json', document), message)
    for text, message in ((b'\0' * 100, "broken JSON at byte 1 (line 1): '[' or '{' expected near end of file"),
                          (b'\xff\xfe{}', 'broken JSON at byte 0 (line 1): unable to decode byte 0xff'),
                          (b'[' * 1000000, 'JSON is nested deeper than 32 levels')):
        with open(path('hostile.json'), 'wb') as file:
            file.write(text)
        refused_ganeti(path('hostile.json'), message)
    assert serial() == at and not lab.instance('mail.example.org', 'name')


# --- ssconf ---

def ssconf(node, name):
    try:
        with open(os.path.join(lab.root(node), 'var/ssconf', name), encoding='utf-8') as file:
            return file.read()
    except FileNotFoundError:
        return None


def rename_cluster(name):
    document = export('rename.json')
    only(document['objects']['cluster'])['name'] = name
    lab.cli('cluster', 'import', save('rename.json', document), '--yes')


def all_have(nodes, name, text):
    return all(ssconf(node, name) == text for node in nodes)


def settled(files):
    """When the files were last written, after nobody has written one for a while."""
    times = []
    def quiet():
        before, times[:] = list(times), [os.stat(f).st_mtime_ns for f in files]
        return before == times
    wait_until('no file is written any more', quiet, 30, step=2)
    return times


@title('/archive/ssconf#WCF-20')
def test_ssconf():
    nodes = ['node1', 'node2', 'node3']
    assert all(set(os.listdir(os.path.join(lab.root(n), 'var/ssconf'))) == set(SSCONF) for n in nodes)
    assert all_have(nodes, 'node_list', 'node1\nnode2\nnode3\n')
    assert all_have(nodes, 'master_node', 'node1\n')
    old = ssconf('node3', 'cluster_name')
    rename_cluster('east')
    wait_until('every node has the new name', lambda: all_have(nodes, 'cluster_name', 'east\n'), 30, step=0.02)
    wait_until('every node is done with it', lambda: len({ssconf(n, 'serial') for n in nodes}) == 1, 30)
    # What touches none of these facts writes none of them.
    files = [os.path.join(lab.root(n), 'var/ssconf', f) for n in nodes for f in SSCONF]
    times = settled(files)
    lab.cli('tag', 'add', 'cluster', 'quiet')
    lab.cli('cluster', 'modify', '--max-running-jobs', '19')
    lab.cli('cluster', 'modify', '--max-running-jobs', '20')
    time.sleep(1.5)
    assert [os.stat(f).st_mtime_ns for f in files] == times
    # Who was away gets them when it is back.
    lab.lab('link', 'node3', 'down')
    rename_cluster(old.strip())
    wait_until('the others have the old name', lambda: all_have(nodes[:2], 'cluster_name', old), 30, step=0.02)
    assert ssconf('node3', 'cluster_name') == 'east\n'
    lab.lab('link', 'node3', 'up')
    wait_until('node3 has it too', lambda: all_have(nodes, 'cluster_name', old), 60)
    wait_until('every node is done with it', lambda: len({ssconf(n, 'serial') for n in nodes}) == 1, 10)
    assert int(ssconf('node3', 'serial')) > 1
    verify_clean()


# --- backups ---

def damaged(name, change):
    with open(path('backup'), 'rb') as file:
        data = bytearray(file.read())
    data = change(data)
    with open(path(name), 'wb') as file:
        file.write(data)
    return path(name)


def flip(data, at):
    data[at] ^= 1
    return data


def cluster_name():
    return only(export('name.json')['objects']['cluster'])['name']


@title('/archive/only-plain-files-are-replaced')
def test_typed():
    """A device, a pipe or a link would be a plain file from then on, and a backup into a disk that is not mounted would be none."""
    special = {'device': lambda at: os.mknod(at, 0o600 | stat.S_IFCHR, os.makedev(1, 3)), 'pipe': os.mkfifo,
               'link': lambda at: os.symlink(path('aim'), at), 'folder': os.mkdir}
    for name, make in special.items():
        make(path(name))
        before = os.lstat(path(name))
        for command in ('backup', 'export'):
            expect(2, f'{path(name)} is there, and no plain file; what is written would take its place, so give another name',
                   'cluster', command, '--to', path(name))
        after = os.lstat(path(name))
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode) and not os.path.exists(path('aim'))
    there = path('unmounted/backup')
    for command in ('backup', 'export'):
        expect(2, f'{there}: folder {path("unmounted")}: No such file or directory; make it first, or mount it', 'cluster', command, '--to', there)


@title('/archive/backup-refuses-damage')
def test_damage():
    lab.cli('cluster', 'backup', '--to', path('backup'))
    assert stat.S_IMODE(os.stat(path('backup')).st_mode) == 0o600
    name = cluster_name()
    torn = damaged('torn', lambda d: d[:-100])
    expect(23, f'{torn} is damaged: it is cut off, 100 bytes are missing; nothing was changed, take another backup',
           'cluster', 'restore', torn, '--confirm', name)
    flipped = damaged('flipped', lambda d: flip(d, len(d) // 2))
    expect(23, f'{flipped} is damaged: its part store.db does not match its checksum; nothing was changed, take another '
           'backup', 'cluster', 'restore', flipped, '--confirm', name)
    newer = damaged('newer', lambda d: d.replace(b'fettle-backup 1\n', b'fettle-backup 2\n', 1))
    expect(2, f'{newer} is a backup of version 2, and this Fettle reads version 1: restore it with the newer Fettle that '
           'wrote it', 'cluster', 'restore', newer, '--confirm', name)
    foreign = path('before.json')
    expect(2, f'{foreign} is no backup of Fettle: it does not begin with "fettle-backup 1"', 'cluster', 'restore', foreign,
           '--confirm', name)
    expect(17, f'"wrong" is not the name of the cluster ({name}); nothing was changed', 'cluster', 'restore', path('backup'),
           '--confirm', 'wrong')
    store = os.path.join(lab.root('node1'), 'var/store.db')
    expect(5, f'fettle-wconfd of this node runs and has {store}; stop it first: systemctl stop fettle.target', 'cluster',
           'restore', path('backup'), '--confirm', name)
    assert not glob.glob(store + '.before-*') and not os.path.exists(store + '.restore')


def restore_surely(name, ahead_s=0):
    """wconfd is started again and again on the wreck; in between the restore has its turn."""
    patience = fettlelib.Patience(60)
    while True:
        code, out, err = lab.run('cluster', 'restore', path('backup'), '--confirm', name, check=False,
                                 env={'FETTLE_CLOCK_AHEAD_MS': str(ahead_s * 1000)})
        if code == 0:
            return out
        assert 'fettle-wconfd of this node runs' in err and not patience.is_over(), err
        time.sleep(0.1)


def wreck_store():
    store = os.path.join(lab.root('node1'), 'var/store.db')
    with open(store, 'r+b') as file:
        file.seek(4096)
        file.write(os.urandom(8192))
    for ending in ('-wal', '-shm'):
        if os.path.exists(store + ending):
            os.unlink(store + ending)
    lab.lab('kill', 'wconfd@node1')
    log = os.path.join(lab.directory, 'log', 'node1')
    wait_until('wconfd says that the store is damaged', lambda: says(log, 'is damaged'), 30)


def says(log, text):
    for name in glob.glob(os.path.join(log, '**', '*wconfd*'), recursive=True):
        with open(name, encoding='utf-8', errors='replace') as file:
            if text in file.read():
                return True
    return False


def restore_five_times(name, history):
    """Each is announced, to who is there, before the next; one is made by a clock that is three years ahead."""
    for ahead_s in (0, 0, 0, THREE_YEARS_S, 0):
        wreck_store()
        restore_surely(name, ahead_s)
        wait_until('it is believed', lambda: bus.announced(lab, 'node2')['history'] > history, 60)
        history = bus.announced(lab, 'node2')['history']
    assert history > time.time() + THREE_YEARS_S - 3600, history


@title('/archive/backup-wreck-restore-go-on#SAF-02,SAF-103')
def test_restore():
    web1 = e2e.uuid_of(lab, 'web1')
    primary = lab.instance('web1', 'pnode')['pnode']
    lab.cli('cluster', 'backup', '--to', path('backup'))
    old = export('old.json')
    name = cluster_name()
    # After the backup the world goes on: another generation, another instance.
    lab.cli('instance', 'reboot', 'web1', '--shutdown-timeout', '0', '--reboot-type', 'full')
    e2e.wait_healthy(lab, 'web1')
    lab.do('OP_INSTANCE_CREATE', instance_name='late1', pnode='node2', snode='node3', wait=120, **e2e.TICK)
    late1 = e2e.uuid_of(lab, 'late1')
    count = e2e.wait_counting(lab, 'web1', web1, primary)
    generation = lab.instance('web1', 'generation')['generation']
    lab.lab('link', 'node3', 'down')
    restore_five_times(name, old['history'])
    lab.lab('link', 'node3', 'up')
    lab.lab('restart', 'luxid@node1')
    lab.lab('restart', 'watcher@node1')
    lab.luxi_connection = None
    wait_until('the cluster answers again', lambda: lab.run('cluster', 'info', check=False)[0] == 0, 60)
    new = export('new.json')
    assert new['history'] > old['history'], (new['history'], old['history'])
    assert all(job['status'] in ('success', 'error', 'canceled') for job in new['objects']['job'].values())
    assert new['objects']['repair_brake']['cluster']['restored']

    # Nothing starts, and verify says why.
    code, text = e2e.verify(lab)
    assert code == 1 and 'The configuration was restored from a backup of ' in text, text
    job = lab.submit({'OP_ID': 'OP_INSTANCE_SHUTDOWN', 'instance_name': 'web1', 'timeout': 0})
    status, results = lab.wait_job(job)
    assert status == 'error' and 'was restored from a backup and is not compared with the nodes yet' in json.dumps(results), \
        (status, results)
    assert e2e.running_copies(lab, web1) == 1

    # A person has it compared: the guest that runs is the instance, the record follows.
    wait_until('all nodes have answered', lambda: 'has not answered this epoch' not in e2e.verify(lab)[1], 60)
    assert bus.announced(lab, 'node3')['history'] == new['history']  # which was off
    code, out, err = lab.run('repair', 'continue', '--statement', 'compared')
    assert f'(late1, {late1})' in out + err, out + err
    row = lab.instance('web1', 'pnode', 'status', 'generation')
    assert row == {'pnode': primary, 'status': 'running', 'generation': generation}, row
    assert e2e.wait_counting(lab, 'web1', web1, primary, above=count)
    assert e2e.running_copies(lab, web1) == 1
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='web1', timeout=0)
    lab.do('OP_INSTANCE_STARTUP', instance_name='web1', wait=120)
    e2e.wait_counting(lab, 'web1', web1, primary)
    e2e.check_logs(lab)


# --- death in the middle of a restore ---

def bare_fettle(root, *args, env=None):
    done = fettlelib.run_command([lab.fettle, '--root', root, *args], 60, env={**os.environ, **(env or {})})
    return done.returncode, done.stdout, done.stderr


def bare_export(root):
    code, out, err = bare_fettle(root, 'cluster', 'export', '--with-secrets')
    return json.loads(out) if code == 0 else err


@title('/archive/restore-dies-anywhere')
def test_restore_dies():
    """Whatever ends a restore leaves the old store or the new one, or a way to give the command again."""
    root = path('bare')
    os.mkdir(root)
    code, out, err = bare_fettle(root, 'cluster', 'init', 'bare', '--node-name', 'n1', '--primary-ip', '127.0.0.1')
    assert code == 0, out + err
    code, out, err = bare_fettle(root, 'cluster', 'backup', '--to', path('bare.backup'))
    assert code == 0, out + err
    old = bare_export(root)
    kept, points, ends = path('bare.kept'), 0, []
    shutil.copytree(root, kept)
    while True:
        points += 1
        shutil.rmtree(root)
        shutil.copytree(kept, root)
        code, out, err = bare_fettle(root, 'cluster', 'restore', path('bare.backup'), '--confirm', 'bare',
                                     env={'FETTLE_CRASH_AT': str(points), 'FETTLE_CRASH_ONCE': path(f'died-{points}')})
        now = bare_export(root)
        died = os.path.exists(path(f'died-{points}'))
        restored = isinstance(now, dict) and now['history'] > old['history']
        ends.append('new' if restored else 'old' if isinstance(now, dict) else 'aside')
        if isinstance(now, dict) and not restored:
            assert now['objects'] == old['objects'] and now['serial'] == old['serial'], points
        code, out, err = bare_fettle(root, 'cluster', 'restore', path('bare.backup'), '--confirm', 'bare')
        assert code == 0, (points, err)
        assert bare_export(root)['objects']['repair_brake']['cluster']['restored'], points
        if not died:
            break
        assert points < 200
    # The walk went through the whole of it: the first deaths leave the old store, the last the new one.
    assert points > 8 and ends[0] == 'old' and ends[-1] == 'new', ends


def main():
    global lab, folder
    folder = tempfile.mkdtemp(prefix='fettle-archive-', dir='/var/tmp')
    try:
        with e2e.new_lab() as lab:
            lab.do('OP_INSTANCE_CREATE', instance_name='web1', pnode='node1', snode='node2', wait=120, **e2e.TICK)
            e2e.wait_healthy(lab, 'web1')
            e2e.run(test_export, test_import, test_rest_users, test_bad_documents, test_import_refused, test_ganeti, test_hostile_ganeti, test_ssconf,
                    test_typed, test_damage, test_restore_dies, test_restore)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
