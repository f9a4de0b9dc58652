#!/usr/bin/env python3
"""OpenStack's own tests of its APIs, tempest, unmodified, against a front end of a lab. Whatever does not pass must be named in
tempest-excluded.txt with its reason; what is named there and passes fails as well, so that the list says what is."""
import json
import os
import subprocess
import sys

import api
import e2e
import test_volumes as v
from e2e import title, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
HANGS_S = 1800  # a module that is not at its end by then never is
IMAGE_MIB = 1
lab = None
front = None

VOLUME = ('test_versions', 'test_volumes_list', 'test_volumes_get', 'test_volumes_negative', 'test_volumes_actions', 'test_volume_metadata',
          'test_volumes_extend', 'test_volumes_snapshots', 'test_volumes_snapshots_list', 'test_volumes_snapshots_negative', 'test_snapshot_metadata',
          'test_volumes_backup', 'test_volumes_clone', 'test_volumes_clone_negative', 'test_image_metadata', 'test_availability_zone',
          'test_volume_absolute_limits', 'test_volume_delete_cascade', 'admin.test_volumes_actions', 'admin.test_volumes_list',
          'admin.test_volumes_backup',
          'admin.test_snapshots_actions', 'admin.test_volume_services', 'admin.test_volume_services_negative', 'admin.test_volume_types',
          'admin.test_volume_types_extra_specs', 'admin.test_volume_types_extra_specs_negative', 'admin.test_volume_types_negative',
          'admin.test_volume_type_access', 'admin.test_volume_pools', 'admin.test_volume_quotas', 'admin.test_volume_quotas_negative',
          'admin.test_volume_quota_classes', 'admin.test_volume_snapshot_quotas_negative')
IMAGE = ('test_images', 'test_images_negative', 'test_images_tags', 'test_images_tags_negative', 'test_images_member', 'test_images_member_negative',
         'test_versions')
IDENTITY = ('test_tokens', 'test_projects', 'test_application_credentials', 'test_api_discovery', 'test_catalog')
MODULES = [f'tempest.api.volume.{name}' for name in VOLUME] + [f'tempest.api.image.v2.{name}' for name in IMAGE] + \
          [f'tempest.api.identity.v3.{name}' for name in IDENTITY]

SETTINGS = """
[auth]
use_dynamic_credentials = false
test_accounts_file = {folder}/accounts.yaml
create_isolated_networks = false
admin_username = admin
admin_password = {password}
admin_project_name = admin
admin_domain_name = Default
[identity]
uri_v3 = {base}/identity/v3
auth_version = v3
region = RegionOne
[identity-feature-enabled]
api_v2 = false
application_credentials = true
security_compliance = false
[compute]
image_ref = {image}
image_ref_alt = {image}
build_timeout = 120
build_interval = 1
[volume]
catalog_type = volumev3
max_microversion = latest
build_timeout = 120
build_interval = 1
storage_protocol = file
vendor_name = Fettle
[volume-feature-enabled]
backup = true
snapshot = true
clone = true
manage_snapshot = false
manage_volume = false
multi_backend = false
[image]
catalog_type = image
disk_formats = raw,qcow2
container_formats = bare
[image-feature-enabled]
import_image = false
[validation]
run_validation = false
[service_available]
nova = false
cinder = true
glance = true
neutron = false
swift = false
horizon = false
[oslo_concurrency]
lock_path = {folder}/locks
"""


def excluded():
    """{test, class or module: why it does not pass}"""
    with open(os.path.join(HERE, 'tempest-excluded.txt'), encoding='utf-8') as file:
        rows = [line.split(None, 1) for line in file if not line.startswith('#') and line.strip()]
    assert all(len(row) == 2 and row[1].strip() for row in rows), rows
    return {name: reason.strip() for name, reason in rows}


def covers(name, test):
    return test == name or test.startswith(name + '.')


def make_accounts(folder):
    """An administrator, and two members, each of a project of his own."""
    token, role, entries = front.login()[1], {}, []
    for one in front.ask('GET', '/identity/v3/roles', token=token)[2]['roles']:
        role[one['name']] = one['id']
    for name, word in (('tempest-admin', 'admin'), ('tempest-one', 'member'), ('tempest-two', 'member')):
        project = front.ask('POST', '/identity/v3/projects', {'project': {'name': name}}, token)[2]['project']['id']
        body = {'user': {'name': name, 'password': f'password of {name}'}}
        user = front.ask('POST', '/identity/v3/users', body, token)[2]['user']['id']
        granted = front.ask('PUT', f'/identity/v3/projects/{project}/users/{user}/roles/{role[word]}', token=token)[0]
        assert granted == 204, granted
        entries.append({'username': name, 'project_name': name, 'password': f'password of {name}', 'domain_name': 'Default',
                        'user_domain_name': 'Default', 'project_domain_name': 'Default', 'roles': [word],
                        'types': ['admin'] if word == 'admin' else []})
    # The quotas of tests that do not ask for theirs: they are not what is tested.
    quotas = {'quota_class_set': {'volumes': 100, 'snapshots': 100, 'backups': 100, 'gigabytes': 10000, 'backup_gigabytes': 10000}}
    assert front.ask('PUT', f'/volume/v3/{front.project}/os-quota-class-sets/default', quotas, token)[0] == 200
    with open(os.path.join(folder, 'accounts.yaml'), 'w', encoding='utf-8') as file:
        json.dump(entries, file)  # which is YAML


def set_up():
    global front
    v.add_backend('dir1', 'node1', 'node2')
    v.add_backend('container', 'node1', 'node2')  # where a test wants its backup: containers are back ends
    lab.cli('backend', 'modify', 'dir1', '--images', 'yes', '--backups', 'yes')
    lab.cli('backend', 'modify', 'container', '--backups', 'yes')
    front = api.init(lab)
    front.project = front.login()[2]['token']['project']['id']
    folder = os.path.join(lab.directory, 'tempest')
    os.mkdir(folder)
    make_accounts(folder)
    raw = os.path.join(folder, 'image.raw')
    with open(raw, 'wb') as file:
        file.write(os.urandom(IMAGE_MIB << 20))
    image = front.openstack('image', 'create', '--file', raw, '--disk-format', 'raw', '--public', 'tick')['id']
    with open(os.path.join(folder, 'tempest.conf'), 'w', encoding='utf-8') as file:
        file.write(SETTINGS.format(folder=folder, base=front.base, password=front.password, image=image))
    return folder


def run_module(module):
    folder = os.path.join(lab.directory, 'tempest')
    environment = {key: value for key, value in os.environ.items() if not key.startswith(('OS_', 'PYTHON'))}
    environment.update(TEMPEST_CONFIG_DIR=folder, TEMPEST_CONFIG='tempest.conf')
    done = subprocess.run(['/usr/bin/python3', '-W', 'ignore', os.path.join(HERE, 'tempest_run.py'), module], env=environment, cwd=folder,
                          capture_output=True, text=True, timeout=HANGS_S, check=False)
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"id"')]
    assert done.returncode == 0 and outcomes, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return outcomes


def check_module(module):
    names, outcomes = excluded(), run_module(module)
    failed = [one for one in outcomes if one['outcome'] == 'failed']
    for one in outcomes:
        print(f'# {one["outcome"]} {one["id"]}', flush=True)
    bad = [one for one in failed if not any(covers(name, one['id']) for name in names)]
    assert not bad, 'not named in tempest-excluded.txt:\n' + '\n'.join(f'{one["id"]}\n{one["text"]}' for one in bad)
    good = [name for name in names if covers(module, name) and not any(covers(name, one['id']) for one in failed)]
    assert not good, f'named in tempest-excluded.txt, and nothing fails there: {good}'


def test_of(module):
    @title('/tempest/' + module[len('tempest.api.'):])
    def test():
        check_module(module)
    return test


@title('/tempest/what-is-excluded-is-run')
def test_excluded():
    assert [name for name in excluded() if not any(covers(module, name) for module in MODULES)] == []


@title('/tempest/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    root = os.path.dirname(os.path.dirname(HERE))
    packages = os.path.join(root, 'scripts', 'packages-tempest.txt')
    if subprocess.run([os.path.join(root, 'scripts', 'install-packages'), packages], check=False).returncode:
        print('1..0 # SKIP tempest cannot be installed here')
        sys.exit(0)
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        v.lab, v.folder = lab, os.path.join(lab.directory, 'shared')
        set_up()
        e2e.run(test_excluded, *[test_of(module) for module in MODULES], test_logs)
