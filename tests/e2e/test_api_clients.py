#!/usr/bin/env python3
"""The commands of stock clients – openstack, cinder, glance, unmodified – one after the other in one lab, as administrator, as member and
as reader: their exit code, and what they print."""
import json
import os
import shlex
import subprocess
import threading

import api
import e2e
import stock_clients
import test_api_images as images
import test_images as i
import test_volumes as v
from e2e import title, wait_until

lab = None
front = None
clients = None
kept = {}  # what commands of before have printed, for {name} in later ones
WHO = {'admin': ('admin', 'admin'), 'member': ('ann', 'demo'), 'reader': ('rob', 'demo'), 'other': ('olga', 'others')}


def environment_of(who, version):
    user, project = WHO[who]
    password = front.password if who == 'admin' else f'password of {user}'
    return {'OS_AUTH_URL': f'{front.base}/identity/v3', 'OS_USERNAME': user, 'OS_PASSWORD': password, 'OS_PROJECT_NAME': project,
            'OS_USER_DOMAIN_ID': 'default', 'OS_PROJECT_DOMAIN_ID': 'default', 'OS_REGION_NAME': 'RegionOne', 'OS_IDENTITY_API_VERSION': '3',
            'OS_VOLUME_API_VERSION': version, 'HOME': lab.directory}


def run(who, line, code=0, has='', stdin=None, version='3.70'):
    """One command; what it has printed, of which `has` is a part: with a code of its errors."""
    words = shlex.split(line.format(**kept))
    if words[0] == 'openstack' and version == '3.70':
        version = '3'
    done, out, err = clients.run(words, environment_of(who, version), stdin)
    said = err if code else out
    assert done == code and has.format(**kept) in said, (who, words, done, out, err)
    return out


def made(who, line, name):
    """An `openstack … create`, whose id is kept by that name."""
    kept[name] = json.loads(run(who, line + ' -f json'))['id']


def status_of(kind, name):
    return json.loads(run('admin', f'openstack {kind} show {{{name}}} -f json'))['status']


def await_status(kind, name, status='available'):
    wait_until(f'{kind} {name} is {status}', lambda: status_of(kind, name) == status, v.PATIENCE_S)


def await_gone(kind, name):
    words = ['openstack', *kind.split(), 'show', kept[name]]
    wait_until(f'{kind} {name} is gone', lambda: clients.run(words, environment_of('admin', '3'))[0] == 1, v.PATIENCE_S)


def refused(line, has='(HTTP 403)', who='reader', **more):
    run(who, line, 1, has, **more)


@title('/clients/identity')
def test_identity():
    run('admin', 'openstack token issue', has='project_id')
    run('admin', 'openstack catalog list', has='volumev3')
    for project in ('demo', 'others'):
        made('admin', f'openstack project create {project} --description "what {project} is for"', project)
    for user, project, role in (('ann', 'demo', 'member'), ('rob', 'demo', 'reader'), ('olga', 'others', 'member')):
        made('admin', f'openstack user create {user} --password "password of {user}" --email {user}@example.org', user)
        run('admin', f'openstack role add --user {user} --project {project} {role}')
    run('admin', 'openstack project set demo --property cost=grass --description changed')
    run('admin', 'openstack project show demo', has='grass')
    run('admin', 'openstack project list --long', has='changed')
    run('admin', 'openstack user set ann --email ann@example.net')
    run('admin', 'openstack user show ann', has='ann@example.net')
    run('admin', 'openstack user list --long', has='olga')
    made('admin', 'openstack role create auditor', 'auditor')
    run('admin', 'openstack role set auditor --name looker')
    run('admin', 'openstack role show looker', has='{auditor}')
    run('admin', 'openstack role list', has='looker')
    run('admin', 'openstack role assignment list --names --project demo', has='ann@Default')
    run('admin', 'openstack role delete looker')
    for who in ('member', 'reader'):
        run(who, 'openstack token issue', has='expires')
        run(who, 'openstack catalog list', has='image')
        run(who, 'openstack user show {ann}' if who == 'member' else 'openstack user show {rob}', has='default')
        for line in ('user list', 'project create mine', 'role create mine', 'user delete {olga}'):
            refused('openstack ' + line, who=who)
    run('member', 'openstack application credential create robot --secret s3cret', has='robot')
    run('member', 'openstack application credential list', has='robot')
    run('member', 'openstack application credential show robot', has='member')
    run('member', 'openstack application credential delete robot')
    made('admin', 'openstack user create passing --password x', 'passing')
    run('admin', 'openstack user delete passing')
    made('admin', 'openstack project create passing', 'passing')
    run('admin', 'openstack project delete passing')


@title('/clients/images')
def test_images():
    raw = os.path.join(lab.directory, 'tick.raw')
    with open(raw, 'wb') as file:
        file.write(os.urandom(1 << 20))
    kept['raw'] = raw
    made('member', 'openstack image create tick --file {raw} --disk-format raw', 'tick')
    kept['piped'] = json.loads(run('member', 'openstack image create piped --disk-format raw -f json', stdin=raw))['id']
    run('member', 'openstack image list', has='tick')
    run('reader', 'openstack image show {tick}', has='active')
    run('member', 'openstack image set {tick} --property os=linux --name ticker')
    run('reader', 'openstack image list --name ticker', has='{tick}')
    run('reader', 'openstack image save {tick} --file {raw}.saved')
    with open(raw, 'rb') as sent, open(raw + '.saved', 'rb') as got:
        assert sent.read() == got.read()
    refused('openstack image create mine --file {raw} --disk-format raw', has='403')
    refused('openstack image delete {tick}', has='403')
    run('other', 'openstack image show {tick}', 1, 'No Image found')
    run('member', 'openstack image set {tick} --shared')
    run('member', 'openstack image add project {tick} {others}')
    run('other', 'openstack image set {tick} --accept')
    run('other', 'openstack image show {tick}', has='ticker')
    run('member', 'openstack image remove project {tick} {others}')
    run('member', 'glance image-create --name g1 --disk-format raw --container-format bare --file {raw}', has='active')
    kept['g1'] = json.loads(run('member', 'openstack image show g1 -f json'))['id']
    run('member', 'glance image-create --name g2 --disk-format raw --container-format bare', has='active', stdin=raw)
    run('reader', 'glance image-list', has='g2')
    run('reader', 'glance image-show {g1}', has='g1')
    run('reader', 'glance image-download {g1} --file {raw}.g1')
    run('member', 'glance image-update {g1} --property a=b', has='b')
    run('member', 'glance image-tag-update {g1} blue')
    run('reader', 'glance image-show {g1}', has='blue')
    run('member', 'glance image-tag-delete {g1} blue')
    run('member', 'glance image-update {g1} --visibility shared')
    run('member', 'glance member-create {g1} {others}', has='pending')
    run('other', 'glance member-update {g1} {others} accepted', has='accepted')
    run('member', 'glance member-list --image-id {g1}', has='accepted')
    run('member', 'glance member-delete {g1} {others}')
    run('member', 'glance image-deactivate {g1}')
    refused('glance image-download {g1} --file {raw}.none', has='403')
    run('member', 'glance image-reactivate {g1}')
    run('member', 'glance image-delete {g1}')
    run('member', 'openstack image delete {piped} g2')


@title('/clients/types')
def test_types():
    made('admin', 'openstack volume type create fast --property volume_backend_name=dir1 --description quick', 'fast')
    run('admin', 'openstack volume type set fast --property vendor_name=Fettle')
    run('admin', 'openstack volume type unset fast --property vendor_name')
    run('admin', 'openstack volume type show fast', has='dir1')
    for who in ('member', 'reader'):
        run(who, 'openstack volume type list --long', has='quick')
        refused('openstack volume type create mine', who=who)
        refused('openstack volume type delete fast', who=who)
    made('admin', 'openstack volume type create closed --private --project others', 'closed')
    run('other', 'openstack volume type list', has='closed')
    assert 'closed' not in run('member', 'openstack volume type list')
    run('admin', 'openstack volume type set closed --project demo')
    run('member', 'openstack volume type list', has='closed')
    run('admin', 'openstack volume type unset closed --project demo')
    run('admin', 'openstack volume type delete closed')
    run('admin', 'cinder type-list', has='fast')
    run('admin', 'cinder type-create c1', has='c1')
    kept['c1-type'] = json.loads(run('admin', 'openstack volume type show c1 -f json'))['id']
    run('admin', 'cinder type-key c1 set volume_backend_name=dir1')
    run('admin', 'cinder extra-specs-list', has='dir1')
    run('admin', 'cinder type-show c1', has='c1')
    run('admin', 'cinder type-update {c1-type} --description other')
    run('admin', 'cinder type-delete c1')
    run('admin', 'cinder default-type-set fast {demo}', has='{fast}')
    run('admin', 'cinder default-type-list --project-id {demo}', has='{fast}')
    run('member', 'cinder type-default', has='fast')
    run('admin', 'cinder default-type-unset {demo}')
    refused('cinder default-type-list', who='member')


@title('/clients/volumes')
def test_volumes():
    made('member', 'openstack volume create --size 1 --property k=v --description d v1', 'v1')
    made('member', 'openstack volume create --size 1 --image {tick} v2', 'v2')
    made('member', 'openstack volume create --size 1 --type fast v3', 'v3')
    for name in ('v1', 'v2', 'v3'):
        await_status('volume', name)
    made('member', 'openstack volume create --source v1 v4', 'v4')
    run('reader', 'openstack volume list --long', has='v4')
    run('reader', 'openstack volume list --limit 1 --marker {v3}', has='{v2}')
    run('reader', 'openstack volume show v2', has='{tick}')
    run('admin', 'openstack volume list --all-projects', has='{v1}')
    assert run('other', 'openstack volume list -f value') == ''
    run('other', 'openstack volume show {v1}', 1, 'No volume')
    run('member', 'openstack volume set v1 --name w1 --property a=b --size 2')
    await_status('volume', 'v1')
    run('reader', 'openstack volume show w1', has="a='b', k='v'")
    run('member', 'openstack volume unset w1 --property a')
    run('member', 'openstack volume set w1 --read-only')
    run('reader', 'openstack volume show w1', has="readonly='True'")
    run('member', 'openstack volume set w1 --read-write --bootable')
    run('admin', 'openstack volume set {v1} --state error')
    run('reader', 'openstack volume show w1', has='error')
    run('admin', 'openstack volume set {v1} --state available')
    for line in ('volume create --size 1 mine', 'volume set w1 --name mine', 'volume delete w1', 'volume set w1 --property a=b'):
        refused('openstack ' + line, has='403')
    refused('openstack volume set {v1} --state error', who='member', has='403')
    await_status('volume', 'v4')
    run('member', 'cinder create 1 --name c1 --metadata k=v', has='creating')
    run('reader', 'cinder list', has='c1')
    kept['c1'] = json.loads(run('member', 'openstack volume show c1 -f json'))['id']
    await_status('volume', 'c1')
    run('reader', 'cinder show c1', has='{c1}')
    run('member', 'cinder rename c1 c2')
    run('member', 'cinder extend c2 2')
    await_status('volume', 'c1')
    run('member', 'cinder metadata c2 set x=y')
    run('reader', 'cinder metadata-show c2', has='y')
    run('admin', 'cinder reset-state {c1} --state error')
    run('admin', 'cinder reset-state {c1} --state available')
    refused('cinder reset-state {c1} --state error', who='member', has='ERROR')
    refused('cinder delete c2', has='ERROR')
    run('reader', 'cinder list-filters --resource volume', has='status')
    run('reader', 'cinder list --filters name~=c', has='c2')
    run('reader', 'cinder summary', has='total_count')
    run('reader', 'cinder availability-zone-list', has='nova')
    run('member', 'cinder upload-to-image c2 of-c2 --disk-format raw', has='of-c2')
    await_status('volume', 'c1')
    made_of = json.loads(run('member', 'openstack image create --volume v3 of-v3 --disk-format raw -f json'))
    assert made_of['volume_id' if 'volume_id' in made_of else 'id'] == kept['v3'], made_of
    await_status('volume', 'v3')


@title('/clients/snapshots')
def test_snapshots():
    made('member', 'openstack volume snapshot create --volume v3 --property k=v s1', 's1')
    await_status('volume snapshot', 's1')
    run('reader', 'openstack volume snapshot list --long', has='s1')
    run('reader', 'openstack volume snapshot show s1', has='{v3}')
    run('member', 'openstack volume snapshot set s1 --name s2 --description d --property a=b')
    run('member', 'openstack volume snapshot unset s2 --property a')
    run('admin', 'openstack volume snapshot set {s1} --state error')
    run('admin', 'cinder snapshot-reset-state {s1} --state available')
    made('member', 'openstack volume create --snapshot s2 v5', 'v5')
    await_status('volume', 'v5')
    refused('openstack volume snapshot create --volume v3 mine', has='403')
    refused('openstack volume snapshot delete s2', has='403')
    run('member', 'cinder snapshot-create v3 --name s3', has='creating')
    kept['s3'] = json.loads(run('member', 'openstack volume snapshot show s3 -f json'))['id']
    await_status('volume snapshot', 's3')
    run('reader', 'cinder snapshot-list', has='s3')
    run('reader', 'cinder snapshot-show s3', has='{s3}')
    run('member', 'cinder snapshot-rename s3 s4')
    run('member', 'cinder snapshot-metadata s4 set x=y')
    run('member', 'cinder snapshot-delete s4')
    await_gone('volume snapshot', 's3')
    run('member', 'openstack volume delete v3', 1, 'have snapshots')


@title('/clients/backups')
def test_backups():
    made('member', 'openstack volume backup create v3 --name b1 --description d', 'b1')
    await_status('volume backup', 'b1')
    run('reader', 'openstack volume backup list --long', has='b1')
    run('reader', 'openstack volume backup show b1', has='{v3}')
    # This version of the command prints what its client says as if that were a table, and breaks at it when all is done.
    run('member', 'openstack volume backup restore --force b1 v5', 1, 'cannot unpack non-iterable VolumeBackupsRestore')
    assert audited(0, 'POST', '/restore')[0] == [202]
    await_status('volume', 'v5')
    run('admin', 'openstack volume backup set {b1} --state error', version='3.70')
    run('admin', 'cinder backup-reset-state {b1} --state available')
    refused('openstack volume backup create v3', has='403')
    refused('openstack volume backup delete b1', has='403')
    run('member', 'cinder backup-create v3 --name b2', has='b2')
    kept['b2'] = json.loads(run('member', 'openstack volume backup show b2 -f json'))['id']
    await_status('volume backup', 'b2')
    run('member', 'cinder backup-create v3 --incremental', 1, 'ERROR')
    run('reader', 'cinder backup-list', has='b2')
    run('reader', 'cinder backup-show b2', has='{b2}')
    run('member', 'cinder backup-restore {b2} --name again', has='again')
    await_status('volume backup', 'b2')
    run('member', 'cinder backup-delete {b2}')
    run('member', 'openstack volume backup delete b1')
    await_gone('volume backup', 'b1')


@title('/clients/services-and-quotas')
def test_services():
    run('admin', 'openstack volume service list --long', has='node1@dir1')
    run('admin', 'openstack volume service set --disable --disable-reason why node1@dir1 cinder-volume')
    run('admin', 'cinder service-list --withreplication', has='why')
    run('admin', 'openstack volume service set --enable node1@dir1 cinder-volume')
    run('admin', 'cinder service-disable node1@dir1 cinder-volume', has='disabled')
    run('admin', 'cinder service-enable node1@dir1 cinder-volume', has='enabled')
    run('admin', 'cinder get-pools --detail', has='Fettle')
    run('admin', 'cinder freeze-host node1@dir1', 1, 'ERROR')  # there is no such thing
    for words in ('', '--binary cinder-volume', '--host node1@dir1', '--is-up true', '--disabled true', '--resource-type Volume',
                  '--cluster fettle@dir1'):
        run('admin', f'cinder work-cleanup {words}', version='3.24')
    run('admin', 'cinder quota-update {demo} --volumes 20', has='20')
    run('admin', 'cinder quota-show {demo}', has='20')
    run('admin', 'cinder quota-defaults {demo}', has='10')
    run('admin', 'cinder quota-usage {demo}', has='20')
    run('admin', 'cinder quota-class-show default', has='10')
    run('member', 'cinder absolute-limits', has='totalVolumesUsed')
    run('admin', 'cinder quota-delete {demo}')
    for who in ('member', 'reader'):
        for line in ('service-list', 'get-pools', 'work-cleanup', 'quota-update {demo} --volumes 99', 'service-disable node1@dir1 cinder-volume'):
            refused('cinder ' + line, has='ERROR', who=who)


@title('/clients/attachments')
def test_attachments():
    run('reader', 'openstack --os-volume-api-version 3.27 volume attachment list', version='3.27')
    run('member', 'cinder attachment-create {v4} {v1}', has='reserved')
    kept['attachment'] = json.loads(run('member', 'openstack --os-volume-api-version 3.27 volume attachment list -f json', version='3.27'))[0]['ID']
    run('reader', 'cinder attachment-list', has='{attachment}')
    run('reader', 'cinder attachment-show {attachment}', has='reserved')
    refused('cinder attachment-complete {attachment}', has='ERROR')
    run('member', 'cinder attachment-complete {attachment}', 1, 'ERROR')
    run('member', 'cinder attachment-delete {attachment}')
    await_status('volume', 'v4')


@title('/clients/who-asked')
def test_why():
    status, headers, _ = front.ask('POST', f'/volume/v3/{front.project}/volumes', {'volume': {'size': 1, 'name': 'asked'}}, front.login()[1])
    assert status == 202, status
    wait_until('it is made', lambda: v.volumes()['asked']['status'] == 'available', v.PATIENCE_S)
    request = headers['x-openstack-request-id']
    assert f'Work on it was asked for last by request {request}.\n' in lab.cli('why', 'volume', 'asked')


class Sender:
    """A client that sends an image from a pipe, which a thread fills: `whole` pieces, of which only some come before go_on()."""
    PIECES, FIRST = 48, 24  # of 1 MiB; more than may be on its way

    def __init__(self, line):
        words = shlex.split(line.format(**kept))
        environment = {key: value for key, value in os.environ.items() if not key.startswith('OS_')}
        environment.update(environment_of('member', '3'))
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.may = threading.Event()
        self.feeder = threading.Thread(target=self.feed, daemon=True)
        self.feeder.start()

    def feed(self):
        try:
            for piece in range(self.PIECES):
                if piece == self.FIRST:
                    self.may.wait()
                self.process.stdin.write(images.PIECE)
                self.process.stdin.flush()
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def end(self):
        """Its exit code, and all that it has said."""
        self.may.set()
        said = self.process.stdout.read().decode()
        code = self.process.wait(api.PATIENCE_S)
        self.feeder.join(api.PATIENCE_S)
        return code, said


def audited(since, method, end):
    """Status of each request of that kind that the front end has answered since then."""
    with open(os.path.join(lab.root('node1'), 'log', 'api', 'audit.log'), encoding='utf-8') as file:
        lines = [json.loads(line) for line in file]
    return [line['status'] for line in lines[since:] if line['method'] == method and line['path'].endswith(end)], len(lines)


def uuid_of(name):
    return i.images()[name]['uuid'] if name in i.images() else None


def comes(name):
    return bool(uuid_of(name)) and i.images()[name]['status'] == 'saving' and images.comes(uuid_of(name))


def never_short(name):
    found = i.images().get(name)
    assert not found or (found['status'] == 'queued' and not found['size']), found


PIPED = {'openstack': 'openstack image create {} --disk-format raw',
         'glance': 'glance image-create --name {} --disk-format raw --container-format bare'}


def kill_members():
    for node in ('node1', 'node2'):
        lab.lab('kill', f'volumed@{node}')


def break_pipe(client, name, kill):
    """Statuses of its PUTs."""
    since = audited(0, '', '')[1]
    sender = Sender(PIPED[client].format(name))
    wait_until(f'{name} comes', lambda: comes(name), v.PATIENCE_S)
    kill()
    code, said = sender.end()
    wait_until('the front end is back', lambda: front.ask('GET', '/identity/v3')[0] == 200, v.PATIENCE_S)
    wait_until(f'{name} is decided', lambda: name not in i.images() or not i.images()[name]['operation'], v.PATIENCE_S)
    never_short(name)
    assert code != 0, said
    return audited(since, 'PUT', '/file')[0], said


@title('/clients/pipe-whose-member-dies#SAF-60')
def test_member_dies():
    for client in PIPED:
        statuses, said = break_pipe(client, f'broken-{client}', kill_members)
        assert statuses == [409], (client, statuses, said)  # once: it is not repeated
        assert 'send all of it again' in said, (client, said)
        for node in ('node1', 'node2'):
            wait_until('members are back', lambda node=node: v.services().get(f'{node}@dir1') == 'up', v.PATIENCE_S)


@title('/clients/pipe-whose-front-end-dies#SAF-60')
def test_front_dies():
    for client in PIPED:
        statuses, said = break_pipe(client, f'lost-{client}', lambda: lab.lab('kill', 'apid@node1'))
        print(f'# {client}: its further PUTs were answered with {statuses}', flush=True)
        assert all(status == 409 for status in statuses), (client, statuses, said)  # openstack repeats it, with the rest
        assert statuses or client != 'openstack', said


def make_large():
    kept['large'] = os.path.join(lab.directory, 'large.raw')
    with open(kept['large'], 'wb') as file:
        for _ in range(128):
            file.write(images.PIECE)


@title('/clients/file-whose-member-dies#SAF-60')
def test_file():
    make_large()
    since = audited(0, '', '')[1]
    sender = Sender('openstack image create torn --disk-format raw --file {large}')
    wait_until('torn comes', lambda: comes('torn'), v.PATIENCE_S, step=0.002)
    kill_members()
    code, said = sender.end()
    wait_until('torn is decided', lambda: 'torn' not in i.images() or not i.images()['torn']['operation'], v.PATIENCE_S)
    statuses = audited(since, 'PUT', '/file')[0]
    print(f'# {code}, {statuses}', flush=True)
    if code:
        never_short('torn')
        assert 204 not in statuses, (statuses, said)
    else: # it was through before
        assert i.images()['torn']['size'] == 128 << 20
        run('member', 'openstack image delete torn')
    for node in ('node1', 'node2'):
        wait_until('members are back', lambda node=node: v.services().get(f'{node}@dir1') == 'up', v.PATIENCE_S)


@title('/clients/refusal-of-a-large-file-is-heard')
def test_refusal():
    make_large()
    run('member', 'openstack image create filled --disk-format raw --file {raw}')
    kept['filled'] = uuid_of('filled')
    run('member', 'glance image-upload --file {large} {filled}', 1, 'Image status transition from active to saving is not allowed')
    images.front, images.TOKEN = front, front.login()[1]
    uploads = [images.Upload(images.made(f'slow{number}'), 1 << 20) for number in range(16)]
    wait_until('all come', lambda: sum(one['status'] == 'saving' for one in i.images().values()) == 16, v.PATIENCE_S)
    run('member', 'openstack image create late --disk-format raw --file {large}', 1, 'too many images come and go')
    wait_until('it is taken away', lambda: 'late' not in i.images(), v.PATIENCE_S)  # by openstack
    for upload in uploads:
        upload.gone()
    wait_until('none comes', lambda: not any(one['status'] == 'saving' for one in i.images().values()), v.PATIENCE_S)
    for name in [f'slow{number}' for number in range(16)] + ['filled']:
        images.ask('DELETE', f'/images/{uuid_of(name)}')


@title('/clients/creates-are-done-once')
def test_once():
    """The answer of the master is lost: what may have been done is not said to be undone, so that nobody does it twice."""
    for name, line, end in (('once1', 'openstack image create once1 --disk-format raw', '/images'),
                            ('once2', 'glance image-create --name once2 --disk-format raw --container-format bare', '/images'),
                            ('once3', 'openstack volume create --size 1 once3', '/volumes'),
                            ('once4', 'cinder --retries 3 create 1 --name once4', '/volumes')):
        since = audited(0, '', '')[1]
        lab.lab('pause', 'wconfd@node1')
        try:
            code, out, err = clients.run(shlex.split(line), environment_of('member', '3'))
        finally:
            lab.lab('resume', 'wconfd@node1')
        statuses = audited(since, 'POST', end)[0]
        assert code == 1 and statuses == [504], (line, code, statuses, out, err)
        kind = 'image' if 'image' in line else 'volume'
        wait_until('the master is back', lambda: front.ask('GET', '/identity/v3')[0] == 200 and lab.query(kind, ['name']) is not None, v.PATIENCE_S)
        found = [row for row in lab.query(kind, ['name']) if row['name'] == name]
        assert len(found) <= 1, found
        print(f'# {name}: {len(found)} on record', flush=True)
        for _ in found:
            run('member', f'openstack {kind} delete {name}')


@title('/clients/everything-goes')
def test_deleted():
    run('admin', 'openstack volume migrate {v4} --host node1@dir2#dir2')
    await_status('volume', 'v4')
    run('member', 'openstack volume delete --purge v3')
    run('admin', 'openstack volume delete --force {v4}')
    run('member', 'openstack volume delete w1 v2 v5')
    run('member', 'cinder delete c2')
    for name in ('v1', 'v2', 'v3', 'v4', 'v5', 'c1'):
        await_gone('volume', name)
    run('admin', 'openstack volume type delete fast')
    run('member', 'openstack image delete {tick} of-c2 of-v3')
    for user in ('ann', 'rob', 'olga'):
        run('admin', f'openstack user delete {user}')


@title('/clients/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        i.lab = images.lab = v.lab = lab
        v.folder = os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        for place in ('dir1', 'dir2'):
            v.add_backend(place, 'node1', 'node2')
        lab.cli('backend', 'modify', 'dir1', '--images', 'yes', '--backups', 'yes')
        front = api.init(lab)
        front.project = front.login()[2]['token']['project']['id']
        clients = stock_clients.Clients()
        e2e.run(test_identity, test_images, test_types, test_volumes, test_snapshots, test_backups, test_services, test_attachments, test_why,
                test_member_dies, test_front_dies, test_file, test_refusal, test_once, test_deleted, test_logs)
